"""What a caller cannot see moves none of her bits (LEX-6, LEX-8, FLT-8, ACL-5, ACL-8), and the incremental snapshot
equals a fresh one (VEC-8)."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kbretrieval.snapshot.snapshot as snapshots
from kbretrieval import Context, Index, SearchResult, TermEncoder
from kbretrieval.encoders.port import Encoder
from tests.unit.doubles import MODES, RandomVectors, code_of

ALICE = Context("acme", "alice", ("hr",))
QUERIES = ("aa bb", "退款 税", "税")
MINE = (["alice"], ["*"], ["group:hr"], ["bob", "alice"])
HIDDEN = (["bob"], [], ["group:it"])


@dataclass(frozen=True)
class Event:
    """One thing that happens to one document."""

    kind: str
    number: int
    text: str
    acl: tuple[str, ...]


TEXTS = st.lists(st.sampled_from(["aa", "bb", "cc", "退款", "税率", "收税", "说明"]), max_size=9).map(" ".join)
EVENTS = st.builds(
    Event,
    st.sampled_from(["upsert", "upsert", "upsert", "acl", "delete"]),
    st.integers(0, 4),
    TEXTS,
    st.sampled_from(MINE + HIDDEN).map(tuple),
)


def apply(index: Index, event: Event, tenant: str, prefix: str, acl: list[str]) -> None:
    """Let the event happen in its next revision; where the state does not allow it, nothing happens."""
    name = f"{prefix}{event.number}"
    before = index.status(tenant, name)
    revision = (before.revision or 0) + 1
    if event.kind == "upsert":
        index.upsert(tenant, name, revision, "text", event.text, acl, restore=True)
    elif event.kind == "acl" and before.state == "live":
        index.set_acl(tenant, name, acl, before.acl_revision or 1)
    elif event.kind == "delete":
        index.delete(tenant, name, revision)


def views(index: Index, context: Context = ALICE) -> list[SearchResult]:
    """Everything a caller can get: all modes, both fusions and rules, a window too small and one that is not."""
    options: list[dict[str, Any]] = [{}, {"fusion": "convex", "rerank": "title"}, {"window": 2}]
    return [
        index.search(query, context, 100, mode, **option)  # type: ignore[arg-type]
        for query in QUERIES
        for mode in MODES
        for option in options
    ]


def without_keys(results: list[SearchResult]) -> list[SearchResult]:
    """Results with chunk keys taken out: they tell how much was ever written, not what is readable."""
    return [replace(r, hits=tuple(replace(hit, chunk_key=1) for hit in r.hits)) for r in results]


ENCODERS: list[Encoder] = [TermEncoder(), RandomVectors(3, floor=-0.2)]


@pytest.mark.slow
@pytest.mark.promise("LEX-8", "LEX-6", "ACL-5", "FLT-8", "RRF-3")
@pytest.mark.parametrize("encoder", ENCODERS, ids=["terms", "dense"])
@settings(max_examples=20)
@given(st.lists(EVENTS, max_size=7), st.lists(EVENTS, min_size=1, max_size=7), st.randoms(use_true_random=False))
def test_unseen_documents_move_no_bit(
    tmp_path_factory: pytest.TempPathFactory, encoder: Encoder, mine: list[Event], hidden: list[Event], random: Any
) -> None:
    folder = tmp_path_factory.mktemp("isolation")
    with Index.open(folder / "alone", encoder, 12, 0) as alone, Index.open(folder / "among", encoder, 12, 0) as among:
        for number, event in enumerate(mine):
            acl = list(MINE[number % len(MINE)])
            apply(alone, event, "acme", "d", acl)
            apply(among, event, "acme", "d", acl)
            if random.random() < 0.5:
                unseen = random.choice(hidden)
                apply(among, unseen, "acme", "unseen", list(HIDDEN[unseen.number % len(HIDDEN)]))
        expected = views(among)
        assert without_keys(expected) == without_keys(views(alone))
        for number, event in enumerate(hidden):
            tenant, acl = ("beta", ["*"]) if number % 3 == 2 else ("acme", list(HIDDEN[number % len(HIDDEN)]))
            apply(among, event, tenant, "unseen", acl)
            assert views(among) == expected


@pytest.mark.promise("ACL-8", "LEX-8")
def test_absent_forbidden_and_deleted_look_the_same(tmp_path: Path) -> None:
    seen = []
    for state in ("absent", "forbidden", "deleted", "revoked", "other tenant"):
        with Index.open(tmp_path / state) as index:
            index.upsert("acme", "mine", 1, "text", "发票", ["alice"])
            if state == "other tenant":
                index.upsert("beta", "x", 1, "text", "退款", ["*"])
            elif state != "absent":
                index.upsert("acme", "x", 1, "text", "退款", ["bob" if state == "forbidden" else "alice"])
            if state == "deleted":
                index.delete("acme", "x", 2)
            if state == "revoked":
                index.set_acl("acme", "x", [], 1)
            results = [index.search(query, ALICE, mode=mode) for query in ("退款", "发票") for mode in MODES]  # type: ignore[arg-type]
            seen.append([result.to_dict() for result in results])
            seen[-1].append(index.answer(results[0], ALICE).to_dict())
    assert all(each == seen[0] for each in seen)


@pytest.mark.promise("ACL-1", "ID-1")
def test_an_unknown_tenant_has_nothing(index: Index) -> None:
    index.upsert("acme", "d", 1, "text", "退款", ["*"])
    for context in (Context("nowhere", "alice"), Context("beta", "alice", ("hr",))):
        result = index.search("退款", context)
        assert len(result) == 0 and {trace.eligible for trace in result.channels} == {0}
    for value in (None, "alice", {}, ("acme", "alice"), object()):
        assert code_of(index.search, "退款", value) == "trusted_context_required"


@pytest.mark.promise("ACL-2", "LEX-6")
@given(st.lists(st.sampled_from(["alice", "bob", "*", "group:hr", "group:it", "!alice"]), max_size=4))
@settings(max_examples=25)
def test_who_reads_what_is_decided_by_the_entries_alone(
    tmp_path_factory: pytest.TempPathFactory, acl: list[str]
) -> None:
    contexts = [
        ALICE,
        Context("acme", "bob"),
        Context("acme", "carol", ("it",)),
        Context("acme", "hr"),
        Context("beta", "alice"),
    ]
    with Index.open(tmp_path_factory.mktemp("acl") / "kb") as index:
        index.upsert("acme", "d", 1, "text", "退款", acl)
        for context in contexts:
            mine = {context.principal, "*", *(f"group:{name}" for name in context.groups)}
            readable = context.tenant == "acme" and bool(mine & set(acl))
            for lexical in ("isolated", "fts5"):
                assert len(index.search("退款", context, lexical=lexical)) == int(readable)  # type: ignore[arg-type]


@pytest.mark.slow
@pytest.mark.promise("VEC-8", "LEX-7", "PRF-4")
@pytest.mark.parametrize("encoder", ENCODERS, ids=["terms", "dense"])
@pytest.mark.parametrize("rows", [1, 4, snapshots.SEGMENT_ROWS])
def test_the_incremental_snapshot_equals_a_fresh_one(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch, encoder: Encoder, rows: int
) -> None:
    """Segments that fill up, that are joined, that lose half of their rows: small limits make each happen soon."""
    monkeypatch.setattr(snapshots, "SEGMENT_ROWS", rows)
    joins = []
    joined_from = snapshots._joined_from
    monkeypatch.setattr(
        snapshots, "_joined_from", lambda snapshot, *ends: joins.append(ends) or joined_from(snapshot, *ends)
    )

    @settings(max_examples=8)
    @given(st.lists(EVENTS, min_size=4, max_size=10), st.integers(0, 2))
    def history(events: list[Event], pause: int) -> None:
        path = tmp_path_factory.mktemp("history") / "kb"
        contexts = [ALICE, Context("acme", "bob")]
        with Index.open(path, encoder, 12, 4) as kept:
            for number, event in enumerate(events):
                apply(kept, event, "acme", "d", list(event.acl))
                if pause and number % (pause + 1):
                    continue  # several commits between two searches
                with Index.open(path, encoder) as fresh:
                    for context in contexts:
                        assert views(kept, context) == views(fresh, context)

    history()
    assert joins, "no join happened, the histories are too short to test one"


@pytest.mark.promise("VEC-8", "LEX-6", "ACL-5")
@pytest.mark.parametrize("rows", [4, 64])
def test_rows_keep_their_readers_when_segments_are_joined(
    index: Index, monkeypatch: pytest.MonkeyPatch, rows: int
) -> None:
    """Dead rows stand between living ones of other readers: whoever joins them has to move the ACL with its row."""
    monkeypatch.setattr(snapshots, "SEGMENT_ROWS", rows)
    for step in range(40):
        number = step * 5 % 7
        name, reader = f"d{number}", f"p{number}"
        revision = (index.status("acme", name).revision or 0) + 1
        if step % 6 == 5:
            index.delete("acme", name, revision)
        else:
            index.upsert("acme", name, revision, "text", f"退款 {step}", [reader], restore=True)
        for other in range(7):
            live = index.status("acme", f"d{other}").state == "live"
            hits = index.search("退款", Context("acme", f"p{other}"))
            assert [hit.doc_id for hit in hits] == ([f"d{other}"] if live else [])


@pytest.mark.promise("VEC-8", "LEX-7")
def test_a_snapshot_never_changes(index: Index) -> None:
    index.upsert("acme", "a", 1, "text", "退款 aa", ["alice"])
    old = index._engine.resident
    with index._engine.connection.read():
        snapshot = old.current(index._engine.connection, "acme")
    kept = [snapshot.alive.copy(), snapshot.acl_numbers.copy(), snapshot.eligible(ALICE).mask.copy()]
    index.upsert("acme", "b", 1, "text", "退款 bb", ["alice"])
    index.set_acl("acme", "a", [], 1)
    index.search("退款", ALICE)
    now = [snapshot.alive, snapshot.acl_numbers, snapshot.eligible(ALICE).mask]
    assert all((left == right).all() for left, right in zip(kept, now, strict=True))
