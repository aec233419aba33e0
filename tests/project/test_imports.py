"""The import graph of the package: data walks one way, and two rooms stand on the standard library alone."""

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "kbretrieval"

# A room may import the rooms before it. A new module finds its place here, and nowhere else is the order written down.
ORDER = [
    *("_version", "errors", "identity", "options", "hit_format", "results", "model"),
    *("markdown_source", "json_source", "projection", "chunking", "analysis", "embedded", "encoders"),
    *("store", "snapshot", "engine", "channels", "fusion", "rerank", "retrieval"),
    *("citation", "derived", "lifecycle", "observers", "checking", "repair", "maintenance"),
    *("explaining", "migration", "index"),
    *("sync", "evaluation", "context", "book", "bench", "doctor", "cli", "__main__"),
]
# These need nothing but the standard library and themselves, and what they may know of the package besides.
ALONE = {"evidence": {"_version"}, "offline": set[str]()}

# Rooms that speak SQL: the engine's, task contexts of their own tables, and the peers that it is measured against.
SQL_ROOMS = {"store", "bench", "context"}
SQL = re.compile(r"\s*(?:SELECT|INSERT (?:OR \w+ )?INTO|UPDATE \w+ SET|DELETE FROM|PRAGMA|CREATE|DROP|VACUUM|BEGIN)\b")


def _imported(tree: ast.AST, module: str) -> Iterator[str]:
    """Dotted names of everything that a module imports, wherever in the file."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            parent = module.split(".")[: -node.level] if node.level else []
            base = ".".join([*parent, *([node.module] if node.module else [])])
            if base == "kbretrieval":
                yield from (f"kbretrieval.{alias.name}" for alias in node.names)
            else:
                yield base


def _room(name: str) -> str:
    return name.split(".")[1] if "." in name else ""


def _module_name(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts)


def wrong_imports(source: str, module: str) -> list[str]:
    """What a module imports against the order of the rooms."""
    own = _room(module)
    wrong = []
    for name in _imported(ast.parse(source), module):
        top, other = name.partition(".")[0], _room(name)
        if top != "kbretrieval":
            if own in ALONE and top not in sys.stdlib_module_names:
                wrong.append(name)
        elif other != own and not _allowed(own, other):
            wrong.append(name)
    return wrong


def _allowed(own: str, other: str) -> bool:
    if own in ALONE:
        return other in ALONE[own]
    if other in ALONE:
        # Evidence is written by whoever claims something; the engine itself claims nothing.
        return ORDER.index(own) > ORDER.index("index")
    return other in ORDER and ORDER.index(other) < ORDER.index(own)


MODULES = [path for path in sorted(PACKAGE.rglob("*.py")) if path != PACKAGE / "__init__.py"]


@pytest.mark.parametrize("path", MODULES, ids=_module_name)
def test_a_module_imports_only_what_comes_before_it(path: Path) -> None:
    module = _module_name(path)
    assert _room(module) in {*ORDER, *ALONE}, "give the new room its place in ORDER"
    assert not wrong_imports(path.read_text(encoding="utf-8"), module)


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("kbretrieval.chunking", "from kbretrieval.store import rows"),
        ("kbretrieval.chunking", "def f():\n    import kbretrieval.index"),
        ("kbretrieval.chunking", "from kbretrieval import Index"),
        ("kbretrieval.store.rows", "from ..index import Index"),
        ("kbretrieval.store.rows", "from kbretrieval.evidence import write"),
        ("kbretrieval.offline.bm25", "from kbretrieval.analysis import terms"),
        ("kbretrieval.offline.bm25", "import numpy"),
        ("kbretrieval.evidence.verify", "from kbretrieval.errors import KBError"),
        ("kbretrieval.evidence.verify", "import jsonschema"),
    ],
)
def test_an_import_against_the_order_is_found(module: str, source: str) -> None:
    assert wrong_imports(source, module)


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("kbretrieval.store.rows", "from .schema import TABLES"),
        ("kbretrieval.store.rows", "from ..chunking import Chunk\nimport sqlite3, numpy"),
        ("kbretrieval.book.runner", "from kbretrieval.evidence import write"),
        ("kbretrieval.evidence.verify", "import json\nfrom kbretrieval.evidence.schema import SCHEMA"),
    ],
)
def test_an_import_in_order_is_none(module: str, source: str) -> None:
    assert not wrong_imports(source, module)


def sql_spoken(source: str) -> list[str]:
    """Statements of SQL, and what is used of ``sqlite3`` besides the version of the library."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and SQL.match(node.value):
            found.append(node.value)
        if isinstance(node, ast.Attribute) and ast.unparse(node.value) == "sqlite3" and node.attr != "sqlite_version":
            found.append(f"sqlite3.{node.attr}")
        if isinstance(node, ast.ImportFrom) and node.module == "sqlite3":
            found.append("from sqlite3")
    return found


@pytest.mark.parametrize("path", MODULES, ids=_module_name)
def test_sql_stays_in_its_rooms(path: Path) -> None:
    assert _room(_module_name(path)) in SQL_ROOMS or not sql_spoken(path.read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    "source",
    [
        "x = 'SELECT a FROM b'",
        "f('  INSERT INTO a VALUES (?)')",
        "import sqlite3\nsqlite3.connect(p)",
        "from sqlite3 import connect",
        "x = f'PRAGMA {name}'",
        "execute('BEGIN IMMEDIATE')",
    ],
)
def test_sql_elsewhere_is_found(source: str) -> None:
    assert sql_spoken(source)


def test_the_version_of_sqlite_may_be_read() -> None:
    assert not sql_spoken("import sqlite3\nx = sqlite3.sqlite_version\ny = 'Select a file'\nz = 'BEGINNING'")


@pytest.mark.parametrize(
    ("statement", "absent"),
    [
        ("import kbretrieval", "numpy sqlite3 regex markdown_it yaml typer"),
        ("import kbretrieval.offline", "numpy sqlite3 regex markdown_it yaml typer"),
        ("import kbretrieval.evidence", "numpy regex markdown_it yaml typer"),
    ],
)
def test_importing_brings_in_nothing_heavy(statement: str, absent: str) -> None:
    program = f"{statement}; import sys; print(sorted(set({absent.split()}) & set(sys.modules)))"
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, encoding="utf-8", cwd=ROOT, check=True)
    assert run.stdout.strip() == "[]"
