"""The book's evaluation with the real model: what is promised on every machine, and what is only shown."""

import json
import random
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kbretrieval import BOOK, Index
from kbretrieval.cli import main
from kbretrieval.encoders.bge import IDENTIFIER, BGEEncoder
from kbretrieval.encoders.port import Encoder, Encoding
from kbretrieval.evaluation.claims import BOOK_FIGURES, Evaluation, evaluation_claim
from kbretrieval.evaluation.corpus import BOOK_CONTEXT, BOOK_WINDOW, Corpus, load_corpus
from kbretrieval.evaluation.encoders import EncoderName, NamedChoice
from kbretrieval.evaluation.report import evaluate
from kbretrieval.evaluation.tails import (
    BOOK_TAILS,
    REFERENCE_SCORES,
    SCORE_TOLERANCE,
    VectorScore,
    best_relevant,
    next_to_floor,
    tail_differences,
    vector_scores,
)
from kbretrieval.evidence.errors import CheckFailed

PROMISED = ("recall_at_3", "mrr_at_3", "negative_abstentions", "access_violations", "positive_queries", "queries")
ARITHMETIC = ("top3_documents", "returned_chunks", "wall_ms")


def _read(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def made(model_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the report and the evidence of one run of the command."""
    assert model_folder.is_dir()
    folder = tmp_path_factory.mktemp("report")
    arguments = ["--encoder", "bge", "--output", str(folder / "report.json"), "--evidence", str(folder / "evidence")]
    assert main(["evaluate", *arguments]) == 0
    return folder


@pytest.fixture
def evidence(made: Path) -> Any:
    """The evidence of the run."""
    return _read(made / "evidence" / "book-bge-evaluation.json")


@pytest.fixture
def expected(shared: Path) -> Any:
    """The book's own report."""
    return _read(shared / "book" / "expected" / "bge-evaluation.json")


@pytest.mark.model
@pytest.mark.promise("VEC-9")
def test_ranks_metrics_and_abstentions_are_the_books(made: Path, expected: Any) -> None:
    report = _read(made / "report.json")
    assert list(report) == list(expected)
    assert len(report["reports"]) == len(expected["reports"]) == 3
    for here, book in zip(report["reports"], expected["reports"], strict=True):
        assert list(here) == list(book)
        assert {name: here[name] for name in PROMISED} == {name: book[name] for name in PROMISED}
        rows, wanted = (
            [{k: v for k, v in row.items() if k not in ARITHMETIC} for row in r["rows"]] for r in (here, book)
        )
        assert rows == wanted
    assert report["reports"][0]["rows"][0]["top3_documents"] == expected["reports"][0]["rows"][0]["top3_documents"]


@pytest.mark.model
@pytest.mark.promise("VEC-9", "MOD-3")
def test_the_metadata_differs_in_versions_alone(made: Path, expected: Any) -> None:
    here, book = _read(made / "report.json")["metadata"], expected["metadata"]
    assert set(here.pop("runtime")) == set(book.pop("runtime"))
    assert here == book


@pytest.mark.promise("VEC-9")
def test_the_table_of_the_books_tails_is_the_books(expected: Any) -> None:
    rows = {(r["mode"], row["id"]): row for r in expected["reports"] if r["mode"] != "lexical" for row in r["rows"]}
    assert {key: (tuple(row["top3_documents"]), row["returned_chunks"]) for key, row in rows.items()} == BOOK_TAILS


@pytest.mark.promise("VEC-9")
def test_the_books_figures_are_the_books(shared: Path) -> None:
    for name, file in (("bge", "bge-evaluation.json"), ("terms", "term-evaluation.json")):
        reports = _read(shared / "book" / "expected" / file)["reports"]
        assert {r["mode"]: r["recall_at_3"] for r in reports} == BOOK_FIGURES[name]
        assert {r["mode"]: r["mrr_at_3"] for r in reports} == BOOK_FIGURES[name]


@pytest.mark.model
@pytest.mark.promise("VEC-9", "EVD-1")
def test_the_deterministic_part_holds_only_what_is_promised_everywhere(evidence: Any) -> None:
    assert {name for row in evidence["deterministic"]["rows"] for name in row} == {
        "mode",
        "id",
        "positive",
        "first_relevant_rank",
        "recall",
        "reciprocal_rank",
        "abstained",
    }
    figures = {name: rule["value"] for name, rule in evidence["deterministic"]["aggregates"].items()}
    assert figures == {
        "lexical_recall_at_3": "0.9",
        "lexical_mrr_at_3": "0.9",
        "lexical_abstentions": 3,
        "vector_recall_at_3": "1.0",
        "vector_mrr_at_3": "1.0",
        "vector_abstentions": 3,
        "hybrid_recall_at_3": "1.0",
        "hybrid_mrr_at_3": "1.0",
        "hybrid_abstentions": 3,
    }


@pytest.mark.model
@pytest.mark.promise("VEC-9", "EVD-1")
def test_what_may_move_is_shown_with_scores_processor_and_versions(evidence: Any, made: Path) -> None:
    observed, environment = evidence["observed"], evidence["environment"]
    report = _read(made / "report.json")
    rows = {f"{r['mode']}/{row['id']}": row for r in report["reports"] for row in r["rows"]}
    assert set(observed["rows"]) == set(rows)
    for key, row in observed["rows"].items():
        assert row == {name: rows[key][name] for name in ("top3_documents", "returned_chunks")}
    unlike = {(row["mode"], row["id"]) for row in observed["rows_unlike_the_book"]}
    near = {row["id"] for row in observed["scores_next_to_floor"]}
    assert {query for _, query in unlike} <= near, "a row that differs has a score next to the floor that explains it"
    assert environment["cpu"]["model"]
    assert {"onnxruntime", "tokenizers", "numpy"} <= set(environment["packages"])
    assert None not in environment["packages"].values()
    assert len(observed["best_relevant_scores"]) == len(REFERENCE_SCORES) == 10


class Elsewhere:
    """The real model on a made-up other machine: each vector a little off, always in the same way for one text."""

    def __init__(self, inner: BGEEncoder, seed: int, size: float) -> None:
        self.inner, self.seed, self.size = inner, seed, size
        self.identifier, self.dimension, self.floor = inner.identifier, inner.dimension, inner.floor

    def encode(self, texts: Sequence[str], *, query: bool) -> Encoding:
        """Encode, move and normalise."""
        made = []
        for text, vector in zip(texts, self.inner.encode(texts, query=query).vectors, strict=True):
            draw = random.Random(f"{self.seed}{text}")
            moved = vector + np.asarray([draw.gauss(0.0, self.size) for _ in range(512)])
            made.append((moved / np.linalg.norm(moved)).astype(np.float32))
        return Encoding(made)


def _evaluated(encoder: Encoder, path: Path, corpus: Corpus) -> Evaluation:
    with Index.open(path, encoder, *BOOK_WINDOW) as index:
        corpus.fill(index)
        reports = evaluate(index, corpus, BOOK_CONTEXT, BOOK)
    scores = vector_scores(path, encoder, corpus, BOOK_CONTEXT)
    return Evaluation(reports, corpus, NamedChoice(EncoderName.BGE, encoder, {}), True, scores)


@pytest.mark.model
@pytest.mark.promise("VEC-9")
@pytest.mark.parametrize("seed", range(3))
def test_another_machine_changes_tails_and_no_promise(
    bge: BGEEncoder, evidence: Any, tmp_path: Path, seed: int
) -> None:
    corpus = load_corpus()
    moved = _evaluated(Elsewhere(bge, seed, 0.004), tmp_path / "kb.sqlite", corpus)
    there = _read(evaluation_claim(moved, tmp_path / "evidence"))
    assert there["deterministic_sha256"] == evidence["deterministic_sha256"]
    assert there["observed"]["best_relevant_scores"] != evidence["observed"]["best_relevant_scores"]


@pytest.fixture
def here(bge: BGEEncoder, tmp_path: Path) -> Iterator[Evaluation]:
    """An evaluation whose claim holds."""
    made = _evaluated(bge, tmp_path / "kb.sqlite", load_corpus())
    evaluation_claim(made, tmp_path / "evidence")
    yield made


@pytest.mark.model
@pytest.mark.promise("VEC-9", "EVD-7")
def test_a_score_further_off_than_promised_writes_no_claim(here: Evaluation, tmp_path: Path) -> None:
    off = [replace(score, score=score.score - SCORE_TOLERANCE - 0.001) for score in here.scores]
    with pytest.raises(CheckFailed, match="score of a relevant document"):
        evaluation_claim(replace(here, scores=off), tmp_path / "evidence")
    assert not (tmp_path / "evidence" / "book-bge-evaluation.json").exists()


@pytest.mark.model
@pytest.mark.promise("VEC-9", "EVD-7")
@pytest.mark.parametrize("mode", [0, 1, 2])
def test_a_lost_document_or_a_late_abstention_writes_no_claim(here: Evaluation, tmp_path: Path, mode: int) -> None:
    report = here.reports[mode]
    lost = (replace(report.rows[0], documents=("support",)), *report.rows[1:])
    talked = (*report.rows[:-1], replace(report.rows[-1], documents=("travel",), returned_chunks=1))
    for rows, said in ((lost, "Recall@3 is the book's"), (talked, "negatives abstained")):
        reports = [replace(r, rows=rows) if r is report else r for r in here.reports]
        with pytest.raises(CheckFailed, match=said):
            evaluation_claim(replace(here, reports=reports), tmp_path / "evidence")


def test_scores_next_to_the_floor_are_told_by_their_side() -> None:
    scores = [VectorScore("q", "d", 0, value) for value in (0.44, 0.42, 0.4, 0.38, 0.36)]
    assert [(row["score"], row["above_floor"]) for row in next_to_floor(scores, 0.4)] == [
        (0.42, True),
        (0.4, True),
        (0.38, False),
    ]


def test_the_best_relevant_score_is_of_a_relevant_document() -> None:
    corpus = load_corpus()
    question = corpus.questions[0]
    scores = [VectorScore(question.id, "another", 0, 0.9), VectorScore(question.id, question.relevant[0], 0, 0.5)]
    assert best_relevant(scores, corpus) == {question.id: 0.5}


@pytest.mark.model
def test_only_rows_that_differ_are_listed(here: Evaluation) -> None:
    listed = {(row["mode"], row["id"]): row for row in tail_differences(here.reports)}
    for report in here.reports[1:]:
        for row in report.rows:
            key = (report.mode, row.question.id)
            own = (row.documents[:3], row.returned_chunks)
            assert (key in listed) is (own != BOOK_TAILS[key])
            if key in listed:
                assert listed[key]["here"] == {"top3_documents": list(own[0]), "returned_chunks": own[1]}
                assert listed[key]["book"]["returned_chunks"] == BOOK_TAILS[key][1]


@pytest.mark.model
@pytest.mark.promise("CON-1")
def test_the_claim_names_the_model_that_ran(evidence: Any) -> None:
    assert evidence["invocation"]["parameters"] == {"encoder": IDENTIFIER, "rerank": True}


@pytest.mark.promise("MOD-4")
def test_without_the_model_the_evaluation_writes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("KBRETRIEVAL_MODEL_DIR", str(tmp_path))
    output = tmp_path / "report.json"
    arguments = ["--encoder", "bge", "--output", str(output), "--evidence", str(tmp_path / "evidence")]
    assert main(["evaluate", *arguments]) == 7
    assert capsys.readouterr().err.startswith("model_missing: ")
    assert not output.exists()
    assert not (tmp_path / "evidence").exists()
