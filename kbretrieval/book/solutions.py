"""Putting the shipped solutions in the place of the stubs; the convention is in `kbretrieval.book.exercises`."""

import ast
import copy
from pathlib import Path
from typing import Any

TAG = "exercise"


def solution_file(notebook: Path) -> Path:
    """Return where the solutions of a notebook lie.

    Example:
        >>> solution_file(Path("notebooks/07_rrf.ipynb")).as_posix()
        'notebooks/solutions/07_exercises.py'
    """
    return notebook.parent / "solutions" / f"{notebook.name[:2]}_exercises.py"


def exercise_cells(notebook: Any) -> list[Any]:
    """Return the cells tagged `exercise`."""
    return [cell for cell in notebook.cells if TAG in cell.metadata.get("tags", [])]


def defined_names(source: str) -> set[str]:
    """Return the names that functions, classes and assignments define at the top level of a source text.

    Example:
        >>> sorted(defined_names("import math\\nanswer = None\\ndef fused(rank): return None"))
        ['answer', 'fused']
    """
    return {name for node in ast.parse(source).body for name in _names(node)}


def solve(notebook: Any, solution: str) -> Any:
    """Return a copy in which each exercise cell holds the solution's definition wherever it has a stub of that name.

    What else the solution has at its top level is put before each of these cells; other cells are untouched.
    """
    made = copy.deepcopy(notebook)
    stubs = {name for cell in exercise_cells(made) for name in defined_names(cell.source)}
    solved = {name: node for node in ast.parse(solution).body for name in _names(node) if name in stubs}
    before = [node for node in ast.parse(solution).body if not stubs.intersection(_names(node))]
    for cell in exercise_cells(made):
        body = [solved.get(next(iter(_names(node)), ""), node) for node in ast.parse(cell.source).body]
        cell.source = ast.unparse(ast.Module(body=[*before, *body], type_ignores=[]))
    return made


def _names(node: ast.stmt) -> list[str]:
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return [node.name]
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
    return [target.id for target in targets if isinstance(target, ast.Name)]
