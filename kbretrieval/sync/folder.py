"""`FolderSource`: the files below one folder (SYN-1, SYN-2).

Nothing outside the folder is ever read: a link that leaves it is skipped and listed, when the folder is listed and
again when a file is opened. Hidden entries and whatever is no regular file are skipped and listed too.
"""

import os
import stat
import unicodedata
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path, PurePath

from kbretrieval.errors import SourceListingIncomplete, SourceTooLarge, SourceUnreadable
from kbretrieval.projection import MAX_SOURCE_BYTES
from kbretrieval.sync.source import Item, Listing, Skipped, printable

CONNECTOR = "folder"
ENDINGS = {".md": "markdown", ".markdown": "markdown", ".txt": "text", ".json": "json"}

_HIDDEN_ON_WINDOWS = 0x2
_JUNCTION = 0xA0000003
# Without O_NONBLOCK a pipe that took a file's place would hold the run up; without O_BINARY Windows changes line ends.
_READING = os.O_RDONLY | sum(getattr(os, name, 0) for name in ("O_BINARY", "O_NOFOLLOW", "O_NONBLOCK", "O_CLOEXEC"))


@dataclass(frozen=True, slots=True)
class _Folder:
    """A folder to look into: where it is, its path below the root, and whether a link led to it."""

    place: Path
    below: str
    linked: bool


@dataclass(frozen=True, slots=True)
class _Unlisted:
    """A folder or an entry that could not be looked at."""

    path: str


def _is_hidden(entry: os.DirEntry[str]) -> bool:
    attributes = getattr(entry.stat(follow_symlinks=False), "st_file_attributes", 0)
    return entry.name.startswith(".") or bool(attributes & _HIDDEN_ON_WINDOWS)


def _is_link(entry: os.DirEntry[str]) -> bool:
    return entry.is_symlink() or getattr(entry.stat(follow_symlinks=False), "st_reparse_tag", 0) == _JUNCTION


@dataclass(frozen=True, slots=True)
class FolderSource:
    """The Markdown, text and JSON files below `root`, told by their endings .md, .markdown, .txt and .json.

    Names come from the folder itself, so that a file system which ignores case changes no identity. A link to a file or
    folder inside the root is followed, a folder behind links once.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     _ = Path(folder, "年假.md").write_text("# 年假", encoding="utf-8")
        ...     [item.path for item in FolderSource(folder).list().items]
        ['年假.md']
    """

    root: str | os.PathLike[str]
    connector: str = CONNECTOR

    def list(self) -> Listing:
        """Return what is below the root, sorted by path; raises `source_listing_incomplete` for a bad root (SYN-4)."""
        root = self._real_root()
        items: list[Item] = []
        skipped: list[Skipped] = []
        unlisted: list[str] = []
        pending = [_Folder(root, "", linked=False)]
        while pending:
            folder = pending.pop()
            for found in _looked_into(folder, root):
                match found:
                    case _Folder():
                        pending.append(found)
                    case Item():
                        items.append(found)
                    case Skipped():
                        skipped.append(found)
                    case _Unlisted():
                        unlisted.append(found.path)
        return Listing(
            tuple(sorted(items, key=lambda item: (item.path, item.name))),
            tuple(sorted(skipped, key=lambda item: item.path)),
            tuple(sorted(unlisted)),
        )

    def read(self, item: Item) -> bytes:
        """Return the bytes of a file; raises `source_unreadable` and `source_too_large` (SYN-5)."""
        try:
            root = self._real_root()
            real = Path(os.path.realpath(root / item.name, strict=True))
            if not real.is_relative_to(root) or _below(real, root) != item.place:
                raise SourceUnreadable("the file that was listed is required, a link leads elsewhere now")
            with os.fdopen(os.open(real, _READING), "rb") as file:
                if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                    raise SourceUnreadable("a regular file is required, something else is there")
                raw = file.read(MAX_SOURCE_BYTES + 1)
        except OSError as error:
            raise SourceUnreadable(f"a readable file is required (errno {error.errno})") from None
        if len(raw) > MAX_SOURCE_BYTES:
            raise SourceTooLarge(f"at most {MAX_SOURCE_BYTES} bytes are allowed, more are there")
        return raw

    def _real_root(self) -> Path:
        # An empty name would be the working directory: what a script that lost its variable asks for.
        if not isinstance(self.root, (str, os.PathLike)) or not os.fspath(self.root):
            raise SourceListingIncomplete(f"a folder's name is required, {_kind(self.root)} given; nothing is deleted")
        try:
            root = Path(os.path.realpath(self.root, strict=True))
            with os.scandir(root):
                return root
        except (OSError, ValueError) as error:
            number = getattr(error, "errno", None)
            raise SourceListingIncomplete(f"a folder that can be listed is required (errno {number})") from None


def _kind(root: object) -> str:
    return "an empty one" if isinstance(root, (str, os.PathLike)) else type(root).__name__


def _path(name: str) -> str:
    """Return the path that a name is, NFC; in a locale without UTF-8 Python hands names out as escaped bytes."""
    with suppress(UnicodeError):
        name = os.fsencode(name).decode("utf-8")
    return unicodedata.normalize("NFC", name)


def _below(real: Path, root: Path) -> str:
    return _path(real.relative_to(root).as_posix())


def _looked_into(folder: _Folder, root: Path) -> Iterator[_Folder | Item | Skipped | _Unlisted]:
    try:
        with os.scandir(folder.place) as found:
            entries = list(found)
    except OSError:
        yield _Unlisted(printable(_path(folder.below)))
        return
    for entry in entries:
        name = f"{folder.below}/{entry.name}" if folder.below else entry.name
        try:
            yield _judged(entry, name, folder, root)
        except OSError:
            yield _Unlisted(printable(_path(name)))


def _judged(entry: os.DirEntry[str], name: str, folder: _Folder, root: Path) -> _Folder | Item | Skipped | _Unlisted:
    """Return what an entry is: a folder to look into, a file that could be a document, or something to pass over."""
    path = _path(name)
    if _is_hidden(entry):
        return Skipped(printable(path), "hidden")
    linked, real = _is_link(entry), Path(os.path.realpath(entry.path))
    if not real.is_relative_to(root):
        return Skipped(printable(path), "symlink_leaves_root")
    if os.path.isdir(entry.path):  # noqa: PTH112 - a link to itself is none, where others raise
        # A folder that holds its own link, or links below links, could be walked for ever.
        if linked and (folder.linked or Path(os.path.realpath(folder.place)).is_relative_to(real)):
            return Skipped(printable(path), "symlink_loop")
        return _Folder(Path(entry.path), name, folder.linked or linked)
    # A link whose end is gone is no proof that its document is: it may be a file, or a folder of files.
    there = os.path.exists(entry.path)  # noqa: PTH110 - as above
    if there and not os.path.isfile(entry.path):  # noqa: PTH113
        return Skipped(printable(path), "not_a_regular_file")
    told = ENDINGS.get(PurePath(path).suffix.lower())
    if told is None:
        return Skipped(printable(path), "unsupported_format") if there else _Unlisted(printable(path))
    return Item(path, _below(real, root), name, told)
