"""Preference rerank: what a caller picked and used before, as a weak third channel beside words and vectors; pure.

A row's value is its fused relevance plus `channel / (rrf_k + place)`, where place is that of its document among those
with a preference above 0; the channel weighs at most a quarter of the other two (CTX-54). A preference is made of two
sums that are kept apart (CTX-55): weak signals (picked, rejected) count more the lower they stood, because fewer people
look there; strong ones (consumed, adopted) count once each wherever they stood. Nothing is ever pushed down for want of
a preference: a row without one stays behind the same rows as before, unless it is given a place for exploration.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import inf
from typing import ClassVar, Literal

from kbretrieval.context.search import MAX_ROWS, Found, Row
from kbretrieval.context.vouchers import checked_voucher
from kbretrieval.context.weights import CURRENT, Weights, weights_of
from kbretrieval.errors import ContextInputInvalid
from kbretrieval.identity import MAX_NAME, checked_name
from kbretrieval.results import Exported

Kind = Literal["picked", "rejected", "consumed", "adopted"]

KINDS: tuple[Kind, ...] = ("picked", "rejected", "consumed", "adopted")
DOCUMENT = "doc:"
MAX_KEY = 1024 + len(DOCUMENT)


@dataclass(frozen=True, slots=True)
class Signal(Exported):
    """Who picked, rejected, consumed or adopted which document, where it stood, and which ranking put it there.

    `about` is `doc:` and the document's name, so that a signal outlives chunks and generations. `position` counts from
    1; `generation` is the digest of the index's contract. Raises `context_input_invalid` and `invalid_identity`.

    Example:
        >>> Signal("acme", "alice", "doc:refund", "picked", 3, "9f2c", CURRENT).position
        3
    """

    SCHEMA: ClassVar[str] = "kbretrieval.context.signal/1"

    tenant: str
    principal: str
    about: str
    kind: Kind
    position: int
    generation: str
    weights_version: str

    def __post_init__(self) -> None:
        checked_voucher(self, Signal, "signal")
        for name, limit in (("tenant", MAX_NAME), ("principal", MAX_NAME), ("about", MAX_KEY)):
            checked_name(getattr(self, name), name, limit)
        if not self.about.startswith(DOCUMENT):
            raise ContextInputInvalid(f"about: a key with the prefix {DOCUMENT} is required, another given")
        if not 1 <= self.position <= MAX_ROWS:
            raise ContextInputInvalid(f"position: an integer from 1 to {MAX_ROWS} is required, another given")


@dataclass(frozen=True, slots=True)
class Counts(Exported):
    """The signals about one document: how many of each kind, and the sum of picks less rejections by position.

    Example:
        >>> Counts(consumed=1).preference(weights_of("preference/1")), Counts(rejected=1, seen=-1).preference(
        ...     weights_of("preference/1")
        ... )
        (0.5, 0.0)
    """

    SCHEMA: ClassVar[str] = "kbretrieval.context.preference-counts/1"

    picked: int = 0
    rejected: int = 0
    consumed: int = 0
    adopted: int = 0
    seen: int = 0

    def weak_part(self, weights: Weights) -> float:
        """Return what the weak signals are worth, above -`weights.weak` and below `weights.weak`."""
        return weights.weak * self.seen / (1 + abs(self.seen))

    def strong_part(self, weights: Weights) -> float:
        """Return what the strong signals are worth, from 0 to below `weights.strong`."""
        used = self.consumed + self.adopted
        return weights.strong * used / (1 + used)

    def preference(self, weights: Weights) -> float:
        """Return the two parts together, 0 where rejections prevail."""
        return max(0.0, self.weak_part(weights) + self.strong_part(weights))


NOTHING = Counts()


@dataclass(frozen=True, slots=True)
class Placed(Exported):
    """A candidate's place and what put it there; places count from 1 (CTX-59).

    `value` is `relevance + part`. `explored` tells that it stands higher than its value alone would put it.
    """

    SCHEMA: ClassVar[str] = "kbretrieval.context.placed/1"

    key: str
    about: str
    place: int
    place_in_search: int
    relevance: float
    counts: Counts
    weak: float
    strong: float
    part: float
    value: float
    explored: bool

    @property
    def is_fresh(self) -> bool:
        """Tell whether the search found it relevant and no signal is about it."""
        return self.counts == NOTHING and self.relevance > 0.0


@dataclass(frozen=True, slots=True)
class PreferenceReceipt(Exported):
    """How a search was reordered: under which weights, on which index, with which parts for each candidate.

    `active`: the channel moved something. `generation` is the digest of the contract of the index, `commit` and `stamp`
    are those of the search: a receipt keeps them, whatever serves later (CTX-10). A receipt is not an authorisation
    (CTX-60): no call takes one for material, and every row that it names is checked again by whatever reads it.
    """

    SCHEMA: ClassVar[str] = "kbretrieval.context.preference-receipt/2"

    scope: str
    version: str
    generation: str
    commit: int
    stamp: str
    shown: int
    signals: int
    active: bool
    placed: tuple[Placed, ...]


@dataclass(frozen=True, slots=True)
class Reranked(Exported):
    """The rows of a search in their new order, all of them, and the receipt."""

    SCHEMA: ClassVar[str] = "kbretrieval.context.reranked/1"

    rows: tuple[Row, ...]
    receipt: PreferenceReceipt


def rerank_by_preference(found: Found, signals: Sequence[Signal], shown: int = 10, version: str = CURRENT) -> Reranked:
    """Return the rows of a search, those a little higher whose documents this caller picked or used before.

    found    rows best first, as `search` gives them; nothing is added to them, whatever the signals name
    signals  those of one caller, in any order, for example `PreferenceLedger.signals(scope)`
    shown    how many rows the reader sees, 1 to 50; one or two of these places, at most half, go to rows without any
             signal, where there are such (CTX-57)

    The same arguments give the same result (CTX-58). Raises `context_input_invalid`.

    Example:
        >>> from kbretrieval.context import Selection, rehearsal
        >>> with rehearsal() as (tasks, alice):
        ...     scope = tasks.authorize_scope(alice, "T-7", "answering", Selection(["policies"]))
        ...     found = tasks.search(scope, "年假退款")
        >>> used = Signal("acme", "alice", found.rows[-1].document_key, "consumed", 2, "9f2c", CURRENT)
        >>> [row.doc_id for row in found.rows], rerank_by_preference(found, [used]).receipt.active
        (['leave', 'refund'], True)
    """
    weights = _checked(found, signals, shown, version)
    placed = _placed(found.rows, counted(signals, weights), weights)
    by_value = sorted(placed, key=lambda item: -item.value)
    active = any(item.part for item in placed)
    # Where nothing was preferred nobody was displaced, and there is nothing to make good.
    order = _with_explored(by_value, shown, weights.explored) if active else by_value
    valued = {item.key: place for place, item in enumerate(by_value, 1)}
    final = tuple(replace(item, place=place, explored=place < valued[item.key]) for place, item in enumerate(order, 1))
    made_from = (found.contract_sha256, found.commit, found.stamp)
    receipt = PreferenceReceipt(found.scope, version, *made_from, shown, len(signals), active, final)
    rows = {row.key: row for row in found.rows}
    return Reranked(tuple(rows[item.key] for item in final), receipt)


def counted(signals: Sequence[Signal], weights: Weights) -> dict[str, Counts]:
    """Return the counts of each document that signals are about; the order of the signals makes no difference.

    Example:
        >>> picks = [Signal("acme", "alice", "doc:refund", "picked", place, "9f2c", CURRENT) for place in (1, 7)]
        >>> counted(picks, weights_of(CURRENT))["doc:refund"]
        Counts(picked=2, rejected=0, consumed=0, adopted=0, seen=8)
    """
    kinds = Counter((signal.about, signal.kind) for signal in signals)
    seen = Counter[str]()
    for signal in signals:
        depth = min(signal.position, weights.deepest)
        seen[signal.about] += {"picked": depth, "rejected": -depth}.get(signal.kind, 0)
    return {
        about: Counts(**{kind: kinds[about, kind] for kind in KINDS}, seen=seen[about])
        for about in sorted({about for about, _ in kinds})
    }


def _checked(found: object, signals: object, shown: object, version: str) -> Weights:
    """Return the weights of a version; refuse what is no search result, or signals of several callers."""
    if not _is_ranked(checked_voucher(found, Found, "found").rows):
        raise ContextInputInvalid("found: the rows of a search, best first, are required, others given")
    if not isinstance(signals, (tuple, list)) or not all(type(signal) is Signal for signal in signals):
        raise ContextInputInvalid(f"signals: a list of Signal is required, {type(signals).__name__} given")
    callers = {(signal.tenant, signal.principal) for signal in signals}
    if len(callers) > 1:
        raise ContextInputInvalid(f"signals: those of one caller are required, of {len(callers)} given")
    if type(shown) is not int or not 1 <= shown <= MAX_ROWS:
        raise ContextInputInvalid(f"shown: an integer from 1 to {MAX_ROWS} is required, another given")
    return weights_of(version)


def _is_ranked(rows: Sequence[Row]) -> bool:
    values = [row.fused for row in rows]
    falling = all(a >= b for a, b in pairwise([inf, *values, 0.0]))
    return falling and inf not in values and len({row.key for row in rows}) == len(rows)


def _placed(rows: Sequence[Row], counts: Mapping[str, Counts], weights: Weights) -> list[Placed]:
    """Return the rows in the order of the search, each with its parts."""
    mine = [counts.get(row.document_key, NOTHING) for row in rows]
    # Equal preferences share a place, so that slices of one document keep their order among themselves.
    levels = sorted({count.preference(weights) for count in mine} - {0.0}, reverse=True)
    places = {level: place for place, level in enumerate(levels, 1)}
    made = []
    for number, (row, count) in enumerate(zip(rows, mine, strict=True), 1):
        place = places.get(count.preference(weights))
        part = weights.channel / (weights.rrf_k + place) if place else 0.0
        made.append(
            Placed(
                key=row.key,
                about=row.document_key,
                place=number,
                place_in_search=number,
                relevance=row.fused,
                counts=count,
                weak=count.weak_part(weights),
                strong=count.strong_part(weights),
                part=part,
                value=row.fused + part,
                explored=False,
            )
        )
    return made


def _with_explored(by_value: Sequence[Placed], shown: int, explored: int) -> list[Placed]:
    """Return the order in which at least `explored` of the shown places go to rows without any signal.

    As few as possible of the last shown places are given away, and the rows that lose them stay in their order.
    """
    end = min(shown, len(by_value))
    places = min(explored, end // 2)
    given = next(n for n in range(places + 1) if _without_signal(by_value[: end - n]) >= places - n)
    head, rest = by_value[: end - given], by_value[end - given :]
    lifted = [item for item in rest if item.is_fresh][:given]
    keys = {item.key for item in lifted}
    return [*head, *lifted, *(item for item in rest if item.key not in keys)]


def _without_signal(items: Iterable[Placed]) -> int:
    return sum(item.is_fresh for item in items)
