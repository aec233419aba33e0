"""The cases of ../shared/cases: faults that were reported elsewhere, each as a small input of our own and its outcome.

Every case is run as it stands in the file: its statements, then each line of `expect` that is an expression has to be
true. Sentences are not read; where a case has nothing else, `SENTENCES_ONLY` says what stands for them.
"""

import ast
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.conformance.case_file import NOT_RUN, SENTENCES_ONLY, Case, read_cases, run_case
from tests.conformance.case_names import ADAPTED, Names
from tools.promises import read_pages

ROOT = Path(__file__).resolve().parents[2]
CASES = read_cases(ROOT.parent / "shared" / "cases" / "cases.json")
TO_RUN = tuple(case for case in CASES if case.id not in NOT_RUN)
NUMBER_OF_CASES = 76

# Names that need something special of the machine, or of the other tests.
MODEL = {"BGEEncoder", "copy_model", "encode_with"}
STRACE = {"kill_at", "full_at"}
TIMES = {"median_ms", "timed_code", "timed_upsert", "parallel", "race"}
SLOW = {"C047", "C060", "C061"}
NO_STRACE = pytest.mark.skipif(shutil.which("strace") is None, reason="not run: strace is not installed")


def marks(case: Case) -> Iterator[pytest.MarkDecorator]:
    """The marks of a case: the promises that it names, and what the names that it reads ask for."""
    read = case.names(ast.Load)
    if case.promise:
        yield pytest.mark.promise(*case.promise)
    if read & MODEL:
        yield pytest.mark.model
    if read & STRACE:
        yield from (pytest.mark.strace, NO_STRACE)
    if read & TIMES:
        yield pytest.mark.alone
    if case.id in SLOW:
        yield pytest.mark.slow


def parameters() -> list[Any]:
    """A parameter for each case; one that stands for all of them where the file is not there."""
    made = [pytest.param(case, id=case.id, marks=list(marks(case))) for case in TO_RUN]
    return made or [pytest.param(None, id="absent")]


def ran(case: Case, folder: Path) -> tuple[int, tuple[str, ...]]:
    """How many expressions of a case were looked at, and which of them were not true."""
    names = Names(folder)
    try:
        outcome = run_case(case, names.all(index="index" in case.names(ast.Load) - case.names(ast.Store)))
    finally:
        names.close()
    return outcome.evaluated, outcome.untrue


@pytest.mark.parametrize("case", parameters())
def test_case(case: Case | None, shared: Path, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    """One case. Its promises are marks that are known at run time only, so docs/promises.md does not list them."""
    assert case is not None, f"there are no cases in {shared}"
    if request.node.get_closest_marker("model"):
        request.getfixturevalue("model_folder")
    evaluated, untrue = ran(case, tmp_path)
    assert untrue == ()
    assert evaluated > 0


def test_no_case_is_left_out(shared: Path) -> None:
    """What is run and what is named as not run are together the whole file, and each case has something to judge."""
    listed = read_cases(shared / "cases" / "cases.json")
    assert [case.id for case in listed] == [f"C{number:03d}" for number in range(1, NUMBER_OF_CASES + 1)]
    assert len(TO_RUN) + len(NOT_RUN) == NUMBER_OF_CASES and set(NOT_RUN) <= {case.id for case in listed}
    assert {case.id for case in TO_RUN if not case.expressions} == set(SENTENCES_ONLY)


def test_every_promise_of_a_case_exists(shared: Path) -> None:
    known = {number for page in read_pages() for number in page.promises}
    assert {number for case in read_cases(shared / "cases" / "cases.json") for number in case.promise} <= known


@pytest.mark.parametrize("case_id", SENTENCES_ONLY)
def test_sentences_are_covered_by_a_test_that_exists(case_id: str) -> None:
    path, _, name = SENTENCES_ONLY[case_id].test.partition("::")
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    assert name in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


def test_every_name_that_is_adapted_is_one(tmp_path: Path) -> None:
    names = Names(tmp_path)
    assert set(ADAPTED) <= set(names.all(index=False))
    names.close()


def made_up(*expect: str, act: str = "") -> Case:
    """A case of our own."""
    setup = 'index.upsert("acme", "a", 1, "markdown", "# 年假\\n\\n年假五天。", ["alice"])'
    return Case("C999", (), (setup,), (act,), expect)


def test_a_case_whose_expectation_is_false_is_told(tmp_path: Path) -> None:
    true, false = 'docs(index.search("年假", alice)) == ["a"]', 'docs(index.search("年假", bob)) == ["a"]'
    assert ran(made_up(true, false, "Bob sees nothing."), tmp_path) == (2, (false,))


def test_a_true_value_that_is_not_true_itself_is_told(tmp_path: Path) -> None:
    """A comparison that lost its right side would pass otherwise."""
    line = 'docs(index.search("年假", alice))'
    assert ran(made_up(line), tmp_path) == (1, (line,))


def test_what_a_statement_raises_passes_through(tmp_path: Path) -> None:
    with pytest.raises(NameError, match="unheard_of"):
        ran(made_up("True", act="unheard_of(index)"), tmp_path)


def test_a_case_of_sentences_alone_judges_nothing(tmp_path: Path) -> None:
    assert ran(made_up("Bob sees nothing."), tmp_path) == (0, ())
