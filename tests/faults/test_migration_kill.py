"""A migration ended by SIGKILL at any statement, and run again; and a reader that never stops (MIG-2, MIG-4)."""

import os
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kbretrieval import Index
from tests.faults.migrating import ALICE, DENSE, NEW, OLD, WORDS, begun, migrated
from tests.faults.telling import Told
from tests.faults.workers import Worker
from tests.unit.doubles import docs, logical_rows, sql
from tests.unit.test_migration import left_over

pytestmark = pytest.mark.skipif(os.name != "posix", reason="SIGKILL and fork are POSIX")


@pytest.fixture(scope="module")
def old(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("migration") / "old.sqlite"
    begun(path)
    return path


def killed(worker: Worker, old: Path, folder: Path, number: int) -> tuple[Path, int]:
    """A copy of the index after a migration that was killed at its n-th statement, and the signal."""
    for item in folder.iterdir():
        item.unlink()
    path = Path(shutil.copy(old, folder / "kb.sqlite"))
    return path, int(worker.ask(path=str(path), number=number, after=number % 2 == 0))


def logical(path: Path) -> list[str]:
    """Every row, without the keys of chunks: a second run gives higher ones."""
    tables = ("documents", "acl", "contract", "counters", "commits", "generations")
    made = [row for row in logical_rows(path) if row.split(" ", 1)[0] in tables]
    columns = "c.doc_key, c.number, c.start_point, c.end_point, c.text, c.heading, c.heading_path, c.sha256"
    derived = (
        f"SELECT {columns}, p.length, p.codes, p.counts, v.text_sha256, v.truncated, v.vector, k.codes, k.residual,"
        " k.norm, f.terms FROM chunks c LEFT JOIN postings p USING (chunk_key) LEFT JOIN vectors v USING (chunk_key)"
        " LEFT JOIN vector_codes k USING (chunk_key) LEFT JOIN chunks_fts f ON f.rowid = c.chunk_key ORDER BY 1, 2"
    )
    return made + [repr(row) for row in sql(path, derived)]


@pytest.mark.slow
@pytest.mark.promise("MIG-4", "FLT-1", "CTX-13")
def test_killed_anywhere_one_generation_serves_and_the_next_run_ends(
    old: Path, tmp_path: Path, full: bool, record_property: Told
) -> None:
    """The whole old one or the whole new one; then the next run goes on, and nothing dead is left."""
    whole = Path(shutil.copy(old, tmp_path / "whole.sqlite"))
    migrated(whole)
    states, folder, number = {tuple(logical(old)): "old", tuple(logical(whole)): "new"}, tmp_path / "place", 1
    folder.mkdir()
    seen: list[str] = []
    with Worker("tests.faults.migrating") as worker:
        while (end := killed(worker, old, folder, number))[1] == signal.SIGKILL:
            path = end[0]
            # Whatever its last transaction was is rolled back by the first who opens the file.
            with Index.open(path, DENSE) as index:
                seen.append(states[tuple(logical(path))])
                assert (index.contract.chunk_size, index.contract.overlap) == (OLD if seen[-1] == "old" else NEW)
                assert index.check() == ()
                assert set(docs(index.search("每晚限额", ALICE, 100))) == set(WORDS)
            result = migrated(path)
            assert result.state == ("migrated" if seen[-1] == "old" else "unchanged")
            assert left_over(path) == []
            assert states[tuple(logical(path))] == "new"
            number += 1 if full else 17
    record_property("kills", len(seen))
    assert sorted(set(seen)) == ["new", "old"] or not full
    assert number > 80


def statements(worker: Worker, old: Path, folder: Path) -> int:
    """How many statements a whole migration takes."""
    return int(worker.ask(path=str(shutil.copy(old, folder / "counted.sqlite"))))


@pytest.mark.promise("MIG-4")
def test_killed_right_before_and_after_the_commit_that_switches(old: Path, tmp_path: Path) -> None:
    """The last statements of a run: the old generation up to a point, the new one from there on."""
    folder, ends = tmp_path / "place", list[str]()
    folder.mkdir()
    with Worker("tests.faults.migrating") as worker:
        last = statements(worker, old, tmp_path)
        for number in range(last - 92, last + 1, 4):
            path, end = killed(worker, old, folder, number)
            assert end == signal.SIGKILL
            with Index.open(path, DENSE) as index:
                ends.append("new" if index.contract.chunk_size == NEW[0] else "old")
                assert index.check() == ()
    assert ends == sorted(ends, reverse=True)
    assert set(ends) == {"old", "new"}


@pytest.mark.promise("MIG-4", "FLT-1")
def test_a_build_that_switches_in_two_transactions_is_caught(old: Path, tmp_path: Path) -> None:
    folder, broken = tmp_path / "place", 0
    folder.mkdir()
    with Worker("tests.faults.migrating", "broken") as worker:
        last = statements(worker, old, tmp_path)
        for number in range(last - 100, last - 55, 3):
            path, _ = killed(worker, old, folder, number)
            broken += not {"chunks", "postings"} <= {name for (name,) in sql(path, "SELECT name FROM sqlite_schema")}
    assert broken > 0


@pytest.fixture
def reader(tmp_path: Path) -> Iterator[tuple[Worker, Path]]:
    path = tmp_path / "kb.sqlite"
    begun(path, lines=40)
    with Worker("tests.faults.migrating") as worker:
        worker.tell(path=str(path), until=NEW[0])
        assert worker.hear() == "seen"
        yield worker, path


@pytest.mark.promise("MIG-2")
def test_a_reader_that_never_stops_sees_one_generation_or_the_other(reader: tuple[Worker, Path]) -> None:
    worker, path = reader
    spans = "SELECT doc_id, start_point, end_point FROM chunks JOIN documents USING (doc_key)"
    before = {tuple(row) for row in sql(path, spans)}
    migrated(path)
    after = {tuple(row) for row in sql(path, spans)}
    said: Any = worker.hear()
    while said == "seen":
        said = worker.hear()
    found = [({tuple(span) for span in spans}, quoted) for spans, quoted in said]
    assert found[0][0] <= before and found[-1][0] <= after
    assert all(hits and (hits <= before or hits <= after) for hits, _ in found)
    assert found[-1][1] > 0
    assert len(found) == 2, "nothing but the switch changes what is found"
