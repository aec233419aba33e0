"""What every channel returns, and the one way in which rows become a ranked list."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from kbretrieval.results import ChannelTrace

Scores = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Ranked:
    """A channel's candidates: (chunk key, raw score), best first, and its trace."""

    rows: tuple[tuple[int, float], ...]
    trace: ChannelTrace


@dataclass(frozen=True, slots=True)
class QueryTerms:
    """The terms that both channels use (LEX-4): the first 64 distinct ones, their counts in the query, and how many
    distinct ones it has."""

    used: tuple[str, ...]
    counts: tuple[int, ...]
    given: int


_SAMPLE = 16_384


def least_of_best(scores: Scores, window: int) -> float:
    """Return the `window`-th largest score, or minus infinity where there are no more than `window`.

    The `window`-th largest of any part is at most that of the whole, so a part first rules out most rows.

    Example:
        >>> least_of_best(np.array([0.1, 0.9, 0.5]), 2)
        0.5
    """
    if len(scores) <= window:
        return float("-inf")
    sample = scores[:: len(scores) // _SAMPLE] if len(scores) > 2 * _SAMPLE else scores[:0]
    if len(sample) > window:
        scores = scores[scores >= _kth(sample, window)]
    return _kth(scores, window)


def _kth(scores: Scores, window: int) -> float:
    return float(np.partition(scores, len(scores) - window)[len(scores) - window])


def best(keys: NDArray[np.int64], scores: Scores, window: int) -> tuple[tuple[int, float], ...]:
    """Return the `window` best (key, score) pairs: score descending, then key ascending. A total order, ties whole.

    `keys` ascend. The cut never falls at random among equal scores: every row that reaches the last kept score is
    sorted.

    Example:
        >>> best(np.array([1, 2, 3]), np.array([0.5, 0.9, 0.5]), 2)
        ((2, 0.9), (1, 0.5))
    """
    if len(scores) > window:
        kept = np.flatnonzero(scores >= least_of_best(scores, window))
        keys, scores = keys[kept], scores[kept]
    order = np.lexsort((keys, -scores))[:window]
    return tuple(zip(keys[order].tolist(), scores[order].tolist(), strict=True))


def skipped(channel: str, method: str, statistics: str, reason: str, terms: QueryTerms, eligible: int) -> Ranked:
    """Return the empty list of a channel that did not run, with the reason."""
    empty = ran(channel, method, statistics, terms, (), floor=None, eligible=eligible, scored=0, candidates=0)
    return Ranked((), replace(empty.trace, state="skipped", reason=reason))


def ran(
    channel: str,
    method: str,
    statistics: str,
    terms: QueryTerms,
    rows: Sequence[tuple[int, float]],
    *,
    floor: float | None,
    eligible: int,
    scored: int,
    candidates: int,
) -> Ranked:
    """Return a ranked list with its trace; `candidates` are the scored rows at or above the floor."""
    trace = ChannelTrace(
        channel=channel,
        state="run",
        reason=None,
        method=method,
        statistics=statistics,
        floor=floor,
        terms_given=terms.given,
        terms_used=len(terms.used),
        eligible=eligible,
        scored=scored,
        below_floor=scored - candidates,
        beyond_window=candidates - len(rows),
        returned=len(rows),
    )
    return Ranked(tuple(rows), trace)
