"""The tests that the book names in chapters 7 and 13, under exactly those names.

Each one runs on the book's corpus, with the book's window and settings.
"""

import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from kbretrieval import BOOK, Context, Index
from kbretrieval.analysis import query_terms
from kbretrieval.evaluation.corpus import BOOK_CONTEXT, BOOK_WINDOW, Corpus, load_corpus
from kbretrieval.store.fts import match_expression
from kbretrieval.store.schema import FTS_TABLE
from tests.unit.doubles import docs, quotes

BOB = Context("acme", "bob")
CHAPTER_13 = "notebooks/13_lifecycle.ipynb"


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    """The book's corpus."""
    return load_corpus()


@pytest.fixture
def filled(index_path: Path, corpus: Corpus) -> Iterator[Index]:
    """An index with the book's window and corpus."""
    with Index.open(index_path, None, *BOOK_WINDOW) as opened:
        corpus.fill(opened)
        yield opened


@pytest.mark.promise("LEX-3")
def test_actual_fts5_table_returns_ranked_rows(filled: Index, index_path: Path) -> None:
    query = "差旅住宿报销"
    with closing(sqlite3.connect(index_path)) as connection:
        made = connection.execute("SELECT sql FROM sqlite_master WHERE name = ?", (FTS_TABLE,)).fetchone()[0]
        # With a query that no hidden document matches, the raw table gives the very ranking of the channel.
        raw = connection.execute(
            f"SELECT rowid, bm25({FTS_TABLE}) FROM {FTS_TABLE} WHERE {FTS_TABLE} MATCH ? AND rowid IN"
            " (SELECT chunk_key FROM chunks JOIN documents USING (doc_key) WHERE tenant = 'acme')"
            f" ORDER BY bm25({FTS_TABLE}), rowid",
            (match_expression(query_terms(query)[0]),),
        ).fetchall()
    hits = filled.search(query, BOOK_CONTEXT, 10, "lexical", replace(BOOK, rerank="none"))
    placed = [hit.channel("lexical") for hit in hits]
    assert made.startswith("CREATE VIRTUAL TABLE") and "fts5" in made
    assert [(hit.chunk_key, place.score) for hit, place in zip(hits, placed, strict=True) if place] == raw
    assert [place.rank for place in placed if place] == [1, 2] and raw[0][1] < raw[1][1] < 0
    assert docs(hits) == ["travel", "travel"]


@pytest.mark.promise("UPD-4", "CIT-1")
def test_incremental_update_removes_old_fact_and_invalidates_citation(filled: Index, corpus: Corpus) -> None:
    source = corpus.document("acme", "refund")
    old = [hit for hit in filled.search("退款政策", BOOK_CONTEXT, 10, "hybrid", BOOK) if hit.doc_id == "refund"]
    assert "30天" in quotes(filled.answer(old, BOOK_CONTEXT))[0]
    assert "refund" in docs(filled.search("30天", BOOK_CONTEXT, 10, "hybrid", BOOK))

    filled.upsert("acme", "refund", 2, source.format, source.source.replace("30天", "14天"), list(source.acl))

    for mode in ("lexical", "vector", "hybrid"):
        assert "refund" not in docs(filled.search("30", BOOK_CONTEXT, 10, mode, BOOK))
    assert filled.answer(old, BOOK_CONTEXT).state == "abstain"
    assert [judged.verdict for judged in filled.audit(old, BOOK_CONTEXT)] == ["revision changed"] * len(old)
    fresh = filled.answer(filled.search("退款政策", BOOK_CONTEXT, 10, "hybrid", BOOK), BOOK_CONTEXT)
    assert "14天" in fresh.answer and "30天" not in fresh.answer


@pytest.mark.promise("UPD-3", "ACL-4")
def test_new_content_event_cannot_regrant_old_acl(filled: Index, corpus: Corpus) -> None:
    source = corpus.document("acme", "remote")
    assert "remote" in docs(filled.search("远程办公", BOOK_CONTEXT, 10, "hybrid", BOOK))
    filled.set_acl("acme", "remote", ["bob"], 1)

    made = filled.upsert("acme", "remote", 2, source.format, source.source, ["alice", "bob"])

    assert (made.state, made.acl_revision) == ("indexed", 2)
    assert filled.status("acme", "remote").acl == ("bob",)
    for mode in ("lexical", "vector", "hybrid"):
        assert "remote" not in docs(filled.search("远程办公", BOOK_CONTEXT, 10, mode, BOOK))
    assert "remote" in docs(filled.search("远程办公", BOB, 10, "hybrid", BOOK))


@pytest.mark.promise("RRF-1", "RRF-2")
def test_hybrid_exposes_channels_and_rrf_arithmetic(filled: Index) -> None:
    seen = set()
    for query in ("住宿报销", "退款政策", "设备保修服务时间", "在家上班需要谁同意"):
        for hit in filled.search(query, BOOK_CONTEXT, 10, "hybrid", BOOK):
            exported = hit.to_dict()
            by_hand = 0.0
            for channel in ("lexical", "vector"):
                if channel in exported["channels"]:
                    by_hand += 1.0 / (60 + exported["channels"][channel]["rank"])
            assert exported["fused"] == by_hand
            seen.add(tuple(exported["channels"]))
    first = filled.search("住宿报销", BOOK_CONTEXT, 10, "hybrid", BOOK)[0]
    assert ("lexical", "vector") in seen
    assert first.fused == 2 / 61


def test_chapter_13_names_each_of_these_tests(root: Path) -> None:
    text = (root / CHAPTER_13).read_text(encoding="utf-8")
    told = set(re.findall(r"\| `(test_\w+)` \|", text))
    there = [name for name in globals() if name.startswith("test_") and not name.startswith("test_chapter_13")]
    assert len(told) == len(there) == 4
    assert [name for name in there if not any(name.startswith(beginning) for beginning in told)] == []
