"""Vouchers that come back from a caller: whoever made one by hand may have put anything into any field.

What a voucher says is compared with the store by whoever takes it; here is only looked at whether its fields are of the
types that its class declares, all the way down, so that the comparison means what it says: no text that calls itself
equal to every other, no list where a number stands.
"""

import types
from dataclasses import fields, is_dataclass
from functools import cache
from math import isfinite
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from kbretrieval.errors import ContextInputInvalid

LARGEST = 2**63

Made = TypeVar("Made")


def checked_voucher(value: object, kind: type[Made], what: str) -> Made:
    """Return `value` if it is exactly a `kind` whose fields are what they should be, else `context_input_invalid`.

    Example:
        >>> from kbretrieval.context.package import Omitted
        >>> checked_voucher(Omitted(0, "leave", "context_too_large"), Omitted, "omitted").doc_id
        'leave'
    """
    if type(value) is not kind:
        raise ContextInputInvalid(f"{what}: a {kind.__name__} is required, {type(value).__name__} given")
    wrong = next((f.name for f in fields(value) if not fits(getattr(value, f.name), _forms(kind)[f.name])), None)  # type: ignore[arg-type]
    if wrong is not None:
        raise ContextInputInvalid(f"{what}: a {kind.__name__} as it was handed out is required, another {wrong} given")
    return value


@cache
def _forms(kind: type[Any]) -> dict[str, Any]:
    return get_type_hints(kind)


def fits(value: object, form: Any) -> bool:
    """Tell whether a value is exactly of a declared type; text has no lone surrogate, numbers are finite.

    Example:
        >>> fits((1, 2), tuple[int, ...]), fits(True, int), fits("\\ud800", str), fits(None, str | None)
        (True, False, False, True)
    """
    origin, inner = get_origin(form), get_args(form)
    if origin is tuple:
        return type(value) is tuple and _each_fits(value, inner)
    if origin is Literal:
        return type(value) is str and value in inner
    if origin in (Union, types.UnionType):
        return any(fits(value, each) for each in inner)
    if form is float:
        return isinstance(value, float) and isfinite(value)  # NumPy's float64 is one, as an encoder's floor may be
    if type(value) is not form:
        return False
    if is_dataclass(form):
        return all(fits(getattr(value, f.name), _forms(form)[f.name]) for f in fields(form))
    if isinstance(value, int):
        return -LARGEST <= value < LARGEST  # what SQLite stores, and what a message may write out
    return not isinstance(value, str) or not any("\ud800" <= character <= "\udfff" for character in value)


def _each_fits(values: tuple[object, ...], forms: tuple[Any, ...]) -> bool:
    if forms[-1] is Ellipsis:
        return all(fits(value, forms[0]) for value in values)
    return len(values) == len(forms) and all(map(fits, values, forms))
