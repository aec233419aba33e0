"""Making derived rows anew from the documents alone: chunks, posting lists, FTS5 rows, vectors (chapter 16).

Nothing is repaired that the documents cannot vouch for: where a body and its digest disagree, the document is left as
it is, because rows made from a damaged text would look sound.
"""

from collections.abc import Iterator

from kbretrieval.analysis import terms
from kbretrieval.checking import check
from kbretrieval.chunking import chunks
from kbretrieval.engine import Engine
from kbretrieval.lifecycle import prepare
from kbretrieval.projection import digest
from kbretrieval.results import Fault, RepairResult
from kbretrieval.store.chunk_rows import delete_chunks, insert_chunks
from kbretrieval.store.commits import next_commit
from kbretrieval.store.connection import Connection
from kbretrieval.store.contract import expect_contract
from kbretrieval.store.documents import find_document, touch_content
from kbretrieval.store.fts import fts_text
from kbretrieval.store.inspection import chunk_texts, delete_orphans, rewrite_fts
from kbretrieval.store.schema import SERVING, Tables

BEYOND_REPAIR = frozenset({"document_text", "tombstone_not_empty"})


def repair_derived(engine: Engine) -> RepairResult:
    """Make the derived rows of every document with a fault anew, and return which faults were there and are left.

    A repaired document keeps its revision, ACL and orders; its chunks get new keys, so hits from before are dead.
    """
    before = check(engine)
    if not before:
        return RepairResult(0, (), ())
    spoiled = {(fault.tenant, fault.doc_id) for fault in before if fault.code in BEYOND_REPAIR}
    named = {(fault.tenant, fault.doc_id) for fault in before if fault.tenant is not None and fault.doc_id is not None}
    repaired = sum(
        _repair_document(engine, str(tenant), str(doc_id)) for tenant, doc_id in sorted(named - spoiled, key=str)
    )
    _repair_store(engine, before)
    engine.resident.forget()
    return RepairResult(repaired, before, check(engine))


def fts_content(connection: Connection, tables: Tables = SERVING) -> Iterator[tuple[int, str]]:
    """Yield (chunk key, FTS5 text) of every chunk of a live document, made from the chunk's own text."""
    return ((key, fts_text(terms(text))) for key, text in chunk_texts(connection, tables))


def _repair_document(engine: Engine, tenant: str, doc_id: str) -> bool:
    connection = engine.connection
    with connection.read():
        document = find_document(connection, tenant, doc_id)
    if document is None or not document.live or digest(document.body) != document.sha256:
        return False
    cut = chunks(document.projection(), engine.contract.chunk_size, engine.contract.overlap)
    prepared = prepare(engine, cut)
    with connection.write():
        expect_contract(connection, engine.contract)
        now = find_document(connection, tenant, doc_id)
        if now is None or not now.live or (now.revision, now.sha256) != (document.revision, document.sha256):
            return False  # a newer event came in between and wrote rows of its own
        delete_chunks(connection, now.doc_key)
        insert_chunks(connection, now.doc_key, prepared)
        touch_content(connection, now.doc_key, next_commit(connection, "repair", tenant, doc_id))
    return True


def _repair_store(engine: Engine, faults: tuple[Fault, ...]) -> None:
    codes = {fault.code for fault in faults}
    connection = engine.connection
    with connection.write():
        if "orphan" in codes:
            delete_orphans(connection)
        if "fts_index_damaged" in codes:
            rewrite_fts(connection, fts_content(connection))
