"""Posting lists of a query term over the rows that a caller may read."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kbretrieval.analysis import term_code
from kbretrieval.snapshot.eligible import Eligible
from kbretrieval.snapshot.segment import Ints, Postings, Segment
from kbretrieval.snapshot.snapshot import Snapshot

LookUp = Callable[[Segment, str], Postings]


@dataclass(frozen=True, slots=True)
class Part:
    """The eligible rows of one segment that hold a term: `rows` count from the segment's first row, `base`."""

    base: int
    size: int
    rows: Ints
    counts: NDArray[np.float64]

    def of(self, column: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return this segment's stretch of a column over all rows, as a view."""
        return column[self.base : self.base + self.size]


def exact_postings(segment: Segment, term: str) -> Postings:
    """Return the posting list of exactly one term in one segment."""
    return segment.postings(term_code(term))


def eligible_postings(
    snapshot: Snapshot, eligible: Eligible, term: str, look_up: LookUp = exact_postings
) -> list[Part]:
    """Return the eligible rows that hold a term and its count in each, segment by segment; empty parts are left out.

    A posting list is passed over whole, hidden rows included: that costs time, which a caller could measure, and moves
    no score.
    """
    everything = eligible.count == len(snapshot.alive)
    parts, base = [], 0
    for segment in snapshot.segments:
        found = look_up(segment, term)
        rows, counts = found.rows, found.counts
        if not everything:
            keep = eligible.mask[base : base + len(segment)][rows]
            rows, counts = rows[keep], counts[keep]
        if len(rows):
            # Wide indexes now: each use of narrow ones would widen them again.
            parts.append(Part(base, len(segment), rows.astype(np.int64), counts.astype(np.float64)))
        base += len(segment)
    return parts
