"""What `explain` answers: frozen records of coordinates, digests, orders and policy, without a text (OBS-5)."""

from dataclasses import dataclass
from typing import ClassVar, Literal

from kbretrieval.citation import Judged, Verdict
from kbretrieval.identity import Provenance
from kbretrieval.results import Exported
from kbretrieval.store.contract import Contract

Reason = Literal["granted", "no entry admits", "deleted", "absent"]


@dataclass(frozen=True, slots=True)
class Version(Exported):
    """Which projection version is stored: its orders, digests and length in code points.

    `intact`: the stored text has its digest. Of a tombstone the digests are those of what was deleted, its text is gone
    and `intact` None. `content_commit` is the commit that wrote it.
    """

    SCHEMA: ClassVar[str] = "kbretrieval.explained_version/1"

    projection: str
    format: str
    revision: int
    content_commit: int
    document_sha256: str
    source_sha256: str
    code_points: int
    intact: bool | None


@dataclass(frozen=True, slots=True)
class Access(Exported):
    """Whether a principal may read the document now, and why.

    `admitting` are the entries of `acl` that admit this context, `granted_by` the one that an answer names (CIT-6). The
    list as a whole holds since `acl_revision`, written by `acl_commit`; older lists are not kept.
    """

    SCHEMA: ClassVar[str] = "kbretrieval.explained_access/1"

    principal: str
    groups: tuple[str, ...]
    may_read: bool
    reason: Reason
    granted_by: str | None
    admitting: tuple[str, ...]
    acl: tuple[str, ...]
    acl_revision: int | None
    acl_commit: int | None


@dataclass(frozen=True, slots=True)
class ChunkPlace(Exported):
    """Where one chunk lies: code points `[start, end)` of the projection, lines from 1; `agrees`: slice and digest."""

    SCHEMA: ClassVar[str] = "kbretrieval.explained_chunk/1"

    number: int
    chunk_key: int
    start: int
    end: int
    line_start: int
    line_end: int
    sha256: str
    agrees: bool


@dataclass(frozen=True, slots=True)
class Source(Exported):
    """How a quotation is found again: digest of the source, digest of its projection, provenance, chunk table."""

    SCHEMA: ClassVar[str] = "kbretrieval.explained_source/1"

    source_sha256: str
    document_sha256: str
    provenance: Provenance | None
    chunks: tuple[ChunkPlace, ...]


@dataclass(frozen=True, slots=True)
class Rule(Exported):
    """One check of a citation, in their order (CIT-5): what a hit must carry, and the verdict if it does not.

    `holds` where no hit can change it: False makes every citation fail.
    """

    SCHEMA: ClassVar[str] = "kbretrieval.explained_rule/1"

    field: str
    required: str
    verdict: Verdict
    holds: bool | None


@dataclass(frozen=True, slots=True)
class Difference(Exported):
    """One fact of a hit that is not what is stored now."""

    SCHEMA: ClassVar[str] = "kbretrieval.explained_difference/1"

    field: str
    carried: int | str
    stored: int | str | None


@dataclass(frozen=True, slots=True)
class ExplainedHit(Exported):
    """The verdict on one kept hit, and every fact in which a hit of this document differs, not just the first one."""

    SCHEMA: ClassVar[str] = "kbretrieval.explained_hit/1"

    judged: Judged
    of_this_document: bool
    differences: tuple[Difference, ...]


@dataclass(frozen=True, slots=True)
class Explanation(Exported):
    """The four questions about one document and one principal, answered from one commit."""

    SCHEMA: ClassVar[str] = "kbretrieval.explanation/1"

    tenant: str
    doc_id: str
    state: Literal["absent", "live", "deleted"]
    contract: Contract
    version: Version | None
    access: Access
    source: Source | None
    rules: tuple[Rule, ...]
    hits: tuple[ExplainedHit, ...]
