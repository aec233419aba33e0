"""Everything that the index returns: frozen, typed, with `to_dict()` and a schema version.

Field names are the field's standard terms. Coordinates are code points of the projection, `[start, end)`; digests are
hexadecimal SHA-256; no field is a probability.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar, Literal, overload

from kbretrieval.errors import InvalidParameter
from kbretrieval.hit_format import checked_hit_fields
from kbretrieval.identity import Provenance
from kbretrieval.options import SearchOptions

ABSTENTION = "没有当前权限下可核查的证据。"


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    return value.to_dict() if hasattr(value, "to_dict") else value


class Exported:
    """Gives a frozen dataclass `to_dict()`: its schema version, then its fields in order."""

    __slots__ = ()
    SCHEMA: ClassVar[str]

    def to_dict(self) -> dict[str, Any]:
        """Return the schema version and the fields, ready for JSON."""
        return {"schema": self.SCHEMA} | {f.name: _plain(getattr(self, f.name)) for f in fields(self)}  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True)
class UpsertResult(Exported):
    """What a content event did: `indexed` or `unchanged`; counts are of the stored version."""

    SCHEMA: ClassVar[str] = "kbretrieval.upsert/1"

    state: Literal["indexed", "unchanged"]
    tenant: str
    doc_id: str
    revision: int
    acl_revision: int
    chunks: int
    sha256: str
    truncated_chunks: int
    controls: int


@dataclass(frozen=True, slots=True)
class AclResult(Exported):
    """What a policy event did: the ACL revision that is stored now."""

    SCHEMA: ClassVar[str] = "kbretrieval.acl/1"

    state: Literal["replaced"]
    tenant: str
    doc_id: str
    acl_revision: int


@dataclass(frozen=True, slots=True)
class DeleteResult(Exported):
    """What a delete did: `deleted` (a tombstone was made or moved) or `unchanged`."""

    SCHEMA: ClassVar[str] = "kbretrieval.delete/1"

    state: Literal["deleted", "unchanged"]
    tenant: str
    doc_id: str
    revision: int
    acl_revision: int


@dataclass(frozen=True, slots=True)
class ChannelRank:
    """Where a channel placed a chunk: rank from 1, and the raw score (fts5: SQLite's bm25, smaller is better)."""

    channel: str
    rank: int
    score: float


@dataclass(frozen=True, slots=True)
class Hit(Exported):
    """A fused result: a voucher that `answer` still has to check, never an authorisation (CIT-1).

    Identity fields decide whether it is honoured; text, title, heading, channels, fused and title_overlap only
    describe it (CIT-2). start and end are code points of the projection, `[start, end)`; fused is what the fusion made
    of the channels, title_overlap a share from 0.0 to 1.0: comparable within one search alone, and no probability.
    """

    SCHEMA: ClassVar[str] = "kbretrieval.hit/1"

    chunk_key: int
    tenant: str
    doc_id: str
    revision: int
    acl_revision: int
    document_sha256: str
    chunk_sha256: str
    start: int
    end: int
    principal: str
    text: str
    title: str
    heading: str
    channels: tuple[ChannelRank, ...]
    fused: float
    title_overlap: float

    def to_dict(self) -> dict[str, Any]:
        """Return the hit as JSON would hold it; `channels` maps a channel to rank and score."""
        made = Exported.to_dict(self)
        made["channels"] = {item.channel: {"rank": item.rank, "score": item.score} for item in self.channels}
        return made

    @classmethod
    def from_dict(cls, value: Mapping[str, Any]) -> "Hit":
        """Return the hit that `to_dict` exported; anything else is `invalid_hit` (CIT-2).

        A cached hit is judged like a fresh one: exact keys, exact types.
        """
        values = checked_hit_fields(value, cls.SCHEMA)
        channels = tuple(ChannelRank(*item) for item in values.pop("channels"))
        return cls(channels=channels, **values)

    def channel(self, name: str) -> ChannelRank | None:
        """Return the rank and score in one channel, or None where the chunk is absent."""
        return next((item for item in self.channels if item.channel == name), None)


@dataclass(frozen=True, slots=True)
class ChannelTrace(Exported):
    """What one channel did, in numbers that depend on the caller's own rows alone (fts5's statistics excepted).

    `state` is `run` or `skipped`, with a `reason` (`mode`, `no_terms`). eligible: rows that the caller may read;
    scored: those with a score; below_floor, beyond_window: cut; returned: ranked. terms_used of terms_given took part.
    Where more than 512 dense vectors lie so near the floor that their int8 rows cannot tell, below_floor and
    beyond_window are estimates with an exact sum; what is returned never is one.
    """

    SCHEMA: ClassVar[str] = "kbretrieval.channel/1"

    channel: str
    state: Literal["run", "skipped"]
    reason: str | None
    method: str
    statistics: str
    floor: float | None
    terms_given: int
    terms_used: int
    eligible: int
    scored: int
    below_floor: int
    beyond_window: int
    returned: int


@dataclass(frozen=True, slots=True)
class SearchResult(Exported, Sequence[Hit]):
    """A sequence of hits, best first, with what was done to get them; no text but the hits' own (OBS-1, RRF-3)."""

    SCHEMA: ClassVar[str] = "kbretrieval.search/1"

    hits: tuple[Hit, ...]
    mode: str
    options: SearchOptions
    channels: tuple[ChannelTrace, ...]
    fusion: str
    weights: tuple[float, ...]
    reranker: str
    encoder: str

    @overload
    def __getitem__(self, index: int) -> Hit: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Hit, ...]: ...
    def __getitem__(self, index: int | slice) -> Hit | tuple[Hit, ...]:
        return self.hits[index]

    def __len__(self) -> int:
        return len(self.hits)

    def channel(self, name: str) -> ChannelTrace:
        """Return what one channel did: `lexical` or `vector`; another name raises `invalid_parameter`."""
        found = [trace for trace in self.channels if trace.channel == name]
        if not found:
            raise InvalidParameter(f"channel: one of {len(self.channels)} that a search has is required, another given")
        return found[0]


@dataclass(frozen=True, slots=True)
class Evidence(Exported):
    """A quotation that was just re-read from the store (CIT-2, CIT-6): what the document says, not that it is true.

    `quote` is `body[start:end]` of the projection whose digest is `document_sha256`, in code points; `sha256` is the
    quotation's own, of its UTF-8 bytes. Lines count from 1, by LF alone, both ends included. `granted_by` is the ACL
    entry that let the caller read it. `project(source, format).body[start:end]` makes the quotation anew.
    """

    SCHEMA: ClassVar[str] = "kbretrieval.evidence/1"

    chunk_key: int
    tenant: str
    doc_id: str
    title: str
    heading: str
    heading_path: tuple[str, ...]
    revision: int
    acl_revision: int
    document_sha256: str
    source_sha256: str
    start: int
    end: int
    line_start: int
    line_end: int
    sha256: str
    quote: str
    granted_by: str
    provenance: Provenance | None


@dataclass(frozen=True, slots=True)
class Answer(Exported):
    """`extractive`: quotations joined by a blank line. `abstain`: nothing about why (ACL-8). No language model (CIT-4).

    Example:
        >>> Answer("abstain", ABSTENTION, ()).to_dict()["evidence"]
        []
    """

    SCHEMA: ClassVar[str] = "kbretrieval.answer/1"

    state: Literal["extractive", "abstain"]
    answer: str
    evidence: tuple[Evidence, ...]
    non_llm: bool = field(default=True)


@dataclass(frozen=True, slots=True)
class DocumentStatus(Exported):
    """Maintenance view of one document: `absent`, `live` or `deleted`, with its orders, digests and policy."""

    SCHEMA: ClassVar[str] = "kbretrieval.status/1"

    state: Literal["absent", "live", "deleted"]
    tenant: str
    doc_id: str
    revision: int | None
    acl_revision: int | None
    acl: tuple[str, ...]
    title: str | None
    format: str | None
    chunks: int
    sha256: str | None
    source_sha256: str | None
    content_commit: int | None
    acl_commit: int | None
    sqlite: str
    provenance: Provenance | None = None


@dataclass(frozen=True, slots=True)
class Fault(Exported):
    """One thing that `check()` found: a stable code, and where."""

    SCHEMA: ClassVar[str] = "kbretrieval.fault/1"

    code: str
    tenant: str | None
    doc_id: str | None
    chunk_key: int | None


@dataclass(frozen=True, slots=True)
class PurgeResult(Exported):
    """What `purge()` did: FTS5 rows written anew, titles of tombstones emptied, file sizes in bytes."""

    SCHEMA: ClassVar[str] = "kbretrieval.purge/1"

    fts_rows: int
    titles_blanked: int
    bytes_before: int
    bytes_after: int


@dataclass(frozen=True, slots=True)
class RepairResult(Exported):
    """What `repair_derived()` did: documents whose rows were made anew, faults before, and faults that are left."""

    SCHEMA: ClassVar[str] = "kbretrieval.repair/1"

    documents: int
    before: tuple[Fault, ...]
    left: tuple[Fault, ...]
