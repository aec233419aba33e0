"""Exploring: bounded reads of a bound document, with cursors that work nowhere else (CTX-24, CTX-26, CTX-27)."""

import re
from dataclasses import dataclass
from typing import ClassVar

from kbretrieval.chunking import Clusters
from kbretrieval.context.account import paid, reserved
from kbretrieval.context.authorization import stored_scope, usable
from kbretrieval.context.canonical import canonical_digest, utf8_bytes
from kbretrieval.context.material import verified_document
from kbretrieval.context.records import Spent
from kbretrieval.context.scope import Scope
from kbretrieval.context.selection import Piece
from kbretrieval.context.standing import document_finding, refuse
from kbretrieval.errors import ContextCursorInvalid, ContextFieldRemoved, ContextInputInvalid, ContextTooLarge
from kbretrieval.results import Exported
from kbretrieval.store.connection import Connection
from kbretrieval.store.extents import Sheet, extent_of

_CURSOR = re.compile(r"([0-9]{1,10})\.([0-9a-f]{32})")


@dataclass(frozen=True, slots=True)
class Fragment(Exported):
    """A stretch of a document that was read: `[start, end)` in code points of its projection.

    Where the call's limit cut it short, `has_more` is true, `next_cursor` goes on, and `omitted_reason` says why.
    """

    SCHEMA: ClassVar[str] = "kbretrieval.context.fragment/1"

    call: str
    doc_id: str
    revision: int
    document_sha256: str
    start: int
    end: int
    text: str
    has_more: bool
    next_cursor: str | None
    omitted_reason: str | None


def read(connection: Connection, given: Scope, piece: Piece, cursor: str | None) -> Fragment:
    """Return a stretch with an end whole or not at all, one without an end as far as one call goes."""
    with connection.read():
        scope = stored_scope(connection, given)
    call, (start, cost) = reserved(connection, scope, "read", lambda: _priced(connection, scope, piece, cursor))
    return paid(connection, call, cost, lambda: _fragment(connection, scope, call, piece, start))


def _bound_sheet(connection: Connection, scope: Scope, doc_id: str) -> Sheet:
    now = usable(connection, scope, [doc_id])
    refuse(document_finding(scope, doc_id, now))
    if "text" not in scope.fields:
        raise ContextFieldRemoved(f"the field text is required, {', '.join(scope.fields)} allowed for the role")
    return now.sheets[doc_id]


def _priced(connection: Connection, scope: Scope, piece: Piece, cursor: str | None) -> tuple[Spent, tuple[int, int]]:
    """Return the bytes that a read will take at most, and where it starts; only metadata is looked at."""
    sheet = _bound_sheet(connection, scope, piece.doc_id)
    start = piece.start if cursor is None else _position(scope, piece.doc_id, cursor)
    extent = extent_of(connection, sheet.doc_key, start, piece.end)
    end = extent.points if piece.end is None else piece.end
    if end > extent.points or start >= max(1, extent.points):
        raise ContextInputInvalid(f"a stretch of {extent.points} code points is required, {start} to {end} given")
    most = scope.budget.call_bytes
    least = extent if piece.end is not None else extent_of(connection, sheet.doc_key, start, start + 1)
    if least.stretch_bytes > most:
        raise ContextTooLarge(f"{least.stretch_bytes} bytes wanted, {most} allowed in one call")
    cost = min(extent.stretch_bytes, most)
    return Spent(cost, 0), (start, cost)


def _fragment(connection: Connection, scope: Scope, call: str, piece: Piece, start: int) -> Fragment:
    with connection.read():
        sheet = _bound_sheet(connection, scope, piece.doc_id)
        body = verified_document(connection, sheet.doc_key).body
    text = body[start : piece.end] if piece.end is not None else _opening(body[start:], scope.budget.call_bytes)
    end = start + len(text)
    more = piece.end is None and end < len(body)
    return Fragment(
        call=call,
        doc_id=piece.doc_id,
        revision=sheet.revision,
        document_sha256=sheet.sha256,
        start=start,
        end=end,
        text=text,
        has_more=more,
        next_cursor=_cursor(scope, piece.doc_id, end) if more else None,
        omitted_reason="call_bytes" if more else None,
    )


def _opening(text: str, most: int) -> str:
    """Return the longest opening of at most so many bytes that does not end inside a grapheme cluster.

    A cluster that alone has more is cut at a code point. The first code point fits: that was looked at before.
    """
    if utf8_bytes(text) <= most:
        return text
    window = text[: most + 1]
    cut = len(window.encode("utf-8")[:most].decode("utf-8", "ignore"))
    return text[: Clusters(window).back(cut) or cut]


def _seal(scope: Scope, doc_id: str, position: int) -> str:
    bound = scope.bound(doc_id)
    basis = bound.to_dict() if bound else None
    # Two scopes of the same content have the same digest: the name tells them apart.
    of = (scope.id, scope.task, scope.sha256, scope.policy_sha256, scope.fields)
    return canonical_digest([*of, basis, position])[:32]


def _cursor(scope: Scope, doc_id: str, position: int) -> str:
    return f"{position}.{_seal(scope, doc_id, position)}"


def _position(scope: Scope, doc_id: str, cursor: str) -> int:
    found = _CURSOR.fullmatch(cursor)
    if found is None or found[2] != _seal(scope, doc_id, int(found[1])):
        raise ContextCursorInvalid("a cursor of this task, scope, revision and projection is required, another given")
    return int(found[1])
