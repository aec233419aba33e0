"""BM25 and the toy dense channel: each score by hand, each order total."""

import math
import unittest
from dataclasses import replace
from itertools import pairwise

from kbretrieval.offline import (
    MEASURES,
    Settings,
    bm25_scores,
    bm25_window,
    cosine,
    dense_window,
    dot,
    errors,
    explain_bm25,
    inverse_document_frequency,
    negative_euclidean,
    run_experiment,
    run_query,
    saturated_frequency,
    terms,
)
from tests.offline.cases import FIXTURE, TABLE, a_document, table
from tests.offline.marks import promise

FIRST_HITS = {
    "q-account": [("d-09-account-recovery", 2.818843)],
    "q-e042": [("d-06-upload-e042", 0.975951)],
    "q-membership": [("d-08-membership-renewal", 6.471834), ("d-04-double-charge", 0.480781)],
    "q-network": [("d-07-network-timeout", 9.822681)],
    "q-refund": [("d-01-refund-policy", 1.170057), ("d-08-membership-renewal", 0.871623)],
    "q-double-charge": [],
    "q-ops-guest": [],
}


def _bm25_by_hand(texts: list[str], query: str) -> list[float]:
    """The formula, written a second time without the package's own parts."""
    bags = [terms(text) for text in texts]
    mean = sum(map(len, bags)) / len(bags)
    scores = []
    for bag in bags:
        total = 0.0
        for term in set(terms(query)):
            df = len([1 for other in bags if term in other])
            tf = bag.count(term)
            idf = math.log(1 + (len(bags) - df + 0.5) / (df + 0.5))
            total += idf * tf * 2.2 / (tf + 1.2 * (0.25 + 0.75 * len(bag) / mean))
        scores.append(total)
    return scores


class Lexical(unittest.TestCase):
    @promise("OFF-36", "OFF-55")
    def test_the_first_hits_of_every_query(self) -> None:
        run = run_experiment(FIXTURE)
        found = {each.query.id: [(hit.id, round(hit.score, 6)) for hit in each.bm25] for each in run.queries}
        self.assertEqual(found, FIRST_HITS)

    @promise("OFF-36")
    def test_the_formula_written_twice_gives_the_same(self) -> None:
        texts = [document.searchable for document in FIXTURE.documents]
        for query in FIXTURE.queries:
            for ours, theirs in zip(bm25_scores(texts, query.text), _bm25_by_hand(texts, query.text), strict=True):
                self.assertAlmostEqual(ours, theirs, places=12)

    @promise("OFF-36")
    def test_a_frequent_term_saturates(self) -> None:
        values = [saturated_frequency(count, 10, 10.0) for count in (1, 2, 3, 4, 1000)]
        self.assertEqual(values, sorted(values))
        gains = [after - before for before, after in pairwise(values[:4])]
        self.assertEqual(gains, sorted(gains, reverse=True))
        self.assertLess(values[-1], 2.2)

    @promise("OFF-36")
    def test_a_rare_term_weighs_more_and_none_weighs_less_than_nothing(self) -> None:
        weights = [inverse_document_frequency(10, count) for count in range(1, 11)]
        self.assertEqual(weights, sorted(weights, reverse=True))
        self.assertGreater(weights[-1], 0.0)
        self.assertAlmostEqual(weights[0], math.log(1 + 9.5 / 1.5))

    @promise("OFF-36")
    def test_a_long_text_weighs_less(self) -> None:
        short, long = bm25_scores(["E042 failed", "E042 failed after a very long upload"], "E042")
        self.assertGreater(short, long)
        self.assertEqual(*bm25_scores(["E042 failed", "E042 failed after a very long upload"], "E042", b=0.0))

    @promise("OFF-36")
    def test_each_distinct_query_term_counts_once_and_its_share_is_shown(self) -> None:
        texts = ["E042 上传", "上传"]
        self.assertEqual(bm25_scores(texts, "E042 e042 E042"), bm25_scores(texts, "E042"))
        shares = explain_bm25(texts, "E042 上传")
        self.assertEqual([[share.term for share in each] for each in shares], [["e042", "上传"], ["上传"]])
        self.assertEqual((shares[0][1].document_frequency, shares[0][1].length, shares[0][1].mean_length), (2, 2, 1.5))
        for each, score in zip(shares, bm25_scores(texts, "E042 上传"), strict=True):
            self.assertEqual(math.fsum(share.idf * share.saturation for share in each), score)

    @promise("OFF-37")
    def test_only_positive_scores_are_candidates(self) -> None:
        documents = [a_document("a", text="E042"), a_document("b", text="nothing")]
        self.assertEqual([hit.id for hit in bm25_window(documents, "E042", 10)], ["a"])
        self.assertEqual(bm25_window(documents, "，。", 10), ())
        self.assertEqual(bm25_window([], "E042", 10), ())
        self.assertEqual(bm25_scores(["", "，"], "E042"), (0.0, 0.0))

    @promise("OFF-40")
    def test_equal_scores_are_ordered_by_id(self) -> None:
        documents = [a_document(name, text="E042") for name in ("c", "a", "b")]
        self.assertEqual([hit.id for hit in bm25_window(documents, "E042", 2)], ["a", "b"])
        self.assertEqual([hit.id for hit in dense_window(documents, (1.0, 0.0), 2)], ["a", "b"])
        self.assertEqual([hit.rank for hit in dense_window(documents, (1.0, 0.0), 5)], [1, 2, 3])


class Dense(unittest.TestCase):
    @promise("OFF-39")
    def test_three_exact_measures(self) -> None:
        self.assertEqual(dot((1.0, 2.0), (3.0, 4.0)), 11.0)
        self.assertAlmostEqual(cosine((3.0, 4.0), (4.0, 3.0)), 0.96, places=15)
        self.assertEqual(negative_euclidean((3.0, 4.0), (0.0, 0.0)), -5.0)
        self.assertEqual(dot((1e16, 1.0, -1e16), (1.0, 1.0, 1.0)), 1.0)
        same = negative_euclidean((0.6, 0.8), (0.6, 0.8))
        self.assertEqual(math.copysign(1.0, same), 1.0)

    @promise("OFF-39", "OFF-66")
    def test_on_unit_vectors_they_agree_on_order_and_not_on_scores(self) -> None:
        runs = {metric: run_experiment(FIXTURE, Settings(metric=metric)) for metric in MEASURES}
        self.assertEqual(list(runs), ["cosine", "dot", "euclidean"])
        for run in runs.values():
            self.assertEqual(table(run), TABLE)
            self.assertEqual(
                [each.ids("dense") for each in run.queries], [each.ids("dense") for each in runs["dot"].queries]
            )
        scores = {metric: run.query("q-account").dense[0].score for metric, run in runs.items()}
        self.assertEqual((scores["cosine"], scores["dot"]), (0.8, 0.8))
        self.assertAlmostEqual(scores["euclidean"], -math.sqrt(0.4))

    @promise("OFF-39")
    def test_off_the_unit_sphere_the_measures_disagree(self) -> None:
        documents = [a_document("far", vector=(3.0, 3.0)), a_document("near", vector=(0.5, 0.0))]
        first = {metric: dense_window(documents, (1.0, 0.0), 1, metric)[0].id for metric in MEASURES}
        self.assertEqual(first, {"cosine": "near", "dot": "far", "euclidean": "near"})

    @promise("OFF-37")
    def test_a_document_that_shares_no_direction_is_no_candidate(self) -> None:
        documents = [a_document("a"), a_document("b", vector=(0.0, 1.0)), a_document("c", vector=(-1.0, 0.0))]
        for metric in MEASURES:
            with self.subTest(metric):
                self.assertEqual([hit.id for hit in dense_window(documents, (1.0, 0.0), 5, metric)], ["a"])

    @promise("OFF-39")
    def test_the_window_is_exact_over_the_eligible_documents(self) -> None:
        for query in FIXTURE.queries:
            run = run_query(FIXTURE.documents, query, Settings(rank_window=100))
            brute = {
                document.id: sum(a * b for a, b in zip(query.vector, document.vector, strict=True))
                for document in FIXTURE.documents
                if document.tenant == "alpha"
                and "guest" in document.acl
                and document.status == "published"
                and document.language in query.languages
                and document.product in query.products
            }
            wanted = sorted((name for name in brute if brute[name] > 0), key=lambda name: (-brute[name], name))
            self.assertEqual(list(run.ids("dense")), wanted)

    @promise("OFF-41")
    def test_q_e042_ties_the_generic_and_the_exact_document(self) -> None:
        window = run_experiment(FIXTURE).query("q-e042").dense
        self.assertEqual([hit.id for hit in window], ["d-05-upload-format", "d-06-upload-e042"])
        self.assertEqual(window[0].score, window[1].score)

    @promise("OFF-40")
    def test_the_tie_break_is_what_fusion_sees(self) -> None:
        documents = [
            replace(document, id="d-00-exact") if document.id == "d-06-upload-e042" else document
            for document in FIXTURE.documents
        ]
        query = replace(FIXTURE.query("q-e042"), qrels={"d-00-exact": 3})
        self.assertEqual(run_query(documents, query).hybrid[0].source_ranks["dense"], 1)

    @promise("OFF-48")
    def test_a_channel_hands_on_no_id_twice(self) -> None:
        with self.assertRaises(errors.DuplicateRankedId):
            dense_window([a_document("a"), a_document("a")], (1.0, 0.0), 5)

    def test_wrong_input_is_refused(self) -> None:
        with self.assertRaises(errors.WrongDimension):
            dot((1.0,), (1.0, 2.0))
        with self.assertRaises(errors.ZeroVector):
            cosine((0.0, 0.0), (1.0, 0.0))
        with self.assertRaises(errors.UnknownMetric):
            dense_window([a_document()], (1.0, 0.0), 5, "manhattan")


if __name__ == "__main__":
    unittest.main()
