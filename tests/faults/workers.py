"""Processes that a test starts, gives orders to, one JSON line each, and ends."""

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

ROOT = Path(__file__).resolve().parents[2]


class Worker:
    """A child process that answers each order with one line; it ends with its input.

    Not a fork: a child that inherits an open SQLite connection would believe in its parent's locks.
    """

    def __init__(self, module: str, *arguments: str, before: Sequence[str] = ()) -> None:
        self._process = subprocess.Popen(
            [*before, sys.executable, "-m", module, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=ROOT,
            text=True,
            encoding="utf-8",
        )

    def tell(self, **order: Any) -> None:
        """Send an order without waiting for its answer."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(order) + "\n")
        self._process.stdin.flush()

    def hear(self) -> Any:
        """Return the next answer."""
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line, f"the worker ended with {self._process.wait()}"
        return json.loads(line)

    def ask(self, **order: Any) -> Any:
        """Send an order and return its answer."""
        self.tell(**order)
        return self.hear()

    def __enter__(self) -> "Worker":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.stdout.close()
        self._process.wait(timeout=60)
