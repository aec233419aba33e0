"""The generation that a migration fills beside the serving one, and the switch (MIG-1…MIG-4).

Its tables are there from the first transaction of a migration until the switch renames them, or until they are dropped.
No reader looks at them. A change of a document removes its rows from them in the same transaction (`delete_chunks`), so
what stands there was made from the present text, or is found out by the document's commit number. The switch gives
names only, whatever the size; the tables that served before are dropped after it, a part at a time.
"""

from collections.abc import Sequence

from kbretrieval.errors import IndexCorrupt
from kbretrieval.store.chunk_rows import PreparedChunk, delete_staged, insert_chunks, is_staging, table_names
from kbretrieval.store.commits import forget_forerunners, next_commit
from kbretrieval.store.connection import Connection
from kbretrieval.store.contract import CONTRACT, Contract, read_contract, write_contract
from kbretrieval.store.documents import DocumentRow
from kbretrieval.store.fingerprints import document_fingerprint, staged_fingerprint
from kbretrieval.store.generations import enter_generation, serving_line
from kbretrieval.store.schema import (
    CREATE_STAGED_DOCUMENTS,
    FTS_REMAINS,
    INDEX_NAMES,
    PAST,
    SERVING,
    STAGED,
    STAGED_CONTRACT,
    STAGED_DOCUMENTS,
    Tables,
    create_contract,
    create_generation,
)

ROWS_IN_ONE_TRANSACTION = 2048
# Taking rows out of an index in key order would touch a page of it for each row.
_INDEXES = "SELECT name FROM sqlite_schema WHERE type = 'index' AND tbl_name = ?"
# FTS5's file format: rows 1 and 10 of its data are averages and structure, all others are pages of terms.
_STRUCTURE = 10

_OUTDATED = (
    f"SELECT n.doc_key FROM {STAGED_DOCUMENTS} n LEFT JOIN documents d ON d.doc_key = n.doc_key"
    " WHERE d.live IS NOT 1 OR d.content_commit <> n.content_commit"
)


def staged_contract(connection: Connection) -> Contract | None:
    """Return what the generation that is being filled will be, None where none is."""
    return read_contract(connection, STAGED_CONTRACT) if is_staging(connection) else None


def goes_on(connection: Connection, contract: Contract) -> bool:
    """Tell whether what is staged is for this contract, in tables as this version makes them."""
    columns = [name for _, name, *_ in connection.run(f"PRAGMA table_info({STAGED_DOCUMENTS})")]
    return "fingerprint" in columns and staged_contract(connection) == contract


def begin_staging(connection: Connection, contract: Contract) -> None:
    """Make empty tables for a generation, where there are none; inside a write transaction."""
    connection.run(create_contract(STAGED_CONTRACT))
    connection.run(CREATE_STAGED_DOCUMENTS)
    taken = {name for (name,) in connection.run("SELECT name FROM sqlite_schema WHERE type = 'index'")}
    for statement in create_generation(STAGED, INDEX_NAMES[INDEX_NAMES[0][0] in taken]):
        connection.run(statement)
    write_contract(connection, contract, STAGED_CONTRACT)


def give_up_staging(connection: Connection) -> None:
    """Leave the generation that is being filled, if there is one, to be dropped; inside a write transaction.

    `drop_past` must come after it. Nothing else waits to be dropped then: a generation is begun when all that is done.
    """
    if is_staging(connection):
        _rename(connection, STAGED, PAST)
        _drop_notes(connection)


def _rename(connection: Connection, tables: Tables, names: Tables) -> None:
    for table, name in zip(tables.names(), names.names(), strict=True):
        connection.run(f"ALTER TABLE {table} RENAME TO {name}")


def _drop_notes(connection: Connection) -> None:
    for table in (STAGED_CONTRACT, STAGED_DOCUMENTS):
        connection.run(f"DROP TABLE {table}")


def drop_past(connection: Connection) -> None:
    """Drop what served before or was given up, if it is there; each part in a write transaction of its own.

    Outside any transaction. Whoever waits to write gets in between two parts.
    """
    while True:
        with connection.write():
            there = table_names(connection)
            left = [table for table in (*FTS_REMAINS.values(), *PAST.names()) if table in there]
            if not left:
                return
            _drop_part(connection, left[0])
        connection.give_way()


def _drop_part(connection: Connection, table: str) -> None:
    """Drop a table, or the first rows of one that has many; of FTS5's, leave plain tables to be dropped."""
    if table == PAST.fts:
        _unbind_fts(connection)
        return
    key = _part_key(table)
    if key is not None:
        for (index,) in connection.run(_INDEXES, (table,)):
            connection.run(f"DROP INDEX {index}")
        limit = connection.run(f"SELECT {key} FROM {table} ORDER BY {key} LIMIT 1 OFFSET ?", (ROWS_IN_ONE_TRANSACTION,))
        if limit:
            connection.run(f"DELETE FROM {table} WHERE {key} < ?", limit[0])
            return
    connection.run(f"DROP TABLE {table}")


def _part_key(table: str) -> str | None:
    """Return the column in whose order a table goes, None for one that is small in any index."""
    if table == FTS_REMAINS["idx"]:
        return None
    return "id" if table in FTS_REMAINS.values() else "chunk_key"


def _unbind_fts(connection: Connection) -> None:
    # FTS5 drops its tables in one statement: seconds at 100,000 chunks, in which nobody else can write or commit.
    for part, name in FTS_REMAINS.items():
        connection.run(f"ALTER TABLE {PAST.fts}_{part} RENAME TO {name}")
    # It opens the table once more to drop it, and looks for the record of its structure.
    connection.run(f"CREATE TABLE {PAST.fts}_data (id INTEGER PRIMARY KEY, block BLOB)")
    connection.run(
        f"INSERT INTO {PAST.fts}_data SELECT id, block FROM {FTS_REMAINS['data']} WHERE id <= ?", (_STRUCTURE,)
    )
    connection.run(f"DROP TABLE {PAST.fts}")


def live_documents(connection: Connection) -> int:
    """Return how many live documents there are."""
    return int(connection.run("SELECT count(*) FROM documents WHERE live = 1")[0][0])


def staged_documents(connection: Connection) -> int:
    """Return how many documents are staged."""
    return int(connection.run(f"SELECT count(*) FROM {STAGED_DOCUMENTS}")[0][0])


def unstaged_keys(connection: Connection) -> list[int]:
    """Return the keys of live documents that must be staged, or staged again, ascending."""
    rows = connection.run(
        f"SELECT d.doc_key FROM documents d LEFT JOIN {STAGED_DOCUMENTS} n ON n.doc_key = d.doc_key"
        " WHERE d.live = 1 AND (n.doc_key IS NULL OR n.content_commit <> d.content_commit) ORDER BY d.doc_key"
    )
    return [key for (key,) in rows]


def delete_outdated(connection: Connection) -> None:
    """Remove staged rows of documents that were changed or deleted since; inside a write transaction.

    A change removes them itself; this is for one that was made without knowing of them, by another version.
    """
    for (doc_key,) in connection.run(_OUTDATED):
        delete_staged(connection, doc_key)


def stage_document(connection: Connection, document: DocumentRow, prepared: Sequence[PreparedChunk]) -> bool:
    """Write the rows that were made from a document; False, and nothing written, where it has changed since.

    Inside a write transaction.
    """
    now = connection.run("SELECT live, content_commit, sha256 FROM documents WHERE doc_key = ?", (document.doc_key,))
    if now != [(1, document.content_commit, document.sha256)]:
        return False
    delete_staged(connection, document.doc_key)
    insert_chunks(connection, document.doc_key, prepared, STAGED)
    connection.run(
        f"INSERT INTO {STAGED_DOCUMENTS} VALUES (?, ?, ?, ?, ?, ?)",
        (
            *(document.doc_key, document.content_commit, document.sha256, len(document.body), len(prepared)),
            document_fingerprint(connection, document.doc_key, STAGED),
        ),
    )
    return True


def chunk_total(connection: Connection) -> int:
    """Return the number of chunks that serve."""
    return int(connection.run(f"SELECT count(*) FROM {SERVING.chunks}")[0][0])


def expect_whole(connection: Connection) -> None:
    """Raise `index_corrupt` unless the staged rows are those of exactly the live documents, each from end to end.

    Compared are content digest and commit, the number of chunks and where the last one ends, and that no table has a
    row more or less. Inside the transaction that switches.
    """
    rows = connection.run(
        f"""SELECT count(*) FROM documents d LEFT JOIN {STAGED_DOCUMENTS} n ON n.doc_key = d.doc_key
        LEFT JOIN (
            SELECT doc_key, count(*) AS chunks, max(number) AS last FROM {STAGED.chunks} GROUP BY doc_key
        ) k ON k.doc_key = d.doc_key
        LEFT JOIN {STAGED.chunks} c ON c.doc_key = d.doc_key AND c.number = k.last
        WHERE d.live = 1 AND (
            n.doc_key IS NULL OR n.content_commit <> d.content_commit OR n.sha256 <> d.sha256
            OR coalesce(k.chunks, 0) <> n.chunks OR coalesce(k.last, -1) <> n.chunks - 1
            OR coalesce(c.end_point, 0) <> n.points
        )"""
    )
    announced = connection.run(f"SELECT coalesce(sum(chunks), 0) FROM {STAGED_DOCUMENTS}")[0][0]
    counts = [connection.run(f"SELECT count(*) FROM {table}")[0][0] for table in (STAGED.chunks, STAGED.postings)]
    if rows != [(0,)] or counts != [announced, announced] or connection.run(_OUTDATED):
        raise IndexCorrupt(
            f"{announced} chunks of every live document are expected in the next generation, {counts[0]} are there,"
            f" {rows[0][0]} documents are not whole"
        )


def switch(connection: Connection, contract: Contract) -> int:
    """Let the staged generation serve in place of the old one, which is left to be dropped; return the commit.

    Inside a write transaction, which writes the line of the ledger, too (CTX-13). Nothing descends from an earlier
    commit: every snapshot, in every process, begins anew, and reads the contract (MIG-2).
    """
    expect_whole(connection)
    before, made = serving_line(connection), staged_fingerprint(connection, contract)
    last_key = connection.run(
        "SELECT max(seq) FROM sqlite_sequence WHERE name IN (?, ?)", (SERVING.chunks, STAGED.chunks)
    )
    _rename(connection, SERVING, PAST)
    _rename(connection, STAGED, SERVING)
    connection.run("DELETE FROM sqlite_sequence WHERE name IN (?, ?)", (SERVING.chunks, STAGED.chunks))
    connection.run("INSERT INTO sqlite_sequence (name, seq) VALUES (?, ?)", (SERVING.chunks, last_key[0][0] or 0))
    connection.run(f"DELETE FROM {CONTRACT}")
    write_contract(connection, contract)
    _drop_notes(connection)
    commit = next_commit(connection, "migrate", *contract.to_dict().values())
    forget_forerunners(connection, commit)
    enter_generation(connection, before, contract, commit, made)
    return commit
