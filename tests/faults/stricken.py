"""Runs under strace: for each order, a forked child does one step and is killed or refused at its n-th system call.

strace injects at the K-th call that a process makes on the index's files. A child makes K - n calls of the same kind
on a file of no importance first, so the fault meets the n-th call of the step. Nothing of the code under test knows.
"""

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from kbretrieval import Index, KBError, lifecycle
from kbretrieval.store.connection import Connection
from tests.unit.doubles import Table

OLD = "# 规程\n\n旧版第一段说明。\n\n旧版第二段说明。"
NEW = "# 规程\n\n新版第一段说明，略长一些。\n\n新版第二段。\n\n新版第三段。"
STEPS: dict[str, Callable[[Index], object]] = {
    "upsert": lambda index: index.upsert("acme", "r", 2, "markdown", NEW, ["alice"]),
    "set_acl": lambda index: index.set_acl("acme", "r", ["bob"], 1),
    "delete": lambda index: index.delete("acme", "r", 2),
    "purge": lambda index: index.purge(),
}


def opened(path: str | Path) -> Index:
    """The index of these tests, with vectors, so that every derived table is written."""
    return Index.open(path, encoder=Table("table-2"), chunk_size=20, overlap=5)


def _padded(call: str, decoy: str, times: int) -> None:
    handle = os.open(decoy, os.O_RDWR)
    calls: dict[str, Callable[[], object]] = {
        "pwrite64": lambda: os.pwrite(handle, b"x", 0),
        "fdatasync": lambda: os.fdatasync(handle),
        "ftruncate": lambda: os.ftruncate(handle, 1),
        "unlink": lambda: os.unlink(decoy + ".absent"),  # noqa: PTH108 - the same system call as SQLite's
    }
    for _ in range(times):
        try:
            calls[call]()
        except FileNotFoundError:
            continue
    os.close(handle)


def _code(step: Callable[[Index], object], index: Index) -> str | None:
    try:
        step(index)
    except KBError as error:
        return error.code
    return None


def _stricken(path: str, decoy: str, call: str, padding: int, step: str, retry: bool, told: int) -> None:
    """In the child: the step, what it said, and with `retry` once more; then out, without closing anything."""
    index = opened(path)
    _padded(call, decoy, padding)
    os.write(told, (json.dumps(_code(STEPS[step], index)) + "\n").encode("ascii"))
    if retry:
        os.write(told, (json.dumps(_code(STEPS[step], index)) + "\n").encode("ascii"))


def strike(**order: Any) -> list[str | None]:
    """Return what the child said before it was killed or left: a code, or None for success; [] when it was killed."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            _stricken(**order, told=writer)
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader, encoding="ascii") as pipe:
        said = [json.loads(line) for line in pipe]
    os.waitpid(child, 0)
    return said


def _commit_early() -> None:
    """A broken build: the document is committed before its chunks are written."""
    original = lifecycle.insert_chunks

    def early(connection: Connection, *arguments: Any) -> None:
        connection.run("COMMIT")
        connection.run("BEGIN IMMEDIATE")
        original(connection, *arguments)

    lifecycle.insert_chunks = early


def main() -> None:
    """Strike once for each line of input."""
    if "broken" in sys.argv[1:]:
        _commit_early()
    for line in sys.stdin:
        print(json.dumps(strike(**json.loads(line))), flush=True)


if __name__ == "__main__":
    main()
