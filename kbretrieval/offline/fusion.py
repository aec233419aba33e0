"""Reciprocal rank fusion (Cormack, Clarke and Buettcher, 2009): ranks are added up, raw scores never (OFF-42)."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from kbretrieval.offline.ranking import distinct, positive

RRF_CONSTANT = 60


@dataclass(frozen=True, slots=True)
class Fused:
    """One fused candidate; `source_ranks` names every channel, None where its window lacks the id (OFF-43).

    Example:
        >>> rrf({"bm25": ["a"], "dense": []})[0].source_ranks["dense"] is None
        True
    """

    id: str
    rank: int
    score: float
    source_ranks: Mapping[str, int | None]


def rrf(
    rankings: Mapping[str, Sequence[str]], constant: int = RRF_CONSTANT, window: int | None = None
) -> tuple[Fused, ...]:
    """Return all ids that stand within `window` of some ranking, by (-sum of 1 / (constant + rank), id).

    `window=None` counts each ranking to its end. An id that a window cut adds nothing and cannot come back (OFF-44).
    The result is not cut: it is the union of the windows. Raises `DuplicateRankedId`, `SettingOutOfRange`.

    Example:
        >>> [(hit.id, dict(hit.source_ranks)) for hit in rrf({"bm25": ["a"], "dense": ["b", "a"]}, window=2)]
        [('a', {'bm25': 1, 'dense': 2}), ('b', {'bm25': None, 'dense': 1})]
    """
    positive(constant, "rrf_constant")
    if window is not None:
        positive(window, "window")
    ranks = {
        channel: {name: rank for rank, name in enumerate(distinct(ids)[:window], start=1)}
        for channel, ids in rankings.items()
    }
    scores = {
        name: math.fsum(1.0 / (constant + found[name]) for found in ranks.values() if name in found)
        for name in {name for found in ranks.values() for name in found}
    }
    ordered = sorted(scores, key=lambda name: (-scores[name], name))
    return tuple(
        Fused(
            name, rank, scores[name], MappingProxyType({channel: found.get(name) for channel, found in ranks.items()})
        )
        for rank, name in enumerate(ordered, start=1)
    )
