"""What is wrong with a notebook whose execution was green (NB-11).

`execute()` raises only when a cell's own code raises. An exception while a figure is drawn, in a thread or below
`%%capture`, a failing `!command`, or a warning leave it green; each is found here, from the outputs and from the
witness that ran inside the kernel.
"""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_TRACEBACK = re.compile(r"Traceback \(most recent call last\)|Exception in thread|Exception ignored in")
_CAPTURED_COMMAND = re.compile(r"^\s*(?:[\w, ]+=\s*!|!!)", re.MULTILINE)
_SHELL_MAGIC = re.compile(r"^%%(?:bash|sh|script|cmd)\b.*--(?:no-raise-error|bg)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Fault:
    """One finding: a stable code, the 1-based cell number (0: the notebook itself), and the fact without cell text."""

    code: str
    cell: int
    fact: str


@dataclass(frozen=True, slots=True)
class Witnessed:
    """One record of the witness: its kind, the execution count at the time, and a detail such as a class name."""

    kind: str
    count: int
    detail: str


def read_witness(path: Path) -> list[Witnessed]:
    """Return the witness's records in order; none when it never wrote."""
    if not path.is_file():
        return []
    lines = path.read_text(encoding="utf-8").splitlines()
    records = [json.loads(line) for line in lines]
    return [Witnessed(record["kind"], record["count"], record["detail"]) for record in records]


def check_run(notebook: Any, witnessed: Sequence[Witnessed], interpreter: str) -> list[Fault]:
    """Return all faults of an executed notebook, in order of cells; empty when a green run is really green."""
    found = [*_witness_faults(notebook, witnessed, interpreter), *output_faults(notebook), *gap_faults(notebook)]
    return sorted(found, key=lambda fault: (fault.cell, fault.code, fault.fact))


def output_faults(notebook: Any) -> Iterator[Fault]:
    """Yield error outputs, anything on stderr, traceback text, and commands whose failure nobody could notice."""
    for number, cell in enumerate(notebook.cells, start=1):
        if cell.cell_type != "code":
            continue
        if _CAPTURED_COMMAND.search(cell.source) or _SHELL_MAGIC.search(cell.source):
            yield Fault("command_unverifiable", number, "a command whose exit status is dropped")
        for output in cell.outputs:
            if output.output_type == "error":
                yield Fault("error_output", number, str(output.ename))
            elif output.output_type == "stream" and output.name == "stderr":
                yield Fault("stderr_output", number, f"{len(output.text)} characters on stderr")
            elif output.output_type == "stream" and _TRACEBACK.search(output.text):
                yield Fault("traceback_text", number, "traceback on stdout")


def gap_faults(notebook: Any) -> Iterator[Fault]:
    """Yield code cells whose execution count is not the next one, starting at 1; empty cells count as well."""
    expected = 0
    for number, cell in enumerate(notebook.cells, start=1):
        if cell.cell_type != "code":
            continue
        expected += 1
        if cell.execution_count != expected:
            yield Fault("execution_gap", number, f"count {expected} expected, {cell.execution_count} given")


def _witness_faults(notebook: Any, witnessed: Sequence[Witnessed], interpreter: str) -> Iterator[Fault]:
    cells = {cell.get("execution_count"): number for number, cell in enumerate(notebook.cells, start=1)}
    ready = [record.detail for record in witnessed if record.kind == "ready"]
    if ready != [f"guarded {interpreter}"]:
        yield Fault("kernel_not_guarded", 0, f"one guarded kernel of this interpreter wanted, {len(ready)} reported")
    codes = {
        "exception": "hidden_exception",
        "thread": "thread_exception",
        "unraisable": "unraisable_exception",
        "command": "command_failed",
    }
    for record in witnessed:
        if record.kind in codes:
            yield Fault(codes[record.kind], cells.get(record.count, 0), record.detail)
