"""Times in milliseconds, every sample kept; what is compared is measured in turns, so that a neighbour hits all."""

import gc
import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeVar

Made = TypeVar("Made")
Given = TypeVar("Given")


@dataclass(frozen=True, slots=True)
class Series:
    """All samples of one way of doing one thing, in ms, in the order in which they were taken.

    `processor` is the process's own processor time of the same calls, over all its threads; empty where it was not
    taken. On a machine with neighbours it tells what the work costs, where the wall clock tells what a caller waits.
    """

    what: str
    way: str
    samples: tuple[float, ...]
    processor: tuple[float, ...] = ()

    @property
    def p50(self) -> float:
        """The median, ms."""
        return statistics.median(self.samples)

    @property
    def p90(self) -> float:
        """The sample that nine in ten do not exceed, ms.

        Example:
            >>> Series("search", "engine", tuple(range(1, 11))).p90
            9
        """
        ordered = sorted(self.samples)
        return ordered[-(-9 * len(ordered) // 10) - 1]


def timed(call: Callable[[], Made]) -> tuple[Made, float]:
    """Return what a call returns, and how long it took in ms.

    Example:
        >>> timed(lambda: 5)[0]
        5
    """
    begin = time.perf_counter_ns()
    made = call()
    return made, (time.perf_counter_ns() - begin) / 1e6


@contextmanager
def without_collector() -> Iterator[None]:
    """Keep the garbage collector out of the samples, as `timeit` does."""
    was_on = gc.isenabled()
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def in_turns(
    what: str,
    ways: Mapping[str, Callable[[Given], object]],
    inputs: Sequence[Given],
    rounds: int,
    settle_seconds: float = 0.0,
) -> tuple[Series, ...]:
    """Return one series a way: in every round each way has all inputs, the ways in turns, beginning with another.

    A way's turn begins with a pause and an untimed call. Libraries with threads of their own let these spin on for a
    tenth of a second after a call; without the pause the next way would be measured beside them.

    Example:
        >>> [len(s.samples) for s in in_turns("add", {"a": abs, "b": abs}, [1, 2], 3)]
        [6, 6]
    """
    taken: dict[str, list[tuple[float, float]]] = {name: [] for name in ways}
    names = list(ways)
    with without_collector():
        for number in range(rounds):
            turn = number % len(names)
            for name in names[turn:] + names[:turn]:
                time.sleep(settle_seconds)
                ways[name](inputs[0])
                taken[name] += [_sample(ways[name], given) for given in inputs]
    return tuple(
        Series(what, name, tuple(wall for wall, _ in pairs), tuple(spent for _, spent in pairs))
        for name, pairs in taken.items()
    )


def _sample(way: Callable[[Given], object], given: Given) -> tuple[float, float]:
    begin = time.process_time_ns()
    _, wall = timed(lambda: way(given))
    return wall, (time.process_time_ns() - begin) / 1e6
