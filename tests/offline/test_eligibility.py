"""The filter runs before anything is scored, and each of its conditions carries weight."""

import unittest
from collections import Counter
from dataclasses import replace
from unittest import mock

from kbretrieval.offline import (
    CHANNELS,
    CONDITIONS,
    Settings,
    conditions_without,
    eligible_documents,
    errors,
    experiment,
    failed_conditions,
    run_experiment,
    run_query,
)
from tests.offline.cases import FIXTURE, TABLE, a_document, a_query, table
from tests.offline.marks import promise

# What the gate finds when one condition is taken away: reasons with their counts, and the queries concerned.
FINDINGS = {
    "tenant": ({"tenant_mismatch": 3, "must_not_return": 3}, {"q-refund"}),
    "acl": ({"acl_denied": 3, "must_not_return": 3}, {"q-ops-guest"}),
    "status": ({"not_published": 6, "must_not_return": 6}, {"q-double-charge", "q-refund"}),
    "language": ({"language_not_allowed": 2, "must_not_return": 2}, {"q-membership"}),
    "product": ({"product_not_allowed": 6}, {"q-e042", "q-ops-guest"}),
}
ANOTHER = {
    "tenant": a_document(tenant="beta"),
    "acl": a_document(acl=("platform",)),
    "status": a_document(status="draft"),
    "language": a_document(language="zh"),
    "product": a_document(product="pay"),
}


class Eligibility(unittest.TestCase):
    @promise("OFF-30")
    def test_all_five_conditions_must_hold(self) -> None:
        self.assertEqual(list(CONDITIONS), ["tenant", "acl", "status", "language", "product"])
        self.assertEqual(failed_conditions(a_document(), a_query()), ())
        for name, document in ANOTHER.items():
            with self.subTest(name):
                self.assertEqual(failed_conditions(document, a_query()), (name,))
                self.assertEqual(eligible_documents([document], a_query()), ())
                self.assertEqual(eligible_documents([document], a_query(), conditions_without(name)), (document,))

    def test_one_shared_group_is_enough(self) -> None:
        document = a_document(acl=("guest", "platform"))
        self.assertEqual(failed_conditions(document, a_query(subject_groups=("platform", "staff"))), ())

    @promise("OFF-30")
    def test_both_channels_receive_eligible_documents_alone(self) -> None:
        for query in FIXTURE.queries:
            with (
                mock.patch.object(experiment, "bm25_window", wraps=experiment.bm25_window) as lexical,
                mock.patch.object(experiment, "dense_window", wraps=experiment.dense_window) as dense,
            ):
                run_query(FIXTURE.documents, query)
            expected = eligible_documents(FIXTURE.documents, query)
            self.assertEqual(lexical.call_args.args[0], expected)
            self.assertEqual(dense.call_args.args[0], expected)

    @promise("OFF-30")
    def test_what_one_may_not_see_moves_no_score(self) -> None:
        noise = "退款 申请 网络 超时 E042 会员 自动续费 " * 50
        for query in FIXTURE.queries:
            hidden = [
                replace(document, text=noise, vector=query.vector) if failed_conditions(document, query) else document
                for document in FIXTURE.documents
            ]
            self.assertNotEqual(hidden, list(FIXTURE.documents))
            self.assertEqual(run_query(hidden, query), run_query(FIXTURE.documents, query))

    @promise("OFF-31")
    def test_empty_groups_see_nothing(self) -> None:
        for acl in ((), ("guest",), ("guest", "platform")):
            self.assertEqual(eligible_documents([a_document(acl=acl)], a_query(subject_groups=())), ())
        for query in FIXTURE.queries:
            run = run_query(FIXTURE.documents, replace(query, subject_groups=(), qrels={}))
            self.assertEqual([run.ids(channel) for channel in CHANNELS], [(), (), ()])

    @promise("OFF-32")
    def test_drafts_archived_and_foreign_documents_stand_at_no_rank_of_any_channel(self) -> None:
        twin = FIXTURE.document("d-04-double-charge")
        planted = [
            replace(twin, id="x-draft", status="draft"),
            replace(twin, id="x-archived", status="archived"),
            replace(twin, id="x-foreign", tenant="beta"),
        ]
        query = replace(FIXTURE.query("q-double-charge"), text="重复扣款")
        run = run_query([*planted, *FIXTURE.documents], query, Settings(rank_window=1000))
        for channel in CHANNELS:
            with self.subTest(channel):
                self.assertEqual(run.ids(channel), ("d-04-double-charge",))
        visible = run_query([replace(twin, id="x-visible"), *FIXTURE.documents], query)
        self.assertTrue(all("x-visible" in visible.ids(channel) for channel in CHANNELS))

    @promise("OFF-30", "OFF-53")
    def test_without_any_one_condition_the_gate_fires(self) -> None:
        self.assertEqual(set(FINDINGS), set(CONDITIONS))
        for name, (reasons, queries) in FINDINGS.items():
            with self.subTest(name):
                run = run_experiment(FIXTURE, conditions=conditions_without(name))
                self.assertEqual(Counter(found.reason for found in run.violations), reasons)
                self.assertEqual({found.query for found in run.violations}, queries)

    @promise("OFF-53", "OFF-55")
    def test_the_metric_table_notices_a_lost_status_condition_and_no_other(self) -> None:
        for name in CONDITIONS:
            with self.subTest(name):
                lost = table(run_experiment(FIXTURE, conditions=conditions_without(name)))
                self.assertEqual(lost == TABLE, name != "status")
        self.assertEqual(lost["hybrid"], TABLE["hybrid"])
        lost = table(run_experiment(FIXTURE, conditions=conditions_without("status")))
        self.assertEqual(lost["hybrid"], (1.0, 0.916667, 0.938488))

    def test_an_unknown_condition_is_refused(self) -> None:
        with self.assertRaises(errors.UnknownId):
            conditions_without("price")


if __name__ == "__main__":
    unittest.main()
