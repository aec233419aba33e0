"""`verify`: check a folder of evidence, offline."""

from pathlib import Path
from typing import Annotated

import typer

from kbretrieval.evidence.__main__ import main as evidence_main


def verify(
    folder: Annotated[Path, typer.Argument(help="A folder of evidence files with its MANIFEST.json.")],
    rerun: Annotated[str | None, typer.Option(help="Run this claim again, without network, and compare.")] = None,
    json_output: Annotated[bool, typer.Option("--json", help="Print the outcome as JSON.")] = False,
) -> None:
    """Check every claim of a folder: 0 all hold, 1 something does not, 2 something could not be checked.

    Example: kbretrieval verify evidence
    """
    arguments = ["verify", str(folder), *(["--rerun", rerun] if rerun else []), *(["--json"] if json_output else [])]
    raise typer.Exit(evidence_main(arguments))


def add_to(app: typer.Typer) -> None:
    """Add the commands of this module."""
    app.command()(verify)
