"""How an open index times its operations and tells its observer (OBS-3).

An event is told after the operation has ended, its result or refusal safe. What the observer raises then goes no
further: it is counted, with its kind, for `Index.observation`. An interrupt is no failure of an observer, and passes.
"""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Protocol

from kbretrieval.citation import Verdict
from kbretrieval.errors import InvalidParameter, KBError
from kbretrieval.identity import Context
from kbretrieval.observers.events import (
    DONE,
    AnswerObserved,
    Event,
    Label,
    Observer,
    WriteObserved,
    search_observed,
    verdicts_observed,
)
from kbretrieval.results import Answer, SearchResult

MAX_LABEL = 200
MILLI = 1000.0

Clock = Callable[[], float]


@dataclass(frozen=True, slots=True)
class Observation:
    """How telling the observer went: events taken, events at which it raised, and the kind of what it raised last."""

    taken: int = 0
    failed: int = 0
    last_failure: str | None = None


@dataclass(slots=True)
class Searched:
    """What a search tells while it runs."""

    result: SearchResult | None = None


@dataclass(slots=True)
class Answered:
    """What an answer tells while it runs: the hits given, the verdict on each one that it looked at, the answer."""

    given: int = 0
    verdicts: list[Verdict] = field(default_factory=list)
    answer: Answer | None = None


@dataclass(slots=True)
class Written:
    """What a write tells while it runs: what it did."""

    outcome: str = DONE


class Watching(Protocol):
    """What an index does around its operations: a `Watch`, or nothing."""

    def search(self, context: object) -> AbstractContextManager[Searched]:
        """Surround a search."""
        ...

    def answer(self, context: object) -> AbstractContextManager[Answered]:
        """Surround an answer."""
        ...

    def write(self, kind: str, tenant: object = None) -> AbstractContextManager[Written]:
        """Surround a write; `tenant` is None where it concerns the whole store."""
        ...

    def observation(self) -> Observation:
        """Return how telling the observer went."""
        ...


class Unwatched:
    """No observer: no clock is read, nothing is kept."""

    def search(self, context: object) -> AbstractContextManager[Searched]:
        """Surround a search by nothing."""
        return nullcontext(Searched())

    def answer(self, context: object) -> AbstractContextManager[Answered]:
        """Surround an answer by nothing."""
        return nullcontext(Answered())

    def write(self, kind: str, tenant: object = None) -> AbstractContextManager[Written]:
        """Surround a write by nothing."""
        return nullcontext(Written())

    def observation(self) -> Observation:
        """Return that nothing was told."""
        return Observation()


def checked_label(value: object) -> str | None:
    """Return a label of at most 200 code points that UTF-8 can write, or None; else raise `invalid_parameter`."""
    if value is None:
        return None
    if type(value) is not str or len(value) > MAX_LABEL or any("\ud800" <= item <= "\udfff" for item in value):
        raise InvalidParameter(f"label: text of at most {MAX_LABEL} code points is required, another value returned")
    return value


class Watch:
    """Times the operations of one index and tells its observer; usable from several threads.

    `waited` returns the seconds that the calling thread has waited for the store so far.
    """

    def __init__(
        self, observer: Observer, label: Label | None, waited: Clock, clock: Clock = time.perf_counter
    ) -> None:
        self._observer, self._label, self._waited, self._clock = observer, label, waited, clock
        self._lock = threading.Lock()
        self._observation = Observation()

    @contextmanager
    def search(self, context: object) -> Iterator[Searched]:
        """Surround a search."""
        told = Searched()

        def event(outcome: str, spent: float, label: str | None) -> Event:
            return search_observed(outcome, told.result, spent, label)

        with self._timed(event, *_who(context)):
            yield told

    @contextmanager
    def answer(self, context: object) -> Iterator[Answered]:
        """Surround an answer."""
        told = Answered()

        def event(outcome: str, spent: float, label: str | None) -> Event:
            return AnswerObserved(
                outcome=outcome,
                verdicts=verdicts_observed(told.verdicts),
                unjudged=max(0, told.given - len(told.verdicts)),
                quotations=len(told.answer.evidence) if told.answer is not None else 0,
                abstained=told.answer is not None and told.answer.state == "abstain",
                milliseconds=spent,
                label=label,
            )

        with self._timed(event, *_who(context)):
            yield told

    @contextmanager
    def write(self, kind: str, tenant: object = None) -> Iterator[Written]:
        """Surround a write."""
        told, before = Written(), self._waited()

        def event(outcome: str, spent: float, label: str | None) -> Event:
            # Taking a free lock takes microseconds, too: less than a tenth of a millisecond is no waiting.
            waited = round((self._waited() - before) * MILLI, 1)
            return WriteObserved(kind, told.outcome if outcome == DONE else outcome, waited, spent, label)

        with self._timed(event, tenant if isinstance(tenant, str) else None, None):
            yield told

    def observation(self) -> Observation:
        """Return how telling the observer went."""
        with self._lock:
            return self._observation

    @contextmanager
    def _timed(
        self, event: Callable[[str, float, str | None], Event], tenant: str | None, principal: str | None
    ) -> Iterator[None]:
        # What is no refusal of ours (an interrupt, memory that ran out) is no outcome either: it passes, untold.
        began = self._clock()
        try:
            yield
        except KBError as error:
            self._tell(event, error.code, self._since(began), tenant, principal)
            raise
        self._tell(event, DONE, self._since(began), tenant, principal)

    def _since(self, began: float) -> float:
        return round((self._clock() - began) * MILLI, 3)

    def _tell(
        self,
        event: Callable[[str, float, str | None], Event],
        outcome: str,
        spent: float,
        tenant: str | None,
        principal: str | None,
    ) -> None:
        failure = None
        try:
            label = self._label(tenant, principal) if self._label is not None and tenant is not None else None
            self._observer(event(outcome, spent, checked_label(label)))
        except Exception as error:  # noqa: BLE001 - foreign code: what it raises is counted, and changes no operation
            failure = error.code if isinstance(error, KBError) else type(error).__name__
        with self._lock:
            seen = self._observation
            self._observation = (
                Observation(seen.taken + 1, seen.failed, seen.last_failure)
                if failure is None
                else Observation(seen.taken, seen.failed + 1, failure)
            )


def _who(context: object) -> tuple[str | None, str | None]:
    return (context.tenant, context.principal) if type(context) is Context else (None, None)


def check_observer(observer: object, label: object) -> None:
    """Raise `invalid_parameter` unless each one is None or can be called."""
    for name, value in (("observer", observer), ("label", label)):
        if value is not None and not callable(value):
            raise InvalidParameter(f"{name}: something that can be called is required, {type(value).__name__} given")


def watching(observer: Observer | None, label: Label | None, waited: Clock) -> Watching:
    """Return the watch of an index, or nothing where there is no observer."""
    return Unwatched() if observer is None else Watch(observer, label, waited)
