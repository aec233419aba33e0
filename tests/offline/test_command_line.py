"""The command line: one report, or one line; the same bytes in four interpreter modes."""

import ast
import contextlib
import io
import json
import os
import subprocess
import sys
import tempfile
import unittest
from functools import partial
from pathlib import Path
from unittest import mock

from kbretrieval.offline import audit_report, cli, conditions_without, run_experiment, to_json
from tests.offline.cases import ARGUMENTS, FIXTURE, FIXTURE_PATH, MODES, PACKAGE, ROOT, command, fixture_value
from tests.offline.marks import promise

USUAL = ("--fixture", str(FIXTURE_PATH))


def run(*arguments: str) -> tuple[int, str, str]:
    """Status, standard output and standard error of the command, run in this process."""
    output, shown = io.StringIO(), io.StringIO()
    return cli.main(arguments, output, shown), output.getvalue(), shown.getvalue()


class CommandLine(unittest.TestCase):
    @promise("OFF-55", "OFF-63")
    def test_the_documented_command_prints_the_report(self) -> None:
        found = command(*ARGUMENTS, flags=("-W", "error"))
        self.assertEqual((found.returncode, found.stderr), (0, b""))
        self.assertEqual(found.stdout.decode("ascii"), to_json(audit_report(run_experiment(FIXTURE))))

    @promise("OFF-63")
    def test_four_modes_and_any_hash_seed_give_equal_bytes(self) -> None:
        outputs = {command(*ARGUMENTS, flags=flags).stdout for flags in MODES.values()}
        for seed in ("0", "1", "4711"):
            program = [sys.executable, "-B", "-S", "-m", "kbretrieval.offline", *USUAL, *ARGUMENTS]
            environment = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONIOENCODING": "utf-16", "LC_ALL": "C"}
            found = subprocess.run(program, capture_output=True, check=True, cwd=ROOT, env=environment)
            outputs.add(found.stdout.decode("utf-16").encode("ascii"))
        self.assertEqual(len(outputs), 1)
        self.assertTrue(outputs.pop().startswith(b"{\n"))

    @promise("OFF-66")
    def test_the_output_is_ascii_escaped_json(self) -> None:
        status, output, shown = run(*USUAL)
        self.assertEqual((status, shown), (0, ""))
        self.assertTrue(output.isascii())
        self.assertIn("\\u9000\\u6b3e", output)
        self.assertIn("想退款怎么申请", [query["text"] for query in json.loads(output)["queries"]])
        self.assertNotIn("\r", output)

    @promise("OFF-66")
    def test_the_measure_can_be_chosen(self) -> None:
        for metric in ("cosine", "dot", "euclidean"):
            report = json.loads(run(*USUAL, "--metric", metric)[1])
            self.assertEqual(report["settings"]["metric"], metric)
        scores = [hit["score"] for hit in report["queries"][0]["channels"]["dense"]["window"]]
        self.assertEqual(scores, [-0.632456])
        self.assertNotIn("-0.0,", json.dumps(report))

    def test_settings_arrive(self) -> None:
        report = json.loads(run(*USUAL, "--top-k", "2", "--rank-window", "1", "--rrf-constant", "10")[1])
        self.assertEqual(report["settings"], {"top_k": 2, "rank_window": 1, "rrf_constant": 10, "metric": "cosine"})

    @promise("OFF-54")
    def test_the_public_projection_can_be_printed(self) -> None:
        report = json.loads(run(*USUAL, "--public")[1])
        self.assertEqual((report["visibility"], len(report["results"])), ("public", 7))

    @promise("OFF-61")
    def test_an_error_is_one_line_and_a_status(self) -> None:
        with tempfile.TemporaryDirectory(prefix="canary") as folder:
            for arguments, status, code in [
                ((), 2, "usage"),
                (("--fixture",), 2, "usage"),
                ((*USUAL, "--frobnicate"), 2, "usage"),
                ((*USUAL, "a\nb\u2028退"), 2, "usage"),
                ((*USUAL, "--top", "3"), 2, "usage"),
                ((*USUAL, "--top-k", "0"), 1, "setting_out_of_range"),
                ((*USUAL, "--top-k", "-1"), 1, "setting_out_of_range"),
                ((*USUAL, "--top-k", "three\n"), 1, "setting_out_of_range"),
                ((*USUAL, "--top-k", "٣"), 1, "setting_out_of_range"),
                ((*USUAL, "--top-k", ""), 1, "setting_out_of_range"),
                ((*USUAL, "--rank-window", "2.5"), 1, "setting_out_of_range"),
                ((*USUAL, "--rank-window", "1000001"), 1, "setting_out_of_range"),
                ((*USUAL, "--rrf-constant", "9" * 5000), 1, "setting_out_of_range"),
                ((*USUAL, "--metric", "manhattan\n"), 1, "unknown_metric"),
                (("--fixture", f"{folder}/absent.json"), 1, "fixture_unreadable"),
                (("--fixture", folder), 1, "fixture_unreadable"),
                (("--fixture", "a\0b"), 1, "fixture_unreadable"),
            ]:
                with self.subTest(str(arguments)[:80]):
                    found = run(*arguments)
                    self.assertEqual(found[:2], (status, ""))
                    self.assertTrue(found[2].startswith(f"kbretrieval.offline: {code}: "), found[2])
                    self.assertEqual(len(found[2].splitlines()), 1)
                    self.assertTrue(found[2].isascii())
                    self.assertNotIn("canary", found[2])

    @promise("OFF-61")
    def test_an_error_in_a_process_of_its_own_leaves_no_traceback(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "bad.json"
            value = fixture_value()
            value["documents"][0]["vector"] = [0.0] * 7
            path.write_text(json.dumps(value), encoding="utf-8", newline="\n")
            for flags in MODES.values():
                found = command(flags=flags, fixture=str(path))
                self.assertEqual((found.returncode, found.stdout), (1, b""))
                self.assertEqual(
                    found.stderr.decode("ascii").splitlines(),
                    ["kbretrieval.offline: zero_vector: documents[0].vector: 7 zeros given, length 1 expected"],
                )

    @promise("OFF-61")
    def test_a_reader_that_has_gone_is_one_line_too(self) -> None:
        # The public projection fits into the interpreter's buffer, and would fail a second time when it closes.
        for arguments in (ARGUMENTS, ("--public",)):
            reading, writing = os.pipe()
            os.close(reading)
            program = [sys.executable, "-B", "-S", "-E", "-m", "kbretrieval.offline", *USUAL, *arguments]
            try:
                found = subprocess.run(program, stdout=writing, stderr=subprocess.PIPE, check=False, cwd=ROOT)
            finally:
                os.close(writing)
            self.assertEqual(found.returncode, 1)
            self.assertRegex(found.stderr.decode("ascii"), r"\Akbretrieval\.offline: output_failed: [^\n\r]*\r?\n\Z")

    @promise("OFF-61")
    @unittest.skipUnless(os.name == "posix", "only a POSIX shell starts a program without the stream")
    def test_an_output_that_was_closed_before_the_start_is_one_line_too(self) -> None:
        program = [sys.executable, "-B", "-S", "-E", "-m", "kbretrieval.offline", *USUAL]
        for closed, lines in ((">&-", 1), (">&- 2>&-", 0)):
            shell = ["sh", "-c", f'exec "$@" {closed}', "sh", *program]
            found = subprocess.run(shell, capture_output=True, check=False, cwd=ROOT)
            self.assertEqual((found.returncode, found.stdout), (1, b""))
            self.assertEqual(found.stderr.count(b"kbretrieval.offline: output_failed: OSError"), lines)
            self.assertEqual(len(found.stderr.splitlines()), lines)

    @promise("OFF-53", "OFF-61")
    def test_a_gate_that_fires_is_a_status_of_its_own(self) -> None:
        leaky = partial(run_experiment, conditions=conditions_without("acl"))
        with mock.patch.object(cli, "run_experiment", leaky):
            status, output, shown = run(*USUAL)
            self.assertEqual((status, shown, len(json.loads(output)["security_violations"])), (3, "", 6))
            status, output, shown = run(*USUAL, "--public")
        self.assertEqual((status, output), (3, ""))
        self.assertEqual(shown, "kbretrieval.offline: gate_fired: 6 security violations in the audit, 0 allowed\n")

    def test_help_is_shown(self) -> None:
        shown = io.StringIO()
        with contextlib.redirect_stdout(shown), self.assertRaises(SystemExit) as caught:
            cli.main(["--help"])
        self.assertEqual(caught.exception.code, 0)
        self.assertIn("--rank-window", shown.getvalue())

    @promise("OFF-64")
    def test_product_code_has_no_assert_statement(self) -> None:
        modules = sorted(PACKAGE.glob("*.py"))
        self.assertGreater(len(modules), 10)
        for path in modules:
            tree = ast.parse(path.read_text(encoding="utf-8"))
            self.assertEqual([node.lineno for node in ast.walk(tree) if isinstance(node, ast.Assert)], [], path.name)

    @promise("OFF-62")
    def test_no_test_relies_on_an_assert_statement(self) -> None:
        for path in sorted(Path(__file__).parent.glob("*.py")):
            tree = ast.parse(path.read_text(encoding="utf-8"))
            self.assertEqual([node.lineno for node in ast.walk(tree) if isinstance(node, ast.Assert)], [], path.name)


if __name__ == "__main__":
    unittest.main()
