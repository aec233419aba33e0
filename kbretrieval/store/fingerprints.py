"""Fingerprints: what a generation's rows hold, recomputed from them; no digest beside a row is believed (CTX-11).

A document's fingerprint covers its identity, revision, title, body and headings, and of every chunk place, text,
headings and float32 vector. A generation's covers the contract, the encoder with it, the fingerprints of all live
documents by name, and how many rows its tables hold. Keys of rows, ACLs, releases and commits are no part of it: equal
content under an equal contract has an equal fingerprint, however it came about. Posting lists, FTS5 rows and int8 rows
are none either: text and vectors determine them, and `check` compares.
"""

import hashlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

from kbretrieval.errors import IndexCorrupt
from kbretrieval.projection import digest
from kbretrieval.store.connection import Connection, Row
from kbretrieval.store.contract import Contract
from kbretrieval.store.schema import SERVING, STAGED, STAGED_DOCUMENTS, Tables

VERSION = "fingerprint/1"
ROWS_AT_ONCE = 256

Within = Callable[[], AbstractContextManager[None]]


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """The hexadecimal SHA-256 of what a generation holds, and how many live documents and chunks that is."""

    sha256: str
    documents: int
    chunks: int


def stored_fingerprint(connection: Connection, contract: Contract, within: Within = nullcontext) -> Fingerprint:
    """Return the fingerprint of the serving rows, recomputed; reads everything once, some rows at a time.

    Inside one transaction; or each document `within` one of its own, so that others write meanwhile. Then whoever asks
    must look whether any document has changed, before the result means anything.
    """
    with within():
        keys = [row[0] for row in _live(connection, "doc_key", "documents")]
    return _combined(connection, contract, _prints(connection, keys, within), SERVING, within)


def _prints(connection: Connection, keys: Iterable[int], within: Within) -> Iterator[str]:
    for key in keys:
        with within():
            made = document_fingerprint(connection, key)
        yield made


def staged_fingerprint(connection: Connection, contract: Contract) -> Fingerprint:
    """Return the fingerprint of the staged rows, out of those that each document had when it was staged.

    So the transaction that switches reads no text, and what was damaged since is not taken for content.
    """
    made = (row[0] for row in _live(connection, "fingerprint", f"documents JOIN {STAGED_DOCUMENTS} USING (doc_key)"))
    return _combined(connection, contract, made, STAGED)


def _live(connection: Connection, column: str, source: str) -> Iterator[Row]:
    """Yield (column, tenant, doc_id) of every live document by name, some rows at a time."""
    after = ("", "")
    while True:
        rows = connection.run(
            f"SELECT {column}, tenant, doc_id FROM {source} WHERE live = 1 AND (tenant, doc_id) > (?, ?)"
            " ORDER BY tenant, doc_id LIMIT ?",
            (*after, ROWS_AT_ONCE),
        )
        yield from rows
        if len(rows) < ROWS_AT_ONCE:
            return
        after = rows[-1][1:]


def _combined(
    connection: Connection, contract: Contract, prints: Iterable[str], tables: Tables, within: Within = nullcontext
) -> Fingerprint:
    made, documents = hashlib.sha256(), 0
    _feed(made, VERSION, *(part for field in contract.to_dict().items() for part in field))
    for value in prints:
        _feed(made, value)
        documents += 1
    # Rows that hang on no live document are in no fingerprint of one; here they count.
    with within():
        chunks, vectors = (_count(connection, table) for table in (tables.chunks, tables.vectors))
    _feed(made, documents, chunks, vectors)
    return Fingerprint(made.hexdigest(), documents, chunks)


def _count(connection: Connection, table: str) -> int:
    return int(connection.run(f"SELECT count(*) FROM {table}")[0][0])


def document_fingerprint(connection: Connection, doc_key: int, tables: Tables = SERVING) -> str:
    """Return the fingerprint of one document and its rows in a generation's tables; inside a transaction."""
    made = hashlib.sha256()
    rows = connection.run(
        "SELECT tenant, doc_id, revision, title, body, headings FROM documents WHERE doc_key = ?", (doc_key,)
    )
    _feed(made, *rows[0])
    for chunk in _chunks(connection, doc_key, tables):
        _feed(made, *chunk)
    return made.hexdigest()


def _chunks(connection: Connection, doc_key: int, tables: Tables) -> Iterator[Row]:
    """Yield a document's chunks with their vectors, by number: everything that counts, and no digest."""
    after = (-1, -1)
    while True:
        rows = connection.run(
            "SELECT c.number, c.chunk_key, c.start_point, c.end_point, c.text, c.heading, c.heading_path, v.truncated,"
            f" v.vector FROM {tables.chunks} c LEFT JOIN {tables.vectors} v ON v.chunk_key = c.chunk_key"
            " WHERE c.doc_key = ? AND (c.number, c.chunk_key) > (?, ?) ORDER BY c.number, c.chunk_key LIMIT ?",
            (doc_key, *after, ROWS_AT_ONCE),
        )
        for number, _, *rest in rows:
            yield (number, *rest)
        if len(rows) < ROWS_AT_ONCE:
            return
        after = rows[-1][:2]


def _feed(made: "hashlib._Hash", *values: object) -> None:
    """Hash values so that no other values give the same bytes: each with its type and its length before it."""
    for value in values:
        raw = value if isinstance(value, bytes) else str(value).encode("utf-8")
        made.update(f"{type(value).__name__} {len(raw)} ".encode() + raw)


def expect_sound_text(connection: Connection) -> None:
    """Raise `index_corrupt` where a body has another digest than its own, or a chunk another text than its stretch.

    Before a fingerprint is recorded: what is damaged must not become what is expected. Inside that transaction.
    """
    for doc_key, _, _ in _live(connection, "doc_key", "documents"):
        body, sha256 = connection.run("SELECT body, sha256 FROM documents WHERE doc_key = ?", (doc_key,))[0]
        if digest(body) != sha256:
            raise IndexCorrupt(f"a text with its digest is required, document {doc_key} has another one")
        for _, start, end, text, *_ in _chunks(connection, doc_key, SERVING):
            if body[start:end] != text:
                raise IndexCorrupt(
                    f"chunks that are stretches of their text are required, document {doc_key} has others"
                )
