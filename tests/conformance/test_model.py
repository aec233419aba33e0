"""FLT-12: documents × callers × groups × channels against a model of sixty lines, event by event."""

import itertools
import os
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from kbretrieval import Context, Hit, Index
from tests.unit import lifecycle_model as model
from tests.unit.doubles import MODES, Table, error_of

FULL = os.environ.get("KBRETRIEVAL_FAULTS") == "full"

Key = tuple[str, str]

KEYS: list[Key] = [("acme", "a"), ("acme", "制度/b.md"), ("acme", "c"), ("beta", "a")]
CALLERS = [
    Context("acme", "alice"),
    Context("acme", "bob", ("hr",)),
    Context("acme", "carol", ("hr", "ops")),
    Context("beta", "alice"),
]
WORDS = ("甲词", "乙词", "丙词")
ENTRIES = ("alice", "bob", "carol", "group:hr", "group:ops", "group:none", "*")

keys = st.sampled_from(KEYS)
callers = st.sampled_from(CALLERS)
revisions = st.integers(1, 6)
words = st.sampled_from(WORDS)
acls = st.lists(st.sampled_from(ENTRIES), max_size=3, unique=True)
modes = st.sampled_from(MODES)
lexicals = st.sampled_from(["isolated", "fts5"])


def text_of(key: Key, revision: int, word: str) -> str:
    return f"# 文件\n\n共同词 {word} 版本{revision} {'。'.join(key)}"


@dataclass
class Kept:
    """A hit that somebody keeps, and what it names."""

    hit: Hit
    caller: Context
    key: Key
    revision: int
    acl_revision: int


@dataclass
class World:
    """The model: the documents, by identity."""

    documents: dict[Key, model.Document | None] = field(default_factory=lambda: dict.fromkeys(KEYS))

    def readable(self, caller: Context, word: str) -> set[Key]:
        return {
            key
            for key, document in self.documents.items()
            if key[0] == caller.tenant
            and document is not None
            and model.may_read(document, caller.principal, caller.groups)
            and word in document.text
        }

    def honours(self, kept: Kept) -> bool:
        document = self.documents[kept.key]
        return (
            document is not None
            and model.may_read(document, kept.caller.principal, kept.caller.groups)
            and (document.revision, document.acl_revision) == (kept.revision, kept.acl_revision)
        )


class Events(RuleBasedStateMachine):
    """Applies every event to the index and to the model, and compares what both say."""

    dense = False

    @initialize()
    def start(self) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.path = Path(self.folder.name) / "kb.sqlite"
        self.world, self.kept = World(), list[Kept]()
        self.index = self.opened()

    def opened(self) -> Index:
        index = Index.open(self.path, encoder=Table("table-2") if self.dense else None)
        index._engine.connection.run("PRAGMA synchronous=OFF")
        return index

    def teardown(self) -> None:
        if hasattr(self, "index"):
            assert self.index.check() == ()
            self.index.close()
            self.folder.cleanup()

    def agree(self, key: Key, outcome: model.Outcome, call: Any, *arguments: Any) -> None:
        made: list[Any] = []
        refused = error_of(lambda: made.append(call(*key, *arguments)))
        self.world.documents[key], said = outcome
        assert (refused.code if refused else made[0].state) == said

    @rule(key=keys, revision=revisions, word=words, acl=acls, restore=st.booleans())
    def upsert(self, key: Key, revision: int, word: str, acl: list[str], restore: bool) -> None:
        text = text_of(key, revision, word)
        outcome = model.upsert(self.world.documents[key], revision, text, tuple(acl), restore)
        self.agree(key, outcome, self.index.upsert, revision, "markdown", text, acl, restore)

    @rule(key=keys, acl=acls, behind=st.sampled_from([0, 0, 0, 1, -1]))
    def set_acl(self, key: Key, acl: list[str], behind: int) -> None:
        old = self.world.documents[key]
        expected = max(1, (old.acl_revision if old else 1) - behind)
        self.agree(key, model.set_acl(old, tuple(acl), expected), self.index.set_acl, acl, expected)

    @rule(key=keys, revision=revisions)
    def delete(self, key: Key, revision: int) -> None:
        self.agree(key, model.delete(self.world.documents[key], revision), self.index.delete, revision)

    @rule(caller=callers, word=st.sampled_from([*WORDS, "共同词"]), lexical=lexicals)
    def search(self, caller: Context, word: str, lexical: Any) -> None:
        wanted = self.world.readable(caller, word)
        modes = ["lexical"] if self.dense else MODES
        for mode in modes:
            found = self.index.search(word, caller, limit=100, mode=mode, lexical=lexical)  # type: ignore[arg-type]
            assert {(hit.tenant, hit.doc_id) for hit in found if mode == "lexical" or word in hit.text} == wanted
            assert all(self.world.documents[hit.tenant, hit.doc_id].text == hit.text for hit in found)  # type: ignore[union-attr]
        for hit in found:
            key = (hit.tenant, hit.doc_id)
            self.kept.append(Kept(hit, caller, key, hit.revision, hit.acl_revision))

    @rule(caller=callers)
    def everything_of_the_vector_channel(self, caller: Context) -> None:
        if self.dense:
            found = self.index.search("别的话", caller, limit=100, mode="vector")
            assert {(hit.tenant, hit.doc_id) for hit in found} == self.world.readable(caller, "")

    @rule(caller=callers)
    def answer(self, caller: Context) -> None:
        """Every kept hit alone, as its owner and as somebody else."""
        for kept in self.kept[-12:]:
            answer = self.index.answer([kept.hit], caller)
            if kept.caller == caller and self.world.honours(kept):
                document = self.world.documents[kept.key]
                assert document is not None
                assert [item.quote for item in answer.evidence] == [document.text]
            else:
                assert answer.state == "abstain"

    @rule()
    def purge(self) -> None:
        self.index.purge()

    @rule()
    def reopen(self) -> None:
        self.index.close()
        self.index = self.opened()

    @invariant()
    def status(self) -> None:
        if not hasattr(self, "index"):
            return
        for key, document in self.world.documents.items():
            status = self.index.status(*key)
            if document is None:
                assert status.state == "absent"
                continue
            assert (status.state == "live") == document.live
            assert (status.revision, status.acl_revision, status.acl) == (
                *(document.revision, document.acl_revision, document.acl),
            )


class DenseEvents(Events):
    """The same, with vectors of their own."""

    dense = True


LIMITS = settings(max_examples=200 if FULL else 40, stateful_step_count=50)


@pytest.mark.promise("FLT-12", "DEL-6", "ACL-3", "CIT-1", "UPD-3")
class TestEvents(Events.TestCase):  # type: ignore[name-defined, misc]
    """Sparse index."""

    settings = LIMITS


@pytest.mark.promise("FLT-12", "VEC-8", "ACL-4")
class TestDenseEvents(DenseEvents.TestCase):  # type: ignore[name-defined, misc]
    """Dense index."""

    settings = LIMITS


@pytest.mark.promise("FLT-12")
def test_an_index_that_grants_again_by_content_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A broken build, and the events that show it, played by hand."""
    from kbretrieval import lifecycle

    original = lifecycle.update_content

    def granting(connection: Any, doc_key: int, *arguments: Any) -> None:
        original(connection, doc_key, *arguments)
        lifecycle.write_acl(connection, doc_key, ("*",))

    monkeypatch.setattr(lifecycle, "update_content", granting)
    machine = Events()
    machine.start()
    key = KEYS[0]
    machine.upsert(key, 1, WORDS[0], ["bob"], False)
    machine.upsert(key, 2, WORDS[0], ["bob"], False)
    with pytest.raises(AssertionError):
        machine.status()
    machine.teardown()


def test_the_callers_cover_both_tenants_and_every_kind_of_entry() -> None:
    admitted = set(itertools.chain.from_iterable(caller.entries() for caller in CALLERS))
    assert set(ENTRIES) - admitted == {"group:none"}
    assert {caller.tenant for caller in CALLERS} == {tenant for tenant, _ in KEYS}
