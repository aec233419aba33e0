"""Opening a file: is it ours, is it safe, does it hold the contract that the caller gives (CON-1…CON-4)."""

import os
import sqlite3
import stat
from pathlib import Path

from kbretrieval.errors import (
    IndexCorrupt,
    IndexReadOnly,
    InvalidPath,
    JournalModeUnsafe,
    KBError,
    NotAnIndex,
    StorageFull,
    StorageIOError,
)
from kbretrieval.store.connection import Connection
from kbretrieval.store.contract import Contract, Wanted, read_contract, write_contract
from kbretrieval.store.schema import APPLICATION_ID, STATEMENTS

HEADER_BYTES = 100
_MAGIC = b"SQLite format 3\x00"
_WAL = 2
_ENOSPC = 28


def checked_path(value: object) -> Path:
    """Return an absolute path, or raise `invalid_path`. `:memory:` is a file name like any other."""
    if not isinstance(value, (str, os.PathLike)):
        raise InvalidPath(f"a path is required, {type(value).__name__} given")
    name = os.fspath(value)
    if not isinstance(name, str) or not name or "\x00" in name:
        raise InvalidPath("a non-empty name without NUL is required, another given")
    try:
        name.encode("utf-8")
    except UnicodeEncodeError:
        raise InvalidPath("a name that is valid UTF-8 is required, another given") from None
    return Path(name).absolute()


def _header(path: Path, wanted: Wanted) -> bytes:
    """Return the first bytes of the file, made anew with mode 0600 where there is none; empty for a new file."""
    if not path.exists():
        wanted.for_new_file()
    try:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        pass
    except OSError as error:
        kind = StorageFull if error.errno == _ENOSPC else StorageIOError
        raise kind(f"the file cannot be made (errno {error.errno})") from None
    else:
        os.close(handle)
        return b""
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            raise NotAnIndex("a regular file is required, something else is there")
        with path.open("rb") as file:
            return file.read(HEADER_BYTES)
    except OSError as error:
        raise StorageIOError(f"the file cannot be read (errno {error.errno})") from None


def _check_header(header: bytes) -> None:
    if header and not header.startswith(_MAGIC):
        raise NotAnIndex("an SQLite file is required, another kind of file is there")
    if header and len(header) < HEADER_BYTES:
        raise IndexCorrupt(f"a header of {HEADER_BYTES} bytes is required, {len(header)} are there")
    if header:
        found = int.from_bytes(header[68:72], "big")
        if found != APPLICATION_ID:
            raise NotAnIndex(f"application id {APPLICATION_ID:#x} is required, {found:#x} is there")


def _leave_wal(connection: Connection, header: bytes) -> None:
    if _WAL not in header[18:20]:
        return
    try:
        mode = connection.run("PRAGMA journal_mode=DELETE")
    except KBError as error:
        raise JournalModeUnsafe(f"the file is in WAL mode and its conversion ended with {error.code}") from None
    if mode != [("delete",)]:
        raise JournalModeUnsafe(f"the file stays in WAL mode on SQLite {sqlite3.sqlite_version}; close its other users")


def _agree(connection: Connection, wanted: Wanted) -> Contract:
    """Create the schema, or compare; inside one transaction, so that of two creators one wins (CON-3)."""
    (found,), (tables,) = (
        connection.run("PRAGMA application_id")[0],
        connection.run("SELECT count(*) FROM sqlite_schema")[0],
    )
    if found == 0 and tables == 0:
        contract = wanted.for_new_file()
        for statement in STATEMENTS:
            connection.run(statement)
        write_contract(connection, contract)
        return contract
    if found != APPLICATION_ID:
        raise NotAnIndex(f"application id {APPLICATION_ID:#x} is required, {found:#x} is there")
    stored = read_contract(connection)
    wanted.check_against(stored)
    return stored


def open_connection(path: Path, wanted: Wanted, wait_seconds: float) -> tuple[Connection, Contract]:
    """Return a connection and the contract that it agreed on.

    Raises `not_an_index`, `index_corrupt`, `journal_mode_unsafe`, `index_projection_contract_changed_rebuild_required`
    and store errors; a refused file is left as it was.
    """
    header = _header(path, wanted)
    _check_header(header)
    connection = Connection(path, wait_seconds)
    try:
        _leave_wal(connection, header)
        try:
            with connection.write():
                contract = _agree(connection, wanted)
        except IndexReadOnly:
            with connection.read():
                contract = _agree(connection, wanted)
    except BaseException:
        connection.close()
        raise
    return connection, contract
