"""The checker of what several processes did to one file: it finds what no order of commits explains (FLT-5).

A document has two chains of acknowledged changes, of its content and of its list, each in the order of its revisions. A
change was committed while its operation ran, no earlier than the one before it and no later than the one after it. So
each chain says what a reader may have met between its begin and its end, and everything else is an anomaly.
"""

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate

from tests.faults.events import WRITES, Event, Final, Seen

ACKNOWLEDGED = ("indexed", "replaced", "deleted")
# What may be told besides, typed: a state in which nothing was written, or why nothing could be.
TOLD: Mapping[str, frozenset[str]] = {
    "upsert": frozenset({"unchanged", "stale_or_conflicting_revision", "deleted_document_requires_explicit_restore"}),
    "set_acl": frozenset({"stale_acl_revision", "document_not_live"}),
    "delete": frozenset({"unchanged", "delete_requires_new_revision", "stale_or_conflicting_revision"}),
    "search": frozenset({"done"}),
    "answer": frozenset({"extractive", "abstain"}),
}


@dataclass(frozen=True, slots=True, order=True)
class Anomaly:
    """What is wrong, with which document, and the event that shows it (process and number; -1 for what is stored)."""

    kind: str
    doc_id: str
    process: int = -1
    number: int = -1


@dataclass(frozen=True, slots=True)
class Change:
    """One acknowledged change: its place in the chain, the list after it, the operation that made it."""

    revision: int
    acl: tuple[str, ...]
    event: Event


@dataclass(frozen=True, slots=True)
class Chain:
    """Changes by revision; `earliest` and `latest` bound each one's commit by what the others' operations say."""

    changes: tuple[Change, ...]
    earliest: tuple[int, ...] = field(init=False)
    latest: tuple[int, ...] = field(init=False)

    def __post_init__(self) -> None:
        begins = [change.event.begin for change in self.changes]
        ends = [change.event.end for change in self.changes]
        object.__setattr__(self, "earliest", tuple(accumulate(begins, max)))
        object.__setattr__(self, "latest", tuple(accumulate(reversed(ends), min))[::-1])

    def possible(self, begin: int, end: int) -> range:
        """Return the places of the changes that may have been the current one in this time; -1: there was none yet.

        There is always one, even in a chain against the order in time.
        """
        first = bisect_left(self.latest, begin) - 1
        return range(first, max(first + 1, bisect_right(self.earliest, end)))

    def place(self, revision: int) -> int | None:
        """Return the place of a revision, or None where none of this number was acknowledged."""
        at = bisect_left(self.changes, revision, key=lambda change: change.revision)
        return at if at < len(self.changes) and self.changes[at].revision == revision else None

    def current(self, at: int) -> tuple[float, float]:
        """Return when the change at this place may have been the current one: no earlier than, no later than."""
        return self.earliest[at], self.latest[at + 1] if at + 1 < len(self.latest) else float("inf")


@dataclass(frozen=True, slots=True)
class Document:
    """The two chains of one document."""

    content: Chain
    lists: Chain


def _policy_changes(content: Sequence[Change], swaps: Sequence[Event]) -> Iterator[Change]:
    """Creation makes the first list, each restoration and each burial a next one, and so does each swap (DEL-2)."""
    for n, change in enumerate(content):
        live = change.event.operation == "upsert"
        before = content[n - 1].event.operation == "upsert" if n else None
        if n == 0 or live != before:
            yield Change(change.event.acl_revision, change.acl, change.event)
    for event in swaps:
        yield Change(event.acl_revision, event.acl, event)


def _document(events: Sequence[Event]) -> Document:
    def ordered(changes: Iterable[Change]) -> tuple[Change, ...]:
        return tuple(sorted(changes, key=lambda item: (item.revision, item.event.begin, item.event.process)))

    content = ordered(Change(one.given, one.acl, one) for one in events if one.operation != "set_acl")
    swaps = [one for one in events if one.operation == "set_acl"]
    return Document(Chain(content), Chain(ordered(_policy_changes(content, swaps))))


def documents_of(events: Iterable[Event]) -> dict[str, Document]:
    """Return each document's chains, made of the acknowledged writes alone."""
    written: defaultdict[str, list[Event]] = defaultdict(list)
    for event in events:
        if event.operation in WRITES and event.outcome in ACKNOWLEDGED:
            written[event.doc_id].append(event)
    return {doc_id: _document(some) for doc_id, some in sorted(written.items())}


def _chain_anomalies(doc_id: str, name: str, chain: Chain) -> Iterator[Anomaly]:
    for n, change in enumerate(chain.changes):
        where = (doc_id, change.event.process, change.event.number)
        if n and change.revision == chain.changes[n - 1].revision:
            yield Anomaly(f"two {name} changes of one revision", *where)
        if chain.earliest[n] > chain.latest[n]:
            yield Anomaly(f"{name} revisions against the order in time", *where)
        if name == "list" and change.revision > (chain.changes[n - 1].revision + 1 if n else 1):
            yield Anomaly("a list revision that nobody made", *where)
        if change.event.operation == "set_acl" and change.revision != change.event.given + 1:
            yield Anomaly("a swap of another revision than expected", *where)


def _final_anomalies(doc_id: str, document: Document, final: Final | None) -> Iterator[Anomaly]:
    content, policy = document.content.changes[-1:], document.lists.changes[-1:]
    if final is None or not content or not policy:
        yield Anomaly("a document without its content or without its end", doc_id)
        return
    event = content[0].event
    live, wanted = (
        event.operation == "upsert",
        (content[0].revision, event.sha256 if event.operation == "upsert" else ""),
    )
    stored = (final.revision, final.sha256 if final.live else "")
    if (final.live, stored) != (live, wanted):
        yield Anomaly("unacknowledged content" if final.revision > wanted[0] else "lost content", doc_id)
    if (final.acl_revision, final.acl) != (policy[0].revision, policy[0].acl):
        yield Anomaly("unacknowledged list" if final.acl_revision > policy[0].revision else "lost list", doc_id)


def _in_vain(event: Event, document: Document) -> bool:
    """True if a write was refused for a reason that held in no state it can have met."""
    content = document.content.possible(event.begin, event.end)
    lists = document.lists.possible(event.begin, event.end)
    if -1 in content or -1 in lists:
        return False
    match event.outcome:
        case "stale_acl_revision":
            return {document.lists.changes[n].revision for n in lists} == {event.given}
        case "stale_or_conflicting_revision" | "delete_requires_new_revision":
            return event.given > document.content.changes[content[-1]].revision
        case "document_not_live" | "deleted_document_requires_explicit_restore":
            return all(document.content.changes[n].event.operation == "upsert" for n in content)
    return False


def _wrong_version(event: Event, seen: Seen, chain: Chain) -> str | None:
    place = chain.place(seen.revision)
    change = None if place is None else chain.changes[place].event
    if place is None or change is None or (change.operation, change.sha256) != ("upsert", seen.sha256):
        return "a version that nobody wrote"
    possible = chain.possible(event.begin, event.end)
    if place in possible:
        return None
    if place > possible[-1]:
        return "a version before it was written"
    return "a deleted document" if chain.changes[possible[0]].event.operation == "delete" else "an older version"


def _wrong_list(event: Event, seen: Seen, chain: Chain) -> str | None:
    place = chain.place(seen.acl_revision)
    if place is None:
        return "a list that nobody made"
    possible = chain.possible(event.begin, event.end)
    if place not in possible:
        return "a list before it was made" if place > possible[-1] else "a replaced list"
    return None if set(chain.changes[place].acl) & set(event.reader) else "a list without this reader"


def _parts_missing(event: Event, document: Document, some: Sequence[Seen]) -> bool:
    """A search that finds every chunk finds as many as the version has."""
    place = document.content.place(some[0].revision)
    made = 0 if place is None else document.content.changes[place].event.chunks
    return event.operation == "search" and place is not None and len(some) != made


def _no_moment(event: Event, documents: Mapping[str, Document]) -> bool:
    """True if what was seen, together, was never current at one moment: a read sees one commit (UPD-2)."""
    after, before = float(event.begin), float(event.end)
    for seen in set(event.seen):
        document = documents[seen.doc_id]
        for chain, revision in ((document.content, seen.revision), (document.lists, seen.acl_revision)):
            place = chain.place(revision)
            if place is not None:
                low, high = chain.current(place)
                after, before = max(after, low), min(before, high)
    return after > before


def _unseen(event: Event, documents: Mapping[str, Document]) -> Iterator[str]:
    """Documents that were live and readable in whichever state the search met them, and were not found."""
    found = {seen.doc_id for seen in event.seen}
    for doc_id, document in documents.items():
        places = document.content.possible(event.begin, event.end), document.lists.possible(event.begin, event.end)
        if doc_id in found or -1 in places[0] or -1 in places[1]:
            continue
        live = all(document.content.changes[n].event.operation == "upsert" for n in places[0])
        if live and all(set(document.lists.changes[n].acl) & set(event.reader) for n in places[1]):
            yield doc_id


def _read_anomalies(event: Event, documents: Mapping[str, Document]) -> Iterator[Anomaly]:
    where = (event.process, event.number)
    by_document: defaultdict[str, list[Seen]] = defaultdict(list)
    for seen in event.seen:
        by_document[seen.doc_id].append(seen)
    wrong = {doc_id: "a document that nobody wrote" for doc_id in by_document if doc_id not in documents}
    for doc_id, some in by_document.items():
        if doc_id in wrong:
            continue
        document = documents[doc_id]
        if len(set(some)) > 1 or _parts_missing(event, document, some):
            wrong[doc_id] = "parts of a version"
        for seen in set(some):
            kind = _wrong_version(event, seen, document.content) or _wrong_list(event, seen, document.lists)
            wrong |= {doc_id: kind} if kind else {}
    yield from (Anomaly(kind, doc_id, *where) for doc_id, kind in wrong.items())
    if not wrong and _no_moment(event, documents):
        yield Anomaly("states of different moments", "", *where)
    if event.operation == "search":
        yield from (
            Anomaly("a readable document was not found", doc_id, *where) for doc_id in _unseen(event, documents)
        )


def anomalies(events: Sequence[Event], finals: Iterable[Final]) -> list[Anomaly]:
    """Return everything in the merged histories and in what is stored in the end that no order of commits explains.

    All searches have to ask for every chunk of every document, so that what is missing is missing.
    """
    documents, stored = documents_of(events), {final.doc_id: final for final in finals}
    found = [Anomaly("a document that nobody wrote", doc_id) for doc_id in stored if doc_id not in documents]
    for doc_id, document in documents.items():
        found += _chain_anomalies(doc_id, "content", document.content)
        found += _chain_anomalies(doc_id, "list", document.lists)
        found += _final_anomalies(doc_id, document, stored.get(doc_id))
    for event in events:
        told = event.outcome in TOLD[event.operation]
        if not told and not (event.operation in WRITES and event.outcome in ACKNOWLEDGED):
            found.append(Anomaly(f"{event.outcome} from {event.operation}", event.doc_id, event.process, event.number))
        if event.operation not in WRITES:
            found += _read_anomalies(event, documents)
        elif event.doc_id in documents and _in_vain(event, documents[event.doc_id]):
            found.append(Anomaly(f"{event.outcome} without cause", event.doc_id, event.process, event.number))
    return sorted(found)
