"""The maintainers' command behind `python -m kbretrieval.book.runner`."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tqdm import tqdm

from kbretrieval.book.contents import find_notebooks
from kbretrieval.book.runner import BOOK_LIMIT_SECONDS, NotebookRun, run_notebooks, write_committed


class CellBar:
    """A progress bar on stderr that starts anew with each notebook."""

    def __init__(self) -> None:
        self._bar: Any = None
        self._path = Path()

    def __call__(self, path: Path, cell: int, cells: int) -> None:
        """Show that a cell of a notebook begins."""
        if self._bar is None or path != self._path:
            self.close()
            self._bar, self._path = tqdm(total=cells, desc=path.stem, unit="cell", file=sys.stderr, disable=None), path
        self._bar.update(cell - self._bar.n)

    def close(self) -> None:
        """End the present bar, if there is one."""
        if self._bar is not None:
            self._bar.close()
            self._bar = None


def main(arguments: Sequence[str] | None = None) -> int:
    """Execute notebooks and return 0 when all are clean and in time, 1 otherwise."""
    parser = argparse.ArgumentParser(prog="python -m kbretrieval.book.runner")
    parser.add_argument("chapters", nargs="*", help="chapter numbers, for example 07 13; all without any")
    parser.add_argument("--notebooks", type=Path, default=Path("notebooks"), help="the folder of the notebooks")
    parser.add_argument("--output", type=Path, default=Path("build/notebooks"), help="where results are written")
    parser.add_argument("--write", action="store_true", help="write the committed form over the sources")
    given = parser.parse_args(arguments)
    wanted = {f"{int(number):02d}" for number in given.chapters}
    paths = [path for path in find_notebooks(given.notebooks) if not wanted or path.name[:2] in wanted]
    bar = CellBar()
    runs = run_notebooks(paths, given.output, progress=bar)
    bar.close()
    for run in runs:
        print(f"{'ok' if run.ok else 'FAILED'}  {run.path.name}  {run.seconds:.1f} s")
        if not run.ok:
            print(run.report())
    if given.write:
        print(f"{len(write_committed(runs))} of {len(runs)} files written")
    return 0 if all(run.ok for run in runs) and in_time(runs) else 1


def in_time(runs: Sequence[NotebookRun]) -> bool:
    """Return whether all notebooks together stayed within the book's limit (NB-15)."""
    return sum(run.seconds for run in runs) <= BOOK_LIMIT_SECONDS
