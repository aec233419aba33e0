"""`evaluate --testset` and `calibrate`: retrieval quality on a public set, or the reader's own, of the same shape."""

import time
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from kbretrieval.cli.output import as_json, write_report
from kbretrieval.evaluation.calibration import calibrate
from kbretrieval.evaluation.calibration_claims import calibration_claim, calibration_report, calibration_table
from kbretrieval.evaluation.collection import WHOLE, collected
from kbretrieval.evaluation.comparison import SEED, SINGLE, gains
from kbretrieval.evaluation.cut_passages import cut_claim, cut_table, measured_layouts
from kbretrieval.evaluation.encoders import EncoderName, encoder_named
from kbretrieval.evaluation.quality_claims import Written, quality_argv, quality_claim
from kbretrieval.evaluation.quality_report import QualityReport, quality_table
from kbretrieval.evaluation.runs import run_all, settings
from kbretrieval.evaluation.testset import JudgedSet, load_judged_set
from kbretrieval.evaluation.vector_cache import VectorCache, default_cache


class Style(StrEnum):
    """How a report is shown."""

    JSON = "json"
    TABLE = "table"


Vectors = Annotated[
    Path | None, typer.Option(help="File in which vectors are kept; by default one in the user's cache folder.")
]
Shown = Annotated[Style, typer.Option(help="json: the whole report. table: the figures for the eye.")]


@dataclass(frozen=True, slots=True)
class SetRequest:
    """What a command on a test set was asked for."""

    folder: Path
    encoder: EncoderName
    vectors: Path | None
    style: Style
    output: Path | None
    evidence: Path | None

    def loaded(self) -> tuple[JudgedSet, VectorCache]:
        """Return the set, and the encoder behind the vector cache."""
        judged = load_judged_set(self.folder)
        encoder = encoder_named(self.encoder).encoder
        kept = (self.vectors or default_cache(encoder)) if encoder.dimension else None
        return judged, VectorCache(encoder, kept)


def evaluate_testset(request: SetRequest) -> None:
    """Evaluate every setting on a test set; evidence and report are written as asked."""
    begun = time.perf_counter()
    judged, encoder = request.loaded()
    with collected(judged, encoder) as collection:
        filled = time.perf_counter()
        runs = run_all(judged, collection, settings())
    searched = time.perf_counter()
    hybrid = [name for name in runs if name not in SINGLE]
    report = QualityReport(judged, encoder, WHOLE.window, runs, gains(runs, hybrid))
    if request.evidence is not None:
        argv = quality_argv("evaluate", judged, request.encoder)
        seconds = {"encode_and_index": round(filled - begun, 1), "search_and_fuse": round(searched - filled, 1)}
        quality_claim(report, Written(request.encoder, request.evidence, argv), seconds)
    table = request.style is Style.TABLE
    write_report(quality_table(report) if table else as_json(report.to_dict()), request.output)


def compare_layouts(request: SetRequest) -> None:
    """Compare whole passages with passages that are cut; evidence and report are written as asked."""
    judged, encoder = request.loaded()
    report = measured_layouts(judged, encoder)
    if request.evidence is not None:
        argv = quality_argv("evaluate", judged, request.encoder, ("--cut",))
        cut_claim(report, Written(request.encoder, request.evidence, argv))
    table = request.style is Style.TABLE
    write_report(cut_table(report) if table else as_json(report.to_dict()), request.output)


def calibration(
    testset: Annotated[Path, typer.Option(help="A folder with corpus.jsonl, queries.jsonl and qrels.tsv.")],
    encoder: Annotated[EncoderName, typer.Option(help="terms: term counts. bge: the real model.")] = EncoderName.TERMS,
    seed: Annotated[int, typer.Option(min=0, help="Which half of the questions loses its answer.")] = SEED,
    vectors: Vectors = None,
    style: Shown = Style.JSON,
    output: Annotated[Path | None, typer.Option(help="Write the report to this file instead of stdout.")] = None,
    evidence: Annotated[Path | None, typer.Option(help="Also write the claim as evidence into this folder.")] = None,
) -> None:
    """Find a floor, or a rule, for abstaining: questions with their answer in the corpus and questions without.

    Example: kbretrieval calibrate --testset my-set --encoder terms --style table
    """
    request = SetRequest(testset, encoder, vectors, style, output, evidence)
    judged, cache = request.loaded()
    with collected(judged, cache) as collection:
        found = calibrate(judged, collection, seed)
    if evidence is not None:
        argv = quality_argv("calibrate", judged, encoder, ("--seed", str(seed)))
        calibration_claim(judged, cache, seed, found, Written(encoder, evidence, argv))
    report = calibration_report(judged, cache, seed, found)
    write_report(calibration_table(report) if style is Style.TABLE else as_json(report), output)


def add_to(app: typer.Typer) -> None:
    """Add the commands of this module."""
    app.command("calibrate")(calibration)
