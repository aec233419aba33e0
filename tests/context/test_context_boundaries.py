"""Whose names and whose tables: the borders of task contexts (CTX-69, CTX-70), and all refusals without text."""

import ast
import re
from pathlib import Path

import pytest

import kbretrieval.context
from kbretrieval.context import Budget, rehearsal
from kbretrieval.errors import KBError
from tests.context.place import ENDS, Place
from tests.project.test_imports import sql_spoken
from tests.unit.doubles import error_of

ROOT = Path(__file__).resolve().parents[2]
ROOM = ROOT / "kbretrieval" / "context"
SPEAKS_SQL = {"bindings", "ledger", "records", "tables"}
TABLE = re.compile(r"\b(?:FROM|JOIN|INTO|UPDATE|TABLE)\s+([a-z_]+)")
NOT_OURS = {"json_each", "sqlite_schema"}


def deep_imports(source: str) -> list[str]:
    """What a module imports from inside task contexts instead of from `kbretrieval.context`."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("kbretrieval.context."):
            found.append(node.module or "")
        if isinstance(node, ast.ImportFrom) and node.module == "kbretrieval.context":
            found += [alias.name for alias in node.names if alias.name not in kbretrieval.context.__all__]
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names if alias.name.startswith("kbretrieval.context.")]
    return found


OTHERS = [path for path in sorted((ROOT / "kbretrieval").rglob("*.py")) if ROOM not in path.parents]


@pytest.mark.promise("CTX-69")
def test_nobody_imports_what_is_inside() -> None:
    assert len(OTHERS) > 100
    named = {path: path.read_text(encoding="utf-8") for path in OTHERS}
    named = {path: source for path, source in named.items() if "context" in source and "kbretrieval.context" in source}
    assert [path for path, source in named.items() if deep_imports(source)] == []


@pytest.mark.promise("CTX-69")
def test_nobody_speaks_of_its_tables() -> None:
    """But for the parts, which a purge has to empty."""
    names = [
        "schema",
        "collections",
        "releases",
        "policies",
        "scopes",
        "calls",
        "snapshots",
        "deliveries",
        "consumptions",
        "signals",
    ]
    table = re.compile(rf"\bcontext_(?:{'|'.join(names)})\b")
    assert table.search((ROOM / "tables.py").read_text(encoding="utf-8"))
    assert [path for path in OTHERS if table.search(path.read_text(encoding="utf-8"))] == []


@pytest.mark.promise("CTX-69")
@pytest.mark.parametrize(
    "source",
    [
        "from kbretrieval.context.records import find_scope",
        "import kbretrieval.context.tables",
        "from kbretrieval.context import records",
    ],
)
def test_an_import_of_what_is_inside_is_found(source: str) -> None:
    assert deep_imports(source)
    assert not deep_imports("from kbretrieval.context import TaskContexts\nfrom kbretrieval.identity import Context")


def foreign_tables(source: str) -> set[str]:
    """Tables that the SQL of a module names and that are not of task contexts."""
    statements = " ".join(sql_spoken(source))
    return {name for name in TABLE.findall(statements) if not name.startswith("context_")} - NOT_OURS


@pytest.mark.promise("CTX-70")
@pytest.mark.parametrize("path", sorted(ROOM.glob("*.py")), ids=lambda path: path.stem)
def test_sql_names_the_tables_of_task_contexts_alone(path: Path) -> None:
    """Documents, ACLs and commits are read through the functions of the rooms that own them."""
    source = path.read_text(encoding="utf-8")
    assert path.stem in SPEAKS_SQL or not sql_spoken(source)
    assert foreign_tables(source) == set()


@pytest.mark.promise("CTX-70")
def test_sql_about_somebody_elses_table_is_found() -> None:
    assert foreign_tables("x = 'SELECT a FROM documents d JOIN acl a ON a.b = d.b'") == {"documents", "acl"}
    assert foreign_tables("x = 'SELECT a FROM context_scopes'") == set()


def test_every_public_name_can_be_imported() -> None:
    assert sorted(kbretrieval.context.__all__, key=str.lower) == sorted(kbretrieval.context.__all__, key=str.lower)
    for name in kbretrieval.context.__all__:
        made = getattr(kbretrieval.context, name)
        assert (made.__doc__ or "").strip(), name
    public = {name for name in vars(kbretrieval.context.TaskContexts) if not name.startswith("_")}
    assert {"search", "assemble", "freeze", "replay", "deliver", "check_dependencies"} <= public
    for name in public:
        assert "Example:" in (getattr(kbretrieval.context.TaskContexts, name).__doc__ or ""), name


@pytest.mark.promise("CTX-30")
@pytest.mark.parametrize("code", ENDS)
def test_a_refusal_holds_no_text_and_no_name_of_a_document(place: Place, code: str) -> None:
    scope = place.scope()
    package = place.package(scope)
    ENDS[code](place)
    errors: list[KBError | None] = [
        error_of(place.tasks.read, scope, "refund"),
        error_of(place.tasks.freeze, scope, package),
        error_of(place.tasks.assemble, scope, must_read=["refund"]),
        error_of(place.tasks.narrow, scope, documents=["travel"]),
        error_of(place.scope, budget=Budget(input_bytes=10**6)),
    ]
    for error in errors:
        assert error is not None
        assert not any(word in str(error) for word in ("refund", "travel", "退款", "policies", "alice"))


def test_the_rehearsal_leaves_nothing_behind() -> None:
    with rehearsal() as (tasks, _):
        path = tasks._connection._path
        assert path.exists()
    assert not path.parent.exists()
