"""Derived rows of a chunk: text and coordinates, posting list, vector, FTS5 row; in and out."""

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kbretrieval.analysis import term_code
from kbretrieval.chunking import Chunk
from kbretrieval.errors import IndexCorrupt
from kbretrieval.store.connection import Connection, Row
from kbretrieval.store.documents import expect
from kbretrieval.store.fts import fts_text
from kbretrieval.store.schema import FTS_TABLE

CODE = np.dtype("<i8")
COUNT = np.dtype("<u2")
FLOAT = np.dtype("<f4")

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
    vector: NDArray[np.float32] | None


def posting_blobs(terms: Iterable[str]) -> tuple[int, bytes, bytes]:
    """Return a chunk's length in terms, its term codes (ascending int64) and their counts (uint16), little-endian.

    Example:
        >>> length, codes, counts = posting_blobs(["退款", "政策", "退款"])
        >>> length, len(codes), list(counts)
        (3, 16, [1, 0, 2, 0])
    """
    counted = sorted((term_code(term), count) for term, count in Counter(terms).items())
    merged: Counter[int] = Counter()
    for code, count in counted:
        merged[code] += count
    codes = np.fromiter(merged.keys(), CODE, len(merged))
    counts = np.fromiter(merged.values(), np.int64, len(merged))
    if counts.size and counts.max() > np.iinfo(COUNT).max:
        raise IndexCorrupt(f"a term count of at most {np.iinfo(COUNT).max} is expected, {counts.max()} found")
    return int(counts.sum()), codes.tobytes(), counts.astype(COUNT).tobytes()


def insert_chunks(connection: Connection, doc_key: int, prepared: Sequence[PreparedChunk]) -> None:
    """Write the derived rows of a document; inside the transaction that writes its text."""
    for item in prepared:
        chunk = item.chunk
        key = connection.insert(
            "INSERT INTO chunks (doc_key, number, start_point, end_point, text, heading, heading_path, sha256)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            (doc_key, chunk.number, chunk.start, chunk.end, chunk.text, chunk.heading, _path(chunk), chunk.sha256),
        )
        connection.run("INSERT INTO postings VALUES (?, ?, ?, ?)", (key, *posting_blobs(item.terms)))
        connection.run(f"INSERT INTO {FTS_TABLE} (rowid, terms) VALUES (?, ?)", (key, fts_text(item.terms)))
        if item.vector is not None:
            blob = np.ascontiguousarray(item.vector, FLOAT).tobytes()
            connection.run("INSERT INTO vectors VALUES (?, ?, ?)", (key, chunk.sha256, blob))


def _path(chunk: Chunk) -> str:
    return json.dumps(chunk.heading_path, ensure_ascii=False, separators=(",", ":"))


def delete_chunks(connection: Connection, doc_key: int) -> None:
    """Remove every derived row of a document."""
    mine = "(SELECT chunk_key FROM chunks WHERE doc_key = ?)"
    connection.run(f"DELETE FROM {FTS_TABLE} WHERE rowid IN {mine}", (doc_key,))
    connection.run(f"DELETE FROM vectors WHERE chunk_key IN {mine}", (doc_key,))
    connection.run(f"DELETE FROM postings WHERE chunk_key IN {mine}", (doc_key,))
    connection.run("DELETE FROM chunks WHERE doc_key = ?", (doc_key,))


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


def found_chunks(connection: Connection, tenant: str, keys: Sequence[int]) -> dict[int, Found]:
    """Return chunk key → what a hit shows, for live documents of one tenant."""
    columns = ", ".join(f"c.{name.strip()}" for name in _COLUMNS.split(","))
    rows = connection.run(
        f"SELECT {columns}, d.doc_id, d.revision, d.acl_revision, d.sha256, d.title FROM chunks c"
        " JOIN documents d ON d.doc_key = c.doc_key"
        " WHERE d.tenant = ? AND d.live = 1 AND c.chunk_key IN (SELECT value FROM json_each(?))",
        (tenant, json.dumps(list(keys))),
    )
    made = {}
    for row in rows:
        document = expect(row[len(_TYPES) :], (str, int, int, str, str), "document")
        made[row[0]] = Found(_chunk(row[: len(_TYPES)]), *document)
    return made


@dataclass(frozen=True, slots=True)
class SearchRow:
    """What the channels need of one chunk: identity, posting list, vector (None without one)."""

    chunk_key: int
    doc_key: int
    length: int
    codes: NDArray[np.int64]
    counts: NDArray[np.uint16]
    vector: NDArray[np.float32] | None


def search_rows(connection: Connection, tenant: str, since: int, dimension: int) -> list[SearchRow]:
    """Return the rows of live documents whose content is younger than commit `since`, by chunk key.

    Raises `index_corrupt` where a blob's length does not fit.
    """
    rows = connection.run(
        "SELECT p.chunk_key, c.doc_key, p.length, p.codes, p.counts, v.vector FROM documents d"
        " JOIN chunks c ON c.doc_key = d.doc_key JOIN postings p ON p.chunk_key = c.chunk_key"
        " LEFT JOIN vectors v ON v.chunk_key = c.chunk_key"
        " WHERE d.tenant = ? AND d.live = 1 AND d.content_commit > ? AND max(d.content_commit, d.acl_commit) > ?"
        " ORDER BY p.chunk_key",
        (tenant, since, since),
    )
    return [_search_row(row, dimension) for row in rows]


def _search_row(row: Row, dimension: int) -> SearchRow:
    expect(row[:5], (int, int, int, bytes, bytes), "posting list")
    key, doc_key, length, codes, counts, blob = row
    vector: Any = None
    if blob is not None:
        if not isinstance(blob, bytes) or len(blob) != dimension * FLOAT.itemsize:
            raise IndexCorrupt(f"a vector of {dimension * FLOAT.itemsize} bytes is required, another is stored")
        vector = np.frombuffer(blob, FLOAT)
    if len(codes) // CODE.itemsize != len(counts) // COUNT.itemsize or len(codes) % CODE.itemsize:
        raise IndexCorrupt("a stored posting list has as many codes as counts no longer")
    return SearchRow(key, doc_key, length, np.frombuffer(codes, CODE), np.frombuffer(counts, COUNT), vector)


def stored_vectors(connection: Connection, digests: Sequence[str]) -> dict[str, bytes]:
    """Return text digest → vector blob for texts that a live chunk holds already (PRF-10)."""
    rows = connection.run(
        "SELECT text_sha256, vector FROM vectors WHERE text_sha256 IN (SELECT value FROM json_each(?))"
        " GROUP BY text_sha256",
        (json.dumps(list(digests)),),
    )
    return {digest: blob for digest, blob in rows if isinstance(blob, bytes)}
