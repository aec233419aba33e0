"""`demo`, `evaluate`, `manifest`: the book's experiments, on its fixtures or on the reader's own."""

import tempfile
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from kbretrieval.cli.output import as_json, write_report
from kbretrieval.cli.quality import SetRequest, Shown, Style, Vectors, compare_layouts, evaluate_testset
from kbretrieval.errors import InvalidParameter
from kbretrieval.evaluation.claims import Evaluation, demo_claim, evaluation_claim, versions
from kbretrieval.evaluation.corpus import BOOK_CONTEXT, BOOK_WINDOW, Corpus, load_corpus, write_manifest
from kbretrieval.evaluation.demo import run_demo
from kbretrieval.evaluation.encoders import EncoderName, NamedChoice, encoder_named
from kbretrieval.evaluation.report import book_view, evaluate
from kbretrieval.evaluation.tails import vector_scores
from kbretrieval.index import Index
from kbretrieval.options import BOOK, SearchOptions

Output = Annotated[Path | None, typer.Option(help="Write the report to this file instead of stdout.")]
Fixtures = Annotated[Path | None, typer.Option(help="A folder with corpus.json, queries.json and manifest.json.")]
TestSet = Annotated[
    Path | None, typer.Option(help="A folder with corpus.jsonl, queries.jsonl and qrels.tsv, instead of the book's.")
]
EvidenceFolder = Annotated[Path | None, typer.Option(help="Also write the claim as evidence into this folder.")]


class Switch(StrEnum):
    """on or off."""

    ON = "on"
    OFF = "off"


def _book_alone(fixtures: Path | None, evidence: Path | None) -> None:
    # Before any work: a claim names the book's fixtures as its subjects, and would speak of files it never read.
    if fixtures is not None and evidence is not None:
        raise InvalidParameter("one of --fixtures and --evidence is allowed, 2 given; evidence is of the book's")


def demo(output: Output = None, fixtures: Fixtures = None, evidence: EvidenceFolder = None) -> None:
    """Run the book's core experiment on a new index.

    Example: kbretrieval demo --output build/demo.json
    """
    _book_alone(fixtures, evidence)
    corpus = load_corpus(fixtures)
    with tempfile.TemporaryDirectory() as folder, Index.open(Path(folder) / "demo.sqlite", None, *BOOK_WINDOW) as index:
        report = run_demo(index, corpus)
    if evidence is not None:
        demo_claim(report, corpus, evidence)
    write_report(as_json(report), output)


def evaluation(
    encoder: Annotated[EncoderName, typer.Option(help="terms: term counts. bge: the real model.")] = EncoderName.TERMS,
    output: Output = None,
    rerank: Annotated[Switch, typer.Option(help="The title rule, on as in the book.")] = Switch.ON,
    fixtures: Fixtures = None,
    evidence: EvidenceFolder = None,
    testset: TestSet = None,
    vectors: Vectors = None,
    style: Shown = Style.JSON,
    cut: Annotated[bool, typer.Option("--cut", help="With --testset: whole passages beside cut ones.")] = False,
) -> None:
    """Evaluate the three modes on the book's queries; an access violation aborts and writes no report.

    With --testset it measures every fusion on that set instead, the title rule on and off; with --cut as well, what
    cutting passages costs, and what their headings bring back.
    Example: kbretrieval evaluate --encoder terms --output build/term-evaluation.json
    """
    if testset is not None:
        if fixtures is not None:
            raise InvalidParameter("one of --testset and --fixtures is allowed, 2 given")
        request = SetRequest(testset, encoder, vectors, style, output, evidence)
        (compare_layouts if cut else evaluate_testset)(request)
    elif cut:
        raise InvalidParameter("--testset is required with --cut, none given")
    else:
        _book_alone(fixtures, evidence)
        _book_evaluation(encoder_named(encoder), rerank is Switch.ON, load_corpus(fixtures), output, evidence)


def _book_evaluation(
    chosen: NamedChoice, title_rule: bool, corpus: Corpus, output: Path | None, evidence: Path | None
) -> None:
    options = BOOK if title_rule else SearchOptions(lexical=BOOK.lexical, rrf_k=BOOK.rrf_k)
    with (
        tempfile.TemporaryDirectory() as folder,
        Index.open(Path(folder) / "evaluation.sqlite", chosen.encoder, *BOOK_WINDOW) as index,
    ):
        corpus.fill(index)
        reports = evaluate(index, corpus, BOOK_CONTEXT, options)
        scores = (
            vector_scores(Path(folder) / "evaluation.sqlite", chosen.encoder, corpus, BOOK_CONTEXT)
            if evidence is not None and chosen.encoder.dimension
            else ()
        )
    view = book_view(corpus, reports, chosen.metadata, versions())
    if evidence is not None:
        evaluation_claim(Evaluation(reports, corpus, chosen, title_rule, scores), evidence)
    write_report(as_json(view), output)


def manifest(
    folder: Annotated[Path, typer.Argument(help="A folder with your own corpus.json and queries.json.")],
    version: Annotated[str, typer.Option(help="A name for this version of the corpus.")] = "reader-fixture-v1",
) -> None:
    """Write manifest.json for your own corpus, so that a changed byte is refused from then on.

    Example: kbretrieval manifest my-fixtures
    """
    if not folder.is_dir():
        raise InvalidParameter("a folder is required, none is there")
    write_report(as_json(write_manifest(folder, version)), None)


def add_to(app: typer.Typer) -> None:
    """Add the commands of this module."""
    app.command()(demo)
    app.command("evaluate")(evaluation)
    app.command()(manifest)
