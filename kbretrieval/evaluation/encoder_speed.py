"""How fast an encoder works on one core and on two: an observation, never a gate (PRF-5)."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from kbretrieval.encoders.port import Encoder


@dataclass(frozen=True, slots=True)
class EncoderSpeed:
    """Milliseconds for all texts, best of the rounds, with one thread and with two."""

    texts: int
    one_thread_ms: float
    two_threads_ms: float

    @property
    def ratio(self) -> float:
        """How many times faster two threads are; at most about 2, and less where a neighbour holds a core."""
        return self.one_thread_ms / self.two_threads_ms


def encoder_speed(make: Callable[[int], Encoder], texts: Sequence[str], rounds: int = 3) -> EncoderSpeed:
    """Time `make(threads).encode(texts)` for one and two threads in turn, so that noise meets both alike.

    Example:
        >>> from kbretrieval.encoders.terms import TermEncoder
        >>> encoder_speed(lambda threads: TermEncoder(), ["住宿标准"], rounds=1).texts
        1
    """
    encoders = {threads: make(threads) for threads in (1, 2)}
    best = dict.fromkeys(encoders, float("inf"))
    for _ in range(rounds):
        for threads, encoder in encoders.items():
            begun = time.perf_counter()
            encoder.encode(texts, query=False)
            best[threads] = min(best[threads], (time.perf_counter() - begun) * 1000)
    return EncoderSpeed(len(texts), best[1], best[2])
