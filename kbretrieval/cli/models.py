"""`model fetch` and `model check`: the two files of the BGE encoder."""

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from kbretrieval.errors import InvalidParameter
from kbretrieval.model.fetch import BY_HAND, TIME_LIMIT_SECONDS, Attempt
from kbretrieval.model.fetch import fetch as fetch_model
from kbretrieval.model.files import FOLDER_VARIABLE, check_folder, model_folder

Target = Annotated[
    Path | None, typer.Option("--to", help=f"The folder; else {FOLDER_VARIABLE}, else the user's cache.")
]


def fetch(
    target: Target = None,
    given: Annotated[Path | None, typer.Option("--from", help="A folder that holds the two files already.")] = None,
    limit: Annotated[float, typer.Option(help="Seconds that each source has.")] = TIME_LIMIT_SECONDS,
) -> None:
    """Bring the two model files and compare their digests; a folder, the hub and Maven are tried in this order.

    Example: kbretrieval model fetch --to .tools/model
    """
    if not 1.0 <= limit <= 86_400.0:
        raise InvalidParameter("limit: 1 to 86400 seconds are required, another number given")
    named = os.environ.get(FOLDER_VARIABLE)
    attempts = fetch_model(
        target or model_folder(),
        given or (Path(named) if named else None),
        limit,
        quiet=not sys.stderr.isatty(),
        report=_say,
    )
    if attempts[-1].outcome != "ok":
        for way in BY_HAND:
            print(way, file=sys.stderr)
        raise typer.Exit(1)


def _say(attempt: Attempt) -> None:
    print(f"{attempt.source}: {attempt.outcome}", flush=True)


def check(target: Target = None) -> None:
    """Say what is there of the two model files: ok, missing or wrong.

    Example: kbretrieval model check
    """
    states = check_folder(target or model_folder())
    for state in states:
        print(f"{state.name}: {state.state}")
    if any(state.state != "ok" for state in states):
        raise typer.Exit(1)


def add_to(app: typer.Typer) -> None:
    """Add the commands of this module."""
    group = typer.Typer(no_args_is_help=True, help="The two files of the BGE encoder.")
    group.command()(fetch)
    group.command()(check)
    app.add_typer(group, name="model")
