"""The file itself, before SQLite opens it: made for its owner alone, and whose it is (CON-2)."""

import errno
import os
import sqlite3
import stat
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import IO

from kbretrieval.errors import NotAnIndex, StorageFull, StorageIOError

HEADER_BYTES = 100

Identity = tuple[int, int]


def create_private(path: Path) -> bool:
    """Make an empty file with mode 0600 and return True, or return False where something stands there already.

    Raises `storage_full` and `storage_io_error`.
    """
    try:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        return False
    except OSError as error:
        kind = StorageFull if error.errno == errno.ENOSPC else StorageIOError
        raise kind(f"the file cannot be made (errno {error.errno})") from None
    os.close(handle)
    return True


def identity(path: Path) -> Identity | None:
    """Return what tells a file from every other that there is (device and number); None where nothing can be found."""
    try:
        found = path.stat()
    except (OSError, ValueError):
        return None
    return found.st_dev, found.st_ino


@contextmanager
def replacing(path: Path) -> Iterator[IO[bytes]]:
    """Give a file to write that replaces `path` at once when the block has ended; makes the folders above it.

    Where that fails nothing is left beside `path`: on a full disk, where a folder has that name, or on Windows while a
    reader has the old file open. Raises `OSError` for the caller to name.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def is_empty(path: Path) -> bool:
    """Tell whether a regular file has no bytes; raises `not_an_index` for anything but a regular file."""
    return _size(path) == 0


def is_sqlite(path: Path) -> bool:
    """Tell whether a regular file begins as an SQLite file does; raises `not_an_index` for anything but a regular file.

    SQLite reads it, as `stored_application_id` says, and takes a few bytes of any kind for the beginning of a database.
    """
    if _size(path) < HEADER_BYTES:
        return False
    try:
        stored_application_id(path)
    except NotAnIndex:
        return False
    return True


def _size(path: Path) -> int:
    try:
        found = path.stat()
    except OSError as error:
        raise StorageIOError(f"the file cannot be read (errno {error.errno})") from None
    if not stat.S_ISREG(found.st_mode):
        raise NotAnIndex("a regular file is required, something else is there")
    return found.st_size


def stored_application_id(path: Path) -> int | None:
    """Return the application id in the header of an SQLite file; None where only a locked read can tell.

    The file is read by SQLite and never by `open()`: closing any descriptor of a file ends every POSIX lock that this
    process holds on it, so looking at the header would end the transaction of another open index. An immutable
    connection takes no lock and rolls no journal back; a writable schema lets it read the header of a short file.
    """
    try:
        with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro&immutable=1", uri=True)) as probe:
            probe.execute("PRAGMA writable_schema=ON")
            return int(probe.execute("PRAGMA application_id").fetchone()[0])
    except sqlite3.Error as error:
        if getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_NOTADB:
            raise NotAnIndex("an SQLite file is required, another kind of file is there") from None
        return None
