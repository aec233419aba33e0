"""One file of a source, looked at before anything is decided: whose it is, and what it would store (SYN-1…SYN-3)."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from kbretrieval.errors import InvalidFrontMatter, KBError
from kbretrieval.identity import MAX_DOC_ID, checked_name
from kbretrieval.markdown_source import MAX_FRONT_MATTER, front_matter
from kbretrieval.projection import checked_source, digest, normalized, project
from kbretrieval.results import DocumentStatus, Exported
from kbretrieval.sync.encodings import Encodings
from kbretrieval.sync.source import Item, Source, bytes_of, printable

_ID_LINE = re.compile(r"^id[ \t]*:", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Examined:
    """A file that can be stored: its identity, whether front matter gave it, and digests of source and projection."""

    item: Item
    doc_id: str
    by_id: bool
    source_sha256: str
    title: str
    sha256: str


@dataclass(frozen=True, slots=True)
class Refusal(Exported):
    """Something that was refused: where, with the code and the facts of its error. `doc_id` is None where unknown."""

    SCHEMA: ClassVar[str] = "kbretrieval.sync-refusal/1"

    path: str
    doc_id: str | None
    code: str
    facts: str


@dataclass(frozen=True, slots=True)
class Unusable:
    """A file that cannot be stored now, and why; `hides` says that any identity may be the one it names."""

    item: Item
    refusal: Refusal
    hides: bool

    @property
    def claims(self) -> str:
        """The identity that the file has, or had if it names none."""
        return self.item.path if self.refusal.doc_id is None else self.refusal.doc_id


def named_id(text: str) -> str | None:
    """Return the identity that a Markdown source names in its front matter, None where it names none.

    Raises `invalid_front_matter` where there is an `id:` line that cannot be read: an identity is never lost to a
    mistyped colon, or a document would be deleted and another made in its place.

    Example:
        >>> named_id("---\\nid: 差旅\\n---\\n正文"), named_id("# 差旅")
        ('差旅', None)
    """
    if not text.removeprefix("\ufeff").startswith("---"):
        return None
    body = normalized(text.removeprefix("\ufeff"))
    fields, _ = front_matter(body)
    if fields is None:
        if _ID_LINE.search(body, 0, MAX_FRONT_MATTER):
            raise InvalidFrontMatter("a YAML mapping between lines --- is required, an id: stands in something else")
        return None
    named = fields.get("id")
    if named is not None and not isinstance(named, str):
        raise InvalidFrontMatter(f"id: one string is required, {type(named).__name__} given")
    return None if named is None else named.strip()


def examined(
    source: Source, item: Item, encodings: Encodings, stored: Mapping[str, DocumentStatus]
) -> Examined | Unusable:
    """Return what a file is, or why it cannot be stored; every refusal becomes a value, so that the others go on.

    A text that is stored already under the same format is not projected again.
    """
    may_name = item.format == "markdown"
    doc_id: str | None = None
    try:
        text = encodings.decoded(bytes_of(source, item), item.path)
        named = named_id(text) if may_name else None
        may_name = may_name and named is not None
        doc_id = checked_name(item.path if named is None else named, "doc_id", MAX_DOC_ID)
        known, source_sha256 = stored.get(doc_id), digest(checked_source(text))
        if known is not None and _is_same(known, item.format, source_sha256):
            return Examined(item, doc_id, named is not None, source_sha256, known.title or "", known.sha256 or "")
        made = project(text, item.format)
        return Examined(item, doc_id, named is not None, source_sha256, made.title, made.sha256)
    except KBError as error:
        code, facts = error.code, error.facts
    return Unusable(item, Refusal(printable(item.path), doc_id, code, facts), hides=may_name and doc_id is None)


def _is_same(known: DocumentStatus, source_format: str, source_sha256: str) -> bool:
    return known.state == "live" and (known.format, known.source_sha256) == (source_format, source_sha256)
