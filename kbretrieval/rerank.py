"""Named rules over fused candidates (chapter 8). A rule is a rule and is never called a model (RRK-2)."""

from collections.abc import Mapping, Sequence

from kbretrieval.analysis import terms
from kbretrieval.fusion import Fused

RERANKERS = {"none": "none/1", "title": "title-overlap-rule/1"}


def title_overlap(query_terms: Sequence[str], title: str) -> float:
    """Return the share of distinct query terms that occur among the title's terms; 0.0 without query terms (RRK-1).

    Example:
        >>> title_overlap(["退款", "政策"], "退款说明")
        0.5
    """
    distinct = set(query_terms)
    return len(distinct & set(terms(title))) / len(distinct) if distinct else 0.0


def rerank(fused: Sequence[Fused], overlaps: Mapping[int, float], rule: str) -> list[Fused]:
    """Return the candidates in their final order: title overlap (rule `title` alone), fused value, chunk key.

    Example:
        >>> [item.key for item in rerank([Fused(1, 0.5, ()), Fused(2, 0.4, ())], {1: 0.0, 2: 1.0}, "title")]
        [2, 1]
    """
    if rule == "title":
        return sorted(fused, key=lambda item: (-overlaps[item.key], -item.value, item.key))
    return sorted(fused, key=lambda item: (-item.value, item.key))
