"""A segment: the search rows of some chunks as arrays, posting lists turned term-major.

Row order is chunk-key order, so a tie by chunk key is a tie by row. Nothing here changes after it was made.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kbretrieval.analysis import PACKED, codes_hold
from kbretrieval.errors import IndexCorrupt
from kbretrieval.store.chunk_rows import FLOAT, NORM_TOLERANCE, SearchRow

Ints = NDArray[np.int64]
Rows = NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class Postings:
    """The rows that hold a term, ascending, with the term's count in each."""

    rows: Rows
    counts: Ints


@dataclass(frozen=True, slots=True)
class Segment:
    """Arrays over n rows and their posting lists.

    chunk_keys, doc_keys, lengths (terms), squares (sum of squared counts): shape (n,), int64. vectors: (n, dimension)
    float32, zero where `has_vector` is False. damaged: rows whose stored vector is
    not `dimension` finite numbers of norm 1. codes: the distinct term codes, ascending; the rows of code i are
    rows[offsets[i]:offsets[i + 1]].
    """

    chunk_keys: Ints
    doc_keys: Ints
    lengths: Ints
    squares: Ints
    codes: Ints
    offsets: Ints
    rows: Rows
    counts: NDArray[np.uint16]
    vectors: NDArray[np.float32]
    has_vector: NDArray[np.bool_]
    damaged: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.chunk_keys)

    def postings(self, code: int) -> Postings:
        """Return the posting list of one term code; empty where no row holds it."""
        at = int(np.searchsorted(self.codes, code))
        if at == len(self.codes) or self.codes[at] != code:
            return Postings(np.zeros(0, np.int32), np.zeros(0, np.int64))
        begin, end = self.offsets[at], self.offsets[at + 1]
        return Postings(self.rows[begin:end], self.counts[begin:end].astype(np.int64))

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


@dataclass(frozen=True, slots=True)
class _TermMajor:
    codes: Ints
    offsets: Ints
    rows: Rows
    counts: NDArray[np.uint16]


def _term_major(codes: Ints, rows: NDArray[np.int_], counts: NDArray[np.uint16]) -> _TermMajor:
    """Turn (code, row, count) triples, rows ascending, into posting lists."""
    order = np.argsort(codes, kind="stable")  # stable: within a code the rows stay ascending
    by_code = codes[order]
    starts = np.flatnonzero(np.diff(by_code, prepend=-1))  # codes are positive, so the first one differs from -1
    return _TermMajor(
        by_code[starts].astype(np.int64),
        np.append(starts, codes.size).astype(np.int64),
        rows[order].astype(np.int32),
        counts[order].astype(np.uint16),
    )


def build_segment(found: Sequence[SearchRow], dimension: int) -> Segment:
    """Return the segment of search rows that come by ascending chunk key."""
    sizes = np.fromiter((len(row.codes) for row in found), np.int64, len(found))
    codes = np.concatenate([row.codes for row in found]) if found else np.zeros(0, np.int64)
    counts = np.concatenate([row.counts for row in found]) if found else np.zeros(0, np.uint16)
    owners = np.repeat(np.arange(len(found)), sizes)
    lengths = np.fromiter((row.length for row in found), np.int64, len(found))
    if (np.bincount(owners, counts, len(found)) != lengths).any() or (codes < 0).any():
        raise IndexCorrupt("a posting list's length and the sum of its counts differ, or a term code is below 0")
    lists = _term_major(codes, owners, counts)
    squares = np.zeros(len(found), np.int64)
    np.add.at(squares, owners, counts.astype(np.int64) ** 2)
    return Segment(
        chunk_keys=np.fromiter((row.chunk_key for row in found), np.int64, len(found)),
        doc_keys=np.fromiter((row.doc_key for row in found), np.int64, len(found)),
        lengths=lengths,
        squares=squares,
        codes=lists.codes,
        offsets=lists.offsets,
        rows=lists.rows,
        counts=lists.counts,
        **_vectors(found, dimension),
    )


def _vectors(found: Sequence[SearchRow], dimension: int) -> dict[str, NDArray[Any]]:
    size = dimension * FLOAT.itemsize
    offered = np.fromiter((row.vector is not None for row in found), np.bool_, len(found))
    whole = np.fromiter((row.vector is not None and len(row.vector) == size for row in found), np.bool_, len(found))
    blank = bytes(size)
    blobs = (row.vector if row.vector is not None and len(row.vector) == size else blank for row in found)
    matrix = np.frombuffer(b"".join(blobs), FLOAT).reshape(len(found), dimension).astype(np.float32)
    with np.errstate(invalid="ignore", over="ignore"):
        squares = np.einsum("ij,ij->i", matrix, matrix)
    sound = whole & (np.abs(squares - 1.0) <= NORM_TOLERANCE)  # also False for NaN and infinity
    matrix[~sound] = 0.0
    return {"vectors": matrix, "has_vector": sound, "damaged": offered & ~sound}


def joined(segments: Sequence[Segment], alive: NDArray[np.bool_]) -> Segment:
    """Return one segment of the live rows of several; `alive` runs over all their rows in order."""
    keep = np.flatnonzero(alive)
    new_row = np.full(len(alive), -1, np.int64)
    new_row[keep] = np.arange(len(keep))
    codes, rows, counts, base = [], [], [], 0
    for segment in segments:
        owners = new_row[segment.rows.astype(np.int64) + base]
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
        vectors=np.concatenate([s.vectors for s in segments])[keep],
        has_vector=np.concatenate([s.has_vector for s in segments])[keep],
        damaged=np.concatenate([s.damaged for s in segments])[keep],
    )
