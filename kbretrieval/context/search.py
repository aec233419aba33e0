"""Searching inside a scope: channels rank the bound documents alone, and say what they left out (CTX-4…CTX-9)."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from kbretrieval.chunking import Clusters
from kbretrieval.context.account import paid, reserved
from kbretrieval.context.authorization import stored_scope, usable
from kbretrieval.context.canonical import canonical_digest, utf8_bytes
from kbretrieval.context.records import Spent, settle_call
from kbretrieval.context.scope import Scope
from kbretrieval.context.selection import Piece
from kbretrieval.context.standing import Standing, bound_finding
from kbretrieval.engine import Engine
from kbretrieval.errors import ContextFieldRemoved, ContextInputInvalid
from kbretrieval.options import MAX_LIMIT, Mode, SearchOptions, checked_search
from kbretrieval.results import ChannelRank, ChannelTrace, Exported, Hit, SearchResult
from kbretrieval.retrieval import Search, checked_query
from kbretrieval.snapshot.eligible import Eligible, view_of
from kbretrieval.snapshot.snapshot import Snapshot
from kbretrieval.store.commits import Head

MAX_ROWS = 50
PREVIEW_POINTS = 120
# What a row shows at most: preview, title and heading, four bytes a code point.
ROW_BYTES = 4 * (PREVIEW_POINTS + 2 * 1024)
MESSAGES = {
    "empty_index": "这个范围里现在没有可检索的材料。",
    "no_match": "范围内有材料，但没有与查询相符的段落。",
}


@dataclass(frozen=True, slots=True)
class Row(Exported):
    """A candidate: where it stands, its title, and the beginning of its original text.

    `key` is `slice:` and the chunk's key, `document_key` is `doc:` and the document's name. `[start, end)` counts code
    points of the projection. `preview_cut` tells whether the text goes on.
    """

    SCHEMA: ClassVar[str] = "kbretrieval.context.row/1"

    key: str
    document_key: str
    doc_id: str
    title: str
    heading: str
    revision: int
    start: int
    end: int
    preview: str
    preview_cut: bool
    channels: tuple[ChannelRank, ...]
    fused: float

    def to_dict(self) -> dict[str, Any]:
        """Return the row as JSON would hold it; `channels` maps a channel to rank and score."""
        channels = {item.channel: {"rank": item.rank, "score": item.score} for item in self.channels}
        return Exported.to_dict(self) | {"channels": channels}

    @property
    def piece(self) -> Piece:
        """The stretch that this row stands for, ready for `assemble`."""
        return Piece(self.doc_id, self.start, self.end)


@dataclass(frozen=True, slots=True)
class Left(Exported):
    """How many documents or candidates were left out for one reason.

    Codes of refusals count bound documents; `below_floor` and `beyond_window` count chunks of one channel (`what`);
    `beyond_limit` counts ranked candidates that are not shown.
    """

    SCHEMA: ClassVar[str] = "kbretrieval.context.left/1"

    code: str
    what: str
    count: int


@dataclass(frozen=True, slots=True)
class Found(Exported):
    """Candidates inside a scope, best first; vouchers that every later step checks again.

    `empty_reason` is `empty_index` or `no_match`, with a `message`, where there is no row, and else None.
    `contract_sha256` and `commit` say from which index and which state of it the rows came; `stamp`, hexadecimal, is by
    what `check_generation` tells this commit from another file's of the same number.
    """

    SCHEMA: ClassVar[str] = "kbretrieval.context.found/2"

    scope: str
    call: str
    rows: tuple[Row, ...]
    left: tuple[Left, ...]
    empty_reason: str | None
    message: str | None
    channels: tuple[ChannelTrace, ...]
    weights: tuple[float, ...]
    contract_sha256: str
    commit: int
    stamp: str


class ScopedSearch(Search):
    """A search whose channels see the rows of some documents alone: an authorised set, made smaller (CTX-5)."""

    def __init__(self, engine: Engine, query: str, scope: Scope, doc_keys: Sequence[int], mode: Mode) -> None:
        # Two windows of this size never pass the limit: every candidate is ranked, or counted as beyond a window.
        options = SearchOptions(window=MAX_LIMIT // 2)
        super().__init__(engine, query, scope.context(), MAX_LIMIT, mode, options)
        self._doc_keys = np.asarray(sorted(doc_keys), np.int64)
        self.head = Head(0, b"")

    def eligible(self, snapshot: Snapshot) -> Eligible:
        """Return the rows of the scope's documents among those that the caller may read."""
        self.head = snapshot.head
        whole = super().eligible(snapshot)
        return view_of(whole.mask & np.isin(snapshot.column("doc_keys"), self._doc_keys), whole.segments)


def checked_request(query: object, limit: object, mode: object) -> str:
    """Return the query, refused before any index is read if it is blank (CTX-7)."""
    if not isinstance(query, str) or not query.strip():
        raise ContextInputInvalid("query: text that is not blank is required, another value given")
    if type(limit) is not int or not 1 <= limit <= MAX_ROWS:
        raise ContextInputInvalid(f"limit: an integer from 1 to {MAX_ROWS} is required, another given")
    checked_search(limit, mode, SearchOptions(), {})
    return checked_query(query)


def search(engine: Engine, given: Scope, query: str, limit: int, mode: Mode) -> Found:
    """Pay, search without holding a transaction, and give back what the rows shown did not use."""
    connection = engine.connection
    with connection.read():
        scope = stored_scope(connection, given)
    price = limit * ROW_BYTES
    call, (doc_keys, stale) = reserved(connection, scope, "search", lambda: _priced(engine, scope, price))
    searching = paid(connection, call, price, lambda: ScopedSearch(engine, query, scope, doc_keys, mode))
    result = paid(connection, call, price, searching.run)
    asked = _Asked(scope, call, limit, searching)
    return paid(connection, call, price, lambda: _settled(engine, asked, result, stale))


@dataclass(frozen=True, slots=True)
class _Asked:
    """A search that was paid for and ran."""

    scope: Scope
    call: str
    limit: int
    searching: ScopedSearch


def _priced(engine: Engine, scope: Scope, price: int) -> tuple[Spent, tuple[list[int], dict[str, str]]]:
    """Return the keys of the documents that may be searched, and by name the codes of those that may not."""
    if "text" not in scope.fields:
        raise ContextFieldRemoved(f"the field text is required, {', '.join(scope.fields)} allowed for the role")
    stale, now = _stale(engine, scope)
    keys = [now.sheets[bound.doc_id].doc_key for bound in scope.documents if bound.doc_id not in stale]
    return Spent(price, 0), (keys, stale)


def _stale(engine: Engine, scope: Scope) -> tuple[dict[str, str], Standing]:
    now = usable(engine.connection, scope, [bound.doc_id for bound in scope.documents])
    findings = {bound.doc_id: bound_finding(bound, now) for bound in scope.documents}
    return {doc_id: finding.code for doc_id, finding in findings.items() if finding is not None}, now


def _settled(engine: Engine, asked: _Asked, result: SearchResult, stale: Mapping[str, str]) -> Found:
    """Check the scope once more after its rows were read, and write what the rows shown cost."""
    with engine.connection.write():
        out = {**stale, **_stale(engine, asked.scope)[0]}
        found = _found(engine, asked, result, out)
        shown = sum(utf8_bytes(row.preview + row.title + row.heading) for row in found.rows)
        settle_call(engine.connection, asked.call, shown)
    return found


def _found(engine: Engine, asked: _Asked, result: SearchResult, out: Mapping[str, str]) -> Found:
    kept = [hit for hit in result.hits if hit.doc_id not in out]
    left = [Left(code, "documents", count) for code, count in sorted(Counter(out.values()).items())]
    for trace in result.channels:
        counts = (("below_floor", trace.below_floor), ("beyond_window", trace.beyond_window))
        left += [Left(code, trace.channel, count) for code, count in counts if count]
    if len(kept) > asked.limit:
        left.append(Left("beyond_limit", "candidates", len(kept) - asked.limit))
    some = result.channels[0].eligible > 0 and len(out) < len(asked.scope.documents)
    reason = None if kept else "no_match" if some else "empty_index"
    return Found(
        scope=asked.scope.id,
        call=asked.call,
        rows=tuple(_row(hit) for hit in kept[: asked.limit]),
        left=tuple(left),
        empty_reason=reason,
        message=MESSAGES[reason] if reason else None,
        channels=result.channels,
        weights=result.weights,
        contract_sha256=canonical_digest(engine.contract.to_dict()),
        commit=asked.searching.head.number,
        stamp=asked.searching.head.stamp.hex(),
    )


def _row(hit: Hit) -> Row:
    # No preview ends inside a grapheme cluster, unless one cluster is longer than a preview may be.
    shown = min(len(hit.text), Clusters(hit.text).back(PREVIEW_POINTS) or PREVIEW_POINTS)
    return Row(
        key=f"slice:{hit.chunk_key}",
        document_key=f"doc:{hit.doc_id}",
        doc_id=hit.doc_id,
        title=hit.title,
        heading=hit.heading,
        revision=hit.revision,
        start=hit.start,
        end=hit.end,
        preview=hit.text[:shown],
        preview_cut=shown < len(hit.text),
        channels=hit.channels,
        fused=hit.fused,
    )
