"""Preference rerank: a weak channel, apart and versioned, over an order left alone otherwise (CTX-54…CTX-60)."""

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kbretrieval.context import Found, Reranked, Row, Signal, Weights, rerank_by_preference, weights_of
from kbretrieval.context.preferences import KINDS, Counts, counted
from kbretrieval.context.weights import CURRENT, MOST_WEIGHT, WEIGHTS
from tests.context.place import Place
from tests.unit.doubles import code_of

GENERATION = "9f2c"
few = settings(max_examples=60)


def row(number: int, doc_id: str, fused: float) -> Row:
    """A row of a search that says nothing."""
    return Row(f"slice:{number}", f"doc:{doc_id}", doc_id, "", "", 1, 0, 1, "", False, (), fused)


def found_of(*rows: tuple[str, float]) -> Found:
    """A search that found slices of these documents with these values."""
    made = tuple(row(number, *item) for number, item in enumerate(rows))
    return Found("scope-1", "call-1", made, (), None, None, (), (1.0, 1.0), GENERATION, 7, "")


def plain(count: int) -> Found:
    """A search that found one slice of each of so many documents, as two channels that agree would rank them."""
    return found_of(*((f"d{number}", 2 / (61 + number)) for number in range(count)))


def did(kind: Any, doc_id: str, position: int = 1, principal: str = "alice") -> Signal:
    """A signal of alice's."""
    return Signal("acme", principal, f"doc:{doc_id}", kind, position, GENERATION, CURRENT)


def order(made: Reranked) -> list[str]:
    """Names of the documents, best first."""
    return [item.doc_id for item in made.rows]


documents = st.sampled_from([f"d{number}" for number in range(8)])
values = st.lists(
    st.tuples(documents, st.sampled_from([0.0, *(1 / (60 + rank) for rank in range(1, 40))])), max_size=14
)
searches = values.map(lambda rows: found_of(*sorted(rows, key=lambda item: -item[1])))
signals_given = st.lists(
    st.builds(did, st.sampled_from(KINDS), documents, st.integers(min_value=1, max_value=50)), max_size=12
)
shown_given = st.integers(min_value=1, max_value=12)


def apart(made: Reranked) -> tuple[list[str], list[str]]:
    """The rows that nothing promoted, in their new order and in that of the search."""
    left = [item for item in made.receipt.placed if not item.part and not item.explored]
    return [item.key for item in left], [item.key for item in sorted(left, key=lambda item: item.place_in_search)]


@pytest.mark.promise("CTX-54")
@few
@given(searches, signals_given, shown_given)
def test_the_channel_never_weighs_more_than_a_quarter(found: Found, signals: list[Signal], shown: int) -> None:
    made = rerank_by_preference(found, signals, shown)
    for item in made.receipt.placed:
        assert 0.0 <= item.part <= 0.25 / 61
        assert item.value == item.relevance + item.part
    for before, after in zip(made.receipt.placed, made.receipt.placed[1:], strict=False):
        if not before.explored:
            assert after.relevance - before.relevance <= 0.25 / 61


@pytest.mark.promise("CTX-54")
@pytest.mark.parametrize("channel", [0.2501, 1.0, -0.1, float("nan"), float("inf")])
def test_no_weights_can_be_made_with_a_stronger_channel(channel: float) -> None:
    assert code_of(Weights, "mine/1", channel=channel) == "context_input_invalid"
    assert all(item.channel <= MOST_WEIGHT == 0.25 for item in WEIGHTS.values())


@pytest.mark.promise("CTX-54", "CTX-57")
@few
@given(searches, st.lists(st.builds(did, st.just("rejected"), documents, st.integers(1, 50)), max_size=5), shown_given)
def test_the_channel_is_off_without_a_preference(found: Found, rejected: list[Signal], shown: int) -> None:
    """Without signals, with signals about other documents, and with rejections alone."""
    for signals in ([], [did("adopted", "elsewhere")], rejected):
        made = rerank_by_preference(found, signals, shown)
        assert made.rows == found.rows
        assert not made.receipt.active
        assert not any(item.part or item.explored for item in made.receipt.placed)


@pytest.mark.promise("CTX-54", "CTX-56")
def test_a_version_that_is_off_leaves_the_order_alone() -> None:
    signals = [did("adopted", "d3")]
    assert order(rerank_by_preference(plain(5), signals, version="preference-off/1")) == order_of(plain(5))
    assert order(rerank_by_preference(plain(5), signals)) != order_of(plain(5))


def order_of(found: Found) -> list[str]:
    """Names of the documents in the order of the search."""
    return [item.doc_id for item in found.rows]


@pytest.mark.promise("CTX-55")
def test_weak_and_strong_signals_are_counted_apart() -> None:
    signals = [did("picked", "d1", 3), did("picked", "d1", 50), did("rejected", "d1", 2)]
    signals += [did("consumed", "d1", 9), did("adopted", "d1", 1), did("consumed", "d2", 5)]
    counts = counted(signals, weights_of(CURRENT))
    assert counts == {"doc:d1": Counts(2, 1, 1, 1, seen=3 + 10 - 2), "doc:d2": Counts(consumed=1)}
    placed = {item.about: item for item in rerank_by_preference(plain(4), signals).receipt.placed}
    assert (placed["doc:d1"].weak, placed["doc:d1"].strong) == (0.25 * 11 / 12, 2 / 3)
    assert (placed["doc:d2"].weak, placed["doc:d2"].strong) == (0.0, 0.5)


@pytest.mark.promise("CTX-55")
def test_a_pick_counts_more_where_fewer_people_look_and_a_use_counts_the_same_everywhere() -> None:
    weights = weights_of(CURRENT)

    def preference(kind: str, position: int) -> float:
        return counted([did(kind, "d1", position)], weights)["doc:d1"].preference(weights)

    picks = [preference("picked", position) for position in range(1, 13)]
    assert picks[:10] == sorted(set(picks)) and picks[9] == picks[10] == picks[11]
    assert {preference("consumed", position) for position in (1, 5, 50)} == {0.5}
    assert preference("rejected", 1) == 0.0


@pytest.mark.promise("CTX-55")
@few
@given(st.integers(0, 10**6), st.integers(0, 10**6))
def test_no_number_of_clicks_outweighs_one_use(picks: int, rejections: int) -> None:
    weights = weights_of(CURRENT)
    clicked, used = (
        Counts(picked=picks, seen=10 * picks),
        Counts(rejected=rejections, consumed=1, seen=-10 * rejections),
    )
    assert clicked.preference(weights) < used.preference(weights)
    assert code_of(Weights, "mine/1", weak=0.26) == "context_input_invalid"


@pytest.mark.promise("CTX-56", "CTX-59")
def test_weights_are_a_versioned_table_and_the_receipt_names_the_version() -> None:
    for version, weights in WEIGHTS.items():
        assert weights.version == version
        assert rerank_by_preference(plain(3), [did("consumed", "d1")], version=version).receipt.version == version
    assert code_of(rerank_by_preference, plain(3), [], version="preference/0") == "context_input_invalid"
    assert code_of(weights_of, None) == "context_input_invalid"
    # These numbers are what "preference/1" means in every receipt and signal that names it.
    assert weights_of("preference/1") == Weights("preference/1", 0.25, 60, 0.25, 1.0, 10, 2)
    with pytest.raises(TypeError):
        WEIGHTS["preference/1"] = Weights("preference/1", 0.1)  # type: ignore[index]


@pytest.mark.promise("CTX-57")
def test_places_go_to_candidates_without_signals_when_preferred_ones_fill_the_view() -> None:
    """Ten documents as good as each other; the reader sees four and has used six of them."""
    found = found_of(*((f"d{number}", 1 / 61) for number in range(10)))
    made = rerank_by_preference(found, [did("consumed", f"d{number}") for number in range(6)], shown=4)
    assert order(made) == ["d0", "d1", "d6", "d7", "d2", "d3", "d4", "d5", "d8", "d9"]
    assert [item.about for item in made.receipt.placed if item.explored] == ["doc:d6", "doc:d7"]


@pytest.mark.promise("CTX-57")
def test_half_of_the_view_at_most_and_nothing_irrelevant_is_explored() -> None:
    found = found_of(("d0", 1 / 61), ("d1", 1 / 61), ("d2", 1 / 61), ("d3", 0.0))
    used = [did("consumed", "d0"), did("consumed", "d1")]
    assert order(rerank_by_preference(found, used, shown=1)) == ["d0", "d1", "d2", "d3"]
    assert order(rerank_by_preference(found, used, shown=2)) == ["d0", "d2", "d1", "d3"]
    zero = found_of(("d0", 1 / 61), ("d1", 1 / 61), ("d3", 0.0))
    assert order(rerank_by_preference(zero, used, shown=2)) == ["d0", "d1", "d3"]


@pytest.mark.promise("CTX-57")
@few
@given(searches, signals_given, shown_given)
def test_there_is_room_for_candidates_without_signals(found: Found, signals: list[Signal], shown: int) -> None:
    receipt = rerank_by_preference(found, signals, shown).receipt
    known = {signal.about for signal in signals}
    fresh = [item.place for item in receipt.placed if item.about not in known and item.relevance > 0]
    places = min(2, min(shown, len(found.rows)) // 2, len(fresh))
    if receipt.active:
        assert sum(place <= shown for place in fresh) >= places
    explored = [item for item in receipt.placed if item.explored]
    assert len(explored) <= 2
    assert all(item.place <= shown and item.about not in known and item.relevance > 0 for item in explored)


@pytest.mark.promise("CTX-57")
@few
@given(searches, signals_given, shown_given)
def test_the_tail_that_was_not_promoted_keeps_its_order(found: Found, signals: list[Signal], shown: int) -> None:
    made = rerank_by_preference(found, signals, shown)
    after, before = apart(made)
    assert after == before
    fresh = [item.place_in_search for item in made.receipt.placed if item.is_fresh]
    assert fresh == sorted(fresh)
    assert sorted(made.rows, key=lambda item: item.key) == sorted(found.rows, key=lambda item: item.key)


@pytest.mark.promise("CTX-58")
@few
@given(searches, signals_given, shown_given, st.randoms(use_true_random=False))
def test_the_same_input_gives_the_same_output(found: Found, signals: list[Signal], shown: int, random: Any) -> None:
    """Whatever the order in which the signals come, and whoever's tenant and generation they carry."""
    mixed = random.sample(signals, len(signals))
    other = [replace(signal, tenant="zeta", principal="zoe", generation="0") for signal in mixed]
    first = rerank_by_preference(found, signals, shown)
    assert first == rerank_by_preference(found, mixed, shown) == rerank_by_preference(found, tuple(other), shown)
    assert first.to_dict() == rerank_by_preference(found, signals, shown).to_dict()


@pytest.mark.promise("CTX-59")
def test_the_receipt_shows_version_parts_and_exploration() -> None:
    found = found_of(("d0", 1 / 61), ("d1", 1 / 61), ("d2", 1 / 61), ("d0", 1 / 62))
    receipt = rerank_by_preference(found, [did("consumed", "d1"), did("picked", "d0", 4)], shown=2).receipt
    told = json.loads(json.dumps(receipt.to_dict()))
    assert (told["version"], told["generation"], told["scope"]) == ("preference/1", GENERATION, "scope-1")
    assert (told["shown"], told["signals"], told["active"]) == (2, 2, True)
    assert [(item["key"], item["place_in_search"], item["explored"]) for item in told["placed"]] == [
        ("slice:1", 2, False),
        ("slice:2", 3, True),
        ("slice:0", 1, False),
        ("slice:3", 4, False),
    ]
    assert [item["part"] for item in told["placed"]] == [0.25 / 61, 0.0, 0.25 / 62, 0.25 / 62]
    assert told["placed"][0]["counts"]["consumed"] == told["placed"][2]["counts"]["picked"] == 1


@pytest.mark.promise("CTX-60")
def test_a_receipt_grants_nothing_and_signals_bring_nothing_in(place: Place) -> None:
    scope = place.scope()
    found = place.tasks.search(scope, "退款期限")
    adopted = [did("adopted", name) for name in ("secret", "travel", "refund")]
    made = rerank_by_preference(found, adopted)
    assert {item.doc_id for item in made.rows} == {item.doc_id for item in found.rows} <= {"refund", "leave"}
    for taken in (made, made.receipt, made.receipt.placed[0]):
        assert code_of(place.tasks.assemble, scope, must_read=[taken]) == "context_input_invalid"
    place.index.delete("acme", "refund", 2)
    assert code_of(place.tasks.assemble, scope, must_read=list(made.rows)) == "context_must_read_missing"
    assert code_of(place.tasks.read, scope, "refund") == "context_source_deleted"


def refused() -> list[tuple[Any, ...]]:
    """Arguments that are none of a rerank."""
    backwards: Sequence[Any] = [("d0", 0.1), ("d1", 0.2)]
    return [
        (found_of(*backwards), []),
        (found_of(("d0", float("nan"))), []),
        (found_of(("d0", float("inf"))), []),
        (found_of(("d0", -0.1)), []),
        (replace(plain(2), rows=plain(1).rows * 2), []),
        (plain(2).rows, []),
        (plain(2), did("picked", "d1")),
        (plain(2), ["picked"]),
        (plain(2), [did("picked", "d1"), did("picked", "d1", principal="bob")]),
        (plain(2), [], 0),
        (plain(2), [], 51),
        (plain(2), [], True),
    ]


@pytest.mark.parametrize("arguments", refused())
def test_anything_else_is_refused(arguments: tuple[Any, ...]) -> None:
    assert code_of(rerank_by_preference, *arguments) == "context_input_invalid"


@pytest.mark.promise("CTX-55")
@pytest.mark.parametrize("changes", [{"kind": "seen"}, {"position": 0}, {"position": 51}, {"about": "slice:7"}])
def test_a_signal_is_one_of_four_kinds_about_a_document(changes: dict[str, Any]) -> None:
    assert code_of(replace, did("picked", "d1"), **changes) == "context_input_invalid"


@pytest.mark.promise("CTX-56")
@pytest.mark.parametrize("changes", [{"explored": 0}, {"explored": 3}, {"rrf_k": 0}, {"deepest": True}, {"weak": "1"}])
def test_weights_out_of_range_are_refused(changes: dict[str, Any]) -> None:
    assert code_of(Weights, "mine/1", **changes) == "context_input_invalid"
