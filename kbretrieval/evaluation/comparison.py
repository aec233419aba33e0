"""A fusion setting against the better single channel: gains over halves, and paired bootstrap intervals (QUA-2)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from kbretrieval.evaluation.bootstrap import HALVES, Interval, half_of, intervals
from kbretrieval.evaluation.runs import MEASURES, Figures, Run

SEED = 2026
NO_LOSS = -0.005
SINGLE = ("lexical", "vector")


@dataclass(frozen=True, slots=True)
class Gain:
    """One setting's gain over the better single channel in one measure.

    `over` is the channel with the higher mean on all questions. `halves` holds the gain on each seeded half, each time
    over the channel that is better on that very half. `interval` is of the paired difference to `over`.
    """

    setting: str
    measure: str
    over: str
    halves: tuple[float, ...]
    interval: Interval

    @property
    def mean_gain(self) -> float:
        """The mean gain over the halves."""
        return sum(self.halves) / len(self.halves)

    @property
    def holds(self) -> bool:
        """Whether the mean gain is above 0 and the interval lies above -.005."""
        return self.mean_gain > 0.0 and self.interval.low > NO_LOSS

    def to_dict(self) -> dict[str, Any]:
        """Return what a report shows of it."""
        return {
            "setting": self.setting,
            "measure": self.measure,
            "over": self.over,
            "mean_gain_over_halves": self.mean_gain,
            "least_gain_over_halves": min(self.halves),
            "gain": self.interval.mean,
            "interval": [self.interval.low, self.interval.high],
            "holds": self.holds,
        }


def _half_gains(own: Figures, singles: Sequence[Figures], seed: int) -> list[tuple[float, ...]]:
    """Return, for each measure, the gain on each half."""
    made = []
    for number in range(HALVES):
        half = half_of(len(own), seed + number)
        better = np.max([single[half].mean(axis=0) for single in singles], axis=0)
        made.append(own[half].mean(axis=0) - better)
    return [tuple(float(value) for value in column) for column in np.transpose(made)]


def gains(runs: Mapping[str, Run], names: Sequence[str], seed: int = SEED) -> tuple[Gain, ...]:
    """Return the gains of the named settings in each measure; `runs` holds both single channels.

    Fewer than two measurable questions have no half: an empty tuple.

    Example:
        >>> from kbretrieval.evaluation.runs import run_of, settings
        >>> from kbretrieval.evaluation.testset import JudgedQuestion
        >>> asked = [JudgedQuestion(str(n), "?", {"a": 1}) for n in range(4)]
        >>> made = {s.name: run_of(s, {q.id: ("a",) for q in asked}, asked) for s in settings()}
        >>> [gain.holds for gain in gains(made, ["rrf-60"])]
        [False, False, False]
    """
    singles = [runs[name].figures for name in SINGLE]
    if len(singles[0]) < 2:
        return ()
    better = np.argmax([figures.mean(axis=0) for figures in singles], axis=0)
    over = np.column_stack([singles[channel][:, column] for column, channel in enumerate(better)])
    differences = np.hstack([runs[name].figures - over for name in names])
    found = intervals(differences, seed)
    made = []
    for position, name in enumerate(names):
        halves = _half_gains(runs[name].figures, singles, seed)
        for column, measure in enumerate(MEASURES):
            interval = found[position * len(MEASURES) + column]
            made.append(Gain(name, measure, SINGLE[better[column]], halves[column], interval))
    return tuple(made)
