"""A kernel extension that writes down what a green run does not show (NB-11).

Loaded into the kernel by the runner only. One JSON line per record goes to the file named by `KBRETRIEVAL_WITNESS`:
`ready` (interpreter, whether the network guard is there), `exception` (anything shown to the reader or hidden by
`%%capture`), `thread` and `unraisable` (exceptions that never reach a cell), `command` (a `!command` that failed).
"""

import json
import os
import sys
import threading
from pathlib import Path
from typing import Any

VARIABLE = "KBRETRIEVAL_WITNESS"


class Notepad:
    """Where records go; `count` is the execution count of the cell that runs."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.count = 0

    def cell_begins(self, info: Any) -> None:
        """Count a cell; code that a magic runs inside a cell has no history of its own and is not counted."""
        self.count += bool(info.store_history)

    def write(self, kind: str, detail: str) -> None:
        """Append one record."""
        record = {"kind": kind, "count": self.count, "detail": detail}
        with self.path.open("a", encoding="utf-8", newline="\n") as stream:
            stream.write(json.dumps(record, ensure_ascii=False, sort_keys=True) + "\n")


def load_ipython_extension(shell: Any) -> None:
    """Start writing for this shell; IPython calls it once."""
    notes = Notepad(Path(os.environ[VARIABLE]))
    guarded = hasattr(sys.modules.get("sitecustomize"), "refuse_beyond_loopback")
    notes.write("ready", f"{'guarded' if guarded else 'unguarded'} {sys.executable}")
    shell.events.register("pre_run_cell", notes.cell_begins)
    _watch_shown_exceptions(notes, shell)
    _watch_hidden_exceptions(notes)
    _watch_commands(notes, shell)


def _watch_shown_exceptions(notes: Notepad, shell: Any) -> None:
    show = shell.showtraceback

    def witness(*arguments: Any, **options: Any) -> Any:
        given = arguments[0] if arguments else options.get("exc_tuple")
        kind = (given or sys.exc_info())[0]
        notes.write("exception", kind.__name__ if kind else "unknown")
        return show(*arguments, **options)

    shell.showtraceback = witness


def _watch_hidden_exceptions(notes: Notepad) -> None:
    in_thread, unraisable = threading.excepthook, sys.unraisablehook

    def thread(arguments: threading.ExceptHookArgs) -> None:
        notes.write("thread", arguments.exc_type.__name__)
        in_thread(arguments)

    def lost(arguments: Any) -> None:
        notes.write("unraisable", arguments.exc_type.__name__)
        unraisable(arguments)

    threading.excepthook, sys.unraisablehook = thread, lost


def _watch_commands(notes: Notepad, shell: Any) -> None:
    run = shell.system

    def system(command: str) -> Any:
        outcome = run(command)
        status = shell.user_ns.get("_exit_code", 0)
        if status:
            notes.write("command", f"exit status {status}")
        return outcome

    shell.system = system
