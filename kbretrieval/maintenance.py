"""Maintenance views and the rewriting of the file (chapter 16); never for end users, text leaves without a context."""

import sqlite3
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from kbretrieval.engine import Engine
from kbretrieval.errors import Busy
from kbretrieval.repair import fts_content
from kbretrieval.results import DocumentStatus, Exported, PurgeResult
from kbretrieval.store.chunk_rows import chunk_counts, is_staging
from kbretrieval.store.commits import current_commit
from kbretrieval.store.connection import Connection
from kbretrieval.store.contract import Contract, read_contract
from kbretrieval.store.counts import TenantCounts, tenant_counts
from kbretrieval.store.documents import DocumentRow, acl_of, blank_tombstones, documents_of, find_document
from kbretrieval.store.fragments import empty_fragments
from kbretrieval.store.inspection import file_bytes, rewrite_fts, vacuum
from kbretrieval.store.schema import STAGED
from kbretrieval.store.staging import delete_outdated, drop_past, give_up_staging


@dataclass(frozen=True, slots=True)
class IndexCounts(Exported):
    """How much an index holds, and under which contract; `migrating`: a migration has begun and not ended.

    Of one commit; `file_bytes` is the size of the database, free pages included.
    """

    SCHEMA: ClassVar[str] = "kbretrieval.index_counts/1"

    tenants: tuple[TenantCounts, ...]
    contract: Contract
    commit: int
    file_bytes: int
    migrating: bool


def counts(engine: Engine) -> IndexCounts:
    """Return how much the index holds (OBS-4)."""
    connection = engine.connection
    with connection.read():
        return IndexCounts(
            tenants=tenant_counts(connection),
            contract=read_contract(connection),
            commit=current_commit(connection),
            file_bytes=file_bytes(connection),
            migrating=is_staging(connection),
        )


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

    FTS5 rows are written anew from the chunks, titles of tombstones emptied, then VACUUM. Tombstones stay. What a dead
    migration left is dropped; one that is under way goes on. What backups or file systems kept elsewhere is not
    reached.
    """
    connection = engine.connection
    before = file_bytes(connection)
    with connection.write():
        written = rewrite_fts(connection, fts_content(connection))
        blanked = blank_tombstones(connection)
        empty_fragments(connection)
        staging = is_staging(connection)
    drop_past(connection)
    if staging:
        _purge_staging(connection)
    vacuum(connection)
    engine.resident.forget()
    return PurgeResult(written, blanked, before, file_bytes(connection))


def _purge_staging(connection: Connection) -> None:
    """Drop the generation that is being filled, where no run holds the lock that its migration would."""
    try:
        with connection.lone_run(wait_seconds=0):
            with connection.write():
                give_up_staging(connection)
            drop_past(connection)
            return
    except Busy:
        pass
    with connection.write():
        if is_staging(connection):
            delete_outdated(connection)
            rewrite_fts(connection, fts_content(connection, STAGED), STAGED)


def backup(engine: Engine, target: Path) -> None:
    """Copy the whole index into a new file with SQLite's backup API (CON-7).

    A restored backup revives rights that were revoked and documents that were deleted after it was made, until
    policies and events are replayed. Raises `invalid_path` where the target exists.
    """
    engine.connection.backup_to(target)
