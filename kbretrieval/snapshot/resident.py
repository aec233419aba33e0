"""The snapshots that one open index keeps: the latest of each tenant it was asked for, at most eight."""

from collections.abc import Sequence
from threading import Lock

import numpy as np
from numpy.typing import NDArray

from kbretrieval.snapshot.scanners import Scanners
from kbretrieval.snapshot.snapshot import Snapshot, advanced, empty_snapshot
from kbretrieval.store.commits import descends, head
from kbretrieval.store.connection import Connection
from kbretrieval.store.contract import Contract, expect_contract

Vector = NDArray[np.float32]

KEPT_TENANTS = 8
SHELF_BYTES = 64 * 2**20


class Shelf:
    """float32 vectors that were read lately, by chunk key, at most 64 MiB in one matrix.

    A chunk key never names another chunk, and a chunk's vector never changes, so what stands here is right for every
    commit; whether a caller may read it was decided before it is asked for.
    """

    def __init__(self, dimension: int) -> None:
        self._most = SHELF_BYTES // max(1, 4 * dimension)
        self._matrix: Vector = np.zeros((0, dimension), np.float32)
        self._slots: dict[int, int] = {}
        self._keys: list[int] = []
        self._next = 0
        self._lock = Lock()

    def missing(self, keys: Sequence[int]) -> list[int]:
        """Return the keys whose vectors must be read."""
        with self._lock:
            return [key for key in keys if key not in self._slots]

    def put(self, keys: Sequence[int], vectors: Vector) -> None:
        """Keep the vectors of some keys, shape (len(keys), dimension); where the matrix is full the oldest go."""
        with self._lock:
            fresh = [at for at, key in enumerate(keys) if key not in self._slots][-self._most :]
            slots = self._free_slots(len(fresh))
            for at, slot in zip(fresh, slots, strict=True):
                self._keys[slot] = keys[at]
                self._slots[keys[at]] = slot
            self._matrix[slots] = vectors[fresh]

    def _free_slots(self, count: int) -> list[int]:
        """Return slots for `count` more keys: unused ones, then those of the keys that came first."""
        held = len(self._keys)
        unused = range(held, min(held + count, self._most))
        self._grow(unused.stop)
        self._keys += [0] * len(unused)
        again = [(self._next + number) % self._most for number in range(count - len(unused))]
        self._next = (self._next + len(again)) % self._most
        for slot in again:
            del self._slots[self._keys[slot]]
        return [*unused, *again]

    def _grow(self, rows: int) -> None:
        have, dimension = self._matrix.shape
        if rows > have:
            more = min(max(256, have, rows - have), self._most - have)
            self._matrix = np.concatenate([self._matrix, np.zeros((more, dimension), np.float32)])

    def get(self, keys: Sequence[int]) -> Vector | None:
        """Return a copy of the vectors of all keys in their order, or None where one is not here."""
        with self._lock:
            slots = [self._slots.get(key, -1) for key in keys]
            if not slots or min(slots) < 0:
                return None
            held: Vector = self._matrix[slots]
            return held

    def forget(self) -> None:
        """Let go of everything."""
        with self._lock:
            self._matrix = self._matrix[:0].copy()
            self._slots.clear()
            self._keys.clear()
            self._next = 0


class Resident:
    """Brings a tenant's snapshot up to the commit of the surrounding read transaction."""

    def __init__(self, contract: Contract) -> None:
        self._contract, self._dimension = contract, contract.dimension
        self.shelf = Shelf(contract.dimension)
        self.scanners = Scanners()
        self._snapshots: dict[str, Snapshot] = {}
        self._lock = Lock()

    def forget(self) -> None:
        """Let go of every snapshot: a superseded row of a deleted document stays in one until its tail is joined."""
        with self._lock:
            self._snapshots.clear()
        self.shelf = Shelf(self._dimension)  # a search that is under way keeps the one that it began with

    def close(self) -> None:
        """Let go of everything, the threads included."""
        self.forget()
        self.scanners.close()

    def _anew(self, known: Snapshot) -> Snapshot:
        if known.head.number:
            self.forget()
        return empty_snapshot(known.tenant)

    def current(self, connection: Connection, tenant: str) -> Snapshot:
        """Return the snapshot of the current commit; inside a read transaction (VEC-8).

        Raises `index_projection_contract_changed_rebuild_required` after a switch of generations, which leaves no
        commit to go on from; so the contract is read only where a snapshot begins anew (MIG-2).
        """
        now = head(connection)
        with self._lock:
            known = self._snapshots.pop(tenant, None) or empty_snapshot(tenant)
        if known.head != now and not (known.head.number and descends(connection, known.head)):
            # Far behind, after a switch, or a backup was restored over the file: commit numbers and keys are then given
            # a second time.
            expect_contract(connection, self._contract)
            known = self._anew(known)
        snapshot = known if known.head == now else advanced(known, connection, now, self._dimension)
        with self._lock:
            self._snapshots[tenant] = snapshot
            while len(self._snapshots) > KEPT_TENANTS:
                self._snapshots.pop(next(iter(self._snapshots)))
        return snapshot
