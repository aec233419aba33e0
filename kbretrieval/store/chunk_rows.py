"""Derived rows of a chunk: text and coordinates, posting list, vector, FTS5 row; in and out."""

import json
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from kbretrieval.analysis import term_codes
from kbretrieval.chunking import Chunk
from kbretrieval.errors import IndexCorrupt
from kbretrieval.identity import Context
from kbretrieval.store.connection import Connection, Row
from kbretrieval.store.documents import expect
from kbretrieval.store.fts import fts_text
from kbretrieval.store.schema import FTS_REMAINS, PAST, SERVING, STAGED, STAGED_DOCUMENTS, Tables
from kbretrieval.store.vector_rows import StoredVector

CODE = np.dtype("<i8")
COUNT = np.dtype("<u2")

_COLUMNS = "chunk_key, doc_key, number, start_point, end_point, text, heading, heading_path, sha256"
_TYPES = (int, int, int, int, int, str, str, str, str)


@dataclass(frozen=True, slots=True)
class ChunkRow:
    """One stored chunk; coordinates in code points of its document's body."""

    chunk_key: int
    doc_key: int
    number: int
    start: int
    end: int
    text: str
    heading: str
    heading_path: tuple[str, ...]
    sha256: str


@dataclass(frozen=True, slots=True)
class PreparedChunk:
    """A chunk with everything derived from it, ready to be written."""

    chunk: Chunk
    terms: Sequence[str]
    vector: StoredVector | None


def posting_blobs(terms: Sequence[str]) -> tuple[int, bytes, bytes]:
    """Return a chunk's length in terms, its term codes (ascending int64) and their counts (uint16), little-endian.

    Example:
        >>> length, codes, counts = posting_blobs(["退款", "政策", "退款"])
        >>> length, len(codes), list(counts)
        (3, 16, [1, 0, 2, 0])
    """
    ordered = np.sort(term_codes(terms))
    starts = np.flatnonzero(np.diff(ordered, prepend=-1))  # codes are positive, so the first one differs from -1
    codes, counts = ordered[starts], np.diff(starts, append=len(ordered))
    if counts.size and counts.max() > np.iinfo(COUNT).max:
        raise IndexCorrupt(f"a term count of at most {np.iinfo(COUNT).max} is expected, {counts.max()} found")
    return len(terms), codes.astype(CODE).tobytes(), counts.astype(COUNT).tobytes()


def insert_chunks(
    connection: Connection, doc_key: int, prepared: Sequence[PreparedChunk], tables: Tables = SERVING
) -> None:
    """Write the derived rows of a document; inside the transaction that writes its text.

    Keys go on from the highest that was ever given, in whichever generation (CHK-5).
    """
    keyed = list(enumerate(prepared, _last_key(connection) + 1))
    connection.run_many(
        f"INSERT INTO {tables.chunks} VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        [(key, doc_key, *_chunk_columns(item.chunk)) for key, item in keyed],
    )
    connection.run_many(
        f"INSERT INTO {tables.postings} VALUES (?, ?, ?, ?)", [(k, *posting_blobs(i.terms)) for k, i in keyed]
    )
    connection.run_many(
        f"INSERT INTO {tables.fts} (rowid, terms) VALUES (?, ?)", [(key, fts_text(item.terms)) for key, item in keyed]
    )
    vectors = [(key, item.vector) for key, item in keyed if item.vector is not None]
    connection.run_many(
        f"INSERT INTO {tables.vectors} VALUES (?, ?, ?, ?)",
        [(key, v.text_sha256, int(v.truncated), v.blob) for key, v in vectors],
    )
    connection.run_many(
        f"INSERT INTO {tables.vector_codes} VALUES (?, ?, ?, ?)",
        [(key, v.codes, v.residual, v.norm) for key, v in vectors],
    )
    if tables != SERVING and keyed:
        _give_up_to(connection, keyed[-1][0])


def _last_key(connection: Connection) -> int:
    # SQLite keeps it for an AUTOINCREMENT table; rows of a generation that is being filled raise it by hand.
    rows = connection.run("SELECT seq FROM sqlite_sequence WHERE name = ?", (SERVING.chunks,))
    return int(rows[0][0]) if rows else 0


def _give_up_to(connection: Connection, key: int) -> None:
    connection.run("DELETE FROM sqlite_sequence WHERE name = ?", (SERVING.chunks,))
    connection.run("INSERT INTO sqlite_sequence (name, seq) VALUES (?, ?)", (SERVING.chunks, key))


def _chunk_columns(chunk: Chunk) -> tuple[int, int, int, str, str, str, str]:
    path = json.dumps(chunk.heading_path, ensure_ascii=False, separators=(",", ":"))
    return chunk.number, chunk.start, chunk.end, chunk.text, chunk.heading, path, chunk.sha256


def is_staging(connection: Connection) -> bool:
    """Tell whether a migration has begun to fill another generation; its rows may be left over from a dead one."""
    return bool(connection.run("SELECT 1 FROM sqlite_schema WHERE name = ?", (STAGED_DOCUMENTS,)))


def delete_chunks(connection: Connection, doc_key: int) -> None:
    """Remove every derived row of a document, in a generation that is being filled or dropped, too.

    So no text waits there that was replaced or deleted, and a migration sees that it has to do the document again.
    """
    there = table_names(connection)
    if FTS_REMAINS["content"] in there:
        mine = f"SELECT chunk_key FROM {PAST.chunks} WHERE doc_key = ?"
        connection.run(f"DELETE FROM {FTS_REMAINS['content']} WHERE id IN ({mine})", (doc_key,))
    for tables in (SERVING, STAGED, PAST):
        _delete_rows(connection, doc_key, tables, there)
    if STAGED_DOCUMENTS in there:
        _forget_staged(connection, doc_key)


def delete_staged(connection: Connection, doc_key: int) -> None:
    """Remove the rows of a document from the generation that is being filled."""
    _delete_rows(connection, doc_key, STAGED, frozenset(STAGED.names()))
    _forget_staged(connection, doc_key)


def _forget_staged(connection: Connection, doc_key: int) -> None:
    connection.run(f"DELETE FROM {STAGED_DOCUMENTS} WHERE doc_key = ?", (doc_key,))


def table_names(connection: Connection) -> frozenset[str]:
    """Return the names of all tables that there are."""
    return frozenset(name for (name,) in connection.run("SELECT name FROM sqlite_schema WHERE type = 'table'"))


def _delete_rows(connection: Connection, doc_key: int, tables: Tables, there: frozenset[str]) -> None:
    mine = f"(SELECT chunk_key FROM {tables.chunks} WHERE doc_key = ?)"
    for table in tables.names():  # chunks come last, and are dropped last
        key = "rowid" if table == tables.fts else "chunk_key"
        condition = "doc_key = ?" if table == tables.chunks else f"{key} IN {mine}"
        if table in there:
            connection.run(f"DELETE FROM {table} WHERE {condition}", (doc_key,))


def _chunk(row: Row) -> ChunkRow:
    values = expect(row, _TYPES, "chunk")
    try:
        path = tuple(str(part) for part in json.loads(values[7]))
    except (ValueError, TypeError, RecursionError):
        raise IndexCorrupt("a stored heading path has another shape") from None
    return ChunkRow(*[*values[:7], path, values[8]])


def find_chunk(connection: Connection, chunk_key: int) -> ChunkRow | None:
    """Return the chunk with this key, or None."""
    rows = connection.run(f"SELECT {_COLUMNS} FROM chunks WHERE chunk_key = ?", (chunk_key,))
    return _chunk(rows[0]) if rows else None


def chunks_of(connection: Connection, doc_key: int) -> list[ChunkRow]:
    """Return the chunks of a document by their number."""
    rows = connection.run(f"SELECT {_COLUMNS} FROM chunks WHERE doc_key = ? ORDER BY number, chunk_key", (doc_key,))
    return [_chunk(row) for row in rows]


@dataclass(frozen=True, slots=True)
class Found:
    """What a hit shows of a chunk and its document."""

    chunk: ChunkRow
    doc_id: str
    revision: int
    acl_revision: int
    document_sha256: str
    title: str


def found_chunks(connection: Connection, context: Context, keys: Sequence[int]) -> dict[int, Found]:
    """Return chunk key → what a hit shows, for live documents that `context` may read.

    The channels have sorted out all others already; here it is asked once more, in the transaction that reads the text.
    """
    columns = ", ".join(f"c.{name.strip()}" for name in _COLUMNS.split(","))
    rows = connection.run(
        f"SELECT {columns}, d.doc_id, d.revision, d.acl_revision, d.sha256, d.title"
        # CROSS JOIN fixes the order: from the wanted keys, never through what else the tenant has.
        " FROM json_each(?) wanted CROSS JOIN chunks c ON c.chunk_key = wanted.value"
        " CROSS JOIN documents d ON d.doc_key = c.doc_key WHERE d.tenant = ? AND d.live = 1"
        " AND EXISTS (SELECT 1 FROM acl a WHERE a.doc_key = d.doc_key AND a.entry IN (SELECT value FROM json_each(?)))",
        (json.dumps(list(keys)), context.tenant, json.dumps(context.entries(), ensure_ascii=False)),
    )
    made = {}
    for row in rows:
        document = expect(row[len(_TYPES) :], (str, int, int, str, str), "document")
        made[row[0]] = Found(_chunk(row[: len(_TYPES)]), *document)
    return made


def chunk_counts(connection: Connection, doc_key: int) -> tuple[int, int]:
    """Return how many chunks a document has, and how many of their texts were truncated for their vector."""
    (chunks, truncated) = connection.run(
        "SELECT count(*), coalesce(sum(v.truncated), 0) FROM chunks c LEFT JOIN vectors v USING (chunk_key)"
        " WHERE c.doc_key = ?",
        (doc_key,),
    )[0]
    return chunks, truncated
