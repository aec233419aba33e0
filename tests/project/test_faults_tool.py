"""`tools.faults`: every test is a row, a failed or skipped one refuses the evidence, and what a test tells is kept."""

import json
from pathlib import Path

import pytest

from kbretrieval.evidence.errors import CheckFailed
from tools.faults import Outcomes, write_claim

TESTS = """
import pytest

@pytest.mark.promise("FLT-1", "UPD-2")
def test_one(record_property):
    record_property("points", 7)

@pytest.mark.parametrize("n", [1, 2])
@pytest.mark.promise("FLT-7")
def test_other(n):
    {body}
"""


def outcomes(pytester: pytest.Pytester, body: str) -> Outcomes:
    pytester.makepyfile(test_sample=TESTS.format(body=body))
    found = Outcomes()
    pytester.inline_run("-p", "no:cacheprovider", plugins=[found])
    return found


def test_what_passed_is_written_with_what_it_told(pytester: pytest.Pytester, tmp_path: Path) -> None:
    path = write_claim(outcomes(pytester, "assert n"), "short", tmp_path, ("FLT-1", "FLT-7"))
    made = json.loads(path.read_text(encoding="utf-8"))
    rows = made["deterministic"]["rows"]
    assert path.name == "faults-short.json"
    assert [row["test"].partition("::")[2] for row in rows] == ["test_one", "test_other[1]", "test_other[2]"]
    assert rows[0]["promises"] == ["FLT-1", "UPD-2"] and all(row["passed"] for row in rows)
    assert list(made["observed"]["told"].values()) == [{"points": 7}]


def test_a_gate_without_a_test_refuses_the_evidence(pytester: pytest.Pytester, tmp_path: Path) -> None:
    with pytest.raises(CheckFailed, match="gates with a test"):
        write_claim(outcomes(pytester, "assert n"), "short", tmp_path)
    assert list(tmp_path.glob("faults*")) == []


def test_what_is_no_test_of_a_gate_is_left_out(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(test_sample=TESTS.format(body="assert n").replace('"FLT-7"', '"ACL-5"'))
    found = Outcomes()
    result = pytester.inline_run("-p", "no:cacheprovider", plugins=[found])
    assert [name.partition("::")[2] for name in found.promises] == ["test_one"]
    assert (len(result.listoutcomes()[0]), len(found.passed)) == (1, 1)


@pytest.mark.parametrize("body", ["assert n == 1", "pytest.skip('no')", "raise ValueError"])
def test_a_test_that_did_not_pass_refuses_the_evidence(pytester: pytest.Pytester, tmp_path: Path, body: str) -> None:
    with pytest.raises(CheckFailed):
        write_claim(outcomes(pytester, body), "short", tmp_path, ("FLT-1", "FLT-7"))
    assert list(tmp_path.glob("faults*")) == []
