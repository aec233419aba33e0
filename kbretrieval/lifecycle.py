"""Content, policy and delete events (chapters 10–12): decide, then write.

Decisions are pure functions of the stored row and the event. Everything slow (parsing, cutting, encoding) happens
before the write transaction; inside it the stored row is read again and the decision is taken on that (UPD-1).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from kbretrieval.chunking import Chunk, chunks
from kbretrieval.derived import Blobs, prepared_chunks
from kbretrieval.engine import Engine
from kbretrieval.errors import (
    DeletedDocumentRequiresExplicitRestore,
    DeleteRequiresNewRevision,
    DocumentNotLive,
    StaleAclRevision,
    StaleOrConflictingRevision,
)
from kbretrieval.results import AclResult, DeleteResult, UpsertResult
from kbretrieval.store.chunk_rows import PreparedChunk, chunk_counts, delete_chunks, insert_chunks
from kbretrieval.store.commits import next_commit
from kbretrieval.store.connection import Connection
from kbretrieval.store.contract import expect_contract
from kbretrieval.store.documents import (
    Content,
    DocumentRow,
    bury_document,
    find_document,
    insert_document,
    insert_tombstone,
    move_tombstone,
    update_acl_revision,
    update_content,
    write_acl,
)
from kbretrieval.store.vector_rows import known_vectors

ContentStep = Literal["create", "replace", "restore", "unchanged"]
DeleteStep = Literal["bury", "move", "create", "unchanged"]


@dataclass(frozen=True, slots=True)
class ContentEvent:
    """A content event with its projection made: what `upsert` brings to the decision."""

    tenant: str
    doc_id: str
    revision: int
    content: Content
    acl: tuple[str, ...]
    restore: bool


def decide_content(stored: DocumentRow | None, event: ContentEvent) -> ContentStep:
    """Return what a content event does to a stored row, or raise why it does nothing (ID-4, ID-5, DEL-3)."""
    if stored is None:
        return "create"
    made = event.content.projection
    if event.revision < stored.revision:
        raise StaleOrConflictingRevision(f"revision {event.revision} given, {stored.revision} stored")
    if event.revision == stored.revision:
        if stored.live and (made.title, made.sha256) == (stored.title, stored.sha256):
            return "unchanged"
        what = "other content is" if stored.live else "a deletion is"
        raise StaleOrConflictingRevision(f"revision {event.revision} given, {what} stored under {stored.revision}")
    if stored.live:
        return "replace"
    if not event.restore:
        raise DeletedDocumentRequiresExplicitRestore(
            f"revision {event.revision} given without restore, deleted at revision {stored.revision}"
        )
    return "restore"


def decide_delete(stored: DocumentRow | None, revision: int) -> DeleteStep:
    """Return what a delete does to a stored row, or raise why it does nothing (DEL-1, DEL-6)."""
    if stored is None:
        return "create"
    if stored.live:
        if revision <= stored.revision:
            raise DeleteRequiresNewRevision(f"revision {revision} given, {stored.revision} stored")
        return "bury"
    if revision < stored.revision:
        raise StaleOrConflictingRevision(f"revision {revision} given, deleted at revision {stored.revision}")
    return "unchanged" if revision == stored.revision else "move"


def decide_policy(stored: DocumentRow | None, expected_acl_revision: int) -> int:
    """Return the next ACL revision, or raise why the list stays as it is (ACL-3). Absent and deleted look the same."""
    if stored is None or not stored.live:
        raise DocumentNotLive(f"ACL revision {expected_acl_revision} given, no live document of this name")
    if expected_acl_revision != stored.acl_revision:
        raise StaleAclRevision(f"ACL revision {expected_acl_revision} given, {stored.acl_revision} stored")
    return stored.acl_revision + 1


def prepare(engine: Engine, cut: Sequence[Chunk]) -> list[PreparedChunk]:
    """Return chunks with terms and vectors; a text that a live chunk holds already is not encoded again (PRF-10)."""

    def known(digests: Sequence[str]) -> Blobs:
        with engine.connection.read():
            # Between here and the write a migration could come and another one go back: vectors are of one contract.
            expect_contract(engine.connection, engine.contract)
            return known_vectors(engine.connection, digests, engine.encoder.dimension)

    return prepared_chunks(cut, engine.encoder, engine.quantizer, known, engine.contract.embedded)[0]


def upsert(engine: Engine, event: ContentEvent) -> tuple[UpsertResult, ContentStep]:
    """Apply a content event, all of it in one transaction, or nothing (UPD-2); return the result, and what was done."""
    connection = engine.connection
    with connection.read():
        stored = find_document(connection, event.tenant, event.doc_id)
        # An early look saves the encoder's time: what is stale now stays stale, and a repeat needs no work.
        if decide_content(stored, event) == "unchanged" and stored is not None:
            return _upserted(connection, stored.doc_key, event, stored.acl_revision, "unchanged"), "unchanged"
    cut = chunks(event.content.projection, engine.contract.chunk_size, engine.contract.overlap)
    prepared = prepare(engine, cut)
    with connection.write():
        expect_contract(connection, engine.contract)
        stored = find_document(connection, event.tenant, event.doc_id)
        step = decide_content(stored, event)
        if step == "unchanged" and stored is not None:
            return _upserted(connection, stored.doc_key, event, stored.acl_revision, "unchanged"), step
        doc_key, acl_revision = _write_content(connection, stored, event, step)
        insert_chunks(connection, doc_key, prepared)
        return _upserted(connection, doc_key, event, acl_revision, "indexed"), step


def _write_content(
    connection: Connection, stored: DocumentRow | None, event: ContentEvent, step: ContentStep
) -> tuple[int, int]:
    made = event.content.projection
    facts = (event.tenant, event.doc_id, event.revision, made.sha256, made.source_sha256, made.title)
    commit = next_commit(connection, step, *facts, *(event.acl if step != "replace" else ()))
    if stored is None:
        doc_key = insert_document(connection, event.tenant, event.doc_id, event.revision, event.content, commit)
        write_acl(connection, doc_key, event.acl)
        return doc_key, 1
    delete_chunks(connection, stored.doc_key)
    update_content(connection, stored.doc_key, event.revision, event.content, commit)
    if step != "restore":
        return stored.doc_key, stored.acl_revision
    acl_revision = stored.acl_revision + 1
    write_acl(connection, stored.doc_key, event.acl)
    update_acl_revision(connection, stored.doc_key, acl_revision, commit)
    return stored.doc_key, acl_revision


def _upserted(
    connection: Connection,
    doc_key: int,
    event: ContentEvent,
    acl_revision: int,
    state: Literal["indexed", "unchanged"],
) -> UpsertResult:
    count, truncated = chunk_counts(connection, doc_key)
    return UpsertResult(
        state=state,
        tenant=event.tenant,
        doc_id=event.doc_id,
        revision=event.revision,
        acl_revision=acl_revision,
        chunks=count,
        sha256=event.content.projection.sha256,
        truncated_chunks=truncated,
        controls=event.content.projection.controls,
    )


def set_acl(engine: Engine, tenant: str, doc_id: str, acl: tuple[str, ...], expected: int) -> AclResult:
    """Replace the whole ACL if the expected ACL revision is the stored one; compare and swap (ACL-3)."""
    connection = engine.connection
    with connection.write():
        stored = find_document(connection, tenant, doc_id)
        acl_revision = decide_policy(stored, expected)
        if stored is not None:
            commit = next_commit(connection, "acl", tenant, doc_id, acl_revision, *acl)
            write_acl(connection, stored.doc_key, acl)
            update_acl_revision(connection, stored.doc_key, acl_revision, commit)
    return AclResult("replaced", tenant, doc_id, acl_revision)


def delete(engine: Engine, tenant: str, doc_id: str, revision: int) -> DeleteResult:
    """Turn a document into a tombstone, or move one; body, chunks, terms, vectors and ACL go at once (DEL-2)."""
    connection = engine.connection
    with connection.write():
        stored = find_document(connection, tenant, doc_id)
        step = decide_delete(stored, revision)
        if stored is not None and step == "unchanged":
            return DeleteResult("unchanged", tenant, doc_id, revision, stored.acl_revision)
        commit = next_commit(connection, "delete", tenant, doc_id, revision)
        if stored is None:
            insert_tombstone(connection, tenant, doc_id, revision, commit)
            return DeleteResult("deleted", tenant, doc_id, revision, 1)
        if step == "move":
            move_tombstone(connection, stored.doc_key, revision)
            return DeleteResult("deleted", tenant, doc_id, revision, stored.acl_revision)
        acl_revision = stored.acl_revision + 1
        delete_chunks(connection, stored.doc_key)
        write_acl(connection, stored.doc_key, ())
        bury_document(connection, stored.doc_key, revision, commit)
        update_acl_revision(connection, stored.doc_key, acl_revision, commit)
        return DeleteResult("deleted", tenant, doc_id, revision, acl_revision)
