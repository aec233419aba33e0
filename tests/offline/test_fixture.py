"""What the fixture holds, and what is said about its vectors."""

import hashlib
import math
import random
import unittest

from kbretrieval.offline import (
    AXES,
    audit_report,
    eligible_documents,
    failed_conditions,
    fixture_from_value,
    run_experiment,
    shared_terms,
    to_json,
)
from tests.offline.cases import FIXTURE, FIXTURE_BYTES, fixture_value
from tests.offline.marks import promise


class FixtureFacts(unittest.TestCase):
    def test_it_is_the_book_s_file(self) -> None:
        digest = "60e98cfc59b2a9aca420d30efee8674cb73b1bcc991979c344614c251146395d"
        self.assertEqual(hashlib.sha256(FIXTURE_BYTES).hexdigest(), digest)

    @promise("OFF-18")
    def test_there_are_exactly_seven_axes(self) -> None:
        expected = ("refund", "double_charge", "upload", "network", "membership", "account", "internal_ops")
        self.assertEqual((AXES, FIXTURE.representation.axes), (expected, expected))
        self.assertEqual(FIXTURE.representation.dimension, 7)

    @promise("OFF-19")
    def test_the_vectors_are_labelled_as_hand_made(self) -> None:
        report = audit_report(run_experiment(FIXTURE))
        label = report["representation"]
        self.assertEqual((label["kind"], label["trained_embedding"]), ("handcrafted_unit_vectors", False))
        for words in ("hand-made", "not a trained embedding", "no tokenizer", "no ANN", "other languages"):
            self.assertIn(words, report["notices"]["representation"])

    @promise("OFF-20")
    def test_the_report_says_that_its_metrics_compare_with_no_model(self) -> None:
        self.assertIn(
            "not comparable with the metrics of a real model",
            audit_report(run_experiment(FIXTURE))["notices"]["metrics"],
        )

    @promise("OFF-21")
    def test_a_document_has_ten_fields(self) -> None:
        document = FIXTURE.document("d-02-beta-refund")
        self.assertEqual(document.title, "退款政策（贝塔专用）")
        self.assertEqual((document.tenant, document.acl, document.status), ("beta", ("guest",), "published"))
        self.assertEqual((document.language, document.product, document.source_revision), ("zh", "pay", "r1"))
        self.assertEqual(document.searchable, f"{document.title}\n{document.text}")
        for each in FIXTURE.documents:
            self.assertEqual(list(each.acl), sorted(set(each.acl)))
            self.assertAlmostEqual(math.hypot(*each.vector), 1.0)

    @promise("OFF-22")
    def test_tenant_beta_has_a_private_document_that_is_highly_similar(self) -> None:
        own, foreign = FIXTURE.document("d-01-refund-policy"), FIXTURE.document("d-02-beta-refund")
        self.assertEqual((own.tenant, foreign.tenant), ("alpha", "beta"))
        self.assertEqual(own.vector, foreign.vector)
        self.assertGreaterEqual(len(shared_terms(own.searchable, foreign.searchable)), 10)

    @promise("OFF-23")
    def test_alpha_s_payment_rules_are_a_draft(self) -> None:
        draft = FIXTURE.document("d-03-payment-draft")
        self.assertEqual((draft.tenant, draft.status, draft.product), ("alpha", "draft", "pay"))

    @promise("OFF-24")
    def test_the_runbook_is_for_platform_alone(self) -> None:
        runbook = FIXTURE.document("d-10-ops-runbook")
        self.assertEqual((runbook.tenant, runbook.acl), ("alpha", ("platform",)))

    @promise("OFF-25")
    def test_two_upload_documents_have_equal_vectors(self) -> None:
        generic, exact = FIXTURE.document("d-05-upload-format"), FIXTURE.document("d-06-upload-e042")
        self.assertEqual(generic.vector, exact.vector)
        self.assertEqual((generic.product, exact.product), ("drive", "drive"))

    @promise("OFF-26")
    def test_there_are_ten_documents_and_seven_queries(self) -> None:
        report = audit_report(run_experiment(FIXTURE))
        self.assertEqual((len(FIXTURE.documents), len(FIXTURE.queries)), (10, 7))
        self.assertEqual((report["document_count"], report["query_count"]), (10, 7))

    @promise("OFF-27")
    def test_a_query_has_subject_filters_vector_and_judgements(self) -> None:
        query = FIXTURE.query("q-e042")
        self.assertEqual((query.tenant, query.subject_groups), ("alpha", ("guest",)))
        self.assertEqual((query.languages, query.products), (("zh",), ("drive",)))
        self.assertEqual(dict(query.qrels), {"d-05-upload-format": 1, "d-06-upload-e042": 3})
        self.assertEqual(query.must_not_return, ("d-10-ops-runbook",))
        with self.assertRaises(TypeError):
            query.qrels["d-01-refund-policy"] = 3

    @promise("OFF-28")
    def test_every_judged_document_may_be_seen_by_its_query(self) -> None:
        for query in FIXTURE.queries:
            seen = {document.id for document in eligible_documents(FIXTURE.documents, query)}
            self.assertLessEqual(set(query.qrels), seen)

    @promise("OFF-16", "OFF-17")
    def test_every_forbidden_document_exists_and_is_out_of_reach(self) -> None:
        for query in FIXTURE.queries:
            for document_id in query.must_not_return:
                self.assertTrue(failed_conditions(FIXTURE.document(document_id), query))

    @promise("OFF-29")
    def test_the_report_says_where_an_identity_must_come_from(self) -> None:
        notice = audit_report(run_experiment(FIXTURE))["notices"]["identity"]
        for words in ("oracle input of an offline audit", "from a trusted context only", "never"):
            self.assertIn(words, notice)

    @promise("OFF-65")
    def test_the_order_in_the_file_changes_nothing(self) -> None:
        expected = to_json(audit_report(run_experiment(FIXTURE)))
        shuffle = random.Random(17).shuffle
        for attempt in range(5):
            value = fixture_value()
            shuffle(value["documents"])
            shuffle(value["queries"])
            for query in value["queries"]:
                shuffle(query["must_not_return"])
                query["qrels"] = dict(reversed(query["qrels"].items()))
            value = dict(reversed(value.items()))
            with self.subTest(attempt):
                self.assertNotEqual(value["documents"], fixture_value()["documents"])
                self.assertEqual(fixture_from_value(value), FIXTURE)
                self.assertEqual(to_json(audit_report(run_experiment(fixture_from_value(value)))), expected)


if __name__ == "__main__":
    unittest.main()
