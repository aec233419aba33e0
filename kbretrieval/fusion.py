"""Ranked lists → one list (chapter 7). Pure functions over ranks and scores; nothing here knows a document.

RRF (Cormack, Clarke and Büttcher 2009): the sum over channels of weight / (k + rank), rank from 1, channels in a fixed
order. Convex (Bruch, Gai and Ingber 2023): a weighted sum of scores on one scale, with each channel's theoretical
minimum (0 for BM25, -1 for the cosine) and its best score. A chunk that a channel left out is not worth nothing there:
it counts with the most that it can have scored, or a cosine just below the floor would lose to any above it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kbretrieval.results import ChannelRank

RRF = "rrf/1"
CONVEX = "convex-theoretical/2"

RankedRows = Sequence[tuple[int, float]]
Place = tuple[str, int, float]  # of a `ChannelRank`: channel, rank, score


@dataclass(frozen=True, slots=True)
class Fused:
    """A chunk key with its fused value and where each channel placed it, channels in their fixed order."""

    key: int
    value: float
    channels: tuple[ChannelRank, ...]


def rrf_value(ranks: Sequence[int], k: int) -> float:
    """Return the sum of 1 / (k + rank) in the order given, float64 (RRF-1, RRF-2).

    Example:
        >>> rrf_value([1, 1], 60) == 2 / 61
        True
    """
    total = 0.0
    for rank in ranks:
        total += 1.0 / (k + rank)
    return total


def _placed(lists: Sequence[tuple[str, RankedRows]]) -> dict[int, list[Place]]:
    placed: dict[int, list[Place]] = {}
    for name, rows in lists:
        for rank, (key, score) in enumerate(rows, 1):
            placed.setdefault(key, []).append((name, rank, score))
    return placed


def _best(values: Mapping[int, float], placed: Mapping[int, Sequence[Place]], most: int | None) -> list[Fused]:
    order = sorted(values, key=lambda key: (-values[key], key))[:most]
    return [Fused(key, values[key], tuple(ChannelRank(*place) for place in placed[key])) for key in order]


def rrf(lists: Sequence[tuple[str, RankedRows]], k: int = 60, most: int | None = None) -> list[Fused]:
    """Return the chunks of all lists by RRF value descending, then key; a list that lacks a chunk adds nothing.

    most: how many of them, all by default.

    Example:
        >>> [(item.key, item.value) for item in rrf([("lexical", [(7, 3.1)]), ("vector", [(7, 0.9), (8, 0.8)])])]
        [(7, 0.03278688524590164), (8, 0.016129032258064516)]
    """
    placed = _placed(lists)
    values = {key: rrf_value([rank for _, rank, _ in places], k) for key, places in placed.items()}
    return _best(values, placed, most)


def scaled(score: float, best: float, channel: str) -> float:
    """Return a raw score on the scale from the channel's theoretical minimum (0) to its best score (1).

    fts5 values are negative, smaller is better: both signs turn, so best of -4 and score -2 give 0.5.

    Example:
        >>> scaled(-2.0, -4.0, "lexical"), scaled(0.0, 1.0, "vector")
        (0.5, 0.5)
    """
    shift = 1.0 if channel == "vector" else 0.0
    span = best + shift
    return (score + shift) / span if span else 0.0


def convex_shares(channels: Sequence[str], lexical_share: float) -> dict[str, float]:
    """Return the weight of each channel that ran; a channel that ran alone has weight 1.

    Example:
        >>> convex_shares(["lexical", "vector"], 0.25), convex_shares(["vector"], 0.25)
        ({'lexical': 0.25, 'vector': 0.75}, {'vector': 1.0})
    """
    if len(channels) < 2:
        return dict.fromkeys(channels, 1.0)
    return {"lexical": lexical_share, "vector": 1.0 - lexical_share}


def left_out_score(rows: RankedRows, floor: float | None, beyond_window: int) -> float:
    """Return the most that a chunk absent from a list can have scored (RRF-4).

    That is the last kept score where the window cut the list, else the channel's floor, else 0: no term matched.

    Example:
        >>> left_out_score([(7, 3.0), (8, 2.0)], None, 5), left_out_score([(7, 0.9)], 0.4, 0)
        (2.0, 0.4)
    """
    if beyond_window and rows:
        return rows[-1][1]
    return 0.0 if floor is None else floor


def convex(
    lists: Sequence[tuple[str, RankedRows]],
    lexical_share: float,
    left_out: Mapping[str, float] | None = None,
    most: int | None = None,
) -> list[Fused]:
    """Return the chunks of all lists by the weighted sum of scaled scores, descending, then key.

    most: how many of them, all by default. With one list its share is 1. `left_out` holds each channel's
    `left_out_score` for the chunks that its list lacks; a channel that is not in it adds nothing there.

    Example:
        >>> convex([("lexical", [(7, 2.0)]), ("vector", [(8, 1.0)])], 0.25)[0].key
        8
        >>> convex([("lexical", [(7, 2.0)]), ("vector", [(8, 0.8)])], 0.25, {"lexical": 0.0, "vector": 0.5})[0].key
        7
    """
    share = convex_shares([name for name, _ in lists], lexical_share)
    best = {name: rows[0][1] for name, rows in lists if rows}
    absent = {
        name: share[name] * scaled(score, best[name], name) for name, score in (left_out or {}).items() if name in best
    }
    placed, values = _placed(lists), {}
    for key, places in placed.items():
        found = {name: share[name] * scaled(score, best[name], name) for name, _, score in places}
        value = 0.0
        for name in best:
            value += found[name] if name in found else absent.get(name, 0.0)
        values[key] = value
    return _best(values, placed, most)
