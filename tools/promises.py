"""Write docs/promises.md: every promise, what it is about, and the tests that carry its number.

Usage: python tools/promises.py [--check]

The numbers and their wording stand in docs/promises.toml. Tests are found by reading the sources under tests/, not by
running them, so that the page does not depend on what is installed. With ``--check`` nothing is written and the exit
status is 1 if the page is not up to date.
"""

import argparse
import ast
import sys
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DATA = ROOT / "docs" / "promises.toml"
PAGE = ROOT / "docs" / "promises.md"
STATUSES = ("planned", "in_progress", "finished")
NAMES_SHOWN = 3
# Plain ``promise`` is for suites that run without pytest and define a decorator of that name.
MARKS = {"pytest.mark.promise", "mark.promise", "promise"}


@dataclass(frozen=True, slots=True)
class Page:
    """One page of the specification: its promises in order, and how far they are kept."""

    name: str
    title: str
    status: str
    finished: tuple[str, ...]
    promises: Mapping[str, str]

    def must_have_tests(self, promise: str) -> bool:
        """True if this promise belongs to a finished page or to a finished series of a page in progress."""
        return self.status == "finished" or series(promise) in self.finished


@dataclass(frozen=True, slots=True, order=True)
class Carrier:
    """A test, a class or a module of tests that carries numbers of promises."""

    path: str
    name: str

    def __str__(self) -> str:
        return f"{self.path}::{self.name}" if self.name else self.path


def series(promise: str) -> str:
    """The letters of a number: ``series("ACL-4") == "ACL"``."""
    return promise.partition("-")[0]


def read_pages(path: Path = DATA) -> tuple[Page, ...]:
    """Read the table; a ``ValueError`` names a status or a finished series that does not exist."""
    with path.open("rb") as source:
        rows = tomllib.load(source)["page"]
    pages = tuple(Page(r["name"], r["title"], r["status"], tuple(r["finished"]), r["promises"]) for r in rows)
    for page in pages:
        if page.status not in STATUSES:
            raise ValueError(f"page {page.name}: status is one of {STATUSES}, not {page.status!r}")
        unknown = set(page.finished) - {series(promise) for promise in page.promises}
        if unknown:
            raise ValueError(f"page {page.name}: has no series {sorted(unknown)}")
    return pages


def _numbers(node: ast.expr) -> Iterator[str]:
    """Numbers in ``pytest.mark.promise("A-1", "A-2")``, also in a list of marks."""
    if isinstance(node, ast.List | ast.Tuple):
        for element in node.elts:
            yield from _numbers(element)
    elif isinstance(node, ast.Call) and ast.unparse(node.func) in MARKS:
        for argument in node.args:
            if not (isinstance(argument, ast.Constant) and isinstance(argument.value, str)):
                raise ValueError(f"line {argument.lineno}: a promise is named by a literal string")
            yield argument.value


def _marks_of_body(body: Iterable[ast.stmt]) -> Iterator[str]:
    for node in body:
        if isinstance(node, ast.Assign) and "pytestmark" in map(ast.unparse, node.targets):
            yield from _numbers(node.value)


def _parameter_marks(node: ast.expr) -> Iterator[str]:
    """Numbers in ``pytest.param(..., marks=pytest.mark.promise("A-1"))`` inside a decorator."""
    for call in ast.walk(node):
        if isinstance(call, ast.Call):
            for keyword in call.keywords:
                if keyword.arg == "marks":
                    yield from _numbers(keyword.value)


def _walk(body: Iterable[ast.stmt], prefix: str) -> Iterator[tuple[str, str]]:
    for node in body:
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            continue
        for decorator in node.decorator_list:
            for number in (*_numbers(decorator), *_parameter_marks(decorator)):
                yield number, prefix + node.name
        if isinstance(node, ast.ClassDef):
            yield from ((number, prefix + node.name) for number in _marks_of_body(node.body))
            yield from _walk(node.body, f"{prefix}{node.name}::")


def carriers_in(source: str, path: str) -> Iterator[tuple[str, Carrier]]:
    """Pairs of a promise's number and the module (empty name), class or function that carries it.

    Example:
        >>> text = '@pytest.mark.promise("ACL-4")\\ndef test_revoked(): ...'
        >>> [(number, str(carrier)) for number, carrier in carriers_in(text, "tests/test_acl.py")]
        [('ACL-4', 'tests/test_acl.py::test_revoked')]
    """
    tree = ast.parse(source)
    for number in _marks_of_body(tree.body):
        yield number, Carrier(path, "")
    for number, name in _walk(tree.body, ""):
        yield number, Carrier(path, name)


def find_carriers(root: Path = ROOT) -> dict[str, tuple[Carrier, ...]]:
    """Every number that occurs in a mark under ``tests/`` of ``root``, with its carriers in order."""
    found: dict[str, set[Carrier]] = {}
    for path in sorted((root / "tests").rglob("test_*.py")):
        name = path.relative_to(root).as_posix()
        for number, carrier in carriers_in(path.read_text(encoding="utf-8"), name):
            found.setdefault(number, set()).add(carrier)
    return {number: tuple(sorted(carriers)) for number, carriers in found.items()}


def _cell(carriers: tuple[Carrier, ...]) -> str:
    if not carriers:
        return "—"
    shown = "<br>".join(f"[{carrier}](../{carrier.path})" for carrier in carriers[:NAMES_SHOWN])
    more = len(carriers) - NAMES_SHOWN
    return f"{shown}<br>and {more} more" if more > 0 else shown


def render(pages: Iterable[Page], carriers: Mapping[str, tuple[Carrier, ...]]) -> str:
    """The text of docs/promises.md."""
    lines = [
        "# Promises and their tests",
        "",
        "Generated from `promises.toml` and from the marks in `tests/` by `make promises`; do not edit.",
        'A test carries a number by `@pytest.mark.promise("ACL-4")`; `pytest` can be pointed at any name below.',
    ]
    for page in pages:
        carried = sum(promise in carriers for promise in page.promises)
        lines += ["", f"## {page.title}", "", f"Status: {page.status.replace('_', ' ')}."]
        if page.finished:
            lines[-1] += f" Finished series: {', '.join(page.finished)}."
        lines[-1] += f" {carried} of {len(page.promises)} promises are carried by a test."
        lines += ["", "| promise | about | tests |", "|---|---|---|"]
        lines += [
            f"| {number} | {text} | {_cell(carriers.get(number, ()))} |" for number, text in page.promises.items()
        ]
    return "\n".join(lines) + "\n"


def main() -> int:
    """Write the page, or with ``--check`` compare it; exit status 1 if it was not up to date."""
    parser = argparse.ArgumentParser(description="write docs/promises.md")
    parser.add_argument("--check", action="store_true", help="compare only")
    check = parser.parse_args().check
    text = render(read_pages(), find_carriers())
    if check:
        current = PAGE.read_text(encoding="utf-8") if PAGE.exists() else ""
        if current != text:
            print("docs/promises.md is not up to date: make promises", file=sys.stderr)
        return int(current != text)
    PAGE.write_text(text, encoding="utf-8", newline="\n")
    print(f"{PAGE.relative_to(ROOT).as_posix()} written")
    return 0


if __name__ == "__main__":
    sys.exit(main())
