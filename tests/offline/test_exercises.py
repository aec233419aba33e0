"""The experiment's exercises can be solved with what the package offers."""

import unittest
from dataclasses import replace

from kbretrieval.offline import (
    CHANNELS,
    SEAMS,
    Settings,
    dcg,
    errors,
    explain_bm25,
    fixture_from_value,
    hit_at_k,
    recall_at_k,
    rrf,
    run_experiment,
    run_query,
    seam,
    shared_terms,
)
from tests.offline.cases import FIXTURE, fixture_value

UPLOAD = [0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0]


def _extended() -> dict:
    """The fixture with an error code of its own, and a synonym that shares no term with its document."""
    value = fixture_value()
    document = dict(value["documents"][5], id="d-11-upload-e777", title="E777 队列拥堵", text="服务端排队过长。")
    code = dict(value["queries"][2], id="q-e777", text="E777", qrels={"d-11-upload-e777": 3})
    synonym = dict(code, id="q-slow", text="半天传不上去", qrels={"d-11-upload-e777": 3})
    value["documents"].append(document)
    value["queries"] += [code, synonym]
    return value


class Exercises(unittest.TestCase):
    def test_a_code_and_a_synonym_complement_each_other(self) -> None:
        run = run_experiment(fixture_from_value(_extended()))
        code, synonym = run.query("q-e777"), run.query("q-slow")
        document = run.fixture.document("d-11-upload-e777")
        self.assertEqual(code.ids("bm25"), ("d-11-upload-e777",))
        self.assertEqual(code.ids("dense"), ("d-05-upload-format", "d-06-upload-e042", "d-11-upload-e777"))
        self.assertEqual(dict(code.hybrid[0].source_ranks), {"bm25": 1, "dense": 3})
        self.assertEqual(shared_terms(synonym.query.text, document.searchable), ())
        self.assertEqual((synonym.bm25, len(synonym.dense)), ((), 3))
        self.assertEqual([share.term for share in explain_bm25([document.searchable], "E777")[0]], ["e777"])

    def test_the_hard_filter_holds_in_every_channel(self) -> None:
        value = _extended()
        twin = value["documents"][-1]
        value["documents"] += [dict(twin, id="x-beta", tenant="beta"), dict(twin, id="x-old", status="archived")]
        nobody = dict(value["queries"][-1], id="q-nobody", subject_groups=[], qrels={}, must_not_return=["x-beta"])
        value["queries"].append(nobody)
        run = run_experiment(fixture_from_value(value), Settings(rank_window=100))
        for each in run.queries:
            for channel in CHANNELS:
                self.assertTrue({"x-beta", "x-old"}.isdisjoint(each.ids(channel)))
        self.assertEqual([run.query("q-nobody").ids(channel) for channel in CHANNELS], [(), (), ()])
        self.assertEqual(run.violations, ())

    def test_windows_of_one_two_and_five(self) -> None:
        firsts = {
            window: run_query(FIXTURE.documents, FIXTURE.query("q-e042"), Settings(rank_window=window)).ids("hybrid")[0]
            for window in (1, 2, 5)
        }
        self.assertEqual(firsts, {1: "d-05-upload-format", 2: "d-06-upload-e042", 5: "d-06-upload-e042"})

    def test_hit_and_recall(self) -> None:
        self.assertEqual([metric(["a"], {"a": 1, "b": 1}, 3) for metric in (hit_at_k, recall_at_k)], [1.0, 0.5])

    def test_the_migration_list_has_six_seams(self) -> None:
        parts = ["analyzer", "encoder", "vector_search", "identity", "judgements", "operation"]
        self.assertEqual([each.part for each in SEAMS], parts)
        regenerated = seam("encoder").regenerate
        for needed in ("vector of every document", "vector of every query", "vector index", "exact neighbours"):
            self.assertIn(needed, regenerated)
        self.assertNotIn("judgements", regenerated)
        with self.assertRaises(errors.UnknownId):
            seam("weather")

    def test_the_questions_have_answers_that_can_be_computed(self) -> None:
        run = run_experiment(FIXTURE)
        exact = run.query("q-e042").metrics
        self.assertLess(exact["dense"].ndcg, exact["hybrid"].ndcg)
        renamed = run_query(FIXTURE.documents, replace(FIXTURE.query("q-double-charge"), text="重复扣款"))
        self.assertEqual(renamed.ids("bm25"), ("d-04-double-charge",))
        self.assertIsNone(run.query("q-ops-guest").metrics["hybrid"])
        self.assertGreater(dcg([3, 3]) / dcg([3]), 1.0)
        tied = [rrf({"bm25": ["x"], "dense": order})[0].id for order in (["a", "b", "x"], ["x", "a", "b"])]
        self.assertEqual(tied, ["x", "x"])
        swapped = [rrf({"bm25": ["c"], "dense": order})[1].id for order in (["c", "a", "b"], ["c", "b", "a"])]
        self.assertEqual(swapped, ["a", "b"])


if __name__ == "__main__":
    unittest.main()
