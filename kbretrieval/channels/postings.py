"""Posting lists of a query term over the rows that a caller may read."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from kbretrieval.analysis import term_code
from kbretrieval.snapshot.segment import Ints, Postings, Segment
from kbretrieval.snapshot.snapshot import Snapshot

LookUp = Callable[[Segment, str], Postings]


def exact_postings(segment: Segment, term: str) -> Postings:
    """Return the posting list of exactly one term in one segment."""
    return segment.postings(term_code(term))


def eligible_postings(
    snapshot: Snapshot, mask: NDArray[np.bool_], term: str, look_up: LookUp = exact_postings
) -> tuple[Ints, Ints]:
    """Return the eligible rows that hold a term, ascending over all segments, and its count in each."""
    rows, counts, base = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)], 0
    for segment in snapshot.segments:
        found = look_up(segment, term)
        at = found.rows.astype(np.int64) + base
        keep = mask[at]
        rows.append(at[keep])
        counts.append(found.counts[keep])
        base += len(segment)
    return np.concatenate(rows), np.concatenate(counts)
