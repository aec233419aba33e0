"""Convex fusion and what it makes of a chunk that a channel left out (RRF-4), on lists and against the search."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbretrieval.evaluation.collection import READER, collected
from kbretrieval.evaluation.runs import DEPTH, orders, settings
from kbretrieval.evaluation.testset import load_judged_set
from kbretrieval.evaluation.vector_cache import VectorCache
from kbretrieval.fusion import convex, left_out_score
from tests.unit.small_set import CountingEncoder, write_set

SCORES = st.dictionaries(st.integers(1, 30), st.floats(0.01, 1.0), min_size=1, max_size=25)


@pytest.mark.promise("RRF-4")
def test_a_chunk_just_below_the_floor_does_not_lose_its_lexical_lead() -> None:
    """Best lexical row, cosine .39 under a floor of .40; its rival has .41 and no term in common with the query."""
    lists = [("lexical", [(1, 9.0)]), ("vector", [(3, 0.45), (2, 0.41)])]
    left_out = {"lexical": 0.0, "vector": 0.4}
    assert [item.key for item in convex(lists, 0.15, left_out)] == [1, 3, 2]
    assert [item.key for item in convex(lists, 0.15)] == [3, 2, 1], "with nothing for a left out chunk it would be last"


@pytest.mark.promise("RRF-4")
@pytest.mark.parametrize(
    ("rows", "floor", "beyond", "expected"),
    [
        ([(1, 3.0), (2, 2.0)], None, 0, 0.0),
        ([(1, 3.0), (2, 2.0)], None, 4, 2.0),
        ([(1, -3.0), (2, -2.0)], None, 4, -2.0),
        ([(1, 0.9)], 0.4, 0, 0.4),
        ([(1, 0.9), (2, 0.8)], 0.4, 1, 0.8),
        ([], 0.4, 0, 0.4),
    ],
)
def test_what_a_left_out_chunk_can_have_scored(
    rows: list[tuple[int, float]], floor: float | None, beyond: int, expected: float
) -> None:
    assert left_out_score(rows, floor, beyond) == expected


@pytest.mark.promise("RRF-4")
@given(SCORES, SCORES, st.floats(0.0, 1.0), st.integers(1, 10))
def test_the_value_is_never_below_that_of_the_full_lists(
    lexical: dict[int, float], vector: dict[int, float], share: float, window: int
) -> None:
    """What the window cut counts with a bound from above: no candidate is worth less than with both lists whole."""
    whole, cut, left_out = [], [], {}
    for name, scores in (("lexical", lexical), ("vector", vector)):
        rows = sorted(scores.items(), key=lambda item: (-item[1], item[0]))
        whole.append((name, rows))
        cut.append((name, rows[:window]))
        left_out[name] = left_out_score(rows[:window], None, len(rows) - len(rows[:window]))
    exact = {item.key: item.value for item in convex(whole, share, {"lexical": 0.0, "vector": 0.0})}
    for item in convex(cut, share, left_out):
        assert item.value >= exact[item.key] - 1e-12
        if len(item.channels) == 2:
            assert item.value == exact[item.key]


@pytest.mark.promise("RRF-4", "QUA-1", "QUA-5")
@pytest.mark.parametrize("floor", [-1.0, 0.1])
def test_the_evaluation_ranks_as_the_search_does(tmp_path: Path, floor: float) -> None:
    """Fusing both channels' lists outside the index gives exactly the search's order and values, in every setting."""
    judged = load_judged_set(write_set(tmp_path / "set", passages=30))
    encoder = VectorCache(CountingEncoder(floor=floor), None)
    with collected(judged, encoder) as collection:
        for question in judged.questions[:6]:
            found = orders(collection.scored(question.text), settings())
            for setting in settings():
                hits = collection.index.search(question.text, READER, DEPTH, setting.mode, setting.options)
                ours = [(item.key, item.value, item.channels) for item in found[setting.name][:DEPTH]]
                assert ours == [(hit.chunk_key, hit.fused, hit.channels) for hit in hits]
