"""Metrics against `ir_measures`, query by query: ties, queries without results, queries without judgements (QUA-6)."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import ir_measures
import pytest
from hypothesis import given
from hypothesis import strategies as st
from ir_measures import RR, R, nDCG

from kbretrieval.errors import InvalidParameter
from kbretrieval.evaluation.metrics import ndcg_at, recall_at, reciprocal_rank_at
from kbretrieval.evaluation.runs import measured
from kbretrieval.evidence.trec import qrels_text, run_text

JUDGES = (R @ 3, RR @ 3, nDCG @ 10)
NAMES = [f"d{number}" for number in range(15)]
RANKINGS = st.lists(st.sampled_from(NAMES), unique=True, max_size=15)
GRADES = st.dictionaries(st.sampled_from(NAMES), st.integers(0, 3), min_size=1, max_size=8)


def _judged(
    tmp_path: Path, rankings: Mapping[str, Sequence[str]], qrels: Mapping[str, Mapping[str, int]]
) -> dict[str, tuple[float, ...]]:
    """The oracle's figures, read from TREC files as anybody would."""
    run, judgements = tmp_path / "x.run", tmp_path / "x.qrels"
    run.write_text(run_text(rankings), encoding="utf-8", newline="\n")
    judgements.write_text(qrels_text(qrels), encoding="utf-8", newline="\n")
    found: dict[str, dict[str, float]] = {}
    made = ir_measures.iter_calc(
        JUDGES, ir_measures.read_trec_qrels(str(judgements)), ir_measures.read_trec_run(str(run))
    )
    for each in made:
        found.setdefault(each.query_id, {})[str(each.measure)] = each.value
    return {query: tuple(values[str(judge)] for judge in JUDGES) for query, values in found.items()}


def _agree(
    tmp_path: Path, rankings: Mapping[str, Sequence[str]], qrels: Mapping[str, Mapping[str, int]]
) -> dict[str, tuple[float, ...]]:
    oracle = _judged(tmp_path, rankings, qrels)
    measurable = {query for query, judged in qrels.items() if any(grade > 0 for grade in judged.values())}
    for query in measurable:
        ours = measured(rankings.get(query, ()), qrels[query])
        assert ours == pytest.approx(oracle[query], abs=1e-12)
    assert set(oracle) <= set(qrels)
    return oracle


@pytest.mark.promise("QUA-6")
@given(rankings=st.lists(RANKINGS, min_size=3, max_size=3), grades=st.lists(GRADES, min_size=3, max_size=3))
def test_the_oracle_agrees_on_any_ranking(
    tmp_path_factory: pytest.TempPathFactory, rankings: list[list[str]], grades: list[dict[str, int]]
) -> None:
    run = {f"q{number}": ranking for number, ranking in enumerate(rankings)}
    qrels = {f"q{number}": judged for number, judged in enumerate(grades)}
    _agree(tmp_path_factory.mktemp("trec"), run, qrels)


@pytest.mark.promise("QUA-6", "EVD-8")
def test_ties_are_read_in_our_order(tmp_path: Path) -> None:
    """Scores come from ranks, so a reader that breaks ties by name sees none: both orders are told apart."""
    qrels = {"q": {"b": 1}}
    for ranking, expected in ((["a", "b", "c"], 0.5), (["b", "a", "c"], 1.0), (["c", "a", "b"], 1 / 3)):
        assert _agree(tmp_path, {"q": ranking}, qrels)["q"][1] == pytest.approx(expected)


@pytest.mark.promise("QUA-6", "EVD-8")
def test_the_oracle_breaks_equal_scores_by_name_and_not_by_rank() -> None:
    """Why raw scores are never exported: trec_eval puts the greater name first, whatever the rank column says.

    Its nDCG sees `a` in second place where scores tie, and in first place where they come from ranks.
    """
    qrels = list(ir_measures.read_trec_qrels("q 0 a 1\n"))
    tied = "q Q0 a 1 0.5 x\nq Q0 b 2 0.5 x\n"
    for run, rank in ((tied, 2), (run_text({"q": ["a", "b"]}), 1)):
        found = ir_measures.calc_aggregate([nDCG @ 10], qrels, ir_measures.read_trec_run(run))[nDCG @ 10]
        assert found == pytest.approx(ndcg_at(["b", "a"][-rank:], {"a": 1}, 10))


@pytest.mark.promise("QUA-6")
def test_a_query_without_results_counts_as_zero(tmp_path: Path) -> None:
    qrels = {"q1": {"a": 1}, "q2": {"a": 1}}
    _agree(tmp_path, {"q1": ["a"], "q2": []}, qrels)
    oracle = ir_measures.calc_aggregate(
        [R @ 3],
        ir_measures.read_trec_qrels(qrels_text(qrels)),
        ir_measures.read_trec_run(run_text({"q1": ["a"], "q2": []})),
    )
    assert oracle[R @ 3] == 0.5 == (recall_at(["a"], qrels["q1"], 3) + recall_at([], qrels["q2"], 3)) / 2


@pytest.mark.promise("QUA-6")
def test_a_query_without_judgement_has_no_figure(tmp_path: Path) -> None:
    assert set(_agree(tmp_path, {"q1": ["a"], "q2": ["a"]}, {"q1": {"a": 1}})) == {"q1"}
    for judged in ({}, {"a": 0}):
        with pytest.raises(InvalidParameter, match="at least one relevant"):
            measured(["a"], judged)


@pytest.mark.promise("QUA-6")
def test_grades_are_gains_and_a_negative_one_is_none(tmp_path: Path) -> None:
    qrels = {"q": {"a": 3, "b": 1, "c": -1}}
    _agree(tmp_path, {"q": ["b", "a"]}, {"q": {"a": 3, "b": 1}})
    assert ndcg_at(["c", "a"], qrels["q"], 10) == ndcg_at(["x", "a"], qrels["q"], 10)
    assert recall_at(["c", "a", "b"], qrels["q"], 3) == 1.0


@pytest.mark.promise("QUA-6")
@pytest.mark.parametrize("metric", [recall_at, reciprocal_rank_at, ndcg_at])
def test_a_document_stands_once(metric: object) -> None:
    with pytest.raises(InvalidParameter, match="2 places for 1"):
        metric(["a", "a"], {"a": 1}, 3)  # type: ignore[operator]
