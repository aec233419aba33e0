"""Metrics over one ranking of document ids and its judgements (chapter 15). A ranking names each document once.

`judged` maps document id → grade (> 0 is relevant). Queries without a relevant document have no metric: they are
negatives and are counted apart, never as a success.
"""

import math
from collections.abc import Mapping, Sequence

from kbretrieval.errors import InvalidParameter


def _relevant(judged: Mapping[str, int]) -> set[str]:
    found = {document for document, grade in judged.items() if grade > 0}
    if not found:
        raise InvalidParameter("a query with at least one relevant document is required, none given")
    return found


def _checked(ranking: Sequence[str]) -> Sequence[str]:
    if len(set(ranking)) != len(ranking):
        raise InvalidParameter(f"{len(ranking)} places for {len(set(ranking))} documents: each may stand once")
    return ranking


def recall_at(ranking: Sequence[str], judged: Mapping[str, int], k: int) -> float:
    """Return the share of relevant documents among the first k.

    Example:
        >>> recall_at(["b", "a"], {"a": 1, "c": 1}, 3)
        0.5
    """
    relevant = _relevant(judged)
    return len(relevant & set(_checked(ranking)[:k])) / len(relevant)


def first_relevant_rank(ranking: Sequence[str], judged: Mapping[str, int], k: int) -> int | None:
    """Return the rank from 1 of the first relevant document among the first k, or None."""
    relevant = {document for document, grade in judged.items() if grade > 0}
    return next((rank for rank, document in enumerate(_checked(ranking)[:k], 1) if document in relevant), None)


def reciprocal_rank_at(ranking: Sequence[str], judged: Mapping[str, int], k: int) -> float:
    """Return 1 / rank of the first relevant document among the first k, or 0.0.

    Example:
        >>> reciprocal_rank_at(["b", "a"], {"a": 1}, 3)
        0.5
    """
    _relevant(judged)
    rank = first_relevant_rank(ranking, judged, k)
    return 1.0 / rank if rank else 0.0


def ndcg_at(ranking: Sequence[str], judged: Mapping[str, int], k: int) -> float:
    """Return nDCG at k with gain = grade and discount log2(rank + 1) (Järvelin and Kekäläinen 2002; as trec_eval).

    Example:
        >>> round(ndcg_at(["b", "a"], {"a": 1}, 10), 6)
        0.63093
    """
    _relevant(judged)
    gains = [max(judged.get(document, 0), 0) for document in _checked(ranking)[:k]]
    ideal = sorted((grade for grade in judged.values() if grade > 0), reverse=True)[:k]
    return _discounted(gains) / _discounted(ideal)


def _discounted(gains: Sequence[int]) -> float:
    return math.fsum(gain / math.log2(rank + 1) for rank, gain in enumerate(gains, 1))


def mean(values: Sequence[float]) -> float:
    """Return the arithmetic mean; 0.0 of nothing.

    Example:
        >>> mean([1.0] * 9 + [0.0])
        0.9
    """
    return math.fsum(values) / len(values) if values else 0.0
