"""FLT-2: every field of a hit, missing, odd-typed, or carrying another document's valid value (C051, C052)."""

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, overload

import pytest

from kbretrieval import Answer, Context, Hit, Index
from kbretrieval.results import ChannelRank
from tests.unit.doubles import code_of, docs, quotes

IDENTITY = {
    "chunk_key",
    "tenant",
    "doc_id",
    "revision",
    "acl_revision",
    "document_sha256",
    "chunk_sha256",
    "start",
    "end",
    "principal",
}
NAMES = [item.name for item in fields(Hit)]
ABSENT = object()
ODD: dict[str, Any] = {
    "missing": ABSENT,
    "none": None,
    "bool": True,
    "float": 1.5,
    "nan": math.nan,
    "2^70": 2**70,
    "empty": "",
    "surrogate": "\ud800",
    "list": [],
    "dict": {},
}
GOOD = "# 乙\n\n值班安排在周五。"


@dataclass(frozen=True)
class Desk:
    """A hit to be forged, another one that differs in every field, and a good one that must survive."""

    index: Index
    alice: Context
    hit: Hit
    other: Hit
    good: Hit

    def answered(self, hit: object) -> str:
        return as_bytes(self.index.answer([hit], self.alice, limit=10))  # type: ignore[list-item]


def as_bytes(answer: Answer) -> str:
    return json.dumps(answer.to_dict(), ensure_ascii=False, sort_keys=True)


def filled(index: Index) -> Desk:
    alice, bob = Context("acme", "alice"), Context("beta", "bob")
    index.upsert("acme", "mine", 1, "markdown", "# 甲\n\n差旅上限五百元。", ["alice"])
    index.upsert("acme", "good", 1, "markdown", GOOD, ["alice"])
    text = "# 差旅总则\n\n" + "\n\n".join(
        f"## 第{i}节\n\n差旅上限另行规定，第{i}条说明。" + "细则。" * 30 for i in range(3)
    )
    index.upsert("beta", "theirs", 1, "markdown", "# 差旅\n\n旧", ["bob"])
    index.upsert("beta", "theirs", 2, "markdown", text, ["bob"])
    index.set_acl("beta", "theirs", ["bob", "alice"], 1)
    (hit,) = index.search("差旅上限", alice)
    other = next(h for h in index.search("差旅第2条", bob, mode="lexical") if h.start > 0)
    (good,) = index.search("值班安排", alice)
    return Desk(index, alice, hit, other, good)


@pytest.fixture
def desk(index: Index) -> Desk:
    return filled(index)


@pytest.fixture(scope="module")
def shared_desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    """One desk for the whole table: no case writes."""
    with Index.open(tmp_path_factory.mktemp("forged") / "kb.sqlite") as index:
        yield filled(index)


def test_the_other_hit_differs_in_every_field(shared_desk: Desk) -> None:
    """Or replacing a field would be no forgery."""
    same = [name for name in NAMES if getattr(shared_desk.hit, name) == getattr(shared_desk.other, name)]
    assert same == []
    assert len(NAMES) * (len(ODD) + 1) >= 176


def judged(desk: Desk, name: str, forged: object) -> None:
    """The property behind the table, whatever the value: nothing, or exactly the evidence of the hit unforged."""
    genuine, nothing = desk.answered(desk.hit), as_bytes(desk.index.answer([], desk.alice))
    alone = desk.answered(forged)
    assert alone == nothing if name in IDENTITY else alone in (genuine, nothing)
    assert quotes(desk.index.answer([forged, desk.good], desk.alice, limit=10))[-1:] == [GOOD]  # type: ignore[list-item]


@pytest.mark.promise("FLT-2", "CIT-2", "CIT-8")
@pytest.mark.parametrize("odd", ODD)
@pytest.mark.parametrize("name", [*NAMES, "schema"])
def test_an_odd_value_in_a_mapping(shared_desk: Desk, name: str, odd: str) -> None:
    """C052. An identity field gives no evidence; the hit after it is still answered; `from_dict` is as strict."""
    exported = shared_desk.hit.to_dict()
    forged = {key: value for key, value in exported.items() if key != name}
    if ODD[odd] is not ABSENT:
        forged[name] = ODD[odd]
    judged(shared_desk, name, forged)
    refused = code_of(Hit.from_dict, forged)
    assert refused in (None, "invalid_hit")
    well_typed = {("text", "empty"), ("title", "empty"), ("heading", "empty"), ("doc_id", "empty")}
    well_typed |= {(n, "empty") for n in ("tenant", "principal", "document_sha256", "chunk_sha256")}
    well_typed |= {("fused", "float"), ("title_overlap", "float"), ("channels", "dict")}
    assert (refused is None) == ((name, odd) in well_typed)
    (verdict,) = shared_desk.index.audit([forged], shared_desk.alice)
    assert (verdict.verdict == "malformed") == (refused is not None)


@pytest.mark.promise("FLT-2", "CIT-2", "CIT-8")
@pytest.mark.parametrize("odd", [name for name in ODD if name != "missing"])
@pytest.mark.parametrize("name", NAMES)
def test_an_odd_value_in_a_hit(shared_desk: Desk, name: str, odd: str) -> None:
    """A `Hit` made by `dataclasses.replace` is judged like a mapping: its types are not believed."""
    forged = replace(shared_desk.hit, **{name: ODD[odd]})
    judged(shared_desk, name, forged)
    if name == "channels":
        assert [item.verdict for item in shared_desk.index.audit([forged], shared_desk.alice)] == ["malformed"]


@pytest.mark.promise("FLT-2", "CIT-2")
@pytest.mark.parametrize("as_mapping", [False, True])
@pytest.mark.parametrize("name", NAMES)
def test_another_documents_valid_value(shared_desk: Desk, name: str, as_mapping: bool) -> None:
    """C051. Identity: no evidence. Descriptive: evidence unchanged, byte for byte."""
    forged: Any = replace(shared_desk.hit, **{name: getattr(shared_desk.other, name)})
    if as_mapping:
        forged = json.loads(json.dumps(forged.to_dict()))
    judged(shared_desk, name, forged)
    if name not in IDENTITY:
        assert shared_desk.answered(forged) == shared_desk.answered(shared_desk.hit)
    assert shared_desk.index.answer([forged], Context("beta", "bob")).state == "abstain"


@pytest.mark.promise("CIT-2")
def test_a_forgery_that_equals_an_obtainable_hit_is_that_hit(desk: Desk) -> None:
    """All identity fields together name one current chunk: who wrote them down does not matter."""
    (second,) = desk.index.search("值班安排", desk.alice)
    rewritten = replace(desk.hit, **{name: getattr(second, name) for name in IDENTITY})
    assert quotes(desk.index.answer([rewritten], desk.alice)) == [GOOD]


@pytest.mark.promise("CIT-2", "CIT-1")
def test_the_key_of_a_twin_under_another_document_is_refused(index: Index, alice: Context, bob: Context) -> None:
    """C051: same text, same coordinates, same digest, but the chunk stands under a document of bob's."""
    text = "# 甲\n\n差旅上限六百元"
    index.upsert("acme", "mine", 1, "markdown", text, ["alice"])
    index.upsert("acme", "twin", 1, "markdown", text, ["bob"])
    (mine,), (twin,) = index.search("差旅", alice), index.search("差旅", bob)
    assert (mine.chunk_sha256, mine.start, mine.end) == (twin.chunk_sha256, twin.start, twin.end)
    assert index.answer([replace(mine, chunk_key=twin.chunk_key)], alice).state == "abstain"
    assert [item.verdict for item in index.audit([replace(mine, chunk_key=twin.chunk_key)], alice)] == ["chunk missing"]


@pytest.mark.promise("CIT-2", "CIT-8", "ERR-2")
def test_nothing_that_is_nested_or_alive_gets_through(desk: Desk) -> None:
    """Deep nesting, classes that pretend, mappings that change their mind: skipped, never raised."""
    deep: Any = ()
    for _ in range(5000):
        deep = (deep,)

    class Text(str):
        pass

    class Number(int):
        pass

    class Fickle(dict[str, Any]):
        def __getitem__(self, key: str) -> Any:
            raise KeyError(key)

    class Wavering(Mapping[str, Any]):
        """Passes the first look at each field and gives another document's value at the second."""

        def __init__(self, first: dict[str, Any], second: dict[str, Any]) -> None:
            self.first, self.second, self.asked = first, second, set[str]()

        def __getitem__(self, key: str) -> Any:
            again = key in self.asked
            self.asked.add(key)
            return (self.second if again else self.first)[key]

        def __iter__(self) -> Iterator[str]:
            return iter(self.first)

        def __len__(self) -> int:
            return len(self.first)

    exported = desk.hit.to_dict()
    two = ChannelRank("lexical", 1, 1.0)
    probes: list[object] = [
        replace(desk.hit, text=deep),
        replace(desk.hit, channels=(two, two)),
        replace(desk.hit, channels=(ChannelRank([], 1, 1.0),)),  # type: ignore[arg-type]
        replace(desk.hit, channels=[two]),  # type: ignore[arg-type]
        replace(desk.hit, tenant=Text("acme")),
        replace(desk.hit, revision=Number(1)),
        {**exported, "extra": 1},
        {**exported, 5: 1},
        object.__new__(Hit),
        Hit,
        None,
        5,
        "hit",
        [],
        object(),
    ]
    for probe in probes:
        (verdict,) = desk.index.audit([probe], desk.alice)  # type: ignore[list-item]
        assert verdict.verdict == "malformed", probe
    fickle: list[Any] = [Fickle(exported), Wavering(exported, {key: object() for key in exported})]
    for probe in fickle:
        assert desk.answered(probe) in (desk.answered(desk.hit), desk.answered(None))
    everything = desk.index.answer([*probes[:9], *fickle, desk.good], desk.alice, limit=10)  # type: ignore[list-item]
    assert GOOD in quotes(everything)


@pytest.mark.promise("CIT-8", "CIT-7")
def test_what_is_no_list_of_hits(desk: Desk) -> None:
    """C052: not a sequence, too many, limits that are none."""
    good, alice, index = desk.good, desk.alice, desk.index
    for value in (None, 5, {}, {1, 2}, iter([good]), "hits", b"hits"):
        assert code_of(index.answer, value, alice) == code_of(index.audit, value, alice) == "hits_list_required"
    assert [code_of(index.answer, [good] * n, alice) for n in (0, 200, 201)] == [None, None, "too_many_hits"]
    assert code_of(index.audit, [good] * 201, alice) == "too_many_hits"
    wrong = (0, 11, -1, True, 1.0, "1", None, 2**70)
    assert {code_of(index.answer, [good], alice, limit) for limit in wrong} == {"invalid_answer_limit"}
    assert docs(index.search("值班安排", alice)) == ["good"]


class Endless(Sequence[Any]):
    """Says that it holds one hit, and always has another."""

    def __len__(self) -> int:
        return 1

    @overload
    def __getitem__(self, index: int) -> object: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[object]: ...
    def __getitem__(self, index: int | slice) -> object:
        return index


@pytest.mark.promise("CIT-8", "ERR-2")
def test_a_sequence_that_has_no_end_or_cannot_be_counted_is_too_long(desk: Desk) -> None:
    """It is taken before the transaction begins, and no further than it may be."""
    for hits in (Endless(), range(10**30)):
        for call in (desk.index.answer, desk.index.audit):
            assert code_of(call, hits, desk.alice) == "too_many_hits"
