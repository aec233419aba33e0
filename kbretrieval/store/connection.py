"""One SQLite connection with typed errors, its own waiting, and transactions that are whole or nothing.

SQLite's busy handler is off: it starves writers. Every BEGIN, read and COMMIT is retried with a short random pause
until a deadline, then `busy` (CON-5). Writes begin IMMEDIATE, so that a read inside one is never stale (UPD-1).
"""

import os
import random
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, TypeVar

from kbretrieval.errors import (
    Busy,
    IndexClosed,
    IndexCorrupt,
    IndexForked,
    IndexReadOnly,
    IndexReplaced,
    InvalidPath,
    KBError,
    StorageFull,
    StorageIOError,
)
from kbretrieval.store.files import Identity, create_private, identity

DEFAULT_WAIT_SECONDS = 30.0
PAUSE_SECONDS = (0.0005, 0.004)
RUN_SUFFIX = "-run"

Row = tuple[Any, ...]
Made = TypeVar("Made")

_PRIMARY = 0xFF
_KINDS: dict[int, type[KBError]] = {
    sqlite3.SQLITE_BUSY: Busy,
    sqlite3.SQLITE_LOCKED: Busy,
    sqlite3.SQLITE_FULL: StorageFull,
    sqlite3.SQLITE_IOERR: StorageIOError,
    sqlite3.SQLITE_CANTOPEN: StorageIOError,
    sqlite3.SQLITE_PERM: StorageIOError,
    sqlite3.SQLITE_AUTH: IndexReadOnly,
    sqlite3.SQLITE_READONLY: IndexReadOnly,
    sqlite3.SQLITE_CORRUPT: IndexCorrupt,
    sqlite3.SQLITE_NOTADB: IndexCorrupt,
}


def store_error(error: sqlite3.Error) -> KBError:
    """Return the typed refusal for a driver error, told by its code and never by its wording (ERR-2).

    Example:
        >>> store_error(sqlite3.DatabaseError("text")).code
        'index_corrupt'
    """
    code = getattr(error, "sqlite_errorcode", None)
    if not isinstance(code, int):
        return IndexCorrupt("a stored value could not be read")
    kind = _KINDS.get(code & _PRIMARY, IndexCorrupt)
    return kind(f"SQLite answered {getattr(error, 'sqlite_errorname', 'an error')} ({code})")


def _is_busy(error: sqlite3.Error) -> bool:
    code = getattr(error, "sqlite_errorcode", None)
    return isinstance(code, int) and code & _PRIMARY in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


def _decoded(raw: bytes) -> str:
    # A damaged text must come out as another text, so that its digest fails, and not as a driver error.
    return raw.decode("utf-8", "replace")


def _connected(path: Path) -> tuple[sqlite3.Connection, Identity | None]:
    """Open a file, and return which one it was that was opened.

    On an overlay, opening a file to write makes a copy of it, which is another one. Somebody may replace it just then.
    """
    for last in (False, False, True):
        before = identity(path)
        try:
            raw = sqlite3.connect(path, timeout=0, isolation_level=None, check_same_thread=False)
        except sqlite3.Error as error:
            raise store_error(error) from None
        after = identity(path)
        if last or before in (None, after):
            break
        raw.close()
    return raw, after


class _Waited(threading.local):
    """Seconds that each thread has waited for others, at this connection or at another's locks."""

    seconds = 0.0


class Connection:
    """A connection to one file, usable from several threads; a forked child and a closed one are refused."""

    def __init__(self, path: Path, wait_seconds: float = DEFAULT_WAIT_SECONDS) -> None:
        self._path = path
        self._wait_seconds = wait_seconds
        self._pauses = random.Random()
        self._lock = threading.RLock()
        self._waited = _Waited()
        self._process = os.getpid()
        self._closed = False
        self._raw, self._file = _connected(path)
        self._raw.text_factory = _decoded
        try:
            for pragma in ("busy_timeout=0", "synchronous=FULL", "trusted_schema=OFF", "cell_size_check=ON"):
                self.run(f"PRAGMA {pragma}")
        except BaseException:
            self._raw.close()
            raise

    def waited_seconds(self) -> float:
        """Return how long the calling thread has waited so far until a lock was free, of a thread or of the store."""
        return self._waited.seconds

    def check_usable(self) -> None:
        """Raise `index_forked` in a forked child and `index_closed` after `close()`."""
        if os.getpid() != self._process:
            raise IndexForked(f"opened by process {self._process}, used in process {os.getpid()}")
        if self._closed:
            raise IndexClosed("the index was closed before this call")

    def _check_place(self) -> None:
        # SQLite goes on reading a file whose name was given to another: no revocation would ever be seen (ACL-7).
        found = identity(self._path)
        if found != self._file:
            there = "no file" if found is None else "another file"
            raise IndexReplaced(f"the file that was opened is required, {there} is in its place; open the index anew")

    def close(self) -> None:
        """Close the connection; a second close is harmless, and so is one in a forked child."""
        if os.getpid() != self._process:
            return
        with self._lock:
            if not self._closed:
                self._closed = True
                self._raw.close()

    def run(self, statement: str, values: Sequence[object] = ()) -> list[Row]:
        """Return all rows of one statement, waiting while the store is busy."""
        return self._waiting(lambda: self._raw.execute(statement, values).fetchall())

    def run_many(self, statement: str, rows: Sequence[Sequence[object]]) -> None:
        """Run one statement for each row; inside a write transaction only."""
        self._waiting(lambda: self._raw.executemany(statement, rows))

    def insert(self, statement: str, values: Sequence[object]) -> int:
        """Run one INSERT and return the key that SQLite gave to the row."""
        key = self._waiting(lambda: self._raw.execute(statement, values).lastrowid)
        if key is None:
            raise IndexCorrupt("an INSERT gave no key")
        return key

    def _waiting(self, call: Callable[[], Made]) -> Made:
        deadline = time.monotonic() + self._wait_seconds
        while True:
            try:
                return call()
            except sqlite3.ProgrammingError:
                self.check_usable()
                raise IndexCorrupt("a statement did not fit the stored schema") from None
            except sqlite3.Error as error:
                if not _is_busy(error):
                    raise store_error(error) from None
                began = time.monotonic()
                if began >= deadline:
                    raise Busy(f"waited {self._wait_seconds:g} s, another connection still holds the store") from None
            except (OverflowError, UnicodeError):
                raise IndexCorrupt("a value could not be handed to the store") from None
            time.sleep(self._pauses.uniform(*PAUSE_SECONDS))
            self._waited.seconds += time.monotonic() - began

    @contextmanager
    def write(self) -> Iterator[None]:
        """A write transaction: all or nothing, read again inside, one writer at a time.

        Example:
            >>> import tempfile
            >>> with tempfile.TemporaryDirectory() as folder:
            ...     connection = Connection(Path(folder) / "a.sqlite")
            ...     with connection.write():
            ...         _ = connection.run("CREATE TABLE t (n INTEGER)")
            ...     connection.run("SELECT count(*) FROM t")
            ...     connection.close()
            [(0,)]
        """
        with self._transaction("BEGIN IMMEDIATE"):
            yield

    @contextmanager
    def read(self) -> Iterator[None]:
        """A read transaction: everything inside sees one commit."""
        with self._transaction("BEGIN"):
            yield

    def give_way(self) -> None:
        """Pause for longer than a waiting connection does, between the transactions of a run that has many."""
        time.sleep(2 * PAUSE_SECONDS[1])

    @contextmanager
    def lone_run(self, wait_seconds: float | None = None) -> Iterator[None]:
        """Hold the one lock of runs that take many transactions; another such run waits, then is `busy` (SYN-7).

        It is the write lock of a second file beside the index: it ends with its holder, however that ends, and holds up
        nobody's single writes. The file stays: whoever removed it would let two runs in.
        """
        beside = Path(os.path.realpath(self._path) + RUN_SUFFIX)
        create_private(beside)
        lock = Connection(beside, self._wait_seconds if wait_seconds is None else wait_seconds)
        try:
            with lock.write():
                yield
        finally:
            lock.close()

    @contextmanager
    def _transaction(self, begin: str) -> Iterator[None]:
        began = time.monotonic()
        with self._lock:
            self._waited.seconds += time.monotonic() - began
            self.check_usable()
            self._check_place()
            self.run(begin)
            try:
                yield
                self.run("COMMIT")
            except BaseException:
                self._roll_back()
                raise

    def _roll_back(self) -> None:
        # SQLite itself rolls back after some errors; a second attempt would only hide the first cause.
        if not self._closed and self._raw.in_transaction:
            self.run("ROLLBACK")

    def outside_transaction(self, statement: str) -> list[Row]:
        """Run a statement that SQLite refuses inside a transaction (VACUUM)."""
        with self._lock:
            self.check_usable()
            self._check_place()
            return self.run(statement)

    def backup_to(self, target: Path) -> None:
        """Copy the whole store into the new file `target` with SQLite's backup API (CON-7); nothing is left half made.

        Raises `invalid_path` where something stands there already.
        """
        if not create_private(target):
            raise InvalidPath("a new file is required, one exists")
        try:
            with self.read():
                # The read lock first, with our own waiting: SQLite's copy would wait for a writer without end.
                self.run("SELECT count(*) FROM sqlite_schema")
                self._copy_into(target)
        except BaseException:
            target.unlink(missing_ok=True)
            raise

    def _copy_into(self, target: Path) -> None:
        try:
            with closing(sqlite3.connect(target)) as copy:
                self._raw.backup(copy)
        except sqlite3.Error as error:
            raise store_error(error) from None
