"""Migrations that end too early: for each order, a forked child begins one and is killed at its n-th statement.

Run as a module; see process.py. Also searches that go on while another process migrates.
"""

import json
import os
import signal
import sys
from pathlib import Path
from typing import Any
from unittest.mock import patch

from kbretrieval import Context, Index, KBError, migration
from kbretrieval.store.connection import Connection
from tests.unit.doubles import RandomVectors

ALICE = Context("acme", "alice")
DENSE = RandomVectors(4)
OLD, NEW = (60, 10), (30, 5)
WORDS = ("住宿", "餐费")


def page(word: str, lines: int = 3) -> str:
    """A document of about 25 code points a line."""
    return f"# {word}\n\n" + "\n\n".join(f"第{n}条，{word}每晚限额{n}00元，凭票据实报销。" for n in range(lines))


def begun(path: Path, lines: int = 3) -> None:
    """Make the index from which every migration starts."""
    with Index.open(path, DENSE, *OLD) as index:
        for word in WORDS:
            index.upsert("acme", word, 1, "markdown", page(word, lines), ["alice"])
        index.upsert("acme", "gone", 1, "markdown", page("旧闻"), ["alice"])
        index.delete("acme", "gone", 2)


def migrated(path: Path, **options: Any) -> migration.MigrationResult:
    """Migrate to the other window, and each document in a transaction of its own."""
    with patch.object(migration, "CHUNKS_IN_ONE_TRANSACTION", 1):  # the tests beside this one run in this process
        return migration.migrate(path, DENSE, *NEW, **options)


def _struck(number: int, after: bool) -> None:
    """Kill this process at its n-th statement, before it or right after it."""
    seen = [0]
    original = Connection._waiting

    def waiting(self: Connection, call: Any) -> Any:
        seen[0] += 1
        if seen[0] == number and not after:
            os.kill(os.getpid(), signal.SIGKILL)
        made = original(self, call)
        if seen[0] == number:
            os.kill(os.getpid(), signal.SIGKILL)
        return made

    Connection._waiting = waiting  # type: ignore[method-assign,assignment]


def _switch_in_two() -> None:
    """A broken build: the old generation has lost its name before the new one has it."""
    original = migration.switch

    def switch(connection: Connection, contract: Any) -> int:
        run = connection.run

        def halting(statement: str, values: Any = ()) -> Any:
            rows = run(statement, values)
            if statement.startswith("ALTER TABLE chunks"):
                run("COMMIT")
                run("BEGIN IMMEDIATE")
            return rows

        connection.run = halting  # type: ignore[method-assign]
        return original(connection, contract)

    migration.switch = switch


def strike(path: str, number: int, after: bool) -> int:
    """Begin a migration in a child; return the signal by which it ended, 0 for none."""
    child = os.fork()
    if child == 0:
        try:
            _struck(number, after)
            migrated(Path(path))
        finally:
            os._exit(0)
    _, status = os.waitpid(child, 0)
    return os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0


def count(path: str) -> int:
    """Migrate, and return how many statements that took."""
    seen, original = [0], Connection._waiting

    def waiting(self: Connection, call: Any) -> Any:
        seen[0] += 1
        return original(self, call)

    Connection._waiting = waiting  # type: ignore[method-assign,assignment]
    try:
        migrated(Path(path))
    finally:
        Connection._waiting = original  # type: ignore[method-assign]
    return seen[0]


def search(path: str, until: int) -> list[Any]:
    """Search until the window is as wide as said; return the spans of each result, and the code of a refusal."""
    seen: list[Any] = []
    with Index.open(path, DENSE) as index:
        while not seen or index.contract.chunk_size != until:
            try:
                hits = index.search("每晚限额住宿餐费", ALICE, 100)
                found = [[hit.doc_id, hit.start, hit.end] for hit in hits]
                quoted = [item.doc_id for item in index.answer(list(hits)[:2], ALICE).evidence]
            except KBError as error:
                return [*seen, error.code]
            if not seen or found != seen[-1][0]:
                print(json.dumps("seen"), flush=True)
                seen.append([found, len(quoted)])
    return seen


def main() -> None:
    """Do what each line says."""
    if "broken" in sys.argv[1:]:
        _switch_in_two()
    for line in sys.stdin:
        order = json.loads(line)
        deed: Any = search if "until" in order else strike if "number" in order else count
        done = deed(**order)
        print(json.dumps(done), flush=True)


if __name__ == "__main__":
    main()
