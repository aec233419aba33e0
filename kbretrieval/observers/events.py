"""What an observer is told: small frozen events of numbers and fixed words (OBS-3).

No event holds a text, a query, a document's name, a key, a digest or a revision; none names a tenant or a principal,
unless the caller's own labelling function did. `outcome` is `done` (writes: what was done), or the code of the refusal.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Protocol

from kbretrieval.citation import Verdict
from kbretrieval.lifecycle import ContentStep
from kbretrieval.results import ChannelTrace, Exported, SearchResult

DONE = "done"
CONTENT_OUTCOMES: Mapping[ContentStep, str] = {
    "create": "created",
    "replace": "updated",
    "restore": "restored",
    "unchanged": "unchanged",
}


@dataclass(frozen=True, slots=True)
class ChannelObserved(Exported):
    """What one channel did, in numbers of chunks; `reason` says why it was skipped (`mode`, `no_terms`)."""

    SCHEMA: ClassVar[str] = "kbretrieval.channel_observed/1"

    channel: str
    state: Literal["run", "skipped"]
    reason: str | None
    eligible: int
    scored: int
    below_floor: int
    beyond_window: int
    returned: int


@dataclass(frozen=True, slots=True)
class SearchObserved(Exported):
    """One search: its mode, what each channel did, how many hits it returned, and its milliseconds.

    Of a refused search mode is None, and there are no channels.
    """

    SCHEMA: ClassVar[str] = "kbretrieval.search_observed/1"

    outcome: str
    mode: str | None
    channels: tuple[ChannelObserved, ...]
    hits: int
    milliseconds: float
    label: str | None


@dataclass(frozen=True, slots=True)
class VerdictObserved:
    """How many of the hits of one answer met one verdict (CIT-5)."""

    verdict: Verdict
    hits: int


@dataclass(frozen=True, slots=True)
class AnswerObserved(Exported):
    """One answer: verdicts on the hits that it looked at, quotations, whether it abstained, and its milliseconds.

    Hits after the last quotation that was asked for are not looked at: `unjudged` counts them. A hit that is `valid`
    and not quoted overlaps a quotation (CIT-3).
    """

    SCHEMA: ClassVar[str] = "kbretrieval.answer_observed/1"

    outcome: str
    verdicts: tuple[VerdictObserved, ...]
    unjudged: int
    quotations: int
    abstained: bool
    milliseconds: float
    label: str | None

    def to_dict(self) -> dict[str, Any]:
        """Return the event as JSON would hold it; `verdicts` maps a verdict to its number of hits."""
        made = Exported.to_dict(self)
        made["verdicts"] = {item.verdict: item.hits for item in self.verdicts}
        return made


@dataclass(frozen=True, slots=True)
class WriteObserved(Exported):
    """One write: its kind, its outcome, and milliseconds: all of it, and what of it was spent waiting for others.

    kind: upsert, set_acl, delete, repair_derived, purge. outcome: created, updated, restored, unchanged, replaced,
    deleted, repaired, purged, or the code of the refusal. Waited is the time until the store's locks were free, those
    of other threads of this process and those of other connections, in tenths of a millisecond.
    """

    SCHEMA: ClassVar[str] = "kbretrieval.write_observed/1"

    kind: str
    outcome: str
    waited_milliseconds: float
    milliseconds: float
    label: str | None


Event = SearchObserved | AnswerObserved | WriteObserved


class Observer(Protocol):
    """Whatever can be called with one event: a function, `list.append`, a `JsonLinesObserver`.

    It is called in the thread of the operation, after that has ended: no transaction is open then, no lock is held, and
    nothing that it does or raises changes a result. Threads may call it at once. It must not use the same index: each
    call would be an event again.
    """

    def __call__(self, event: Event, /) -> object:
        """Take one event; what is returned is ignored."""
        ...


Label = Callable[[str, str | None], str | None]
"""Labels an event: given tenant and principal (of a write None), returns what the event may carry, or None."""


def channels_observed(traces: Iterable[ChannelTrace]) -> tuple[ChannelObserved, ...]:
    """Return what of the channels' traces an event carries."""
    return tuple(
        ChannelObserved(
            channel=trace.channel,
            state=trace.state,
            reason=trace.reason,
            eligible=trace.eligible,
            scored=trace.scored,
            below_floor=trace.below_floor,
            beyond_window=trace.beyond_window,
            returned=trace.returned,
        )
        for trace in traces
    )


def search_observed(
    outcome: str, result: SearchResult | None, milliseconds: float, label: str | None
) -> SearchObserved:
    """Return the event of a search, from its result or, where it was refused, from None."""
    if result is None:
        return SearchObserved(outcome, None, (), 0, milliseconds, label)
    return SearchObserved(outcome, result.mode, channels_observed(result.channels), len(result), milliseconds, label)


def verdicts_observed(verdicts: Iterable[Verdict]) -> tuple[VerdictObserved, ...]:
    """Return how often each verdict was met, by its name.

    Example:
        >>> verdicts_observed(["valid", "deleted", "valid"])[1]
        VerdictObserved(verdict='valid', hits=2)
    """
    return tuple(VerdictObserved(verdict, hits) for verdict, hits in sorted(Counter(verdicts).items()))
