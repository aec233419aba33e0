"""A snapshot: everything the channels score, as of one commit of one tenant.

A snapshot never changes. A later commit gives a later snapshot that shares the old arrays: changed documents lose
their rows (`alive`), their new rows stand in a short tail segment, and the tail is joined when it grows. What changed
is read from the documents' own commit numbers; tombstones are never dropped, so no change can be missed.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kbretrieval.identity import Context
from kbretrieval.snapshot.eligible import Eligible, Mask, view_of
from kbretrieval.snapshot.segment import ROW_BITS, Ints, Segment, build_segment, joined
from kbretrieval.store.connection import Connection
from kbretrieval.store.policies import Changed, acls_of, changed_documents
from kbretrieval.store.search_rows import search_keys, search_rows

SEGMENT_ROWS = 1 << ROW_BITS
CACHED_VIEWS = 8


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Segments in key order; over all their rows `alive` and the number of each row's ACL in `acls`."""

    tenant: str
    commit: int
    segments: tuple[Segment, ...]
    alive: Mask
    acl_numbers: Ints
    acls: tuple[tuple[str, ...], ...]
    _views: dict[bytes, Eligible] = field(default_factory=dict, compare=False, repr=False)
    _columns: dict[str, NDArray[Any]] = field(default_factory=dict, compare=False, repr=False)
    _lock: Lock = field(default_factory=Lock, compare=False, repr=False)

    def column(self, name: str) -> NDArray[Any]:
        """Return a per-row column over all segments: chunk_keys, doc_keys or squares."""
        with self._lock:
            if name not in self._columns:
                parts = [getattr(segment, name) for segment in self.segments]
                self._columns[name] = np.concatenate(parts) if parts else np.zeros(0, np.int64)
            return self._columns[name]

    def eligible(self, context: Context) -> Eligible:
        """Return the rows that `context` may read now: live, of its tenant, with an ACL entry that admits it."""
        mine = frozenset(context.entries())
        allowed = np.fromiter((not mine.isdisjoint(acl) for acl in self.acls), np.bool_, len(self.acls))
        key = allowed.tobytes() if context.tenant == self.tenant else b"none"
        with self._lock:
            view = self._views.get(key)
        if view is None:
            view = self._view(allowed if context.tenant == self.tenant else np.zeros_like(allowed))
            with self._lock:
                if len(self._views) >= CACHED_VIEWS:
                    self._views.pop(next(iter(self._views)))
                self._views[key] = view
        return view

    def _view(self, allowed: Mask) -> Eligible:
        mask = self.alive & allowed[self.acl_numbers] if len(allowed) else np.zeros(len(self.alive), np.bool_)
        return view_of(mask, self.segments)


def empty_snapshot(tenant: str) -> Snapshot:
    """Return the snapshot of a tenant before any commit."""
    return Snapshot(tenant, 0, (), np.zeros(0, np.bool_), np.zeros(0, np.int64), ())


def advanced(old: Snapshot, connection: Connection, commit: int, dimension: int) -> Snapshot:
    """Return the snapshot of `commit`, made from an older one; inside a read transaction of that commit."""
    changed = changed_documents(connection, old.tenant, old.commit)
    if not changed:
        return replace(old, commit=commit)
    keys, doc_keys = search_keys(connection, old.tenant, old.commit)
    parts = range(0, len(keys), SEGMENT_ROWS)
    tail = [
        _read_segment(connection, keys[at : at + SEGMENT_ROWS], doc_keys[at : at + SEGMENT_ROWS], dimension)
        for at in parts
    ]
    gone = [item.doc_key for item in changed if item.content_commit > old.commit or not item.live]
    alive = old.alive & ~np.isin(old.column("doc_keys"), np.asarray(gone, np.int64))
    acls = acls_of(connection, [item.doc_key for item in changed if item.live])
    numbers, known = _numbered(old, changed, doc_keys, acls)
    made = Snapshot(
        old.tenant,
        commit,
        (*old.segments, *tail),
        np.concatenate([alive, np.ones(len(keys), np.bool_)]),
        numbers,
        known,
    )
    return tidied(made)


def _read_segment(connection: Connection, keys: Ints, doc_keys: Ints, dimension: int) -> Segment:
    return build_segment(search_rows(connection, keys.tolist(), dimension), doc_keys, dimension)


def _numbered(
    old: Snapshot, changed: Sequence[Changed], tail: Ints, acls: dict[int, tuple[str, ...]]
) -> tuple[Ints, tuple[tuple[str, ...], ...]]:
    """Return the ACL number of every row, old rows first, then the tail's; and the ACLs by number."""
    known = {acl: number for number, acl in enumerate(old.acls)}
    number_of = {
        item.doc_key: known.setdefault(tuple(sorted(acls.get(item.doc_key, ()))), len(known)) for item in changed
    }
    keys = np.fromiter(sorted(number_of), np.int64, len(number_of))
    values = np.fromiter((number_of[key] for key in sorted(number_of)), np.int64, len(number_of))
    numbers = np.concatenate([old.acl_numbers, np.zeros(len(tail), np.int64)])
    doc_keys = np.concatenate([old.column("doc_keys"), tail])
    rows = np.flatnonzero(np.isin(doc_keys, keys))
    numbers[rows] = values[np.searchsorted(keys, doc_keys[rows])]
    return numbers, tuple(known)


def tidied(snapshot: Snapshot) -> Snapshot:
    """Join segments at the end while the last is at least half of the one before it (and neither is full).

    Each row is joined about log2(SEGMENT_ROWS) times in its life, and a snapshot has few segments. A full segment is
    written anew alone when half of its rows are dead.
    """
    while (first := _joinable(snapshot.segments)) is not None:
        snapshot = _joined_from(snapshot, first, len(snapshot.segments))
    base = 0
    for number, segment in enumerate(snapshot.segments):
        if 2 * int(np.count_nonzero(snapshot.alive[base : base + len(segment)])) < len(segment):
            return _joined_from(snapshot, number, number + 1)
        base += len(segment)
    return snapshot


def _joinable(segments: Sequence[Segment]) -> int | None:
    if len(segments) < 2:
        return None
    one, other = len(segments[-2]), len(segments[-1])
    return len(segments) - 2 if other * 2 >= one and one + other <= SEGMENT_ROWS else None


def _joined_from(snapshot: Snapshot, first: int, end: int) -> Snapshot:
    segments = snapshot.segments
    begin = sum(len(segment) for segment in segments[:first])
    stop = begin + sum(len(segment) for segment in segments[first:end])
    alive = snapshot.alive[begin:stop]
    segment = joined(segments[first:end], alive)
    kept = (*segments[:first], *([segment] if len(segment) else []), *segments[end:])
    return Snapshot(
        snapshot.tenant,
        snapshot.commit,
        kept,
        np.concatenate([snapshot.alive[:begin], np.ones(len(segment), np.bool_), snapshot.alive[stop:]]),
        np.concatenate(
            [snapshot.acl_numbers[:begin], snapshot.acl_numbers[begin:stop][alive], snapshot.acl_numbers[stop:]]
        ),
        snapshot.acls,
    )
