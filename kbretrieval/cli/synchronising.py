"""`sync`: a folder of the reader's own documents, brought into an index and kept equal to it."""

import os
import sys
import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from tqdm import tqdm

from kbretrieval.cli.arguments import AsJson, IndexFile, NewEmbed, Tenant, given_text, is_new
from kbretrieval.cli.output import as_json, say
from kbretrieval.cli.run_shown import report_text
from kbretrieval.cli.shown import safe
from kbretrieval.embedded import Embed
from kbretrieval.encoders.port import Encoder
from kbretrieval.errors import ModelMissing
from kbretrieval.evaluation.encoders import EncoderName, encoder_named
from kbretrieval.identity import checked_name
from kbretrieval.index import Index
from kbretrieval.sync import Encodings, FolderSource, Policy, Tick, synchronise
from kbretrieval.sync.defaults import CHUNK_SIZE, OVERLAP
from kbretrieval.sync.execution import Progress
from kbretrieval.sync.folder import CONNECTOR
from kbretrieval.sync.run import listed

Folder = Annotated[
    str, typer.Argument(metavar="folder", help="The folder; its .md, .markdown, .txt and .json files are documents.")
]
AclFile = Annotated[Path, typer.Option("--acl", help="The ACL file (YAML): who may read which path.")]
Encoding = Annotated[
    list[str] | None,
    typer.Option(
        parser=given_text,
        metavar="<[pattern=]name>",
        help="Encoding of files that are no UTF-8 and no UTF-16 with its mark, or of a pattern's; may be repeated.",
    ),
]
NewEncoder = Annotated[EncoderName | None, typer.Option(help="For a new index, else bge; an existing one has its own.")]
Restore = Annotated[
    list[str] | None,
    typer.Option(parser=given_text, metavar="<path>", help="A deleted document that may return; may be repeated."),
]
RestoreAll = Annotated[bool, typer.Option("--restore-all", help="Every deleted document may return.")]
ConfirmDeletions = Annotated[
    int, typer.Option(min=0, help="How many may be deleted where that is more than a fifth, and five or more.")
]
Connector = Annotated[
    str, typer.Option(parser=given_text, metavar="<name>", help="This source's name; only its documents are deleted.")
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Print what a run would do, and do nothing.")]


def sync(
    folder: Folder,
    index: IndexFile,
    tenant: Tenant,
    acl: AclFile,
    encoding: Encoding = None,
    encoder: NewEncoder = None,
    embed: NewEmbed = None,
    restore: Restore = None,
    restore_all: RestoreAll = False,
    confirm_deletions: ConfirmDeletions = 0,
    connector: Connector = CONNECTOR,
    dry_run: DryRun = False,
    json_output: AsJson = False,
) -> None:
    """Bring what is new, changed or gone in a folder into an index, and the rights that the ACL file gives.

    A file's identity is its path below the folder, or `id:` in its front matter. Only what changed is written. Exit
    status 3: some files were refused, the others are done; 4: more than a fifth would be deleted, nothing was.

    Example: kbretrieval sync docs --index kb.sqlite --tenant acme --acl acl.yml --dry-run
    """
    policy, source = Policy.read(acl), FolderSource(folder, connector)
    options: dict[str, Any] = {
        "encodings": Encodings.parse(encoding or []),
        "restore": [unicodedata.normalize("NFC", path.replace(os.sep, "/")) for path in restore or []],
        "restore_all": restore_all,
        "confirm_deletions": confirm_deletions,
        "dry_run": dry_run,
    }
    if restore and is_new(index):
        synchronise(None, source, policy, tenant=tenant, **{**options, "dry_run": True})  # refused before it is made
    checked_name(tenant, "tenant")
    with _opened(index, (encoder, embed), source, dry_run) as opened, _bars() as progress:
        report = synchronise(opened, source, policy, tenant=tenant, progress=progress, **options)
    say(as_json(report.to_dict()) if json_output else report_text(report))
    refusal = report.refusal()
    if refusal is not None:
        raise refusal


@contextmanager
def _opened(
    path: Path, chosen: tuple[EncoderName | None, Embed | None], source: FolderSource, dry_run: bool
) -> Iterator[Index | None]:
    """Open the index; a new one is made last, when nothing stands against the run. A dry run makes none (SYN-8)."""
    name, embed = chosen
    if not is_new(path):
        with Index.open(path, None if name is None else encoder_named(name).encoder, embed=embed) as opened:
            yield opened
        return
    encoder = _for_new_index(name)
    checked_name(source.connector, "connector")
    listed(source)
    if dry_run:
        yield None
        return
    with Index.open(path, encoder, CHUNK_SIZE, OVERLAP, embed=embed) as opened:
        yield opened


def _for_new_index(name: EncoderName | None) -> Encoder:
    try:
        return encoder_named(name or EncoderName.BGE).encoder
    except ModelMissing as error:
        raise ModelMissing(f"{error.facts}; or index by term counts: --encoder terms") from None


@contextmanager
def _bars() -> Iterator[Progress]:
    """One bar for reading and one for writing, on a terminal alone (SYN-9)."""
    bars: dict[str, Any] = {}

    def show(tick: Tick) -> None:
        if tick.phase not in bars:
            unit = "file" if tick.phase == "read" else "step"
            bars[tick.phase] = tqdm(total=tick.total, desc=tick.phase, unit=unit, file=sys.stderr, disable=None)
        if tick.phase == "write":
            bars[tick.phase].set_postfix_str(f"{tick.chunks} chunks encoded, {safe(tick.path)}", refresh=False)
        bars[tick.phase].update()

    try:
        yield show
    finally:
        for bar in bars.values():
            bar.close()


def add_to(app: typer.Typer) -> None:
    """Add the command of this module."""
    app.command()(sync)
