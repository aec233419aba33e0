"""Aggregates computed again from rows (EVD-4) and TREC files (EVD-8)."""

from fractions import Fraction

import ir_measures
import pytest
from hypothesis import given
from hypothesis import strategies as st
from ir_measures import RR, R

from kbretrieval.evidence.aggregates import OPS, aggregate, fixed
from kbretrieval.evidence.errors import AggregateInvalid, TrecInvalid
from kbretrieval.evidence.schema import load_schema
from kbretrieval.evidence.trec import qrels_text, run_text

ROWS = [
    {"id": "q01", "recall": "1.0", "hit": True, "rank": 1, "positive": True},
    {"id": "q02", "recall": "0.8", "hit": False, "rank": 3, "positive": True},
    {"id": "q03", "recall": "0.0", "hit": True, "rank": 1, "positive": False},
]


@pytest.mark.promise("EVD-4")
@pytest.mark.parametrize(
    ("rule", "value"),
    [
        ({"op": "count"}, 3),
        ({"op": "count", "where": {"positive": True}}, 2),
        ({"op": "count", "where": {"rank": 2}}, 0),
        ({"op": "mean", "field": "recall", "where": {"positive": True}}, "0.9"),
        ({"op": "mean", "field": "recall"}, "0.6"),
        ({"op": "mean", "field": "recall", "places": 4}, "0.6000"),
        ({"op": "mean", "field": "hit"}, "0.6666666666666666"),
        ({"op": "sum", "field": "rank"}, 5),
        ({"op": "sum", "field": "hit"}, 2),
        ({"op": "sum", "field": "recall"}, "1.8"),
        ({"op": "min", "field": "rank"}, 1),
        ({"op": "max", "field": "recall"}, "1.0"),
        ({"op": "all", "field": "positive", "where": {"rank": 3}}, True),
        ({"op": "all", "field": "hit"}, False),
        ({"op": "all_equal", "field": "rank"}, False),
        ({"op": "all_equal", "field": "rank", "where": {"hit": True}}, True),
        ({"op": "distinct", "field": "rank"}, 2),
        ({"op": "only", "field": "id", "where": {"rank": 3}}, "q02"),
        ({"op": "list", "field": "id"}, ["q01", "q02", "q03"]),
    ],
)
def test_ops(rule: dict, value: object) -> None:
    got = aggregate(ROWS, rule)
    assert (got, type(got)) == (value, type(value))


@pytest.mark.promise("EVD-4")
@pytest.mark.parametrize(
    "rule",
    [
        {"op": "median", "field": "rank"},
        {"op": "mean"},
        {"op": "mean", "field": "absent"},
        {"op": "mean", "field": "id"},
        {"op": "min", "field": "hit"},
        {"op": "all", "field": "rank"},
        {"op": "only", "field": "id"},
        {"op": "count", "field": "id"},
        {"op": "list", "field": "id", "places": 1},
        {"op": "mean", "field": "rank", "places": 16},
        {"op": "count", "where": []},
        {"op": "count", "where": {"absent": None}},
        {"op": "count", "where": {"rank": True}},
        {"op": "count", "where": {"rank": 1, "recal": "1.0"}},
        *({"op": op, "field": "rank", "where": {"rank": 9}} for op in ("mean", "min", "all", "all_equal", "only")),
    ],
)
def test_what_cannot_be_computed_is_refused(rule: dict) -> None:
    with pytest.raises(AggregateInvalid):
        aggregate(ROWS, rule)


@pytest.mark.parametrize("text", ["1/3", " 1", "1_0", "01", "nan", "inf", "1e9999", "١", "--1", "1."])
def test_only_plain_decimals_are_numbers(text: str) -> None:
    with pytest.raises(AggregateInvalid):
        aggregate([{"n": text}], {"op": "sum", "field": "n"})


def test_the_schema_knows_the_same_ops() -> None:
    assert tuple(load_schema()["$defs"]["aggregate"]["properties"]["op"]["enum"]) == OPS


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=20))
def test_the_sum_is_the_correctly_rounded_sum_of_what_is_written(numbers: list[float]) -> None:
    got = aggregate([{"n": repr(number)} for number in numbers], {"op": "sum", "field": "n"})
    assert got == repr(float(sum(Fraction(repr(number)) for number in numbers)))


@given(st.fractions(), st.integers(0, 6))
def test_fixed_places_are_within_half_a_step(number: Fraction, places: int) -> None:
    shown = fixed(number, places)
    assert abs(Fraction(shown) - number) * 2 <= Fraction(1, 10**places)
    assert len(shown.partition(".")[2]) == places


names = st.text("abcxyz019-_.:", min_size=1, max_size=6)


@pytest.mark.promise("EVD-8")
@given(st.dictionaries(names, st.lists(names, min_size=1, max_size=6, unique=True), min_size=1, max_size=4))
def test_another_reader_sees_the_same_ranking(rankings: dict[str, list[str]]) -> None:
    read: dict[str, list[tuple[float, str]]] = {}
    for line in ir_measures.read_trec_run(run_text(rankings)):
        read.setdefault(line.query_id, []).append((-line.score, line.doc_id))
    assert {query: [doc for _, doc in sorted(docs)] for query, docs in read.items()} == rankings


@pytest.mark.promise("EVD-8")
def test_a_measuring_tool_finds_the_metrics_of_the_ranking() -> None:
    # The tool breaks ties by document name; names in falling order would show a lost rank.
    run = run_text({"q01": ["z", "y", "x"], "q02": ["b", "a"]})
    qrels = qrels_text({"q01": {"y": 1}, "q02": {"b": 1, "a": 0}})
    measured = ir_measures.calc_aggregate(
        [RR, R @ 1], ir_measures.read_trec_qrels(qrels), ir_measures.read_trec_run(run)
    )
    assert measured == {RR: 0.75, R @ 1: 0.5}


@pytest.mark.promise("EVD-8")
@pytest.mark.parametrize("ranking", [["a", "a"], ["a b"], [""], ["a\n"]])
def test_names_without_a_trec_form_are_refused(ranking: list[str]) -> None:
    with pytest.raises(TrecInvalid):
        run_text({"q": ranking})


def test_a_relevance_that_is_no_whole_number_is_refused() -> None:
    with pytest.raises(TrecInvalid):
        qrels_text({"q": {"a": True}})
