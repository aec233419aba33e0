"""Graded metrics: denominators, gains, queries without judgements, rankings with repeats."""

import math
import random
import unittest

from kbretrieval.offline import (
    Metrics,
    dcg,
    errors,
    hit_at_k,
    macro_mean,
    metrics_at_k,
    ndcg_at_k,
    recall_at_k,
    reciprocal_rank_at_k,
    run_experiment,
)
from tests.offline.cases import FIXTURE
from tests.offline.marks import promise

ALL = (recall_at_k, hit_at_k, reciprocal_rank_at_k, ndcg_at_k, metrics_at_k)


class GradedMetrics(unittest.TestCase):
    @promise("OFF-45")
    def test_recall_divides_by_all_judgements(self) -> None:
        qrels = {"a": 3, "b": 1, "c": 2, "d": 1}
        self.assertEqual(recall_at_k(["a", "x", "b"], qrels, 3), 0.5)
        self.assertEqual(recall_at_k(["a", "x", "b"], qrels, 1), 0.25)
        self.assertEqual(recall_at_k(["a", "b", "c", "d"], qrels, 2), 0.5)
        self.assertEqual(recall_at_k([], qrels, 3), 0.0)

    @promise("OFF-46")
    def test_reciprocal_rank_stops_at_k(self) -> None:
        self.assertEqual(reciprocal_rank_at_k(["x", "b", "a"], {"a": 3, "b": 1}, 3), 0.5)
        self.assertEqual(reciprocal_rank_at_k(["x", "y", "z", "a"], {"a": 3}, 3), 0.0)
        self.assertAlmostEqual(reciprocal_rank_at_k(["x", "y", "a"], {"a": 3}, 3), 1 / 3)

    @promise("OFF-47")
    def test_the_gain_is_exponential_in_the_grade(self) -> None:
        self.assertEqual([dcg([grade]) for grade in (0, 1, 2, 3)], [0.0, 1.0, 3.0, 7.0])
        self.assertAlmostEqual(dcg([1, 3]), 1 + 7 / math.log2(3))
        self.assertAlmostEqual(
            ndcg_at_k(["b", "a"], {"a": 3, "b": 1}, 3), (1 + 7 / math.log2(3)) / (7 + 1 / math.log2(3))
        )
        self.assertEqual(ndcg_at_k(["a"], {"a": 3, "b": 3, "c": 3}, 1), 1.0)
        self.assertEqual(ndcg_at_k(["x", "a"], {"a": 2}, 1), 0.0)

    @promise("OFF-48")
    def test_a_ranking_with_a_repeat_is_an_error(self) -> None:
        self.assertGreater(dcg([3, 3]) / dcg([3]), 1.0)
        for metric in ALL:
            with self.subTest(metric.__name__), self.assertRaises(errors.DuplicateRankedId):
                metric(["a", "a"], {"a": 3}, 2)
            with self.subTest(f"{metric.__name__} beyond k"), self.assertRaises(errors.DuplicateRankedId):
                metric(["a", "x", "a"], {"a": 3}, 1)
        with self.assertRaises(errors.DuplicateRankedId):
            metrics_at_k(["a", "a"], {}, 2)

    @promise("OFF-48")
    def test_no_ranking_without_repeats_exceeds_one(self) -> None:
        chance = random.Random(48)
        for _ in range(200):
            ids = [f"d{number}" for number in range(8)]
            qrels = {name: chance.randint(1, 3) for name in chance.sample(ids, chance.randint(1, 8))}
            found = metrics_at_k(chance.sample(ids, chance.randint(0, 8)), qrels, chance.randint(1, 8))
            for value in (found.recall, found.mrr, found.ndcg, found.hit):
                self.assertTrue(0.0 <= value <= 1.0 + 1e-12)

    @promise("OFF-49")
    def test_a_query_without_judgements_stays_out_of_the_mean(self) -> None:
        self.assertIsNone(metrics_at_k([], {}, 3))
        good, poor = Metrics(1.0, 1.0, 1.0, 1.0), Metrics(0.0, 0.0, 0.0, 0.0)
        self.assertEqual(macro_mean([good, None, poor]), Metrics(0.5, 0.5, 0.5, 0.5))
        self.assertIsNone(macro_mean([None]))
        self.assertIsNone(macro_mean([]))
        run = run_experiment(FIXTURE)
        self.assertEqual(set(run.query("q-ops-guest").metrics.values()), {None})
        judged = [each.metrics["bm25"].recall for each in run.queries if each.query.qrels]
        self.assertEqual((len(judged), sum(judged) / 6), (6, run.macro["bm25"].recall))

    @promise("OFF-49")
    def test_a_metric_without_judgements_has_no_value(self) -> None:
        for metric in ALL[:-1]:
            with self.subTest(metric.__name__), self.assertRaises(errors.NoJudgements):
                metric(["a"], {}, 3)

    @promise("OFF-50")
    def test_hit_differs_from_recall(self) -> None:
        qrels = {"a": 3, "b": 1}
        self.assertEqual((hit_at_k(["a", "x"], qrels, 2), recall_at_k(["a", "x"], qrels, 2)), (1.0, 0.5))
        self.assertEqual((hit_at_k(["x", "a"], qrels, 1), recall_at_k(["x", "a"], qrels, 1)), (0.0, 0.0))
        lexical = run_experiment(FIXTURE).query("q-e042").metrics["bm25"]
        self.assertEqual((lexical.hit, lexical.recall), (1.0, 0.5))

    def test_wrong_arguments_are_refused(self) -> None:
        for k in (0, -1, True, 2.0):
            with self.subTest(k), self.assertRaises(errors.SettingOutOfRange):
                recall_at_k(["a"], {"a": 1}, k)
        with self.assertRaises(errors.GradeOutOfRange):
            ndcg_at_k(["a"], {"a": 0}, 3)


if __name__ == "__main__":
    unittest.main()
