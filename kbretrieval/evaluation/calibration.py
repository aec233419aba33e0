"""When to abstain: signals of questions with and without an answer in the corpus, and how well they tell them apart.

Protocol (QUA-3): for each question of a seeded random half its relevant passages are taken out of the corpus, removed
and not masked: the channels rank over the other rows alone, with the statistics of those rows, which LEX-8 makes equal
to an index that never held them. Every question is asked once, so both kinds are equally many. A rule is fitted on one
half of each kind and measured on the other.
"""

import sys
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

from kbretrieval.errors import InvalidParameter
from kbretrieval.evaluation.bootstrap import half_of
from kbretrieval.evaluation.collection import Collection, Rows, Scored
from kbretrieval.evaluation.logistic import fit
from kbretrieval.evaluation.testset import JudgedSet

SIGNALS = ("lexical_per_term", "best_cosine", "margin", "agreement")
RULE = "logistic-four-signals/1"
KEPT = (0.5, 0.8, 0.9, 0.95, 0.99)
FIRST = 10

Table = NDArray[np.float64]
Flags = NDArray[np.bool_]


def signals(scored: Scored) -> tuple[float, float, float, float]:
    """Return a question's four signals, in the order of `SIGNALS`.

    lexical_per_term  best lexical score / distinct query terms (0 without a candidate)
    best_cosine       best cosine at or above the encoder's floor (0 without one)
    margin            the lexical best's lead over the second, as a share of the best (0 without a candidate)
    agreement         mean of 1 / rank of each channel's first in the other, among the first ten (0 beyond)
    """
    lexical, vector = scored.rows("lexical"), scored.rows("vector")
    best = lexical[0][1] if lexical else 0.0
    second = lexical[1][1] if len(lexical) > 1 else 0.0
    return (
        best / scored.terms if scored.terms else 0.0,
        vector[0][1] if vector else 0.0,
        (best - second) / best if best else 0.0,
        (_reciprocal_rank(lexical, vector) + _reciprocal_rank(vector, lexical)) / 2,
    )


def _reciprocal_rank(one: Rows, other: Rows) -> float:
    """Return 1 / rank of the first of one list among the first ten of the other, or 0.0."""
    ranks = (rank for rank, (key, _) in enumerate(other[:FIRST], 1) if one and key == one[0][0])
    return 1.0 / next(ranks, np.inf)


def area(scores: Table, answered: Flags) -> float:
    """Return the area under the curve: the chance that a question with an answer scores higher, ties counted half.

    Example:
        >>> area(np.array([3.0, 1.0, 1.0]), np.array([True, True, False]))
        0.75
    """
    yes, no = scores[answered], np.sort(scores[~answered])
    if not len(yes) or not len(no):
        raise InvalidParameter(f"questions of both kinds are required, {len(yes)} with and {len(no)} without an answer")
    below = np.searchsorted(no, yes, "left") + np.searchsorted(no, yes, "right")
    return float(below.sum()) / (2 * len(yes) * len(no))


@dataclass(frozen=True, slots=True)
class FloorPoint:
    """A floor, and the shares of questions that stay at or above it (with an answer) and below it (without one)."""

    wanted: float
    floor: float
    kept: float
    refused: float


def floor_keeping(scores: Table, share: float) -> float:
    """Return the greatest floor that leaves at least `share` of the scores at or above it.

    Example:
        >>> floor_keeping(np.array([1.0, 2.0, 3.0, 4.0]), 0.75)
        2.0
    """
    return float(np.sort(scores)[::-1][max(int(np.ceil(share * len(scores) - 1e-9)), 1) - 1])


def curve(scores: Table, answered: Flags, fitted: Flags, kept: Sequence[float] = KEPT) -> tuple[FloorPoint, ...]:
    """Return a point for each share to be kept: the floor is found on the fitting half, the shares on the other."""
    yes, no = scores[answered & ~fitted], scores[~answered & ~fitted]
    made = []
    for share in kept:
        floor = floor_keeping(scores[answered & fitted], share)
        made.append(FloorPoint(share, floor, float((yes >= floor).mean()), float((no < floor).mean())))
    return tuple(made)


@dataclass(frozen=True, slots=True)
class Separation:
    """How well one signal or rule tells the two kinds apart on the measuring half."""

    name: str
    area: float
    curve: tuple[FloorPoint, ...]


@dataclass(frozen=True, slots=True)
class Calibration:
    """The signals of all questions, which of them have an answer, which half was fitted, and what came out."""

    table: Table
    answered: Flags
    fitted: Flags
    separations: tuple[Separation, ...]
    weights: dict[str, float]

    def named(self, name: str) -> Separation:
        """Return the result of one signal or of the rule."""
        return next(item for item in self.separations if item.name == name)


def flags(count: int, seed: int) -> tuple[Flags, Flags]:
    """Return which of `count` questions keep their answer, and which are fitted: half of each kind.

    Example:
        >>> answered, fitted = flags(8, 1)
        >>> int(answered.sum()), int((answered & fitted).sum()), int((~answered & fitted).sum())
        (4, 2, 2)
    """
    answered, fitted = np.ones(count, np.bool_), np.zeros(count, np.bool_)
    answered[half_of(count, seed)] = False
    for number, kind in enumerate((answered, ~answered), 1):
        places = np.flatnonzero(kind)
        fitted[places[half_of(len(places), seed + number)]] = True
    return answered, fitted


def signal_table(judged: JudgedSet, collection: Collection, answered: Flags) -> Table:
    """Return the signals of every measurable question, shape (questions, 4).

    Questions that lose the same passages are asked together, so that each passage is taken out as rarely as possible.
    """
    table = np.zeros((len(answered), len(SIGNALS)))
    groups: dict[tuple[str, ...], list[int]] = {}
    for number, question in enumerate(judged.measurable):
        removed = () if answered[number] else tuple(sorted(question.relevant))
        groups.setdefault(removed, []).append(number)
    with tqdm(total=len(answered), desc="calibrating", disable=None, file=sys.stderr) as bar:
        for removed, numbers in groups.items():
            with collection.without(removed):
                table[numbers] = [signals(collection.scored(judged.measurable[number].text)) for number in numbers]
            bar.update(len(numbers))
    return table


def separated(table: Table, answered: Flags, fitted: Flags) -> Calibration:
    """Return the separation of each signal, and of the logistic rule over all four, all on the measuring half."""
    rule = fit(table[fitted], answered[fitted])
    columns = {name: table[:, column] for column, name in enumerate(SIGNALS)} | {RULE: rule.score(table)}
    made = tuple(
        Separation(name, area(scores[~fitted], answered[~fitted]), curve(scores, answered, fitted))
        for name, scores in columns.items()
    )
    weights = dict(zip((*SIGNALS, "intercept"), rule.weights.tolist(), strict=True))
    return Calibration(table, answered, fitted, made, weights)


def calibrate(judged: JudgedSet, collection: Collection, seed: int) -> Calibration:
    """Return the calibration of a test set; raises `invalid_parameter` below eight measurable questions."""
    count = len(judged.measurable)
    if count < 8:
        raise InvalidParameter(f"at least 8 questions with a relevant passage are required, {count} given")
    answered, fitted = flags(count, seed)
    return separated(signal_table(judged, collection, answered), answered, fitted)
