"""Calibration: answers really removed, areas, floors found on one half, and the logistic rule (QUA-3)."""

import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbretrieval import Index, TermEncoder
from kbretrieval.errors import InvalidParameter
from kbretrieval.evaluation.calibration import (
    RULE,
    SIGNALS,
    area,
    calibrate,
    curve,
    flags,
    floor_keeping,
    separated,
    signals,
)
from kbretrieval.evaluation.collection import Collection, Scored, collected
from kbretrieval.evaluation.logistic import fit
from kbretrieval.evaluation.testset import load_judged_set
from kbretrieval.evaluation.vector_cache import VectorCache
from tests.unit.small_set import write_set

SCORES = st.lists(st.tuples(st.integers(0, 5), st.booleans()), min_size=2, max_size=30)


@pytest.mark.promise("QUA-3", "LEX-8")
def test_removed_is_the_same_as_never_there(tmp_path: Path) -> None:
    """The oracle is an index that never held the passages: same scores, same ranks, same statistics."""
    judged = load_judged_set(write_set(tmp_path / "set"))
    removed, question = {"p3", "p8"}, judged.questions[3]
    with collected(judged, VectorCache(TermEncoder(), None)) as collection:
        before = collection.scored(question.text)
        with collection.without(removed):
            without = collection.scored(question.text)
        after = collection.scored(question.text)
    with Index.open(tmp_path / "oracle.sqlite", None, 4096, 0) as index:
        for passage in judged.passages:
            if passage.id not in removed:
                index.upsert("testset", passage.id, 1, "text", passage.source, ["*"])
        oracle = Collection(index, VectorCache(TermEncoder(), None)).scored(question.text)
    assert _shown(without) == _shown(oracle) != _shown(before)
    assert _shown(after) == _shown(before), "the passages are back"
    assert signals(without) == signals(oracle)
    masked = [row for row in _shown(before)["lexical"] if row[0] not in removed]
    assert masked != _shown(without)["lexical"], "a mask would keep the statistics of the absent answer"


def _shown(scored: Scored) -> dict[str, list[tuple[str, float]]]:
    return {name: [(scored.documents[key], score) for key, score in rows] for name, rows in scored.lists.items()}


@pytest.mark.promise("QUA-3")
def test_the_signals_are_what_they_say() -> None:
    lists = {"lexical": ((1, 4.0), (2, 3.0)), "vector": ((2, 0.9), (3, 0.5), (1, 0.4))}
    assert signals(Scored(2, lists, {}, {}, {})) == (2.0, 0.9, 0.25, (1 / 3 + 1 / 2) / 2)
    assert signals(Scored(0, {"vector": ((2, 0.9),)}, {}, {}, {})) == (0.0, 0.9, 0.0, 0.0)
    assert signals(Scored(3, {"lexical": (), "vector": ()}, {}, {}, {})) == (0.0, 0.0, 0.0, 0.0)
    far = {"lexical": ((1, 4.0),), "vector": (*((n, 0.9 - n / 100) for n in range(2, 12)), (1, 0.1))}
    assert signals(Scored(2, far, {}, {}, {}))[3] == 0.0, "beyond the first ten"


@pytest.mark.promise("QUA-3")
@given(SCORES)
def test_the_area_is_the_share_of_ordered_pairs(rows: list[tuple[int, bool]]) -> None:
    scores, answered = np.array([float(s) for s, _ in rows]), np.array([a for _, a in rows])
    yes, no = scores[answered], scores[~answered]
    if not len(yes) or not len(no):
        with pytest.raises(InvalidParameter, match="both kinds"):
            area(scores, answered)
        return
    pairs = [1.0 if y > n else 0.5 if y == n else 0.0 for y in yes for n in no]
    assert math.isclose(area(scores, answered), sum(pairs) / len(pairs))


@pytest.mark.promise("QUA-3")
@given(st.lists(st.integers(0, 9), min_size=1, max_size=40), st.sampled_from([0.5, 0.8, 0.95, 0.99, 1.0]))
def test_a_floor_is_the_greatest_that_keeps_enough(values: list[int], share: float) -> None:
    scores = np.array(values, np.float64)
    floor = floor_keeping(scores, share)
    assert (scores >= floor).mean() >= share - 1e-9
    assert (scores > floor).mean() < share


@pytest.mark.promise("QUA-3")
def test_a_floor_is_found_on_one_half_and_measured_on_the_other() -> None:
    scores = np.array([5.0, 5.0, 1.0, 1.0, 9.0, 4.0, 0.0, 4.5])
    answered = np.array([True, True, False, False, True, True, False, False])
    fitted = np.array([True, True, True, True, False, False, False, False])
    (point,) = curve(scores, answered, fitted, (1.0,))
    assert (point.floor, point.kept, point.refused) == (5.0, 0.5, 1.0)


@pytest.mark.promise("QUA-3")
def test_areas_are_those_of_the_measuring_half() -> None:
    """The fitting half is told apart without a mistake, and would make every area look better than it is."""
    answered, fitted = flags(40, 3)
    table = np.random.default_rng(5).normal(size=(40, len(SIGNALS)))
    table[fitted & answered] += 100.0
    found = separated(table, answered, fitted)
    for column, name in enumerate(SIGNALS):
        assert area(table[fitted, column], answered[fitted]) == 1.0
        assert found.named(name).area == area(table[~fitted, column], answered[~fitted]) < 0.9
    scores = fit(table[fitted], answered[fitted]).score(table)
    assert found.named(RULE).area == area(scores[~fitted], answered[~fitted]) < 0.9


@pytest.mark.promise("QUA-3")
def test_flags_split_both_kinds_in_half() -> None:
    for count in (8, 9, 31, 100):
        answered, fitted = flags(count, 3)
        kept, lost = int(answered.sum()), int((~answered).sum())
        assert lost == count // 2 and kept == count - lost
        assert (answered & fitted).sum() == kept // 2 and (~answered & fitted).sum() == lost // 2
    assert not np.array_equal(flags(100, 3)[0], flags(100, 4)[0])


@pytest.mark.promise("QUA-3")
def test_the_rule_finds_the_weights_that_made_the_labels() -> None:
    source = np.random.default_rng(7)
    features = source.normal(size=(4000, 3)) * [1.0, 5.0, 1.0] + [0.0, 3.0, 0.0]
    chance = 1.0 / (1.0 + np.exp(-(2.0 * features[:, 0] - 0.4 * (features[:, 1] - 3.0))))
    labels = source.random(4000) < chance
    rule = fit(features, labels)
    assert rule.weights[:3] == pytest.approx([2.0, -2.0, 0.0], abs=0.2)  # of standardised features
    assert area(rule.score(features), labels) > 0.88


@pytest.mark.promise("QUA-3")
def test_a_rule_stays_finite() -> None:
    apart = fit(np.array([[0.0, 1.0], [1.0, 1.0], [8.0, 1.0], [9.0, 1.0]]), np.array([False, False, True, True]))
    assert np.isfinite(apart.weights).all() and apart.weights[1] == pytest.approx(0.0)
    with pytest.raises(InvalidParameter, match="with and without"):
        fit(np.zeros((3, 1)), np.ones(3, np.bool_))


@pytest.mark.promise("QUA-3")
def test_the_measuring_half_never_moves_the_rule() -> None:
    source = np.random.default_rng(1)
    table, (answered, fitted) = source.normal(size=(40, 4)), flags(40, 1)
    changed = np.where(fitted[:, None], table, table + 100.0)
    one, other = separated(table, answered, fitted), separated(changed, answered, fitted)
    assert one.weights == other.weights
    floors = [[point.floor for point in found.named(RULE).curve] for found in (one, other)]
    assert floors[0] == floors[1]


@pytest.mark.promise("QUA-3")
def test_a_small_set_is_calibrated_the_same_twice(tmp_path: Path) -> None:
    judged = load_judged_set(write_set(tmp_path / "set"))
    with collected(judged, VectorCache(TermEncoder(), None)) as collection:
        one, two = (calibrate(judged, collection, seed=5) for _ in range(2))
    assert [item.name for item in one.separations] == [*SIGNALS, RULE]
    assert np.array_equal(one.table, two.table) and one.separations == two.separations
    assert one.named("lexical_per_term").area > 0.9, "an answer that is there shares the question's numbers"


@pytest.mark.promise("QUA-3")
def test_too_few_questions_are_refused(tmp_path: Path) -> None:
    judged = load_judged_set(write_set(tmp_path / "set", passages=12, questions=7))
    with (
        collected(judged, VectorCache(TermEncoder(), None)) as collection,
        pytest.raises(InvalidParameter, match=r"at least 8 questions .* 7 given"),
    ):
        calibrate(judged, collection, seed=1)
