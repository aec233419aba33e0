"""Can the SQLite of this Python do what the store needs? Tried on a database in memory, not read off a version."""

import sqlite3
from contextlib import closing

from kbretrieval.store.schema import CREATE_FTS, FTS_TABLE

MEMORY = ":memory:"


def has_fts5() -> bool:
    """Return whether the store's own FTS5 table can be made, filled and ranked; Chinese terms included.

    Example:
        >>> has_fts5()
        True
    """
    try:
        with closing(sqlite3.connect(MEMORY)) as connection:
            connection.execute(CREATE_FTS)
            connection.execute(f"INSERT INTO {FTS_TABLE} (rowid, terms) VALUES (7, ?)", ("退款 款政 refund_1",))
            found = connection.execute(
                f"SELECT rowid, bm25({FTS_TABLE}) < 0 FROM {FTS_TABLE} WHERE {FTS_TABLE} MATCH ?",
                ('"款政" OR "refund_1"',),
            ).fetchall()
    except sqlite3.Error:
        return False
    return found == [(7, 1)]


def has_strict() -> bool:
    """Return whether STRICT tables are supported, that is, refuse a value of another type.

    Example:
        >>> has_strict()
        True
    """
    try:
        with closing(sqlite3.connect(MEMORY)) as connection:
            connection.execute("CREATE TABLE probe (number INTEGER NOT NULL) STRICT")
            try:
                connection.execute("INSERT INTO probe VALUES ('text')")
            except sqlite3.IntegrityError:
                return True
    except sqlite3.Error:
        return False
    return False
