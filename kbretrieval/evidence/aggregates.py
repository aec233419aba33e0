"""Aggregates that a verifier can compute again from the rows (EVD-4).

An aggregate is declared, not programmed: `{"op": "mean", "field": "recall", "where": {"positive": true}}`.
The writer fills in `value` with the same function that the verifier uses later.

| op | value | field |
|---|---|---|
| count | number of rows | none |
| sum, min, max | exact; an integer if every value is one, else a decimal string | numbers |
| mean | exact quotient as a decimal string; true counts 1, false 0 | numbers or booleans |
| all | whether every value is true | booleans |
| all_equal | whether all values are the same | any |
| distinct | number of different values | any |
| only | the value of the one row | any |
| list | the values in row order | any |
| sha256 | SHA-256 of the canonical form of that list | any |

Decimal strings are read as exact fractions. The result is rounded once: to the nearest binary64 and
written in its shortest form, or, with `places`, half to even to that many decimal places. Nothing but
`count`, `sum`, `list` and `sha256` is computed over zero rows, since a claim about no row is empty.
"""

import re
from collections.abc import Mapping, Sequence
from fractions import Fraction

from kbretrieval.evidence.canonical import Value, canonical_bytes, canonical_sha256, decimal_string
from kbretrieval.evidence.errors import AggregateInvalid

OPS = ("all", "all_equal", "count", "distinct", "list", "max", "mean", "min", "only", "sha256", "sum")

_OVER_NOTHING = {"count", "sum", "list", "sha256"}
_DECIMAL = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:e[+-]?[0-9]{1,3})?")


def aggregate(rows: Sequence[Mapping[str, Value]], rule: Mapping[str, Value]) -> Value:
    """Return the value of `rule` (`op`, `field`, `where`, `places`) over `rows`; `value` in it is not read.

    `where` keeps the rows in which every named field is there and equal, types told apart. Raises
    `AggregateInvalid` for an unknown op, a missing field, a value of the wrong kind, zero rows, and a `where` on a
    field in which no row has a value of that type.

    Example:
        >>> rows = [{"recall": "1.0", "positive": True}, {"recall": "0.8", "positive": True}]
        >>> aggregate(rows, {"op": "mean", "field": "recall", "where": {"positive": True}})
        '0.9'
    """
    op = rule.get("op")
    if op not in OPS:
        raise AggregateInvalid(f"op {op!a} given, one of {', '.join(OPS)} needed")
    where = rule.get("where", {})
    if not isinstance(where, dict):
        raise AggregateInvalid(f"where of type {type(where).__name__} given, an object needed")
    for name, wanted in where.items():
        # A misspelt field would make "0 leaks" true of any rows.
        if not any(name in row and type(row[name]) is type(wanted) for row in rows):
            raise AggregateInvalid(f"where names {name!a}, 0 of {len(rows)} rows have a value of that kind there")
    chosen = [row for row in rows if _meets(row, where)]
    if op not in _OVER_NOTHING and not chosen:
        raise AggregateInvalid(f"{op} over 0 of {len(rows)} rows given, at least 1 needed")
    if op == "count":
        if "field" in rule or "places" in rule:
            raise AggregateInvalid("a field or places given, count takes neither")
        return len(chosen)
    values = [_field(row, rule.get("field"), str(op)) for row in chosen]
    if op in {"sum", "min", "max", "mean"}:
        return _numeric(str(op), values, rule.get("places"))
    if "places" in rule:
        raise AggregateInvalid(f"places given, {op} is not a number")
    return _plain(str(op), values)


def _meets(row: Mapping[str, Value], where: Mapping[str, Value]) -> bool:
    return all(name in row and canonical_bytes(row[name]) == canonical_bytes(where[name]) for name in where)


def _field(row: Mapping[str, Value], name: Value, op: str) -> Value:
    if not isinstance(name, str):
        raise AggregateInvalid(f"no field given, {op} needs one")
    if name not in row:
        raise AggregateInvalid(f"a row without field {name!a} given, {op} needs it in every row")
    return row[name]


def _plain(op: str, values: list[Value]) -> Value:
    if op == "list":
        return values
    if op == "sha256":
        return canonical_sha256(values)
    if op == "only":
        if len(values) != 1:
            raise AggregateInvalid(f"{len(values)} rows given, only needs 1")
        return values[0]
    if op == "all":
        wrong = sum(1 for value in values if not isinstance(value, bool))
        if wrong:
            raise AggregateInvalid(f"{wrong} values that are not booleans given, all needs 0")
        return all(values)
    different = len({canonical_bytes(value) for value in values})
    return different == 1 if op == "all_equal" else different


def _numeric(op: str, values: list[Value], places: Value) -> Value:
    numbers = [_number(value, op) for value in values]
    if op == "mean":
        return _written(sum(numbers, Fraction()) / len(numbers), places)
    result = sum(numbers, Fraction()) if op == "sum" else (min if op == "min" else max)(numbers)
    if places is None and all(isinstance(value, int) for value in values):
        return int(result)
    return _written(result, places)


def _number(value: Value, op: str) -> Fraction:
    if isinstance(value, bool) and op not in {"sum", "mean"}:
        raise AggregateInvalid(f"a boolean given, {op} needs numbers")
    return Fraction(value) if isinstance(value, int) else decimal(value, op)


def decimal(value: Value, what: str = "a figure") -> Fraction:
    """Return the exact value of a decimal string. Raises `AggregateInvalid` for anything else.

    Example:
        >>> decimal("0.125")
        Fraction(1, 8)
    """
    if isinstance(value, str) and len(value) <= 40 and _DECIMAL.fullmatch(value):
        return Fraction(value)
    raise AggregateInvalid(f"a {type(value).__name__} that is not a decimal given, {what} needs numbers")


def _written(number: Fraction, places: Value) -> str:
    if places is None:
        try:
            return decimal_string(number.numerator / number.denominator)
        except OverflowError:
            raise AggregateInvalid("a number beyond binary64 computed, a finite one needed") from None
    if not isinstance(places, int) or isinstance(places, bool) or not 0 <= places <= 15:
        raise AggregateInvalid(f"places {places!a} given, 0 to 15 needed")
    return fixed(number, places)


def fixed(number: Fraction, places: int) -> str:
    """Return `number` with exactly `places` decimal places, rounded half to even.

    Example:
        >>> fixed(Fraction(1, 8), 2)
        '0.12'
    """
    scaled = round(number * 10**places)
    digits = str(abs(scaled)).rjust(places + 1, "0")
    sign = "-" if scaled < 0 else ""
    return sign + digits if places == 0 else f"{sign}{digits[:-places]}.{digits[-places:]}"
