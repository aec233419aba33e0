"""What the experiments assert, as evidence that somebody else can check (EVD-7)."""

import platform
import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kbretrieval.evaluation.corpus import CORPUS, MANIFEST, QUERIES, Corpus, fixtures_folder
from kbretrieval.evaluation.encoders import NamedChoice
from kbretrieval.evaluation.metrics import first_relevant_rank, recall_at, reciprocal_rank_at
from kbretrieval.evaluation.report import FIRST, EvaluatedQuery, ModeReport
from kbretrieval.evaluation.tails import (
    REFERENCE_SCORES,
    SCORE_TOLERANCE,
    VectorScore,
    best_relevant,
    next_to_floor,
    tail_differences,
    tails,
)
from kbretrieval.evidence import Claim

DEMO_ARGV = ("python", "-m", "kbretrieval", "demo", "--evidence", "{output}")
EXPORTED = ("recall_at_3", "mrr_at_3")
PACKAGES = ("numpy", "regex", "markdown-it-py")
MODEL_PACKAGES = ("onnxruntime", "tokenizers")

# Recall@3 and MRR@3 of the book, the same figure for both, with the title rule on.
BOOK_FIGURES = {
    "terms": {"lexical": 0.9, "vector": 0.9, "hybrid": 0.9},
    "bge": {"lexical": 0.9, "vector": 1.0, "hybrid": 1.0},
}


def versions() -> dict[str, str]:
    """Return the versions that the book's report names: observations of this machine."""
    return {"python": platform.python_version(), "sqlite": sqlite3.sqlite_version}


def evaluation_argv(encoder: str, rerank: bool) -> tuple[str, ...]:
    """Return the command that makes an evaluation's claim again."""
    switch = "on" if rerank else "off"
    return (
        "python",
        "-m",
        "kbretrieval",
        "evaluate",
        "--encoder",
        encoder,
        "--rerank",
        switch,
        "--evidence",
        "{output}",
    )


def name_subjects(claim: Claim) -> None:
    """Name the book's fixtures as subjects of a claim."""
    for name in (CORPUS, QUERIES, MANIFEST):
        claim.subject(f"fixtures/{name}", path=fixtures_folder() / name)


def demo_claim(report: dict[str, Any], corpus: Corpus, folder: Path) -> Path:
    """Write the evidence of the core experiment; returns its path."""
    with Claim(
        "book-demo",
        "核心实验的每一步都按书中所说发生：旧事实、旧引用、撤权与重放都被拒绝。",
        argv=DEMO_ARGV,
        chapter=13,
        promises=("UPD-4", "ACL-4", "DEL-3", "DEL-4", "CIT-1"),
        packages=PACKAGES,
        folder=folder,
    ) as claim:
        name_subjects(claim)
        for step in ("initial_answer", "new_answer"):
            quoted = report[step]["evidence"][0]
            claim.row(step=step, state=report[step]["state"], **{k: v for k, v in quoted.items() if k != "quote"})
        update = report["version_update"]
        claim.row(step="version_update", state=update["state"], revision=update["revision"], sha256=update["sha256"])
        claim.row(step="replay", state=report["stale_replay_error"])
        outcomes = [name for name, value in report.items() if value is True]
        claim.rows({"step": name, "state": "true"} for name in outcomes)
        claim.equal("outcomes", len(outcomes), 4)
        claim.check("old fact is gone", report["old_30_day_fact_retrievable"] is False)
        claim.equal("replayed event", report["stale_replay_error"], "stale_or_conflicting_revision")
        claim.equal("documents", len(corpus.documents), 8)
        claim.aggregate("replay", "only", "state", where={"step": "replay"})
        claim.aggregate("first_digest", "only", "sha256", where={"step": "initial_answer"})
        claim.aggregate("updated_digest", "only", "sha256", where={"step": "version_update"})
        claim.limit("The corpus was written for the book; nothing here measures a real company's documents.")
    return claim.path


@dataclass(frozen=True, slots=True)
class Evaluation:
    """What an evaluation's claim is made from; `scores` only for a dense encoder."""

    reports: Sequence[ModeReport]
    corpus: Corpus
    chosen: NamedChoice
    rerank: bool
    scores: Sequence[VectorScore] = ()

    @property
    def is_dense(self) -> bool:
        """Whether ranks next to the floor pass through a model's arithmetic (VEC-9)."""
        return self.chosen.encoder.dimension > 0


def evaluation_claim(evaluation: Evaluation, folder: Path) -> Path:
    """Write the evidence of an evaluation, with TREC run and qrels files of the hybrid mode; returns its path.

    Of a dense encoder only what is promised on every machine is deterministic: ranks of relevant documents, metrics
    and abstentions. First documents, returned chunks and raw scores are observed, next to what the book has (VEC-9).
    """
    chosen, rerank, corpus, reports = evaluation.chosen, evaluation.rerank, evaluation.corpus, evaluation.reports
    with Claim(
        f"book-{chosen.name}-evaluation" + ("" if rerank else "-without-rerank"),
        "十条正例与三条负例在三种模式下的名次、指标与拒答。",
        argv=evaluation_argv(chosen.name, rerank),
        chapter=14 if evaluation.is_dense else 15,
        promises=("RRF-1", "ACL-5", *(("VEC-2", "VEC-9") if evaluation.is_dense else ("VEC-1",))),
        parameters={"encoder": chosen.encoder.identifier, "rerank": rerank},
        packages=(*PACKAGES, *(MODEL_PACKAGES if evaluation.is_dense else ())),
        folder=folder,
    ) as claim:
        name_subjects(claim)
        for report in reports:
            claim.rows(_row(report, row, tail=not evaluation.is_dense) for row in report.rows)
        for report in reports:
            _check_mode(claim, report, BOOK_FIGURES[chosen.name] if rerank else {})
        if evaluation.is_dense:
            _show_tails(claim, evaluation)
        claim.trec(
            {row.question.id: list(row.documents) for row in reports[-1].rows},
            {q.id: dict.fromkeys(q.relevant, 1) for q in corpus.questions if q.relevant},
            {name: [f"#/deterministic/aggregates/{reports[-1].mode}_{name}/value"] for name in EXPORTED},
        )
        claim.observe(wall_ms={f"{r.mode}/{row.question.id}": row.wall_ms for r in reports for row in r.rows})
        claim.limit("Ten positive queries by the corpus's own author: one of them is a tenth of every figure.")
    return claim.path


def _check_mode(claim: Claim, report: ModeReport, figures: Mapping[str, float]) -> None:
    where = {"mode": report.mode, "positive": True}
    recall = claim.aggregate(f"{report.mode}_recall_at_3", "mean", "recall", where=where)
    rank = claim.aggregate(f"{report.mode}_mrr_at_3", "mean", "reciprocal_rank", where=where)
    quiet = claim.aggregate(
        f"{report.mode}_abstentions", "count", where={"mode": report.mode, "positive": False, "abstained": True}
    )
    claim.equal(f"{report.mode} negatives abstained", quiet, report.to_book()["negative_queries"])
    if report.mode in figures:
        claim.equal(f"{report.mode} Recall@3 is the book's", recall, figures[report.mode])
        claim.equal(f"{report.mode} MRR@3 is the book's", rank, figures[report.mode])


def _show_tails(claim: Claim, evaluation: Evaluation) -> None:
    scores, floor = evaluation.scores, evaluation.chosen.encoder.floor
    best = best_relevant(scores, evaluation.corpus)
    for query_id, score in best.items():
        claim.within(f"{query_id} score of a relevant document", score, REFERENCE_SCORES[query_id], SCORE_TOLERANCE)
    claim.observe(
        floor=floor,
        best_relevant_scores=best,
        scores_next_to_floor=next_to_floor(scores, floor),
        rows=tails(evaluation.reports),
        rows_unlike_the_book=tail_differences(evaluation.reports) if evaluation.rerank else [],
    )
    claim.limit("The run file and `observed` hold hits next to the floor, which may come and go on another processor.")
    claim.limit("The model is a community-quantised export of the original; its scores are no probabilities.")


def _row(report: ModeReport, row: EvaluatedQuery, *, tail: bool) -> dict[str, Any]:
    positive = bool(row.question.relevant)
    made = {
        "mode": report.mode,
        "id": row.question.id,
        "positive": positive,
        "first_relevant_rank": first_relevant_rank(row.documents, row.judged, FIRST),
        "recall": recall_at(row.documents, row.judged, FIRST) if positive else None,
        "reciprocal_rank": reciprocal_rank_at(row.documents, row.judged, FIRST) if positive else None,
        "abstained": row.returned_chunks == 0,
    }
    if tail:
        made |= {"documents": list(row.documents[:FIRST]), "returned_chunks": row.returned_chunks}
    return made
