"""After a migration an index is what it would be, had it had that contract from the first event on (MIG-1, MIG-3)."""

from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kbretrieval import Context, Index, KBError, TermEncoder
from kbretrieval.migration import migrate
from tests.unit.doubles import RandomVectors, sql

ALICE = Context("acme", "alice")
CELLS = ("住宿每晚限额五百元。", "餐费据实。\n\n", "   \n\n", "# 交通\n\n", "e\u0301👩‍👩‍👧 ok ", "abc_1 退款政策", "")
CONTRACTS: tuple[tuple[Any, int, int], ...] = (
    (TermEncoder(), 20, 4),
    (RandomVectors(4), 20, 4),
    (RandomVectors(4), 9, 0),
    (TermEncoder(), 7, 6),
)
Event = tuple[str, str, str]

events = st.lists(
    st.tuples(
        st.sampled_from(["content", "content", "content", "restore", "acl", "delete"]),
        st.sampled_from(["a", "b", "c"]),
        st.lists(st.sampled_from(CELLS), max_size=6).map("".join),
    ),
    max_size=8,
)


def tell(index: Index, number: int, event: Event) -> None:
    """Apply one event; what is refused is refused in either history."""
    kind, doc_id, text = event
    try:
        if kind == "acl":
            index.set_acl("acme", doc_id, ["alice"][: number % 2], index.status("acme", doc_id).acl_revision or 1)
        elif kind == "delete":
            index.delete("acme", doc_id, number)
        else:
            index.upsert("acme", doc_id, number, "markdown", text, ["alice"], restore=kind == "restore")
    except KBError:
        return


def content(path: Path) -> dict[str, list[tuple[Any, ...]]]:
    """Everything that is stored, but keys of chunks and numbers of commits."""
    return {
        "documents": sql(
            path,
            "SELECT doc_key, tenant, doc_id, revision, acl_revision, live, format, title, body, headings, sha256,"
            " source_sha256, provenance FROM documents ORDER BY 1",
        ),
        "acl": sql(path, "SELECT * FROM acl ORDER BY 1, 2"),
        "contract": sql(path, "SELECT * FROM contract ORDER BY 1"),
        "derived": sql(
            path,
            "SELECT c.doc_key, c.number, c.start_point, c.end_point, c.text, c.heading, c.heading_path, c.sha256,"
            " p.length, p.codes, p.counts, v.text_sha256, v.truncated, v.vector, k.codes, k.residual, k.norm, f.terms"
            " FROM chunks c LEFT JOIN postings p USING (chunk_key) LEFT JOIN vectors v USING (chunk_key)"
            " LEFT JOIN vector_codes k USING (chunk_key) LEFT JOIN chunks_fts f ON f.rowid = c.chunk_key ORDER BY 1, 2",
        ),
        "rows": [
            sql(path, f"SELECT count(*) FROM {table}")[0]
            for table in ("chunks", "postings", "vectors", "vector_codes", "chunks_fts")
        ],
    }


def found(index: Index, query: str) -> list[list[Any]]:
    """Hits of every mode, with their raw scores, in an order that no key decides."""
    made = []
    for mode in ("lexical", "vector"):
        hits = index.search(query, ALICE, 100, mode)  # type: ignore[arg-type]
        made.append(sorted((hit.doc_id, hit.start, hit.end, *(item.score for item in hit.channels)) for hit in hits))
    return made


@pytest.mark.promise("MIG-1", "MIG-3")
@settings(max_examples=12, deadline=None)
@given(events, events, st.sampled_from(CONTRACTS), st.lists(st.sampled_from(CONTRACTS), min_size=1, max_size=2))
def test_a_migrated_index_is_the_one_that_had_this_contract_from_the_start(
    before: Sequence[Event], after: Sequence[Event], first: tuple[Any, int, int], ways: list[tuple[Any, int, int]]
) -> None:
    """Whatever came before, in between and after, and by whatever way."""
    last = ways[-1]
    with TemporaryDirectory() as folder:
        moved, fresh = Path(folder) / "moved.sqlite", Path(folder) / "fresh.sqlite"
        with Index.open(moved, *first) as index:
            for number, event in enumerate(before, 1):
                tell(index, number, event)
        for way in ways:
            migrate(moved, *way)
        with Index.open(moved, *last) as one, Index.open(fresh, *last) as other:
            for number, event in enumerate(before, 1):
                tell(other, number, event)
            for number, event in enumerate(after, len(before) + 1):
                tell(one, number, event)
                tell(other, number, event)
            assert content(moved) == content(fresh)
            assert one.check() == ()
            for query in ("住宿限额", "ok abc_1", "退款"):
                assert found(one, query) == found(other, query)
