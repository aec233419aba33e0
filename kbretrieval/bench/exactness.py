"""PRF-3: the vector channel's list against a scan of every eligible row with float64 scores, rows and bits."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from kbretrieval.bench.figures import Equality
from kbretrieval.bench.filling import SHARES, reader
from kbretrieval.bench.peers import Asked, Rows
from kbretrieval.bench.plain import WINDOW
from kbretrieval.index import Index

BLOCK = 4096

Found = list[tuple[int, float]]


def row_scores(vectors: NDArray[np.float32], query: NDArray[np.float32]) -> NDArray[np.float64]:
    """Return float64 scores of shape (n,): each row multiplied and summed by itself, as the engine promises (VEC-7).

    Example:
        >>> row_scores(np.eye(2, dtype=np.float32), np.array([0.5, 0.25], np.float32)).tolist()
        [0.5, 0.25]
    """
    wide = query.astype(np.float64)
    scores = np.empty(len(vectors), np.float64)
    for at in range(0, len(vectors), BLOCK):  # block by block: all products of a million rows take 4 GB
        products = vectors[at : at + BLOCK].astype(np.float64) * wide
        scores[at : at + BLOCK] = np.add.reduce(products, axis=1)
    return scores


def scanned(rows: Rows, scores: NDArray[np.float64], share: int, floor: float) -> Found:
    """Return the best 100 (key, score) pairs of the eligible rows at or above the floor, ties by key."""
    kept = np.flatnonzero(rows.masks[share] & (scores >= floor))
    order = np.lexsort((rows.keys[kept], -scores[kept]))[:WINDOW]
    return [(int(rows.keys[at]), float(scores[at])) for at in kept[order]]


def engine_list(index: Index, asked: Asked, share: int) -> Found:
    """Return the engine's vector list: (chunk key, raw score), best first."""
    return [(hit.chunk_key, hit.channels[0].score) for hit in index.search(asked.text, reader(share), WINDOW, "vector")]


def compared(name: str, index: Index, rows: Rows, asked: Sequence[Asked]) -> Equality:
    """Return the comparison of every query at every share; one differing bit is a failure."""
    outcomes, counted = [], []
    for number, query in enumerate(asked):
        scores = row_scores(rows.vectors, query.vector)
        for share in SHARES:
            equal = engine_list(index, query, share) == scanned(rows, scores, share, index.encoder.floor)
            outcomes.append(equal)
            counted.append({"query": number, "share": share, "equal": equal})
    return Equality(name, tuple(counted), all(outcomes))
