"""`stats`: what a log of events says, or how much an index holds."""

import os
from pathlib import Path
from typing import Annotated

import typer

from kbretrieval.cli.arguments import AsJson, SameFile, one_file, open_existing
from kbretrieval.cli.output import as_json, say
from kbretrieval.cli.stats_shown import counts_text, sums_text
from kbretrieval.errors import IndexMissing, InvalidParameter, InvalidPath
from kbretrieval.observers.chart import draw
from kbretrieval.observers.log import read_log
from kbretrieval.observers.sums import sums
from kbretrieval.store.files import is_sqlite
from kbretrieval.store.opening import checked_path


def _is_log(path: Path) -> bool:
    """Return whether a file is a log of events, and no SQLite file; an empty one is a log without events."""
    where = checked_path(path)
    if not os.path.exists(where):  # noqa: PTH110 - may be too long
        raise IndexMissing("a log of events or an index is required, no file is there")
    if not where.is_file():
        raise InvalidPath("a log of events or an index is required, something else is there")
    return not is_sqlite(where)


def stats(
    file: Annotated[Path | None, typer.Argument(help="A log that JsonLinesObserver wrote, or an index file.")] = None,
    index: SameFile = None,
    chart: Annotated[
        Path | None, typer.Option(help="Draw the sums of a log into this file (PNG; needs matplotlib).")
    ] = None,
    json_output: AsJson = False,
) -> None:
    """Sum up a log of events: searches, answers with refused citations by cause, writes; or count an index.

    A log holds no text and no query, and neither do its sums. Maintenance view, never for end users.

    Example: kbretrieval stats events.jsonl --chart events.png
    """
    where = one_file(file, index)
    if _is_log(where):
        found = sums(read_log(where))
        if chart is not None:
            draw(found, chart)
        say(as_json(found.to_dict()) if json_output else sums_text(found))
        return
    if chart is not None:
        raise InvalidParameter("--chart: a log of events is required, an index given")
    with open_existing(where) as opened:
        counted = opened.counts()
    say(as_json(counted.to_dict()) if json_output else counts_text(counted))


def add_to(app: typer.Typer) -> None:
    """Add the command of this module."""
    app.command()(stats)
