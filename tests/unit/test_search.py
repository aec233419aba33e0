"""The trace, limits, windows and modes of a search (RRF-3, OBS-1)."""

import json
import pickle
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kbretrieval import Context, Index, SearchResult
from tests.unit.doubles import MODES, RandomVectors, code_of, docs, error_of, rank

ALICE = Context("acme", "alice")


@pytest.fixture(scope="module", params=["terms", "dense"])
def filled(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Index:
    encoder = RandomVectors(6, floor=0.1) if request.param == "dense" else None
    index = Index.open(tmp_path_factory.mktemp("search") / "kb", encoder, 40, 10)
    for number in range(25):
        text = "退款政策说明" * (number % 3) + f" 编号{number} " + "发票 " * (number % 4) + "\n\n正文" * 9
        index.upsert("acme", f"d{number:02}", 1, "text", text, [["alice"], ["bob"], ["*"]][number % 3])
    request.addfinalizer(index.close)
    return index


def assert_trace_adds_up(result: SearchResult) -> None:
    for trace in result.channels:
        assert trace.eligible >= trace.scored >= 0
        assert trace.scored == trace.below_floor + trace.beyond_window + trace.returned
        assert min(trace.below_floor, trace.beyond_window, trace.returned) >= 0
        assert trace.returned <= result.options.window and trace.terms_used <= min(64, trace.terms_given)
        assert (trace.state == "skipped") == (trace.reason is not None)
        placed = [rank(hit, trace.channel) for hit in result if rank(hit, trace.channel)]
        assert len(set(placed)) == len(placed) and max(placed, default=0) <= trace.returned
        if trace.state == "skipped":
            assert trace.scored == 0 and not placed
    assert len({trace.eligible for trace in result.channels}) == 1


@pytest.mark.promise("RRF-3", "OBS-1")
@settings(max_examples=150)
@given(
    query=st.text(st.sampled_from("退款政策发票编号1 23正文？zq"), min_size=1, max_size=12),
    mode=st.sampled_from(MODES),
    lexical=st.sampled_from(["isolated", "fts5"]),
    fusion=st.sampled_from(["rrf", "convex"]),
    rerank=st.sampled_from(["none", "title"]),
    window=st.sampled_from([1, 3, 100]),
    limit=st.sampled_from([1, 7, 100]),
    who=st.sampled_from(["alice", "bob", "carol"]),
)
def test_the_trace_adds_up_and_pages_are_prefixes(
    filled: Index, query, mode, lexical, fusion, rerank, window, limit, who
) -> None:  # type: ignore[no-untyped-def]
    options = {"lexical": lexical, "fusion": fusion, "rerank": rerank, "window": window}
    context = Context("acme", who)
    result = filled.search(query, context, limit, mode, **options)
    assert_trace_adds_up(result)
    whole = filled.search(query, context, 100, mode, **options)
    assert whole[:limit] == result.hits and whole.channels == result.channels
    keys = [hit.chunk_key for hit in whole]
    assert len(set(keys)) == len(keys)
    first = "title_overlap" if rerank == "title" else "fused"
    order = [(-getattr(hit, first), -hit.fused, hit.chunk_key) for hit in whole]
    assert order == sorted(order)
    assert all(hit.principal == who and hit.tenant == "acme" for hit in whole)
    assert filled.search(query, context, limit, mode, **options) == result


@pytest.mark.promise("RRF-3")
def test_a_window_cuts_each_channel_and_is_counted(filled: Index) -> None:
    whole = filled.search("退款 发票 正文", ALICE, 100, window=1000)
    for window in (1, 2, 5):
        cut = filled.search("退款 发票 正文", ALICE, 100, window=window)
        for trace, full in zip(cut.channels, whole.channels, strict=True):
            assert trace.scored == full.scored and trace.below_floor == full.below_floor
            assert trace.returned == min(window, full.returned)
            assert trace.beyond_window == full.returned - trace.returned
        assert len(cut) <= 2 * window


@pytest.mark.promise("RRF-3", "ERR-1")
@pytest.mark.parametrize("limit", [0, -1, 101, True, 5.0, "5", None, 2**70])
def test_a_limit_out_of_range_is_refused(filled: Index, limit: object) -> None:
    error = error_of(filled.search, "退款", ALICE, limit)
    assert error is not None and error.code == "invalid_search_options" and "1 to 100" in error.facts


@pytest.mark.promise("RRF-3", "ERR-1")
@pytest.mark.parametrize("mode", ["Hybrid", "", None, 1, ["lexical"], "dense"])
def test_an_unknown_mode_is_refused(filled: Index, mode: object) -> None:
    assert code_of(filled.search, "退款", ALICE, 5, mode) == "invalid_search_options"


@pytest.mark.promise("OBS-1")
def test_a_trace_holds_no_text(filled: Index) -> None:
    result = filled.search("退款政策 编号7", ALICE)
    exported = result.to_dict()
    assert exported.pop("hits")
    assert "退款" not in json.dumps(exported, ensure_ascii=False) and "编号" not in json.dumps(
        exported, ensure_ascii=False
    )
    assert exported["encoder"] == filled.encoder.identifier and exported["mode"] == "hybrid"


@pytest.mark.promise("ERR-2", "LEX-5")
@settings(max_examples=300)
@given(st.one_of(st.text(max_size=30), st.binary(max_size=9), st.none(), st.integers()))
def test_any_query_gives_a_result_or_a_refusal(filled: Index, query: object) -> None:
    for mode in MODES:
        assert code_of(filled.search, query, ALICE, 5, mode, lexical="fts5") in (None, "bounded_query_required")


@pytest.mark.promise("LEX-5")
def test_a_query_of_1024_code_points_is_searched_in_both_channels(filled: Index) -> None:
    for query in ("退" * 1024, "退款 " * 341, "𠮷" * 1024):
        for mode in MODES:
            assert (
                filled.search(query, ALICE, mode=mode).channel("vector" if mode == "vector" else "lexical").state
                == "run"
            )  # type: ignore[arg-type]


def test_results_do_not_depend_on_how_the_index_was_filled(tmp_path: Path) -> None:
    """The same documents in the same order, at once or with searches, reopenings and refused events between."""
    bodies = {f"d{n}": f"退款政策{n} " + "说明 " * n for n in range(8)}
    with Index.open(tmp_path / "a") as index:
        for name, body in bodies.items():
            index.upsert("acme", name, 1, "text", body, ["alice"])
        expected = [index.search("退款 说明", ALICE, mode=mode) for mode in MODES]  # type: ignore[arg-type]
    for name, body in bodies.items():
        with Index.open(tmp_path / "b") as index:
            index.search("退款", ALICE)
            index.upsert("acme", name, 1, "text", body, ["alice"])
            assert code_of(index.upsert, "acme", name, 1, "text", "别的", ["alice"]) is not None
    with Index.open(tmp_path / "b") as index:
        assert [index.search("退款 说明", ALICE, mode=mode) for mode in MODES] == expected  # type: ignore[arg-type]


def test_a_search_result_is_a_sequence(filled: Index) -> None:
    result = filled.search("退款", ALICE, limit=4)
    assert len(result) == 4 and list(result) == list(result.hits) and result[0] in result
    assert result[-1] == result.hits[3] and result[1:3] == result.hits[1:3] and result.index(result[2]) == 2
    assert docs(reversed(result)) == docs(result)[::-1]
    assert pickle.loads(pickle.dumps(result)) == result
