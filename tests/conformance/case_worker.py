"""A process that runs functions of a case: alone, at one moment with another, or until it is stricken.

Run as a module; see tests/faults/workers.py.
"""

import json
import sqlite3
import sys
import time
from collections.abc import Callable
from typing import Any
from unittest.mock import patch

from kbretrieval import Index, TermEncoder
from kbretrieval.store.connection import Connection
from tests.conformance.case_functions import unpacked
from tests.conformance.case_values import plain_names
from tests.faults import stricken

HELD: list[sqlite3.Connection] = []


def _until(moment: float) -> None:
    while time.time() < moment:
        pass


def call(function: str, moment: float) -> Any:
    """Call a function at a moment."""
    made = unpacked(function, plain_names())
    _until(moment)
    return made()


def on_index(function: str, path: str, window: list[int], moment: float) -> Any:
    """Call a function with an index of one's own at a moment."""
    made = unpacked(function, plain_names())
    with Index.open(path, TermEncoder(), *window) as index:
        _until(moment)
        return made(index)


def hold(path: str) -> bool:
    """Begin to read, and go on reading."""
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("BEGIN")
    connection.execute("SELECT count(*) FROM sqlite_master").fetchall()
    HELD.append(connection)
    return True


def release(seconds: float) -> bool:
    """End what `hold` began after so many seconds."""
    time.sleep(seconds)
    HELD.pop().close()
    return True


def strike(function: str, window: list[int], **order: Any) -> list[str | None]:
    """Take one step in a child that strace strikes; see `stricken.strike`."""
    step = unpacked(function, plain_names())

    def opened(path: str) -> Index:
        return Index.open(path, TermEncoder(), *window)

    with patch.object(stricken, "opened", opened), patch.dict(stricken.STEPS, {"step": step}):
        return stricken.strike(**order, step="step", retry=False)


def ready() -> bool:
    """Say that the process runs and has imported everything."""
    return True


DEEDS: dict[str, Callable[..., Any]] = {deed.__name__: deed for deed in (call, on_index, hold, release, strike, ready)}


def _without_syncs() -> None:
    """Nobody cuts the power, so every connection may leave it to the system when bytes reach the disk."""
    original = Connection.__init__

    def opened(self: Connection, *arguments: Any, **named: Any) -> None:
        original(self, *arguments, **named)
        self.run("PRAGMA synchronous=OFF")

    Connection.__init__ = opened  # type: ignore[method-assign]


def main() -> None:
    """Do what each line says and say what came of it."""
    if "without-syncs" in sys.argv[1:]:
        _without_syncs()
    for line in sys.stdin:
        order = json.loads(line)
        print(json.dumps(DEEDS[order.pop("do")](**order)), flush=True)


if __name__ == "__main__":
    main()
