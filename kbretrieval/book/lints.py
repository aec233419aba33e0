"""House rules for a committed notebook: short cells, prose before code, described figures, nothing of one machine."""

import re
from collections.abc import Iterator
from typing import Any

from kbretrieval.book.checks import Fault, gap_faults, output_faults
from kbretrieval.book.display import alt_faults
from kbretrieval.book.normalise import normalise, pictures, to_text

MOST_CODE_LINES = 25

_MACHINE = {
    "absolute_path": re.compile(
        r"(?<![\w.:/<])/(?:home|root|tmp|usr|var|work|opt|mnt|srv|etc|private|Users|Volumes|workspaces?|content)/\w"
        r"|\b[A-Za-z]:\\\w|\bfile:///"
    ),
    "memory_address": re.compile(r"\b0x[0-9a-fA-F]{6,}\b"),
    "random_id": re.compile(r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b"),
    "wall_time": re.compile(r"\bWall time:|\bCPU times:|\b\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d\.\d+"),
}
_PICTURE_TYPES = ("image/png", "image/jpeg", "image/svg+xml")


def lint(notebook: Any) -> list[Fault]:
    """Return all findings for a committed notebook, in order of cells (NB-1, NB-3, NB-5); empty when it is clean."""
    on_outputs = (_described_figures, output_faults, gap_faults)
    rules = (_short_cells, _prose_before_code, _only_tags, _of_one_machine, *on_outputs)
    found = {fault for rule in rules for fault in rule(notebook)}
    return sorted(found, key=lambda fault: (fault.cell, fault.code, fault.fact))


def lint_text(text: str, notebook: Any) -> list[Fault]:
    """Return a finding when the file's text is not the committed form of its own content (NB-5, NB-13)."""
    stored = notebook.metadata.get("kbretrieval", {})
    same = text == to_text(normalise(notebook, stored))
    return [] if same else [Fault("not_committed_form", 0, "run `python -m kbretrieval.book.runner --write`")]


def code_lines(source: str) -> int:
    """Return the number of lines that are neither blank nor comment only.

    Example:
        >>> code_lines("# 书外代码\\n\\nk = 60\\n")
        1
    """
    return sum(bool(line.strip()) and not line.strip().startswith("#") for line in source.splitlines())


def _short_cells(notebook: Any) -> Iterator[Fault]:
    for number, cell in enumerate(notebook.cells, start=1):
        lines = code_lines(cell.source) if cell.cell_type == "code" else 0
        if lines > MOST_CODE_LINES:
            yield Fault("cell_too_long", number, f"{MOST_CODE_LINES} lines of code allowed, {lines} given")
        if cell.cell_type == "code" and lines == 0:
            yield Fault("cell_empty", number, "a code cell without code")


def _prose_before_code(notebook: Any) -> Iterator[Fault]:
    before = None
    for number, cell in enumerate(notebook.cells, start=1):
        prose = before is not None and before.cell_type == "markdown" and before.source.strip()
        if cell.cell_type == "code" and not prose:
            yield Fault("prose_missing", number, "no Markdown cell directly before")
        before = cell


def _described_figures(notebook: Any) -> Iterator[Fault]:
    for number, cell in enumerate(notebook.cells, start=1):
        outputs = cell.get("outputs", [])
        tables = [o for o in outputs if "|---|" in o.get("data", {}).get("text/markdown", "")]
        for output in outputs:
            yield from _faults_of_output(output, number)
            if pictures(output) and not tables:
                yield Fault("table_missing", number, "a figure without the plotted table")


def _faults_of_output(output: Any, number: int) -> Iterator[Fault]:
    data = output.get("data", {})
    if any(kind in data for kind in _PICTURE_TYPES):
        yield Fault("bare_picture", number, "a picture not shown through book.show")
    shown = pictures(output)
    if data.get("text/html", "").count("<img") != len(shown):
        yield Fault("alt_missing", number, "an <img> that book.show did not write")
    for picture in shown:
        lacking = alt_faults(picture.alt)
        if lacking:
            yield Fault("poor_alt_text", number, f"lacks {', '.join(lacking)}")
        if data.get("text/plain") != picture.alt:
            yield Fault("alt_not_plain", number, "text/plain is not the alternative text")


def _only_tags(notebook: Any) -> Iterator[Fault]:
    for number, cell in enumerate(notebook.cells, start=1):
        extra = sorted(set(cell.metadata) - {"tags"})
        if extra:
            yield Fault("cell_metadata", number, f"only tags allowed, {', '.join(extra)} given")


def _of_one_machine(notebook: Any) -> Iterator[Fault]:
    for number, cell in enumerate(notebook.cells, start=1):
        texts = [cell.source]
        for output in cell.get("outputs", []):
            texts.append(output.get("text", ""))
            data = output.get("data", {})
            texts += [value for kind, value in data.items() if kind.startswith("text/") and not pictures(output)]
            texts.append(data.get("text/plain", ""))
        for code, pattern in _MACHINE.items():
            if any(pattern.search(text) for text in texts):
                yield Fault(code, number, "depends on one machine or one run")
