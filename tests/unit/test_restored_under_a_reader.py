"""Another file's history under an open index: what was kept in memory must not outlive it (VEC-8, CON-7, ACL-4)."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

import kbretrieval.snapshot.snapshot as snapshots
from kbretrieval import Context, Index
from kbretrieval.errors import IndexCorrupt
from kbretrieval.snapshot.eligible import view_of
from kbretrieval.snapshot.snapshot import Snapshot
from kbretrieval.store import commits
from kbretrieval.store.connection import Connection
from kbretrieval.store.policies import Changed, changed_documents
from tests.unit.doubles import RandomVectors, docs, sql

ALICE = Context("acme", "alice")


def restore(copy: Path, path: Path) -> None:
    """SQLite's own restore: it writes into the open file."""
    with closing(sqlite3.connect(copy)) as source, closing(sqlite3.connect(path)) as target:
        source.backup(target)


@pytest.mark.promise("VEC-8", "ACL-4", "CON-7")
@pytest.mark.parametrize("later", [0, 1, 2])
def test_a_backup_that_is_restored_under_a_reader_is_what_it_reads(tmp_path: Path, later: int) -> None:
    """SQLite's own restore writes into the open file; commit numbers and chunk keys are then given a second time."""
    path, copy = tmp_path / "kb.sqlite", tmp_path / "copy.sqlite"
    with Index.open(path) as writer, Index.open(path) as reader:
        writer.upsert("acme", "base", 1, "text", "退款 base", ["alice"])
        writer.backup(copy)
        writer.upsert("acme", "mine", 1, "text", "退款 mine", ["alice"])
        assert docs(reader.search("退款", ALICE)) == ["base", "mine"]
        restore(copy, path)
        for number in range(later):
            writer.upsert("acme", f"secret{number}", 1, "text", "绝密", ["bob"])
        assert docs(reader.search("退款", ALICE)) == ["base"]


@pytest.mark.promise("VEC-8", "CON-7")
def test_no_vector_of_the_old_file_scores_a_new_chunk(tmp_path: Path) -> None:
    """Chunk keys are given a second time; the float32 rows that were kept belong to the first."""
    path, copy, encoder = tmp_path / "kb.sqlite", tmp_path / "copy.sqlite", RandomVectors(3)
    with Index.open(path, encoder, 8, 0) as writer, Index.open(path, encoder) as reader:
        writer.upsert("acme", "base", 1, "text", "base", ["alice"])
        writer.backup(copy)
        writer.upsert("acme", "one", 1, "text", "one", ["alice"])
        reader.search("query", ALICE, 10, "vector")
        restore(copy, path)
        writer.upsert("acme", "two", 1, "text", "two", ["alice"])
        with Index.open(path, encoder) as fresh:
            found, wanted = (index.search("query", ALICE, 10, "vector").to_dict() for index in (reader, fresh))
        assert found == wanted


@pytest.mark.promise("CON-6", "VEC-8")
def test_a_reader_that_fell_far_behind_begins_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, sinces = tmp_path / "kb.sqlite", list[int]()

    def told(connection: Connection, tenant: str, since: int) -> list[Changed]:
        sinces.append(since)
        return changed_documents(connection, tenant, since)

    monkeypatch.setattr(commits, "KEPT_COMMITS", 3)
    monkeypatch.setattr(snapshots, "changed_documents", told)
    with Index.open(path) as writer, Index.open(path) as reader:
        for number in range(7):
            writer.upsert("acme", f"d{number}", 1, "text", "退款", ["alice"])
            if number in (0, 2, 6):  # none, two and four commits behind, where three are kept
                assert docs(reader.search("退款", ALICE, 50)) == [f"d{n}" for n in range(number + 1)]
        rows = sql(path, "SELECT number FROM commits ORDER BY number")
    assert sinces == [0, 1, 0]
    assert rows == [(5,), (6,), (7,)]


@pytest.mark.promise("CON-6")
def test_equal_changes_make_equal_stamps_and_any_other_change_another(tmp_path: Path) -> None:
    def stamped(name: str, revision: int, text: str, acl: list[str]) -> object:
        with Index.open(tmp_path / name) as index:
            index.upsert("acme", "d", revision, "text", text, acl)
            return index._engine.connection.run("SELECT * FROM commits")

    base = stamped("a", 1, "退款", ["alice"])
    assert base == stamped("b", 1, "退款", ["alice"])
    others = [stamped("c", 2, "退款", ["alice"]), stamped("d", 1, "退货", ["alice"]), stamped("e", 1, "退款", ["bob"])]
    assert base not in others


@pytest.mark.promise("ACL-4", "ERR-2")
def test_the_transaction_that_reads_the_text_asks_for_the_right_to_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Even where a channel ranked what it must not (here: a broken one), no text of it leaves the store."""
    monkeypatch.setattr(Snapshot, "eligible", lambda self, context: view_of(self.alive, self.segments))
    with Index.open(tmp_path / "kb.sqlite") as index:
        index.upsert("acme", "secret", 1, "text", "绝密", ["bob"])
        with pytest.raises(IndexCorrupt, match="1 ranked chunks are expected in the store, 0 are there"):
            index.search("绝密", ALICE)
