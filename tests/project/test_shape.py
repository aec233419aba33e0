"""The shape of the package: short modules, short functions, shallow nesting, names that say something."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
MODULES = sorted((ROOT / "kbretrieval").rglob("*.py"))
MODULE_LINES = 300
FUNCTION_LINES = 40
LEVELS = 3
VAGUE = {"utils", "util", "helpers", "helper", "manager", "managers", "data", "common", "misc", "base_class"}
FUNCTIONS = ast.FunctionDef | ast.AsyncFunctionDef
COMPOUND = ast.If | ast.For | ast.AsyncFor | ast.While | ast.With | ast.AsyncWith | ast.Try | ast.TryStar | ast.Match

each_module = pytest.mark.parametrize("path", MODULES, ids=lambda path: path.relative_to(ROOT).as_posix())


def _functions(source: str) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    return (node for node in ast.walk(ast.parse(source)) if isinstance(node, FUNCTIONS))


def long_functions(source: str) -> list[str]:
    """Functions of more than 40 lines, from ``def`` to the last line, the docstring included."""
    sizes = {node.name: (node.end_lineno or node.lineno) - node.lineno + 1 for node in _functions(source)}
    return [f"{name}: {lines} lines" for name, lines in sizes.items() if lines > FUNCTION_LINES]


def levels(node: ast.AST) -> int:
    """How deep compound statements stand inside one another; an ``elif`` is no deeper than its ``if``."""
    deepest = 0
    for name, field in ast.iter_fields(node):
        children = [child for child in (field if isinstance(field, list) else [field]) if isinstance(child, ast.AST)]
        chained = isinstance(node, ast.If) and name == "orelse" and len(children) == 1
        for child in children:
            if isinstance(child, FUNCTIONS | ast.ClassDef):
                continue
            own = isinstance(child, COMPOUND) and not (chained and isinstance(child, ast.If))
            deepest = max(deepest, own + levels(child))
    return deepest


def deep_functions(source: str) -> list[str]:
    """Functions that nest more than three levels of compound statements."""
    return [node.name for node in _functions(source) if levels(node) > LEVELS]


@each_module
def test_a_module_can_be_read_in_one_sitting(path: Path) -> None:
    source = path.read_text(encoding="utf-8")
    assert len(source.splitlines()) <= MODULE_LINES
    assert not long_functions(source)
    assert not deep_functions(source)


@each_module
def test_a_name_says_what_it_is_about(path: Path) -> None:
    assert not VAGUE & {part.strip("_") for part in path.relative_to(ROOT).with_suffix("").parts}


def test_the_package_was_found() -> None:
    assert len(MODULES) > 10


def test_a_long_function_is_found() -> None:
    body = "    x = 1\n" * FUNCTION_LINES
    assert long_functions(f"class C:\n  async def f(self):\n{body}") == ["f: 41 lines"]
    assert not long_functions(f"def f():\n{body[: -len('    x = 1') - 1]}")


def test_deep_nesting_is_found_and_elif_is_none() -> None:
    deep = "def f(x):\n for a in x:\n  if a:\n   with a:\n    try: pass\n    finally: pass"
    assert deep_functions(deep) == ["f"]
    chain = "def f(x):\n if x == 1: pass\n" + "".join(f" elif x == {n}: pass\n" for n in range(2, 9))
    assert not deep_functions(chain)
    assert deep_functions("def f(x):\n match x:\n  case 1:\n   for a in x:\n    while a:\n     if a: pass") == ["f"]
    assert not deep_functions("def f(x):\n for a in x:\n  def g():\n   for b in a:\n    if b:\n     if a: pass")
