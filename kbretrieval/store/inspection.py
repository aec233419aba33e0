"""Questions about the whole store, for maintenance: SQLite's own checks, FTS5 rows, orphans; and its rewriting."""

from collections.abc import Iterable
from contextlib import suppress

from kbretrieval.errors import IndexCorrupt
from kbretrieval.store.connection import Connection
from kbretrieval.store.schema import FTS_TABLE, SERVING, Tables, create_fts


def sqlite_is_sound(connection: Connection) -> bool:
    """Tell whether SQLite's own integrity check finds nothing; inside a transaction.

    From 3.44 on it asks FTS5, too, which judges by what this connection has in memory and does not look whether another
    has written since: a sound table would be called damaged. A query looks.
    """
    with suppress(IndexCorrupt):
        connection.run(f"SELECT rowid FROM {FTS_TABLE} LIMIT 1")
    try:
        return connection.run("PRAGMA integrity_check") == [("ok",)]
    except IndexCorrupt:
        return False


def fts_is_sound(connection: Connection) -> bool:
    """Tell whether FTS5's own integrity check finds nothing; inside a write transaction, which it needs."""
    try:
        connection.run(f"INSERT INTO {FTS_TABLE} ({FTS_TABLE}) VALUES ('integrity-check')")
    except IndexCorrupt:
        return False
    return True


def fts_rows(connection: Connection, doc_key: int) -> dict[int, str]:
    """Return chunk key → stored terms of one document's FTS5 rows."""
    rows = connection.run(
        f"SELECT rowid, terms FROM {FTS_TABLE} WHERE rowid IN (SELECT chunk_key FROM chunks WHERE doc_key = ?)",
        (doc_key,),
    )
    return {key: str(terms) for key, terms in rows}


def posting_rows(connection: Connection, doc_key: int) -> dict[int, tuple[object, ...]]:
    """Return chunk key → (length, codes, counts) of one document."""
    rows = connection.run(
        "SELECT p.chunk_key, p.length, p.codes, p.counts FROM chunks c JOIN postings p USING (chunk_key)"
        " WHERE c.doc_key = ?",
        (doc_key,),
    )
    return {row[0]: row[1:] for row in rows}


def vector_rows(connection: Connection, doc_key: int) -> dict[int, tuple[object, ...]]:
    """Return chunk key → (text digest, float32 blob, int8 codes, residual, norm) of one document's vectors."""
    rows = connection.run(
        "SELECT v.chunk_key, v.text_sha256, v.vector, k.codes, k.residual, k.norm"
        " FROM chunks c JOIN vectors v USING (chunk_key) LEFT JOIN vector_codes k USING (chunk_key)"
        " WHERE c.doc_key = ?",
        (doc_key,),
    )
    return {row[0]: row[1:] for row in rows}


_DERIVED = (("postings", "chunk_key"), ("vectors", "chunk_key"), ("vector_codes", "chunk_key"), (FTS_TABLE, "rowid"))
_NO_CHUNK = "NOT IN (SELECT chunk_key FROM chunks)"
_NO_DOCUMENT = "doc_key NOT IN (SELECT doc_key FROM documents)"


def orphans(connection: Connection) -> list[tuple[str, int]]:
    """Return (table, key) of derived rows without a chunk, and of chunks and ACL entries without a document."""
    found: list[tuple[str, int]] = []
    for table, key in _DERIVED:
        rows = connection.run(f"SELECT {key} FROM {table} WHERE {key} {_NO_CHUNK} ORDER BY 1")
        found += [(table, row[0]) for row in rows]
    for table, key in (("chunks", "chunk_key"), ("acl", "doc_key")):
        rows = connection.run(f"SELECT DISTINCT {key} FROM {table} WHERE {_NO_DOCUMENT} ORDER BY 1")
        found += [(table, row[0]) for row in rows]
    return found


def delete_orphans(connection: Connection) -> None:
    """Remove what `orphans` finds; owners first, so that what hung on them goes, too."""
    for table in ("chunks", "acl"):
        connection.run(f"DELETE FROM {table} WHERE {_NO_DOCUMENT}")
    for table, key in _DERIVED:
        connection.run(f"DELETE FROM {table} WHERE {key} {_NO_CHUNK}")


def rewrite_fts(connection: Connection, rows: Iterable[tuple[int, str]], tables: Tables = SERVING) -> int:
    """Drop a generation's FTS5 table and write it anew; inside a write transaction. Returns the number of rows.

    FTS5 keeps the terms of deleted rows in its shadow tables until they are merged away; a new table has none.
    """
    connection.run(f"DROP TABLE {tables.fts}")
    connection.run(create_fts(tables.fts))
    written = list(rows)
    connection.run_many(f"INSERT INTO {tables.fts} (rowid, terms) VALUES (?, ?)", written)
    return len(written)


def chunk_texts(connection: Connection, tables: Tables = SERVING) -> list[tuple[int, str]]:
    """Return (chunk key, text) of every chunk of a live document, by key."""
    return [
        (key, text)
        for key, text in connection.run(
            f"SELECT c.chunk_key, c.text FROM {tables.chunks} c JOIN documents d USING (doc_key)"
            " WHERE d.live = 1 ORDER BY 1"
        )
    ]


def file_bytes(connection: Connection) -> int:
    """Return the size of the database in bytes."""
    (pages,), (size,) = connection.run("PRAGMA page_count")[0], connection.run("PRAGMA page_size")[0]
    return int(pages * size)


def vacuum(connection: Connection) -> None:
    """Write the database anew without free pages; outside any transaction."""
    connection.outside_transaction("VACUUM")
