"""The gate over complete windows, the protected audit, and the public projection."""

import ast
import json
import unittest
from dataclasses import replace

from kbretrieval.offline import (
    CHANNELS,
    QueryRun,
    Ranked,
    Settings,
    Violation,
    audit_report,
    audit_runs,
    audit_window,
    conditions_without,
    errors,
    public_projection,
    reasons_against,
    run_experiment,
    run_query,
    to_json,
)
from tests.offline.cases import FIXTURE, PACKAGE, a_document, a_query
from tests.offline.marks import promise


class Gate(unittest.TestCase):
    @promise("OFF-53")
    def test_each_reason_is_named(self) -> None:
        self.assertEqual(reasons_against(a_document(), a_query()), ())
        for fields, reason in [
            ({"tenant": "beta"}, "tenant_mismatch"),
            ({"acl": ("platform",)}, "acl_denied"),
            ({"acl": ()}, "acl_denied"),
            ({"status": "draft"}, "not_published"),
            ({"status": "archived"}, "not_published"),
            ({"language": "zh"}, "language_not_allowed"),
            ({"product": "pay"}, "product_not_allowed"),
        ]:
            with self.subTest(str(fields)):
                self.assertEqual(reasons_against(a_document(**fields), a_query()), (reason,))
        self.assertEqual(reasons_against(a_document(), a_query(must_not_return=("d",))), ("must_not_return",))
        self.assertEqual(reasons_against(a_document(), a_query(subject_groups=())), ("acl_denied",))

    @promise("OFF-53")
    def test_a_violation_names_query_channel_stage_rank_document_and_reason(self) -> None:
        documents = {"d": a_document(), "x": a_document("x", tenant="beta")}
        self.assertEqual(
            audit_window(documents, a_query(), "hybrid", ["d", "x", "y"]),
            (
                Violation("q", "hybrid", "fused_window", 2, "x", "tenant_mismatch"),
                Violation("q", "hybrid", "fused_window", 3, "y", "unknown_document"),
            ),
        )
        self.assertEqual(audit_window(documents, a_query(), "bm25", ["x"])[0].stage, "candidate_window")

    @promise("OFF-53")
    def test_every_channel_is_looked_through_to_the_end_of_its_window(self) -> None:
        good = tuple(Ranked("d-07-network-timeout", rank, 1.0) for rank in range(1, 5))
        leak = (*good, Ranked("d-02-beta-refund", 5, 0.1))
        query = FIXTURE.query("q-network")
        clean = run_query(FIXTURE.documents, query)
        for channel in CHANNELS:
            with self.subTest(channel):
                found = audit_runs(FIXTURE, [replace(clean, **{channel: leak})])
                self.assertEqual({(each.channel, each.rank) for each in found}, {(channel, 5)})
                self.assertEqual({each.reason for each in found}, {"tenant_mismatch", "must_not_return"})

    @promise("OFF-53")
    def test_a_leak_below_the_cut_is_seen_though_no_reader_would_get_it(self) -> None:
        run = run_experiment(FIXTURE, Settings(top_k=1), conditions=conditions_without("language"))
        leaked = {(each.channel, each.rank) for each in run.violations if each.document == "d-09-account-recovery"}
        self.assertEqual(leaked, {("dense", 2), ("hybrid", 3)})
        self.assertNotIn("d-09-account-recovery", run.query("q-membership").ids("hybrid")[:1])

    @promise("OFF-53")
    def test_the_gate_judges_by_code_of_its_own(self) -> None:
        tree = ast.parse((PACKAGE / "gate.py").read_text(encoding="utf-8"))
        used = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
        self.assertEqual(used, {"collections.abc", "dataclasses", "kbretrieval.offline.model"})

    @promise("OFF-59")
    def test_the_whole_filter_lets_nothing_through(self) -> None:
        for settings in (Settings(), Settings(rank_window=1), Settings(rank_window=1000, metric="euclidean")):
            self.assertEqual(run_experiment(FIXTURE, settings).violations, ())


class Report(unittest.TestCase):
    def setUp(self) -> None:
        self.run_ = run_experiment(FIXTURE)
        self.report = json.loads(to_json(audit_report(self.run_)))

    @promise("OFF-51")
    def test_it_declares_what_it_is(self) -> None:
        self.assertEqual(self.report["report_schema_version"], "semantic-search-offline-audit-v1")
        self.assertEqual(self.report["visibility"], "protected_audit")

    @promise("OFF-66")
    def test_it_says_that_its_label_is_no_access_control(self) -> None:
        self.assertIn("no access control", self.report["notices"]["label"])

    @promise("OFF-52")
    def test_it_holds_each_complete_window_and_all_metrics(self) -> None:
        self.assertEqual(set(self.report["macro"]), set(CHANNELS))
        for each in self.report["queries"]:
            run = self.run_.query(each["id"])
            for channel in CHANNELS:
                shown = each["channels"][channel]
                self.assertEqual([hit["id"] for hit in shown["window"]], list(run.ids(channel)))
                self.assertEqual([hit["rank"] for hit in shown["window"]], list(range(1, len(shown["window"]) + 1)))
                self.assertTrue(all(isinstance(hit["score"], float) for hit in shown["window"]))
                if run.query.qrels:
                    self.assertEqual(set(shown["metrics"]), {"recall", "mrr", "ndcg", "hit"})
                else:
                    self.assertIsNone(shown["metrics"])
        first_only = run_experiment(FIXTURE, Settings(top_k=1))
        shown = [each["channels"]["hybrid"]["window"] for each in audit_report(first_only)["queries"]]
        self.assertEqual([len(window) for window in shown], [len(each.hybrid) for each in first_only.queries])
        self.assertGreater(max(map(len, shown)), 1)

    @promise("OFF-43", "OFF-52")
    def test_it_shows_the_source_ranks_of_hybrid_candidates(self) -> None:
        window = next(each for each in self.report["queries"] if each["id"] == "q-e042")["channels"]["hybrid"]["window"]
        self.assertEqual([hit["source_ranks"] for hit in window], [{"bm25": 1, "dense": 2}, {"bm25": None, "dense": 1}])

    @promise("OFF-53")
    def test_it_lists_violations(self) -> None:
        self.assertEqual(self.report["security_violations"], [])
        leaky = run_experiment(FIXTURE, conditions=conditions_without("acl"))
        first = audit_report(leaky)["security_violations"][0]
        self.assertEqual(
            first,
            {
                "query": "q-ops-guest",
                "channel": "bm25",
                "stage": "candidate_window",
                "rank": 1,
                "document": "d-10-ops-runbook",
                "reason": "acl_denied",
            },
        )

    @promise("OFF-52")
    def test_it_repeats_each_query_s_input(self) -> None:
        shown = next(each for each in self.report["queries"] if each["id"] == "q-e042")
        del shown["channels"]
        self.assertEqual(
            shown,
            {
                "id": "q-e042",
                "text": "E042 怎么处理",
                "tenant": "alpha",
                "subject_groups": ["guest"],
                "filters": {"languages": ["zh"], "products": ["drive"]},
                "qrels": {"d-05-upload-format": 1, "d-06-upload-e042": 3},
                "must_not_return": ["d-10-ops-runbook"],
            },
        )

    def test_it_holds_no_document_text(self) -> None:
        for document in FIXTURE.documents:
            self.assertNotIn(json.dumps(document.text)[1:-1], to_json(audit_report(self.run_)))

    @promise("OFF-54")
    def test_the_public_projection_holds_next_to_nothing(self) -> None:
        public = public_projection(self.run_)
        self.assertEqual(set(public), {"report_schema_version", "visibility", "results"})
        self.assertEqual(public["visibility"], "public")
        for each in public["results"]:
            self.assertEqual(set(each), {"query_id", "hits"})
            self.assertTrue(all(set(hit) == {"rank", "id", "title"} for hit in each["hits"]))
        shown = to_json(public)
        for query in FIXTURE.queries:
            self.assertNotIn(json.dumps(query.text)[1:-1], shown)
        for hidden in ("d-02-beta-refund", "d-03-payment-draft", "d-10-ops-runbook"):
            self.assertNotIn(hidden, shown)
        for word in ("qrels", "must_not_return", "window", "metrics", "recall", "score", "groups", "tenant"):
            self.assertNotIn(word, shown)

    @promise("OFF-54")
    def test_the_public_projection_ends_at_top_k(self) -> None:
        run = run_experiment(FIXTURE, Settings(top_k=1))
        self.assertTrue(all(len(each["hits"]) <= 1 for each in public_projection(run)["results"]))
        self.assertGreater(len(run.query("q-e042").hybrid), 1)

    @promise("OFF-54")
    def test_nothing_is_projected_from_a_run_that_leaks(self) -> None:
        with self.assertRaises(errors.GateFired) as caught:
            public_projection(run_experiment(FIXTURE, conditions=conditions_without("tenant")))
        self.assertEqual(str(caught.exception), "gate_fired: 6 security violations in the audit, 0 allowed")

    def test_a_run_is_frozen(self) -> None:
        found = self.run_.queries[0]
        self.assertIsInstance(found, QueryRun)
        with self.assertRaises(AttributeError):
            found.query = a_query()
        with self.assertRaises(TypeError):
            found.metrics["bm25"] = None


if __name__ == "__main__":
    unittest.main()
