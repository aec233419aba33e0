"""A snapshot: everything the channels score, as of one commit of one tenant.

A snapshot never changes. A later commit gives a later snapshot that shares the old arrays: changed documents lose
their rows (`alive`), their new rows stand in a short tail segment, and the tail is joined when it grows. What changed
is read from the documents' own commit numbers; tombstones are never dropped, so no change can be missed.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kbretrieval.identity import Context
from kbretrieval.snapshot.acls import AclTable, Numbers
from kbretrieval.snapshot.eligible import Eligible, Mask, view_of
from kbretrieval.snapshot.segment import ROW_BITS, Ints, Segment, build_segment, joined
from kbretrieval.store.commits import Head
from kbretrieval.store.connection import Connection
from kbretrieval.store.policies import acls_of, changed_documents
from kbretrieval.store.search_rows import search_keys, search_rows

SEGMENT_ROWS = 1 << ROW_BITS
CACHED_VIEWS = 8
CACHED_CALLERS = 256


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Segments in key order; over all their rows `alive` and the number of each row's ACL in `acls`."""

    tenant: str
    head: Head
    segments: tuple[Segment, ...]
    alive: Mask
    acl_numbers: Numbers
    acls: AclTable
    _callers: dict[frozenset[str], bytes] = field(default_factory=dict, compare=False, repr=False)
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
        """Return the rows that `context` may read now: live, of its tenant, with an ACL entry that admits it.

        Contexts that the same ACLs admit share a view; which ones these are is worked out once a context.
        """
        mine = frozenset(context.entries()) if context.tenant == self.tenant else frozenset()
        with self._lock:
            view = self._views.get(self._callers.get(mine, b""))
        if view is None:
            allowed = self.acls.admitted(mine, int(self.acl_numbers.max(initial=-1)) + 1)
            key = blake2b(allowed.tobytes(), digest_size=16).digest()
            with self._lock:
                view = self._views.get(key)
            view = view or view_of(self.alive & allowed[self.acl_numbers], self.segments)
            self._keep(mine, key, view)
        return view

    def _keep(self, mine: frozenset[str], key: bytes, view: Eligible) -> None:
        with self._lock:
            _put(self._callers, mine, key, CACHED_CALLERS)
            _put(self._views, key, view, CACHED_VIEWS)


def _put(kept: dict[Any, Any], key: object, value: object, most: int) -> None:
    kept[key] = value
    while len(kept) > most:
        kept.pop(next(iter(kept)))


def empty_snapshot(tenant: str) -> Snapshot:
    """Return the snapshot of a tenant before any commit."""
    return Snapshot(tenant, Head(0, b""), (), np.zeros(0, np.bool_), np.zeros(0, np.int32), AclTable())


def advanced(old: Snapshot, connection: Connection, now: Head, dimension: int) -> Snapshot:
    """Return the snapshot of the commit `now`, made from a forerunner; inside a read transaction of that commit."""
    changed = changed_documents(connection, old.tenant, old.head.number)
    if not changed:
        return replace(old, head=now)
    keys, doc_keys = search_keys(connection, old.tenant, old.head.number)
    parts = range(0, len(keys), SEGMENT_ROWS)
    tail = [
        _read_segment(connection, keys[at : at + SEGMENT_ROWS], doc_keys[at : at + SEGMENT_ROWS], dimension)
        for at in parts
    ]
    gone = [item.doc_key for item in changed if item.content_commit > old.head.number or not item.live]
    alive = old.alive & ~np.isin(old.column("doc_keys"), np.asarray(gone, np.int64))
    acls = acls_of(connection, [item.doc_key for item in changed if item.live])
    numbers = _numbered(old, [item.doc_key for item in changed if item.live], doc_keys, acls)
    made = Snapshot(
        old.tenant,
        now,
        (*old.segments, *tail),
        np.concatenate([alive, np.ones(len(keys), np.bool_)]),
        numbers,
        old.acls,
    )
    return _thinned(tidied(made))


def _read_segment(connection: Connection, keys: Ints, doc_keys: Ints, dimension: int) -> Segment:
    return build_segment(search_rows(connection, keys.tolist(), dimension), doc_keys, dimension)


def _numbered(old: Snapshot, changed: Sequence[int], tail: Ints, acls: Mapping[int, tuple[str, ...]]) -> Numbers:
    """Return the ACL number of every row, old rows first, then the tail's."""
    keys = np.array(sorted(changed), np.int64)
    values = np.fromiter((old.acls.number_of(acls.get(key, ())) for key in keys.tolist()), np.int32, len(keys))
    numbers = np.concatenate([old.acl_numbers, np.zeros(len(tail), np.int32)])
    doc_keys = np.concatenate([old.column("doc_keys"), tail])
    rows = np.flatnonzero(np.isin(doc_keys, keys))
    numbers[rows] = values[np.searchsorted(keys, doc_keys[rows])]
    return numbers


def _thinned(snapshot: Snapshot) -> Snapshot:
    if not snapshot.acls.crowded(snapshot.acl_numbers):
        return snapshot
    acls, numbers = snapshot.acls.renumbered(snapshot.acl_numbers)
    return replace(snapshot, acls=acls, acl_numbers=numbers, _callers={}, _views={})


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
        snapshot.head,
        kept,
        np.concatenate([snapshot.alive[:begin], np.ones(len(segment), np.bool_), snapshot.alive[stop:]]),
        np.concatenate(
            [snapshot.acl_numbers[:begin], snapshot.acl_numbers[begin:stop][alive], snapshot.acl_numbers[stop:]]
        ),
        snapshot.acls,
    )
