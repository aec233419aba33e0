"""The one JSON shape that is accepted as a source (PRJ-4): a title and sections of heading and text."""

import json
import re
from dataclasses import dataclass
from typing import Any

from kbretrieval.errors import InvalidJson, JsonTooDeep, UnsupportedJsonSection, UnsupportedJsonShape

MAX_DEPTH = 64

# A string is taken whole, so that brackets inside it are no nesting; an unterminated one runs to the end.
_STRUCTURE = re.compile(r'"(?:[^"\\]|\\.)*+(?:"|\Z)|[\[{]|[\]}]', re.DOTALL)


@dataclass(frozen=True, slots=True)
class JsonSource:
    """A parsed source: `sections` are pairs (heading, text)."""

    title: str
    sections: tuple[tuple[str, str], ...]

    def strings(self) -> tuple[str, ...]:
        """Return every string of the source."""
        return (self.title, *(part for section in self.sections for part in section))


class _Oddities:
    """Collects what JSON's syntax allows and the shape does not, so that syntax is judged first."""

    def __init__(self) -> None:
        self.duplicate_keys = 0
        self.numbers = 0

    def pairs(self, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        made = dict(pairs)
        self.duplicate_keys += len(pairs) - len(made)
        return made

    def number(self, _digits: str) -> None:
        # Numbers are never converted: no digit limit, no overflow, and none is allowed by the shape anyway.
        self.numbers += 1


def check_depth(text: str) -> None:
    """Raise `json_too_deep` if brackets nest deeper than 64; linear, stops at the first that does.

    Example:
        >>> check_depth('{"title": "[[[", "sections": []}')
    """
    depth = 0
    for match in _STRUCTURE.finditer(text):
        mark = match[0]
        if mark in "[{":
            depth += 1
            if depth > MAX_DEPTH:
                raise JsonTooDeep(f"at most {MAX_DEPTH} levels are allowed, level {depth} begins at {match.start()}")
        elif mark in "]}":
            depth -= 1


def read_json_source(text: str) -> JsonSource:
    """Return the source in a JSON text of exactly the accepted shape, judged in the order depth, syntax, shape.

    Raises `json_too_deep`, `invalid_json`, `unsupported_json_shape` (also for a key that stands twice at any depth,
    and for any number) and `unsupported_json_section`. No sections is a document with a title alone.

    Example:
        >>> read_json_source('{"title": "年假", "sections": [{"heading": "天数", "text": "五天"}]}').sections
        (('天数', '五天'),)
    """
    check_depth(text)
    odd = _Oddities()
    value = _parsed(text, odd)
    if odd.duplicate_keys:
        raise UnsupportedJsonShape(f"no key may stand twice in an object, {odd.duplicate_keys} repeated")
    if odd.numbers:
        raise UnsupportedJsonShape(f"no number is allowed, {odd.numbers} given")
    return _shaped(value)


def _parsed(text: str, odd: _Oddities) -> object:
    try:
        return json.loads(
            text,
            object_pairs_hook=odd.pairs,
            parse_int=odd.number,
            parse_float=odd.number,
            parse_constant=odd.number,
        )
    except json.JSONDecodeError as error:
        line, column = error.lineno, error.colno
    # Raised outside the handler: the parser's error holds the whole text, and would stay reachable as context (ERR-1).
    raise InvalidJson(f"one JSON value is required, none ends well at line {line}, column {column}")


def _shaped(value: object) -> JsonSource:
    if not isinstance(value, dict) or set(value) != {"title", "sections"}:
        keys = f"{len(value)} keys" if isinstance(value, dict) else type(value).__name__
        raise UnsupportedJsonShape(f"exactly the keys title and sections are required, {keys} given")
    title, sections = value["title"], value["sections"]
    if not isinstance(title, str) or not isinstance(sections, list):
        raise UnsupportedJsonShape(
            f"title must be a string and sections a list, {type(title).__name__} and {type(sections).__name__} given"
        )
    return JsonSource(title, tuple(_section(number, section) for number, section in enumerate(sections, 1)))


def _section(number: int, section: object) -> tuple[str, str]:
    if not isinstance(section, dict) or set(section) != {"heading", "text"}:
        keys = f"{len(section)} keys" if isinstance(section, dict) else type(section).__name__
        raise UnsupportedJsonSection(f"section {number}: exactly the keys heading and text are required, {keys} given")
    heading, text = section["heading"], section["text"]
    if not isinstance(heading, str) or not isinstance(text, str):
        raise UnsupportedJsonSection(
            f"section {number}: two strings are required, {type(heading).__name__} and {type(text).__name__} given"
        )
    return heading, text
