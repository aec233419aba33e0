"""Posting lists turned term-major, segments joined, and the shelf of vectors that were read (VEC-8, PRF-4)."""

from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbretrieval.analysis import term_code
from kbretrieval.errors import IndexCorrupt
from kbretrieval.snapshot.resident import Shelf
from kbretrieval.snapshot.segment import Segment, build_segment, joined
from kbretrieval.store.chunk_rows import posting_blobs
from kbretrieval.store.search_rows import SearchRows, columns_of

TERMS = st.sampled_from(["退款", "款", "a", "ab", "a_long_identifier", "住宿", "另一个很长的词"])
CHUNKS = st.lists(
    st.lists(st.tuples(TERMS, st.sampled_from([1, 2, 14, 15, 16, 255, 256, 700])), max_size=5), max_size=8
)


Stored = tuple[int, int, bytes, bytes, None, None, None]


def rows_of(chunks: list[list[tuple[str, int]]]) -> list[Stored]:
    """Stored rows with the given (term, count) pairs, keys from 1."""
    blobs = [posting_blobs([term for term, count in pairs for _ in range(count)]) for pairs in chunks]
    return [(key, *blob, None, None, None) for key, blob in enumerate(blobs, 1)]


def columns(rows: list[Stored]) -> SearchRows:
    return columns_of(list(zip(*rows, strict=True)) if rows else [()] * 7, 0)


def listed(segment: Segment) -> dict[int, list[tuple[int, int]]]:
    """Code → (chunk key, count) in the segment's own order."""
    made = {}
    for code in segment.lists.codes.tolist():
        found = segment.postings(code)
        made[code] = [(int(segment.chunk_keys[row]), int(n)) for row, n in zip(found.rows, found.counts, strict=True)]
    return made


def plainly(chunks: list[list[tuple[str, int]]], keys: set[int]) -> dict[int, list[tuple[int, int]]]:
    """The same by dictionaries."""
    made: dict[int, list[tuple[int, int]]] = {}
    for key, pairs in enumerate(chunks, 1):
        counted: Counter[str] = Counter()
        for term, count in pairs:
            counted[term] += count
        for term, count in counted.items():
            if key in keys:
                made.setdefault(term_code(term), []).append((key, count))
    return dict(sorted(made.items()))


def built(chunks: list[list[tuple[str, int]]]) -> Segment:
    return build_segment(columns(rows_of(chunks)), np.arange(len(chunks), dtype=np.int64), 0)


@pytest.mark.promise("LEX-8", "VEC-8")
@given(CHUNKS)
def test_posting_lists_are_those_of_plain_dictionaries(chunks: list[list[tuple[str, int]]]) -> None:
    segment = built(chunks)
    assert listed(segment) == plainly(chunks, set(range(1, len(chunks) + 1)))
    assert list(listed(segment)) == sorted(listed(segment))
    assert segment.lengths.tolist() == [sum(count for _, count in pairs) for pairs in chunks]


@pytest.mark.promise("VEC-8", "PRF-4")
@given(CHUNKS, st.integers(0, 8), st.lists(st.booleans(), min_size=8, max_size=8))
def test_joined_segments_hold_what_is_alive(chunks: list[list[tuple[str, int]]], cut: int, alive: list[bool]) -> None:
    cut = min(cut, len(chunks))
    rows = rows_of(chunks)
    keys = np.arange(len(chunks), dtype=np.int64)
    parts = [build_segment(columns(part), keys[: len(part)], 0) for part in (rows[:cut], rows[cut:])]
    kept = np.array(alive[: len(chunks)], np.bool_)
    segment = joined(parts, kept)
    living = {key for key, lives in enumerate(kept.tolist(), 1) if lives}
    assert listed(segment) == plainly(chunks, living)
    assert segment.chunk_keys.tolist() == sorted(living)


def test_codes_between_the_packed_and_the_long_ones_are_kept_apart() -> None:
    codes = np.array([1 << 50, 1 << 43], np.int64)  # no analyzer makes them; a damaged store may hold them
    rows = columns([(1, 2, np.sort(codes).tobytes(), np.ones(2, np.uint16).tobytes(), None, None, None)])
    segment = build_segment(rows, np.zeros(1, np.int64), 0)
    assert segment.lists.codes.tolist() == [1 << 43, 1 << 50]


@pytest.mark.promise("ERR-2")
def test_a_length_that_is_not_the_sum_of_the_counts_is_refused() -> None:
    [(key, length, *blobs)] = rows_of([[("退款", 2)]])
    with pytest.raises(IndexCorrupt):
        build_segment(columns([(key, length + 1, *blobs)]), np.zeros(1, np.int64), 0)


@pytest.mark.promise("ERR-2")
@pytest.mark.parametrize(
    "row",
    [
        (1, 2.0, b"", b"", None, None, None),
        (1, 0, "", b"", None, None, None),
        (1, 1, b"\x01" * 7, b"\x01\x00", None, None, None),
        (1, 1, b"\x01" * 8, b"\x01", None, None, None),
    ],
    ids=["length", "codes", "part of a code", "part of a count"],
)
def test_a_posting_list_of_another_shape_is_refused(row: Any) -> None:
    good = rows_of([[("退款", 2)]])
    with pytest.raises(IndexCorrupt):
        columns([*good, row])


def test_a_row_of_vector_codes_of_another_shape_is_told_from_a_missing_one() -> None:
    posting = rows_of([[("退款", 2)]])[0][:4]
    vectors = [(b"\x01\x02", 0.1, 1.0), (b"\x01", 0.1, 1.0), (b"\x01\x02", None, 1.0), (None, None, None)]
    stored = [(*posting, *vector) for vector in vectors]
    found = columns_of(list(zip(*stored, strict=True)), 2).vectors
    assert found.whole.tolist() == [True, False, False, False]
    assert found.offered.tolist() == [True, True, True, False]
    assert found.codes.tolist() == [[1, 2], [0, 0], [0, 0], [0, 0]]


def test_the_shelf_gives_all_or_nothing_in_the_order_asked_for() -> None:
    shelf = Shelf(2)
    assert shelf.missing([1, 2]) == [1, 2]
    shelf.put([2, 1], np.array([[2, 2], [1, 1]], np.float32))
    found = shelf.get([1, 2, 1])
    assert found is not None
    assert found.tolist() == [[1, 1], [2, 2], [1, 1]]
    assert shelf.get([1, 3]) is None
    assert shelf.get([]) is None
    shelf.forget()
    assert shelf.missing([1]) == [1]


def test_the_shelf_lets_the_oldest_go(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kbretrieval.snapshot.resident.SHELF_BYTES", 2 * 4 * 3)
    shelf = Shelf(2)
    for key in range(1, 6):
        shelf.put([key], np.full((1, 2), key, np.float32))
    assert shelf.missing(range(1, 6)) == [1, 2]
