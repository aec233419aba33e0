"""Commits: their numbers, and the chain of stamps that tells a forerunner from another file's commit (CON-6)."""

import hashlib
import json
from dataclasses import dataclass

from kbretrieval.errors import IndexCorrupt
from kbretrieval.store.connection import Connection
from kbretrieval.store.documents import expect

KEPT_COMMITS = 65_536
STAMP_BYTES = 16


def current_commit(connection: Connection) -> int:
    """Return the store-wide commit number, 0 for a new store (CON-6)."""
    rows = connection.run("SELECT value FROM counters WHERE name = 'commit'")
    if not rows or type(rows[0][0]) is not int:
        raise IndexCorrupt("the commit counter is missing")
    return rows[0][0]


@dataclass(frozen=True, slots=True)
class Head:
    """The latest commit: its number, and its stamp, a digest of every change up to it; of an empty store 0 and b""."""

    number: int
    stamp: bytes


def head(connection: Connection) -> Head:
    """Return the latest commit; inside a transaction."""
    rows = connection.run(
        "SELECT c.value, l.stamp FROM counters c LEFT JOIN commits l ON l.number = c.value WHERE c.name = 'commit'"
    )
    if not rows or type(rows[0][0]) is not int:
        raise IndexCorrupt("the commit counter is missing")
    number, stamp = rows[0]
    return Head(number, expect((stamp or b"",), (bytes,), "commit")[0])


def descends(connection: Connection, known: Head) -> bool:
    """Tell whether what is stored grew out of a commit that was read earlier, by way of the latest 65,536 commits.

    Not so after a backup was restored over the file, even if as many commits followed; after a switch of generations;
    and not where that commit is so old that its stamp is gone.
    """
    return known.number == 0 or _stamp(connection, known.number) == known.stamp


def _stamp(connection: Connection, number: int) -> bytes | None:
    rows = connection.run("SELECT stamp FROM commits WHERE number = ?", (number,))
    return bytes(expect(rows[0], (bytes,), "commit")[0]) if rows else None


def next_commit(connection: Connection, *event: str | int) -> int:
    """Raise the commit number by one and return it; inside a write transaction.

    `event` says what changes, completely: two stores with equal stamps went through the same changes.
    """
    before = head(connection)
    number = before.number + 1
    change = json.dumps(event, ensure_ascii=False).encode("utf-8", "surrogatepass")
    stamp = hashlib.sha256(before.stamp + change).digest()[:STAMP_BYTES]
    connection.run("UPDATE counters SET value = ? WHERE name = 'commit'", (number,))
    connection.run("INSERT INTO commits VALUES (?, ?)", (number, stamp))
    connection.run("DELETE FROM commits WHERE number <= ?", (number - KEPT_COMMITS,))
    return number


def forget_forerunners(connection: Connection, number: int) -> None:
    """Drop the stamps of all commits before this one, so that nothing descends from them: every snapshot begins anew.

    What changed since an older commit is found by the documents' commit numbers, which a switch of generations leaves
    as they are.
    """
    connection.run("DELETE FROM commits WHERE number < ?", (number,))
