"""Graded relevance metrics at k. Each refuses a ranking with repeats, and each needs a judgement to divide by.

`qrels` maps document id to a positive grade; what it does not name is not relevant.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from kbretrieval.offline.errors import GradeOutOfRange, NoJudgements
from kbretrieval.offline.ranking import distinct, positive


@dataclass(frozen=True, slots=True)
class Metrics:
    """Recall, reciprocal rank, nDCG and hit at one k, each between 0 and 1.

    Example:
        >>> Metrics(0.5, 1.0, 0.9, 1.0).recall
        0.5
    """

    recall: float
    mrr: float
    ndcg: float
    hit: float


def recall_at_k(ranking: Sequence[str], qrels: Mapping[str, int], k: int) -> float:
    """Return judged documents among the first k, divided by all judged documents (OFF-45).

    Raises `NoJudgements`, `DuplicateRankedId`, `GradeOutOfRange`, `SettingOutOfRange`, as every metric here does.

    Example:
        >>> recall_at_k(["a", "x"], {"a": 3, "b": 1}, k=2)
        0.5
    """
    return len(_found(ranking, qrels, k)) / len(qrels)


def hit_at_k(ranking: Sequence[str], qrels: Mapping[str, int], k: int) -> float:
    """Return 1.0 if any judged document is among the first k, else 0.0 (OFF-50).

    Example:
        >>> hit_at_k(["a", "x"], {"a": 3, "b": 1}, k=2)
        1.0
    """
    return 1.0 if _found(ranking, qrels, k) else 0.0


def reciprocal_rank_at_k(ranking: Sequence[str], qrels: Mapping[str, int], k: int) -> float:
    """Return 1 / rank of the first judged document among the first k, 0.0 if there is none (OFF-46).

    Example:
        >>> reciprocal_rank_at_k(["x", "a"], {"a": 3}, k=2)
        0.5
    """
    found = _found(ranking, qrels, k)
    return 1.0 / found[0] if found else 0.0


def dcg(grades: Iterable[int]) -> float:
    """Return the sum of (2^grade - 1) / log2(rank + 1) over grades in rank order.

    It knows no ids, and so cannot see a repeat: `[3, 3]` against the ideal `[3]` is a ratio above 1 (OFF-48).

    Example:
        >>> dcg([3])
        7.0
    """
    return math.fsum((2.0**grade - 1.0) / math.log2(rank + 1) for rank, grade in enumerate(grades, start=1))


def ndcg_at_k(ranking: Sequence[str], qrels: Mapping[str, int], k: int) -> float:
    """Return the DCG of the first k, divided by the DCG of the best possible first k (OFF-47).

    Example:
        >>> round(ndcg_at_k(["b", "a"], {"a": 3, "b": 1}, k=3), 6)
        0.70981
    """
    _found(ranking, qrels, k)
    ideal = sorted(qrels.values(), reverse=True)[:k]
    return dcg(qrels.get(name, 0) for name in ranking[:k]) / dcg(ideal)


def metrics_at_k(ranking: Sequence[str], qrels: Mapping[str, int], k: int) -> Metrics | None:
    """Return all four metrics, or None for a query without judgements: nothing to find is not a failure (OFF-49).

    Example:
        >>> metrics_at_k([], {}, k=3) is None
        True
    """
    if not qrels:
        distinct(ranking)
        return None
    return Metrics(
        recall_at_k(ranking, qrels, k),
        reciprocal_rank_at_k(ranking, qrels, k),
        ndcg_at_k(ranking, qrels, k),
        hit_at_k(ranking, qrels, k),
    )


def macro_mean(per_query: Iterable[Metrics | None]) -> Metrics | None:
    """Return the mean over queries that have judgements, or None if none has (OFF-49).

    Example:
        >>> macro_mean([Metrics(1.0, 1.0, 1.0, 1.0), None, Metrics(0.0, 0.5, 0.5, 1.0)])
        Metrics(recall=0.5, mrr=0.75, ndcg=0.75, hit=1.0)
    """
    judged = [metrics for metrics in per_query if metrics is not None]
    if not judged:
        return None

    def mean(values: Iterable[float]) -> float:
        return math.fsum(values) / len(judged)

    return Metrics(
        mean(metrics.recall for metrics in judged),
        mean(metrics.mrr for metrics in judged),
        mean(metrics.ndcg for metrics in judged),
        mean(metrics.hit for metrics in judged),
    )


def _found(ranking: Sequence[str], qrels: Mapping[str, int], k: int) -> list[int]:
    positive(k, "k")
    if not qrels:
        raise NoJudgements("0 judgements given, at least 1 expected")
    for name, grade in sorted(qrels.items()):
        if grade < 1:
            raise GradeOutOfRange(f"{name!a}: {grade} given, at least 1 expected")
    return [rank for rank, name in enumerate(distinct(ranking)[:k], start=1) if name in qrels]
