"""Every malformed fixture is refused with its own code, in one line, without a word of its text."""

import io
import tempfile
import unittest
from pathlib import Path

from kbretrieval.offline import OfflineError, errors, fixture_from_value, parse_fixture, parse_strict
from kbretrieval.offline.cli import main
from tests.offline.cases import FIXTURE, FIXTURE_BYTES, FIXTURE_PATH, fixture_value
from tests.offline.malformed import TABLE, Malformed, cases_of
from tests.offline.marks import promise

SECRETS = [text for document in FIXTURE.documents for text in (document.title, document.text)] + [
    query.text for query in FIXTURE.queries
]


class StrictParsing(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory(prefix="offline-canary-")
        self.addCleanup(folder.cleanup)
        self.path = Path(folder.name) / "fixture.json"

    def refuse(self, number: str) -> None:
        cases = cases_of(number)
        self.assertTrue(cases)
        for case in cases:
            with self.subTest(case.name):
                self.refuse_one(case)

    def refuse_one(self, case: Malformed) -> None:
        self.path.write_bytes(case.data)
        output, shown = io.StringIO(), io.StringIO()
        status = main(["--fixture", str(self.path)], output, shown)
        self.assertEqual((status, output.getvalue()), (1, ""))
        line = shown.getvalue()
        self.assertTrue(line.startswith(f"kbretrieval.offline: {case.code}: "), line)
        self.assertEqual(len(line.splitlines()), 1)
        self.assertTrue(line.isascii() and line.endswith("\n"))
        self.assertNotIn("canary", line)
        self.assertFalse([secret for secret in SECRETS if ascii(secret)[1:-1] in line])

    def test_the_good_fixture_is_read(self) -> None:
        self.assertEqual(main(["--fixture", str(FIXTURE_PATH)], io.StringIO(), io.StringIO()), 0)

    def test_the_table_is_large_and_every_row_is_another(self) -> None:
        self.assertGreaterEqual(len(TABLE), 50)
        self.assertEqual(len({case.data for case in TABLE} | {FIXTURE_BYTES}), len(TABLE) + 1)
        self.assertEqual(len({(case.promise, case.name) for case in TABLE}), len(TABLE))

    @promise("OFF-5", "OFF-61")
    def test_a_string_that_never_ends_is_looked_at_once(self) -> None:
        # With one look at the rest for every quotation mark, 4 MB take hours.
        for data in (b'"' + b'\\"' * 300_000, b'{"a": "' + b'\\"[' * 200_000, b'"' + b"\\" * 300_001):
            with self.assertRaises(errors.InvalidJson):
                parse_strict(data)
        self.assertEqual(parse_strict(b'["a\\"]", "\\\\", {}]'), ['a"]', "\\", {}])

    @promise("OFF-4")
    def test_the_top_level_has_exactly_four_fields(self) -> None:
        self.refuse("OFF-4")

    @promise("OFF-5")
    def test_duplicate_keys_at_any_depth(self) -> None:
        self.refuse("OFF-5")

    @promise("OFF-6")
    def test_numbers_that_json_does_not_have(self) -> None:
        self.refuse("OFF-6")

    @promise("OFF-7")
    def test_integers_too_large_for_a_float(self) -> None:
        self.refuse("OFF-7")
        self.assertEqual(parse_strict(b"17" + b"0" * 307), 17 * 10**307)

    @promise("OFF-8")
    def test_unknown_fields(self) -> None:
        self.refuse("OFF-8")

    @promise("OFF-9")
    def test_missing_fields(self) -> None:
        self.refuse("OFF-9")

    @promise("OFF-10")
    def test_wrong_types(self) -> None:
        self.refuse("OFF-10")

    @promise("OFF-11")
    def test_duplicate_ids(self) -> None:
        self.refuse("OFF-11")

    @promise("OFF-12")
    def test_wrong_dimension(self) -> None:
        self.refuse("OFF-12")

    @promise("OFF-13")
    def test_zero_vector(self) -> None:
        self.refuse("OFF-13")

    @promise("OFF-14")
    def test_vector_that_is_not_of_unit_length(self) -> None:
        self.refuse("OFF-14")
        good = fixture_value()
        good["documents"][0]["vector"][0] = 1.0000000005
        self.assertEqual(fixture_from_value(good).documents[0].vector[0], 1.0000000005)

    @promise("OFF-15")
    def test_judgements_of_documents_unknown_or_out_of_reach(self) -> None:
        self.refuse("OFF-15")

    @promise("OFF-16")
    def test_forbidden_documents_that_do_not_exist(self) -> None:
        self.refuse("OFF-16")

    @promise("OFF-17")
    def test_a_gate_that_could_never_fire(self) -> None:
        self.refuse("OFF-17")

    @promise("OFF-18")
    def test_other_axes(self) -> None:
        self.refuse("OFF-18")

    @promise("OFF-19")
    def test_labels_that_claim_more(self) -> None:
        self.refuse("OFF-19")

    @promise("OFF-21")
    def test_malformed_documents(self) -> None:
        self.refuse("OFF-21")

    @promise("OFF-27")
    def test_malformed_queries(self) -> None:
        self.refuse("OFF-27")

    @promise("OFF-28")
    def test_a_judgement_outlives_no_permission(self) -> None:
        self.refuse("OFF-28")

    def test_each_cause_has_a_class_and_a_code_of_its_own(self) -> None:
        classes = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, OfflineError)]
        self.assertEqual(len({kind.code for kind in classes}), len(classes))
        for kind in classes:
            self.assertRegex(kind.code, r"^[a-z][a-z0-9_]*$")
        for case in TABLE:
            if case.code not in ("fixture_too_large",):
                with self.subTest(case.name), self.assertRaises(OfflineError) as caught:
                    parse_fixture(case.data)
                self.assertEqual(type(caught.exception).code, case.code)

    def test_values_that_no_parser_gives_are_refused_too(self) -> None:
        for number, code in ((float("nan"), "non_finite_number"), (10**400, "number_too_large")):
            value = fixture_value()
            value["documents"][0]["vector"][0] = number
            with self.assertRaises(OfflineError) as caught:
                fixture_from_value(value)
            self.assertEqual(caught.exception.code, code)
        with self.assertRaises(OfflineError) as caught:
            fixture_from_value({1: "x"})
        self.assertEqual(caught.exception.code, "wrong_type")


if __name__ == "__main__":
    unittest.main()
