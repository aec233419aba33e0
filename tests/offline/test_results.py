"""What must come out of the book's fixture."""

import unittest
from dataclasses import replace

from kbretrieval.offline import CHANNELS, Settings, audit_report, run_experiment, run_query
from tests.offline.cases import FIXTURE, TABLE, table
from tests.offline.marks import promise


class Results(unittest.TestCase):
    def setUp(self) -> None:
        self.run_ = run_experiment(FIXTURE, Settings(top_k=3, rank_window=5, rrf_constant=60))

    @promise("OFF-55")
    def test_the_table_to_six_decimals(self) -> None:
        self.assertEqual(table(self.run_), TABLE)
        shown = audit_report(self.run_)["macro"]
        self.assertEqual({name: (row["recall"], row["mrr"], row["ndcg"]) for name, row in shown.items()}, TABLE)

    def test_the_default_settings_are_those_of_the_table(self) -> None:
        self.assertEqual(self.run_, run_experiment(FIXTURE))

    @promise("OFF-56")
    def test_q_double_charge_is_found_by_meaning_alone(self) -> None:
        run = self.run_.query("q-double-charge")
        self.assertEqual(run.bm25, ())
        self.assertEqual((run.ids("dense")[0], run.ids("hybrid")[0]), ("d-04-double-charge", "d-04-double-charge"))

    @promise("OFF-57")
    def test_q_e042_needs_the_word(self) -> None:
        run = self.run_.query("q-e042")
        self.assertEqual((run.ids("dense")[0], run.ids("hybrid")[0]), ("d-05-upload-format", "d-06-upload-e042"))

    @promise("OFF-58")
    def test_q_ops_guest_is_empty_for_guests_and_found_by_platform(self) -> None:
        guest = self.run_.query("q-ops-guest")
        self.assertEqual([guest.ids(channel) for channel in CHANNELS], [(), (), ()])
        staff = run_query(FIXTURE.documents, replace(guest.query, subject_groups=("platform",)))
        self.assertEqual([staff.ids(channel) for channel in CHANNELS], [("d-10-ops-runbook",)] * 3)

    @promise("OFF-59")
    def test_there_is_no_violation(self) -> None:
        self.assertEqual(self.run_.violations, ())

    @promise("OFF-60")
    def test_beta_s_and_draft_documents_are_no_guest_s_candidates(self) -> None:
        forbidden = {
            document.id for document in FIXTURE.documents if document.tenant == "beta" or document.status == "draft"
        }
        self.assertEqual(forbidden, {"d-02-beta-refund", "d-03-payment-draft"})
        wide = run_experiment(FIXTURE, Settings(rank_window=1000))
        for each in wide.queries:
            self.assertEqual(each.query.subject_groups, ("guest",))
            for channel in CHANNELS:
                self.assertTrue(forbidden.isdisjoint(each.ids(channel)))


if __name__ == "__main__":
    unittest.main()
