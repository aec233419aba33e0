"""An independent judge: `ir_measures` reproduces the table from ranks alone."""

import ir_measures
import pytest
from ir_measures import RR, Qrel, R, ScoredDoc, Success, nDCG

from kbretrieval.offline import CHANNELS, Run, run_experiment
from tests.offline.cases import FIXTURE, TABLE

# The judge's nDCG takes grades as gains; ours are 2^grade - 1 (OFF-47).
NDCG = nDCG(gains={1: 1, 2: 3, 3: 7}) @ 3
QRELS = [Qrel(query.id, name, grade) for query in FIXTURE.queries for name, grade in query.qrels.items()]


def _from_ranks(run: Run, channel: str) -> list[ScoredDoc]:
    """Scores that fall with the rank: the judge orders ties by a rule of its own, so that it must not see any."""
    return [
        ScoredDoc(each.query.id, name, -float(rank))
        for each in run.queries
        for rank, name in enumerate(each.ids(channel), start=1)
    ]


@pytest.mark.promise("OFF-45", "OFF-46", "OFF-47", "OFF-49", "OFF-55")
@pytest.mark.parametrize("channel", CHANNELS)
def test_it_reproduces_the_table_to_six_decimals(channel: str) -> None:
    found = ir_measures.calc_aggregate([R @ 3, RR @ 3, NDCG], QRELS, _from_ranks(run_experiment(FIXTURE), channel))
    assert (round(found[R @ 3], 6), round(found[RR @ 3], 6), round(found[NDCG], 6)) == TABLE[channel]


@pytest.mark.promise("OFF-45", "OFF-46", "OFF-47", "OFF-50")
@pytest.mark.parametrize("channel", CHANNELS)
def test_it_agrees_query_by_query(channel: str) -> None:
    run = run_experiment(FIXTURE)
    names = {R @ 3: "recall", RR @ 3: "mrr", NDCG: "ndcg", Success @ 3: "hit"}
    found = list(ir_measures.iter_calc(list(names), QRELS, _from_ranks(run, channel)))
    assert len(found) >= 4 * 5
    for each in found:
        ours = getattr(run.query(each.query_id).metrics[channel], names[each.measure])
        assert ours == pytest.approx(each.value, abs=1e-9)


@pytest.mark.promise("OFF-41")
def test_fed_with_tied_scores_its_own_tie_rule_gives_q_e042_too_much() -> None:
    run = run_experiment(FIXTURE)
    tied = [ScoredDoc("q-e042", hit.id, hit.score) for hit in run.query("q-e042").dense]
    (found,) = ir_measures.iter_calc([NDCG], [each for each in QRELS if each.query_id == "q-e042"], tied)
    assert found.value == pytest.approx(1.0)
    assert round(run.query("q-e042").metrics["dense"].ndcg, 6) == 0.70981
