"""Decisions as tables, and every write as one whole: what the store holds after a failure at any statement."""

import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kbretrieval import Context, Index, lifecycle
from kbretrieval.errors import KBError, StorageFull
from kbretrieval.lifecycle import ContentEvent, decide_content, decide_delete, decide_policy
from kbretrieval.projection import project
from kbretrieval.store.connection import Connection
from kbretrieval.store.documents import Content, DocumentRow
from tests.unit.doubles import Table, code_of, logical_dump, sql

TEXT, OTHER = "# 甲\n\n上限五百元", "# 甲\n\n上限九百元"
STALE = "stale_or_conflicting_revision"


def event(revision: int, text: str = TEXT, restore: bool = False) -> ContentEvent:
    return ContentEvent(
        "acme", "d", revision, Content("markdown", project(text, "markdown"), None), ("alice",), restore
    )


def retitled(given: ContentEvent) -> ContentEvent:
    """The same projection under another title, as two JSON sources may have it."""
    content = given.content
    return replace(given, content=replace(content, projection=replace(content.projection, title="另")))


def row(live: bool = True, revision: int = 5, acl_revision: int = 3) -> DocumentRow:
    made = project(TEXT, "markdown")
    body = made.body if live else ""
    return DocumentRow(
        *(1, "acme", "d", revision, acl_revision, live, "markdown", made.title, body, ()),
        *(made.sha256, made.source_sha256, None, 1, 1),
    )


def outcome(decide: Callable[..., object], *arguments: object) -> object:
    try:
        return decide(*arguments)
    except KBError as error:
        return error.code


@pytest.mark.promise("ID-4", "ID-5", "DEL-3", "UPD-3")
@pytest.mark.parametrize(
    ("stored", "given", "expected"),
    [
        (None, event(1), "create"),
        (None, event(9, restore=True), "create"),
        (row(), event(5), "unchanged"),
        (row(), event(5, restore=True), "unchanged"),
        (row(), event(5, OTHER), STALE),
        (row(), retitled(event(5)), STALE),
        (row(), event(4), STALE),
        (row(), event(4, OTHER, restore=True), STALE),
        (row(), event(6), "replace"),
        (row(), event(6, OTHER, restore=True), "replace"),
        (row(live=False), event(4), STALE),
        (row(live=False), event(5), STALE),
        (row(live=False), event(5, restore=True), STALE),
        (row(live=False), event(6), "deleted_document_requires_explicit_restore"),
        (row(live=False), event(6, restore=True), "restore"),
    ],
)
def test_what_a_content_event_does(stored: DocumentRow | None, given: ContentEvent, expected: str) -> None:
    assert outcome(decide_content, stored, given) == expected


@pytest.mark.promise("DEL-1", "DEL-6")
@pytest.mark.parametrize(
    ("stored", "revision", "expected"),
    [
        (None, 1, "create"),
        (row(), 4, "delete_requires_new_revision"),
        (row(), 5, "delete_requires_new_revision"),
        (row(), 6, "bury"),
        (row(live=False), 4, STALE),
        (row(live=False), 5, "unchanged"),
        (row(live=False), 6, "move"),
    ],
)
def test_what_a_delete_does(stored: DocumentRow | None, revision: int, expected: str) -> None:
    assert outcome(decide_delete, stored, revision) == expected


@pytest.mark.promise("ACL-3", "ACL-8")
@pytest.mark.parametrize(
    ("stored", "given", "expected"),
    [
        (None, 1, "document_not_live"),
        (row(live=False), 3, "document_not_live"),
        (row(), 2, "stale_acl_revision"),
        (row(), 4, "stale_acl_revision"),
        (row(), 3, 4),
    ],
)
def test_what_a_policy_event_does(stored: DocumentRow | None, given: int, expected: object) -> None:
    assert outcome(decide_policy, stored, given) == expected


@pytest.mark.promise("ERR-1")
def test_refusals_carry_both_facts(index: Index) -> None:
    index.upsert("acme", "d", 7, "markdown", TEXT, ["alice"])
    with pytest.raises(KBError, match=r"stale_or_conflicting_revision: revision 6 given, 7 stored"):
        index.upsert("acme", "d", 6, "markdown", TEXT, ["alice"])
    with pytest.raises(KBError, match=r"stale_acl_revision: ACL revision 9 given, 1 stored"):
        index.set_acl("acme", "d", ["bob"], 9)
    with pytest.raises(KBError, match=r"delete_requires_new_revision: revision 7 given, 7 stored"):
        index.delete("acme", "d", 7)


class Interrupted:
    """Lets a connection's calls run until the n-th one, which finds the disk full."""

    def __init__(self, at: int) -> None:
        self.at, self.seen = at, 0

    def count(self) -> None:
        self.seen += 1
        if self.seen == self.at:
            raise StorageFull("planted")


@contextmanager
def interrupted(at: int) -> Iterator[Interrupted]:
    """Patch every way in which a statement reaches SQLite."""
    counter = Interrupted(at)
    with pytest.MonkeyPatch.context() as patch:
        for name in ("run", "run_many", "insert"):
            original = getattr(Connection, name)

            def counted(self: Connection, *arguments: Any, _original: Callable[..., Any] = original) -> Any:
                counter.count()
                return _original(self, *arguments)

            patch.setattr(Connection, name, counted)
        yield counter


LONG = "# 规程\n\n" + "\n\n".join(f"新版第{n}段说明文字。" for n in range(6))
STEPS: dict[str, Callable[[Index], object]] = {
    "create": lambda index: index.upsert("acme", "new", 1, "markdown", LONG, ["alice", "group:hr"]),
    "replace": lambda index: index.upsert("acme", "d", 2, "markdown", LONG, ["alice"]),
    "restore": lambda index: index.upsert("acme", "gone", 3, "markdown", LONG, ["bob"], restore=True),
    "set_acl": lambda index: index.set_acl("acme", "d", ["bob", "group:hr"], 1),
    "delete": lambda index: index.delete("acme", "d", 2),
    "move": lambda index: index.delete("acme", "gone", 9),
    "tombstone": lambda index: index.delete("acme", "unknown", 1),
}


def dense(path: Path) -> Index:
    return Index.open(path, encoder=Table("table-2"), chunk_size=20, overlap=5)


def prepared(path: Path) -> bytes:
    with dense(path) as index:
        for doc_id in ("d", "gone", "stay"):
            index.upsert("acme", doc_id, 1, "markdown", "# 规程\n\n旧版第一段说明。\n\n旧版第二段说明。", ["alice"])
        index.delete("acme", "gone", 2)
    return path.read_bytes()


def states(path: Path, start: bytes, step: Callable[[Index], object]) -> tuple[list[str], str, str]:
    """The dump after a failure at each statement, the dump before, and the dump after success."""
    before, found = logical_dump(path), []
    for at in range(1, 200):
        path.write_bytes(start)
        with dense(path) as index:
            with interrupted(at) as counter:
                code = code_of(step, index)
            found.append(logical_dump(path))
            assert index.check() == ()
            if code is None:
                assert counter.seen < at
                return found[:-1], before, found[-1]
            assert code == "storage_full"
            assert code_of(step, index) is None, "the same step succeeds once there is space"
    raise AssertionError("more statements than expected")


@pytest.mark.promise("UPD-2", "DEL-2", "ERR-2")
@pytest.mark.parametrize("name", STEPS)
def test_a_failure_at_any_statement_leaves_everything_as_it_was(name: str, index_path: Path) -> None:
    """C060 without a process: documents, ACL, chunks, FTS terms, vectors and counters, compared as one dump."""
    found, before, after = states(index_path, prepared(index_path), STEPS[name])
    assert len(found) >= 4
    assert set(found) == {before}
    assert after != before


@pytest.mark.promise("UPD-2")
def test_a_build_that_commits_before_the_chunks_is_caught(index_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    original = lifecycle.insert_chunks

    def early(connection: Connection, *arguments: Any) -> None:
        connection.run("COMMIT")
        connection.run("BEGIN IMMEDIATE")
        original(connection, *arguments)

    start = prepared(index_path)
    monkeypatch.setattr(lifecycle, "insert_chunks", early)
    with pytest.raises(AssertionError):
        found, before, _ = states(index_path, start, STEPS["replace"])
        assert set(found) == {before}


@pytest.mark.promise("CHK-5", "DEL-4")
def test_a_chunk_key_never_names_another_chunk(index_path: Path, alice: Context) -> None:
    """C039: keys only grow, through updates, deletes, a purge and a reopening; a kept hit cannot meet a new chunk."""
    keys: list[int] = []
    with Index.open(index_path) as index:
        for n in range(1, 6):
            index.upsert("acme", f"d{n % 2}", n, "markdown", f"# 甲\n\n代号 word{n} 项目", ["alice"], restore=True)
            keys += [key for (key,) in sql(index_path, "SELECT max(chunk_key) FROM chunks")]
        (old,) = index.search("word5", alice, mode="lexical")
        index.delete("acme", "d1", 6)
        index.delete("acme", "d0", 6)
        index.purge()
    with Index.open(index_path) as index:
        index.upsert("acme", "b", 1, "markdown", "# 甲\n\n代号 vogon 项目", ["alice"])
        (new,) = index.search("vogon", alice)
        assert keys == sorted(set(keys))
        assert new.chunk_key > keys[-1]
        forged = [old, replace(old, doc_id="b"), replace(new, chunk_key=old.chunk_key)]
        assert [index.answer([hit], alice).state for hit in forged] == ["abstain"] * 3
        assert index.answer([new], alice).state == "extractive"


@pytest.mark.promise("CON-6")
def test_each_write_gets_the_next_commit(index: Index) -> None:
    def commits() -> tuple[int | None, int | None]:
        status = index.status("acme", "d")
        return status.content_commit, status.acl_commit

    index.upsert("acme", "d", 1, "markdown", TEXT, ["alice"])
    assert commits() == (1, 1)
    index.upsert("acme", "d", 1, "markdown", TEXT, ["alice"])
    index.set_acl("acme", "d", ["bob"], 1)
    assert commits() == (1, 2)
    index.upsert("acme", "d", 2, "markdown", OTHER, ["alice"])
    assert commits() == (3, 2)
    index.delete("acme", "d", 3)
    assert commits() == (4, 4)
    index.upsert("acme", "d", 4, "markdown", TEXT, ["alice"], restore=True)
    assert commits() == (5, 5)


@pytest.mark.promise("OBS-2")
def test_a_list_of_documents_holds_one_body_at_a_time(index: Index) -> None:
    body, names = "差旅" * 10_000, [f"d{number:02}" for number in range(40)]
    for name in names:
        index.upsert("acme", name, 1, "text", body, ["alice"])
    tracemalloc.start()
    try:
        listed = index.documents("acme")
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert [item.doc_id for item in listed] == names
    assert peak < len(names) * len(body)  # half of what all bodies take, at two bytes a code point
