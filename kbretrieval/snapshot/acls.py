"""Distinct ACLs by number, and which of them admit a context.

Most documents share few ACLs, but each may have its own: whom a context's entries admit is looked up entry by entry,
not ACL by ACL. A snapshot and those that follow it share one table, which only grows; a number never changes its
meaning, so an older snapshot is not disturbed. When most numbers are out of use, the next snapshot begins a new table.
"""

from collections.abc import Iterable
from threading import Lock

import numpy as np
from numpy.typing import NDArray

Acl = tuple[str, ...]
Numbers = NDArray[np.int32]

SPARE = 64


class AclTable:
    """ACLs, their entries sorted, numbered from 0 in the order of their first use.

    Example:
        >>> table = AclTable()
        >>> table.number_of(("alice",)), table.number_of(("bob", "alice")), table.number_of(("alice",))
        (0, 1, 0)
        >>> table.admitted(["alice", "group:hr"], 2).tolist()
        [True, True]
    """

    def __init__(self) -> None:
        self._acls: dict[Acl, int] = {}
        self._holding: dict[str, list[int]] = {}
        self._lock = Lock()
        self.crowded_at = SPARE

    def __len__(self) -> int:
        return len(self._acls)

    def number_of(self, acl: Iterable[str]) -> int:
        """Return the number of an ACL, a new one if it has none yet."""
        key = tuple(sorted(acl))
        with self._lock:
            number = self._acls.get(key)
            if number is None:
                number = self._acls[key] = len(self._acls)
                for entry in key:
                    self._holding.setdefault(entry, []).append(number)
            return number

    def admitted(self, entries: Iterable[str], count: int) -> NDArray[np.bool_]:
        """Return which of the first `count` ACLs hold one of the entries, shape (count,)."""
        made = np.zeros(count, np.bool_)
        with self._lock:
            held = [number for entry in entries for number in self._holding.get(entry, ()) if number < count]
        made[held] = True
        return made

    def crowded(self, used: Numbers) -> bool:
        """Tell whether the table is twice as long as the numbers in use need, looking only when it has grown."""
        if len(self) < self.crowded_at:
            return False
        needed = len(np.unique(used))
        self.crowded_at = 2 * needed + SPARE
        return len(self) >= self.crowded_at

    def renumbered(self, used: Numbers) -> tuple["AclTable", Numbers]:
        """Return a table of the used ACLs alone, and the numbers in it."""
        with self._lock:
            acls = list(self._acls)
        made, (numbers, places) = AclTable(), np.unique(used, return_inverse=True)
        fresh = np.fromiter((made.number_of(acls[number]) for number in numbers), np.int32, len(numbers))
        made.crowded_at = 2 * len(made) + SPARE
        return made, fresh[places]
