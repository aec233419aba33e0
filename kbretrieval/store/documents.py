"""Document rows: identity, order, policy and text, in and out."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from kbretrieval.errors import IndexCorrupt
from kbretrieval.identity import MAX_REVISION, Provenance
from kbretrieval.projection import Heading, Projection
from kbretrieval.store.connection import Connection, Row

_COLUMNS = (
    "doc_key, tenant, doc_id, revision, acl_revision, live, format, title, body, headings, sha256, source_sha256,"
    " provenance, content_commit, acl_commit"
)
_TYPES = (int, str, str, int, int, int, str, str, str, str, str, str, str, int, int)


@dataclass(frozen=True, slots=True)
class DocumentRow:
    """One stored document, live or tombstone."""

    doc_key: int
    tenant: str
    doc_id: str
    revision: int
    acl_revision: int
    live: bool
    format: str
    title: str
    body: str
    headings: tuple[Heading, ...]
    sha256: str
    source_sha256: str
    provenance: Provenance | None
    content_commit: int
    acl_commit: int

    def projection(self) -> Projection:
        """Return the projection that the row was made from, to be cut anew; controls are not counted again."""
        return Projection(self.title, self.body, self.headings, self.sha256, self.source_sha256, controls=0)


def expect(row: Row, types: Sequence[type], what: str) -> Row:
    """Return the row if each value has its column's type, else raise `index_corrupt`: a flipped bit can change it."""
    if tuple(map(type, row)) != tuple(types):
        raise IndexCorrupt(f"a stored {what} has a value of another type than its column")
    return row


def _loaded(text: str, what: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise IndexCorrupt(f"the stored {what} is no JSON") from None


def _headings(text: str) -> tuple[Heading, ...]:
    try:
        return tuple(Heading(int(start), int(level), str(name)) for start, level, name in _loaded(text, "headings"))
    except (TypeError, ValueError):
        raise IndexCorrupt("the stored headings have another shape") from None


def _provenance(text: str) -> Provenance | None:
    value = _loaded(text, "provenance")
    if value is None:
        return None
    try:
        return Provenance(**value)
    except (TypeError, ValueError):
        raise IndexCorrupt("the stored provenance has another shape") from None


def _document(row: Row) -> DocumentRow:
    values = expect(row, _TYPES, "document")
    revision, acl_revision, live = values[3:6]
    if live not in (0, 1) or not 1 <= revision <= MAX_REVISION or not 1 <= acl_revision <= MAX_REVISION:
        raise IndexCorrupt("a stored document has a revision or state out of range")
    fields = [*values[:5], live == 1, *values[6:9], _headings(values[9]), *values[10:12], _provenance(values[12])]
    return DocumentRow(*fields, *values[13:])


def find_document(connection: Connection, tenant: str, doc_id: str) -> DocumentRow | None:
    """Return the row of a document, or None."""
    rows = connection.run(f"SELECT {_COLUMNS} FROM documents WHERE tenant = ? AND doc_id = ?", (tenant, doc_id))
    return _document(rows[0]) if rows else None


def documents_of(connection: Connection, tenant: str) -> Iterator[DocumentRow]:
    """Yield every row of a tenant, tombstones included, by doc_id; one body at a time. Inside one transaction."""
    for (key,) in connection.run("SELECT doc_key FROM documents WHERE tenant = ? ORDER BY doc_id", (tenant,)):
        row = document_by_key(connection, key)
        if row is not None:
            yield row


def names_at(connection: Connection, tenant: str, tails: Sequence[str]) -> list[str]:
    """Return the names of a tenant's documents that are one of `tails`, else those whose file was read at one of them.

    A document with a name of its own in its file has the place and that name as its provenance, joined by `#` (SYN-1).
    """
    of_that_name = "WHERE d.doc_id IN (SELECT value FROM json_each(?)) AND d.tenant = ?"
    at_that_place = (
        "CROSS JOIN json_each(?) tail WHERE d.tenant = ?"
        " AND json_extract(d.provenance, '$.uri') = tail.value || '#' || d.doc_id"
    )
    for condition in (of_that_name, at_that_place):
        rows = connection.run(
            f"SELECT DISTINCT d.doc_id FROM documents d {condition} ORDER BY 1", (_dumped(list(tails)), tenant)
        )
        if rows:
            return [expect(row, (str,), "document")[0] for row in rows]
    return []


def document_keys(connection: Connection) -> list[int]:
    """Return every document key of the store, ascending."""
    return [key for (key,) in connection.run("SELECT doc_key FROM documents ORDER BY doc_key")]


def document_by_key(connection: Connection, doc_key: int) -> DocumentRow | None:
    """Return the row with this key, or None."""
    rows = connection.run(f"SELECT {_COLUMNS} FROM documents WHERE doc_key = ?", (doc_key,))
    return _document(rows[0]) if rows else None


def acl_of(connection: Connection, doc_key: int) -> tuple[str, ...]:
    """Return the stored ACL entries of a document in their order."""
    rows = connection.run("SELECT entry FROM acl WHERE doc_key = ? ORDER BY position", (doc_key,))
    return tuple(expect(row, (str,), "ACL entry")[0] for row in rows)


def write_acl(connection: Connection, doc_key: int, entries: Sequence[str]) -> None:
    """Replace the ACL entries of a document."""
    connection.run("DELETE FROM acl WHERE doc_key = ?", (doc_key,))
    connection.run_many("INSERT INTO acl VALUES (?, ?, ?)", [(doc_key, n, entry) for n, entry in enumerate(entries)])


@dataclass(frozen=True, slots=True)
class Content:
    """What a content event stores in a document row."""

    format: str
    projection: Projection
    provenance: Provenance | None

    def columns(self) -> tuple[str, str, str, str, str, str, str]:
        """Return the values for format, title, body, headings, sha256, source_sha256 and provenance."""
        headings = [[heading.start, heading.level, heading.text] for heading in self.projection.headings]
        made = self.projection
        return (
            self.format,
            made.title,
            made.body,
            _dumped(headings),
            made.sha256,
            made.source_sha256,
            _dumped(self.provenance.to_dict() if self.provenance else None),
        )


def _dumped(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def insert_document(
    connection: Connection, tenant: str, doc_id: str, revision: int, content: Content, commit: int
) -> int:
    """Insert a live document with ACL revision 1 and return its key."""
    values = (tenant, doc_id, revision, *content.columns(), commit, commit)
    return connection.insert(
        "INSERT INTO documents (tenant, doc_id, revision, acl_revision, live, format, title, body, headings, sha256,"
        " source_sha256, provenance, content_commit, acl_commit) VALUES (?, ?, ?, 1, 1, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        values,
    )


def insert_tombstone(connection: Connection, tenant: str, doc_id: str, revision: int, commit: int) -> int:
    """Insert a tombstone for a document that was never seen (DEL-6) and return its key."""
    return connection.insert(
        "INSERT INTO documents (tenant, doc_id, revision, acl_revision, live, format, title, body, headings, sha256,"
        " source_sha256, provenance, content_commit, acl_commit)"
        " VALUES (?, ?, ?, 1, 0, '', '', '', '[]', '', '', 'null', ?, ?)",
        (tenant, doc_id, revision, commit, commit),
    )


def update_content(connection: Connection, doc_key: int, revision: int, content: Content, commit: int) -> None:
    """Store a newer content of a live document; its ACL stays (UPD-3)."""
    connection.run(
        "UPDATE documents SET live = 1, revision = ?, format = ?, title = ?, body = ?, headings = ?, sha256 = ?,"
        " source_sha256 = ?, provenance = ?, content_commit = ? WHERE doc_key = ?",
        (revision, *content.columns(), commit, doc_key),
    )


def update_acl_revision(connection: Connection, doc_key: int, acl_revision: int, commit: int) -> None:
    """Store the policy order of a document."""
    connection.run(
        "UPDATE documents SET acl_revision = ?, acl_commit = ? WHERE doc_key = ?", (acl_revision, commit, doc_key)
    )


def bury_document(connection: Connection, doc_key: int, revision: int, commit: int) -> None:
    """Turn a live document into a tombstone that keeps identity, title, digests and revision (DEL-2)."""
    connection.run(
        "UPDATE documents SET live = 0, revision = ?, body = '', headings = '[]', provenance = 'null',"
        " content_commit = ? WHERE doc_key = ?",
        (revision, commit, doc_key),
    )


def move_tombstone(connection: Connection, doc_key: int, revision: int) -> None:
    """Raise a tombstone's revision and nothing else (DEL-1)."""
    connection.run("UPDATE documents SET revision = ? WHERE doc_key = ?", (revision, doc_key))


def blank_tombstones(connection: Connection) -> int:
    """Empty the titles of all tombstones and return how many were not empty (DEL-5)."""
    (count,) = connection.run("SELECT count(*) FROM documents WHERE live = 0 AND title <> ''")[0]
    connection.run("UPDATE documents SET title = '' WHERE live = 0 AND title <> ''")
    return int(count)


def touch_content(connection: Connection, doc_key: int, commit: int) -> None:
    """Give a document's content a new commit, so that every snapshot reads its derived rows again."""
    connection.run("UPDATE documents SET content_commit = ? WHERE doc_key = ?", (commit, doc_key))
