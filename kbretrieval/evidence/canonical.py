"""Values of an evidence file: one meaning, one byte form (EVD-2).

Three forms are told apart. `normal` brings a Python value to the subset. `canonical_bytes` is what
gets hashed: sorted keys, no spaces, UTF-8, equal to RFC 8785 on this subset. `pretty_bytes` is what
stands on disk: the same content, one row per line for human eyes, and still exactly one byte form.
"""

import hashlib
import json
import math
import re
from collections.abc import Mapping
from typing import Any, TypeAlias

from kbretrieval.evidence.errors import JsonInvalid, ValueInvalid

Value: TypeAlias = "bool | int | str | list[Value] | dict[str, Value] | None"

MAX_INTEGER = 2**53 - 1
MAX_DEPTH = 32
MAX_BYTES = 64 * 1024 * 1024
_EXPANDED_LEVELS = 3


def decimal_string(number: float) -> str:
    """Return the shortest decimal that reads back as the same binary64 (EVD-1).

    Raises `ValueInvalid` for NaN and the infinities. Does not round for the eye.

    Example:
        >>> decimal_string(1 / 3)
        '0.3333333333333333'
    """
    if not math.isfinite(number):
        raise ValueInvalid(f"{float.__repr__(number)} given, a finite number needed")
    return float.__repr__(number)


def normal(value: object, depth: int = 1) -> Value:
    """Return `value` in the subset of EVD-2: floats become decimal strings, tuples become lists.

    NumPy scalars are read by their own `item()`. Raises `ValueInvalid` for integers from 2^53 on,
    keys outside printable ASCII, lone surrogates, nesting beyond 32 and every other type.

    Example:
        >>> normal({"rank": 1, "score": 0.5, "ids": ("a", "b")})
        {'rank': 1, 'score': '0.5', 'ids': ['a', 'b']}
    """
    if depth > MAX_DEPTH:
        raise ValueInvalid(f"nesting of {depth} given, at most {MAX_DEPTH} allowed")
    if type(value) is str:
        return _text(value)  # most values of a large file are text: nothing else is asked of them
    if getattr(value, "ndim", None) == 0:
        value = value.item()  # type: ignore[attr-defined]
    if isinstance(value, Mapping):
        return {_key(name): normal(item, depth + 1) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [normal(item, depth + 1) for item in value]
    return _scalar(value)


def _scalar(value: object) -> Value:
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, float):
        return decimal_string(value)
    if isinstance(value, int):
        if abs(value) > MAX_INTEGER:
            raise ValueInvalid(f"an integer of {value.bit_length()} bits given, at most 53 allowed")
        return int(value)
    if isinstance(value, str):
        return _text(value)
    raise ValueInvalid(f"type {type(value).__name__} given, JSON without floats needed")


def _text(value: str) -> str:
    try:
        value.isascii() or value.encode("utf-8")
    except UnicodeEncodeError as error:
        raise ValueInvalid(f"lone surrogate at code point {error.start} given, UTF-8 text needed") from None
    return str(value)


def _key(name: object) -> str:
    if not isinstance(name, str) or not (name and name.isascii() and name.isprintable()):
        raise ValueInvalid(f"key {name!a} given, printable ASCII needed")
    return name


def canonical_bytes(value: Value) -> bytes:
    """Return the bytes that are hashed; `value` must come from `normal` or `parse`.

    Keys are ASCII, so sorting by code point equals the UTF-16 order of RFC 8785.

    Example:
        >>> canonical_bytes({"b": "五百", "a": [1, None]}).decode("utf-8")
        '{"a":[1,null],"b":"五百"}'
    """
    return _compact(value).encode("utf-8")


# One encoder: `json.dumps` would make one for each of the tens of thousands of rows and keys of a large file.
_ENCODER = json.JSONEncoder(ensure_ascii=False, sort_keys=True, separators=(",", ":"), allow_nan=False)


def _compact(value: Value) -> str:
    return _ENCODER.encode(value)


def sha256_hex(raw: bytes) -> str:
    """Return the SHA-256 of `raw` as 64 lower-case hexadecimal digits.

    Example:
        >>> sha256_hex(b"")[:8]
        'e3b0c442'
    """
    return hashlib.sha256(raw).hexdigest()


def canonical_sha256(value: Value) -> str:
    """Return the SHA-256 of the canonical form.

    Example:
        >>> canonical_sha256({}) == sha256_hex(b"{}")
        True
    """
    return sha256_hex(canonical_bytes(value))


def pretty_bytes(value: Value) -> bytes:
    """Return the one byte form of an evidence file: UTF-8, LF, sorted keys, a row per line.

    Example:
        >>> print(pretty_bytes({"b": [], "a": {"n": 1}}).decode("utf-8"), end="")
        {
          "a": {
            "n": 1
          },
          "b": []
        }
    """
    return (_pretty(value, 0) + "\n").encode("utf-8")


def _pretty(value: Value, level: int) -> str:
    if level >= _EXPANDED_LEVELS or not isinstance(value, list | dict) or not value:
        return _compact(value)
    inner = "  " * (level + 1)
    if isinstance(value, list):
        parts = [_pretty(item, level + 1) for item in value]
        opening, closing = "[", "]"
    else:
        parts = [f"{_compact(name)}: {_pretty(value[name], level + 1)}" for name in sorted(value)]
        opening, closing = "{", "}"
    body = ",\n".join(inner + part for part in parts)
    return f"{opening}\n{body}\n{'  ' * level}{closing}"


def parse(raw: bytes) -> Value:
    """Return the value in `raw`, read strictly (EVD-4).

    Raises `JsonInvalid` for a byte order mark, bytes that are not UTF-8, duplicate keys, NaN,
    numbers that are not integers below 2^53, nesting beyond 32, keys outside printable ASCII, lone
    surrogates and more than 64 MiB. White space is free here; `is_stored_form` is stricter.

    Example:
        >>> parse(b'{"a": 1, "a": 2}')
        Traceback (most recent call last):
        kbretrieval.evidence.errors.JsonInvalid: evidence_json_invalid: key 'a' given 2 times, 1 allowed
    """
    if len(raw) > MAX_BYTES:
        raise JsonInvalid(f"{len(raw)} bytes given, at most {MAX_BYTES} allowed")
    try:
        value = json.loads(
            raw.decode("utf-8"),
            object_pairs_hook=_unique,
            parse_float=_no_float,
            parse_constant=_no_float,
            parse_int=_integer,
        )
        return normal(value)
    except UnicodeDecodeError as error:
        raise JsonInvalid(f"byte {error.start} is not UTF-8") from None
    except json.JSONDecodeError as error:
        raise JsonInvalid(f"{error.msg} at line {error.lineno} column {error.colno}") from None
    except RecursionError:
        raise JsonInvalid(f"nesting beyond the parser's reach given, at most {MAX_DEPTH} allowed") from None
    except ValueInvalid as error:
        raise JsonInvalid(error.detail) from None


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            times = sum(1 for other, _ in pairs if other == name)
            raise JsonInvalid(f"key {name!a} given {times} times, 1 allowed")
        found[name] = value
    return found


def _no_float(literal: str) -> None:
    raise JsonInvalid(f"number {literal[:40]} given, an integer or a decimal string needed")


def _integer(literal: str) -> int:
    if len(literal) > 17:
        raise JsonInvalid(f"an integer of {len(literal)} characters given, below 2^53 needed")
    return int(literal)


def is_stored_form(raw: bytes, value: Value) -> bool:
    """Return whether `raw` is exactly what the writer would write for `value` (EVD-5).

    Example:
        >>> is_stored_form(b'{"a":1}', {"a": 1})
        False
    """
    return raw == pretty_bytes(value)


def described(value: Value) -> str:
    """Return `value` for an error message: short plain tokens as they are, any text as a digest.

    Messages never carry document or query text, so a string that could be prose is only named.

    Example:
        >>> described(["travel", 1]), described("每晚限额为五百元")
        ('["travel",1]', 'a string of sha256 9ac9616b…')
    """
    shown = _compact(value)
    if len(shown) <= 200 and re.fullmatch(r"[\x21-\x7e]*", shown):
        return shown
    kind = "string" if isinstance(value, str) else "list" if isinstance(value, list) else "object"
    return f"a {kind} of sha256 {canonical_sha256(value)[:8]}…"
