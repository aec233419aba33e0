"""Runs of a source that end too early: for each order, a forked child begins one and is killed, or stands still.

Run as a module; see process.py. The child opens the index itself, so that no lock of its parent's is in its way.
"""

import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

from kbretrieval import Index
from kbretrieval.store.connection import Connection
from kbretrieval.sync import Policy, SyncReport, Tick, synchronise
from tests.unit.sync_place import Shelf, policy

OLD = dict.fromkeys(("a.md", "b.md", "c.md", "gone.md", "back.md"), "旧")
NEW = {"a.md": "新", "b.md": "旧", "c.md": "新", "new.md": "新", "back.md": "新"}
OLD_RULES = policy(("alice", "bob"), b=("alice",))
NEW_RULES = policy(("alice", "bob"), a=("bob", "carol"), b=("*",), c=())


def synchronised(path: Path, files: dict[str, str], rules: Policy, **options: Any) -> SyncReport:
    """One run with the waiting time of a patient caller."""
    with Index.open(path, wait_seconds=options.pop("wait_seconds", 10.0)) as index:
        return synchronise(index, Shelf(dict(files)), rules, tenant="acme", restore_all=True, **options)


def begun(path: Path) -> None:
    """Make the state from which every run starts: documents to change in every way."""
    synchronised(path, OLD, OLD_RULES)
    synchronised(path, {name: text for name, text in OLD.items() if name != "back.md"}, OLD_RULES)


def _struck_at_commit(number: int, committed: bool) -> None:
    """Kill this process at its n-th COMMIT, before it or right after it."""
    original, seen = Connection.run, [0]

    def run(self: Connection, statement: str, values: Any = ()) -> Any:
        seen[0] += statement == "COMMIT"
        if statement == "COMMIT" and seen[0] == number and not committed:
            os.kill(os.getpid(), signal.SIGKILL)
        rows = original(self, statement, values)
        if statement == "COMMIT" and seen[0] == number:
            os.kill(os.getpid(), signal.SIGKILL)
        return rows

    Connection.run = run  # type: ignore[method-assign]


def _begin(path: str, how: str, number: int) -> None:
    def progress(tick: Tick) -> None:
        if how == "stop" and tick.phase == "write" and tick.done == number:
            os.kill(os.getpid(), signal.SIGSTOP)

    if how != "stop":
        _struck_at_commit(number, committed=how == "after")
    synchronised(Path(path), NEW, NEW_RULES, progress=progress)


def strike(path: str, how: str, number: int) -> dict[str, int]:
    """Begin a run in a child; return its number, and by which signal it ended or stands still, 0 for none."""
    child = os.fork()
    if child == 0:
        try:
            _begin(path, how, number)
        finally:
            os._exit(0)
    _, status = os.waitpid(child, os.WUNTRACED)
    ended = os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0
    return {"child": child, "signal": os.WSTOPSIG(status) if os.WIFSTOPPED(status) else ended}


def end(child: int) -> int:
    """Kill a child that stands still."""
    os.kill(child, signal.SIGKILL)
    return os.waitpid(child, 0)[1]


def main() -> None:
    """Do what each line says."""
    for line in sys.stdin:
        order = json.loads(line)
        done = end(order["child"]) if "child" in order else strike(**order)
        print(json.dumps(done), flush=True)


if __name__ == "__main__":
    main()
