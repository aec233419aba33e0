"""Seeded halves, bootstrap intervals, and the gains of a fusion over the better channel (QUA-2)."""

import math

import numpy as np
import pytest

from kbretrieval.errors import InvalidParameter
from kbretrieval.evaluation.bootstrap import HALVES, half_of, intervals
from kbretrieval.evaluation.comparison import gains
from kbretrieval.evaluation.runs import CHOSEN, Run, Setting
from kbretrieval.options import SearchOptions


@pytest.mark.promise("QUA-2")
def test_a_half_is_the_same_on_every_machine() -> None:
    assert half_of(11, 7).tolist() == HALF_OF_11_SEED_7
    for count in (0, 1, 2, 9, 10):
        half = half_of(count, 3)
        assert len(half) == count // 2 == len(set(half.tolist())) and list(half) == sorted(half)
    assert len({tuple(half_of(50, seed)) for seed in range(HALVES)}) == HALVES


HALF_OF_11_SEED_7 = [3, 4, 6, 9, 10]


@pytest.mark.promise("QUA-2")
def test_halves_are_fair() -> None:
    chosen = np.bincount(np.concatenate([half_of(40, seed) for seed in range(400)]), minlength=40)
    assert chosen.min() > 140 and chosen.max() < 260  # 200 ± 6 standard deviations


@pytest.mark.promise("QUA-2")
def test_an_interval_is_that_of_theory() -> None:
    """Half of 400 outcomes are 1: the mean's standard error is .025, the interval ±1.96 of it."""
    (found,) = intervals(np.repeat([[0.0], [1.0]], 200, axis=0), seed=5, resamples=4000)
    assert found.mean == 0.5
    assert math.isclose(found.low, 0.5 - 1.96 * 0.025, abs_tol=0.004)
    assert math.isclose(found.high, 0.5 + 1.96 * 0.025, abs_tol=0.004)
    assert intervals(np.repeat([[0.0], [1.0]], 200, axis=0), seed=5, resamples=4000) == [found]


@pytest.mark.promise("QUA-2")
def test_columns_stay_paired() -> None:
    """A resample draws whole rows: a column and its shifted copy have the same interval, shifted."""
    one = np.arange(30.0)
    first, second = intervals(np.column_stack([one, one + 100.0]), seed=1, resamples=60)
    assert math.isclose(second.low - first.low, 100.0) and math.isclose(second.high - first.high, 100.0)


@pytest.mark.promise("QUA-2")
def test_an_interval_has_the_same_bits_on_every_machine() -> None:
    """Sums go from row to row; those of a matrix product go as the processor's vectors do."""
    figures = np.random.default_rng(3).random((601, 2))
    drawn = (np.random.PCG64(2).random_raw(601) % np.uint64(601)).tolist()
    sums = [0.0, 0.0]
    for row, pair in enumerate(figures.tolist()):
        sums = [total + drawn.count(row) * value for total, value in zip(sums, pair, strict=True)]
    for asked in (figures, np.asfortranarray(figures)):
        found = intervals(asked, seed=2, resamples=1)
        assert [(item.low, item.high) for item in found] == [(total / 601, total / 601) for total in sums]


@pytest.mark.promise("QUA-2")
def test_nothing_has_no_interval() -> None:
    with pytest.raises(InvalidParameter, match="0 and 2000"):
        intervals(np.zeros((0, 3)), seed=1)


def _runs(lexical: float, vector: float, chosen: float, count: int = 200) -> dict[str, Run]:
    """Runs with a share of ones in every measure, nested: who finds less finds a part of it."""
    made = {}
    for name, share in (("lexical", lexical), ("vector", vector), (CHOSEN, chosen)):
        column = (np.arange(count) * 0.61803398875 % 1.0 < share).astype(np.float64)
        made[name] = Run(Setting(name, "hybrid", SearchOptions()), {}, np.column_stack([column] * 3))
    return made


@pytest.mark.promise("QUA-2")
@pytest.mark.parametrize(
    ("lexical", "vector", "chosen", "over", "holds"),
    [(0.5, 0.6, 0.7, "vector", True), (0.6, 0.5, 0.55, "lexical", False), (0.5, 0.4, 0.5, "lexical", False)],
    ids=["gains", "loses to the better one", "is only as good"],
)
def test_a_gain_is_over_the_better_channel(
    lexical: float, vector: float, chosen: float, over: str, holds: bool
) -> None:
    found = gains(_runs(lexical, vector, chosen), [CHOSEN])
    assert [gain.over for gain in found] == [over] * 3
    assert [gain.holds for gain in found] == [holds] * 3
    assert all(len(gain.halves) == HALVES for gain in found)
    assert all(math.isclose(gain.interval.mean, chosen - max(lexical, vector), abs_tol=0.011) for gain in found)


@pytest.mark.promise("QUA-2")
def test_a_small_loss_within_noise_does_not_hold() -> None:
    """The mean gain may be above 0 while the interval reaches below -.005: that is no gain."""
    runs = _runs(0.5, 0.4, 0.5, count=60)
    figures = runs[CHOSEN].figures.copy()
    missed = np.flatnonzero(figures[:, 0] == 0.0)[:5]
    found = np.flatnonzero(figures[:, 0] == 1.0)[:4]
    figures[missed], figures[found] = 1.0, 0.0
    runs[CHOSEN] = Run(runs[CHOSEN].setting, {}, figures)
    for gain in gains(runs, [CHOSEN]):
        assert gain.interval.mean > 0.0 and gain.interval.low < -0.005 and not gain.holds
