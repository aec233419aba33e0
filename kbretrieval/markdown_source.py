"""What a Markdown source says about itself: front matter and headings, by CommonMark (PRJ-3)."""

from itertools import pairwise
from typing import Any

import yaml
from markdown_it import MarkdownIt
from markdown_it.token import Token

MAX_FRONT_MATTER = 16_384
MAX_HEADING = 1024
MAX_BRACKETS = 64  # the inline parser looks for a partner of each: quadratic in a heading's length

MarkdownHeading = tuple[int, int, str]


def split_front_matter(body: str) -> tuple[str | None, str]:
    """Return the front matter's title (or None) and the body with the front matter blanked at equal length.

    Front matter begins with a first line `---`, ends with a line `---` or `...`, and holds a YAML mapping of at most
    16,384 bytes; a block that is none of that is ordinary Markdown. Scalars are read as strings and nothing is built.

    Example:
        >>> title, rest = split_front_matter("---\\ntitle: 年假\\n---\\n正文")
        >>> title, len(rest), rest[-2:]
        ('年假', 20, '正文')
    """
    fields, end = front_matter(body)
    if fields is None:
        return None, body
    title = fields.get("title")
    blank = "".join(character if character == "\n" else " " for character in body[:end])
    return (title.strip() or None) if isinstance(title, str) else None, blank + body[end:]


def front_matter(body: str) -> tuple[dict[object, object] | None, int]:
    """Return the fields of the front matter and where it ends, in code points; None and 0 where there is none.

    Example:
        >>> front_matter("---\\nid: 差旅\\n---\\n正文")
        ({'id': '差旅'}, 14)
    """
    lines = body.split("\n", 1)
    if len(lines) < 2 or lines[0].rstrip(" \t") != "---":
        return None, 0
    at = len(lines[0]) + 1
    begin = at
    while at <= len(body):
        end = body.find("\n", at)
        end = len(body) if end < 0 else end
        if body[at:end].rstrip(" \t") in ("---", "..."):
            fields = _fields(body[begin:at])
            return fields, 0 if fields is None else end
        at = end + 1
        if at - begin > MAX_FRONT_MATTER:
            break
    return None, 0


def _fields(block: str) -> dict[object, object] | None:
    if len(block.encode("utf-8")) > MAX_FRONT_MATTER:
        return None
    try:
        fields = yaml.load(block, Loader=yaml.BaseLoader)  # BaseLoader: the safe subset that builds strings alone
    except (yaml.YAMLError, RecursionError, ValueError):
        return None
    if fields is None:
        return {}
    return fields if isinstance(fields, dict) else None


def _block_parser() -> MarkdownIt:
    # Inline marks are parsed for headings alone: a body's emphasis says nothing about its structure, and costs time.
    return MarkdownIt("commonmark").disable("inline")


def headings_of(text: str) -> tuple[MarkdownHeading, ...]:
    """Return the top-level, non-empty headings of a CommonMark text as (start, level, text without marks).

    `start` is the code point of the heading's line. ATX and Setext count; a `#` line in a fence, an indented block,
    HTML, a quotation or a list does not. The text is cut after 1,024 code points; with more than
    64 opening brackets in it, its marks are kept.

    Example:
        >>> headings_of("# 一 *章*\\n\\n```\\n# 码\\n```\\n\\n节\\n--")
        ((0, 1, '一 章'), (22, 2, '节'))
    """
    definitions: dict[str, Any] = {}  # link references of the whole text: a heading may use one defined below it
    tokens = _block_parser().parse(text, definitions)
    starts = _line_starts(text)
    inline = MarkdownIt("commonmark")
    found = []
    for opening, content in pairwise(tokens):
        if opening.type != "heading_open" or opening.level != 0 or opening.map is None:
            continue
        shown = content.content[:MAX_HEADING]
        if shown.count("[") <= MAX_BRACKETS:
            shown = _plain(inline.parseInline(shown, definitions))
        plain = " ".join(shown.split())
        if plain:
            found.append((starts[opening.map[0]], int(opening.tag[1]), plain))
    return tuple(found)


def _line_starts(text: str) -> list[int]:
    starts, at = [0], text.find("\n")
    while at >= 0:
        starts.append(at + 1)
        at = text.find("\n", at + 1)
    return starts


def _plain(tokens: list[Token]) -> str:
    parts = []
    for token in tokens:
        if token.type in ("text", "code_inline"):
            parts.append(token.content)
        elif token.type in ("softbreak", "hardbreak"):
            parts.append(" ")
        elif token.children:
            parts.append(_plain(token.children))
    return "".join(parts)
