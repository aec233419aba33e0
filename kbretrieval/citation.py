"""Hits → evidence, and the verdict on each hit (chapter 9).

A hit is a voucher. Everything it claims is compared with what is stored now, inside one read transaction; the quotation
is the database's text and never the hit's. Verdicts are a pure function of hit, context and stored rows.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import islice
from typing import Any, ClassVar, Literal

from kbretrieval.errors import HitsListRequired, InvalidAnswerLimit, InvalidHit, TooManyHits
from kbretrieval.hit_format import checked_hit_fields
from kbretrieval.identity import Context, granted_by
from kbretrieval.projection import digest
from kbretrieval.results import ABSTENTION, Answer, ChannelRank, Evidence, Exported, Hit
from kbretrieval.store.chunk_rows import ChunkRow, find_chunk
from kbretrieval.store.connection import Connection
from kbretrieval.store.documents import DocumentRow, acl_of, find_document

MAX_HITS = 200
MAX_ANSWER = 10

Verdict = Literal[
    "valid",
    "malformed",
    "other tenant",
    "other principal",
    "deleted",
    "access withdrawn",
    "ACL changed",
    "revision changed",
    "chunk missing",
    "text altered",
    "store corrupted",
]


@dataclass(frozen=True, slots=True)
class Judged(Exported):
    """Maintenance view of one hit: its place in the list, from 0, and the first thing that is wrong with it (CIT-5).

    `deleted` also stands for a document that was never there. doc_id and chunk_key are the hit's claims, None where it
    is malformed.
    """

    SCHEMA: ClassVar[str] = "kbretrieval.judged/1"

    position: int
    verdict: Verdict
    doc_id: str | None
    chunk_key: int | None

    @classmethod
    def of(cls, position: int, verdict: Verdict, hit: Hit | None) -> "Judged":
        """Return the view of a hit as it was read; None is a malformed one."""
        return cls(position, verdict, hit.doc_id if hit else None, hit.chunk_key if hit else None)


@dataclass(frozen=True, slots=True)
class Standing:
    """What the store says now about a hit's document: its row, its ACL, and whether text and digest agree."""

    document: DocumentRow
    acl: tuple[str, ...]
    intact: bool


def checked_hits(hits: object) -> tuple[Any, ...]:
    """Return hits if they are a sequence of at most 200 (CIT-8): a list, a tuple, a search result.

    They are taken once, before anything is judged: a sequence of the caller's own making may change, or have no end.
    """
    if not isinstance(hits, Sequence) or isinstance(hits, (str, bytes, bytearray, memoryview)):
        raise HitsListRequired(f"a list of hits is required, {type(hits).__name__} given")
    taken = tuple(islice(iter(hits), MAX_HITS + 1))
    if len(taken) > MAX_HITS:
        raise TooManyHits(f"at most {MAX_HITS} hits are allowed, {_length(hits)} given")
    return taken


def _length(hits: Sequence[Any]) -> str:
    try:
        return str(len(hits))
    except OverflowError:
        return "more than can be counted"


def checked_answer_limit(limit: object) -> int:
    """Return the limit of an answer, 1 to 10 quotations (CIT-7)."""
    if type(limit) is not int or not 1 <= limit <= MAX_ANSWER:
        shown = limit if type(limit) is int and abs(limit) < 10**12 else type(limit).__name__
        raise InvalidAnswerLimit(f"an integer from 1 to {MAX_ANSWER} is required, {shown} given")
    return limit


def read_hit(value: object) -> Hit | None:
    """Return a hit from a `Hit` or an exported mapping, or None where it is malformed; exact types count."""
    try:
        if type(value) is Hit:
            checked_hit_fields(_claims(value), Hit.SCHEMA)
            return value
        # One copy: a mapping of the caller's own making may answer differently each time it is asked.
        return Hit.from_dict(dict(value)) if isinstance(value, Mapping) else None
    except (InvalidHit, TypeError, AttributeError, LookupError):
        return None


def _claims(hit: Hit) -> dict[str, Any]:
    """Return the fields as `to_dict` exports them, without walking into a value of another type, however deep."""
    channels = hit.channels
    if type(channels) is not tuple or any(type(item) is not ChannelRank for item in channels):
        raise InvalidHit(f"channels: a tuple of ChannelRank is required, {type(channels).__name__} given")
    named = {item.channel: {"rank": item.rank, "score": item.score} for item in channels}
    if len(named) != len(channels):
        raise InvalidHit(f"channels: each at most once, {len(named)} names for {len(channels)} ranks given")
    return {item.name: getattr(hit, item.name) for item in fields(hit)} | {"schema": hit.SCHEMA, "channels": named}


def verdict(hit: Hit | None, context: Context, standing: Standing | None, chunk: ChunkRow | None) -> Verdict:
    """Return the first verdict that applies, in the order of CIT-5.

    Example:
        >>> verdict(None, Context("acme", "alice"), None, None)
        'malformed'
    """
    if hit is None:
        return "malformed"
    if hit.tenant != context.tenant:
        return "other tenant"
    if hit.principal != context.principal:
        return "other principal"
    if standing is None or not standing.document.live:
        return "deleted"
    document = standing.document
    if granted_by(standing.acl, context) is None:
        return "access withdrawn"
    if hit.acl_revision != document.acl_revision:
        return "ACL changed"
    if hit.revision != document.revision or hit.document_sha256 != document.sha256:
        return "revision changed"
    if chunk is None or chunk.doc_key != document.doc_key or (hit.start, hit.end) != (chunk.start, chunk.end):
        return "chunk missing"
    if hit.chunk_sha256 != chunk.sha256:
        return "text altered"
    return "valid" if standing.intact and _agrees(document, chunk) else "store corrupted"


def _agrees(document: DocumentRow, chunk: ChunkRow) -> bool:
    return chunk.text == document.body[chunk.start : chunk.end] and digest(chunk.text) == chunk.sha256


class Desk:
    """Judges hits against the store; inside one read transaction, each document's digest computed once."""

    def __init__(self, connection: Connection, context: Context) -> None:
        self._connection, self._context = connection, context
        self._standings: dict[str, Standing | None] = {}

    def _standing(self, doc_id: str) -> Standing | None:
        if doc_id not in self._standings:
            document = find_document(self._connection, self._context.tenant, doc_id)
            self._standings[doc_id] = None if document is None else self._stands(document)
        return self._standings[doc_id]

    def _stands(self, document: DocumentRow) -> Standing:
        acl = acl_of(self._connection, document.doc_key)
        return Standing(document, acl, digest(document.body) == document.sha256)

    def judge(self, value: object) -> tuple[Verdict, Hit | None, Evidence | None]:
        """Return the verdict on one hit, the hit as it was read, and the evidence of a valid one."""
        hit = read_hit(value)
        if hit is None or hit.tenant != self._context.tenant or hit.principal != self._context.principal:
            return verdict(hit, self._context, None, None), hit, None
        standing = self._standing(hit.doc_id)
        chunk = find_chunk(self._connection, hit.chunk_key)
        found = verdict(hit, self._context, standing, chunk)
        if found != "valid" or standing is None or chunk is None:
            return found, hit, None
        return found, hit, evidence_of(standing, chunk, self._context)


def line_range(body: str, start: int, end: int) -> tuple[int, int]:
    """Return the first and the last line of code points `[start, end)`, counted from 1; only line feeds count (PRJ-2).

    Example:
        >>> line_range("一\\n二\\n", 2, 4)
        (2, 2)
    """
    return body.count("\n", 0, start) + 1, body.count("\n", 0, max(start, end - 1)) + 1


def evidence_of(standing: Standing, chunk: ChunkRow, context: Context) -> Evidence:
    """Return the quotation of a chunk that was found valid; every field comes from the store."""
    document = standing.document
    line_start, line_end = line_range(document.body, chunk.start, chunk.end)
    return Evidence(
        chunk_key=chunk.chunk_key,
        tenant=document.tenant,
        doc_id=document.doc_id,
        title=document.title,
        heading=chunk.heading,
        heading_path=chunk.heading_path,
        revision=document.revision,
        acl_revision=document.acl_revision,
        document_sha256=document.sha256,
        source_sha256=document.source_sha256,
        start=chunk.start,
        end=chunk.end,
        line_start=line_start,
        line_end=line_end,
        sha256=chunk.sha256,
        quote=chunk.text,
        granted_by=granted_by(standing.acl, context) or "",
        provenance=document.provenance,
    )


def _overlaps(one: Evidence, other: Evidence) -> bool:
    same = (one.doc_id, one.revision) == (other.doc_id, other.revision)
    return same and one.start < other.end and other.start < one.end


def answer(
    connection: Connection,
    hits: Sequence[Any],
    context: Context,
    limit: int,
    tell: Callable[[Verdict], object] | None = None,
) -> Answer:
    """Return up to `limit` disjoint quotations of the hits that hold now, in the order of the hits (CIT-1…CIT-4).

    `tell` is given the verdict on each hit that is looked at, for counting (OBS-3); the answer says nothing of it.
    """
    chosen: list[Evidence] = []
    with connection.read():
        desk = Desk(connection, context)
        for value in hits:
            found, _, evidence = desk.judge(value)
            if tell is not None:
                tell(found)
            if evidence is not None and not any(_overlaps(evidence, other) for other in chosen):
                chosen.append(evidence)
            if len(chosen) == limit:
                break
    if not chosen:
        return Answer("abstain", ABSTENTION, ())
    return Answer("extractive", "\n\n".join(evidence.quote for evidence in chosen), tuple(chosen))


def audit(connection: Connection, hits: Sequence[Any], context: Context) -> tuple[Judged, ...]:
    """Return the verdict on every hit; a maintenance view, never for end users (CIT-5)."""
    made = []
    with connection.read():
        desk = Desk(connection, context)
        for position, value in enumerate(hits):
            found, hit, _ = desk.judge(value)
            made.append(Judged.of(position, found, hit))
    return tuple(made)
