"""The names that a case may use (shared/cases/README.md), made for one case in a folder of its own."""

import random
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

from kbretrieval import Context, Hit, Index, KBError, TermEncoder
from kbretrieval.results import Answer
from kbretrieval.store.schema import FTS_TABLE
from tests.conformance import case_model
from tests.conformance.case_processes import Processes, Window
from tests.conformance.case_values import plain_names
from tests.unit import doubles

# Names that stand for something which the package gives in another shape, and why.
ADAPTED = {
    "fused": "a hit holds its fused value in the field `fused`",
    "acl_revision": "`Index.status` gives it",
    "documented_limit": "`kbretrieval.projection` holds it, and the docstring of `project` says it",
    "timed_upsert": "the case asks for chunking time only: the best of five or more calls of `chunks`",
    "median_ms": "like `timed_upsert` measured when one is divided by another, by turns, in processor time",
    "exported_result": "result and answer by `to_dict()`; this processor stands for both machines of C076",
    "set_clock": "moves `time.time` alone; the package asks no other clock that knows the year",
    "run_python": "`write_evidence` is a `Claim`; a warning that the package `regex` causes is let through",
}
FTS_COLUMN = "terms"
JOURNALS = ("-journal", "-wal", "-shm")
SECONDS_OF_A_YEAR = 365 * 86_400
ALICE = Context("acme", "alice")
REAL_TIME = time.time


class Opener:
    """Stands for `Index` in a case: opens as it does, keeps the window of each file, and closes what was left open."""

    def __init__(self) -> None:
        self.opened: list[Index] = []
        self._windows: dict[str, Window] = {}

    def open(self, path: Any, *arguments: Any, **named: Any) -> Index:
        """Open an index by the package."""
        index = Index.open(path, *arguments, **named)
        index._engine.connection.run("PRAGMA synchronous=OFF")  # nobody cuts the power; what is killed opens its own
        self.opened.append(index)
        self._windows[path] = index.contract.chunk_size, index.contract.overlap
        return index

    def window(self, path: str) -> Window:
        """Return how a file was opened in this case."""
        return self._windows[path]

    def close(self) -> None:
        """Close every index; a second close is harmless."""
        for index in self.opened:
            index.close()


class Names:
    """The names of one case; `close` ends its processes, closes its indexes and puts the clock back."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._fresh = folder, 0
        files = {name: str(folder / f"{name.lower()}.sqlite") for name in ("FILE", "FILE2", "FILE3")}
        self._files = files | {"OUT": str(folder / "out.json")}
        self._opener, self._left = Opener(), ExitStack()
        self._left.callback(self._opener.close)
        self._processes = Processes(folder, self._files, self._opener.window)
        self._left.callback(self._processes.close)

    def close(self) -> None:
        """Leave nothing behind."""
        self._left.close()

    def all(self, index: bool) -> dict[str, Any]:
        """Return every name; with `index` the index at FILE, which is opened for it."""
        mine = (self.new_file, self.sql, self.fts_rows, self.file_bytes, self.put_bytes, self.check_of, self.copy_model)
        others = (self.traced_statements, self.set_clock, self.outcome_with_bit_flipped)
        started = self._processes
        processes = (started.parallel, started.race, started.hold_reader, started.run_python)
        struck = (started.kill_at, started.full_at)
        made = plain_names() | {call.__name__: call for call in (*mine, *others, *processes, *struck)}
        made |= self._files | {"Index": self._opener}
        if index:
            made["index"] = self._opener.open(self._files["FILE"], encoder=TermEncoder())
        return made

    def new_file(self, data: bytes = b"") -> str:
        """Return a fresh file name; with data there is a file of it."""
        self._fresh += 1
        path = self._folder / f"fresh{self._fresh}"
        if data:
            path.write_bytes(data)
        return str(path)

    def copy_model(self, leave_out: str = "") -> str:
        """Return a fresh folder with the model's files, but for one."""
        return case_model.copied_model(Path(self.new_file()), leave_out)

    def sql(self, file: str, statement: str) -> list[tuple[Any, ...]]:
        """Return the rows of one statement, in which `{fts}` and `{fts_column}` name the FTS5 table and its column."""
        return doubles.sql(file, statement.replace("{fts}", FTS_TABLE).replace("{fts_column}", FTS_COLUMN))

    def fts_rows(self, file: str) -> int:
        """Return the number of rows of the FTS5 table."""
        rows: list[tuple[int]] = self.sql(file, "SELECT count({fts_column}) FROM {fts}")
        return rows[0][0]

    def file_bytes(self, file: str) -> bytes:
        """Return the bytes of a database and of the journals beside it."""
        parts = [Path(file), *(Path(file + suffix) for suffix in JOURNALS)]
        return b"".join(part.read_bytes() for part in parts if part.exists())

    def put_bytes(self, file: str, data: bytes) -> None:
        """Put a database in the place of another and of its journals."""
        for suffix in JOURNALS:
            Path(file + suffix).unlink(missing_ok=True)
        with Path(file).open("r+b") as target:
            target.truncate(target.write(data))

    def check_of(self, file: str) -> Sequence[object]:
        """Return what `check` says of a file that nobody has open."""
        with Index.open(file, TermEncoder(), *self._opener.window(file)) as index:
            return index.check()

    def traced_statements(self, call: Callable[[], object]) -> list[str]:
        """Return the statements that a call sends to SQLite, on any index of the case."""
        seen: list[str] = []
        with ExitStack() as traced:
            for index in self._opener.opened:
                raw = index._engine.connection._raw
                raw.set_trace_callback(seen.append)
                traced.callback(raw.set_trace_callback, None)
            call()
        return seen

    def set_clock(self, years: int) -> None:
        """Move the wall clock so many years from where it really is, until the case ends."""
        self._left.enter_context(_clock(years * SECONDS_OF_A_YEAR))

    def outcome_with_bit_flipped(
        self, file: str, whole: bytes, seed: int, hits: Sequence[Hit]
    ) -> str | list[tuple[str, str]]:
        """Flip one bit and ask, by turns with kept hits and with new ones: a code, or the quotations."""
        chance = random.Random(seed)
        damaged = bytearray(whole)
        damaged[chance.randrange(len(whole))] ^= 1 << chance.randrange(8)
        self.put_bytes(file, bytes(damaged))
        try:
            answer = _asked(file, hits if seed % 2 else None)
        except KBError as error:
            return error.code
        return [(item.doc_id, item.quote) for item in answer.evidence]


def _asked(file: str, kept: Sequence[Hit] | None) -> Answer:
    with Index.open(file, encoder=TermEncoder(), wait_seconds=0) as index:
        hits = index.search("报销条目", ALICE, limit=12) if kept is None else kept
        return index.answer(hits, ALICE, limit=10)


@contextmanager
def _clock(ahead: int) -> Iterator[None]:
    def now() -> float:
        return REAL_TIME() + ahead

    with patch.object(time, "time", now), patch.object(time, "time_ns", lambda: int(now() * 1e9)):
        yield
