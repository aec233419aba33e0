"""The vector channel: exact cosine over eligible rows, sparse or dense (VEC-1, VEC-7).

Dense: a float32 product only selects. Let s(i) be the exact score and a(i) the float32 one; with unit vectors of
dimension d their distance is at most e = d * 2^-23 (twice the textbook bound d * u for a dot product, u = 2^-24).
Theorem: every row of the exact best k has a(i) >= A - 2e, where A is the k-th largest a. Proof: the k rows with the
largest a have s >= A - e, so the k-th largest s is at least A - e; a row of the best k has s(i) >= A - e, hence
a(i) >= A - 2e. Those rows are scored again in float64, multiplied and summed row by row, so that equal texts score
exactly equal.
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from kbretrieval.channels.postings import eligible_postings
from kbretrieval.channels.ranking import QueryTerms, Ranked, Scores, best, ran, skipped
from kbretrieval.errors import IndexCorrupt
from kbretrieval.snapshot.segment import Ints, Segment
from kbretrieval.snapshot.snapshot import Eligible, Snapshot

STATISTICS = "none"
SPARSE = "term-cosine/1"
DENSE = "exact-cosine/1"


def rank_sparse(snapshot: Snapshot, eligible: Eligible, terms: QueryTerms, floor: float, window: int) -> Ranked:
    """Return the best rows by cosine of term counts: integer dot products, one division a row."""
    if not terms.used:
        return skipped("vector", SPARSE, STATISTICS, "no_terms", terms, eligible.count)
    dots = np.zeros(len(snapshot.alive), np.int64)
    for term, count in zip(terms.used, terms.counts, strict=True):
        rows, counts = eligible_postings(snapshot, eligible.mask, term)
        dots[rows] += count * counts
    squares = snapshot.column("squares")
    held = np.flatnonzero(dots)
    query_square = sum(count * count for count in terms.counts)
    scores = dots[held] / np.sqrt((squares[held] * query_square).astype(np.float64))
    kept = scores >= floor
    keys = snapshot.column("chunk_keys")[held[kept]]
    return ran(
        "vector",
        SPARSE,
        STATISTICS,
        terms,
        best(keys, scores[kept], window),
        floor=floor,
        eligible=eligible.count,
        scored=int(np.count_nonzero(eligible.mask & (squares > 0))),
        candidates=int(np.count_nonzero(kept)),
    )


def rank_dense(
    snapshot: Snapshot, eligible: Eligible, terms: QueryTerms, query: NDArray[np.float32], floor: float, window: int
) -> Ranked:
    """Return the best rows by cosine with a unit query vector of shape (dimension,); exact, ties by chunk key.

    Raises `index_corrupt` where a readable row's stored vector is damaged: a list without it would look complete.
    """
    _refuse_damage(snapshot, eligible)
    error = len(query) * 2.0**-23
    rows = np.concatenate([np.zeros(0, np.int64), *(held + base for _, held, base in _readable(snapshot, eligible))])
    rough = np.concatenate(
        [np.zeros(0), *(_rough(segment, held, query) for segment, held, _ in _readable(snapshot, eligible))]
    )
    near = np.abs(rough - floor) <= error
    candidates = int(np.count_nonzero(rough > floor + error))
    candidates += int(np.count_nonzero(exact_scores(snapshot, rows[near], query) >= floor))
    least = floor - error
    if len(rough) > window:
        least = max(least, float(np.partition(rough, len(rough) - window)[len(rough) - window]) - 2.0 * error)
    chosen = rows[rough >= least]
    scores = exact_scores(snapshot, chosen, query)
    kept = scores >= floor
    return ran(
        "vector",
        DENSE,
        STATISTICS,
        terms,
        best(snapshot.column("chunk_keys")[chosen[kept]], scores[kept], window),
        floor=floor,
        eligible=eligible.count,
        scored=len(rows),
        candidates=candidates,
    )


def _refuse_damage(snapshot: Snapshot, eligible: Eligible) -> None:
    count = int(np.count_nonzero(snapshot.column("damaged").astype(np.bool_) & eligible.mask))
    if count:
        raise IndexCorrupt(f"{eligible.count} rows are eligible, {count} of them have a damaged vector")


def _readable(snapshot: Snapshot, eligible: Eligible) -> Iterator[tuple[Segment, Ints, int]]:
    """Yield each segment with its eligible rows that have a vector, and the number of rows before it."""
    base = 0
    for segment in snapshot.segments:
        yield segment, np.flatnonzero(eligible.mask[base : base + len(segment)] & segment.has_vector), base
        base += len(segment)


def _rough(segment: Segment, rows: Ints, query: NDArray[np.float32]) -> Scores:
    vectors = segment.vectors if len(rows) == len(segment) else segment.vectors[rows]
    return (vectors @ query).astype(np.float64)


def exact_scores(snapshot: Snapshot, rows: Ints, query: NDArray[np.float32]) -> Scores:
    """Return float64 scores of rows over all segments, each multiplied and summed by itself in one fixed order."""
    made = np.zeros(len(rows), np.float64)
    wide, base = query.astype(np.float64), 0
    for segment in snapshot.segments:
        here = (rows >= base) & (rows < base + len(segment))
        products = segment.vectors[rows[here] - base].astype(np.float64) * wide
        made[here] = np.add.reduce(np.ascontiguousarray(products), axis=1)
        base += len(segment)
    return made
