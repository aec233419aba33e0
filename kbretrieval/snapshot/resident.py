"""The snapshots that one open index keeps: the latest of each tenant it was asked for, at most eight."""

from threading import Lock

from kbretrieval.snapshot.snapshot import Snapshot, advanced, empty_snapshot
from kbretrieval.store.connection import Connection
from kbretrieval.store.documents import current_commit

KEPT_TENANTS = 8


class Resident:
    """Brings a tenant's snapshot up to the commit of the surrounding read transaction."""

    def __init__(self, dimension: int) -> None:
        self._dimension = dimension
        self._snapshots: dict[str, Snapshot] = {}
        self._lock = Lock()

    def forget(self) -> None:
        """Let go of every snapshot: a superseded row of a deleted document stays in one until its tail is joined."""
        with self._lock:
            self._snapshots.clear()

    def current(self, connection: Connection, tenant: str) -> Snapshot:
        """Return the snapshot of the current commit; inside a read transaction (VEC-8)."""
        commit = current_commit(connection)
        with self._lock:
            known = self._snapshots.pop(tenant, None)
        if known is None or known.commit > commit:  # a restored backup may lie behind what was kept
            known = empty_snapshot(tenant)
        snapshot = known if known.commit == commit else advanced(known, connection, commit, self._dimension)
        with self._lock:
            self._snapshots[tenant] = snapshot
            while len(self._snapshots) > KEPT_TENANTS:
                self._snapshots.pop(next(iter(self._snapshots)))
        return snapshot
