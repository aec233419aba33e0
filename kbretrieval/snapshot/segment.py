"""A segment: the search rows of some chunks as arrays, posting lists turned term-major.

Row order is chunk-key order, so a tie by chunk key is a tie by row. Nothing here changes after it was made.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kbretrieval.analysis import PACKED, codes_hold
from kbretrieval.encoders.quantizer import CodedRows
from kbretrieval.errors import IndexCorrupt
from kbretrieval.store.chunk_rows import CODE, COUNT
from kbretrieval.store.search_rows import SearchRow

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
    counts: NDArray[np.uint16]
    vectors: CodedRows
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


# 42 bits of a packed code, 17 of a row, 4 of a count: a positive int64.
ROW_BITS = 17
_COUNT_BITS = 4
_CODE_SHIFT = ROW_BITS + _COUNT_BITS
_ROW_MASK = (1 << ROW_BITS) - 1
_MOST = (1 << _COUNT_BITS) - 1


@dataclass(frozen=True, slots=True)
class _TermMajor:
    codes: Ints
    offsets: Ints
    rows: Rows
    counts: NDArray[np.uint16]


def _term_major(codes: Ints, rows: Ints, counts: NDArray[np.uint16]) -> _TermMajor:
    """Turn (code, row, count) triples, rows ascending, into posting lists.

    Packed codes, nearly all, are sorted as one integer of code, row and count; a count that does not fit is put back
    afterwards. Sorting integers is several times as fast as sorting places.
    """
    long = np.flatnonzero(codes >= PACKED)
    short = np.delete(np.arange(len(codes)), long) if len(long) else slice(None)
    key = codes[short] << _CODE_SHIFT
    key |= rows[short] << _COUNT_BITS
    ordered = key | np.minimum(counts[short], _MOST)
    ordered.sort()
    found = (ordered >> _COUNT_BITS) & _ROW_MASK
    number = (ordered & _MOST).astype(np.uint16)
    large = np.flatnonzero(counts[short] >= _MOST)
    number[np.searchsorted(ordered, key[large])] = counts[short][large]
    long = long[np.argsort(codes[long], kind="stable")]  # stable: within a code the rows stay ascending
    by_code = np.concatenate([ordered >> _CODE_SHIFT, codes[long]])
    starts = np.flatnonzero(np.diff(by_code, prepend=-1))  # codes are positive, so the first one differs from -1
    return _TermMajor(
        by_code[starts],
        np.append(starts, codes.size).astype(np.int64),
        np.concatenate([found, rows[long]]).astype(np.int32),
        np.concatenate([number, counts[long]]),
    )


def build_segment(found: Sequence[SearchRow], doc_keys: Ints, dimension: int) -> Segment:
    """Return the segment of search rows that come by ascending chunk key, with the document of each."""
    sizes = np.fromiter((len(row.codes) // CODE.itemsize for row in found), np.int64, len(found))
    codes = np.frombuffer(b"".join(row.codes for row in found), CODE).astype(np.int64)
    counts = np.frombuffer(b"".join(row.counts for row in found), COUNT).astype(np.uint16)
    owners = np.repeat(np.arange(len(found)), sizes)
    lengths = np.fromiter((row.length for row in found), np.int64, len(found))
    if (np.bincount(owners, counts, len(found)) != lengths).any() or (codes < 0).any():
        raise IndexCorrupt("a posting list's length and the sum of its counts differ, or a term code is below 0")
    lists = _term_major(codes, owners, counts)
    vectors, offered = _coded(found, dimension)
    missing = np.full(len(found), dimension > 0) & (lengths > 0) & ~offered  # text with terms has a vector
    sound = offered & _plausible(vectors, found, dimension)
    return Segment(
        chunk_keys=np.fromiter((row.chunk_key for row in found), np.int64, len(found)),
        doc_keys=doc_keys,
        lengths=lengths,
        squares=np.bincount(owners, counts.astype(np.float64) ** 2, len(found)).astype(np.int64),
        codes=lists.codes,
        offsets=lists.offsets,
        rows=lists.rows,
        counts=lists.counts,
        vectors=vectors,
        has_vector=sound,
        damaged=missing | (offered & ~sound),
    )


def _coded(found: Sequence[SearchRow], dimension: int) -> tuple[CodedRows, NDArray[np.bool_]]:
    blank = bytes(dimension)
    blobs = (row.vector if row.vector is not None and len(row.vector) == dimension else blank for row in found)
    codes = np.frombuffer(b"".join(blobs), np.int8).reshape(len(found), dimension)
    residuals = np.fromiter((row.residual for row in found), np.float32, len(found))
    norms = np.fromiter((row.norm for row in found), np.float32, len(found))
    offered = np.fromiter((row.vector is not None for row in found), np.bool_, len(found))
    return CodedRows(codes, residuals, norms), offered


def _plausible(vectors: CodedRows, found: Sequence[SearchRow], dimension: int) -> NDArray[np.bool_]:
    whole = np.fromiter(
        (row.vector is not None and len(row.vector) == dimension for row in found), np.bool_, len(found)
    )
    # Written this way round, a NaN is not plausible either.
    return (
        whole & (vectors.residuals >= 0) & (vectors.residuals <= 2) & (vectors.norms >= 0) & np.isfinite(vectors.norms)
    )


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
        vectors=CodedRows(
            np.concatenate([s.vectors.codes for s in segments])[keep],
            np.concatenate([s.vectors.residuals for s in segments])[keep],
            np.concatenate([s.vectors.norms for s in segments])[keep],
        ),
        has_vector=np.concatenate([s.has_vector for s in segments])[keep],
        damaged=np.concatenate([s.damaged for s in segments])[keep],
    )
