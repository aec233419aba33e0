"""The vector channel: exact cosine over eligible rows, sparse or dense (VEC-1, VEC-7).

Dense ranking goes from coarse to exact and loses nothing on the way. `select_dense` bounds every eligible row's score
by its int8 row and keeps those that can be among the best (the theorem stands in `encoders.quantizer`). `rank_dense`
has their float32 rows; a float32 product a(i) lies within e = d * 2^-23 of the exact s(i) (twice the textbook bound for
unit vectors of dimension d). Theorem: every row of the exact best k has a(i) >= A - 2e, where A is the k-th largest a.
Proof: the k rows with the largest a score at least A - e, so a row of the best k does, too, and then a(i) >= A - 2e.
Those few are scored in float64, multiplied and summed row by row in one order, so that equal texts score exactly equal.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kbretrieval.channels.postings import eligible_postings
from kbretrieval.channels.ranking import QueryTerms, Ranked, Scores, best, least_of_best, ran, skipped
from kbretrieval.encoders.quantizer import CodedQuery, integer_dots
from kbretrieval.errors import IndexCorrupt
from kbretrieval.snapshot.eligible import CodedView, Eligible, Part
from kbretrieval.snapshot.scanners import Scanners
from kbretrieval.snapshot.segment import Ints
from kbretrieval.snapshot.snapshot import Snapshot

STATISTICS = "none"
SPARSE = "term-cosine/1"
DENSE = "exact-cosine/1"
MAX_UNSURE = 512


def rank_sparse(snapshot: Snapshot, eligible: Eligible, terms: QueryTerms, floor: float, window: int) -> Ranked:
    """Return the best rows by cosine of term counts: integer dot products, one division a row."""
    if not terms.used:
        return skipped("vector", SPARSE, STATISTICS, "no_terms", terms, eligible.count)
    dots = np.zeros(len(snapshot.alive), np.float64)  # integers, exact below 2^53
    for term, count in zip(terms.used, terms.counts, strict=True):
        for part in eligible_postings(snapshot, eligible, term):
            part.of(dots)[part.rows] += count * part.counts
    squares = snapshot.column("squares")
    held = np.flatnonzero(dots > 0)
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
        scored=int(np.count_nonzero(squares[eligible.rows])),
        candidates=int(np.count_nonzero(kept)),
    )


@dataclass(frozen=True, slots=True)
class Selection:
    """The rows that can be among the best, by chunk key; and for the trace what is known of all the others.

    surely_above: rows outside `unsure` whose score is surely at the floor or above. unsure: keys of rows whose bounds
    straddle the floor, where they are few enough to be read; else None, and `roughly_above` counts those whose middle
    between the bounds reaches it. wanted: `keys` and `unsure` together, ascending: their float32 vectors must be read.
    """

    keys: Ints
    scored: int
    surely_above: int
    unsure: Ints | None
    roughly_above: int
    wanted: Ints


def select_dense(
    snapshot: Snapshot,
    eligible: Eligible,
    query: CodedQuery,
    floor: float,
    window: int,
    scanners: Scanners | None = None,
) -> Selection:
    """Return which eligible rows may belong to the best `window` at or above the floor; loses none of them.

    Bounds are worked out only where they can matter. Let R be the widest reach of any row and t the `window`-th largest
    rough score: `window` rows score at least t - R, so a row of the best has a rough score of at least t - 2R; and at
    least floor - R, or it is not among them.
    Raises `index_corrupt` where a readable row's int8 row is damaged: a list without it would look complete.
    """
    if eligible.damaged:
        raise IndexCorrupt(f"{eligible.count} rows are eligible, {eligible.damaged} of them have a damaged vector")
    view = eligible.coded()
    rough = rough_scores(view, query, scanners)
    widest = query.reach(view.widest_norm, view.widest_residual)
    rows = np.flatnonzero(rough >= floor - widest)  # every other row scores surely below the floor
    rough = rough[rows]
    close = rough >= least_of_best(rough, window) - 2.0 * widest
    lower, upper = _bounds(view, query, rows[close], rough[close])
    chosen = rows[close][upper >= max(floor, least_of_best(lower, window))]
    surely_above, straddling, roughly_above = _around_floor(view, query, rows, rough, floor, widest)
    few = len(straddling) <= MAX_UNSURE
    keys = snapshot.column("chunk_keys")
    best_keys, unsure = keys[view.rows[chosen]], keys[view.rows[straddling]] if few else None
    return Selection(
        keys=best_keys,
        scored=len(view.rows),
        surely_above=surely_above,
        unsure=unsure,
        roughly_above=roughly_above,
        wanted=best_keys if unsure is None else np.union1d(best_keys, unsure),
    )


def _around_floor(
    view: CodedView, query: CodedQuery, rows: Ints, rough: Scores, floor: float, widest: float
) -> tuple[int, Ints, int]:
    """Return how many rows score surely at the floor or above, which may lie on either side, and how many of these
    have a rough score at the floor or above. `widest`: the widest reach of any row."""
    unsettled = rough < floor + widest
    scores = rough[unsettled]
    lower, upper = _bounds(view, query, rows[unsettled], scores)
    straddling = (lower < floor) & (upper >= floor)
    sure = len(rows) - len(scores) + int(np.count_nonzero(lower >= floor))
    return sure, rows[unsettled][straddling], int(np.count_nonzero(scores[straddling] >= floor))


def rough_scores(view: CodedView, query: CodedQuery, scanners: Scanners | None = None) -> Scores:
    """Return the score of every row of a view as its int8 row tells it; several threads share a long one."""
    dots = np.empty(len(view.rows), np.float64)

    def fill(part: Part) -> None:
        dots[part.begin : part.end] = part.wanted(integer_dots(part.codes(), query.codes))

    if scanners is None:
        for part in view.parts:
            fill(part)
    else:
        scanners.each(fill, view.parts)
    dots *= query.step
    dots += query.constant
    return dots


def _bounds(view: CodedView, query: CodedQuery, rows: Ints, rough: Scores) -> tuple[Scores, Scores]:
    """Return lower and upper bounds of the exact scores of some rows of a view."""
    reach = query.reach(view.norms[rows], view.residuals[rows])
    return rough - reach, rough + reach


def exact_scores(vectors: NDArray[np.float32], query: NDArray[np.float32]) -> Scores:
    """Return float64 scores of float32 rows (n, dimension): each row multiplied and summed by itself, in one order."""
    products = np.ascontiguousarray(vectors.astype(np.float64) * query.astype(np.float64))
    scores: Scores = np.add.reduce(products, axis=1)
    return scores


def rank_dense(
    selection: Selection,
    vectors: NDArray[np.float32],
    query: NDArray[np.float32],
    terms: QueryTerms,
    *,
    eligible: int,
    floor: float,
    window: int,
) -> Ranked:
    """Return the best rows from the float32 vectors of `selection.wanted`, in its order; ties by chunk key."""
    wanted = selection.wanted
    error = len(query) * 2.0**-23
    rough = np.einsum("ij,j->i", vectors, query).astype(np.float64)
    near = np.abs(rough - floor) <= error
    above = rough > floor
    above[near] = exact_scores(vectors[near], query) >= floor
    candidates = selection.surely_above
    if selection.unsure is None:  # counted by the middle of their bounds, but none fewer than are known to be there
        candidates = max(candidates + selection.roughly_above, int(np.count_nonzero(above)))
    else:
        candidates += int(np.count_nonzero(above & np.isin(wanted, selection.unsure)))
    least = least_of_best(rough[above], window) - 2.0 * error
    chosen = above & (rough >= least)
    return ran(
        "vector",
        DENSE,
        STATISTICS,
        terms,
        best(wanted[chosen], exact_scores(vectors[chosen], query), window),
        floor=floor,
        eligible=eligible,
        scored=selection.scored,
        candidates=candidates,
    )
