"""`check`, `repair`, `purge`, `backup`: the whole store."""

from pathlib import Path
from typing import Annotated

import typer

from kbretrieval.cli.arguments import AsJson, IndexFile, SameFile, WholeFile, one_file, open_existing
from kbretrieval.cli.output import as_json, say
from kbretrieval.cli.shown import fields_text, table
from kbretrieval.errors import IndexCorrupt


def check(
    file: WholeFile = None,
    index: SameFile = None,
    repair_derived: Annotated[
        bool, typer.Option("--repair-derived", help="Make faulty derived rows anew: the same as `kbretrieval repair`.")
    ] = False,
    json_output: AsJson = False,
) -> None:
    """Verify the whole store and name each fault; exit status 6 if there is one.

    Example: kbretrieval check kb.sqlite
    """
    if repair_derived:
        repair(file, index, json_output)
        return
    with open_existing(one_file(file, index)) as opened:
        found = opened.check()
    if json_output:
        say(as_json([item.to_dict() for item in found]))
    elif found:
        rows = [(item.code, item.tenant or "-", item.doc_id or "-", str(item.chunk_key or "-")) for item in found]
        say(table(("fault", "tenant", "document", "chunk key"), rows))
    else:
        say("no fault found\n")
    if found:
        raise IndexCorrupt(f"no fault is allowed, {len(found)} found")


def repair(file: WholeFile = None, index: SameFile = None, json_output: AsJson = False) -> None:
    """Make the chunks, terms and vectors of faulty documents anew from their text; exit status 6 if a fault is left.

    Nothing is made from a text that its digest does not vouch for. Kept hits of a repaired document are dead.

    Example: kbretrieval repair kb.sqlite
    """
    with open_existing(one_file(file, index)) as opened:
        result = opened.repair_derived()
    if json_output:
        say(as_json(result.to_dict()))
    else:
        say(f"{result.documents} documents made anew; {len(result.before)} faults before, {len(result.left)} left\n")
    if result.left:
        raise IndexCorrupt(f"no fault is allowed, {len(result.left)} left")


def purge(file: WholeFile = None, index: SameFile = None, json_output: AsJson = False) -> None:
    """Remove the bytes of deleted text from the file; tombstones stay, backups are not reached.

    Example: kbretrieval purge kb.sqlite
    """
    with open_existing(one_file(file, index)) as opened:
        result = opened.purge()
    say(as_json(result.to_dict()) if json_output else fields_text(result.to_dict()))


def backup(
    target: Annotated[Path, typer.Argument(help="A new file; one that is there is never replaced.")],
    index: IndexFile,
) -> None:
    """Copy the index into a new file with SQLite's backup API, while others go on using it.

    A restored backup revives rights that were revoked and documents that were deleted after it was made, until
    policies and events are replayed: replay them before anybody may search it. Whoever has the index open when the copy
    is moved into its place is refused (`index_replaced`) until it is opened anew.

    Example: kbretrieval backup kb-backup.sqlite --index kb.sqlite
    """
    with open_existing(index) as opened:
        opened.backup(target)


def add_to(app: typer.Typer) -> None:
    """Add the commands of this module."""
    for command in (check, repair, purge, backup):
        app.command()(command)
