"""The term weights that bm25s computes when it indexes, made from posting lists that are there already.

bm25s takes a corpus as Python lists of terms and works through it document by document: at a million chunks that needs
more memory and time than all the rest of a run. What it keeps is a matrix in compressed columns, one a term, with the
finished weight of every (term, document) pair; a test compares the matrix made here with bm25s's own. Searching is
bm25s's.
"""

import numpy as np
from numpy.typing import NDArray

from kbretrieval.snapshot.segment import Segment
from kbretrieval.snapshot.snapshot import Snapshot

K1, B = 1.2, 0.75

Ints = NDArray[np.int64]
Floats = NDArray[np.float32]


class EagerWeights:
    """Columns of weights: those of term code i are data[indptr[i]:indptr[i + 1]], and their rows in `indices`.

    codes: the term codes, ascending. The weight is that of bm25s's method `lucene`: idf * tf / (tf + k1 * (1 - b + b *
    length / mean length)), idf = ln(1 + (n - df + 0.5) / (df + 0.5)), over all rows of the snapshot.
    """

    def __init__(self, snapshot: Snapshot) -> None:
        lists = [segment.lists for segment in snapshot.segments]
        self.codes: Ints = np.unique(np.concatenate([item.codes for item in lists]))
        places = [np.searchsorted(self.codes, item.codes) for item in lists]
        holding = np.zeros(len(self.codes), np.int64)
        for at, item in zip(places, lists, strict=True):
            holding[at] += np.diff(item.offsets)
        self.rows = len(snapshot.alive)
        self.indptr: Ints = np.concatenate([[0], np.cumsum(holding)])
        self.data: Floats = np.empty(self.indptr[-1], np.float32)
        self.indices: NDArray[np.int32] = np.empty(self.indptr[-1], np.int32)
        idf = np.log1p((self.rows - holding + 0.5) / (holding + 0.5)).astype(np.float32)
        lengths = np.concatenate([segment.lengths for segment in snapshot.segments])
        norms = (K1 * (1.0 - B + B * lengths / lengths.mean())).astype(np.float32)
        self._fill(snapshot.segments, places, idf, norms)

    def _fill(self, segments: tuple[Segment, ...], places: list[Ints], idf: Floats, norms: Floats) -> None:
        free, base = self.indptr[:-1].copy(), 0
        for segment, at in zip(segments, places, strict=True):
            item = segment.lists
            sizes = np.diff(item.offsets)
            found = item.between(0, len(item.rows))
            to = np.arange(len(found.rows)) + np.repeat(free[at] - item.offsets[:-1], sizes)
            rows = found.rows.astype(np.int32) + np.int32(base)
            counts = found.counts.astype(np.float32)
            self.indices[to] = rows
            self.data[to] = np.repeat(idf[at], sizes) * (counts / (counts + norms[rows]))
            free[at] += sizes
            base += len(segment)

    def columns(self, codes: Ints) -> Ints:
        """Return the columns of those term codes that occur, in their order."""
        at = np.minimum(np.searchsorted(self.codes, codes), len(self.codes) - 1)
        found: Ints = at[self.codes[at] == codes]
        return found
