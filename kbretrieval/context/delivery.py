"""Delivery: checked and marked as sent in one short transaction; and what was really used (CTX-45…CTX-47, CTX-50)."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from kbretrieval.context.account import attempted, check_left
from kbretrieval.context.canonical import utf8_bytes
from kbretrieval.context.dependencies import examined
from kbretrieval.context.records import Spent, insert_consumption, insert_delivery
from kbretrieval.context.scope import Scope
from kbretrieval.context.snapshots import Stored, own, stored_snapshot, text_of
from kbretrieval.context.vouchers import fits
from kbretrieval.errors import (
    ContextInputInvalid,
    ContextPayloadMismatch,
    ContextSnapshotDamaged,
    ContextTooLarge,
    KBError,
)
from kbretrieval.identity import Context
from kbretrieval.projection import digest
from kbretrieval.results import Exported
from kbretrieval.store.commits import current_commit
from kbretrieval.store.connection import Connection


@dataclass(frozen=True, slots=True)
class Payload:
    """What is to be sent: its text, its digest and size, and the output that it asks for; made before any lock."""

    text: str
    sha256: str
    bytes: int
    output_tokens: int


@dataclass(frozen=True, slots=True)
class Receipt(Exported):
    """A payload was checked and marked as sent at `commit`; a receipt is not an authorisation."""

    SCHEMA: ClassVar[str] = "kbretrieval.context.receipt/1"

    id: str
    call: str
    snapshot: str
    snapshot_sha256: str
    payload_sha256: str
    payload_bytes: int
    envelope_bytes: int
    commit: int


@dataclass(frozen=True, slots=True)
class Consumption(Exported):
    """Which fragments of a snapshot were used; `code` says why it could not have been delivered then, or is None."""

    SCHEMA: ClassVar[str] = "kbretrieval.context.consumption/1"

    id: str
    snapshot: str
    snapshot_sha256: str
    fragments: tuple[int, ...]
    deliverable: bool
    code: str | None
    commit: int


def checked_payload(text: object, output_tokens: object) -> Payload:
    """Return a payload with its digest, or raise `context_input_invalid`."""
    # A subclass may say of itself that it holds any text: what is sent, digested and looked at is exactly one value.
    if not fits(text, str):
        raise ContextInputInvalid(f"payload: text without lone surrogates is required, {type(text).__name__} given")
    if type(output_tokens) is not int or not 0 <= output_tokens < 2**31:
        raise ContextInputInvalid("output_tokens: an integer from 0 is required, another value given")
    made = str(text)
    return Payload(made, digest(made), utf8_bytes(made), output_tokens)


def deliver(connection: Connection, snapshot_id: object, context: Context, payload: Payload) -> Receipt:
    """Check and mark in one write transaction: a revocation commits before it and refuses it, or after it."""
    with connection.write():
        stored, scope = owned(connection, snapshot_id, context)
        outcome = attempted(connection, scope, "deliver", lambda: _sent(connection, stored, scope, context, payload))
    if isinstance(outcome, KBError):
        raise outcome
    call, (name, envelope, commit) = outcome
    return Receipt(name, call, stored.id, stored.row.sha256, payload.sha256, payload.bytes, envelope, commit)


def _sent(
    connection: Connection, stored: Stored, scope: Scope, context: Context, payload: Payload
) -> tuple[Spent, tuple[str, int, int]]:
    envelope = checked(connection, stored, scope, context, payload)
    cost = Spent(0, payload.output_tokens)
    check_left(connection, scope, cost)
    return cost, marked(connection, stored, payload, envelope)


def owned(connection: Connection, snapshot_id: object, context: Context) -> tuple[Stored, Scope]:
    """Return a sound snapshot of this caller and its scope; inside a transaction."""
    stored = stored_snapshot(connection, snapshot_id)
    own(stored, context)
    if stored.damaged:
        raise ContextSnapshotDamaged(f"{len(stored.parts)} parts stored, {len(stored.damaged)} of them damaged")
    return stored, stored.scope()


def checked(connection: Connection, stored: Stored, scope: Scope, context: Context, payload: Payload) -> int:
    """Return the bytes of the payload's envelope, or raise the first thing that forbids sending it."""
    refusal = examined(connection, stored, context, "write transaction").refusal()
    if refusal is not None:
        raise refusal
    text = text_of(stored) or ""
    forms = {text, *(json.dumps(text, ensure_ascii=plain)[1:-1] for plain in (False, True))}
    held = [form for form in forms if form in payload.text]
    if not held:
        raise ContextPayloadMismatch("the snapshot's text in one piece is required, another payload given")
    envelope = payload.bytes - max(utf8_bytes(form) for form in held)
    if envelope > scope.budget.envelope_bytes:
        raise ContextTooLarge(f"an envelope of {envelope} bytes given, {scope.budget.envelope_bytes} allowed")
    return envelope


def marked(connection: Connection, stored: Stored, payload: Payload, envelope: int) -> tuple[str, int, int]:
    """Write that a payload was sent; return the delivery's name, the envelope's bytes and the commit."""
    commit = current_commit(connection)
    return insert_delivery(connection, stored.row, payload.sha256, payload.bytes, commit), envelope, commit


def consume(connection: Connection, snapshot_id: object, context: Context, fragments: Sequence[int]) -> Consumption:
    """Write down which fragments were used, whether or not the snapshot could be delivered now."""
    with connection.write():
        stored, _ = owned(connection, snapshot_id, context)
        count = len(stored.items())
        if not isinstance(fragments, (tuple, list)) or any(type(n) is not int or not 0 <= n < count for n in fragments):
            raise ContextInputInvalid(f"fragments: numbers from 0 and below {count} are required, others given")
        used = tuple(sorted(set(fragments)))
        refusal = examined(connection, stored, context, "write transaction").refusal()
        code = refusal.code if refusal else None
        commit = current_commit(connection)
        name = insert_consumption(connection, stored.row, used, code or "", commit)
    return Consumption(name, stored.id, stored.row.sha256, used, code is None, code, commit)
