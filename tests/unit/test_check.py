"""`check()` names each planted fault, and exactly those; damaged stores end in typed refusals (OBS-2, FLT-7)."""

import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from kbretrieval import Context, Index
from kbretrieval.store.connection import Connection
from tests.unit.doubles import MODES, Table, code_of, docs, quotes, sql

BAD = "# 坏\n\n报销条目甲，限额五百元。"
FINE = "# 好\n\n报销条目乙，限额六百元。"
MINE = "(SELECT doc_key FROM documents WHERE doc_id = 'bad')"
KEY = f"(SELECT chunk_key FROM chunks WHERE doc_key = {MINE} AND number = 0)"
DEAD = "(SELECT doc_key FROM documents WHERE doc_id = 'dead')"


@contextmanager
def opened(path: Path, dense: bool = True) -> Iterator[Index]:
    with Index.open(path, encoder=Table("table-2") if dense else None) as index:
        yield index


@pytest.fixture
def damaged(index_path: Path) -> Path:
    with opened(index_path) as index:
        index.upsert("acme", "bad", 1, "markdown", BAD, ["alice"])
        index.upsert("acme", "fine", 1, "markdown", FINE, ["alice"])
        index.upsert("acme", "dead", 1, "markdown", "# 亡", ["alice"])
        index.delete("acme", "dead", 2)
        index.upsert("acme", "blank", 1, "text", " \n\n ", ["alice"])
        assert index.check() == ()
    return index_path


ALTERED = "= replace({0}, '五', '九') WHERE"
PLANTED: dict[str, tuple[str, set[tuple[str, str | None]]]] = {
    "body": (f"UPDATE documents SET body {ALTERED.format('body')} doc_key = {MINE}", {("document_text", "bad")}),
    "digest": (f"UPDATE documents SET sha256 = '0' WHERE doc_key = {MINE}", {("document_text", "bad")}),
    "chunk text": (f"UPDATE chunks SET text {ALTERED.format('text')} chunk_key = {KEY}", {("chunk_text", "bad")}),
    "chunk digest": (f"UPDATE chunks SET sha256 = '0' WHERE chunk_key = {KEY}", {("chunk_text", "bad")}),
    "start": (
        f"UPDATE chunks SET start_point = 1 WHERE chunk_key = {KEY}",
        {("chunk_cover", "bad"), ("chunk_text", "bad")},
    ),
    "number": (f"UPDATE chunks SET number = 7 WHERE chunk_key = {KEY}", {("chunk_cover", "bad")}),
    "chunk gone": (f"DELETE FROM chunks WHERE doc_key = {MINE}", {("chunk_cover", "bad"), ("orphan", None)}),
    "postings": (f"UPDATE postings SET codes = zeroblob(length(codes)) WHERE chunk_key = {KEY}", {("postings", "bad")}),
    "counts": (f"UPDATE postings SET counts = x'0000' WHERE chunk_key = {KEY}", {("postings", "bad")}),
    "length": (f"UPDATE postings SET length = -1 WHERE chunk_key = {KEY}", {("postings", "bad")}),
    "postings gone": (f"DELETE FROM postings WHERE chunk_key = {KEY}", {("postings", "bad")}),
    "FTS row gone": (f"DELETE FROM chunks_fts WHERE rowid = {KEY}", {("fts_row_missing", "bad")}),
    "FTS row of other terms": (
        f"UPDATE chunks_fts SET terms = '别的' WHERE rowid = {KEY}",
        {("fts_row_terms", "bad")},
    ),
    "FTS row too many": ("INSERT INTO chunks_fts (rowid, terms) VALUES (99, '多余')", {("orphan", None)}),
    "posting list too many": ("INSERT INTO postings VALUES (99, 0, x'', x'')", {("orphan", None)}),
    "vector too many": ("INSERT INTO vectors VALUES (99, '0', 0, x'')", {("orphan", None)}),
    "ACL without document": ("INSERT INTO acl VALUES (99, 0, 'eve')", {("orphan", None)}),
    "vector gone": (f"DELETE FROM vectors WHERE chunk_key = {KEY}", {("vector_missing", "bad")}),
    "vector of another text": (
        f"UPDATE vectors SET text_sha256 = '0' WHERE chunk_key = {KEY}",
        {("vector_text", "bad")},
    ),
    "vector of white space": (
        "INSERT INTO vectors SELECT c.chunk_key, c.sha256, 0, x'0000803F00000000' FROM chunks c"
        " JOIN documents d USING (doc_key) WHERE d.doc_id = 'blank'",
        {("vector_unexpected", "blank")},
    ),
    "tombstone with text": (
        f"UPDATE documents SET body = '亡' WHERE doc_key = {DEAD}",
        {("tombstone_not_empty", "dead")},
    ),
    "tombstone with ACL": (f"INSERT INTO acl VALUES ({DEAD}, 0, 'eve')", {("tombstone_not_empty", "dead")}),
}


@pytest.mark.promise("OBS-2", "FLT-7")
@pytest.mark.parametrize("name", PLANTED)
def test_each_planted_fault_is_named_and_nothing_else(damaged: Path, alice: Context, name: str) -> None:
    """And whatever is quoted meanwhile is what was written."""
    statement, expected = PLANTED[name]
    sql(damaged, statement)
    before = damaged.read_bytes()
    with opened(damaged) as index:
        assert {(fault.code, fault.doc_id) for fault in index.check()} == expected
        for mode in MODES:
            for lexical in ("isolated", "fts5"):

                def ask(mode: str = mode, lexical: str = lexical) -> None:
                    hits = index.search("报销条目", alice, mode=mode, lexical=lexical)  # type: ignore[arg-type]
                    assert set(quotes(index.answer(hits, alice))) <= {BAD, FINE}

                assert code_of(ask) in (None, "index_corrupt")
    assert damaged.read_bytes() == before, "neither check nor search nor answer mends anything"


VECTORS = {
    "empty": (b"", "vector_shape"),
    "short": (struct.pack("<f", 1.0), "vector_shape"),
    "long": (struct.pack("<3f", 1.0, 0.0, 0.0), "vector_shape"),
    "odd": (b"\x00" * 7, "vector_shape"),
    "NaN": (struct.pack("<2f", np.nan, 0.0), "vector_shape"),
    "infinity": (struct.pack("<2f", np.inf, 0.0), "vector_shape"),
    "zero": (struct.pack("<2f", 0.0, 0.0), "vector_norm"),
    "twice as long": (struct.pack("<2f", 2.0, 0.0), "vector_norm"),
}


@pytest.mark.promise("FLT-7", "OBS-2", "VEC-6", "ERR-2")
@pytest.mark.parametrize("name", VECTORS)
def test_a_bad_vector_is_named_refused_and_never_copied(damaged: Path, alice: Context, bob: Context, name: str) -> None:
    """A list without the row would look complete, so its readers are refused; others and other channels go on."""
    blob, code = VECTORS[name]
    sql(damaged, f"UPDATE vectors SET vector = ? WHERE chunk_key = {KEY}", blob)
    with opened(damaged) as index:
        assert [(fault.code, fault.doc_id) for fault in index.check()] == [(code, "bad")]
        assert code_of(index.search, "报销", alice) == "index_corrupt"
        assert docs(index.search("报销", alice, mode="lexical")) == ["bad", "fine"]
        assert docs(index.search("报销", bob, mode="vector")) == []
        index.upsert("acme", "same", 1, "markdown", BAD, ["bob"])
        assert docs(index.search("报销", bob, mode="vector")) == ["same"]
        assert [(fault.code, fault.doc_id) for fault in index.check()] == [(code, "bad")]
        index.upsert("acme", "bad", 2, "markdown", BAD, ["alice"])
        assert index.check() == ()


@pytest.mark.promise("FLT-7", "ERR-2")
@pytest.mark.parametrize("length", [0, -1, -(2**40), 2**62])
def test_a_wrong_length_of_a_posting_list_is_a_typed_refusal(index_path: Path, alice: Context, length: int) -> None:
    """Not a division by zero, nor a score of nan."""
    with opened(index_path, dense=False) as index:
        index.upsert("acme", "bad", 1, "markdown", BAD, ["alice"])
    sql(index_path, "UPDATE postings SET length = ?", length)
    with opened(index_path, dense=False) as index:
        assert code_of(index.search, "报销", alice) == "index_corrupt"


@pytest.mark.promise("FLT-7", "ERR-2", "OBS-2")
@pytest.mark.parametrize("table", ["data", "idx", "content", "docsize", "config"])
def test_a_lost_shadow_table_is_noticed(damaged: Path, alice: Context, table: str) -> None:
    """FTS5's own tables: search, check, write and purge end typed; the isolated channel needs none of them."""
    sql(damaged, f"DROP TABLE chunks_fts_{table}")

    def noticed(path: Path) -> bool:
        with opened(path) as index:
            assert docs(index.search("报销", alice, mode="lexical")) == ["bad", "fine"]
            assert code_of(index.search, "报销", alice, mode="lexical", lexical="fts5") in (None, "index_corrupt")
            code = code_of(index.upsert, "acme", "more", 1, "markdown", "# 甲", ["alice"])
            assert code in (None, "index_corrupt")
            assert code_of(index.purge) in (None, "index_corrupt")
            faults: list[str] = []
            refused = code_of(lambda: faults.extend(fault.code for fault in index.check()))
            assert refused in (None, "index_corrupt")
            return code is not None or refused is not None or faults != []

    assert code_of(noticed, damaged) in (None, "index_corrupt")


@pytest.mark.promise("OBS-2")
def test_damaged_fts_segments_are_named(damaged: Path) -> None:
    sql(damaged, "UPDATE chunks_fts_data SET block = zeroblob(length(block)) WHERE id > 10")
    with opened(damaged) as index:
        codes = {fault.code for fault in index.check()}
        assert "fts_index_damaged" in codes
        assert codes <= {"fts_index_damaged", "database_damaged"}
        index.purge()
        assert index.check() == ()


@pytest.mark.promise("OBS-2", "CIT-5", "CIT-1")
def test_text_that_was_altered_alike_in_body_and_chunk_is_blamed_and_not_its_index_rows(
    index_path: Path, alice: Context
) -> None:
    """C056: the derived rows may be the only true trace of the text, so nothing is rebuilt from the damage."""
    with opened(index_path, dense=False) as index:
        index.upsert("acme", "travel", 1, "markdown", "# 住宿\n\n每晚限额500元。", ["alice"])
        index.upsert("acme", "fine", 1, "markdown", "# 餐费\n\n餐费住宿分开报。", ["alice"])
        hits = index.search("住宿", alice)
    data = index_path.read_bytes()
    assert data.count("限额500元".encode()) >= 1
    index_path.write_bytes(data.replace("限额500元".encode(), "限额900元".encode()))
    before = index_path.read_bytes()
    with opened(index_path, dense=False) as index:
        for kept in (hits, index.search("住宿", alice)):
            answer = index.answer(kept, alice, limit=10)
            assert ([item.doc_id for item in answer.evidence], "900" in answer.answer) == (["fine"], False)
        verdicts = {item.doc_id: item.verdict for item in index.audit(hits, alice)}
        assert verdicts == {"travel": "store corrupted", "fine": "valid"}
        faults = index.check()
        assert {fault.doc_id for fault in faults} == {"travel"}
        assert {fault.code for fault in faults} == {"document_text", "chunk_text"}
    assert index_path.read_bytes() == before


@pytest.mark.promise("OBS-2")
def test_what_another_connection_wrote_is_no_damage(index: Index, index_path: Path) -> None:
    """SQLite 3.44 and newer: its integrity check asks FTS5, which remembers the table as this connection left it."""
    index.upsert("acme", "travel", 1, "text", "报销条目甲", ["alice"])
    assert index.check() == ()
    with Index.open(index_path) as other:
        other.upsert("acme", "travel", 2, "text", "报销条目乙，另有一句", ["alice"])
    assert index.check() == ()


@pytest.mark.promise("OBS-2", "CON-5")
def test_others_write_while_a_store_is_checked(index: Index, index_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No transaction of it goes over several documents: a check of 100,000 chunks takes more than a minute."""
    for number in range(6):
        index.upsert("acme", f"d{number}", 1, "text", f"退款{number}", ["alice"])
    others, told = Index.open(index_path, wait_seconds=0), list[str]()
    original = Connection.read

    @contextmanager
    def watched(self: Connection) -> Iterator[None]:
        with original(self):
            yield
        if self is index._engine.connection:
            here = len(told)
            told.append(others.upsert("acme", f"d{here % 6}", here // 6 + 2, "text", f"换货{here}", ["bob"]).state)
            told.append(others.delete("acme", f"late{here}", 1).state)

    monkeypatch.setattr(Connection, "read", watched)
    assert index.check() == ()
    others.close()
    assert set(told) == {"indexed", "deleted"} and len(told) >= 2 * 6
