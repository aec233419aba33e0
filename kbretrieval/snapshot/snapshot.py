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
from kbretrieval.snapshot.segment import Ints, Segment, build_segment, joined
from kbretrieval.store.chunk_rows import search_rows
from kbretrieval.store.connection import Connection
from kbretrieval.store.policies import Changed, acls_of, changed_documents

Mask = NDArray[np.bool_]

MAX_TAILS = 8
MIN_TAIL_ROWS = 512
TAIL_SHARE = 0.05
CACHED_VIEWS = 64


@dataclass(frozen=True, slots=True)
class Eligible:
    """The rows that one context may read: a mask over all rows, their number, their mean length in terms."""

    mask: Mask
    count: int
    mean_length: float


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
        """Return a per-row column over all segments: chunk_keys, doc_keys, lengths, squares or damaged."""
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
        count = int(np.count_nonzero(mask))
        total = int(self.column("lengths")[mask].sum())
        return Eligible(mask, count, total / count if count else 0.0)


def empty_snapshot(tenant: str) -> Snapshot:
    """Return the snapshot of a tenant before any commit."""
    return Snapshot(tenant, 0, (), np.zeros(0, np.bool_), np.zeros(0, np.int64), ())


def advanced(old: Snapshot, connection: Connection, commit: int, dimension: int) -> Snapshot:
    """Return the snapshot of `commit`, made from an older one; inside a read transaction of that commit."""
    changed = changed_documents(connection, old.tenant, old.commit)
    if not changed:
        return replace(old, commit=commit)
    fresh = search_rows(connection, old.tenant, old.commit)
    tail = build_segment(fresh, dimension)
    segments = (*old.segments, tail) if len(tail) else old.segments
    doc_keys = np.concatenate([segment.doc_keys for segment in segments]) if segments else np.zeros(0, np.int64)
    alive = np.concatenate(
        [old.alive & ~np.isin(old.column("doc_keys"), _rewritten(changed, old.commit)), np.ones(len(tail), np.bool_)]
    )
    numbers, acls = _numbered(
        old, changed, doc_keys, acls_of(connection, [item.doc_key for item in changed if item.live])
    )
    return _tidied(Snapshot(old.tenant, commit, segments, alive, numbers, acls))


def _rewritten(changed: Sequence[Changed], since: int) -> Ints:
    keys = [item.doc_key for item in changed if item.content_commit > since or not item.live]
    return np.asarray(keys, np.int64)


def _numbered(
    old: Snapshot, changed: Sequence[Changed], doc_keys: Ints, acls: dict[int, tuple[str, ...]]
) -> tuple[Ints, tuple[tuple[str, ...], ...]]:
    known = {acl: number for number, acl in enumerate(old.acls)}
    numbers = np.zeros(len(doc_keys), np.int64)
    numbers[: len(old.acl_numbers)] = old.acl_numbers
    order = np.argsort(doc_keys, kind="stable")
    by_document = doc_keys[order]
    for item in changed:
        begin, end = np.searchsorted(by_document, (item.doc_key, item.doc_key + 1))
        acl = tuple(sorted(acls.get(item.doc_key, ())))
        numbers[order[begin:end]] = known.setdefault(acl, len(known))
    return numbers, tuple(known)


def _tidied(snapshot: Snapshot) -> Snapshot:
    """Join the tail where it became long; the first segment is rebuilt only when the tail passes its share."""
    segments = snapshot.segments
    if len(segments) < 2:
        return snapshot
    tail_rows = sum(len(segment) for segment in segments[1:])
    if tail_rows > max(MIN_TAIL_ROWS, TAIL_SHARE * len(segments[0])):
        return _joined_from(snapshot, 0)
    return _joined_from(snapshot, 1) if len(segments) > MAX_TAILS else snapshot


def _joined_from(snapshot: Snapshot, first: int) -> Snapshot:
    kept, tail = snapshot.segments[:first], snapshot.segments[first:]
    begin = sum(len(segment) for segment in kept)
    alive = snapshot.alive[begin:]
    segment = joined(tail, alive)
    return Snapshot(
        snapshot.tenant,
        snapshot.commit,
        (*kept, segment),
        np.concatenate([snapshot.alive[:begin], np.ones(len(segment), np.bool_)]),
        np.concatenate([snapshot.acl_numbers[:begin], snapshot.acl_numbers[begin:][alive]]),
        snapshot.acls,
    )
