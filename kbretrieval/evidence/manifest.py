"""`MANIFEST.json`: the SHA-256 of every file of an evidence folder, and how it stays whole.

The manifest is always rebuilt from what lies in the folder, under a lock that the operating system
lets go when a process dies. So two notebooks that write at the same time lose no entry, a crash
between file and manifest heals with the next write, and no lock is ever left behind by a dead process.
"""

import os
import stat
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from kbretrieval.evidence.canonical import MAX_BYTES, Value, pretty_bytes, sha256_hex

MANIFEST = "MANIFEST.json"
_LOCK = ".lock"

if sys.platform == "win32":
    import msvcrt

    def _take(descriptor: int) -> None:
        while True:
            try:
                msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
                return
            except OSError:
                time.sleep(0.05)

    def _release(descriptor: int) -> None:
        os.lseek(descriptor, 0, os.SEEK_SET)
        msvcrt.locking(descriptor, msvcrt.LK_UNLCK, 1)
else:
    import fcntl

    def _take(descriptor: int) -> None:
        fcntl.flock(descriptor, fcntl.LOCK_EX)

    def _release(descriptor: int) -> None:
        fcntl.flock(descriptor, fcntl.LOCK_UN)


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold the folder's write lock; waits for another writer. Creates the folder and `.lock` in it.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as name, locked(Path(name)):
        ...     (Path(name) / ".lock").exists()
        True
    """
    folder.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(folder / _LOCK, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        _take(descriptor)
        yield
    finally:
        _release(descriptor)
        os.close(descriptor)


def folder_files(folder: Path) -> dict[str, bytes]:
    """Return the bytes of every file below `folder` but the manifest, by POSIX name, sorted.

    Names that begin with a dot (the lock, a temporary file, `.gitignore`) are no evidence, and neither is what
    `scanned` refuses.

    Example:
        >>> import tempfile
        >>> folder_files(Path(tempfile.mkdtemp()))
        {}
    """
    return {name: raw for name, raw in scanned(folder)[0].items() if name != MANIFEST}


def scanned(folder: Path) -> tuple[dict[str, bytes], dict[str, str]]:
    """Return the bytes of every regular file below `folder` by POSIX name, and why other entries are not read.

    A link may lead anywhere and be another file tomorrow, a pipe or a device never ends, and a file beyond 64 MiB is
    no evidence. The folder itself may be a link. Raises nothing; a folder that is not there holds nothing.

    Example:
        >>> scanned(Path("no-such-folder"))
        ({}, {})
    """
    files: dict[str, bytes] = {}
    refused: dict[str, str] = {}

    def note(error: OSError) -> None:
        below = Path(os.path.relpath(error.filename or folder, folder)).as_posix()
        if below != ".":
            refused[below] = f"{type(error).__name__} when listed"

    for place, folders, names in os.walk(folder, onerror=note):
        folders[:] = [name for name in folders if not name.startswith(".")]
        links = [name for name in folders if os.path.islink(os.path.join(place, name))]  # noqa: PTH114, PTH118
        for name in (*links, *(name for name in names if not name.startswith("."))):
            path = Path(place, name)
            below = path.relative_to(folder).as_posix()
            found = _content(path)
            if isinstance(found, bytes):
                files[below] = found
            else:
                refused[below] = found
    return dict(sorted(files.items())), dict(sorted(refused.items()))


def _content(path: Path) -> bytes | str:
    """Return the bytes of a regular file, or why it is none; never waits for a pipe."""
    try:
        state = path.lstat()
        if stat.S_ISLNK(state.st_mode):
            return "a link given, a regular file needed"
        if not stat.S_ISREG(state.st_mode):
            return "no regular file"
        if state.st_size > MAX_BYTES:
            return f"{state.st_size} bytes given, at most {MAX_BYTES} allowed"
        return path.read_bytes()
    except OSError as error:
        return f"{type(error).__name__} when read"


def manifest_bytes(files: Mapping[str, bytes]) -> bytes:
    """Return the manifest's one byte form for these files: name → SHA-256, sorted, LF.

    Example:
        >>> manifest_bytes({})
        b'{}\\n'
    """
    entries: dict[str, Value] = {name: sha256_hex(raw) for name, raw in files.items()}
    return pretty_bytes(entries)


def replace_file(path: Path, raw: bytes) -> None:
    """Write `raw` to `path` in one step: a reader sees the old file or the new one, never a half.

    Call it under `locked`; two writers of one name share the temporary file otherwise.

    Example:
        >>> import tempfile
        >>> target = Path(tempfile.mkdtemp()) / "a.json"
        >>> replace_file(target, b"{}")
        >>> target.read_bytes()
        b'{}'
    """
    temporary = path.with_name(f".{path.name}.tmp")
    with temporary.open("wb") as file:
        file.write(raw)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)


def change_folder(folder: Path, written: Mapping[str, bytes], removed: tuple[str, ...] = ()) -> None:
    """Write and remove files of an evidence folder and rebuild its manifest, all under the lock.

    Example:
        >>> import tempfile
        >>> folder = Path(tempfile.mkdtemp())
        >>> change_folder(folder, {"a.run": b""})
        >>> (folder / "MANIFEST.json").read_bytes().startswith(b'{\\n  "a.run": "e3b0c442')
        True
    """
    with locked(folder):
        for name in removed:
            (folder / name).unlink(missing_ok=True)
        for name, raw in written.items():
            replace_file(folder / name, raw)
        replace_file(folder / MANIFEST, manifest_bytes(folder_files(folder)))


def rebuild_manifest(folder: Path) -> None:
    """Write the manifest for what lies in the folder now, for files that came in by other ways.

    Example:
        >>> import tempfile
        >>> rebuild_manifest(Path(tempfile.mkdtemp()))
    """
    change_folder(folder, {})
