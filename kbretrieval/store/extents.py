"""What is known of documents without loading their text: order, standing, and sizes, computed by the database."""

import json
from collections.abc import Sequence
from dataclasses import dataclass

from kbretrieval.errors import IndexCorrupt
from kbretrieval.identity import Context
from kbretrieval.store.connection import Connection
from kbretrieval.store.documents import expect

_WHOLE = 2**31 - 1  # more code points than any projection has; SQLite's substr() takes 32 bits


@dataclass(frozen=True, slots=True)
class Sheet:
    """A document without its text; `readable` tells whether the context that asked may read it now."""

    doc_key: int
    doc_id: str
    revision: int
    acl_revision: int
    live: bool
    title: str
    sha256: str
    uri: str
    version: str
    content_commit: int
    acl_commit: int
    readable: bool


def sheets_of(connection: Connection, context: Context, doc_ids: Sequence[str]) -> dict[str, Sheet]:
    """Return name → sheet for those of the documents that have a row in the context's tenant, tombstones included."""
    rows = connection.run(
        "SELECT d.doc_key, d.doc_id, d.revision, d.acl_revision, d.live, d.title, d.sha256,"
        " coalesce(json_extract(d.provenance, '$.uri'), ''), coalesce(json_extract(d.provenance, '$.version'), ''),"
        " d.content_commit, d.acl_commit, d.live = 1 AND EXISTS (SELECT 1 FROM acl a WHERE a.doc_key = d.doc_key"
        " AND a.entry IN (SELECT value FROM json_each(?)))"
        " FROM json_each(?) wanted CROSS JOIN documents d ON d.tenant = ? AND d.doc_id = wanted.value",
        (_dumped(context.entries()), _dumped(doc_ids), context.tenant),
    )
    kinds = (int, str, int, int, int, str, str, str, str, int, int, int)
    made = {}
    for row in rows:
        *facts, readable = expect(row, kinds, "document")
        facts[4], readable = facts[4] == 1, readable == 1
        made[row[1]] = Sheet(*(*facts, readable))
    return made


def _dumped(values: Sequence[str]) -> str:
    return json.dumps(list(values), ensure_ascii=False)


@dataclass(frozen=True, slots=True)
class Extent:
    """How long a body is, and how many UTF-8 bytes a stretch of it has."""

    points: int
    stretch_bytes: int


def extent_of(connection: Connection, doc_key: int, start: int, end: int | None) -> Extent:
    """Return a body's length in code points, and the bytes of its stretch `[start, end)`, None being its end.

    The text stays in the database. Raises `index_corrupt` where there is no such document.
    """
    length = _WHOLE if end is None else max(0, end - start)
    rows = connection.run(
        "SELECT length(body), length(CAST(substr(body, ?, ?) AS BLOB)) FROM documents WHERE doc_key = ?",
        (start + 1, length, doc_key),
    )
    if not rows:
        raise IndexCorrupt("a document that was just there is missing")
    points, size = expect(rows[0], (int, int), "document")
    return Extent(points, size)
