"""`migrate`: another encoder or window for the documents of an index."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any

import typer
from tqdm import tqdm

from kbretrieval.cli.arguments import AsJson, SameFile, WholeFile, one_file
from kbretrieval.cli.output import as_json, say
from kbretrieval.cli.shown import safe
from kbretrieval.embedded import Embed
from kbretrieval.evaluation.encoders import EncoderName, encoder_named
from kbretrieval.migration import MigrationResult, MigrationTick, Progress
from kbretrieval.migration import migrate as migrate_file
from kbretrieval.store.contract import Contract

Encoder = Annotated[EncoderName | None, typer.Option(help="The encoder to go to, else the one that it has.")]
ChunkSize = Annotated[int | None, typer.Option(help="The chunk window in code points, else the one that it has.")]
Overlap = Annotated[int | None, typer.Option(help="The overlap in code points, else the one that it has.")]
ToEmbed = Annotated[
    Embed | None, typer.Option(help="headed: bge is given each chunk below its headings; else what it has.")
]


def migrate(
    file: WholeFile = None,
    index: SameFile = None,
    encoder: Encoder = None,
    chunk_size: ChunkSize = None,
    overlap: Overlap = None,
    embed: ToEmbed = None,
    json_output: AsJson = False,
) -> None:
    """Bring an index to another encoder or window, in the same file, while others search and write.

    Documents, rights and tombstones stay as they are; chunks, terms and vectors are made anew beside the old ones and
    take their place at once. Kept hits are dead afterwards. Interrupted, the same command goes on. `purge` gives the
    pages of the old generation back.

    Example: kbretrieval migrate kb.sqlite --encoder bge --chunk-size 220 --overlap 40
    """
    where = one_file(file, index)
    chosen = None if encoder is None else encoder_named(encoder).encoder
    with _bar() as progress:
        result = migrate_file(where, chosen, chunk_size, overlap, embed=embed, progress=progress)
    say(as_json(result.to_dict()) if json_output else _text(result))


def _text(result: MigrationResult) -> str:
    if result.state == "unchanged":
        return f"unchanged: {_contract(result.after)}; {result.documents} documents, {result.chunks} chunks\n"
    return (
        f"migrated: {result.documents} documents, {result.chunks_before} chunks before, {result.chunks} now;"
        f" {result.encoded} texts encoded, {result.reused} vectors reused, {result.resumed} documents done by an"
        f" earlier run, {result.again} done in vain\n"
        f"before: {_contract(result.before)}\n"
        f"now:    {_contract(result.after)}\n"
    )


def _contract(contract: Contract) -> str:
    return safe(f"{contract.encoder}, window {contract.chunk_size}, overlap {contract.overlap}, {contract.embedded}")


@contextmanager
def _bar() -> Iterator[Progress]:
    """One bar over the documents, on a terminal alone."""
    bars: list[Any] = []

    def show(tick: MigrationTick) -> None:
        if not bars:
            bars.append(tqdm(total=tick.total, desc="migrate", unit="document", file=sys.stderr, disable=None))
        bars[0].set_postfix_str(f"{tick.chunks} chunks, {tick.encoded} texts encoded", refresh=False)
        bars[0].update(tick.done - bars[0].n)

    try:
        yield show
    finally:
        for bar in bars:
            bar.close()


def add_to(app: typer.Typer) -> None:
    """Add the command of this module."""
    app.command()(migrate)
