"""What one process did to an index and what it was told, an event for each operation, kept as lines of JSON (FLT-5)."""

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

WRITES = ("upsert", "set_acl", "delete")


@dataclass(frozen=True, slots=True)
class Seen:
    """What one hit or one quotation says of its document."""

    doc_id: str
    revision: int
    acl_revision: int
    sha256: str


@dataclass(frozen=True, slots=True)
class Event:
    """One operation of one process; begin and end are nanoseconds of a clock that all processes share.

    outcome: a state, a code, or the name of a driver's error; given: the revision, or the expected ACL revision;
    acl_revision, sha256, chunks: what an acknowledged write returned; acl: the list that was given; reader: the entries
    that let the caller of a search or answer in.
    """

    process: int
    number: int
    operation: str
    begin: int
    end: int
    outcome: str
    doc_id: str = ""
    given: int = 0
    acl_revision: int = 0
    acl: tuple[str, ...] = ()
    sha256: str = ""
    chunks: int = 0
    reader: tuple[str, ...] = ()
    seen: tuple[Seen, ...] = ()

    def line(self) -> str:
        """Return the event as a line of JSON."""
        return json.dumps(asdict(self), ensure_ascii=False)

    @classmethod
    def of_line(cls, line: str) -> "Event":
        """Return the event of a line that `line` made."""
        values: dict[str, Any] = json.loads(line)
        seen = tuple(Seen(**item) for item in values.pop("seen"))
        return cls(acl=tuple(values.pop("acl")), reader=tuple(values.pop("reader")), seen=seen, **values)


@dataclass(frozen=True, slots=True)
class Final:
    """What is stored of one document in the end."""

    doc_id: str
    live: bool
    revision: int
    acl_revision: int
    acl: tuple[str, ...]
    sha256: str


def merged(files: Iterable[Path]) -> list[Event]:
    """Return the events of all processes by their begin."""
    lines = [line for path in files for line in path.read_text(encoding="utf-8").splitlines()]
    return sorted((Event.of_line(line) for line in lines), key=lambda item: (item.begin, item.process, item.number))


def counted(events: Iterable[Event]) -> Counter[str]:
    """Return how many operations of each kind ended in each way."""
    return Counter(f"{event.operation} {event.outcome}" for event in events)


def shares(events: Sequence[Event]) -> list[int]:
    """Return how many writes of each process, founders excepted, were decided; ascending."""
    done = Counter(event.process for event in events if event.operation in WRITES)
    return sorted(done[number] for number in {event.process for event in events} if number >= 0)
