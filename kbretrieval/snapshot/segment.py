"""A segment: the search rows of at most 65,536 chunks as arrays, posting lists turned term-major.

Row order is chunk-key order, so a tie by chunk key is a tie by row. Nothing here changes after it was made. Postings
are most of what a snapshot holds, so they are narrow: two bytes a row, one byte a count; the few counts that need more
stand in a table of their own.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kbretrieval.analysis import PACKED, codes_hold
from kbretrieval.encoders.quantizer import CodedRows
from kbretrieval.errors import IndexCorrupt
from kbretrieval.store.search_rows import CodedColumns, SearchRows

Ints = NDArray[np.int64]
Rows = NDArray[np.uint16]
Counts = NDArray[np.uint16]

# 42 bits of a packed code, 16 of a row, 4 of a count: a positive int64.
ROW_BITS = 16
_COUNT_BITS = 4
_ROW_MASK = (1 << ROW_BITS) - 1
_MOST = (1 << _COUNT_BITS) - 1
_MOST_NARROW = np.iinfo(np.uint8).max
_LAST = np.iinfo(np.int64).max


@dataclass(frozen=True, slots=True)
class Postings:
    """The rows that hold a term, ascending, with the term's count in each; unsigned, of the narrowest kind."""

    rows: Rows
    counts: NDArray[np.unsignedinteger[Any]]


@dataclass(frozen=True, slots=True)
class PostingLists:
    """Posting lists, one a distinct term code, codes ascending.

    The rows of code i are rows[offsets[i]:offsets[i + 1]], ascending. counts (uint8) stop at 255; where a posting
    counts more, `wide` (ascending places in counts) holds its place and `wide_counts` its count.
    """

    codes: Ints
    offsets: NDArray[np.signedinteger[Any]]
    rows: Rows
    counts: NDArray[np.uint8]
    wide: Ints
    wide_counts: Counts

    def of(self, code: int) -> Postings:
        """Return the posting list of one term code; empty where no row holds it."""
        at = int(self.codes.searchsorted(code))
        if at == len(self.codes) or self.codes[at] != code:
            return Postings(np.zeros(0, np.uint16), np.zeros(0, np.uint8))
        return self.between(int(self.offsets[at]), int(self.offsets[at + 1]))

    def between(self, begin: int, end: int) -> Postings:
        """Return a stretch of all postings with their whole counts."""
        rows, counts = self.rows[begin:end], self.counts[begin:end]
        first, last = self.wide.searchsorted((begin, end)) if len(self.wide) else (0, 0)
        if first == last:
            return Postings(rows, counts)
        whole = counts.astype(np.uint16)
        whole[self.wide[first:last] - begin] = self.wide_counts[first:last]
        return Postings(rows, whole)


@dataclass(frozen=True, slots=True)
class Segment:
    """Arrays over n rows and their posting lists.

    chunk_keys, doc_keys, lengths (terms), squares (sum of squared counts): shape (n,), int64. vectors: the int8 rows of
    dense vectors, zero where `has_vector` is False. damaged: rows whose stored int8 row is none, or missing.
    """

    chunk_keys: Ints
    doc_keys: Ints
    lengths: Ints
    squares: Ints
    lists: PostingLists
    vectors: CodedRows
    has_vector: NDArray[np.bool_]
    damaged: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.chunk_keys)

    def postings(self, code: int) -> Postings:
        """Return the posting list of one term code; empty where no row holds it."""
        return self.lists.of(code)

    def codes_holding(self, character: str) -> Ints:
        """Return the codes of one or two code points that hold a character (LEX-9)."""
        packed = self.lists.codes[: np.searchsorted(self.lists.codes, PACKED)]
        held: Ints = packed[codes_hold(packed, character)]
        return held

    def united(self, codes: Sequence[int]) -> Postings:
        """Return the posting list of several codes as of one term: united rows, summed counts."""
        lists = [self.postings(code) for code in codes]
        if len(lists) == 1:
            return lists[0]
        if not lists:
            return Postings(np.zeros(0, np.uint16), np.zeros(0, np.uint8))
        rows, places = np.unique(np.concatenate([item.rows for item in lists]), return_inverse=True)
        counts = np.zeros(len(rows), np.uint64)
        np.add.at(counts, places, np.concatenate([item.counts for item in lists]))
        return Postings(rows, counts)


def _term_major(codes: Ints, rows: Rows, counts: Counts) -> PostingLists:
    """Turn (code, row, count) triples, rows ascending, into posting lists.

    Packed codes, nearly all, are sorted as one integer of code, row and count; a count that does not fit is put back
    afterwards. Sorting integers is several times as fast as sorting places, and each pass over them is in place.
    """
    long = np.flatnonzero(codes >= PACKED)
    key = codes << ROW_BITS
    key |= rows
    key <<= _COUNT_BITS
    key |= np.minimum(counts, _MOST)
    key[long] = _LAST  # sorted to the end, and cut off there
    large = np.flatnonzero((counts >= _MOST) & (key != _LAST))
    large_keys = key[large]
    key.sort()
    key = key[: len(key) - len(long)]
    places = np.searchsorted(key, large_keys)
    low = key.astype(np.uint32)  # the lower half, which holds row and count
    number = (low & _MOST).astype(np.uint16)
    number[places] = counts[large]
    low >>= _COUNT_BITS
    found = low.astype(np.uint16)
    key >>= ROW_BITS + _COUNT_BITS
    long = long[np.argsort(codes[long], kind="stable")]  # stable: within a code the rows stay ascending
    starts, long_starts = _starts(key), _starts(codes[long])
    number = np.concatenate([number, counts[long]])
    wide = np.flatnonzero(number > _MOST_NARROW)
    return PostingLists(
        codes=np.concatenate([key[starts], codes[long[long_starts]]]),
        offsets=np.concatenate([starts, long_starts + len(key), [len(codes)]]).astype(
            np.int32 if len(codes) <= np.iinfo(np.int32).max else np.int64
        ),
        rows=np.concatenate([found, rows[long]]),
        counts=np.minimum(number, _MOST_NARROW).astype(np.uint8),
        wide=wide,
        wide_counts=number[wide],
    )


def _starts(ordered: Ints) -> Ints:
    """Return where each run of equal values begins."""
    begins = np.ones(len(ordered), np.bool_)
    np.not_equal(ordered[1:], ordered[:-1], out=begins[1:])
    return np.flatnonzero(begins)


def build_segment(found: SearchRows, doc_keys: Ints, dimension: int) -> Segment:
    """Return the segment of search rows that come by ascending chunk key, with the document of each."""
    ends = np.cumsum(found.sizes)
    if (_sums(found.counts, ends) != found.lengths).any() or (found.codes.size and found.codes.min() < 0):
        raise IndexCorrupt("a posting list's length and the sum of its counts differ, or a term code is below 0")
    lists = _term_major(found.codes, np.repeat(np.arange(len(ends), dtype=np.uint16), found.sizes), found.counts)
    coded = found.vectors
    missing = np.full(len(ends), dimension > 0) & (found.lengths > 0) & ~coded.offered  # text with terms has a vector
    sound = coded.whole & _plausible(coded)
    return Segment(
        chunk_keys=found.chunk_keys,
        doc_keys=doc_keys,
        lengths=found.lengths,
        squares=_sums(np.square(found.counts, dtype=np.int64), ends),
        lists=lists,
        vectors=CodedRows(coded.codes, coded.residuals, coded.norms),
        has_vector=sound,
        damaged=missing | (coded.offered & ~sound),
    )


def _sums(values: NDArray[Any], ends: Ints) -> Ints:
    """Return the sum of each stretch of values, the next beginning where one ends; the first at 0."""
    total = np.zeros(len(values) + 1, np.int64)
    np.cumsum(values, out=total[1:])
    made: Ints = np.diff(total[ends], prepend=0)
    return made


def _plausible(coded: CodedColumns) -> NDArray[np.bool_]:
    # Written this way round, a NaN is not plausible either.
    return (coded.residuals >= 0) & (coded.residuals <= 2) & (coded.norms >= 0) & np.isfinite(coded.norms)


def joined(segments: Sequence[Segment], alive: NDArray[np.bool_]) -> Segment:
    """Return one segment of the live rows of several; `alive` runs over all their rows in order."""
    keep = np.flatnonzero(alive)
    new_row = np.zeros(len(alive), np.uint16)
    new_row[keep] = np.arange(len(keep), dtype=np.uint16)
    codes, rows, counts, base = [], [], [], 0
    for segment in segments:
        lists, here = segment.lists, slice(base, base + len(segment))
        held = alive[here][lists.rows]
        codes.append(np.repeat(lists.codes, np.diff(lists.offsets))[held])
        rows.append(new_row[here][lists.rows[held]])
        counts.append(lists.between(0, len(lists.rows)).counts[held].astype(np.uint16))
        base += len(segment)
    lists = _term_major(np.concatenate(codes), np.concatenate(rows), np.concatenate(counts))
    return Segment(
        chunk_keys=np.concatenate([s.chunk_keys for s in segments])[keep],
        doc_keys=np.concatenate([s.doc_keys for s in segments])[keep],
        lengths=np.concatenate([s.lengths for s in segments])[keep],
        squares=np.concatenate([s.squares for s in segments])[keep],
        lists=lists,
        vectors=CodedRows(
            np.concatenate([s.vectors.codes for s in segments])[keep],
            np.concatenate([s.vectors.residuals for s in segments])[keep],
            np.concatenate([s.vectors.norms for s in segments])[keep],
        ),
        has_vector=np.concatenate([s.has_vector for s in segments])[keep],
        damaged=np.concatenate([s.damaged for s in segments])[keep],
    )
