"""Refusals: one class per cause, a grammar for messages, no text in them or behind them (ERR-1, ERR-2)."""

import json
import re
from collections.abc import Callable, Iterator

import numpy as np
import pytest

import kbretrieval
from kbretrieval import Context, Hit, Index, KBError, SearchOptions, errors
from kbretrieval.chunking import windows
from kbretrieval.encoders.port import Encoding, checked_encoder, encode_dense
from kbretrieval.identity import (
    Provenance,
    checked_acl,
    checked_acl_revision,
    checked_name,
    checked_provenance,
    checked_restore,
    checked_revision,
)
from kbretrieval.projection import project
from kbretrieval.retrieval import checked_query
from tests.unit.doubles import Table, error_of

GRAMMAR = re.compile(r"(?P<code>[a-z][a-z0-9_]*): (?P<facts>\S.*\S)", re.DOTALL)
SECRET = "机密词zqx"
ALICE = Context("acme", "alice")


def _hit(**changes: object) -> dict[str, object]:
    fields: dict[str, object] = dict.fromkeys(
        ("tenant", "doc_id", "document_sha256", "chunk_sha256", "principal", "text", "title", "heading"), SECRET
    )
    fields |= {"chunk_key": 1, "revision": 1, "acl_revision": 1, "start": 0, "end": 1, "fused": 0.5}
    return fields | {"schema": Hit.SCHEMA, "title_overlap": 0.0, "channels": {}} | changes


class Returns:
    """An encoder that returns whatever it was given."""

    identifier, dimension, floor = "returns", 2, 0.4

    def __init__(self, value: object) -> None:
        self.value = value

    def encode(self, texts: object, *, query: bool) -> Encoding:
        if isinstance(self.value, Exception):
            raise self.value
        return self.value  # type: ignore[return-value]


def _encoded(value: object) -> object:
    return encode_dense(Returns(value), [SECRET], query=False)


class NoFloor:
    """Lacks a part of the port."""

    identifier, dimension = "x", 2

    def encode(self, texts: object, *, query: bool) -> None: ...


def _with(**changes: object) -> Returns:
    encoder = Returns(None)
    for name, value in changes.items():
        setattr(encoder, name, value)
    return encoder


# code, the two facts that the message has to hold, the call
REFUSALS: list[tuple[str, tuple[str, ...], Callable[[], object]]] = [
    ("invalid_identity", ("200", "0 given"), lambda: checked_name("", "tenant")),
    ("invalid_identity", ("200", "201 given"), lambda: checked_name("a" * 201, "tenant")),
    ("invalid_identity", ("string", "int given"), lambda: checked_name(7, "tenant")),
    ("invalid_identity", ("control", "U+0007"), lambda: checked_name(SECRET + "\a", "tenant")),
    ("invalid_identity", ("format", "U+202E"), lambda: checked_name(SECRET + "\u202e", "tenant")),
    ("invalid_identity", ("surrogate", "U+D800"), lambda: checked_name(SECRET + "\ud800", "tenant")),
    ("invalid_identity", ("white space", "U+00A0"), lambda: checked_name(SECRET + "\u00a0x", "tenant")),
    ("invalid_identity", ("white space", "end"), lambda: checked_name(SECRET + " ", "tenant")),
    ("invalid_identity", ("NFC",), lambda: checked_name(SECRET + "e\u0301", "tenant")),
    ("invalid_identity", ("reserved",), lambda: Context("acme", "*")),
    ("invalid_identity", ("reserved",), lambda: Context("acme", "group:hr")),
    ("invalid_identity", ("colon",), lambda: Context("acme", "alice", ("a:b",))),
    ("invalid_identity", ("1000", "1001 given"), lambda: Context("acme", "alice", tuple(map(str, range(1001))))),
    ("invalid_identity", ("tuple", "str given"), lambda: Context("acme", "alice", SECRET)),  # type: ignore[arg-type]
    ("positive_revision_required", ("1 to 9223372036854775807", "0 given"), lambda: checked_revision(0)),
    ("positive_revision_required", ("9223372036854775808 given",), lambda: checked_revision(2**63)),
    ("positive_revision_required", ("bool given",), lambda: checked_revision(True)),
    ("positive_acl_revision_required", ("-1 given",), lambda: checked_acl_revision(-1)),
    ("explicit_restore_boolean_required", ("True or False", "int given"), lambda: checked_restore(1)),
    ("explicit_acl_list_required", ("list", "tuple given"), lambda: checked_acl((SECRET,))),
    ("explicit_acl_list_required", ("10000", "10001 given"), lambda: checked_acl(["a"] * 10_001)),
    ("explicit_acl_list_required", ("entry 2", "int given"), lambda: checked_acl(["a", 7])),
    ("invalid_provenance", ("Provenance", "dict given"), lambda: checked_provenance({})),
    ("invalid_provenance", ("2048", "2049 given"), lambda: Provenance(uri="a" * 2049)),
    ("text_required", ("string", "bytes given"), lambda: project(b"a", "markdown")),
    ("invalid_text", ("U+0000", "code point 6"), lambda: project(SECRET + "\0", "markdown")),
    ("invalid_text", ("U+D83D", "code point 6"), lambda: project(SECRET + "\ud83d", "text")),
    ("unsupported_format", ("markdown, text, json", "6 characters"), lambda: project(SECRET, SECRET)),
    ("source_too_large", ("4000000", "4000001 given"), lambda: project("a" * 4_000_001, "text")),
    ("source_too_large", ("12000000", "given"), lambda: project("𠮷" * 3_000_001, "text")),
    ("source_too_large", ("200000", "would be needed"), lambda: windows("a" * 200_001, 1, 0)),
    ("invalid_json", ("one JSON value", "line 2, column"), lambda: project(f'{{"title":\n{SECRET}', "json")),
    ("json_too_deep", ("64",), lambda: project("[" * 65, "json")),
    ("unsupported_json_shape", ("title and sections", "list given"), lambda: project("[]", "json")),
    ("unsupported_json_section", ("section 1", "0 keys"), lambda: project('{"title":"","sections":[{}]}', "json")),
    ("invalid_chunk_window", ("4096", "0 and 0 given"), lambda: windows(SECRET, 0, 0)),
    ("invalid_chunk_window", ("integers", "bool and int"), lambda: windows(SECRET, True, 0)),
    ("bounded_query_required", ("1024", "1025 given"), lambda: checked_query("x" * 1025)),
    ("bounded_query_required", ("string", "bytes given"), lambda: checked_query(b"x")),
    ("bounded_query_required", ("surrogates",), lambda: checked_query(SECRET + "\ud800")),
    ("invalid_search_options", ("rrf_k", "1000000", "0 given"), lambda: SearchOptions(rrf_k=0)),
    ("invalid_search_options", ("lexical", "isolated, fts5"), lambda: SearchOptions(lexical=SECRET)),  # type: ignore[arg-type]
    ("invalid_hit", ("mapping", "str given"), lambda: Hit.from_dict(SECRET)),  # type: ignore[arg-type]
    ("invalid_hit", ("revision", "bool given"), lambda: Hit.from_dict(_hit(revision=True))),
    ("invalid_hit", ("known keys", "18 given"), lambda: Hit.from_dict(_hit(extra=SECRET))),
    ("invalid_encoder", ("floor", "NoFloor"), lambda: checked_encoder(NoFloor())),
    ("invalid_encoder", ("dimension", "65536"), lambda: checked_encoder(_with(dimension=-1))),
    ("invalid_encoder", ("floor", "1.0"), lambda: checked_encoder(_with(floor=2.0))),
    ("invalid_encoder", ("identifier", "1000"), lambda: checked_encoder(_with(identifier=""))),
    ("encoder_failed", ("RuntimeError",), lambda: _encoded(RuntimeError(SECRET))),
    ("encoder_result_count_mismatch", ("1 texts given", "2 vectors"), lambda: _encoded(Encoding([[1, 0]] * 2))),
    ("invalid_embedding_output", ("(2,)", "(3,)"), lambda: _encoded(Encoding([[1.0, 0.0, 0.0]]))),
    ("invalid_embedding_output", ("finite",), lambda: _encoded(Encoding([[float("nan"), 0.0]]))),
    ("invalid_embedding_output", ("above zero", "zero"), lambda: _encoded(Encoding([[0.0, 0.0]]))),
    ("invalid_embedding_output", ("2 numbers", "str"), lambda: _encoded(Encoding([SECRET]))),
    ("invalid_embedding_output", ("2 numbers",), lambda: _encoded(Encoding([[SECRET, SECRET]]))),
    ("invalid_embedding_output", ("2 numbers",), lambda: _encoded(Encoding([["1.0", "0.0"]]))),
    ("invalid_embedding_output", ("2 numbers",), lambda: _encoded(Encoding([np.array([1j, 0])]))),
    ("invalid_embedding_output", ("Encoding", "list"), lambda: _encoded([[1.0, 0.0]])),
]


def _chain(error: BaseException) -> Iterator[BaseException]:
    seen: list[BaseException] = []
    left: list[BaseException | None] = [error]
    while left:
        item = left.pop()
        if item is not None and item not in seen:
            seen.append(item)
            left += [item.__cause__, item.__context__]
    return iter(seen)


def _holds_text(error: BaseException) -> bool:
    """Whether an exception, or one behind it, holds the secret anywhere, printed or not."""
    shown = [[item.args, vars(item), getattr(item, "doc", ""), getattr(item, "object", "")] for item in _chain(error)]
    return SECRET in repr(shown)


@pytest.mark.promise("ERR-1")
@pytest.mark.parametrize(("code", "facts", "call"), REFUSALS, ids=[f"{n}-{row[0]}" for n, row in enumerate(REFUSALS)])
def test_a_refusal_names_its_code_and_both_facts_and_no_text(
    code: str, facts: tuple[str, ...], call: Callable[[], object]
) -> None:
    error = error_of(call)
    assert error is not None
    message = GRAMMAR.fullmatch(str(error))
    assert message is not None and message["code"] == code == error.code
    assert message["facts"] == error.facts
    assert [fact for fact in facts if fact not in error.facts] == []
    assert not _holds_text(error)
    assert len(str(error)) < 200


@pytest.mark.promise("ERR-1")
def test_bad_values_are_value_errors_and_a_missing_context_is_a_permission_error(index: Index) -> None:
    for _, _, call in REFUSALS:
        error = error_of(call)
        assert isinstance(error, ValueError) == (error is not None and error.exit_status == 2)
    with pytest.raises(PermissionError, match="trusted_context_required: a Context is required, dict given"):
        index.search("退款", {"tenant": "acme"})  # type: ignore[arg-type]
    with pytest.raises(PermissionError, match="NoneType given"):
        index.answer([], None)  # type: ignore[arg-type]


@pytest.mark.promise("ERR-1")
def test_state_refusals_name_both_numbers(index: Index) -> None:
    index.upsert("acme", "d", 3, "text", SECRET, ["alice"])
    given = {
        "stale_acl_revision": ("4 given", "1 stored", lambda: index.set_acl("acme", "d", [], 4)),
        "stale_or_conflicting_revision": ("2 given", "3", lambda: index.upsert("acme", "d", 2, "text", "x", [])),
        "delete_requires_new_revision": ("3 given", "3 stored", lambda: index.delete("acme", "d", 3)),
        "invalid_answer_limit": ("1 to 10", "11 given", lambda: index.answer([], ALICE, 11)),
        "too_many_hits": ("200", "201 given", lambda: index.answer([_hit()] * 201, ALICE)),
        "hits_list_required": ("list", "int given", lambda: index.answer(7, ALICE)),  # type: ignore[arg-type]
    }
    for code, (first, second, call) in given.items():
        error = error_of(call)
        assert error is not None and error.code == code
        assert first in error.facts and second in error.facts, error
        assert not _holds_text(error)


@pytest.mark.promise("ERR-1", "ERR-2")
def test_no_refusal_of_the_index_has_the_text_anywhere_behind_it(index: Index) -> None:
    enc = Table("t")
    enc.fail_on = SECRET
    calls: list[Callable[[], object]] = [
        lambda: encode_dense(enc, [SECRET], query=True),
        lambda: index.upsert("acme", "d", 1, "json", f'{{"title": "{SECRET}', ["alice"]),
        lambda: index.upsert("acme", "d", 1, "json", f'{{"title": "{SECRET}\ud800"', ["alice"]),
        lambda: index.upsert("acme", "d", 1, "json", json.dumps([SECRET]), ["alice"]),
        lambda: index.upsert("acme", "d", 1, "markdown", SECRET + "\0", ["alice"]),
        lambda: index.search(SECRET + "\udfff", ALICE),
        lambda: index.search(SECRET, ALICE, mode=SECRET),  # type: ignore[arg-type]
        lambda: index.search(SECRET, ALICE, **{SECRET: 1}),  # type: ignore[arg-type]
        lambda: index.status(SECRET + "\n", "d"),
    ]
    for number, call in enumerate(calls):
        error = error_of(call)
        assert error is not None, number
        assert not _holds_text(error), (number, error)


@pytest.mark.promise("ERR-1")
def test_the_code_table_is_unique_and_has_one_exit_status_a_kind() -> None:
    rows = errors.code_table()
    assert len({row.code for row in rows}) == len({row.name for row in rows}) == len(rows) > 40
    assert all(re.fullmatch(r"[a-z][a-z_0-9]*", row.code) for row in rows)
    assert all(row.meaning for row in rows)
    assert {row.exit_status for row in rows} <= {2, 3, 4, 5, 6, 7}
    by_code = {row.code: row.exit_status for row in rows}
    known = {"invalid_identity": 2, "stale_acl_revision": 4, "trusted_context_required": 5, "busy": 6}
    known |= {"index_corrupt": 6, "encoder_failed": 7, "model_missing": 7, "invalid_json": 2, "document_not_live": 4}
    assert {code: by_code[code] for code in known} == known


@pytest.mark.promise("ERR-1")
def test_every_exported_class_of_a_cause_has_its_row() -> None:
    classes = [getattr(errors, name) for name in errors.__all__]
    causes = [c for c in classes if isinstance(c, type) and issubclass(c, KBError) and not c.__subclasses__()]
    assert {c.code for c in causes} <= {row.code for row in errors.code_table()}
    assert len({c.code for c in causes}) == len(causes)
    assert all("code" in vars(c) and (c.__doc__ or "").count("\n") == 0 for c in causes)


def test_every_public_name_can_be_imported() -> None:
    assert set(kbretrieval.__all__) <= set(dir(kbretrieval))
    for name in kbretrieval.__all__:
        assert getattr(kbretrieval, name) is not None
    with pytest.raises(AttributeError, match="no attribute"):
        _ = kbretrieval.nothing
