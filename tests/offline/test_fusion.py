"""Reciprocal rank fusion: ranks inside the window, nothing else."""

import unittest
from fractions import Fraction

from kbretrieval.offline import Settings, errors, rrf, run_experiment
from tests.offline.cases import FIXTURE
from tests.offline.marks import promise


class Fusion(unittest.TestCase):
    @promise("OFF-42")
    def test_the_score_is_the_sum_of_reciprocal_ranks(self) -> None:
        fused = rrf({"bm25": ["a", "b"], "dense": ["b", "c"]}, constant=60)
        expected = {
            "b": Fraction(1, 62) + Fraction(1, 61),
            "a": Fraction(1, 61),
            "c": Fraction(1, 62),
        }
        self.assertEqual([hit.id for hit in fused], ["b", "a", "c"])
        self.assertEqual([hit.rank for hit in fused], [1, 2, 3])
        for hit in fused:
            self.assertAlmostEqual(hit.score, float(expected[hit.id]), places=15)

    @promise("OFF-42")
    def test_ranks_beyond_the_window_do_not_count(self) -> None:
        fused = rrf({"bm25": ["a", "b", "c"], "dense": ["c"]}, window=2)
        self.assertEqual({hit.id: dict(hit.source_ranks)["bm25"] for hit in fused}, {"a": 1, "b": 2, "c": None})
        self.assertEqual(fused, rrf({"bm25": ["a", "b"], "dense": ["c"]}))

    @promise("OFF-42")
    def test_raw_scores_are_never_added(self) -> None:
        for run in run_experiment(FIXTURE).queries:
            for hit in run.hybrid:
                ranks = [rank for rank in hit.source_ranks.values() if rank is not None]
                self.assertAlmostEqual(hit.score, sum(1 / (60 + rank) for rank in ranks), places=15)
        cosine, euclidean = (run_experiment(FIXTURE, Settings(metric=metric)) for metric in ("cosine", "euclidean"))
        self.assertNotEqual(cosine.query("q-refund").dense, euclidean.query("q-refund").dense)
        self.assertEqual(cosine.query("q-refund").hybrid, euclidean.query("q-refund").hybrid)

    @promise("OFF-42", "OFF-40")
    def test_equal_sums_are_ordered_by_id_whatever_the_channels_order(self) -> None:
        one = rrf({"bm25": ["b", "a"], "dense": ["a", "b"]})
        other = rrf({"dense": ["a", "b"], "bm25": ["b", "a"]})
        self.assertEqual([hit.id for hit in one], ["a", "b"])
        self.assertEqual([(hit.id, hit.score) for hit in one], [(hit.id, hit.score) for hit in other])

    @promise("OFF-43")
    def test_a_candidate_keeps_both_source_ranks(self) -> None:
        exact, generic = run_experiment(FIXTURE).query("q-e042").hybrid
        self.assertEqual((exact.id, dict(exact.source_ranks)), ("d-06-upload-e042", {"bm25": 1, "dense": 2}))
        self.assertEqual((generic.id, dict(generic.source_ranks)), ("d-05-upload-format", {"bm25": None, "dense": 1}))

    @promise("OFF-44")
    def test_a_document_that_the_window_cut_does_not_come_back(self) -> None:
        values = {}
        for window in (1, 2, 5):
            run = run_experiment(FIXTURE, Settings(rank_window=window)).query("q-e042")
            values[window] = round(run.metrics["hybrid"].ndcg, 6)
            self.assertEqual(set(run.ids("hybrid")), set(run.ids("bm25")) | set(run.ids("dense")))
            self.assertLessEqual(max(len(run.bm25), len(run.dense)), window)
        self.assertEqual(values, {1: 0.709810, 2: 1.0, 5: 1.0})
        cut = run_experiment(FIXTURE, Settings(rank_window=1)).query("q-e042")
        ranks = {hit.id: dict(hit.source_ranks) for hit in cut.hybrid}
        self.assertEqual(ranks["d-06-upload-e042"], {"bm25": 1, "dense": None})
        lost = run_experiment(FIXTURE, Settings(rank_window=1)).query("q-refund")
        self.assertNotIn("d-08-membership-renewal", lost.ids("hybrid"))

    def test_wrong_input_is_refused(self) -> None:
        with self.assertRaises(errors.DuplicateRankedId):
            rrf({"bm25": ["a", "a"]})
        for arguments in ({"constant": 0}, {"window": 0}, {"constant": -60}):
            with self.subTest(str(arguments)), self.assertRaises(errors.SettingOutOfRange):
                rrf({"bm25": ["a"]}, **arguments)


if __name__ == "__main__":
    unittest.main()
