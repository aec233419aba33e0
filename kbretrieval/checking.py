"""`check()`: verifies the whole store and names each fault, exactly (OBS-2). It repairs nothing.

| code | what does not hold |
|---|---|
| database_damaged | SQLite's own integrity check |
| fts_index_damaged | FTS5's own integrity check |
| document_text | a body and its digest |
| chunk_cover | the chunks are not the windows of the body, in order |
| chunk_text | a chunk's text, its digest and its slice of the body |
| postings | a chunk's posting list and its text's terms |
| fts_row_missing, fts_row_terms | an FTS5 row and its chunk's terms |
| vector_missing, vector_text | a dense vector that is there, and is of this text |
| vector_shape, vector_norm | a dense vector of the right size, finite, of norm 1 |
| vector_codes | a vector's int8 row is the one its encoder's constants give |
| vector_unexpected | a vector where none belongs: sparse encoder, or white space |
| tombstone_not_empty | a deleted document with text, chunks or ACL |
| orphan | a row whose owner is gone |
"""

from collections.abc import Iterator
from dataclasses import dataclass

from kbretrieval.analysis import terms
from kbretrieval.chunking import windows
from kbretrieval.embedded import embedded_digest
from kbretrieval.engine import Engine
from kbretrieval.projection import digest
from kbretrieval.results import Fault
from kbretrieval.store.chunk_rows import ChunkRow, chunks_of, posting_blobs
from kbretrieval.store.contract import expect_contract
from kbretrieval.store.documents import DocumentRow, acl_of, document_by_key, document_keys
from kbretrieval.store.fts import fts_text
from kbretrieval.store.inspection import (
    fts_is_sound,
    fts_rows,
    orphans,
    posting_rows,
    sqlite_is_sound,
    vector_rows,
)
from kbretrieval.store.vector_rows import coded_vectors, vector_fault


@dataclass(frozen=True, slots=True)
class _Derived:
    """The derived rows of one document, by chunk key."""

    fts: dict[int, str]
    postings: dict[int, tuple[object, ...]]
    vectors: dict[int, tuple[object, ...]]


def check(engine: Engine) -> tuple[Fault, ...]:
    """Return every fault of the store, in a fixed order; an empty tuple is a sound store.

    Each whole-store check and each document has a transaction of its own, so that others write meanwhile: what is
    written behind the place that was reached is not looked at again.
    """
    found = [*_store_faults(engine)]
    with engine.connection.read():
        keys = document_keys(engine.connection)
    for doc_key in keys:
        with engine.connection.read():
            expect_contract(engine.connection, engine.contract)
            document = document_by_key(engine.connection, doc_key)
            if document is not None:
                found += _document_faults(engine, document)
    return tuple(found)


def _store_faults(engine: Engine) -> Iterator[Fault]:
    connection = engine.connection
    for code, is_sound in (("database_damaged", sqlite_is_sound), ("fts_index_damaged", fts_is_sound)):
        with connection.write():  # FTS5's check needs a write transaction; nothing is written
            expect_contract(connection, engine.contract)
            sound = is_sound(connection)
        if not sound:
            yield Fault(code, None, None, None)
    with connection.read():
        left = orphans(connection)
    yield from (Fault("orphan", None, None, key if table != "acl" else None) for table, key in left)


def _document_faults(engine: Engine, document: DocumentRow) -> Iterator[Fault]:
    connection = engine.connection
    stored = chunks_of(connection, document.doc_key)
    if not document.live:
        if document.body or stored or acl_of(connection, document.doc_key):
            yield Fault("tombstone_not_empty", document.tenant, document.doc_id, None)
        return
    if digest(document.body) != document.sha256:
        yield Fault("document_text", document.tenant, document.doc_id, None)
    cut = windows(document.body, engine.contract.chunk_size, engine.contract.overlap)
    if [(chunk.number, chunk.start, chunk.end) for chunk in stored] != [(n, *span) for n, span in enumerate(cut)]:
        yield Fault("chunk_cover", document.tenant, document.doc_id, None)
    key = document.doc_key
    derived = _Derived(fts_rows(connection, key), posting_rows(connection, key), vector_rows(connection, key))
    for chunk in stored:
        for code in _chunk_codes(engine, document, chunk, derived):
            yield Fault(code, document.tenant, document.doc_id, chunk.chunk_key)


def _chunk_codes(engine: Engine, document: DocumentRow, chunk: ChunkRow, derived: _Derived) -> Iterator[str]:
    # Where the text itself is damaged, its derived rows are not blamed: they may be the only true trace of it.
    if digest(chunk.text) != chunk.sha256:
        yield "chunk_text"
        return
    if digest(document.body) == document.sha256 and document.body[chunk.start : chunk.end] != chunk.text:
        yield "chunk_text"
    found = terms(chunk.text)
    if derived.postings.get(chunk.chunk_key) != posting_blobs(found):
        yield "postings"
    row = derived.fts.get(chunk.chunk_key)
    if row is None:
        yield "fts_row_missing"
    elif row != fts_text(found):
        yield "fts_row_terms"
    yield from _vector_codes(engine, chunk, derived.vectors.get(chunk.chunk_key))


def _vector_codes(engine: Engine, chunk: ChunkRow, stored: tuple[object, ...] | None) -> Iterator[str]:
    wanted = engine.contract.dimension > 0 and not chunk.text.isspace()
    if stored is None:
        if wanted:
            yield "vector_missing"
        return
    if not wanted:
        yield "vector_unexpected"
        return
    text_sha256, blob, *codes = stored
    if text_sha256 != embedded_digest(engine.contract.embedded, chunk.heading_path, chunk.text, chunk.sha256):
        yield "vector_text"
    fault = vector_fault(blob, engine.contract.dimension)
    if fault:
        yield fault
    elif isinstance(blob, bytes):
        made = coded_vectors({"": (blob, False)}, engine.quantizer)[""]
        if codes != [made.codes, made.residual, made.norm]:
            yield "vector_codes"
