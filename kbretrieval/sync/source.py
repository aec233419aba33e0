"""What a connector is: it lists what there is, and reads what it listed (SYN-1, SYN-4, SYN-5)."""

from dataclasses import dataclass
from typing import ClassVar, Protocol, runtime_checkable

from kbretrieval.results import Exported


@dataclass(frozen=True, slots=True)
class Item:
    """One file of a source that could be a document.

    `path` is the way below the root in POSIX separators and NFC: its identity, unless the file names another. `place`
    is where the bytes really are, in the same form, and what a policy judges: a link gives nobody more than its file
    does. `name` is what the source itself calls it. `format` is markdown, text or json.
    """

    path: str
    place: str
    name: str
    format: str


@dataclass(frozen=True, slots=True)
class Skipped(Exported):
    """Something that a listing passed over, and why: one word, such as `hidden` or `unsupported_format`."""

    SCHEMA: ClassVar[str] = "kbretrieval.sync-skipped/1"

    path: str
    reason: str


@dataclass(frozen=True, slots=True)
class Listing:
    """What a source holds. It is complete when `unlisted`, the folders that could not be looked into, is empty."""

    items: tuple[Item, ...]
    skipped: tuple[Skipped, ...] = ()
    unlisted: tuple[str, ...] = ()


@runtime_checkable
class Source(Protocol):
    """A connector: two calls, so that others can follow the folder.

    `connector` is stored in the provenance of every document, and a run deletes only what came from the same one.
    `list` raises `source_listing_incomplete` where nothing can be listed. `read` returns the bytes of one item, or
    raises a refusal such as `source_unreadable`; the other items go on.
    """

    @property
    def connector(self) -> str: ...

    def list(self) -> Listing:
        """Return what is there, in an order of its own that does not change between two calls."""
        ...

    def read(self, item: Item) -> bytes:
        """Return the bytes of an item."""
        ...


def printable(path: str) -> str:
    """Return a path as text that any output takes: what is no visible character, or no text at all, is escaped.

    Example:
        >>> printable("年假 \\udcff\\n.md")
        '年假 \\\\udcff\\\\n.md'
    """
    return "".join(
        character if character.isprintable() else character.encode("unicode_escape").decode("ascii")
        for character in path
    )
