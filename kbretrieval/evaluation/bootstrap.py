"""Paired resampling: halves and bootstrap intervals from one seed, the same on every machine (QUA-2).

Randomness is drawn as raw words of PCG64: NumPy promises the stream of a bit generator for good, and that of its
distributions not.
"""

from dataclasses import dataclass

import numpy as np
from numpy.random import PCG64
from numpy.typing import NDArray

from kbretrieval.errors import InvalidParameter

HALVES = 20
RESAMPLES = 2000
LEVEL = 0.95
_BLOCK = 50  # resamples drawn at once: memory stays below 50 numbers a question

Figures = NDArray[np.float64]


def half_of(count: int, seed: int) -> NDArray[np.int64]:
    """Return the ascending positions of a random half (rounded down) of `count` things.

    Example:
        >>> len(half_of(7, 1)), set(half_of(7, 1)) < set(range(7))
        (3, True)
    """
    order = np.argsort(PCG64(seed).random_raw(count), kind="stable")
    return np.sort(order[: count // 2])


@dataclass(frozen=True, slots=True)
class Interval:
    """A percentile bootstrap interval of a mean, level .95."""

    mean: float
    low: float
    high: float


def intervals(figures: Figures, seed: int, resamples: int = RESAMPLES) -> list[Interval]:
    """Return the interval of each column's mean; a resample draws whole rows, so that columns stay paired.

    Raises `invalid_parameter` without rows. An interval speaks of questions like these, not of other corpora.

    Example:
        >>> intervals(np.ones((5, 1)), seed=1, resamples=10)[0].low
        1.0
    """
    count, columns = figures.shape
    if not count or resamples < 1:
        raise InvalidParameter(f"rows and resamples are required, {count} and {resamples} given")
    figures, source, means = np.ascontiguousarray(figures), PCG64(seed), np.empty((resamples, columns))
    for begin in range(0, resamples, _BLOCK):
        block = min(_BLOCK, resamples - begin)
        drawn = (source.random_raw(block * count) % np.uint64(count)).astype(np.int64).reshape(block, count)
        for number, rows in enumerate(drawn, begin):
            # No matrix product: the order of its sums is the processor's.
            means[number] = np.add.reduce(np.bincount(rows, minlength=count)[:, None] * figures, axis=0) / count
    tail = 100 * (1 - LEVEL) / 2
    low, high = np.percentile(means, [tail, 100 - tail], axis=0)
    return [
        Interval(float(mean), float(least), float(most))
        for mean, least, most in zip(figures.mean(axis=0), low, high, strict=True)
    ]
