"""What a channel hands on: a ranked list without repeats, in a total order."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from kbretrieval.offline.errors import DuplicateRankedId, SettingOutOfRange
from kbretrieval.offline.fields import repeated


@dataclass(frozen=True, slots=True)
class Ranked:
    """One candidate of one channel: rank from 1, score in the channel's own unit.

    Example:
        >>> Ranked("d-01", 1, 0.5).rank
        1
    """

    id: str
    rank: int
    score: float


def positive(value: int, name: str) -> int:
    """Return `value` if it is an integer from 1 on, else raise `SettingOutOfRange`.

    Example:
        >>> positive(0, "k")
        Traceback (most recent call last):
        kbretrieval.offline.errors.SettingOutOfRange: setting_out_of_range: k 0 given, a whole number from 1 on expected
    """
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise SettingOutOfRange(f"{name} {value} given, a whole number from 1 on expected")
    return value


def distinct(ids: Sequence[str]) -> Sequence[str]:
    """Return `ids` if none occurs twice, else raise `DuplicateRankedId` (OFF-48).

    Example:
        >>> distinct(["a", "a"])
        Traceback (most recent call last):
        kbretrieval.offline.errors.DuplicateRankedId: duplicate_ranked_id: 'a' ranked 2 times, 1 allowed
    """
    twice = repeated(ids)
    if twice is not None:
        raise DuplicateRankedId(f"{twice!a} ranked {list(ids).count(twice)} times, 1 allowed")
    return ids


def ranked(scores: Iterable[tuple[str, float]], window: int) -> tuple[Ranked, ...]:
    """Return the best `window` of (id, score), by falling score, ties by ascending id (OFF-40).

    Raises `DuplicateRankedId`, `SettingOutOfRange`.

    Example:
        >>> [hit.id for hit in ranked([("b", 1.0), ("a", 1.0), ("c", 2.0)], window=2)]
        ['c', 'a']
    """
    ordered = sorted(scores, key=lambda pair: (-pair[1], pair[0]))
    distinct([name for name, _ in ordered])
    kept = ordered[: positive(window, "window")]
    return tuple(Ranked(name, rank, score) for rank, (name, score) in enumerate(kept, start=1))
