"""Many events as one table: searches, answers with their refused citations by cause, writes (OBS-4)."""

import math
from array import array
from collections import Counter
from collections.abc import Iterable, Mapping, MutableSequence, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar

from kbretrieval.citation import Verdict
from kbretrieval.observers.events import DONE, AnswerObserved, SearchObserved, WriteObserved
from kbretrieval.observers.log import Logged
from kbretrieval.results import Exported

CAUSES: Mapping[str, tuple[Verdict, ...]] = {
    "content changed": ("revision changed",),
    "policy changed": ("access withdrawn", "ACL changed"),
    "deleted": ("deleted",),
    "chunk mismatch": ("chunk missing", "text altered"),
    "corrupted": ("store corrupted",),
    "others": ("malformed", "other tenant", "other principal"),
}
"""Why a citation was refused, and the verdicts that say so; `valid` is none of them."""

Tally = tuple[tuple[str, int], ...]


class Tallied(Exported):
    """Exports a tally as a mapping from its words to their numbers."""

    __slots__ = ()

    def to_dict(self) -> dict[str, Any]:
        """Return the schema version and the fields, ready for JSON."""
        made = Exported.to_dict(self)
        for item in fields(self):  # type: ignore[arg-type]
            if item.type is Tally:
                made[item.name] = dict(getattr(self, item.name))
        return made


@dataclass(frozen=True, slots=True)
class SearchSums(Tallied):
    """Sums of searches. Done ones by mode, others by the code of their refusal; skipped channels by `channel: reason`.

    `zero_hits` of the done ones returned nothing; of these, for `nothing_eligible` there was nothing that the caller
    may read. p50 and p90 are the nearest ranks of the milliseconds of the done ones, None where there is none.
    """

    SCHEMA: ClassVar[str] = "kbretrieval.search_sums/1"

    done: int
    by_mode: Tally
    refused: Tally
    skipped: Tally
    zero_hits: int
    nothing_eligible: int
    p50: float | None
    p90: float | None


@dataclass(frozen=True, slots=True)
class AnswerSums(Tallied):
    """Sums of answers: abstentions, quotations, and every hit that was looked at by its verdict.

    `refused_citations` are those of `verdicts` that are not valid, by cause: see `CAUSES`. `refused` are answers.
    """

    SCHEMA: ClassVar[str] = "kbretrieval.answer_sums/1"

    done: int
    refused: Tally
    abstained: int
    quotations: int
    unjudged: int
    verdicts: Tally
    refused_citations: Tally
    p50: float | None
    p90: float | None


@dataclass(frozen=True, slots=True)
class WriteSums(Tallied):
    """Sums of writes, by `kind: outcome`; milliseconds spent waiting for others: the 90th percentile and the most."""

    SCHEMA: ClassVar[str] = "kbretrieval.write_sums/1"

    writes: int
    by_outcome: Tally
    waited_p90: float | None
    waited_most: float | None


@dataclass(frozen=True, slots=True)
class Sums(Exported):
    """What a log of events says; first and last time in seconds since 1970 UTC, None where the log has no times.

    `torn` counts lines that are the beginning of an event, as a kill or a full disk leaves them; their rest is lost.
    """

    SCHEMA: ClassVar[str] = "kbretrieval.observed_sums/1"

    events: int
    torn: int
    first_at: float | None
    last_at: float | None
    searches: SearchSums
    answers: AnswerSums
    writes: WriteSums


def percentile(values: Sequence[float], share: float) -> float | None:
    """Return the nearest rank: the smallest value that at least `share` of all values do not exceed; None for none.

    Example:
        >>> percentile([4.0, 1.0, 3.0, 2.0], 0.5)
        2.0
    """
    return sorted(values)[max(0, math.ceil(share * len(values)) - 1)] if values else None


def _doubles() -> MutableSequence[float]:
    return array("d")


@dataclass(slots=True)
class _Searches:
    by_mode: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    skipped: Counter[str] = field(default_factory=Counter)
    zero_hits: int = 0
    nothing_eligible: int = 0
    milliseconds: MutableSequence[float] = field(default_factory=_doubles)

    def take(self, event: SearchObserved) -> None:
        if event.outcome != DONE:
            self.refused[event.outcome] += 1
            return
        self.by_mode[event.mode or "-"] += 1
        self.skipped.update(f"{item.channel}: {item.reason}" for item in event.channels if item.state == "skipped")
        self.zero_hits += event.hits == 0
        self.nothing_eligible += event.hits == 0 and all(item.eligible == 0 for item in event.channels)
        self.milliseconds.append(event.milliseconds)

    def sums(self) -> SearchSums:
        return SearchSums(
            done=self.by_mode.total(),
            by_mode=_tally(self.by_mode),
            refused=_tally(self.refused),
            skipped=_tally(self.skipped),
            zero_hits=self.zero_hits,
            nothing_eligible=self.nothing_eligible,
            p50=percentile(self.milliseconds, 0.5),
            p90=percentile(self.milliseconds, 0.9),
        )


@dataclass(slots=True)
class _Answers:
    refused: Counter[str] = field(default_factory=Counter)
    abstained: int = 0
    quotations: int = 0
    unjudged: int = 0
    verdicts: Counter[str] = field(default_factory=Counter)
    milliseconds: MutableSequence[float] = field(default_factory=_doubles)

    def take(self, event: AnswerObserved) -> None:
        if event.outcome != DONE:
            self.refused[event.outcome] += 1
            return
        self.abstained += event.abstained
        self.quotations += event.quotations
        self.unjudged += event.unjudged
        self.verdicts.update({item.verdict: item.hits for item in event.verdicts})
        self.milliseconds.append(event.milliseconds)

    def sums(self) -> AnswerSums:
        return AnswerSums(
            done=len(self.milliseconds),
            refused=_tally(self.refused),
            abstained=self.abstained,
            quotations=self.quotations,
            unjudged=self.unjudged,
            verdicts=_tally(self.verdicts),
            refused_citations=tuple((cause, sum(self.verdicts[name] for name in CAUSES[cause])) for cause in CAUSES),
            p50=percentile(self.milliseconds, 0.5),
            p90=percentile(self.milliseconds, 0.9),
        )


def _tally(counts: Counter[str]) -> Tally:
    return tuple(sorted(counts.items()))


def sums(lines: Iterable[Logged]) -> Sums:
    """Return the sums of a log; of each event only its milliseconds are kept until then.

    Example:
        >>> from kbretrieval.observers.events import WriteObserved
        >>> made = sums([Logged(WriteObserved("delete", "deleted", 0.0, 1.5, None), None)])
        >>> made.writes.to_dict()["by_outcome"]
        {'delete: deleted': 1}
    """
    searches, answers = _Searches(), _Answers()
    writes: Counter[str] = Counter()
    waited = _doubles()
    first: float | None = None
    last: float | None = None
    events = torn = 0
    for line in lines:
        if line.event is None:
            torn += 1
            continue
        events += 1
        if line.at is not None:
            first = line.at if first is None else min(first, line.at)
            last = line.at if last is None else max(last, line.at)
        match line.event:
            case SearchObserved():
                searches.take(line.event)
            case AnswerObserved():
                answers.take(line.event)
            case WriteObserved(kind=kind, outcome=outcome, waited_milliseconds=spent):
                writes[f"{kind}: {outcome}"] += 1
                waited.append(spent)
    made = WriteSums(len(waited), _tally(writes), percentile(waited, 0.9), max(waited, default=None))
    return Sums(events, torn, first, last, searches.sums(), answers.sums(), made)
