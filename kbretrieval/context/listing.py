"""Listing the snapshots of a task: bounded pages of summaries, with a cursor bound to task and purpose (CTX-66)."""

import re
from dataclasses import dataclass
from typing import ClassVar

from kbretrieval.context.canonical import canonical_digest
from kbretrieval.context.records import snapshots_after
from kbretrieval.errors import ContextCursorInvalid, ContextInputInvalid
from kbretrieval.identity import Context
from kbretrieval.results import Exported
from kbretrieval.store.connection import Connection

DEFAULT_ROWS = 20
MAX_ROWS = 100

_CURSOR = re.compile(r"([1-9][0-9]{0,17})\.([0-9a-f]{32})")


@dataclass(frozen=True, slots=True)
class Summary(Exported):
    """A snapshot in a list: no text, no title, no document."""

    SCHEMA: ClassVar[str] = "kbretrieval.context.summary/1"

    id: str
    sha256: str
    scope: str
    frozen_at: int
    bytes: int


@dataclass(frozen=True, slots=True)
class Listing(Exported):
    """A page of summaries in the order in which they were frozen; `next_cursor` is None on the last page."""

    SCHEMA: ClassVar[str] = "kbretrieval.context.listing/1"

    task: str
    purpose: str
    rows: tuple[Summary, ...]
    has_more: bool
    next_cursor: str | None


def snapshots(
    connection: Connection, context: Context, task: str, purpose: str, limit: object, cursor: object
) -> Listing:
    """Return a page of the snapshots that this caller froze for a task and purpose."""
    if type(limit) is not int or not 1 <= limit <= MAX_ROWS:
        raise ContextInputInvalid(f"limit: an integer from 1 to {MAX_ROWS} is required, another given")
    who = (context.tenant, context.principal, task, purpose)
    after = _position(who, cursor)
    with connection.read():
        found = snapshots_after(connection, who, after, limit + 1)
    rows = tuple(
        Summary(f"snapshot-{row.snapshot_key}", row.sha256, row.scope_id, row.frozen_at, size)
        for row, size in found[:limit]
    )
    more = len(found) > limit
    last = found[limit - 1][0].snapshot_key if more else 0
    return Listing(task, purpose, rows, more, f"{last}.{_seal(who, last)}" if more else None)


def _seal(who: tuple[str, str, str, str], key: int) -> str:
    return canonical_digest(["snapshots", *who, key])[:32]


def _position(who: tuple[str, str, str, str], cursor: object) -> int:
    if cursor is None:
        return 0
    found = _CURSOR.fullmatch(cursor) if isinstance(cursor, str) else None
    if found is None or found[2] != _seal(who, int(found[1])):
        raise ContextCursorInvalid("a cursor of this task and purpose is required, another given")
    return int(found[1])
