"""What assembly gives: a text, its items with their intervals, and what stayed out (CTX-18, CTX-20)."""

from dataclasses import dataclass
from typing import ClassVar

from kbretrieval.results import Exported


@dataclass(frozen=True, slots=True)
class Item(Exported):
    """One piece of a package.

    `[start, end)` is its part of the assembled text, the separator after it included; `[text_start, text_end)` is the
    stretch `[source_start, source_end)` of the document's projection in it. All count code points; `bytes` and
    `sha256` are of the part without the separator. `title` is None where the role does not get it.
    """

    SCHEMA: ClassVar[str] = "kbretrieval.context.item/1"

    number: int
    doc_id: str
    title: str | None
    revision: int
    acl_revision: int
    document_sha256: str
    must: bool
    source_start: int
    source_end: int
    start: int
    end: int
    text_start: int
    text_end: int
    bytes: int
    sha256: str


@dataclass(frozen=True, slots=True)
class Omitted(Exported):
    """Optional material that did not enter: its place in the list given, its document, and the reason."""

    SCHEMA: ClassVar[str] = "kbretrieval.context.omitted/1"

    number: int
    doc_id: str
    code: str


@dataclass(frozen=True, slots=True)
class Package(Exported):
    """Assembled material of one scope: the must-read items first, then optional ones, each in the order given."""

    SCHEMA: ClassVar[str] = "kbretrieval.context.package/1"

    scope: str
    scope_sha256: str
    call: str
    text: str
    bytes: int
    items: tuple[Item, ...]
    omitted: tuple[Omitted, ...]
