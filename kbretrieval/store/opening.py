"""Opening a file: is it ours, is it safe, does it hold the contract that the caller gives (CON-1…CON-4)."""

import os
import sqlite3
from pathlib import Path

from kbretrieval.errors import IndexReadOnly, InvalidPath, JournalModeUnsafe, KBError, NotAnIndex
from kbretrieval.store.connection import Connection
from kbretrieval.store.contract import Contract, Wanted, read_contract, write_contract
from kbretrieval.store.files import create_private, is_empty, stored_application_id
from kbretrieval.store.schema import APPLICATION_ID, STATEMENTS


def checked_path(value: object) -> Path:
    """Return an absolute path, or raise `invalid_path`. `:memory:` is a file name like any other."""
    if not isinstance(value, (str, os.PathLike)):
        raise InvalidPath(f"a path is required, {type(value).__name__} given")
    name = os.fspath(value)
    if not isinstance(name, str) or not name or "\x00" in name:
        raise InvalidPath("a non-empty name without NUL is required, another given")
    try:
        # By way of the system's own encoding: where that is ASCII, arguments arrive escaped, and plain Chinese names
        # cannot be opened at all.
        os.fsencode(name).decode("utf-8")
    except UnicodeError:
        raise InvalidPath("a name that is valid UTF-8 is required, another given") from None
    return Path(name).absolute()


def _check_file(path: Path, wanted: Wanted) -> None:
    """Refuse what is no index of ours before anything could change it; make a new file where there is none."""
    if not os.path.exists(path):  # noqa: PTH110 - Path.exists raises for a name that is too long
        wanted.for_new_file()
    if create_private(path) or is_empty(path):
        return
    found = stored_application_id(path)
    if found not in (None, APPLICATION_ID):
        raise NotAnIndex(f"application id {APPLICATION_ID:#x} is required, {found:#x} is there")


def _leave_wal(connection: Connection) -> None:
    if connection.run("PRAGMA journal_mode") != [("wal",)]:
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
    _check_file(path, wanted)
    connection = Connection(path, wait_seconds)
    try:
        _leave_wal(connection)
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
