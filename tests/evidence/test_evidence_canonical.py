"""Canonical form, strict parse and schema: EVD-2, EVD-3."""

import json
import math

import numpy as np
import pytest
import rfc8785
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from kbretrieval.evidence.canonical import (
    MAX_INTEGER,
    Value,
    canonical_bytes,
    decimal_string,
    is_stored_form,
    normal,
    parse,
    pretty_bytes,
)
from kbretrieval.evidence.errors import JsonInvalid, ValueInvalid
from kbretrieval.evidence.schema import load_schema, schema_refusals
from kbretrieval.evidence.writer import UNSIGNED

keys = st.text(st.characters(min_codepoint=0x20, max_codepoint=0x7E), min_size=1, max_size=8)
text = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
scalars = st.none() | st.booleans() | st.integers(-MAX_INTEGER, MAX_INTEGER) | text
values = st.recursive(scalars, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(keys, inner, max_size=4))


@pytest.mark.promise("EVD-2")
@given(values)
def test_canonical_form_equals_rfc_8785(value: Value) -> None:
    assert canonical_bytes(value) == rfc8785.dumps(value)  # type: ignore[arg-type]


@pytest.mark.promise("EVD-2")
@given(values)
def test_both_forms_read_back_and_the_stored_form_is_one(value: Value) -> None:
    assert canonical_bytes(parse(pretty_bytes(value))) == canonical_bytes(value)
    assert canonical_bytes(parse(canonical_bytes(value))) == canonical_bytes(value)
    assert is_stored_form(pretty_bytes(value), value)
    assert not is_stored_form(pretty_bytes(value) + b"\n", value)


@pytest.mark.promise("EVD-1")
@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_float_becomes_the_shortest_string_that_reads_back(number: float) -> None:
    assert math.copysign(1, float(decimal_string(number))) == math.copysign(1, number)
    assert float(decimal_string(number)) == number
    assert normal(np.float64(number)) == decimal_string(number) == repr(number)


def test_numpy_scalars_are_read_by_their_item() -> None:
    assert normal([np.int64(3), np.bool_(True), np.float32(0.5)]) == [3, True, "0.5"]


@pytest.mark.promise("EVD-2")
@pytest.mark.parametrize(
    "value",
    [
        math.nan,
        math.inf,
        2**53,
        -(2**53),
        {"é": 1},
        {"": 1},
        {"a\n": 1},
        {1: 1},
        "\ud800",
        b"bytes",
        {1, 2},
        np.zeros(2),
        object(),
    ],
)
def test_values_outside_the_subset_are_refused(value: object) -> None:
    with pytest.raises(ValueInvalid):
        normal(value)


@pytest.mark.promise("EVD-4")
@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (b'{"a":1,"b":2,"a":3}', "key 'a' given 2 times"),
        (b'{"x":{"a":1,"\\u0061":3}}', "key 'a' given 2 times"),
        (b"NaN", "NaN"),
        (b"[-Infinity]", "-Infinity"),
        (b"1.0", "1.0"),
        (b"1e3", "1e3"),
        (b"9007199254740992", "bits"),
        (b"9" * 5000, "5000 characters"),
        (b"[" * 33 + b"]" * 33, "nesting of 33"),
        (b"[" * 200_000 + b"]" * 200_000, "nesting beyond"),
        (b'"\\ud800"', "surrogate"),
        (b'"\xff"', "byte 1 is not UTF-8"),
        (b"\xef\xbb\xbf{}", "BOM"),
        (b"{} {}", "Extra data"),
        (b'"\t"', "control character"),
        (b"", "Expecting value"),
    ],
)
def test_strict_parse_refuses(raw: bytes, reason: str) -> None:
    with pytest.raises(JsonInvalid, match=reason):
        parse(raw)


def test_depth_of_32_is_read() -> None:
    assert canonical_bytes(parse(b"[" * 32 + b"]" * 32)) == b"[" * 32 + b"]" * 32


def document() -> dict[str, object]:
    sha = "0" * 64
    return {
        "schema": "kbretrieval-evidence/1",
        "claim": {"id": "ch01-a", "sentence": "一句话。", "chapter": 1, "promises": ["EVD-3"]},
        "subjects": [{"name": "a.json", "sha256": sha, "bytes": 0}],
        "invocation": {"argv": ["python"], "parameters": {"k": 60}, "seed": 0},
        "environment": {
            "package": {"version": "1", "source_sha256": sha},
            "python": "3",
            "sqlite": "3",
            "unidata": "15",
            "platform": "x",
            "cpu": {"model": "m", "flags": ["avx2"]},
            "packages": {"numpy": "2", "absent": None},
        },
        "deterministic": {
            "rows": [{"rank": 1, "nested": {"a": [True]}}],
            "aggregates": {"n": {"op": "count", "where": {"rank": 1}, "value": 1}},
        },
        "observed": {"wall_ms": "0.5"},
        "tests": {"result": "incomplete", "passed": ["a"], "failed": [], "skipped": [{"name": "b", "reason": "c"}]},
        "limits": [UNSIGNED],
        "deterministic_sha256": sha,
    }


def places(value: object, at: tuple[object, ...] = ()) -> list[tuple[object, ...]]:
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [at, *(deeper for name, item in inner for deeper in places(item, (*at, name)))]


def changed(value: object, at: tuple[object, ...], change: object) -> object:
    if not at:
        return change
    copy = dict(value) if isinstance(value, dict) else list(value)  # type: ignore[call-overload]
    copy[at[0]] = changed(copy[at[0]], at[1:], change)
    return copy


validator = Draft202012Validator(load_schema())


def agree(value: object) -> bool:
    ours = not schema_refusals(value)  # type: ignore[arg-type]
    assert ours == validator.is_valid(value), value
    return ours


@pytest.mark.promise("EVD-3")
def test_the_schema_is_a_valid_2020_12_schema_and_accepts_a_document() -> None:
    Draft202012Validator.check_schema(load_schema())
    assert agree(document())


def leaves_objects_open(rule: object) -> bool:
    if isinstance(rule, list):
        return any(leaves_objects_open(item) for item in rule)
    if not isinstance(rule, dict):
        return False
    is_open = (
        "properties" in rule and isinstance(rule.get("type"), str) and rule.get("additionalProperties") is not False
    )
    return is_open or any(leaves_objects_open(item) for item in rule.values())


@pytest.mark.promise("EVD-3")
def test_no_described_object_lets_other_names_in() -> None:
    assert not leaves_objects_open(load_schema())


@pytest.mark.slow
@pytest.mark.promise("EVD-3")
def test_every_place_and_every_wrong_value_is_judged_like_jsonschema() -> None:
    hostile = [None, True, 0, -1, 2**53, "", "x", "a\n", "0" * 64, "0" * 64 + "\n", [], ["a", "a"], {}, {"é": 1}]
    refused = 0
    for at in places(document()):
        for wrong in hostile:
            refused += not agree(changed(document(), at, wrong))
        for extra in ({"extra": 1},):
            inner = document()
            target: object = inner
            for name in at:
                target = target[name]  # type: ignore[index]
            if isinstance(target, dict):
                agree(changed(inner, at, {**target, **extra}))
                for name in target:
                    agree(changed(inner, at, {other: item for other, item in target.items() if other != name}))
    assert refused > 500


@pytest.mark.slow
@pytest.mark.promise("EVD-3")
@settings(max_examples=300)
@given(st.data())
def test_random_replacements_are_judged_like_jsonschema(data: st.DataObject) -> None:
    at = data.draw(st.sampled_from(places(document())))
    agree(changed(document(), at, data.draw(values)))


def test_a_keyword_the_check_does_not_know_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    from kbretrieval.evidence import schema as module
    from kbretrieval.evidence.errors import SchemaInvalid

    load_schema.cache_clear()
    monkeypatch.delitem(module._CHECKS, "maxLength")
    try:
        with pytest.raises(SchemaInvalid, match="maxLength"):
            load_schema()
    finally:
        load_schema.cache_clear()


def test_the_stored_form_shows_one_row_per_line() -> None:
    value = normal({"deterministic": {"rows": [{"rank": 1}, {"rank": 2}]}})
    lines = pretty_bytes(value).decode("utf-8").splitlines()
    assert lines[3:5] == ['      {"rank":1},', '      {"rank":2}']
    assert json.loads("\n".join(lines)) == value
