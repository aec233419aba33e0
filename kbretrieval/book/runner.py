"""Execute the notebooks, each in a fresh kernel of this interpreter, without network (NB-10 to NB-15).

python -m kbretrieval.book.runner               execute all into build/notebooks/
python -m kbretrieval.book.runner 07 13         these chapters only
python -m kbretrieval.book.runner --write       execute, then write the committed form into notebooks/
"""

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError

from kbretrieval.book.checks import Fault, check_run, read_witness
from kbretrieval.book.errors import NotebooksMissing
from kbretrieval.book.kernel import KernelRoom, furnish
from kbretrieval.book.normalise import normalise, to_text

WALL_LIMIT_SECONDS = 60.0
BOOK_LIMIT_SECONDS = 600.0

Progress = Callable[[Path, int, int], None]


@dataclass(frozen=True, slots=True)
class Failure:
    """Why an execution stopped: code, chapter, 1-based cell number, its first three lines, exception (NB-12)."""

    code: str
    chapter: str
    cell: int
    source: tuple[str, ...]
    exception: str

    def report(self) -> str:
        """Return the report as text, one fact a line."""
        lines = [f"chapter {self.chapter}, cell {self.cell}: {self.code}", *(f"    {line}" for line in self.source)]
        return "\n".join([*lines, self.exception])


@dataclass(frozen=True, slots=True)
class NotebookRun:
    """One execution: the file, the seconds it took, where the result lies, and what was wrong.

    `notebook` is the executed (on failure: partial) notebook in committed form; `failure` stopped it, `faults` did not.
    """

    path: Path
    output: Path
    seconds: float
    failure: Failure | None
    faults: tuple[Fault, ...]
    notebook: Any = field(repr=False, compare=False)

    @property
    def ok(self) -> bool:
        """Return whether every cell ran and nothing was wrong afterwards."""
        return self.failure is None and not self.faults

    def report(self) -> str:
        """Return what was wrong as text; empty when nothing was."""
        lines = [self.failure.report()] if self.failure else []
        return "\n".join(lines + [f"{self.path.name}, cell {f.cell}: {f.code}: {f.fact}" for f in self.faults])


def run_notebooks(
    paths: Iterable[Path],
    output_dir: Path,
    *,
    progress: Progress | None = None,
    hash_seed: str = "0",
    cwd: Path | None = None,
    wall_limit: float = WALL_LIMIT_SECONDS,
    change: Callable[[Path, Any], Any] | None = None,
) -> list[NotebookRun]:
    """Execute notebooks one after the other and return one `NotebookRun` each, in the order given.

    The kernel runs in `cwd` (default: a fresh empty folder), with `PYTHONHASHSEED` set to `hash_seed`, and may take
    `wall_limit` seconds a notebook. `progress` is called before each cell with the path, the cell's number and the
    number of cells. `change` may alter a notebook before it runs (the tests solve exercises with it). Results, partial
    ones included, are written below `output_dir` under the notebook's name; the sources are not touched. Raises
    `NotebooksMissing` for no path or an absent file; what happens inside a notebook never raises.
    """
    chosen = list(paths)
    absent = [path.name for path in chosen if not path.is_file()]
    if not chosen or absent:
        raise NotebooksMissing(f"{len(chosen)} notebooks asked for, absent: {', '.join(absent) or 'all'}")
    output_dir.mkdir(parents=True, exist_ok=True)
    runs = []
    with TemporaryDirectory(prefix="kbretrieval-") as folder:
        for number, path in enumerate(chosen):
            room = furnish(Path(folder), number, hash_seed, cwd)
            source = nbformat.read(path, as_version=4)  # type: ignore[no-untyped-call]
            notebook = change(path, source) if change else source
            runs.append(_run_one(path, notebook, output_dir, room, wall_limit, progress))
    return runs


def write_committed(runs: Sequence[NotebookRun]) -> list[Path]:
    """Write the committed form of each clean run over its source and return the paths whose bytes changed.

    Runs that were not ok are left alone.
    """
    changed = []
    for run in runs:
        text = to_text(run.notebook).encode("utf-8")
        if run.ok and run.path.read_bytes() != text:
            run.path.write_bytes(text)
            changed.append(run.path)
    return changed


def _run_one(
    path: Path, notebook: Any, output_dir: Path, room: KernelRoom, wall_limit: float, progress: Progress | None
) -> NotebookRun:
    _forget_outputs(notebook)
    current: list[int] = [0]

    def at_cell(cell: Any, cell_index: int) -> None:
        current[0] = cell_index + 1
        if progress is not None:
            progress(path, cell_index + 1, len(notebook.cells))

    begun = time.monotonic()
    client = NotebookClient(
        notebook,
        km=room.manager,
        record_timing=False,
        resources={"metadata": {"path": str(room.cwd)}},
        timeout_func=lambda cell: max(1, round(begun + wall_limit - time.monotonic())),
        startup_timeout=60,
        on_cell_start=at_cell,
    )
    failure: Failure | None = None
    try:
        client.execute(env=room.environment, cleanup_kc=True)
    # Timeouts are also TimeoutErrors and dead kernels RuntimeErrors: each has a name of its own in the report.
    except CellTimeoutError:
        message = f"{wall_limit:g} seconds allowed for the notebook"
        failure = _failure("cell_timeout", path, notebook, current[0], message)
    except DeadKernelError as error:
        failure = _failure("dead_kernel", path, notebook, current[0], str(error))
    except CellExecutionError as error:
        message = _shown_error(notebook, current[0]) or f"{error.ename}: {error.evalue}"
        failure = _failure("cell_execution_error", path, notebook, current[0], message)
    seconds = time.monotonic() - begun
    faults = [] if failure else check_run(notebook, read_witness(room.witness), room.interpreter)
    made = normalise(notebook)
    output = output_dir / path.name
    output.write_bytes(to_text(made).encode("utf-8"))
    return NotebookRun(path, output, seconds, failure, tuple(faults), made)


def _forget_outputs(notebook: Any) -> None:
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None


def _failure(code: str, path: Path, notebook: Any, cell: int, exception: str) -> Failure:
    source = notebook.cells[cell - 1].source if cell else ""
    return Failure(code, path.stem[:2], cell, tuple(source.splitlines()[:3]), exception)


def _shown_error(notebook: Any, cell: int) -> str:
    # When a display raises, the kernel's reply names no exception; the output does.
    errors = [output for output in notebook.cells[cell - 1].outputs if output.output_type == "error"]
    return f"{errors[-1].ename}: {errors[-1].evalue}" if errors else ""


if __name__ == "__main__":
    import sys

    from kbretrieval.book.command import main

    sys.exit(main())
