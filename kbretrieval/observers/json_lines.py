"""`JsonLinesObserver`: each event appended to a file as one line of JSON (OBS-4)."""

import errno
import json
import os
import threading
from collections.abc import Callable
from pathlib import Path
from types import TracebackType

from kbretrieval.errors import InvalidParameter, InvalidPath, StorageFull, StorageIOError
from kbretrieval.observers.events import Event
from kbretrieval.store.files import is_sqlite
from kbretrieval.store.opening import checked_path

LINE_END = b"\n"
# Without O_BINARY Windows turns a line end into two bytes; a child process has no business with the file.
_APPENDING = os.O_RDWR | os.O_CREAT | os.O_APPEND | sum(getattr(os, name, 0) for name in ("O_BINARY", "O_CLOEXEC"))


def _failed(error: OSError, what: str) -> StorageFull | StorageIOError:
    kind = StorageFull if error.errno == errno.ENOSPC else StorageIOError
    return kind(f"the log cannot be {what} (errno {error.errno})")


class JsonLinesObserver:
    """Appends each event to a file: UTF-8, one JSON object a line, `\\n` at its end. `kbretrieval stats` sums it up.

    Each line is one write at the end of the file, so several threads and several processes may share it; not promised
    on Windows (a file a process, there) and on a network file system. With a `clock`, seconds since 1970 UTC, a line
    carries the time as `at`. A new file is its owner's alone. Nothing is rotated and nothing forced to the disk.

    Raises `invalid_path` for an SQLite file and for what is no regular file, `storage_io_error` and `storage_full`; at
    an event the index counts those (`Index.observation`), and goes on. After a line that was written in part only, the
    next one begins on a line of its own.

    Example:
        >>> import tempfile, time
        >>> from kbretrieval import Context, Index
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     log = Path(folder, "events.jsonl")
        ...     with JsonLinesObserver(log, clock=time.time) as observer:
        ...         with Index.open(Path(folder, "kb.sqlite"), observer=observer) as index:
        ...             found = index.search("住宿限额", Context("acme", "alice"))
        ...     len(log.read_text(encoding="utf-8").splitlines())
        1
    """

    def __init__(self, path: str | os.PathLike[str], clock: Callable[[], float] | None = None) -> None:
        if clock is not None and not callable(clock):
            raise InvalidParameter(f"clock: something that can be called is required, {type(clock).__name__} given")
        where = checked_path(path)
        _check_log(where)
        self._clock = clock
        self._lock = threading.Lock()
        try:
            self._file: int | None = os.open(where, _APPENDING, 0o600)
        except OSError as error:
            raise _failed(error, "opened") from None
        self._torn = self._ends_torn(self._file)

    @staticmethod
    def _ends_torn(file: int) -> bool:
        size = os.lseek(file, 0, os.SEEK_END)
        if not size:
            return False
        os.lseek(file, size - 1, os.SEEK_SET)
        return os.read(file, 1) != LINE_END

    def __call__(self, event: Event, /) -> None:
        """Append one event."""
        with self._lock:
            at = {} if self._clock is None else {"at": round(self._clock(), 3)}
            line = json.dumps(event.to_dict() | at, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
            self._append(line.encode("utf-8") + LINE_END)

    def _append(self, line: bytes) -> None:
        if self._file is None:
            raise StorageIOError("an open log is required, it was closed before this event")
        line = LINE_END + line if self._torn else line
        try:
            written = os.write(self._file, line)
        except OSError as error:
            raise _failed(error, "written") from None
        if written:
            self._torn = written < len(line)
        if written < len(line):
            raise StorageFull(f"{len(line)} bytes of a line were to be written, {written} were")

    def close(self) -> None:
        """Close the file; a second close is harmless, an event after it is `storage_io_error`."""
        with self._lock:
            file, self._file = self._file, None
        if file is not None:
            os.close(file)

    def __enter__(self) -> "JsonLinesObserver":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()


def _check_log(path: Path) -> None:
    """Refuse a file that a line would damage: an index, or another SQLite file."""
    if not os.path.exists(path):  # noqa: PTH110 - Path.exists raises for a name that is too long
        return
    if not path.is_file():
        raise InvalidPath("a regular file or none is required, something else is there")
    if is_sqlite(path):
        raise InvalidPath("a log of events or no file is required, an SQLite file is there")
