"""Every committed notebook, one test item each: it runs, it is clean, and it says what the file says."""

from pathlib import Path

import nbformat
import pytest

from kbretrieval.book.contents import CHAPTERS, Chapter, contents_differences, find_notebooks
from kbretrieval.book.exercises import FAILED, PASSED
from kbretrieval.book.lints import lint, lint_text
from kbretrieval.book.normalise import differences, pictures_comparable
from kbretrieval.book.runner import BOOK_LIMIT_SECONDS, WALL_LIMIT_SECONDS, NotebookRun
from kbretrieval.book.solutions import TAG, exercise_cells, solution_file

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]


def test_the_set_of_notebooks_is_the_table_of_contents() -> None:
    assert contents_differences(find_notebooks(ROOT / "notebooks")) == []


@pytest.mark.promise("NB-10")
def test_a_forgotten_and_an_unlisted_notebook_are_named() -> None:
    listed = [Chapter(7, "07_rrf.ipynb", "RRF", "？", published=True)]
    assert contents_differences([Path("08_rerank.ipynb")], listed) == [
        "07_rrf.ipynb: in the table of contents, not in the folder",
        "08_rerank.ipynb: in the folder, not in the table of contents",
    ]
    assert [item.number for item in CHAPTERS] == list(range(19))
    assert all(item.file.startswith(f"{item.number:02d}_") for item in CHAPTERS)


@pytest.mark.promise("NB-10", "NB-11", "NB-12")
def test_it_runs_and_nothing_is_wrong_afterwards(first: NotebookRun) -> None:
    assert first.ok, first.report()


@pytest.mark.promise("NB-13")
def test_it_says_what_the_committed_file_says(notebook: Path, first: NotebookRun) -> None:
    committed = nbformat.read(notebook, as_version=4)
    assert differences(committed, first.notebook, pixels=pictures_comparable(committed)) == []


@pytest.mark.promise("NB-13")
def test_another_seed_folder_and_order_change_nothing(first: NotebookRun, second: NotebookRun) -> None:
    assert second.ok, second.report()
    assert differences(first.notebook, second.notebook, pixels=True, without=TAG) == []


@pytest.mark.promise("NB-1", "NB-3", "NB-5")
def test_the_committed_file_keeps_the_house_rules(notebook: Path) -> None:
    committed = nbformat.read(notebook, as_version=4)
    assert lint(committed) == []
    assert lint_text(notebook.read_text(encoding="utf-8"), committed) == []


@pytest.mark.promise("NB-10")
def test_the_stubs_fail_and_the_solutions_pass(notebook: Path, first: NotebookRun, second: NotebookRun) -> None:
    assert solution_file(notebook).is_file()
    cells = exercise_cells(first.notebook)
    assert len(cells) >= 2, "two or three exercises a chapter"
    for stub, solved in zip(cells, exercise_cells(second.notebook), strict=True):
        said, then = (
            "".join(output.get("text", "") for output in cell.outputs if output.output_type == "stream")
            for cell in (stub, solved)
        )
        assert FAILED in said and PASSED not in said
        assert PASSED in then and FAILED not in then


@pytest.mark.promise("NB-15")
def test_it_stays_within_its_minute(first: NotebookRun) -> None:
    assert first.seconds <= WALL_LIMIT_SECONDS


@pytest.mark.promise("NB-15")
def test_it_stays_within_ten_minutes_with_the_others(first: NotebookRun, first_runs: dict[str, NotebookRun]) -> None:
    assert first.path.name in first_runs
    assert sum(run.seconds for run in first_runs.values()) <= BOOK_LIMIT_SECONDS
