"""Frozen packages: what they hold, their one hash, and how a stored one is read and verified (CTX-32)."""

from collections.abc import Sequence, Set
from dataclasses import dataclass
from typing import Any, ClassVar

from kbretrieval.context.canonical import canonical, canonical_digest, utf8_bytes
from kbretrieval.context.package import Item
from kbretrieval.context.records import PartRow, SnapshotRow, find_snapshot, loaded
from kbretrieval.context.rendering import joined_text
from kbretrieval.context.scope import Bound, Scope, scope_from
from kbretrieval.errors import ContextPolicyReauthRequired, ContextSchemaUnsupported, ContextUnknown, IndexCorrupt
from kbretrieval.identity import Context
from kbretrieval.projection import digest
from kbretrieval.results import Exported
from kbretrieval.store.connection import Connection
from kbretrieval.store.fragments import FRAGMENT, PURGED

_NAMED = ("tenant", "principal", "task", "purpose", "scope", "frozen_at")
_HEADER = {"schema", *_NAMED, "scope_sha256"}
PLAIN_PARTS = ("header", "scope", "sources", "structure", "projection")


@dataclass(frozen=True, slots=True)
class Part(Exported):
    """One stored part: a JSON text, or the fragment of one item. `sha256` and `bytes` outlive a purge."""

    SCHEMA: ClassVar[str] = "kbretrieval.context.part/1"

    number: int
    kind: str
    doc_id: str
    bytes: int
    sha256: str


@dataclass(frozen=True, slots=True)
class Snapshot(Exported):
    """A frozen package without its text: `sha256` covers every part, `sources` are the documents that it used.

    `items` have no titles: a title belongs to the fragment, so that a purge takes it away with the text.
    """

    SCHEMA: ClassVar[str] = "kbretrieval.context.snapshot/1"

    id: str
    sha256: str
    tenant: str
    principal: str
    task: str
    purpose: str
    scope: str
    frozen_at: int
    sources: tuple[Bound, ...]
    items: tuple[Item, ...]
    projection: str
    parts: tuple[Part, ...]


@dataclass(frozen=True, slots=True)
class Stored:
    """A snapshot as it stands in the file: what can be read of it, and the names of what does not have its digest."""

    row: SnapshotRow
    parts: tuple[PartRow, ...]
    damaged: tuple[str, ...]
    purged: bool

    @property
    def id(self) -> str:
        """The snapshot's name."""
        return f"snapshot-{self.row.snapshot_key}"

    def value(self, kind: str) -> Any:
        """Return the value of a JSON part that has its digest."""
        return loaded(next(part.body for part in self.parts if part.kind == kind), "part of a snapshot")

    def scope(self) -> Scope:
        """Return the scope as it was frozen with the snapshot."""
        return scope_from(self.row.scope_id, self.value("header")["scope_sha256"], self.value("scope"))

    def items(self) -> tuple[Item, ...]:
        """Return the items, without titles."""
        return tuple(Item(**{n: v for n, v in item.items() if n != "schema"}) for item in self.value("structure"))

    def fragments(self) -> list[str]:
        """Return the fragment of each item, in order."""
        return [part.body for part in self.parts if part.kind == FRAGMENT]

    def shown(self) -> Snapshot:
        """Return the snapshot as callers see it."""
        row = self.row
        used = {item["doc_id"] for item in self.value("sources")}
        sources = tuple(bound for bound in self.scope().documents if bound.doc_id in used)
        return Snapshot(
            *(self.id, row.sha256, row.tenant, row.principal, row.task, row.purpose, row.scope_id, row.frozen_at),
            sources=sources,
            items=self.items(),
            projection=self.value("projection")["version"],
            parts=tuple(Part(p.number, p.kind, p.doc_id, p.bytes, p.sha256) for p in self.parts),
        )


def json_part(number: int, kind: str, value: Any) -> PartRow:
    """Return a part that holds a value as canonical JSON."""
    return _part(number, kind, "", canonical(value))


def fragment_part(number: int, doc_id: str, text: str) -> PartRow:
    """Return the part of one item's text."""
    return _part(number, FRAGMENT, doc_id, text)


def _part(number: int, kind: str, doc_id: str, body: str) -> PartRow:
    return PartRow(number, kind, doc_id, utf8_bytes(body), digest(body), body, "")


def snapshot_hash(parts: Sequence[PartRow]) -> str:
    """Return the hash of a snapshot: of the number, kind, document, bytes and digest of every part, in order."""
    return canonical_digest([[part.number, part.kind, part.doc_id, part.bytes, part.sha256] for part in parts])


def header_of(scope: Scope, frozen_at: int) -> dict[str, Any]:
    """Return what the header part says: whose snapshot this is, for what, and of which scope."""
    return {
        "schema": Snapshot.SCHEMA,
        "tenant": scope.tenant,
        "principal": scope.principal,
        "task": scope.task,
        "purpose": scope.purpose,
        "scope": scope.id,
        "scope_sha256": scope.sha256,
        "frozen_at": frozen_at,
    }


def stored_snapshot(connection: Connection, snapshot_id: object) -> Stored:
    """Read a snapshot and verify each part by itself; inside a transaction.

    Raises `context_unknown`, and `context_schema_unsupported` for a sound one of another schema version (CTX-31).
    """
    row, parts = find_snapshot(connection, snapshot_id)
    damaged = [f"{part.kind} {part.number}" for part in parts if not _is_sound(part)]
    if snapshot_hash(parts) != row.sha256 or tuple(part.kind for part in parts[:5]) != PLAIN_PARTS:
        damaged.append("hash")
    purged = any(part.reason == PURGED for part in parts)
    made = Stored(row, tuple(parts), tuple(damaged), purged)
    if damaged:
        return made
    header = made.value("header")
    if not isinstance(header, dict) or header.keys() != _HEADER:
        return Stored(row, tuple(parts), ("header 0",), purged)
    if header["schema"] != Snapshot.SCHEMA:
        raise ContextSchemaUnsupported(f"{Snapshot.SCHEMA} is required, {str(header['schema'])[:60]} stored")
    named = (row.tenant, row.principal, row.task, row.purpose, row.scope_id, row.frozen_at)
    if named != tuple(header[name] for name in _NAMED):
        return Stored(row, tuple(parts), ("row",), purged)
    return made if _agrees(made) else Stored(row, tuple(parts), ("structure",), purged)


def _agrees(stored: Stored) -> bool:
    """Tell whether the parts say the same of each other, so that one exchanged together with its digest is found.

    Fragments are those of the items, one each; the scope has the digest that the header names; sources are what it
    binds of the documents used. What one part alone says (`must`, the projection) only the snapshot's hash vouches for.
    """
    try:
        items = stored.items()
        fragments = [(part.doc_id, part.bytes, part.sha256) for part in stored.parts[len(PLAIN_PARTS) :]]
        same = fragments == [(item.doc_id, item.bytes, item.sha256) for item in items]
        whole = stored.purged or text_of(stored) is not None
        return same and whole and _scope_agrees(stored, {item.doc_id for item in items})
    except (KeyError, TypeError, AttributeError, IndexCorrupt):
        return False


def _scope_agrees(stored: Stored, used: Set[str]) -> bool:
    try:
        scope = stored.scope()
    except ContextPolicyReauthRequired:
        return True  # of another structure: that has a name of its own, and who uses the scope is told
    bound = [item.to_dict() for item in scope.documents if item.doc_id in used]
    return scope.sealed().sha256 == scope.sha256 and bound == stored.value("sources")


def _is_sound(part: PartRow) -> bool:
    if part.kind == FRAGMENT and part.reason == PURGED:
        return part.body == ""
    return part.reason == "" and digest(part.body) == part.sha256 and utf8_bytes(part.body) == part.bytes


def own(stored: Stored, context: Context) -> None:
    """Raise `context_unknown` unless the snapshot is this caller's: another's looks like one that does not exist."""
    if (stored.row.tenant, stored.row.principal) != (context.tenant, context.principal):
        raise ContextUnknown("the name of a stored snapshot is required, another value given")


def text_of(stored: Stored) -> str | None:
    """Return the assembled text of a sound snapshot, None where its fragments do not make the intervals frozen."""
    text, intervals = joined_text(stored.fragments())
    return text if intervals == tuple((item.start, item.end) for item in stored.items()) else None
