"""`doctor`: what is here, what is missing, and the command that mends it."""

from typing import Annotated

import typer

from kbretrieval.doctor import report


def doctor(
    json_output: Annotated[bool, typer.Option("--json", help="Print the findings as JSON.")] = False,
) -> None:
    """Look at Python, SQLite, packages, model, kernel and font; exit status 0 if the core works.

    Example: kbretrieval doctor
    """
    raise typer.Exit(report(as_json=json_output))


def add_to(app: typer.Typer) -> None:
    """Add the command of this module."""
    app.command()(doctor)
