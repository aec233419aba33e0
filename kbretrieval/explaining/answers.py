"""The four questions about one document and one principal, answered from what is stored (OBS-5)."""

import os
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from kbretrieval.citation import Desk, Judged, line_range
from kbretrieval.errors import InvalidIdentity, InvalidParameter
from kbretrieval.explaining.explanation import (
    Access,
    ChunkPlace,
    Difference,
    ExplainedHit,
    Explanation,
    Reason,
    Rule,
    Source,
    Version,
)
from kbretrieval.identity import Context, checked_document, granted_by
from kbretrieval.projection import digest
from kbretrieval.results import Hit
from kbretrieval.store.chunk_rows import ChunkRow, chunks_of
from kbretrieval.store.connection import Connection
from kbretrieval.store.contract import Contract, read_contract
from kbretrieval.store.documents import DocumentRow, acl_of, find_document, names_at

MAX_PATH = 4096


def checked_given(value: object) -> str:
    """Return a name or path of 1 to 4,096 code points without lone surrogates, else raise `invalid_identity`."""
    if not isinstance(value, str):
        raise InvalidIdentity(f"document: a string is required, {type(value).__name__} given")
    if not 1 <= len(value) <= MAX_PATH or any("\ud800" <= character <= "\udfff" for character in value):
        raise InvalidIdentity(f"document: a name or path of 1 to {MAX_PATH} code points is required, another given")
    return value


def path_tails(given: str) -> tuple[str, ...]:
    """Return the identities that a file's path could have below some root, the longest first (SYN-1).

    Example:
        >>> path_tails("./docs/travel.md")
        ('docs/travel.md', 'travel.md')
    """
    names = unicodedata.normalize("NFC", given.replace(os.sep, "/")).split("/")
    parts = [name for name in names if name not in ("", ".", "..")]
    return tuple("/".join(parts[at:]) for at in range(len(parts)))


def _named(connection: Connection, tenant: str, given: str) -> str:
    """Return the document that a name or path means; a name of a document is always that document's."""
    if find_document(connection, tenant, given) is not None:
        return given
    found = names_at(connection, tenant, path_tails(given))
    if len(found) > 1:
        raise InvalidParameter(f"document: the name of one is required, a path that fits {len(found)} given")
    return found[0] if found else given


@dataclass(frozen=True, slots=True)
class _Stored:
    """What one commit says of a document; of a tombstone no entry and no chunk."""

    document: DocumentRow
    acl: tuple[str, ...]
    chunks: tuple[ChunkPlace, ...]


def _stored(connection: Connection, tenant: str, doc_id: str) -> _Stored | None:
    document = find_document(connection, tenant, doc_id)
    if document is None:
        return None
    chunks = tuple(_place(chunk, document.body) for chunk in chunks_of(connection, document.doc_key))
    return _Stored(document, acl_of(connection, document.doc_key), chunks)


def _place(chunk: ChunkRow, body: str) -> ChunkPlace:
    line_start, line_end = line_range(body, chunk.start, chunk.end)
    return ChunkPlace(
        number=chunk.number,
        chunk_key=chunk.chunk_key,
        start=chunk.start,
        end=chunk.end,
        line_start=line_start,
        line_end=line_end,
        sha256=chunk.sha256,
        agrees=chunk.text == body[chunk.start : chunk.end] and digest(chunk.text) == chunk.sha256,
    )


def _version(document: DocumentRow, contract: Contract) -> Version:
    return Version(
        projection=contract.projection,
        format=document.format,
        revision=document.revision,
        content_commit=document.content_commit,
        document_sha256=document.sha256,
        source_sha256=document.source_sha256,
        code_points=len(document.body),
        intact=digest(document.body) == document.sha256 if document.live else None,
    )


def _access(stored: _Stored | None, context: Context) -> Access:
    acl = stored.acl if stored is not None else ()
    grant = granted_by(acl, context) if stored is not None and stored.document.live else None
    refused: Reason = "absent" if stored is None else "no entry admits" if stored.document.live else "deleted"
    mine = set(context.entries())
    return Access(
        principal=context.principal,
        groups=context.groups,
        may_read=grant is not None,
        reason=refused if grant is None else "granted",
        granted_by=grant,
        admitting=tuple(entry for entry in acl if entry in mine),
        acl=acl,
        acl_revision=stored.document.acl_revision if stored is not None else None,
        acl_commit=stored.document.acl_commit if stored is not None else None,
    )


def _rules(stored: _Stored | None, access: Access, context: Context) -> Iterator[Rule]:
    yield Rule("tenant", context.tenant, "other tenant", None)
    yield Rule("principal", context.principal, "other principal", None)
    yield Rule("document", "live", "deleted", stored is not None and stored.document.live)
    if stored is None or not stored.document.live:
        return
    document, chunks = stored.document, stored.chunks
    yield Rule("access", access.granted_by or "an entry that admits", "access withdrawn", access.may_read)
    yield Rule("acl_revision", str(document.acl_revision), "ACL changed", None)
    yield Rule("revision", str(document.revision), "revision changed", None)
    yield Rule("document_sha256", document.sha256, "revision changed", None)
    yield Rule("chunk_key, start, end", f"of one of {len(chunks)} chunks", "chunk missing", None if chunks else False)
    yield Rule("chunk_sha256", "of that chunk", "text altered", None)
    sound = digest(document.body) == document.sha256 and all(chunk.agrees for chunk in chunks)
    yield Rule("store", "texts, slices and digests agree", "store corrupted", sound)


def _differences(hit: Hit, stored: _Stored) -> Iterator[Difference]:
    document = stored.document
    chunk = next((item for item in stored.chunks if item.chunk_key == hit.chunk_key), None)
    facts: list[tuple[str, int | str, int | str | None]] = [
        ("acl_revision", hit.acl_revision, document.acl_revision),
        ("revision", hit.revision, document.revision),
        ("document_sha256", hit.document_sha256, document.sha256),
        ("chunk_key", hit.chunk_key, chunk.chunk_key if chunk is not None else None),
    ]
    if chunk is not None:
        facts += [("start", hit.start, chunk.start), ("end", hit.end, chunk.end)]
        facts += [("chunk_sha256", hit.chunk_sha256, chunk.sha256)]
    return (Difference(*fact) for fact in facts if fact[1] != fact[2])


def _explained(hit: Hit | None, judged: Judged, context: Context, doc_id: str, stored: _Stored | None) -> ExplainedHit:
    if hit is None or (hit.tenant, hit.doc_id) != (context.tenant, doc_id):
        return ExplainedHit(judged, False, ())
    live = stored is not None and stored.document.live
    return ExplainedHit(judged, True, tuple(_differences(hit, stored)) if live and stored is not None else ())


def _judged(
    connection: Connection, hits: Sequence[Any], context: Context, doc_id: str, stored: _Stored | None
) -> Iterator[ExplainedHit]:
    desk = Desk(connection, context)
    for position, value in enumerate(hits):
        verdict, hit, _ = desk.judge(value)
        yield _explained(hit, Judged.of(position, verdict, hit), context, doc_id, stored)


def explain(connection: Connection, given: str, context: Context, hits: Sequence[Any]) -> Explanation:
    """Return the four answers, all of one commit; `given` is a document's name, or the path of its file."""
    given = checked_given(given)
    with connection.read():
        contract = read_contract(connection)
        tenant, doc_id = checked_document(context.tenant, _named(connection, context.tenant, given))
        stored = _stored(connection, tenant, doc_id)
        explained = tuple(_judged(connection, hits, context, doc_id, stored))
    document = stored.document if stored is not None else None
    access = _access(stored, context)
    return Explanation(
        tenant=tenant,
        doc_id=doc_id,
        state="absent" if document is None else "live" if document.live else "deleted",
        contract=contract,
        version=_version(document, contract) if document is not None else None,
        access=access,
        source=(
            Source(document.source_sha256, document.sha256, document.provenance, stored.chunks)
            if stored is not None and document is not None and document.live
            else None
        ),
        rules=tuple(_rules(stored, access, context)),
        hits=explained,
    )
