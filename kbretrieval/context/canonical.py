"""One byte form for what is stored and hashed: sorted keys, no blanks, UTF-8."""

import json
from typing import Any

from kbretrieval.projection import digest


def canonical(value: Any) -> str:
    """Return the one JSON text of a value made of dicts, lists, strings, integers, booleans and None.

    Example:
        >>> canonical({"b": 1, "a": ["年假", None]})
        '{"a":["年假",null],"b":1}'
    """
    return json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"), allow_nan=False)


def canonical_digest(value: Any) -> str:
    """Return the hexadecimal SHA-256 of the canonical text.

    Example:
        >>> canonical_digest({"a": 1, "b": 2}) == canonical_digest({"b": 2, "a": 1})
        True
    """
    return digest(canonical(value))


def utf8_bytes(text: str) -> int:
    """Return the number of UTF-8 bytes of a text.

    Example:
        >>> utf8_bytes("年假5")
        7
    """
    return len(text.encode("utf-8"))
