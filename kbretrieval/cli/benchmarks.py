"""`bench`: the engine beside its peers, on the same data, in one process."""

import tempfile
from collections.abc import Callable, Mapping
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from kbretrieval.bench import baseline, encoding, scale
from kbretrieval.bench.chart import draw
from kbretrieval.bench.figures import Figures, eased
from kbretrieval.bench.growth import growth
from kbretrieval.bench.report import claim, document, table
from kbretrieval.cli.output import as_json, write_report
from kbretrieval.errors import ClaimFailed

DEFAULT_SIZES = (10_000, 100_000)
LARGEST_PLAIN = 10_000

Measure = Callable[[Path, int, int, int, int], Figures]


class Part(StrEnum):
    """What runs: term counts beside the plain way, dense vectors beside peers, both, or the real model."""

    TERMS = "terms"
    DENSE = "dense"
    BGE = "bge"
    ALL = "all"


def _measures(part: Part, chunks: int) -> dict[str, Measure]:
    if part is Part.BGE:
        return {encoding.PART: encoding.measure}
    # The plain way takes seconds a query beyond ten thousand chunks; asked for by name it is run all the same.
    plain = part is Part.TERMS or (part is Part.ALL and chunks <= LARGEST_PLAIN)
    made: dict[str, Measure] = {baseline.PART: baseline.measure} if plain else {}
    return made if part is Part.TERMS else made | {scale.PART: scale.measure}


def bench(
    size: Annotated[list[int] | None, typer.Option(min=100, help="Chunks; may be given again.")] = None,
    part: Annotated[
        Part, typer.Option(help="terms: beside the plain way. dense: beside peers. bge: the real model.")
    ] = Part.ALL,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the synthetic corpus.")] = 7,
    queries: Annotated[int, typer.Option(min=1, help="Queries of each length.")] = 5,
    rounds: Annotated[int, typer.Option(min=1, help="How often each query is timed.")] = 3,
    margin: Annotated[
        float, typer.Option(min=1.0, help="Divide what each gate asks for by this, where a machine has neighbours.")
    ] = 1.0,
    evidence: Annotated[Path | None, typer.Option(help="Write bench-*.json into this folder.")] = None,
    output: Annotated[Path | None, typer.Option(help="Write all raw samples as one JSON file.")] = None,
    chart: Annotated[Path | None, typer.Option(help="Draw a chart into this file (needs matplotlib).")] = None,
) -> None:
    """Measure the engine and its peers side by side; 1,000,000 chunks need 11 GB of disk and 8 GiB of memory.

    Gates are ratios within the run, or equalities; times are reported. Exit status 4 if one does not hold.

    Example: kbretrieval bench --size 10000 --part terms --evidence build/evidence
    """
    parameters = {"seed": seed, "queries": queries, "rounds": rounds, "margin": margin}
    made: list[Figures] = []
    for chunks in size or DEFAULT_SIZES:
        for name, measure in _measures(part, chunks).items():
            with tempfile.TemporaryDirectory(prefix=f"kbretrieval-{name}-") as folder:
                made.append(eased(measure(Path(folder), chunks, seed, queries, rounds), margin))
            typer.echo(table(made[-1]) + "\n")
    grown = growth(made)
    grew = [eased(grown, margin)] if grown is not None else []
    for figures in grew:
        typer.echo(table(figures) + "\n")
    _keep(made, grew, parameters, output, chart)
    if evidence is not None:
        _claim(made, grew, parameters, evidence)
    if not all(figures.held for figures in [*made, *grew]):
        raise ClaimFailed("every equality and gate must hold, one or more did not; see FAILS above")


def _claim(made: list[Figures], grown: list[Figures], parameters: Mapping[str, float], folder: Path) -> None:
    for figures in made:
        typer.echo(f"evidence: {claim(figures, parameters, folder).name}")
    sizes = [word for figures in made if figures.part == scale.PART for word in ("--size", str(figures.size))]
    for figures in grown:
        typer.echo(f"evidence: {claim(figures, parameters, folder, [*sizes, '--part', scale.PART]).name}")


def _keep(
    made: list[Figures],
    grown: list[Figures],
    parameters: Mapping[str, float],
    output: Path | None,
    chart: Path | None,
) -> None:
    if output is not None:
        write_report(as_json(document([*made, *grown], parameters)), output)
    if chart is not None:
        draw(made, chart)


def add_to(app: typer.Typer) -> None:
    """Add the command of this module."""
    app.command()(bench)
