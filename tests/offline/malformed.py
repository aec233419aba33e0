"""Malformed fixtures as a table: promise, name, code, bytes. Most differ from the good fixture in one place."""

from collections.abc import Callable
from dataclasses import dataclass

from tests.offline.cases import FIXTURE_BYTES, changed, swapped


@dataclass(frozen=True, slots=True)
class Malformed:
    """One bad fixture and the code with which it must be refused."""

    promise: str
    name: str
    code: str
    data: bytes


def _set(*path: str | int, to: object) -> Callable[[dict], object]:
    def change(value: dict) -> None:
        place = value
        for step in path[:-1]:
            place = place[step]
        place[path[-1]] = to

    return change


def _drop(*path: str | int) -> Callable[[dict], object]:
    def change(value: dict) -> None:
        place = value
        for step in path[:-1]:
            place = place[step]
        del place[path[-1]]

    return change


DOCUMENT = ("documents", 0)
QUERY = ("queries", 0)
AXIS = '      "refund",\n'
UNIT = [1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]
TOO_LARGE = "1" + "0" * 309
FOREIGN = "d-02-beta-refund"


def _case(promise: str, name: str, code: str, change: Callable[[dict], object]) -> Malformed:
    return Malformed(promise, name, code, changed(change))


SYNTAX = [
    Malformed("OFF-4", "empty file", "invalid_json", b""),
    Malformed("OFF-4", "cut off", "invalid_json", FIXTURE_BYTES[:-3]),
    Malformed("OFF-4", "two values", "invalid_json", FIXTURE_BYTES + b"{}"),
    Malformed("OFF-4", "comment", "invalid_json", b"// x\n" + FIXTURE_BYTES),
    Malformed("OFF-4", "byte order mark", "invalid_json", b"\xef\xbb\xbf" + FIXTURE_BYTES),
    Malformed("OFF-4", "single quotes", "invalid_json", b"{'schema_version': 1}"),
    Malformed("OFF-4", "unescaped newline", "invalid_json", swapped("退款政策", "退款\n政策")),
    Malformed("OFF-4", "trailing comma", "invalid_json", swapped('"normalized": true,', '"normalized": true,,')),
    Malformed("OFF-4", "latin-1", "not_utf8", '{"é": 1}'.encode("latin-1")),
    Malformed("OFF-4", "utf-16", "not_utf8", FIXTURE_BYTES.decode("utf-8").encode("utf-16")),
    Malformed("OFF-4", "too deep", "nesting_too_deep", b"[" * 100_000 + b"]" * 100_000),
    Malformed("OFF-4", "too many bytes", "fixture_too_large", FIXTURE_BYTES + b" " * (4 * 1024 * 1024)),
]

TOP = [
    Malformed("OFF-4", "top level is an array", "wrong_type", b"[]"),
    Malformed("OFF-4", "top level is null", "wrong_type", b"null"),
    Malformed("OFF-4", "top level is empty", "top_level_fields", b"{}"),
    _case("OFF-4", "no schema version", "top_level_fields", _drop("schema_version")),
    _case("OFF-4", "no representation", "top_level_fields", _drop("representation")),
    _case("OFF-4", "no documents", "top_level_fields", _drop("documents")),
    _case("OFF-4", "no queries", "top_level_fields", _drop("queries")),
    _case("OFF-4", "a fifth field", "top_level_fields", _set("comment", to="退款")),
    _case("OFF-4", "a fifth field with a line break", "top_level_fields", _set("a\nb\r\u2028c", to=1)),
    _case("OFF-4", "another version", "unsupported_schema_version", _set("schema_version", to="v2")),
    _case("OFF-4", "documents are empty", "empty_list", _set("documents", to=[])),
    _case("OFF-4", "queries are empty", "empty_list", _set("queries", to=[])),
]

DUPLICATE_KEYS = [
    Malformed("OFF-5", "at the top", "duplicate_key", swapped('"documents": [', '"documents": [], "documents": [')),
    Malformed("OFF-5", "in the representation", "duplicate_key", swapped('"kind":', '"kind": "x", "kind":')),
    Malformed("OFF-5", "in a document", "duplicate_key", swapped('"tenant": "beta"', '"tenant": "a", "tenant": "a"')),
    Malformed("OFF-5", "in filters", "duplicate_key", swapped('"languages": [', '"languages": [], "languages": [')),
    Malformed("OFF-5", "in judgements", "duplicate_key", swapped('"qrels": {', '"qrels": {"x": 1, "x": 1,')),
    Malformed("OFF-5", "spelled by an escape", "duplicate_key", swapped('"kind":', '"kin\\u0064": "x", "kind":')),
]

NUMBERS = [
    Malformed("OFF-6", "NaN", "non_finite_number", swapped("0.6", "NaN")),
    Malformed("OFF-6", "Infinity", "non_finite_number", swapped("0.6", "Infinity")),
    Malformed("OFF-6", "minus Infinity", "non_finite_number", swapped("0.6", "-Infinity")),
    Malformed("OFF-6", "NaN as a grade", "non_finite_number", swapped('"d-01-refund-policy": 3', '"d-01": NaN')),
    Malformed("OFF-7", "310 digits", "number_too_large", swapped("0.6", TOO_LARGE)),
    Malformed("OFF-7", "310 digits below zero", "number_too_large", swapped("0.6", f"-{TOO_LARGE}")),
    Malformed("OFF-7", "just above the largest float", "number_too_large", swapped("0.6", "18" + "0" * 307)),
    Malformed("OFF-7", "5000 digits", "number_too_large", swapped("0.6", "9" * 5000)),
    Malformed("OFF-7", "as a grade", "number_too_large", swapped('"d-01-refund-policy": 3', f'"d": {TOO_LARGE}')),
    Malformed("OFF-7", "by its exponent", "number_too_large", swapped("0.6", "1e400")),
]

UNKNOWN = [
    _case("OFF-8", "in the representation", "unknown_field", _set("representation", "model", to="x")),
    _case("OFF-8", "in a document", "unknown_field", _set(*DOCUMENT, "score", to=1)),
    _case("OFF-8", "in a query", "unknown_field", _set(*QUERY, "top_k", to=3)),
    _case("OFF-8", "in filters", "unknown_field", _set(*QUERY, "filters", "tenants", to=["alpha"])),
    _case("OFF-8", "in another case", "unknown_field", _set(*DOCUMENT, "Title", to="x")),
]

MISSING = (
    [
        _case("OFF-9", f"document without {name}", "missing_field", _drop(*DOCUMENT, name))
        for name in (
            "id",
            "title",
            "text",
            "tenant",
            "acl",
            "status",
            "language",
            "product",
            "source_revision",
            "vector",
        )
    ]
    + [
        _case("OFF-9", f"query without {name}", "missing_field", _drop(*QUERY, name))
        for name in ("id", "text", "tenant", "subject_groups", "filters", "vector", "qrels", "must_not_return")
    ]
    + [
        _case("OFF-9", f"representation without {name}", "missing_field", _drop("representation", name))
        for name in ("name", "kind", "dimension", "axes", "normalized", "trained_embedding")
    ]
    + [
        _case("OFF-9", f"filters without {name}", "missing_field", _drop(*QUERY, "filters", name))
        for name in ("languages", "products")
    ]
)

TYPES = [
    _case("OFF-10", name, "wrong_type", _set(*path, to=to))
    for name, path, to in [
        ("version is a number", ("schema_version",), 1),
        ("representation is an array", ("representation",), []),
        ("dimension is a boolean", ("representation", "dimension"), True),
        ("dimension is a float", ("representation", "dimension"), 7.0),
        ("normalized is a number", ("representation", "normalized"), 1),
        ("trained is null", ("representation", "trained_embedding"), None),
        ("axes are a string", ("representation", "axes"), "refund"),
        ("documents are an object", ("documents",), {}),
        ("a document is a string", DOCUMENT, "d-01"),
        ("id is a number", (*DOCUMENT, "id"), 1),
        ("title is null", (*DOCUMENT, "title"), None),
        ("text is an array", (*DOCUMENT, "text"), ["x"]),
        ("acl is a string", (*DOCUMENT, "acl"), "guest"),
        ("acl holds a number", (*DOCUMENT, "acl"), [1]),
        ("status is a boolean", (*DOCUMENT, "status"), True),
        ("vector is an object", (*DOCUMENT, "vector"), {}),
        ("vector holds a boolean", (*DOCUMENT, "vector"), [True, *UNIT[1:]]),
        ("vector holds a string", (*DOCUMENT, "vector"), ["1.0", *UNIT[1:]]),
        ("queries are a number", ("queries",), 7),
        ("groups are null", (*QUERY, "subject_groups"), None),
        ("filters are an array", (*QUERY, "filters"), []),
        ("judgements are an array", (*QUERY, "qrels"), []),
        ("a grade is a boolean", (*QUERY, "qrels", "d-01-refund-policy"), True),
        ("a grade is a float", (*QUERY, "qrels", "d-01-refund-policy"), 3.0),
        ("a grade is a string", (*QUERY, "qrels", "d-01-refund-policy"), "3"),
        ("forbidden list is an object", (*QUERY, "must_not_return"), {}),
    ]
]

IDENTITIES = [
    _case("OFF-11", "documents", "duplicate_id", lambda value: value["documents"].append(value["documents"][0])),
    _case("OFF-11", "queries", "duplicate_id", lambda value: value["queries"].append(value["queries"][0])),
    _case("OFF-11", "two documents, one id", "duplicate_id", _set("documents", 4, "id", to="d-06-upload-e042")),
]

VECTORS = [
    _case("OFF-12", "six numbers", "wrong_dimension", _set(*DOCUMENT, "vector", to=UNIT[:6])),
    _case("OFF-12", "eight numbers", "wrong_dimension", _set(*QUERY, "vector", to=[*UNIT, 0.0])),
    _case("OFF-12", "no number", "wrong_dimension", _set(*DOCUMENT, "vector", to=[])),
    _case("OFF-12", "dimension 6", "wrong_dimension", _set("representation", "dimension", to=6)),
    _case("OFF-13", "zeros", "zero_vector", _set(*DOCUMENT, "vector", to=[0.0] * 7)),
    _case("OFF-13", "integer and negative zeros", "zero_vector", _set(*QUERY, "vector", to=[0, -0.0] + [0] * 5)),
    _case("OFF-14", "too long", "not_unit_length", _set(*DOCUMENT, "vector", to=[1.0, 1.0, *UNIT[2:]])),
    _case("OFF-14", "too short", "not_unit_length", _set(*QUERY, "vector", to=[0.5, *UNIT[1:]])),
    _case("OFF-14", "a little too long", "not_unit_length", _set(*QUERY, "vector", to=[1.00000001, *UNIT[1:]])),
    _case("OFF-14", "length overflows", "not_unit_length", _set(*QUERY, "vector", to=[1e308] * 7)),
    _case("OFF-14", "length vanishes", "not_unit_length", _set(*QUERY, "vector", to=[5e-324] + [0.0] * 6)),
]

JUDGEMENTS = [
    _case("OFF-15", "unknown document", "unknown_judged_document", _set(*QUERY, "qrels", "d-99", to=1)),
    _case("OFF-15", "foreign document", "ineligible_judged_document", _set(*QUERY, "qrels", FOREIGN, to=1)),
    _case("OFF-15", "draft", "ineligible_judged_document", _set(*QUERY, "qrels", "d-03-payment-draft", to=1)),
    _case("OFF-15", "other product", "ineligible_judged_document", _set(*QUERY, "qrels", "d-06-upload-e042", to=1)),
    _case("OFF-28", "groups withdrawn", "ineligible_judged_document", _set(*QUERY, "subject_groups", to=[])),
    _case("OFF-28", "document withdrawn", "ineligible_judged_document", _set(*DOCUMENT, "status", to="archived")),
    _case("OFF-28", "acl withdrawn", "ineligible_judged_document", _set(*DOCUMENT, "acl", to=["platform"])),
    _case("OFF-28", "language changed", "ineligible_judged_document", _set(*DOCUMENT, "language", to="en")),
    _case("OFF-27", "grade 0", "grade_out_of_range", _set(*QUERY, "qrels", "d-01-refund-policy", to=0)),
    _case("OFF-27", "grade 4", "grade_out_of_range", _set(*QUERY, "qrels", "d-01-refund-policy", to=4)),
    _case("OFF-27", "grade -1", "grade_out_of_range", _set(*QUERY, "qrels", "d-01-refund-policy", to=-1)),
    _case("OFF-16", "unknown document", "unknown_forbidden_document", _set(*QUERY, "must_not_return", to=["d-99"])),
    _case(
        *("OFF-17", "visible document", "visible_forbidden_document"),
        _set(*QUERY, "must_not_return", to=["d-08-membership-renewal"]),
    ),
    _case(
        *("OFF-17", "judged and forbidden", "visible_forbidden_document"),
        _set(*QUERY, "must_not_return", to=["d-01-refund-policy"]),
    ),
]

SCHEMA = [
    Malformed("OFF-18", "six axes", "wrong_axes", swapped(AXIS, "")),
    Malformed("OFF-18", "an eighth axis", "wrong_axes", swapped(AXIS, AXIS + '"shipping",')),
    Malformed("OFF-18", "another name", "wrong_axes", swapped(AXIS, '"refunds",')),
    Malformed(
        "OFF-18", "another order", "wrong_axes", swapped(AXIS + '      "double_charge",', '"double_charge", "refund",')
    ),
    _case(
        "OFF-19",
        "said to be trained",
        "mislabelled_representation",
        _set("representation", "trained_embedding", to=True),
    ),
    _case("OFF-19", "not normalized", "mislabelled_representation", _set("representation", "normalized", to=False)),
    _case("OFF-19", "another kind", "mislabelled_representation", _set("representation", "kind", to="bge")),
    _case("OFF-21", "acl out of order", "not_sorted_unique", _set(*DOCUMENT, "acl", to=["platform", "guest"])),
    _case("OFF-21", "acl repeats", "not_sorted_unique", _set(*DOCUMENT, "acl", to=["guest", "guest"])),
    _case("OFF-21", "unknown status", "unknown_status", _set(*DOCUMENT, "status", to="Published")),
    _case("OFF-21", "empty id", "bad_identifier", _set(*DOCUMENT, "id", to="")),
    _case("OFF-21", "id with a line break", "bad_identifier", _set(*DOCUMENT, "id", to="d-01\nx")),
    _case("OFF-21", "id ends in a line break", "bad_identifier", _set(*DOCUMENT, "id", to="d-01\n")),
    _case("OFF-21", "tenant is a path", "bad_identifier", _set(*DOCUMENT, "tenant", to="../alpha")),
    _case("OFF-21", "id of 65 characters", "bad_identifier", _set(*DOCUMENT, "id", to="d" * 65)),
    _case("OFF-21", "blank title", "bad_text", _set(*DOCUMENT, "title", to=" \u3000")),
    _case("OFF-21", "empty text", "bad_text", _set(*DOCUMENT, "text", to="")),
    Malformed("OFF-21", "lone surrogate", "bad_text", swapped("退款政策", "退款\\ud800")),
    _case("OFF-27", "no language", "empty_list", _set(*QUERY, "filters", "languages", to=[])),
    _case("OFF-27", "no product", "empty_list", _set(*QUERY, "filters", "products", to=[])),
    _case(
        "OFF-27",
        "products out of order",
        "not_sorted_unique",
        _set(*QUERY, "filters", "products", to=["pay", "member"]),
    ),
    _case("OFF-27", "languages repeat", "not_sorted_unique", _set(*QUERY, "filters", "languages", to=["zh", "zh"])),
    _case("OFF-27", "groups repeat", "not_sorted_unique", _set(*QUERY, "subject_groups", to=["guest", "guest"])),
    _case("OFF-27", "forbidden repeats", "not_sorted_unique", _set(*QUERY, "must_not_return", to=[FOREIGN, FOREIGN])),
]

TABLE = tuple(
    SYNTAX + TOP + DUPLICATE_KEYS + NUMBERS + UNKNOWN + MISSING + TYPES + IDENTITIES + VECTORS + JUDGEMENTS + SCHEMA
)


def cases_of(promise: str) -> tuple[Malformed, ...]:
    """The rows of one promise."""
    return tuple(case for case in TABLE if case.promise == promise)
