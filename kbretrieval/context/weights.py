"""How signals of preference count: a table of versions, and a receipt names the one that was used (CTX-54, CTX-56)."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import ClassVar

from kbretrieval.errors import ContextInputInvalid
from kbretrieval.identity import checked_name
from kbretrieval.results import Exported

MOST_WEIGHT = 0.25
MOST_STRONG = 1.0
MOST_EXPLORED = 2
MOST_COUNTED = 1_000_000


@dataclass(frozen=True, slots=True)
class Weights(Exported):
    """One version of how signals count; whole numbers go up to 1,000,000. Raises `context_input_invalid`.

    channel   weight of the preference channel where a channel of the search weighs 1.0; from 0.0 (off) to 0.25
    rrf_k     the constant of RRF, as in the search
    weak      the most that any number of weak signals is worth; at most a quarter of `strong`, so that no number of
              clicks is worth as much as one thing that was used
    strong    the most that any number of strong signals is worth, up to 1.0; one of them is worth half of it
    deepest   the position from which a weak signal counts no more than at this one
    explored  places for candidates without any signal, 1 or 2

    Example:
        >>> Weights("mine/1", channel=0.1).explored
        2
    """

    SCHEMA: ClassVar[str] = "kbretrieval.context.preference-weights/1"

    version: str
    channel: float = MOST_WEIGHT
    rrf_k: int = 60
    weak: float = 0.25
    strong: float = 1.0
    deepest: int = 10
    explored: int = MOST_EXPLORED

    def __post_init__(self) -> None:
        checked_name(self.version, "version")
        shares = (self.channel, self.weak, self.strong)
        if any(type(value) not in (int, float) or not 0 <= value <= MOST_STRONG for value in shares):
            raise ContextInputInvalid(
                f"channel, weak, strong: numbers from 0 to {MOST_STRONG} are required, others given"
            )
        counts = (self.rrf_k, self.deepest, self.explored)
        if any(type(value) is not int or not 1 <= value <= MOST_COUNTED for value in counts):
            raise ContextInputInvalid(
                f"rrf_k, deepest, explored: integers from 1 to {MOST_COUNTED} are required, others given"
            )
        if not 0.0 <= self.channel <= MOST_WEIGHT:
            raise ContextInputInvalid(f"channel: 0.0 to {MOST_WEIGHT} is required, {self.channel} given")
        if not 0.0 <= self.weak <= self.strong / 4 <= MOST_STRONG / 4:
            raise ContextInputInvalid(
                f"weak: 0.0 to a quarter of strong, {self.strong}, is required, {self.weak} given"
            )
        if self.explored > MOST_EXPLORED:
            raise ContextInputInvalid(f"explored: 1 to {MOST_EXPLORED} is required, {self.explored} given")


CURRENT = "preference/1"

# A version is never changed once signals were noted under it; another way of counting is another line (CTX-56).
WEIGHTS: Mapping[str, Weights] = MappingProxyType(
    {item.version: item for item in (Weights("preference-off/1", channel=0.0), Weights(CURRENT))}
)


def weights_of(version: str) -> Weights:
    """Return one version of the table; one that is not in it is `context_input_invalid`.

    Example:
        >>> weights_of("preference/1").channel, weights_of("preference-off/1").channel
        (0.25, 0.0)
    """
    found = WEIGHTS.get(version) if isinstance(version, str) else None
    if found is None:
        raise ContextInputInvalid(f"version: one of {', '.join(WEIGHTS)} is required, another given")
    return found
