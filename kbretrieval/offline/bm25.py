"""The lexical channel: BM25 after Robertson and Zaragoza (2009), each part of the sum open to view.

Every statistic (number of texts, document frequency, mean length) is taken over the texts that are handed in. The
caller hands in eligible documents only, so that a document one may not see moves nothing (OFF-30).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from kbretrieval.offline.analysis import Analyzer, terms
from kbretrieval.offline.model import Document
from kbretrieval.offline.ranking import Ranked, ranked

K1 = 1.2
B = 0.75


@dataclass(frozen=True, slots=True)
class TermShare:
    """What one query term adds to one text's score: `score` is `idf * saturation` (OFF-36).

    `frequency` counts the term in the text, `document_frequency` the texts that hold it, `length` the terms of the
    text, `mean_length` the terms of a text on average.

    Example:
        >>> explain_bm25(["a a", "b"], "a")[0][0].frequency
        2
    """

    term: str
    frequency: int
    document_frequency: int
    length: int
    mean_length: float
    idf: float
    saturation: float
    score: float


def inverse_document_frequency(texts: int, document_frequency: int) -> float:
    """Return ln(1 + (N - df + 0.5) / (df + 0.5)), which is positive for every df up to N.

    Example:
        >>> round(inverse_document_frequency(2, 1), 6)
        0.693147
    """
    return math.log(1.0 + (texts - document_frequency + 0.5) / (document_frequency + 0.5))


def saturated_frequency(frequency: int, length: int, mean_length: float, k1: float = K1, b: float = B) -> float:
    """Return tf (k1 + 1) / (tf + k1 (1 - b + b dl / avgdl)): below k1 + 1 however often the term occurs.

    Example:
        >>> saturated_frequency(1, 4, 4.0)
        1.0
    """
    return frequency * (k1 + 1.0) / (frequency + k1 * (1.0 - b + b * length / mean_length))


def explain_bm25(
    texts: Sequence[str], query: str, *, k1: float = K1, b: float = B, analyzer: Analyzer = terms
) -> tuple[tuple[TermShare, ...], ...]:
    """Return, for each text in the order given, the shares of the query terms that it holds, by ascending term.

    Each distinct query term counts once (OFF-36).

    Example:
        >>> [[share.term for share in shares] for shares in explain_bm25(["E042 failed", "fine"], "e042 e042")]
        [['e042'], []]
    """
    bags = [analyzer(text) for text in texts]
    mean_length = math.fsum(len(bag) for bag in bags) / len(bags) if bags else 0.0
    wanted = sorted(set(analyzer(query)))
    holding = {term: sum(term in bag for bag in bags) for term in wanted}

    def share(term: str, bag: tuple[str, ...]) -> TermShare:
        frequency = bag.count(term)
        idf = inverse_document_frequency(len(bags), holding[term])
        saturation = saturated_frequency(frequency, len(bag), mean_length, k1, b)
        return TermShare(term, frequency, holding[term], len(bag), mean_length, idf, saturation, idf * saturation)

    return tuple(tuple(share(term, bag) for term in wanted if term in bag) for bag in bags)


def bm25_scores(
    texts: Sequence[str], query: str, *, k1: float = K1, b: float = B, analyzer: Analyzer = terms
) -> tuple[float, ...]:
    """Return the BM25 score of each text in the order given; 0.0 where no term is shared.

    Example:
        >>> [round(score, 6) for score in bm25_scores(["上传 E042", "上传"], "E042")]
        [0.60997, 0.0]
    """
    explained = explain_bm25(texts, query, k1=k1, b=b, analyzer=analyzer)
    return tuple(math.fsum(share.score for share in shares) for shares in explained)


def bm25_window(
    documents: Sequence[Document], query: str, window: int, analyzer: Analyzer = terms
) -> tuple[Ranked, ...]:
    """Return the best `window` documents with a positive score, by (-score, id) (OFF-37, OFF-40).

    `documents` must be the eligible ones; this function does not filter.

    Example:
        >>> memo = Document("d", "E042", "upload failed", "alpha", ("guest",), "published", "en", "app", "r1", (1.0,))
        >>> [hit.id for hit in bm25_window([memo], "e042", 5)], bm25_window([memo], "refund", 5)
        (['d'], ())
    """
    scores = bm25_scores([document.searchable for document in documents], query, analyzer=analyzer)
    paired = zip((document.id for document in documents), scores, strict=True)
    return ranked(((name, score) for name, score in paired if score > 0.0), window)
