"""Source → projection: the canonical text that every coordinate refers to (chapter 3).

A projection is NFC, has LF line ends, and is what is chunked, hashed and quoted. Coordinates are Unicode code points
of the projection, `[start, end)` (PRJ-2). Parsing happens before any transaction (PRJ-6).
"""

import hashlib
import re
import unicodedata
from dataclasses import dataclass

from kbretrieval.errors import InvalidText, SourceTooLarge, TextRequired, UnsupportedFormat
from kbretrieval.json_source import read_json_source
from kbretrieval.markdown_source import MarkdownHeading, headings_of, split_front_matter

PROJECTION_VERSION = "projection/1"
FORMATS = ("markdown", "text", "json")
MAX_CODE_POINTS = 4_000_000
MAX_SOURCE_BYTES = 12_000_000
MAX_HEADINGS = 50_000
MAX_TITLE = 1024
UNTITLED = "Untitled"

_CONTROLS = re.compile("[\x01-\x08\x0b-\x1f]")
_UNUSABLE = re.compile("[\x00\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading in a projection: `start` in code points, `level` 1 to 6, `text` without marks (its first 1,024)."""

    start: int
    level: int
    text: str


@dataclass(frozen=True, slots=True)
class Projection:
    """The canonical text of one source.

    `source_sha256` is of the source's UTF-8 bytes as delivered, `sha256` of the projection's; two sources may share a
    projection (ID-6). `controls` counts C0 control characters other than tab and line end that were kept (PRJ-1).
    """

    title: str
    body: str
    headings: tuple[Heading, ...]
    sha256: str
    source_sha256: str
    controls: int


def digest(text: str) -> str:
    """Return the hexadecimal SHA-256 of the text's UTF-8 bytes.

    Example:
        >>> digest("制度")[:8]
        '6722f3d7'
    """
    return hashlib.sha256(text.encode("utf-8")).hexdigest()


def normalized(text: str) -> str:
    """Return `text` with LF line ends, then NFC (PRJ-1). Only CRLF and CR become LF; U+0085 and U+2028 stay.

    Example:
        >>> normalized("e\\u0301\\r\\n") == "\\u00e9\\n"
        True
    """
    return unicodedata.normalize("NFC", text.replace("\r\n", "\n").replace("\r", "\n"))


def checked_source(source: object) -> str:
    """Return the source if it is usable text within bounds (PRJ-1, PRJ-5).

    Raises `text_required`, `source_too_large` (more than 4,000,000 code points or 12,000,000 UTF-8 bytes) and
    `invalid_text` (a lone surrogate or NUL), in this order.
    """
    if not isinstance(source, str):
        raise TextRequired(f"a string is required, {type(source).__name__} given")
    if len(source) > MAX_CODE_POINTS:
        raise SourceTooLarge(f"at most {MAX_CODE_POINTS} code points are allowed, {len(source)} given")
    unusable = _UNUSABLE.search(source)
    if unusable:
        raise InvalidText(
            f"U+{ord(unusable[0]):04X} at code point {unusable.start()}: no NUL and no lone surrogate is allowed"
        )
    size = len(source.encode("utf-8"))
    if size > MAX_SOURCE_BYTES:
        raise SourceTooLarge(f"at most {MAX_SOURCE_BYTES} bytes are allowed, {size} given")
    return source


def project(source: object, source_format: object) -> Projection:
    """Return the projection of a source in one of the formats markdown, text and json.

    Markdown keeps its marks; headings and title come from a CommonMark parser and the front matter (PRJ-3). Plain text
    takes its title from its first line. JSON has exactly one shape (PRJ-4). Raises the errors of `checked_source`,
    `unsupported_format`, and those of the JSON reader. It does not promise that the text is true, or complete.

    Example:
        >>> made = project("# 年假\\r\\n\\r\\n五天。", "markdown")
        >>> made.title, made.body, made.headings[0].start
        ('年假', '# 年假\\n\\n五天。', 0)
    """
    if not isinstance(source_format, str) or source_format not in FORMATS:
        shown = f"{len(source_format)} characters" if isinstance(source_format, str) else type(source_format).__name__
        raise UnsupportedFormat(f"one of {', '.join(FORMATS)} is required, another ({shown}) given")
    text = checked_source(source)
    body = normalized(text.removeprefix("\ufeff"))
    if source_format == "json":
        title, body, headings = _project_json(body)
    elif source_format == "markdown":
        title, headings = _project_markdown(body)
    else:
        title, headings = _first_line(body), ()
    if len(headings) > MAX_HEADINGS:
        raise SourceTooLarge(f"at most {MAX_HEADINGS} headings are allowed, {len(headings)} found")
    if len(body) > MAX_CODE_POINTS:
        raise SourceTooLarge(f"at most {MAX_CODE_POINTS} code points are allowed, {len(body)} projected")
    return Projection(title, body, headings, digest(body), digest(text), len(_CONTROLS.findall(body)))


def _project_markdown(body: str) -> tuple[str, tuple[Heading, ...]]:
    front_title, parsed = split_front_matter(body)
    if front_title and _UNUSABLE.search(front_title):  # an escape can write what the source itself may not hold
        raise InvalidText("the front matter's title holds NUL or a lone surrogate")
    found: tuple[MarkdownHeading, ...] = headings_of(parsed)
    headings = tuple(Heading(start, level, normalized(text)) for start, level, text in found)
    first = next((heading.text for heading in headings if heading.level == 1), None)
    return _bounded(first or normalized(front_title or UNTITLED)), headings


def _project_json(body: str) -> tuple[str, str, tuple[Heading, ...]]:
    parsed = read_json_source(body)
    for value in parsed.strings():
        if _UNUSABLE.search(value):
            raise InvalidText("a JSON string holds NUL or a lone surrogate")
    title = normalized(parsed.title)
    # Bounded like Markdown's: every chunk below a heading repeats its text.
    parts, headings, at = [f"# {title}"], [Heading(0, 1, _bounded(title))], len(title) + 4
    for name, text in parsed.sections:
        heading, paragraph = normalized(name), normalized(text)
        part = f"## {heading}\n{paragraph}"
        headings.append(Heading(at, 2, _bounded(heading)))
        parts.append(part)
        at += len(part) + 2
    return _bounded(title), "\n\n".join(parts), tuple(headings)


def _first_line(body: str) -> str:
    line = next((line.strip() for line in body.split("\n") if line.strip()), "")
    return _bounded(line or UNTITLED)


def _bounded(title: str) -> str:
    return title[:MAX_TITLE]
