"""Bytes to JSON values, refusing everything that Python's parser would let pass in silence.

Useful for fixtures whose every byte is meant. Not useful for large files: the whole text is held in memory.
"""

import json
import re
from collections.abc import Iterable
from os import PathLike
from pathlib import Path

from kbretrieval.offline.errors import (
    DuplicateKey,
    FixtureTooLarge,
    FixtureUnreadable,
    InvalidJson,
    NestingTooDeep,
    NonFiniteNumber,
    NotUtf8,
    NumberTooLarge,
)

MAX_BYTES = 4 * 1024 * 1024
MAX_DEPTH = 32
# The largest float has 309 digits; int() itself raises an uncoded ValueError from 4301 digits on.
_MAX_DIGITS = 310
# Possessive, and a string that never ends goes to the end: no code point is looked at twice, whatever the bytes are.
_STRING_OR_BRACKET = re.compile(r'"(?:[^"\\]++|\\.)*+"?|[\[\]{}]', re.DOTALL)


def quoted(name: str) -> str:
    """Return a name taken from a file as ASCII on one line, shortened to 40 code points.

    Example:
        >>> quoted("a\\nb")
        "'a\\\\nb'"
    """
    return ascii(name if len(name) <= 40 else name[:40] + "...")


def read_fixture_bytes(path: str | PathLike[str]) -> bytes:
    """Return the bytes of a file, at most `MAX_BYTES` of them.

    Raises `FixtureUnreadable` (the message holds the cause, not the path: OFF-3) and `FixtureTooLarge`.

    Example:
        >>> read_fixture_bytes("no/such/fixture.json")
        Traceback (most recent call last):
        kbretrieval.offline.errors.FixtureUnreadable: fixture_unreadable: FileNotFoundError, a readable file expected
    """
    try:
        with Path(path).open("rb") as stream:
            data = stream.read(MAX_BYTES + 1)
    except (OSError, ValueError) as error:  # ValueError: a path that holds a NUL
        raise FixtureUnreadable(f"{type(error).__name__}, a readable file expected") from None
    if len(data) > MAX_BYTES:
        raise FixtureTooLarge(f"more than {MAX_BYTES} bytes given, {MAX_BYTES} allowed")
    return data


def parse_strict(data: bytes) -> object:
    """Return the one JSON value that UTF-8 `data` spells (OFF-5, OFF-6, OFF-7).

    Raises `NotUtf8`, `InvalidJson`, `NestingTooDeep` (deeper than 32), `DuplicateKey`, `NonFiniteNumber`,
    `NumberTooLarge`. Objects come as dict, arrays as list, numbers as int or finite float.
    Not promised: any check of fields; see `fixture_from_value`.

    Example:
        >>> parse_strict(b'{"grade": 3}')
        {'grade': 3}
        >>> parse_strict(b'{"a": 1, "a": 2}')
        Traceback (most recent call last):
        kbretrieval.offline.errors.DuplicateKey: duplicate_key: key 'a' given 2 times, 1 expected
    """
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise NotUtf8(f"byte {error.start} of {len(data)} does not continue as UTF-8") from None
    _refuse_depth(text)
    try:
        value: object = json.loads(
            text,
            object_pairs_hook=_object,
            parse_constant=_constant,
            parse_int=_integer,
            parse_float=_float,
        )
    except json.JSONDecodeError as error:
        raise InvalidJson(f"line {error.lineno} column {error.colno} does not continue as JSON") from None
    return value


def _refuse_depth(text: str) -> None:
    depth = 0
    for match in _STRING_OR_BRACKET.finditer(text):
        token = match.group()
        if token in "[{":
            depth += 1
        elif token in "]}":
            depth -= 1
        if depth > MAX_DEPTH:
            raise NestingTooDeep(f"depth {depth} at code point {match.start()}, {MAX_DEPTH} allowed")


def _object(pairs: Iterable[tuple[str, object]]) -> dict[str, object]:
    result: dict[str, object] = {}
    for key, value in pairs:
        if key in result:
            raise DuplicateKey(f"key {quoted(key)} given 2 times, 1 expected")
        result[key] = value
    return result


def _constant(name: str) -> float:
    raise NonFiniteNumber(f"{name} given, a finite number expected")


def _integer(literal: str) -> int:
    if len(literal) > _MAX_DIGITS:
        raise NumberTooLarge(f"an integer of {len(literal)} characters given, a float holds 309 digits")
    value = int(literal)
    try:
        float(value)
    except OverflowError:
        raise NumberTooLarge(f"an integer of {len(literal)} characters given, a float ends at 1.8e308") from None
    return value


def _float(literal: str) -> float:
    value = float(literal)
    if value in (float("inf"), float("-inf")):
        raise NumberTooLarge(f"a number of {len(literal)} characters given, a float ends at 1.8e308")
    return value
