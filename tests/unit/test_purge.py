"""FLT-11: after delete and purge no byte of the text is left in any file of the index; and what would leave it."""

from collections.abc import Callable
from pathlib import Path

import pytest

from kbretrieval import Context, Index, maintenance
from kbretrieval.store.connection import Connection
from tests.unit.doubles import Table, code_of, docs, sql

WORDS = ("ZARQUON7741", "zarquon7741", "机密标题QX", "机密标题qx", "代号", "甲密乙", "标题 题q")


def residue(path: Path) -> list[str]:
    """The marker words that stand in any file of the index: database, journal, log, whatever lies beside it."""
    data = b"".join(file.read_bytes() for file in sorted(path.parent.iterdir()))
    return [word for word in WORDS if word.encode("utf-8") in data]


def purged(path: Path) -> list[str]:
    """Delete and purge on a connection that does not overwrite freed bytes, or the test could not fail."""
    with Index.open(path, encoder=Table("table-2"), chunk_size=60, overlap=10) as index:
        index._engine.connection.run("PRAGMA secure_delete=OFF")
        assert index._engine.connection.run("PRAGMA secure_delete") == [(0,)]
        index.upsert("acme", "stay", 1, "markdown", "# 公开\n\n公开内容保留。", ["alice"])
        secret = "# 机密标题QX\n\n" + "\n\n".join(f"代号 ZARQUON7741 甲密乙 不外传，第{n}条。" for n in range(40))
        index.upsert("acme", "secret", 1, "markdown", secret, ["alice"])
        index.upsert("acme", "secret", 2, "markdown", secret + "\n\n补记。", ["alice"])
        index.search("代号", Context("acme", "alice"))
        index.delete("acme", "secret", 3)
        before = residue(path)
        assert docs(index.search("zarquon7741", Context("acme", "alice"), mode="lexical")) == []
        index.purge()
        assert index.check() == ()
        assert index._engine.resident._snapshots == {}
    assert before, "without freed text in the file the scan proves nothing"
    return residue(path)


@pytest.mark.promise("FLT-11", "DEL-5")
def test_no_byte_of_a_purged_document_is_left(index_path: Path, alice: Context) -> None:
    """C038: found before, gone after; the tombstone stays and goes on refusing."""
    assert purged(index_path) == []
    with Index.open(index_path) as index:
        assert docs(index.search("公开内容", alice, mode="lexical", lexical="fts5")) == ["stay"]
        assert code_of(index.upsert, "acme", "secret", 3, "markdown", "# 甲", ["alice"]) == (
            "stale_or_conflicting_revision"
        )
        assert (index.status("acme", "secret").state, index.status("acme", "secret").title) == ("deleted", "")


def _no_rebuild(connection: Connection, rows: object) -> int:
    return 0


def _no_vacuum(connection: Connection) -> None:
    return None


@pytest.mark.promise("FLT-11", "DEL-5")
@pytest.mark.parametrize(
    ("name", "instead"),
    [("rewrite_fts", _no_rebuild), ("vacuum", _no_vacuum), ("blank_tombstones", lambda connection: 0)],
)
def test_a_purge_that_leaves_a_step_out_is_caught(
    index_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, instead: Callable[..., object]
) -> None:
    monkeypatch.setattr(maintenance, name, instead)
    assert purged(index_path) != []


@pytest.mark.promise("OBS-2", "DEL-5")
def test_purge_mends_the_fts_rows_and_nothing_else(index_path: Path, alice: Context) -> None:
    """C055: a missing FTS row is named, is not searched around, and comes back from the chunks."""
    with Index.open(index_path) as index:
        for i in range(1, 5):
            index.upsert("acme", f"s{i}", 1, "markdown", f"# 值日\n\n值日表第{i}组", ["alice"])
    sql(index_path, "DELETE FROM chunks_fts WHERE rowid = (SELECT max(rowid) FROM chunks_fts)")
    assert sql(index_path, "PRAGMA integrity_check") == [("ok",)]
    with Index.open(index_path) as index:
        (fault,) = index.check()
        assert (fault.code, fault.doc_id) == ("fts_row_missing", "s4")
        assert docs(index.search("值日表", alice, mode="lexical", lexical="fts5")) == ["s1", "s2", "s3"]
        assert docs(index.search("值日表", alice, mode="vector")) == ["s1", "s2", "s3", "s4"]
        rows = sql(index_path, "SELECT chunk_key, doc_key, text FROM chunks")
        status = index.documents("acme")
        result = index.purge()
        assert (result.fts_rows, result.titles_blanked) == (4, 0)
        assert index.check() == ()
        assert docs(index.search("值日表", alice, mode="lexical", lexical="fts5")) == ["s1", "s2", "s3", "s4"]
        assert (sql(index_path, "SELECT chunk_key, doc_key, text FROM chunks"), index.documents("acme")) == (
            rows,
            status,
        )


@pytest.mark.promise("VEC-8", "DEL-5")
def test_a_purge_disturbs_no_other_connection(index_path: Path, alice: Context) -> None:
    """The FTS5 table is made anew under the eyes of another connection, which goes on finding the same."""
    with Index.open(index_path) as index, Index.open(index_path) as other:
        for n in range(3):
            index.upsert("acme", f"d{n}", 1, "markdown", f"# 甲\n\n内容{n}", ["alice"])
        hits = other.search("内容", alice, lexical="fts5")
        index.delete("acme", "d1", 2)
        index.purge()
        assert docs(other.search("内容", alice, lexical="fts5")) == ["d0", "d2"]
        assert [item.doc_id for item in other.answer(hits, alice, limit=9).evidence] == ["d0", "d2"]
        other.upsert("acme", "d3", 1, "markdown", "# 甲\n\n内容3", ["alice"])
        assert docs(index.search("内容", alice, lexical="fts5", mode="lexical")) == ["d0", "d2", "d3"]
        assert index.check() == other.check() == ()
