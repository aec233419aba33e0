"""One cell holds what a reader may turn, every value in it is used, and no cell asks whether it is tested (NB-8)."""

import ast
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook

from kbretrieval.book.contents import CHAPTERS

ROOT = Path(__file__).resolve().parents[2]
PARAMETERS = "parameters"
# What a notebook would look at to find out that nobody is reading.
TESTING = {"CI", "PYTEST_CURRENT_TEST", "pytest", "unittest", "testing", "TESTING"}
BOOK_VALUES = {"SIZE, OVERLAP": "BOOK_WINDOW", "K": "BOOK.rrf_k"}

pytestmark = pytest.mark.promise("NB-8")


def _trees(notebook: Any) -> list[tuple[bool, ast.Module]]:
    """Every code cell, parsed, and whether it is marked as the one with parameters."""
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    return [(PARAMETERS in cell.metadata.get("tags", []), ast.parse(cell.source)) for cell in cells]


def _assigned(tree: ast.Module) -> list[tuple[str, str]]:
    """What the top level assigns: (targets, value), as written."""
    found = [node for node in tree.body if isinstance(node, ast.Assign)]
    return [(ast.unparse(node.targets[0]).strip("()"), ast.unparse(node.value)) for node in found]


def _names(tree: ast.AST) -> set[str]:
    words = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}
    words |= {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            words |= {alias.name.partition(".")[0] for alias in node.names}
    return words


def faults(notebook: Any) -> list[str]:
    """Return what stands against NB-8 in a notebook."""
    trees = _trees(notebook)
    marked = [tree for is_marked, tree in trees if is_marked]
    if len(marked) != 1:
        return [f"1 parameters cell required, {len(marked)} there"]
    found = []
    if not trees[1][0]:
        found.append("parameters stand right behind the first cell")
    assigned = _assigned(marked[0])
    turned = {name.strip() for names, _ in assigned for name in names.split(",") if name.strip().isupper()}
    used = set().union(*(_names(tree) for _, tree in trees))
    found += [f"{name} is never used" for name in sorted(turned - used)]
    if not turned:
        found.append("nothing to turn")
    for names, value in assigned:
        if value != BOOK_VALUES.get(names, value):
            found.append(f"{names}: {BOOK_VALUES[names]} required, {value} given")
    found += [f"asks for {word}" for word in sorted(TESTING & used)]
    return found


@pytest.mark.parametrize("chapter", [c.file for c in CHAPTERS if c.published])
def test_a_reader_turns_values_in_one_cell(chapter: str) -> None:
    assert faults(nbformat.read(ROOT / "notebooks" / chapter, as_version=4)) == []


def _notebook(*sources: str, mark: int | None = 1) -> Any:
    cells = [new_code_cell(source) for source in sources]
    if mark is not None:
        cells[mark].metadata["tags"] = [PARAMETERS]
    return new_notebook(cells=cells)


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        (_notebook("a = 1", "K = BOOK.rrf_k", "print(K)"), []),
        (_notebook("a = 1", "K = BOOK.rrf_k", "print(K)", mark=None), ["1 parameters cell required, 0 there"]),
        (_notebook("a = 1", "b = 1", "N = 1\nprint(N)", mark=2), ["parameters stand right behind the first cell"]),
        (_notebook("a = 1", "LIMIT = 10", "a"), ["LIMIT is never used"]),
        (_notebook("a = 1", "a = 10", "a"), ["nothing to turn"]),
        (_notebook("a = 1", "K = 60", "print(K)"), ["K: BOOK.rrf_k required, 60 given"]),
        (_notebook("a = 1", "SIZE, OVERLAP = (80, 0)", "SIZE, OVERLAP"), ["SIZE, OVERLAP: BOOK_WINDOW required"]),
        (_notebook("import os", "N = 9", "N = 1 if os.environ.get('CI') else N"), ["asks for CI"]),
        (_notebook("import sys", "N = 9", "N if 'pytest' in sys.modules else 1"), ["asks for pytest"]),
    ],
)
def test_a_planted_fault_is_found(made: Any, expected: list[str]) -> None:
    found = faults(made)
    assert len(found) == len(expected)
    assert all(one.startswith(other) for one, other in zip(found, expected, strict=True))
