"""Pieces planned on metadata alone, and then rendered from the verified body of their own document."""

from dataclasses import dataclass

from kbretrieval.context.canonical import utf8_bytes
from kbretrieval.context.rendering import preface
from kbretrieval.context.scope import Scope
from kbretrieval.context.selection import Piece
from kbretrieval.context.standing import Finding, Standing, document_finding
from kbretrieval.errors import ContextOutOfScope, IndexCorrupt
from kbretrieval.projection import digest
from kbretrieval.store.connection import Connection
from kbretrieval.store.documents import DocumentRow, document_by_key
from kbretrieval.store.extents import Sheet, extent_of


@dataclass(frozen=True, slots=True)
class Planned:
    """A piece that may be read: where it is, what stands before it, and how many bytes it will take."""

    doc_id: str
    start: int
    end: int
    sheet: Sheet
    preface: str
    bytes: int
    must: bool


def planned(connection: Connection, scope: Scope, now: Standing, piece: Piece, must: bool) -> Planned | Finding:
    """Return a piece with its size, which the database computes, or why it may not be read (CTX-22, CTX-23)."""
    finding = document_finding(scope, piece.doc_id, now)
    if finding is not None:
        return finding
    sheet = now.sheets[piece.doc_id]
    before = preface(scope.fields, sheet.title, sheet.uri, sheet.version)
    if "text" not in scope.fields:
        return Planned(piece.doc_id, 0, 0, sheet, before, utf8_bytes(before), must)
    extent = extent_of(connection, sheet.doc_key, piece.start, piece.end)
    end = extent.points if piece.end is None else piece.end
    if end > extent.points or piece.start >= max(1, extent.points):
        facts = f"a stretch of {extent.points} code points is required, {piece.start} to {end} given"
        return Finding(ContextOutOfScope, facts)
    size = utf8_bytes(before) + extent.stretch_bytes
    return Planned(piece.doc_id, piece.start, end, sheet, before, size, must)


def verified_document(connection: Connection, doc_key: int) -> DocumentRow:
    """Return a document whose body has its digest; another is `index_corrupt`."""
    document = document_by_key(connection, doc_key)
    if document is None or digest(document.body) != document.sha256:
        raise IndexCorrupt("a stored body does not have its digest")
    return document
