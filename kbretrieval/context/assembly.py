"""Assembling: must-read material whole or not at all, optional material as far as it fits (CTX-16…CTX-24)."""

from collections.abc import Sequence
from dataclasses import dataclass

from kbretrieval.context.account import input_left, paid, reserved
from kbretrieval.context.authorization import stored_scope, usable
from kbretrieval.context.canonical import utf8_bytes
from kbretrieval.context.material import Planned, planned, verified_document
from kbretrieval.context.package import Item, Omitted, Package
from kbretrieval.context.records import Spent
from kbretrieval.context.rendering import SEPARATOR, joined_text
from kbretrieval.context.scope import Scope
from kbretrieval.context.selection import Piece
from kbretrieval.context.standing import Finding, Standing, document_finding, refuse
from kbretrieval.errors import ContextBudgetExhausted, ContextMustReadMissing, ContextTooLarge
from kbretrieval.projection import digest
from kbretrieval.store.connection import Connection

Missing = tuple[int, str, str]


@dataclass(frozen=True, slots=True)
class _Plan:
    """What will be read, for how many bytes, and what stays out."""

    pieces: tuple[Planned, ...]
    omitted: tuple[Omitted, ...]
    bytes: int


def assemble(connection: Connection, given: Scope, must: Sequence[Piece], optional: Sequence[Piece]) -> Package:
    """Plan on metadata and pay in one transaction; load and render in the next, where everything is checked again."""
    with connection.read():
        scope = stored_scope(connection, given)
    call, plan = reserved(connection, scope, "assemble", lambda: _planned(connection, scope, must, optional))
    return paid(connection, call, plan.bytes, lambda: _package(connection, scope, call, plan))


def _planned(
    connection: Connection, scope: Scope, must: Sequence[Piece], optional: Sequence[Piece]
) -> tuple[Spent, _Plan]:
    now = usable(connection, scope, sorted({piece.doc_id for piece in (*must, *optional)}))
    taken: list[Planned] = []
    size, missing = _take_all(connection, scope, now, must, taken)
    if missing:
        codes = ", ".join(sorted({code for _, _, code in missing}))
        facts = f"{len(must)} must-read pieces given, {len(missing)} of them cannot enter ({codes})"
        raise ContextMustReadMissing(facts, tuple(missing))
    left = input_left(connection, scope)
    omitted = []
    for number, piece in enumerate(optional):
        found = planned(connection, scope, now, piece, must=False)
        code = found.code if isinstance(found, Finding) else None
        if isinstance(found, Planned):
            more = found.bytes + _joint(taken)
            code = _limit(scope, size + more, left)
            if code is None:
                taken.append(found)
                size += more
        if code is not None:
            omitted.append(Omitted(number, piece.doc_id, code))
    return Spent(size, 0), _Plan(tuple(taken), tuple(omitted), size)


def _take_all(
    connection: Connection, scope: Scope, now: Standing, must: Sequence[Piece], taken: list[Planned]
) -> tuple[int, list[Missing]]:
    """Take every must-read piece that may enter; return their bytes, and which cannot and why."""
    size, missing = 0, []
    for number, piece in enumerate(must):
        found = planned(connection, scope, now, piece, must=True)
        if isinstance(found, Finding):
            missing.append((number, piece.doc_id, found.code))
            continue
        more = found.bytes + _joint(taken)
        if size + more > scope.budget.input_bytes:
            missing.append((number, piece.doc_id, ContextTooLarge.code))
            continue
        taken.append(found)
        size += more
    return size, missing


def _joint(taken: Sequence[Planned]) -> int:
    return utf8_bytes(SEPARATOR) if taken else 0


def _limit(scope: Scope, size: int, left: int) -> str | None:
    if size > scope.budget.input_bytes:
        return ContextTooLarge.code
    return ContextBudgetExhausted.code if size > left else None


def _package(connection: Connection, scope: Scope, call: str, plan: _Plan) -> Package:
    with connection.read():
        return _read_package(connection, scope, call, plan)


def _read_package(connection: Connection, scope: Scope, call: str, plan: _Plan) -> Package:
    now = usable(connection, scope, sorted({piece.doc_id for piece in plan.pieces}))
    for doc_id in dict.fromkeys(piece.doc_id for piece in plan.pieces):
        refuse(document_finding(scope, doc_id, now))
    text, items = assembled(connection, scope, plan.pieces)
    return Package(scope.id, scope.sha256, call, text, utf8_bytes(text), items, plan.omitted)


def assembled(connection: Connection, scope: Scope, pieces: Sequence[Planned]) -> tuple[str, tuple[Item, ...]]:
    """Return the text of some pieces and their items, from the verified bodies of their own documents."""
    parts = _rendered(connection, pieces)
    text, intervals = joined_text(parts)
    items = tuple(
        _item(scope, number, piece, part, interval)
        for number, (piece, part, interval) in enumerate(zip(pieces, parts, intervals, strict=True))
    )
    return text, items


def _rendered(connection: Connection, pieces: Sequence[Planned]) -> list[str]:
    # Each body is read once, however many pieces of it are wanted.
    bodies = {key: verified_document(connection, key).body for key in sorted({p.sheet.doc_key for p in pieces})}
    return [piece.preface + bodies[piece.sheet.doc_key][piece.start : piece.end] for piece in pieces]


def _item(scope: Scope, number: int, piece: Planned, part: str, interval: tuple[int, int]) -> Item:
    start, end = interval
    return Item(
        number=number,
        doc_id=piece.doc_id,
        title=piece.sheet.title if "title" in scope.fields else None,
        revision=piece.sheet.revision,
        acl_revision=piece.sheet.acl_revision,
        document_sha256=piece.sheet.sha256,
        must=piece.must,
        source_start=piece.start,
        source_end=piece.end,
        start=start,
        end=end,
        text_start=start + len(piece.preface),
        text_end=start + len(part),
        bytes=utf8_bytes(part),
        sha256=digest(part),
    )
