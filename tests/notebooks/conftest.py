"""Each committed notebook is executed twice in a test session, and every test reads those two executions.

First: as committed, hash seed 0, a fresh folder. Second: with the exercises solved, another hash seed, another working
directory, in reversed order. Only the selected notebooks run.
"""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from kbretrieval.book.contents import chapter, find_notebooks
from kbretrieval.book.errors import ModelNotReady
from kbretrieval.book.preflight import check_model
from kbretrieval.book.runner import NotebookRun, run_notebooks
from kbretrieval.book.solutions import solution_file, solve

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOKS = find_notebooks(ROOT / "notebooks")

Build = Callable[..., Path]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Make one test item per notebook found by glob."""
    if "notebook" in metafunc.fixturenames:
        metafunc.parametrize("notebook", NOTEBOOKS, ids=[path.stem for path in NOTEBOOKS])


def model_absent(path: Path) -> bool:
    """Return whether a notebook cannot run because the model is not here; in CI that is a failure, not an excuse."""
    if os.environ.get("CI") or not chapter(int(path.name[:2])).needs_model:
        return False
    try:
        check_model()
    except ModelNotReady:
        return True
    return False


def runnable(request: pytest.FixtureRequest) -> list[Path]:
    """Return the notebooks that the selected tests ask for, in chapter order."""
    asked = {item.callspec.params.get("notebook") for item in request.session.items if hasattr(item, "callspec")}
    return [path for path in NOTEBOOKS if path in asked and not model_absent(path)]


@pytest.fixture(scope="session")
def first_runs(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> dict[str, NotebookRun]:
    """Return the runs as committed, by file name."""
    chosen = runnable(request)
    runs = run_notebooks(chosen, tmp_path_factory.mktemp("first")) if chosen else []
    return {run.path.name: run for run in runs}


@pytest.fixture(scope="session")
def second_runs(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> dict[str, NotebookRun]:
    """Return the runs with solved exercises under other circumstances, by file name."""

    def solved(path: Path, notebook: Any) -> Any:
        return solve(notebook, solution_file(path).read_text(encoding="utf-8"))

    elsewhere = tmp_path_factory.mktemp("elsewhere")
    output = tmp_path_factory.mktemp("second")
    chosen = list(reversed(runnable(request)))
    runs = run_notebooks(chosen, output, hash_seed="4242", cwd=elsewhere, change=solved) if chosen else []
    return {run.path.name: run for run in runs}


def _of_notebook(runs: dict[str, NotebookRun], notebook: Path) -> NotebookRun:
    if notebook.name not in runs:
        pytest.skip("the model is not on this machine: run `kbretrieval model fetch`")
    return runs[notebook.name]


@pytest.fixture
def first(first_runs: dict[str, NotebookRun], notebook: Path) -> NotebookRun:
    """Return the first run of the notebook under test."""
    return _of_notebook(first_runs, notebook)


@pytest.fixture
def second(second_runs: dict[str, NotebookRun], notebook: Path) -> NotebookRun:
    """Return the second run of the notebook under test."""
    return _of_notebook(second_runs, notebook)


def build_notebook(path: Path, *cells: str | tuple[str, str]) -> Path:
    """Write a notebook with one sentence of prose before each code cell; a pair gives a cell's source and its tag."""
    made = new_notebook()
    for cell in cells:
        source, tag = cell if isinstance(cell, tuple) else (cell, "")
        made.cells.append(new_markdown_cell("先看这一步。"))
        made.cells.append(new_code_cell(source, metadata={"tags": [tag]} if tag else {}))
    path.write_text(nbformat.writes(made), encoding="utf-8", newline="\n")
    return path


@pytest.fixture(scope="session")
def build() -> Build:
    """Return `build_notebook`."""
    return build_notebook


TINY = (
    "from kbretrieval import book\nbook.start(chapter=7)",
    "parts = {'travel#0': {'词面': 1 / 61, '向量': 1 / 61}}\n"
    "alt = book.alt_text('堆叠条形图', x='融合分数', y='结果', conclusion='两个通道各出一半。')\n"
    "figure = book.contribution_bars(parts, title='两个第一名')\n"
    "book.show(figure, alt=alt, caption='两个第一名', table=[{'结果': 'travel#0', '词面': 1 / 61}])",
    "book.say('合计 {total:.4f}。', total=2 / 61)\nsorted({'甲', '乙'})",
    (
        "def share(rank):\n    return None\n\n\n"
        "book.exercise('练习 1', share, cases=[((1,), 1 / 61)], hint='分母是 60 加名次。')",
        "exercise",
    ),
)


@pytest.fixture(scope="session")
def tiny_runs(tmp_path_factory: pytest.TempPathFactory) -> tuple[NotebookRun, NotebookRun]:
    """Return two runs of one small clean notebook: plain, and solved under another seed and working directory."""
    folder = tmp_path_factory.mktemp("tiny")
    path = build_notebook(folder / "07_tiny.ipynb", *TINY)
    solution = "from math import fsum\n\n\ndef share(rank):\n    return 1 / fsum([60, rank])\n"
    plain = run_notebooks([path], folder / "plain")
    solved = run_notebooks(
        [path], folder / "solved", hash_seed="7", cwd=folder, change=lambda _, notebook: solve(notebook, solution)
    )
    return plain[0], solved[0]
