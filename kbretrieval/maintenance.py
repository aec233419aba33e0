"""Maintenance views and the rewriting of the file (chapter 16); never for end users, text leaves without a context."""

import sqlite3
from pathlib import Path

from kbretrieval.engine import Engine
from kbretrieval.repair import fts_content
from kbretrieval.results import DocumentStatus, PurgeResult
from kbretrieval.store.chunk_rows import chunk_counts
from kbretrieval.store.connection import Connection
from kbretrieval.store.documents import DocumentRow, acl_of, blank_tombstones, documents_of, find_document
from kbretrieval.store.fragments import empty_fragments
from kbretrieval.store.inspection import file_bytes, rewrite_fts, vacuum


def _status(connection: Connection, document: DocumentRow) -> DocumentStatus:
    return DocumentStatus(
        state="live" if document.live else "deleted",
        tenant=document.tenant,
        doc_id=document.doc_id,
        revision=document.revision,
        acl_revision=document.acl_revision,
        acl=acl_of(connection, document.doc_key),
        title=document.title,
        format=document.format,
        chunks=chunk_counts(connection, document.doc_key)[0],
        sha256=document.sha256,
        source_sha256=document.source_sha256,
        content_commit=document.content_commit,
        acl_commit=document.acl_commit,
        sqlite=sqlite3.sqlite_version,
        provenance=document.provenance,
    )


def status(engine: Engine, tenant: str, doc_id: str) -> DocumentStatus:
    """Return the maintenance view of one document: absent, live or deleted."""
    connection = engine.connection
    with connection.read():
        document = find_document(connection, tenant, doc_id)
        if document is not None:
            return _status(connection, document)
    return DocumentStatus(
        state="absent",
        tenant=tenant,
        doc_id=doc_id,
        revision=None,
        acl_revision=None,
        acl=(),
        title=None,
        format=None,
        chunks=0,
        sha256=None,
        source_sha256=None,
        content_commit=None,
        acl_commit=None,
        sqlite=sqlite3.sqlite_version,
    )


def documents(engine: Engine, tenant: str) -> tuple[DocumentStatus, ...]:
    """Return the maintenance view of every document of a tenant, tombstones included, by doc_id."""
    connection = engine.connection
    with connection.read():
        return tuple(_status(connection, document) for document in documents_of(connection, tenant))


def purge(engine: Engine) -> PurgeResult:
    """Remove the bytes of deleted text from the file (DEL-5).

    FTS5 rows are written anew from the chunks, titles of tombstones emptied, then VACUUM. Tombstones stay. What backups
    or file systems kept elsewhere is not reached.
    """
    connection = engine.connection
    before = file_bytes(connection)
    with connection.write():
        written = rewrite_fts(connection, fts_content(connection))
        blanked = blank_tombstones(connection)
        empty_fragments(connection)
    vacuum(connection)
    engine.resident.forget()
    return PurgeResult(written, blanked, before, file_bytes(connection))


def backup(engine: Engine, target: Path) -> None:
    """Copy the whole index into a new file with SQLite's backup API (CON-7).

    A restored backup revives rights that were revoked and documents that were deleted after it was made, until
    policies and events are replayed. Raises `invalid_path` where the target exists.
    """
    engine.connection.backup_to(target)
