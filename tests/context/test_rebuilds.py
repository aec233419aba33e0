"""Rebuilds: index and ledger change together or not at all, one rebuild after another (CTX-10, CTX-13)."""

import shutil
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from kbretrieval import Index, migration
from kbretrieval.context import Generation, Selection, TaskContexts
from kbretrieval.context import generations as judging
from kbretrieval.encoders.port import Encoding
from kbretrieval.migration import MigrationTick, migrate
from kbretrieval.results import Exported
from kbretrieval.store import commits, fingerprints, staging
from kbretrieval.store import generations as ledger
from kbretrieval.store.connection import Connection
from kbretrieval.store.schema import SERVING, STAGED, STAGED_DOCUMENTS
from tests.context.place import ALICE, BODIES, TENANT, Place
from tests.unit.doubles import RandomVectors, code_of, sql

STALE = "context_generation_stale"


class Stopped(Exception):
    """Something ends here."""


def filled(path: Path, encoder: Any = None, size: int = 30) -> Path:
    """An index of three documents, for alice to search."""
    with Index.open(path, encoder, size, 4) as index:
        index._engine.connection.run("PRAGMA synchronous=OFF")
        for doc_id in ("refund", "leave", "travel"):
            index.upsert(TENANT, doc_id, 1, "markdown", BODIES[doc_id], ["alice"])
    return path


def state(path: Path) -> tuple[list[str], list[str]]:
    """What serves, and what the ledger says: every row of both."""
    tables = ("contract", "counters", "commits", *(name for name in SERVING.names() if name != SERVING.fts))
    statements = [f"SELECT * FROM {name} ORDER BY 1" for name in tables]
    statements += [f"SELECT rowid, terms FROM {SERVING.fts} ORDER BY 1", "SELECT * FROM generations ORDER BY 1"]
    with closing(sqlite3.connect(path)) as raw:
        *index, lines = ([repr(row) for row in raw.execute(statement)] for statement in statements)
    return [row for rows in index for row in rows], lines


def stopped_in_switch(path: Path, number: int) -> bool:
    """Let a migration end before the n-th statement of its last transaction; False where it has fewer than that."""
    seen, inside = [0], [False]
    run, switch = Connection.run, migration.switch

    def counted(connection: Connection, statement: str, *values: Any) -> Any:
        seen[0] += inside[0]
        if inside[0] and seen[0] == number:
            raise Stopped
        return run(connection, statement.replace("synchronous=FULL", "synchronous=OFF"), *values)

    def watched(*arguments: Any) -> int:
        inside[0] = True
        try:
            return switch(*arguments)
        finally:
            inside[0] = False

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Connection, "run", counted)
        patch.setattr(migration, "switch", watched)
        try:
            migrate(path, chunk_size=12, overlap=4)
        except Stopped:
            return True
    return False


def torn(path: Path) -> int:
    """End a migration before each statement of its switch; count how often one half is new and the other is not."""
    halves, number, before = 0, 1, state(path)
    while stopped_in_switch(path, number):
        now = state(path)
        halves += (now[0] != before[0]) != (now[1] != before[1])
        if now != before:
            return halves
        number += 1
    assert number > 25
    return halves


@pytest.mark.slow
@pytest.mark.promise("CTX-13")
def test_index_and_ledger_change_in_one_transaction(tmp_path: Path) -> None:
    path = filled(tmp_path / "kb.sqlite")
    with Index.open(path) as index:
        TaskContexts(index).record_generation()
    before = state(path)
    assert torn(path) == 0
    after = state(path)
    assert after[0] != before[0] and len(after[1]) == len(before[1]) + 1 and after[1][: len(before[1])] == before[1]
    with Index.open(path) as index:
        made = TaskContexts(index).verify_generation()
        assert (made.number, index.check()) == (2, ())


@pytest.mark.slow
@pytest.mark.promise("CTX-13")
@pytest.mark.parametrize("early", [True, False], ids=["ledger first", "index first"])
def test_a_build_that_writes_the_ledger_by_itself_is_caught(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, early: bool
) -> None:
    path = filled(tmp_path / "kb.sqlite")
    original = ledger.enter_generation

    def apart(connection: Connection, *arguments: Any) -> None:
        if not early:
            connection.run("COMMIT")
            connection.run("BEGIN IMMEDIATE")
        original(connection, *arguments)

    def first(connection: Connection, *arguments: Any) -> Any:
        found = ledger.serving_line(connection)
        original(connection, found, arguments[-1], 0, fingerprints.Fingerprint("0" * 64, 3, 3))
        connection.run("COMMIT")
        connection.run("BEGIN IMMEDIATE")
        return staged(connection, *arguments)

    staged = staging.staged_fingerprint
    monkeypatch.setattr(staging, "enter_generation", apart)
    if early:
        monkeypatch.setattr(staging, "staged_fingerprint", first)
    assert torn(path) == 1


class Watched(RandomVectors):
    """A dense encoder that notes when it works, and calls `before` once."""

    def __init__(self, name: str, notes: list[str], dimension: int = 4) -> None:
        super().__init__(dimension)
        self.identifier = self.name = name
        self.notes = notes
        self.before: Callable[[], object] | None = None

    def encode(self, texts: Sequence[str], *, query: bool) -> Encoding:
        """Encode, and note it."""
        call, self.before = self.before, None
        if call is not None:
            call()
        self.notes.append(self.name)
        return super().encode(texts, query=query)


def both(path: Path, notes: list[str]) -> None:
    """Two rebuilds of one index at the same time; the second begins in the middle of the first."""
    one, two = Watched("one", notes), Watched("two", notes)
    other = Thread(target=migrate, args=(path, two, 20, 4))

    def begin() -> None:
        other.start()
        other.join(0.15)  # time enough for a build that does not wait
        assert other.is_alive()

    one.before = begin
    try:
        migrate(path, one, 12, 4)
    finally:
        other.join()


@pytest.mark.promise("CTX-13")
def test_two_rebuilds_queue_and_neither_is_mixed_with_the_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(migration, "CHUNKS_IN_ONE_TRANSACTION", 1)
    path, notes = filled(tmp_path / "kb.sqlite"), list[str]()
    both(path, notes)
    assert notes == sorted(notes) and set(notes) == {"one", "two"}
    assert notes.count("one") == notes.count("two") == 3
    alone = {}
    for name, size in (("one", 12), ("two", 20)):
        with Index.open(filled(tmp_path / f"{name}.sqlite", Watched(name, []), size)) as index:
            alone[name] = TaskContexts(index).record_generation().fingerprint
    with Index.open(path) as index:
        tasks = TaskContexts(index)
        assert [item.fingerprint for item in tasks.generations()] == [None, alone["one"], alone["two"]]
        since = [item.since for item in tasks.generations()]
        assert since == [0, 4, 5]
        assert tasks.verify_generation().number == 3
        assert index.check() == ()


@pytest.mark.promise("CTX-13")
def test_a_rebuild_that_may_not_wait_is_refused_and_changes_nothing(tmp_path: Path) -> None:
    path, codes = filled(tmp_path / "kb.sqlite"), list[str | None]()

    def progress(_tick: MigrationTick) -> None:
        before = state(path)
        codes.append(code_of(migrate, path, chunk_size=20, wait_seconds=0))
        assert state(path) == before

    assert migrate(path, chunk_size=12, progress=progress).after.chunk_size == 12
    assert codes == ["busy"]


@pytest.mark.promise("CTX-13", "CTX-10")
def test_a_file_from_before_the_ledger_works_and_gets_one(tmp_path: Path) -> None:
    """What an older version switched is not in it, and results from before that are refused."""
    path = filled(tmp_path / "kb.sqlite")
    sql(path, "DROP TABLE generations")
    with Index.open(path) as index:
        tasks = TaskContexts(index)
        for doc_id in ("refund", "leave"):
            tasks.release(TENANT, doc_id, ["answering"])
        tasks.put_collection(TENANT, "policies", ["refund", "leave"])
        scope = tasks.authorize_scope(ALICE, "T", "answering", Selection(["policies"]))
        found = tasks.search(scope, "退款期限")
        assert tasks.check_generation(found) == tasks.generations()[0]
        assert (tasks.generations()[0].number, tasks.generations()[0].since) == (1, 0)
        assert code_of(tasks.verify_generation) == STALE
        migrate(path, chunk_size=12, overlap=4)
        assert [(item.number, item.fingerprint is None) for item in tasks.generations()] == [(1, True), (2, False)]
        assert code_of(tasks.check_generation, found) == STALE
        second = tasks.generations()[1]
        # The same switch, made by a version that keeps no ledger.
        shutil.copy(path, tmp_path / "old.sqlite")
    sql(tmp_path / "old.sqlite", "DELETE FROM generations WHERE number = 2")
    with Index.open(tmp_path / "old.sqlite") as index:
        tasks = TaskContexts(index)
        assert [(item.number, item.state, item.since) for item in tasks.generations()] == [
            (1, "past", 0),
            (2, "serving", second.since),
        ]
        assert code_of(tasks.check_generation, found) == STALE
        assert code_of(tasks.verify_generation) == STALE
        assert tasks.record_generation() == second == tasks.verify_generation(second)
        assert sql(tmp_path / "old.sqlite", "SELECT number FROM generations ORDER BY entry") == [(1,), (2,)]


@pytest.mark.promise("CTX-13")
def test_what_an_older_version_staged_is_staged_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(migration, "CHUNKS_IN_ONE_TRANSACTION", 1)
    path = filled(tmp_path / "kb.sqlite")

    def stop(_tick: MigrationTick) -> None:
        raise Stopped

    for _ in range(2):
        with pytest.raises(Stopped):
            migrate(path, chunk_size=12, overlap=4, progress=stop)
    assert sql(path, f"SELECT count(*) FROM {STAGED_DOCUMENTS}") == [(2,)], "this version's go on"
    sql(path, f"ALTER TABLE {STAGED_DOCUMENTS} DROP COLUMN fingerprint")
    result = migrate(path, chunk_size=12, overlap=4)
    assert (result.state, result.resumed) == ("migrated", 0)
    with Index.open(path) as index:
        assert TaskContexts(index).verify_generation().documents == 3


@pytest.mark.promise("CTX-11", "CTX-13")
def test_what_is_damaged_between_staging_and_switch_is_not_taken_for_content(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, original = filled(tmp_path / "kb.sqlite", RandomVectors(4)), migration.switch

    def damaging(connection: Connection, *arguments: Any) -> int:
        connection.run(f"UPDATE {STAGED.vectors} SET vector = zeroblob(16) WHERE chunk_key % 5 = 0")
        return original(connection, *arguments)

    monkeypatch.setattr(migration, "switch", damaging)
    migrate(path, RandomVectors(4), 12, 4)
    with Index.open(path) as index:
        assert code_of(TaskContexts(index).verify_generation) == "context_generation_altered"


@pytest.mark.promise("CTX-10")
def test_a_result_whose_stamp_is_no_longer_kept_is_stale(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (commits, ledger, judging):
        monkeypatch.setattr(module, "KEPT_COMMITS", 5)
    found = place.tasks.search(place.scope(), "退款期限")
    for number in range(4):
        place.index.set_acl(TENANT, "travel", ["alice"], number + 1)
    assert place.tasks.check_generation(found).number == 1
    place.index.set_acl(TENANT, "travel", ["alice"], 5)
    assert code_of(place.tasks.check_generation, found) == STALE


@pytest.mark.promise("CTX-9")
def test_a_search_reads_neither_ledger_nor_fingerprint(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """What it keeps to be told apart by, it has at hand."""
    place.tasks.record_generation()
    scope, statements = place.scope(), list[str]()
    run = Connection.run
    monkeypatch.setattr(Connection, "run", lambda self, *given: statements.append(given[0]) or run(self, *given))
    found = place.tasks.search(scope, "退款期限")
    assert statements and not any("generations" in statement for statement in statements)
    assert len(found.stamp) == 2 * commits.STAMP_BYTES
    assert (
        bytes.fromhex(found.stamp) == sql(place.path, "SELECT stamp FROM commits WHERE number = ?", found.commit)[0][0]
    )


@pytest.mark.promise("CTX-10")
@pytest.mark.parametrize("voucher", [None, 1, "generation-1", {"number": 1}])
def test_only_what_an_index_gave_is_a_voucher(place: Place, voucher: Any) -> None:
    assert code_of(place.tasks.check_generation, voucher) == "context_input_invalid"


def test_a_generation_is_exported_with_its_schema(place: Place) -> None:
    made: Exported = place.tasks.record_generation()
    assert made.to_dict()["schema"] == Generation.SCHEMA
    assert made.to_dict()["documents"] == len(BODIES)
