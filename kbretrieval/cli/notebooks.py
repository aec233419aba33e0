"""`notebooks run`: execute the book's notebooks with this interpreter, in fresh kernels, without network."""

from pathlib import Path
from typing import Annotated

import typer


def run(
    chapters: Annotated[
        list[str] | None, typer.Argument(help="Chapter numbers, for example 01 13; all without.")
    ] = None,
    output: Annotated[Path, typer.Option(help="Where executed notebooks are written.")] = Path("build/notebooks"),
    folder: Annotated[Path, typer.Option(help="Where the notebooks are.")] = Path("notebooks"),
) -> None:
    """Execute notebooks, check their outputs for silent faults, and write them to a folder.

    Example: kbretrieval notebooks run 01 13 --output build/notebooks
    """
    from kbretrieval.book.command import main as run_notebooks  # the book's packages are an extra

    raise typer.Exit(run_notebooks([*(chapters or []), "--notebooks", str(folder), "--output", str(output)]))


def html(
    output: Annotated[Path, typer.Option(help="Where the pages are written.")] = Path("build/html"),
    folder: Annotated[Path, typer.Option(help="Where the notebooks are.")] = Path("notebooks"),
) -> None:
    """Write the committed notebooks as static pages with a table of contents; nothing is executed.

    Example: kbretrieval notebooks html --output build/html
    """
    from kbretrieval.book.edition import write_edition  # the book's packages are an extra

    for path in write_edition(folder, output):
        typer.echo(str(path))


def add_to(app: typer.Typer) -> None:
    """Add the commands of this module."""
    group = typer.Typer(no_args_is_help=True, help="The notebooks of the book.")
    group.command()(run)
    group.command()(html)
    group.callback()(lambda: None)
    app.add_typer(group, name="notebooks")
