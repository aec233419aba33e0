"""The vector channel: exact cosine over eligible rows, sparse or dense (VEC-1, VEC-7).

Dense ranking goes from coarse to exact and loses nothing on the way. `select_dense` bounds every eligible row's score
by its int8 row and keeps those that can be among the best (the theorem stands in `encoders.quantizer`). `rank_dense`
has their float32 rows; a float32 product a(i) lies within e = d * 2^-23 of the exact s(i) (twice the textbook bound for
unit vectors of dimension d). Theorem: every row of the exact best k has a(i) >= A - 2e, where A is the k-th largest a.
Proof: the k rows with the largest a score at least A - e, so a row of the best k does, too, and then a(i) >= A - 2e.
Those few are scored in float64, multiplied and summed row by row in one order, so that equal texts score exactly equal.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kbretrieval.channels.postings import eligible_postings
from kbretrieval.channels.ranking import QueryTerms, Ranked, Scores, best, least_of_best, ran, skipped
from kbretrieval.encoders.quantizer import CodedQuery, CodedRows, integer_dots
from kbretrieval.errors import IndexCorrupt
from kbretrieval.snapshot.segment import Ints
from kbretrieval.snapshot.snapshot import Eligible, Snapshot

STATISTICS = "none"
SPARSE = "term-cosine/1"
DENSE = "exact-cosine/1"
BLOCK_ROWS = 16_384
MAX_UNSURE = 512
MAX_RUNS = 16


def rank_sparse(snapshot: Snapshot, eligible: Eligible, terms: QueryTerms, floor: float, window: int) -> Ranked:
    """Return the best rows by cosine of term counts: integer dot products, one division a row."""
    if not terms.used:
        return skipped("vector", SPARSE, STATISTICS, "no_terms", terms, eligible.count)
    dots = np.zeros(len(snapshot.alive), np.float64)  # integers, exact below 2^53
    for term, count in zip(terms.used, terms.counts, strict=True):
        for part in eligible_postings(snapshot, eligible, term):
            part.of(dots)[part.rows] += count * part.counts
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


def select_dense(snapshot: Snapshot, eligible: Eligible, query: CodedQuery, floor: float, window: int) -> Selection:
    """Return which eligible rows may belong to the best `window` at or above the floor; loses none of them.

    Raises `index_corrupt` where a readable row's int8 row is damaged: a list without it would look complete.
    """
    _refuse_damage(snapshot, eligible)
    rows, lower, upper = _bounds(snapshot, eligible, query)
    reach = max(floor, least_of_best(lower, window))
    chosen = np.flatnonzero(upper >= reach)
    straddling = np.flatnonzero((lower < floor) & (upper >= floor))
    few = len(straddling) <= MAX_UNSURE
    keys = snapshot.column("chunk_keys")
    middle = (lower[straddling] + upper[straddling]) / 2
    best_keys, unsure = keys[rows[chosen]], keys[rows[straddling]]
    return Selection(
        keys=best_keys,
        scored=len(rows),
        surely_above=int(np.count_nonzero(lower >= floor)),
        unsure=unsure if few else None,
        roughly_above=int(np.count_nonzero(middle >= floor)),
        wanted=np.union1d(best_keys, unsure) if few else best_keys,
    )


def _refuse_damage(snapshot: Snapshot, eligible: Eligible) -> None:
    count = int(np.count_nonzero(snapshot.column("damaged")[eligible.rows]))
    if count:
        raise IndexCorrupt(f"{eligible.count} rows are eligible, {count} of them have a damaged vector")


def _bounds(snapshot: Snapshot, eligible: Eligible, query: CodedQuery) -> tuple[Ints, Scores, Scores]:
    """Return the eligible rows that have a vector, ascending over all segments, and the bounds of their scores."""
    rows, lower, upper = [np.zeros(0, np.int64)], [np.zeros(0)], [np.zeros(0)]
    for held, block in _blocks(snapshot, eligible):
        low, high = query.bounds(integer_dots(block.codes, query.codes), block)
        rows.append(held)
        lower.append(low)
        upper.append(high)
    return np.concatenate(rows), np.concatenate(lower), np.concatenate(upper)


def _blocks(snapshot: Snapshot, eligible: Eligible) -> Iterator[tuple[Ints, CodedRows]]:
    """Yield eligible rows with a vector in blocks that fit a cache: views of runs, copies of scattered rows."""
    base = 0
    for segment in snapshot.segments:
        begin, end = np.searchsorted(eligible.rows, (base, base + len(segment)))
        here = eligible.rows[begin:end] - base
        held = here[segment.has_vector[here]]
        for at in range(0, len(held), BLOCK_ROWS):
            for part in _runs(held[at : at + BLOCK_ROWS]):
                whole = part[-1] - part[0] + 1 == len(part)
                place = slice(int(part[0]), int(part[-1]) + 1) if whole else part
                rows = segment.vectors
                yield part + base, CodedRows(rows.codes[place], rows.residuals[place], rows.norms[place])
        base += len(segment)


def _runs(rows: Ints) -> list[Ints]:
    """Return ascending rows cut at their gaps where these are few, so that a hidden or dead row costs no copy."""
    gaps = np.flatnonzero(np.diff(rows) > 1) + 1
    return np.split(rows, gaps) if len(gaps) <= MAX_RUNS else [rows]


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
    if selection.unsure is None:
        candidates += selection.roughly_above
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
