"""Typed readers for single JSON values: each returns the value, or refuses it with the place where it stands."""

import math
import re
from collections.abc import Iterable

from kbretrieval.offline.errors import (
    BadIdentifier,
    BadText,
    EmptyList,
    MissingField,
    NonFiniteNumber,
    NotSortedUnique,
    NotUnitLength,
    NumberTooLarge,
    UnknownField,
    WrongDimension,
    WrongType,
    ZeroVector,
)
from kbretrieval.offline.strict_json import quoted

MAX_IDENTIFIER = 64
LENGTH_TOLERANCE = 1e-9
_IDENTIFIER = re.compile(r"[A-Za-z0-9._-]{1,64}")


def _kind(value: object) -> str:
    kinds = ((bool, "boolean"), (int, "integer"), (float, "number"), (str, "string"), (list, "array"), (dict, "object"))
    return next((name for kind, name in kinds if isinstance(value, kind)), "null")


def members(value: object, where: str) -> dict[str, object]:
    """Return `value` if it is an object, else raise `WrongType`.

    Example:
        >>> members({"a": 1}, "documents[0]")
        {'a': 1}
    """
    if not isinstance(value, dict):
        raise WrongType(f"{where}: {_kind(value)} given, object expected")
    if not all(isinstance(key, str) for key in value):
        raise WrongType(f"{where}: a key that is no string given, string keys expected")
    return value


def exact_members(value: object, where: str, names: tuple[str, ...]) -> dict[str, object]:
    """Return `value` if it is an object with exactly the fields `names` (OFF-8, OFF-9).

    Raises `WrongType`, `UnknownField`, `MissingField`.

    Example:
        >>> exact_members({"a": 1, "b": 2}, "filters", ("a",))
        Traceback (most recent call last):
        kbretrieval.offline.errors.UnknownField: unknown_field: filters: 'b' given, only a expected
    """
    found = members(value, where)
    unknown = sorted(set(found) - set(names))
    if unknown:
        raise UnknownField(f"{where}: {quoted(unknown[0])} given, only {', '.join(names)} expected")
    missing = [name for name in names if name not in found]
    if missing:
        raise MissingField(f"{where}: {missing[0]} missing, {len(found)} of {len(names)} fields given")
    return found


def array(value: object, where: str, *, empty: bool = True) -> list[object]:
    """Return `value` if it is an array; with `empty=False` it needs an entry.

    Raises `WrongType`, `EmptyList`.

    Example:
        >>> array([], "documents", empty=False)
        Traceback (most recent call last):
        kbretrieval.offline.errors.EmptyList: empty_list: documents: 0 entries given, at least 1 expected
    """
    if not isinstance(value, list):
        raise WrongType(f"{where}: {_kind(value)} given, array expected")
    if not value and not empty:
        raise EmptyList(f"{where}: 0 entries given, at least 1 expected")
    return value


def string(value: object, where: str) -> str:
    """Return `value` if it is a string, else raise `WrongType`.

    Example:
        >>> string("x", "queries[0].text")
        'x'
    """
    if not isinstance(value, str):
        raise WrongType(f"{where}: {_kind(value)} given, string expected")
    return value


def text(value: object, where: str) -> str:
    """Return `value` if it is a string that is not blank and can be encoded; else raise `WrongType` or `BadText`.

    Example:
        >>> text("  ", "documents[0].title")
        Traceback (most recent call last):
        kbretrieval.offline.errors.BadText: bad_text: documents[0].title: 2 code points given, all white space
    """
    found = string(value, where)
    if not found.strip():
        raise BadText(f"{where}: {len(found)} code points given, all white space")
    for position, character in enumerate(found):
        if 0xD800 <= ord(character) <= 0xDFFF:
            raise BadText(f"{where}: lone surrogate at code point {position} of {len(found)}")
    return found


def identifier(value: object, where: str) -> str:
    """Return `value` if it is 1 to 64 characters of `A-Z a-z 0-9 . _ -`; else raise `WrongType` or `BadIdentifier`.

    The narrow alphabet is what lets every message and every report show an identifier as it is.

    Example:
        >>> identifier("d-01", "documents[0].id")
        'd-01'
    """
    found = string(value, where)
    if not _IDENTIFIER.fullmatch(found):
        raise BadIdentifier(f"{where}: {len(found)} code points given, 1 to {MAX_IDENTIFIER} of A-Z a-z 0-9 . _ -")
    return found


def identifiers(value: object, where: str, *, empty: bool = True, ordered: bool = True) -> tuple[str, ...]:
    """Return an array of identifiers in ascending order; repeats are refused, and so is disorder if `ordered`.

    Raises `WrongType`, `EmptyList`, `BadIdentifier`, `NotSortedUnique`.

    Example:
        >>> identifiers(["b", "a"], "queries[0].subject_groups", ordered=False)
        ('a', 'b')
    """
    entries = array(value, where, empty=empty)
    found = [identifier(entry, f"{where}[{position}]") for position, entry in enumerate(entries)]
    unique = sorted(set(found))
    if len(unique) != len(found):
        raise NotSortedUnique(f"{where}: {len(found)} entries given, {len(unique)} of them distinct")
    if ordered and unique != found:
        position = next(index for index, pair in enumerate(zip(found, unique, strict=True)) if pair[0] != pair[1])
        raise NotSortedUnique(f"{where}: {found[position]} at {position}, {unique[position]} expected there")
    return tuple(unique)


def integer(value: object, where: str) -> int:
    """Return `value` if it is an integer and not a boolean, else raise `WrongType` (OFF-10).

    Example:
        >>> integer(True, "representation.dimension")
        Traceback (most recent call last):
        kbretrieval.offline.errors.WrongType: wrong_type: representation.dimension: boolean given, integer expected
    """
    if isinstance(value, bool) or not isinstance(value, int):
        raise WrongType(f"{where}: {_kind(value)} given, integer expected")
    return value


def boolean(value: object, where: str) -> bool:
    """Return `value` if it is true or false, else raise `WrongType`.

    Example:
        >>> boolean(False, "representation.trained_embedding")
        False
    """
    if not isinstance(value, bool):
        raise WrongType(f"{where}: {_kind(value)} given, boolean expected")
    return value


def number(value: object, where: str) -> float:
    """Return `value` as a float if it is an integer or a number and not a boolean (OFF-10).

    Raises `WrongType`; `NonFiniteNumber` and `NumberTooLarge` for values that did not come through the strict parser.

    Example:
        >>> number(1, "documents[0].vector[0]")
        1.0
    """
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise WrongType(f"{where}: {_kind(value)} given, number expected")
    try:
        found = float(value)
    except OverflowError:
        raise NumberTooLarge(f"{where}: an integer above 1.8e308 given, a float ends there") from None
    if not math.isfinite(found):
        raise NonFiniteNumber(f"{where}: {found} given, a finite number expected")
    return found


def unit_vector(value: object, where: str, dimension: int) -> tuple[float, ...]:
    """Return an array of `dimension` numbers whose Euclidean length is 1 within 1e-9 (OFF-12, OFF-13, OFF-14).

    Raises `WrongType`, `WrongDimension`, `ZeroVector`, `NotUnitLength`.

    Example:
        >>> unit_vector([0.6, 0.8], "documents[0].vector", 2)
        (0.6, 0.8)
    """
    entries = array(value, where)
    if len(entries) != dimension:
        raise WrongDimension(f"{where}: {len(entries)} numbers given, {dimension} axes")
    found = tuple(number(entry, f"{where}[{position}]") for position, entry in enumerate(entries))
    if not any(found):
        raise ZeroVector(f"{where}: {len(found)} zeros given, length 1 expected")
    length = math.hypot(*found)
    if abs(length - 1.0) > LENGTH_TOLERANCE:
        raise NotUnitLength(f"{where}: length {length:.9g} given, 1 within {LENGTH_TOLERANCE:g} expected")
    return found


def repeated(ids: Iterable[str]) -> str | None:
    """Return the first id that occurs a second time, or None.

    Example:
        >>> repeated(["a", "b", "a"])
        'a'
    """
    seen: set[str] = set()
    for entry in ids:
        if entry in seen:
            return entry
        seen.add(entry)
    return None
