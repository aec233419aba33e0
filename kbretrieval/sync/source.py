"""What a connector is: it lists what there is, and reads what it listed (SYN-1, SYN-4, SYN-5)."""

from dataclasses import astuple, dataclass
from typing import ClassVar, Protocol, runtime_checkable

from kbretrieval.errors import SourceListingIncomplete, SourceUnreadable
from kbretrieval.errors.foreign import guarded
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
    raises a refusal such as `source_unreadable`; the other items go on. Whatever else the two raise or return counts as
    these two refusals.
    """

    @property
    def connector(self) -> str: ...

    def list(self) -> Listing:
        """Return what is there, in an order of its own that does not change between two calls."""
        ...

    def read(self, item: Item) -> bytes:
        """Return the bytes of an item."""
        ...


def listing_of(source: Source) -> Listing:
    """Return what a source lists; raises `source_listing_incomplete` for all that is none, and nothing is deleted."""
    listing = guarded(source.list, SourceListingIncomplete, "the source")
    if not isinstance(listing, Listing) or not all(_is_item(item) for item in listing.items):
        raise SourceListingIncomplete("a Listing of Items is required, the source returned something else")
    return listing


def _is_item(item: object) -> bool:
    return isinstance(item, Item) and all(isinstance(value, str) for value in astuple(item))


def bytes_of(source: Source, item: Item) -> bytes:
    """Return the bytes of an item; raises `source_unreadable` for all that is none (SYN-5)."""
    raw = guarded(lambda: source.read(item), SourceUnreadable, "the source")
    if not isinstance(raw, (bytes, bytearray)):
        raise SourceUnreadable(f"bytes are required, the source returned {type(raw).__name__}")
    return bytes(raw)


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
