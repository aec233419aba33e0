"""What a part of the bench hands over: series of samples, equalities that held, gates by ratio, notes."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from kbretrieval.bench.timing import Series
from kbretrieval.errors import ClaimFailed


@dataclass(frozen=True, slots=True)
class Equality:
    """A comparison that was made in the run, once a row; `rows` are equal on every machine."""

    name: str
    rows: tuple[Mapping[str, Any], ...]
    held: bool

    def __post_init__(self) -> None:
        if not self.rows:
            raise ClaimFailed(f"{self.name}: at least 1 comparison is required, 0 were made")


@dataclass(frozen=True, slots=True)
class Gate:
    """A ratio of two medians of one run and the least that it must reach; `promise` is its number, if it has one.

    Example:
        >>> Gate("hybrid against the plain way", 12.0, 10.0).held
        True
    """

    name: str
    ratio: float
    least: float
    promise: str = ""

    @property
    def held(self) -> bool:
        """Whether the ratio reaches the gate."""
        return self.ratio >= self.least


@dataclass(frozen=True, slots=True)
class Figures:
    """All that one part measured at one size (eligible and hidden chunks together).

    `numbers` are single observations by name (chunks per second, bytes, counts); `absent` names peers that were left
    out, each with its reason.
    """

    part: str
    size: int
    series: tuple[Series, ...]
    equalities: tuple[Equality, ...]
    gates: tuple[Gate, ...]
    numbers: Mapping[str, float]
    absent: Mapping[str, str]

    @property
    def held(self) -> bool:
        """Whether every equality and every gate held."""
        return all(item.held for item in self.equalities) and all(gate.held for gate in self.gates)


def eased(figures: Figures, margin: float) -> Figures:
    """Return the same figures with every gate's least divided by a margin, for a machine with neighbours.

    Example:
        >>> made = Figures("terms", 20, (), (), (Gate("hybrid", 2.5, 3.0),), {}, {})
        >>> made.held, eased(made, 1.5).held
        (False, True)
    """
    return replace(figures, gates=tuple(replace(gate, least=gate.least / margin) for gate in figures.gates))


def ratio(series: tuple[Series, ...], what: str, slower: str, faster: str) -> float:
    """Return how many times the median of one way is that of another, for one thing that was measured.

    Example:
        >>> ratio((Series("search", "a", (6.0,)), Series("search", "b", (2.0,))), "search", "a", "b")
        3.0
    """
    medians = {item.way: item.p50 for item in series if item.what == what}
    return medians[slower] / medians[faster]
