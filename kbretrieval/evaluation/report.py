"""The book's evaluation: thirteen queries, three modes, first three documents, negatives and access apart.

A returned document that the context may not read by the fixture's own ACL is `access_violation`: the run aborts and no
report is written.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from kbretrieval.errors import AccessViolation
from kbretrieval.evaluation.corpus import Corpus, Question
from kbretrieval.evaluation.metrics import first_relevant_rank, mean, recall_at, reciprocal_rank_at
from kbretrieval.identity import Context
from kbretrieval.index import Index
from kbretrieval.options import MODES, Mode, SearchOptions
from kbretrieval.results import Hit

KIND = "small_authored_retrieval_fixture_not_a_business_or_model_benchmark"
LIMITATIONS = (
    "single authored corpus; no independent heldout population",
    "ONNX export is community quantization, not original full-precision weights",
    "embedding similarity is not a calibrated relevance probability",
    "CPU timings are local execution observations, not throughput benchmarks",
    "ACL result filtering is tested; timing/statistical side channels are not audited",
)
FIRST = 3
LIMIT = 10


@dataclass(frozen=True, slots=True)
class EvaluatedQuery:
    """One query in one mode; `wall_ms` is an observation and is never compared."""

    question: Question
    documents: tuple[str, ...]
    returned_chunks: int
    wall_ms: float

    @property
    def judged(self) -> dict[str, int]:
        """The judgements of the query: every relevant document with grade 1."""
        return dict.fromkeys(self.question.relevant, 1)

    def to_book(self) -> dict[str, Any]:
        """Return the row with exactly the book's keys."""
        return {
            "id": self.question.id,
            "query": self.question.query,
            "relevant": list(self.question.relevant),
            "top3_documents": list(self.documents[:FIRST]),
            "first_relevant_rank": first_relevant_rank(self.documents, self.judged, FIRST),
            "returned_chunks": self.returned_chunks,
            "wall_ms": self.wall_ms,
        }


@dataclass(frozen=True, slots=True)
class ModeReport:
    """All queries in one mode."""

    mode: Mode
    rerank: bool
    rows: tuple[EvaluatedQuery, ...]

    def to_book(self) -> dict[str, Any]:
        """Return the report with exactly the book's keys."""
        positive = [row for row in self.rows if row.question.relevant]
        negative = [row for row in self.rows if not row.question.relevant]
        return {
            "mode": self.mode,
            "rerank": self.rerank,
            "queries": len(self.rows),
            "positive_queries": len(positive),
            "recall_at_3": mean([recall_at(row.documents, row.judged, FIRST) for row in positive]),
            "mrr_at_3": mean([reciprocal_rank_at(row.documents, row.judged, FIRST) for row in positive]),
            "negative_queries": len(negative),
            "negative_abstentions": sum(1 for row in negative if row.returned_chunks == 0),
            "access_violations": 0,  # a violation never gets here: `evaluate_mode` raises
            "rows": [row.to_book() for row in self.rows],
        }


def documents_of(hits: Sequence[Hit]) -> tuple[str, ...]:
    """Return document ids in order, each once: overlapping chunks of one document must not fill the first places."""
    return tuple(dict.fromkeys(hit.doc_id for hit in hits))


def check_access(corpus: Corpus, hits: Sequence[Hit], context: Context) -> None:
    """Raise `access_violation` if a hit's document may not be read by the fixture's own ACL."""
    readable = {(d.tenant, d.doc_id) for d in corpus.documents if d.readable_by(context)}
    wrong = sum(1 for hit in hits if (hit.tenant, hit.doc_id) not in readable)
    if wrong:
        raise AccessViolation(f"{len(hits)} hits returned, {wrong} of documents that the context may not read")


def evaluate_mode(index: Index, corpus: Corpus, mode: Mode, context: Context, options: SearchOptions) -> ModeReport:
    """Run every query of a corpus in one mode."""
    rows = []
    for question in corpus.questions:
        begun = time.perf_counter()
        hits = index.search(question.query, context, LIMIT, mode, options)
        wall_ms = round((time.perf_counter() - begun) * 1000, 3)
        check_access(corpus, hits, context)
        rows.append(EvaluatedQuery(question, documents_of(hits), len(hits), wall_ms))
    return ModeReport(mode, options.rerank == "title", tuple(rows))


def evaluate(index: Index, corpus: Corpus, context: Context, options: SearchOptions) -> tuple[ModeReport, ...]:
    """Return the reports of the three modes, in the order lexical, vector, hybrid."""
    return tuple(evaluate_mode(index, corpus, mode, context, options) for mode in MODES)


def book_view(
    corpus: Corpus, reports: Sequence[ModeReport], metadata: dict[str, Any], versions: dict[str, str]
) -> dict[str, Any]:
    """Return the whole report with exactly the book's keys; `versions` gives python and sqlite."""
    return {
        "kind": KIND,
        "python": versions["python"],
        "sqlite": versions["sqlite"],
        "documents": len(corpus.documents),
        "metadata": metadata,
        "reports": [report.to_book() for report in reports],
        "limitations": list(LIMITATIONS),
    }
