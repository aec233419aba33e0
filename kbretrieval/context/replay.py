"""Replaying a snapshot: the same bytes or an explicit reason; and would it hold for new work (CTX-35, CTX-36)."""

from dataclasses import dataclass
from typing import ClassVar

from kbretrieval.context.dependencies import Report, examined
from kbretrieval.context.package import Item
from kbretrieval.context.snapshots import Snapshot, own, stored_snapshot, text_of
from kbretrieval.errors import ContextSnapshotDamaged, SourcePurged
from kbretrieval.identity import Context
from kbretrieval.results import Exported
from kbretrieval.store.connection import Connection


@dataclass(frozen=True, slots=True)
class Replay(Exported):
    """Two answers. As history: `text`, or None with the `reason`. For new work: `valid_now`, and the codes against it.

    `text` is byte for byte what was assembled, titles and all, also after its documents have moved on.
    """

    SCHEMA: ClassVar[str] = "kbretrieval.context.replay/1"

    snapshot: str
    sha256: str
    text: str | None
    items: tuple[Item, ...]
    reason: str | None
    valid_now: bool
    codes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Inspected(Exported):
    """A snapshot and the present state of what it depends on, both of one moment (CTX-67)."""

    SCHEMA: ClassVar[str] = "kbretrieval.context.inspected/1"

    snapshot: Snapshot
    report: Report


def replay(connection: Connection, snapshot_id: object, context: Context) -> Replay:
    """Read a snapshot again as the context that asks now; the right to its sources is asked for anew."""
    with connection.read():
        stored = stored_snapshot(connection, snapshot_id)
        own(stored, context)
        report = examined(connection, stored, context, "read transaction")
        reasons = report.reading_codes
        # A purge is the answer to "where are the bytes", whatever else has happened to the documents.
        reason = SourcePurged.code if SourcePurged.code in reasons else next(iter(reasons), None)
        text = text_of(stored) if reason is None else None
        items = stored.items() if text is not None else ()
    return Replay(stored.id, stored.row.sha256, text, items, reason, report.valid, report.codes)


def check(connection: Connection, snapshot_id: object) -> Report:
    """Return what a snapshot depends on, checked in one read transaction."""
    with connection.read():
        return examined(connection, stored_snapshot(connection, snapshot_id), None, "read transaction")


def inspect(connection: Connection, snapshot_id: object, context: Context) -> Inspected:
    """Return a snapshot with its report; a damaged one is refused, since nothing it says can be believed."""
    with connection.read():
        stored = stored_snapshot(connection, snapshot_id)
        own(stored, context)
        report = examined(connection, stored, context, "read transaction")
        if stored.damaged:
            raise ContextSnapshotDamaged(f"{len(stored.parts)} parts stored, {len(stored.damaged)} of them damaged")
        return Inspected(stored.shown(), report)
