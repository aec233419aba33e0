"""What the quantised model may change from machine to machine, shown instead of hidden (VEC-9).

Ranks of relevant documents and all metrics are promised everywhere. The last hits next to the floor are not: here is
what the book's machine returned, what this machine returned, and the raw scores that explain the difference.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kbretrieval.encoders.port import Encoder, Encoding
from kbretrieval.encoders.quantizer import Quantizer, quantizer_of
from kbretrieval.evaluation.corpus import Corpus
from kbretrieval.evaluation.report import FIRST, ModeReport
from kbretrieval.identity import Context
from kbretrieval.index import Index

SCORE_TOLERANCE = 0.03
NO_FLOOR = -1.0
ALL_CHUNKS = 100

# The book's own report for BGE, by mode and query: first documents and returned chunks.
BOOK_TAILS: dict[tuple[str, str], tuple[tuple[str, ...], int]] = {
    ("vector", "q01"): (("travel", "remote", "refund"), 4),
    ("vector", "q02"): (("travel",), 2),
    ("vector", "q03"): (("refund", "travel", "remote"), 4),
    ("vector", "q04"): (("remote", "leave"), 2),
    ("vector", "q05"): (("support", "refund", "remote"), 3),
    ("vector", "q06"): (("leave", "remote"), 2),
    ("vector", "q07"): (("travel",), 2),
    ("vector", "q08"): (("remote", "leave"), 2),
    ("vector", "q09"): (("leave", "remote", "travel"), 3),
    ("vector", "q10"): (("refund", "support", "travel"), 6),
    ("vector", "q11"): ((), 0),
    ("vector", "q12"): ((), 0),
    ("vector", "q13"): ((), 0),
    ("hybrid", "q01"): (("travel", "remote", "refund"), 4),
    ("hybrid", "q02"): (("travel",), 2),
    ("hybrid", "q03"): (("refund", "travel", "support"), 5),
    ("hybrid", "q04"): (("remote", "leave"), 2),
    ("hybrid", "q05"): (("support", "refund", "remote"), 3),
    ("hybrid", "q06"): (("leave", "remote", "refund"), 3),
    ("hybrid", "q07"): (("travel",), 2),
    ("hybrid", "q08"): (("remote", "leave"), 2),
    ("hybrid", "q09"): (("leave", "remote", "travel"), 3),
    ("hybrid", "q10"): (("refund", "support", "travel"), 6),
    ("hybrid", "q11"): ((), 0),
    ("hybrid", "q12"): ((), 0),
    ("hybrid", "q13"): ((), 0),
}

# Best cosine of a relevant document, measured once on an x86-64 processor with AVX2 and without VNNI.
REFERENCE_SCORES: dict[str, float] = {
    "q01": 0.6081,
    "q02": 0.7523,
    "q03": 0.6396,
    "q04": 0.6841,
    "q05": 0.7385,
    "q06": 0.6844,
    "q07": 0.6656,
    "q08": 0.5402,
    "q09": 0.6037,
    "q10": 0.7011,
}


@dataclass(frozen=True, slots=True)
class VectorScore:
    """The cosine of one chunk with one query, whether or not it reaches the floor; not a probability."""

    query_id: str
    doc_id: str
    start: int
    score: float


@dataclass(frozen=True, slots=True)
class _WithoutFloor:
    encoder: Encoder
    floor: float = NO_FLOOR

    @property
    def identifier(self) -> str:
        return self.encoder.identifier

    @property
    def dimension(self) -> int:
        return self.encoder.dimension

    @property
    def quantizer(self) -> Quantizer:
        return quantizer_of(self.encoder)

    def encode(self, texts: Sequence[str], *, query: bool) -> Encoding:
        return self.encoder.encode(texts, query=query)


def vector_scores(path: Path, encoder: Encoder, corpus: Corpus, context: Context) -> tuple[VectorScore, ...]:
    """Return the raw scores of every query with the chunks of an index that `context` may read, best first.

    At most 100 chunks a query. They pass through the model's arithmetic and are compared within `SCORE_TOLERANCE`.
    """
    made: list[VectorScore] = []
    with Index.open(path, _WithoutFloor(encoder)) as index:
        for question in corpus.questions:
            hits = index.search(question.query, context, ALL_CHUNKS, "vector", rerank="none")
            placed = [(hit, hit.channel("vector")) for hit in hits]
            made += [VectorScore(question.id, hit.doc_id, hit.start, at.score) for hit, at in placed if at is not None]
    return tuple(made)


def best_relevant(scores: Sequence[VectorScore], corpus: Corpus) -> dict[str, float]:
    """Return query id → the best score of a relevant document, for queries that have one."""
    made = {}
    for question in corpus.questions:
        own = [s.score for s in scores if s.query_id == question.id and s.doc_id in question.relevant]
        if own:
            made[question.id] = max(own)
    return made


def next_to_floor(scores: Sequence[VectorScore], floor: float) -> list[dict[str, Any]]:
    """Return the chunks whose score may fall on either side of the floor on another machine."""
    return [
        {"id": s.query_id, "doc_id": s.doc_id, "start": s.start, "score": s.score, "above_floor": s.score >= floor}
        for s in scores
        if abs(s.score - floor) <= SCORE_TOLERANCE
    ]


def tails(reports: Sequence[ModeReport]) -> dict[str, dict[str, Any]]:
    """Return mode/query → first documents and returned chunks, as they came out on this machine."""
    return {
        f"{report.mode}/{row.question.id}": {
            "top3_documents": list(row.documents[:FIRST]),
            "returned_chunks": row.returned_chunks,
        }
        for report in reports
        for row in report.rows
    }


def tail_differences(reports: Sequence[ModeReport]) -> list[dict[str, Any]]:
    """Return the rows that differ from the book's, with both sides; an empty list says that all rows are equal.

    Example:
        >>> tail_differences([])
        []
    """
    here = tails(reports)
    made = []
    for (mode, query_id), (documents, chunks) in BOOK_TAILS.items():
        own = here.get(f"{mode}/{query_id}")
        book = {"top3_documents": list(documents), "returned_chunks": chunks}
        if own is not None and own != book:
            made.append({"mode": mode, "id": query_id, "book": book, "here": own})
    return made
