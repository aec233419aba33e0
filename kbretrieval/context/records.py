"""Rows that a task leaves behind: scopes, calls, snapshots with their parts, deliveries, consumptions."""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from kbretrieval.context.scope import Scope, scope_from
from kbretrieval.errors import ContextPolicyReauthRequired, ContextUnknown, IndexCorrupt
from kbretrieval.projection import digest
from kbretrieval.store.connection import Connection
from kbretrieval.store.documents import expect

_NAME = re.compile(r"(scope|snapshot|call)-([1-9][0-9]{0,17})")


def key_of(name: object, kind: str) -> int:
    """Return the key in a name such as `scope-7`; anything else is `context_unknown`.

    Example:
        >>> key_of("scope-7", "scope")
        7
    """
    found = _NAME.fullmatch(name) if isinstance(name, str) else None
    if found is None or found[1] != kind:
        raise ContextUnknown(f"the name of a stored {kind} is required, another value given")
    return int(found[2])


def insert_scope(connection: Connection, scope: Scope) -> str:
    """Store a sealed scope and return its name."""
    key = connection.insert(
        "INSERT INTO context_scopes (tenant, principal, sha256, body) VALUES (?, ?, ?, ?)",
        (scope.tenant, scope.principal, scope.sha256, scope.body()),
    )
    return f"scope-{key}"


def find_scope(connection: Connection, scope_id: object, owner: tuple[str, str] | None = None) -> Scope:
    """Return a stored scope, compared with its digest; of another tenant and principal than `owner` it is unknown.

    Raises `context_unknown`, `context_policy_reauth_required` for one of another structure, `index_corrupt`.
    """
    rows = connection.run(
        "SELECT tenant, principal, sha256, body FROM context_scopes WHERE scope_key = ?", (key_of(scope_id, "scope"),)
    )
    if not rows or owner not in (None, rows[0][:2]):
        raise ContextUnknown("the name of a stored scope is required, another value given")
    tenant, principal, sha256, body = expect(rows[0], (str, str, str, str), "scope")
    if digest(body) != sha256:
        raise IndexCorrupt("a stored scope does not have its digest")
    value = loaded(body, "scope")
    if not isinstance(value, dict):
        raise ContextPolicyReauthRequired(f"{Scope.SCHEMA} is required, another structure stored")
    scope = scope_from(str(scope_id), sha256, value)
    if (scope.tenant, scope.principal) != (tenant, principal):
        raise IndexCorrupt("a stored scope names another caller than its row")
    return scope


def loaded(text: str, what: str) -> Any:
    """Return the value of a stored JSON text; damage is `index_corrupt`."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise IndexCorrupt(f"a stored {what} is no JSON") from None


@dataclass(frozen=True, slots=True)
class Spent:
    """What a task has used so far: bytes that were read or refused, and output tokens that were asked for."""

    input_bytes: int
    output_tokens: int


def spent_by(connection: Connection, scope: Scope) -> Spent:
    """Return what the task of a scope has used, over all its scopes."""
    rows = connection.run(
        "SELECT coalesce(sum(input_bytes), 0), coalesce(sum(output_tokens), 0) FROM context_calls"
        " WHERE tenant = ? AND principal = ? AND task = ?",
        (scope.tenant, scope.principal, scope.task),
    )
    return Spent(*expect(rows[0], (int, int), "account"))


def insert_call(connection: Connection, scope: Scope, phase: str, cost: Spent, code: str = "") -> str:
    """Write one call of a task and return its name."""
    key = connection.insert(
        "INSERT INTO context_calls (tenant, principal, task, scope_id, phase, input_bytes, output_tokens, code)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        (
            *(scope.tenant, scope.principal, scope.task, scope.id, phase),
            *(cost.input_bytes, cost.output_tokens, code),
        ),
    )
    return f"call-{key}"


def settle_call(connection: Connection, call_id: str, input_bytes: int, code: str = "") -> None:
    """Write what a call really used, never more than it reserved, and how it ended."""
    connection.run(
        "UPDATE context_calls SET input_bytes = min(input_bytes, ?), code = ? WHERE call_key = ?",
        (input_bytes, code, key_of(call_id, "call")),
    )


def calls_of(connection: Connection, scope: Scope) -> list[tuple[str, str, str, int, int, str]]:
    """Return (name, scope, phase, bytes, tokens, code) of every call of a scope's task, in order."""
    rows = connection.run(
        "SELECT call_key, scope_id, phase, input_bytes, output_tokens, code FROM context_calls"
        " WHERE tenant = ? AND principal = ? AND task = ? ORDER BY call_key",
        (scope.tenant, scope.principal, scope.task),
    )
    return [(f"call-{row[0]}", *row[1:]) for row in rows]


@dataclass(frozen=True, slots=True)
class PartRow:
    """One stored part of a snapshot; `reason` says why its body is empty."""

    number: int
    kind: str
    doc_id: str
    bytes: int
    sha256: str
    body: str
    reason: str


@dataclass(frozen=True, slots=True)
class SnapshotRow:
    """The row of a snapshot."""

    snapshot_key: int
    tenant: str
    principal: str
    task: str
    purpose: str
    scope_id: str
    frozen_at: int
    sha256: str


_SNAPSHOT = "snapshot_key, tenant, principal, task, purpose, scope_id, frozen_at, sha256"
_SNAPSHOT_TYPES = (int, str, str, str, str, str, int, str)


def insert_snapshot(connection: Connection, scope: Scope, at: int, sha256: str, parts: Sequence[PartRow]) -> str:
    """Store a snapshot with all its parts and return its name; inside a write transaction."""
    key = connection.insert(
        "INSERT INTO context_snapshots (tenant, principal, task, purpose, scope_id, frozen_at, sha256)"
        " VALUES (?, ?, ?, ?, ?, ?, ?)",
        (scope.tenant, scope.principal, scope.task, scope.purpose, scope.id, at, sha256),
    )
    connection.run_many(
        "INSERT INTO context_parts VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        [(key, p.number, p.kind, scope.tenant, p.doc_id, p.bytes, p.sha256, p.body, p.reason) for p in parts],
    )
    return f"snapshot-{key}"


def find_snapshot(connection: Connection, snapshot_id: object) -> tuple[SnapshotRow, list[PartRow]]:
    """Return the row of a snapshot and its parts by number; raises `context_unknown`."""
    key = key_of(snapshot_id, "snapshot")
    rows = connection.run(f"SELECT {_SNAPSHOT} FROM context_snapshots WHERE snapshot_key = ?", (key,))
    if not rows:
        raise ContextUnknown("the name of a stored snapshot is required, another value given")
    row = SnapshotRow(*expect(rows[0], _SNAPSHOT_TYPES, "snapshot"))
    parts = connection.run(
        "SELECT number, kind, doc_id, bytes, sha256, body, reason, tenant FROM context_parts"
        " WHERE snapshot_key = ? ORDER BY number",
        (key,),
    )
    kinds = (int, str, str, int, str, str, str, str)
    # A part that is another tenant's is not read as this one's: it will be missing, and is found to be.
    return row, [PartRow(*expect(part, kinds, "part")[:7]) for part in parts if part[7] == row.tenant]


def snapshots_after(
    connection: Connection, who: tuple[str, str, str, str], after: int, limit: int
) -> list[tuple[SnapshotRow, int]]:
    """Return snapshots of (tenant, principal, task, purpose) with a key above `after`, and their fragments' bytes."""
    rows = connection.run(
        f"SELECT {_SNAPSHOT}, (SELECT coalesce(sum(p.bytes), 0) FROM context_parts p"
        " WHERE p.snapshot_key = s.snapshot_key AND p.kind = 'fragment') FROM context_snapshots s"
        " WHERE tenant = ? AND principal = ? AND task = ? AND purpose = ? AND snapshot_key > ?"
        " ORDER BY snapshot_key LIMIT ?",
        (*who, after, limit),
    )
    return [(SnapshotRow(*expect(row[:8], _SNAPSHOT_TYPES, "snapshot")), row[8]) for row in rows]


def insert_delivery(connection: Connection, row: SnapshotRow, payload_sha256: str, size: int, commit: int) -> str:
    """Mark a payload of a snapshot as sent, and return the delivery's name."""
    key = connection.insert(
        "INSERT INTO context_deliveries (snapshot_key, snapshot_sha256, payload_sha256, payload_bytes, commit_number)"
        " VALUES (?, ?, ?, ?, ?)",
        (row.snapshot_key, row.sha256, payload_sha256, size, commit),
    )
    return f"delivery-{key}"


def insert_consumption(
    connection: Connection, row: SnapshotRow, fragments: Sequence[int], code: str, commit: int
) -> str:
    """Write which fragments of a snapshot were used, and whether it could have been delivered then; return a name."""
    key = connection.insert(
        "INSERT INTO context_consumptions (snapshot_key, snapshot_sha256, fragments, code, commit_number)"
        " VALUES (?, ?, ?, ?, ?)",
        (row.snapshot_key, row.sha256, json.dumps(list(fragments)), code, commit),
    )
    return f"consumption-{key}"


def insert_publication(
    connection: Connection, row: SnapshotRow, collection: str, text: tuple[str, int], commit: int
) -> str:
    """Write that a text (digest, bytes) was published for a collection on the basis of a snapshot; return a name."""
    key = connection.insert(
        "INSERT INTO context_publications (snapshot_key, snapshot_sha256, collection, text_sha256, text_bytes,"
        " commit_number) VALUES (?, ?, ?, ?, ?, ?)",
        (row.snapshot_key, row.sha256, collection, *text, commit),
    )
    return f"publication-{key}"
