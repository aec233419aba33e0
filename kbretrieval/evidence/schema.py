"""The JSON Schema of an evidence file, and the few keywords of it read with the standard library (EVD-3).

`schema.json` is the one definition. The check here interprets that document instead of repeating it,
so the two cannot drift; a keyword it does not know is refused when the schema is loaded. A test shows
that `jsonschema` accepts and refuses the same inputs.
"""

import json
import re
from collections.abc import Callable, Iterator
from functools import cache
from importlib.resources import files
from typing import Any, TypeAlias

from kbretrieval.evidence.canonical import Value
from kbretrieval.evidence.errors import SchemaInvalid

Rule: TypeAlias = dict[str, Any]

_ANNOTATIONS = {"$schema", "$id", "$defs", "title"}
_MAPS_OF_RULES = {"properties", "$defs"}
_RULES = {"items", "contains", "additionalProperties", "propertyNames"}


@cache
def load_schema() -> Rule:
    """Return the JSON Schema 2020-12 document that stands in the package.

    Raises `SchemaInvalid` when the document uses a keyword that the check below does not know.

    Example:
        >>> load_schema()["$id"]
        'urn:kbretrieval:evidence:1'
    """
    text = files("kbretrieval.evidence").joinpath("schema.json").read_text(encoding="utf-8")
    schema: Rule = json.loads(text)
    unknown = sorted(set(_keywords(schema)) - set(_CHECKS) - _ANNOTATIONS - {"$ref"})
    if unknown:
        raise SchemaInvalid(f"keywords {unknown} given, {len(_CHECKS)} others known")
    return schema


def _keywords(rule: Rule) -> Iterator[str]:
    if "$ref" in rule and set(rule) - _ANNOTATIONS - {"$ref"}:
        yield f"{sorted(rule)} beside $ref"
    for keyword, argument in rule.items():
        yield keyword
        if keyword in _MAPS_OF_RULES:
            for child in argument.values():
                yield from _keywords(child)
        elif keyword in _RULES and isinstance(argument, dict):
            yield from _keywords(argument)


def schema_refusals(value: Value) -> list[str]:
    """Return one line per place where `value` leaves the schema; an empty list when it follows it.

    `value` comes from `canonical.parse`, so it holds no float. Lines name the place and the rule and
    never the text found there. The first refusal of a place hides those inside it.

    Example:
        >>> schema_refusals({"schema": "kbretrieval-evidence/2"})[0]
        '$: required: claim'
    """
    return list(_refusals(load_schema(), value, "$"))


def _refusals(rule: Rule, value: Any, place: str) -> Iterator[str]:
    while "$ref" in rule:
        rule = load_schema()["$defs"][rule["$ref"].rpartition("/")[2]]
    if "type" in rule and not _has_type(value, rule["type"]):
        yield f"{place}: type: {rule['type']}"
        return
    for keyword, argument in rule.items():
        if keyword != "type":
            yield from _CHECKS[keyword](rule, argument, value, place)


_KINDS = {
    type(None): "null",
    bool: "boolean",
    int: "integer",
    str: "string",
    list: "array",
    dict: "object",
}


def _has_type(value: Any, names: str | list[str]) -> bool:
    kind = _KINDS.get(type(value))
    return kind == names if isinstance(names, str) else kind in names


def _is_number(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _no_check(rule: Rule, argument: Any, value: Any, place: str) -> Iterator[str]:
    yield from ()


def _equal_to(rule: Rule, argument: Any, value: Any, place: str) -> Iterator[str]:
    allowed = argument if isinstance(argument, list) else [argument]
    if not isinstance(value, str) or value not in allowed:
        yield f"{place}: allowed: {', '.join(allowed)}"


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)


def _pattern(rule: Rule, argument: str, value: Any, place: str) -> Iterator[str]:
    if isinstance(value, str) and not _compiled(argument).search(value):
        yield f"{place}: pattern: {argument}"


def _size(kind: type, keyword: str, fits: Callable[[int, int], bool]) -> "Check":
    def check(rule: Rule, argument: int, value: Any, place: str) -> Iterator[str]:
        if isinstance(value, kind) and not fits(len(value), argument):  # type: ignore[arg-type]
            yield f"{place}: {keyword}: {argument}"

    return check


def _minimum(rule: Rule, argument: int, value: Any, place: str) -> Iterator[str]:
    if _is_number(value) and value < argument:
        yield f"{place}: minimum: {argument}"


def _maximum(rule: Rule, argument: int, value: Any, place: str) -> Iterator[str]:
    if _is_number(value) and value > argument:
        yield f"{place}: maximum: {argument}"


def _unique_items(rule: Rule, argument: bool, value: Any, place: str) -> Iterator[str]:
    if argument and isinstance(value, list):
        forms = [json.dumps(item, sort_keys=True) for item in value]
        if len(set(forms)) != len(forms):
            yield f"{place}: uniqueItems"


def _items(rule: Rule, argument: Rule, value: Any, place: str) -> Iterator[str]:
    if isinstance(value, list):
        for position, item in enumerate(value):
            yield from _refusals(argument, item, f"{place}[{position}]")


def _contains(rule: Rule, argument: Rule, value: Any, place: str) -> Iterator[str]:
    if isinstance(value, list) and all(any(_refusals(argument, item, place)) for item in value):
        yield f"{place}: contains: {argument.get('const', 'an item that fits')}"


def _required(rule: Rule, argument: list[str], value: Any, place: str) -> Iterator[str]:
    if isinstance(value, dict):
        for name in argument:
            if name not in value:
                yield f"{place}: required: {name}"


def _properties(rule: Rule, argument: dict[str, Rule], value: Any, place: str) -> Iterator[str]:
    if isinstance(value, dict):
        for name, child in argument.items():
            if name in value:
                yield from _refusals(child, value[name], f"{place}.{name}")


def _property_names(rule: Rule, argument: Rule, value: Any, place: str) -> Iterator[str]:
    if isinstance(value, dict):
        for name in value:
            yield from _refusals(argument, name, f"{place} (a key)")


def _additional(rule: Rule, argument: bool | Rule, value: Any, place: str) -> Iterator[str]:
    if not isinstance(value, dict):
        return
    known = rule.get("properties", {})
    for name in value:
        if name in known:
            continue
        if isinstance(argument, dict):
            yield from _refusals(argument, value[name], f"{place}.{name}")
        elif argument is False:
            yield f"{place}: additionalProperties: {name!a}"


Check: TypeAlias = Callable[[Rule, Any, Any, str], Iterator[str]]

_CHECKS: dict[str, Check] = {
    "type": _no_check,
    "const": _equal_to,
    "enum": _equal_to,
    "pattern": _pattern,
    "minLength": _size(str, "minLength", int.__ge__),
    "maxLength": _size(str, "maxLength", int.__le__),
    "minItems": _size(list, "minItems", int.__ge__),
    "maxItems": _size(list, "maxItems", int.__le__),
    "minimum": _minimum,
    "maximum": _maximum,
    "uniqueItems": _unique_items,
    "items": _items,
    "contains": _contains,
    "required": _required,
    "properties": _properties,
    "propertyNames": _property_names,
    "additionalProperties": _additional,
}
