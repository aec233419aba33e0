"""Everything that is returned: frozen, slotted, exportable; `Hit` comes back from JSON as it was (CIT-2, RRF-2)."""

import dataclasses
import json
import math
from typing import Any, get_type_hints

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbretrieval import Context, Hit, Index, Provenance, SearchOptions, results
from kbretrieval.results import ChannelRank, Exported
from tests.unit.doubles import code_of

CLASSES = [c for c in vars(results).values() if dataclasses.is_dataclass(c) and c.__module__ == results.__name__]
EXPORTED = [c for c in CLASSES if isinstance(c, type) and issubclass(c, Exported)]


@pytest.mark.parametrize("kind", [*CLASSES, Context, Provenance, SearchOptions], ids=lambda c: c.__name__)
def test_every_result_class_is_frozen_slotted_and_typed(kind: Any) -> None:
    assert kind.__dataclass_params__.frozen
    assert "__slots__" in vars(kind)
    hints = get_type_hints(kind, vars(results))
    assert all(field.name in hints for field in dataclasses.fields(kind))
    assert (kind.__doc__ or "").strip()


def test_every_schema_version_is_its_own() -> None:
    schemas = [kind.SCHEMA for kind in EXPORTED]
    assert len(set(schemas)) == len(schemas) >= 11
    assert all(schema.startswith("kbretrieval.") and schema.rpartition("/")[2].isdigit() for schema in schemas)


@pytest.mark.promise("ERR-2", "OBS-1")
def test_a_channel_that_a_search_has_not_is_refused(index: Index, alice: Context) -> None:
    found = index.search("退款", alice)
    assert [found.channel(name).channel for name in ("lexical", "vector")] == ["lexical", "vector"]
    odd: list[Any] = ["Lexical", "", None, ["lexical"]]
    assert [code_of(found.channel, name) for name in odd] == ["invalid_parameter"] * len(odd)


@pytest.mark.promise("ID-6", "OBS-1")
def test_everything_that_the_index_returns_is_json(index: Index, alice: Context) -> None:
    made: list[Any] = [
        index.upsert(
            "acme", "d", 1, "markdown", "# 甲\n\n退款", ["alice"], provenance=Provenance(uri="u", version="7")
        ),
        index.upsert("acme", "e", 1, "text", "退款", ["alice"]),
        index.set_acl("acme", "d", ["alice", "bob"], 1),
        index.search("退款", alice),
        index.status("acme", "d"),
        *index.documents("acme"),
    ]
    made += [index.answer(made[3], alice), *made[3], index.delete("acme", "e", 2), index.purge()]
    for item in made:
        assert not hasattr(item, "__dict__")
        with pytest.raises((dataclasses.FrozenInstanceError, TypeError)):
            setattr(item, dataclasses.fields(item)[0].name, None)
        exported = item.to_dict()
        assert exported["schema"] == type(item).SCHEMA
        assert list(exported)[1:] == [field.name for field in dataclasses.fields(item)]
        back = json.loads(json.dumps(exported, ensure_ascii=False, allow_nan=False))
        assert json.dumps(back) == json.dumps(exported)
    evidence = index.answer(made[3], alice, limit=10).evidence
    assert [item.provenance for item in evidence] == [Provenance(uri="u", version="7")]


TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
NUMBER = st.floats(allow_nan=False, allow_infinity=False)
POSITIVE = st.integers(1, 2**63 - 1)
RANKS = st.tuples(st.booleans(), st.booleans(), POSITIVE, NUMBER).map(
    lambda t: tuple(ChannelRank(name, t[2], t[3]) for name, used in (("lexical", t[0]), ("vector", t[1])) if used)
)
HITS = st.builds(
    Hit,
    **dict.fromkeys(("chunk_key", "revision", "acl_revision"), POSITIVE),
    **{name: st.integers(0, 2**63 - 1) for name in ("start", "end")},
    **dict.fromkeys(
        ("tenant", "doc_id", "document_sha256", "chunk_sha256", "principal", "text", "title", "heading"), TEXT
    ),
    channels=RANKS,
    fused=NUMBER,
    title_overlap=NUMBER,
)


@pytest.mark.promise("CIT-2", "RRF-2")
@given(HITS)
def test_a_hit_comes_back_from_json_as_it_was(hit: Hit) -> None:
    assert Hit.from_dict(hit.to_dict()) == hit
    assert Hit.from_dict(json.loads(json.dumps(hit.to_dict()))) == hit
    for field in dataclasses.fields(Hit):
        left, right = getattr(Hit.from_dict(hit.to_dict()), field.name), getattr(hit, field.name)
        assert type(left) is type(right)


ODD: list[object] = [None, True, 1.0, math.nan, math.inf, 2**70, -1, "", "\ud800", [], {}, b"x", 0, 1]


def _accepts(name: str, value: object) -> bool:
    """Whether a field may hold an odd value after all."""
    if name in ("chunk_key", "revision", "acl_revision"):
        return type(value) is int and value == 1
    if name in ("start", "end"):
        return type(value) is int and value in (0, 1)
    if name in ("fused", "title_overlap"):
        return type(value) is float and value == 1.0
    return value == {} if name == "channels" else name != "schema" and type(value) is str and value == ""


@pytest.mark.promise("CIT-2", "ERR-1")
def test_missing_extra_and_odd_typed_fields_are_invalid(index: Index, alice: Context) -> None:
    index.upsert("acme", "d", 1, "text", "退款", ["alice"])
    good = index.search("退款", alice)[0].to_dict()
    refused = 0
    for name in good:
        assert code_of(Hit.from_dict, {k: v for k, v in good.items() if k != name}) == "invalid_hit"
        for value in ODD:
            code = code_of(Hit.from_dict, good | {name: value})
            assert code == (None if _accepts(name, value) else "invalid_hit"), (name, value)
            refused += code is not None
    assert refused > 200
    assert code_of(Hit.from_dict, good | {"extra": 1}) == "invalid_hit"
    assert code_of(Hit.from_dict, good | {"schema": "kbretrieval.hit/2"}) == "invalid_hit"
    for channels in ({"other": {}}, {"lexical": {}}, {"lexical": {"rank": 0, "score": 1.0}}, {"lexical": [1, 1.0]}):
        assert code_of(Hit.from_dict, good | {"channels": channels}) == "invalid_hit"
    for score in (1, True, math.nan, None, "1"):
        assert code_of(Hit.from_dict, good | {"channels": {"vector": {"rank": 1, "score": score}}}) == "invalid_hit"


@pytest.mark.promise("ERR-2", "CIT-2")
@given(
    st.recursive(
        st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5)),
        lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(st.text(max_size=12), inner, max_size=6)),
        max_leaves=12,
    )
)
def test_arbitrary_json_is_an_invalid_hit(value: Any) -> None:
    assert code_of(Hit.from_dict, value) == "invalid_hit"
