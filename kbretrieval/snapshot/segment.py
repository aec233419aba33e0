"""A segment: the search rows of some chunks as arrays, posting lists turned term-major.

Row order is chunk-key order, so a tie by chunk key is a tie by row. Nothing here changes after it was made.
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
Rows = NDArray[np.int32]
Counts = NDArray[np.uint16]


@dataclass(frozen=True, slots=True)
class Postings:
    """The rows that hold a term, ascending, with the term's count in each."""

    rows: Rows
    counts: Counts | Ints


@dataclass(frozen=True, slots=True)
class Segment:
    """Arrays over n rows and their posting lists.

    chunk_keys, doc_keys, lengths (terms), squares (sum of squared counts): shape (n,), int64. codes: the distinct term
    codes, ascending; the rows of code i are rows[offsets[i]:offsets[i + 1]]. vectors: the int8 rows of dense vectors,
    zero where `has_vector` is False. damaged: rows whose stored int8 row is none, or missing.
    """

    chunk_keys: Ints
    doc_keys: Ints
    lengths: Ints
    squares: Ints
    codes: Ints
    offsets: Ints
    rows: Rows
    counts: Counts
    vectors: CodedRows
    has_vector: NDArray[np.bool_]
    damaged: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.chunk_keys)

    def postings(self, code: int) -> Postings:
        """Return the posting list of one term code; empty where no row holds it."""
        at = int(np.searchsorted(self.codes, code))
        if at == len(self.codes) or self.codes[at] != code:
            return Postings(np.zeros(0, np.int32), np.zeros(0, np.uint16))
        begin, end = self.offsets[at], self.offsets[at + 1]
        return Postings(self.rows[begin:end], self.counts[begin:end])

    def codes_holding(self, character: str) -> Ints:
        """Return the codes of one or two code points that hold a character (LEX-9)."""
        packed = self.codes[: np.searchsorted(self.codes, PACKED)]
        held: Ints = packed[codes_hold(packed, character)]
        return held

    def united(self, codes: Sequence[int]) -> Postings:
        """Return the posting list of several codes as of one term: united rows, summed counts."""
        lists = [self.postings(code) for code in codes]
        if len(lists) == 1:
            return lists[0]
        if not lists:
            return Postings(np.zeros(0, np.int32), np.zeros(0, np.int64))
        rows, places = np.unique(np.concatenate([item.rows for item in lists]), return_inverse=True)
        counts = np.zeros(len(rows), np.int64)
        np.add.at(counts, places, np.concatenate([item.counts for item in lists]))
        return Postings(rows, counts)


# 42 bits of a packed code, 17 of a row, 4 of a count: a positive int64.
ROW_BITS = 17
_COUNT_BITS = 4
_ROW_MASK = (1 << ROW_BITS) - 1
_MOST = (1 << _COUNT_BITS) - 1
_LAST = np.iinfo(np.int64).max


@dataclass(frozen=True, slots=True)
class _TermMajor:
    codes: Ints
    offsets: Ints
    rows: Rows
    counts: Counts


def _term_major(codes: Ints, rows: Rows, counts: Counts) -> _TermMajor:
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
    low = key.astype(np.int32)  # the lower half: row and count
    number = (low & _MOST).astype(np.uint16)
    number[places] = counts[large]
    low >>= _COUNT_BITS
    low &= _ROW_MASK
    key >>= ROW_BITS + _COUNT_BITS
    long = long[np.argsort(codes[long], kind="stable")]  # stable: within a code the rows stay ascending
    starts, long_starts = _starts(key), _starts(codes[long])
    return _TermMajor(
        np.concatenate([key[starts], codes[long[long_starts]]]),
        np.concatenate([starts, long_starts + len(key), [len(codes)]]),
        np.concatenate([low, rows[long]]),
        np.concatenate([number, counts[long]]),
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
    lists = _term_major(found.codes, np.repeat(np.arange(len(ends), dtype=np.int32), found.sizes), found.counts)
    coded = found.vectors
    missing = np.full(len(ends), dimension > 0) & (found.lengths > 0) & ~coded.offered  # text with terms has a vector
    sound = coded.whole & _plausible(coded)
    return Segment(
        chunk_keys=found.chunk_keys,
        doc_keys=doc_keys,
        lengths=found.lengths,
        squares=_sums(np.square(found.counts, dtype=np.int64), ends),
        codes=lists.codes,
        offsets=lists.offsets,
        rows=lists.rows,
        counts=lists.counts,
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
    new_row = np.full(len(alive), -1, np.int32)
    new_row[keep] = np.arange(len(keep), dtype=np.int32)
    codes, rows, counts, base = [], [], [], 0
    for segment in segments:
        owners = new_row[base : base + len(segment)][segment.rows]
        held = owners >= 0
        codes.append(np.repeat(segment.codes, np.diff(segment.offsets))[held])
        rows.append(owners[held])
        counts.append(segment.counts[held])
        base += len(segment)
    lists = _term_major(np.concatenate(codes), np.concatenate(rows), np.concatenate(counts))
    return Segment(
        chunk_keys=np.concatenate([s.chunk_keys for s in segments])[keep],
        doc_keys=np.concatenate([s.doc_keys for s in segments])[keep],
        lengths=np.concatenate([s.lengths for s in segments])[keep],
        squares=np.concatenate([s.squares for s in segments])[keep],
        codes=lists.codes,
        offsets=lists.offsets,
        rows=lists.rows,
        counts=lists.counts,
        vectors=CodedRows(
            np.concatenate([s.vectors.codes for s in segments])[keep],
            np.concatenate([s.vectors.residuals for s in segments])[keep],
            np.concatenate([s.vectors.norms for s in segments])[keep],
        ),
        has_vector=np.concatenate([s.has_vector for s in segments])[keep],
        damaged=np.concatenate([s.damaged for s in segments])[keep],
    )
