"""Fusion: RRF, convex, order, the trace, recomputing from JSON (RRF-1 to RRF-4, RRK-3)."""

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbretrieval import BOOK, Context, Hit, Index
from kbretrieval.fusion import convex, convex_shares, rrf, scaled
from tests.unit.doubles import MODES, RandomVectors, Table, docs, quotes, rank, score

LISTS = st.lists(st.lists(st.integers(1, 30), unique=True, max_size=20), min_size=2, max_size=2)


def _scored(keys: list[int]) -> list[tuple[int, float]]:
    return [(key, 1.0 / place) for place, key in enumerate(keys, 1)]


@pytest.mark.promise("RRF-1", "RRK-3")
@given(LISTS, st.integers(1, 1000))
def test_rrf_is_the_sum_of_reciprocals_and_a_total_order(lists: list[list[int]], k: int) -> None:
    named = [(name, _scored(keys)) for name, keys in zip(("lexical", "vector"), lists, strict=True)]
    fused = rrf(named, k)
    expected = {}
    for key in {key for keys in lists for key in keys}:
        expected[key] = sum((1 / (k + keys.index(key) + 1) for keys in lists if key in keys), 0.0)
    assert {item.key: item.value for item in fused} == expected
    assert [item.key for item in fused] == sorted(expected, key=lambda key: (-expected[key], key))
    for item in fused:
        placed = {c.channel: c.rank for c in item.channels}
        assert placed == {
            name: keys.index(item.key) + 1 for (name, _), keys in zip(named, lists, strict=True) if item.key in keys
        }


@pytest.mark.promise("RRF-4")
@given(LISTS, st.floats(0, 1))
def test_convex_is_a_weighted_sum_on_one_scale(lists: list[list[int]], share: float) -> None:
    lexical, vector = _scored(lists[0]), [(key, value - 0.5) for key, value in _scored(lists[1])]
    fused = convex([("lexical", lexical), ("vector", vector)], share)
    for item in fused:
        value = 0.0
        for name, rows, shift, weight in (("lexical", lexical, 0.0, share), ("vector", vector, 1.0, 1.0 - share)):
            found = dict(rows).get(item.key)
            if found is not None:
                value += weight * (found + shift) / (rows[0][1] + shift)
            assert (found is not None) == any(c.channel == name for c in item.channels)
        assert math.isclose(item.value, value, abs_tol=1e-15)
        assert 0.0 <= item.value <= 1.0 + 1e-12
    assert [item.key for item in fused] == [i.key for i in sorted(fused, key=lambda i: (-i.value, i.key))]


@pytest.mark.promise("RRF-4")
def test_the_scale_of_each_channel() -> None:
    assert scaled(2.0, 4.0, "lexical") == scaled(-2.0, -4.0, "lexical") == 0.5  # fts5: smaller is better
    assert scaled(-1.0, 1.0, "vector") == 0.0 and scaled(1.0, 1.0, "vector") == 1.0
    assert scaled(0.0, 0.0, "lexical") == scaled(-1.0, -1.0, "vector") == 0.0
    assert convex([("vector", [(1, 0.5), (2, -1.0)])], 0.9)[0].value == 1.0
    assert convex([], 0.5) == [] == rrf([])
    assert convex_shares([], 0.2) == {}


def _mixed(tmp_path: Path) -> Index:
    index = Index.open(tmp_path / "kb", RandomVectors(4, floor=0.0), chunk_size=24, overlap=0)
    for number in range(30):
        text = f"退款政策说明{number} " * (number % 4 + 1)
        index.upsert("acme", f"d{number:02}", 1, "text", text, ["alice"] if number % 5 else ["bob"])
    return index


def _values(exported: dict[str, dict[str, float]], k: int) -> float:
    total = 0.0
    for name in ("lexical", "vector"):
        if name in exported:
            total += 1.0 / (k + exported[name]["rank"])
    return total


@pytest.mark.promise("RRF-2", "RRF-1")
@pytest.mark.parametrize("k", [1, 10, 60, 997])
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("lexical", ["isolated", "fts5"])
def test_the_fused_value_is_recomputed_from_json_bit_for_bit(
    tmp_path: Path, alice: Context, k: int, mode: Literal["hybrid"], lexical: Literal["isolated", "fts5"]
) -> None:
    with _mixed(tmp_path) as index:
        result = index.search("退款政策 说明3", alice, limit=100, mode=mode, rrf_k=k, lexical=lexical)
    exported = json.loads(json.dumps(result.to_dict()))
    assert len(exported["hits"]) > 5 and exported["options"]["rrf_k"] == k
    for hit in exported["hits"]:
        assert _values(hit["channels"], exported["options"]["rrf_k"]) == hit["fused"]
    assert [Hit.from_dict(hit) for hit in exported["hits"]] == list(result)


@pytest.mark.promise("RRF-1", "RRF-2")
def test_a_fused_value_carries_its_reasons(tmp_path: Path, alice: Context) -> None:
    """C018."""
    refund, arrival = "# 退款\n\n退款两周内到账。", "# 到账\n\n到账延迟时说明退款编号，并联系客服。"
    table = Table("table-2", {"退款": [1.0, 0.0], refund: [1.0, 0.0], arrival: [0.0, 1.0]})
    with Index.open(tmp_path / "kb", table) as index:
        index.upsert("acme", "a", 1, "markdown", refund, ["alice"])
        index.upsert("acme", "b", 1, "markdown", arrival, ["alice"])
        hits = index.search("退款", alice, lexical="fts5")
    assert docs(hits) == ["a", "b"]
    assert [hit.fused for hit in hits] == [0.03278688524590164, 0.016129032258064516]
    assert [(rank(hit, "lexical"), rank(hit, "vector")) for hit in hits] == [(1, 1), (2, None)]
    assert score(hits[0], "vector") == 1.0 and (score(hits[0], "lexical") or 0) < 0
    text = json.dumps(hits.to_dict())
    assert not any(word in text for word in ("relevance", "confidence", "probability", "percent"))
    assert (hits.options.rrf_k, hits.options.window, hits.weights, hits.fusion) == (60, 100, (1.0, 1.0), "rrf/1")


@pytest.mark.promise("RRK-1", "RRK-2", "RRF-3")
def test_the_title_rule_is_a_choice_and_named(index: Index, alice: Context) -> None:
    """C019."""
    for number in range(20):
        body = f"# 周报{number}\n\n订单服务 订单服务 订单服务 升级。"
        index.upsert("acme", f"week{number:02}", 1, "markdown", body, ["alice"])
    body = "# 订单服务\n\n负责人与值班电话见附录，变更须走评审流程，发布窗口为周三。"
    index.upsert("acme", "svc", 1, "markdown", body, ["alice"])
    for result in (index.search("订单服务", alice, rerank="title"), index.search("订单服务", alice, options=BOOK)):
        assert docs(result)[0] == "svc" and result.reranker == "title-overlap-rule/1"
        assert [hit.title_overlap for hit in result] == [1.0, 0.0, 0.0, 0.0, 0.0]
    off = [index.search("订单服务", alice, limit=100), index.search("订单服务", alice, limit=100, rerank="none")]
    assert off[0] == off[1] and docs(off[0]).index("svc") == 20 and off[0].reranker == "none/1"


@pytest.mark.promise("VEC-1", "CIT-4", "RRF-3")
def test_a_query_that_means_nothing_here_gives_nothing(index: Index, alice: Context) -> None:
    """C020: the floor works before fusion."""
    index.upsert("acme", "travel", 1, "markdown", "# 差旅\n\n住宿每晚限额500元。", ["alice"])
    index.upsert("acme", "leave", 1, "markdown", "# 年假\n\n年假提前三天申请。", ["alice"])
    for mode in MODES:
        assert docs(index.search("zxqv-unrelated-token", alice, mode=mode)) == []  # type: ignore[arg-type]
    result = index.search("zxqv-unrelated-token", alice)
    trace = result.channel("vector")
    assert (trace.eligible, trace.scored, trace.below_floor, trace.returned) == (2, 2, 2, 0)
    answer = index.answer(result, alice)
    assert (answer.state, answer.non_llm, answer.evidence) == ("abstain", True, ())
    assert answer.answer == "没有当前权限下可核查的证据。"


@pytest.mark.promise("LEX-5", "RRF-3", "OBS-1")
def test_the_trace_says_which_channel_ran_and_why_not(tmp_path: Path, alice: Context) -> None:
    """C021: no term stops the lexical channel alone."""
    with Index.open(tmp_path / "kb", Table("table-2", {"？！": [1.0, 0.0], "# 表情": [1.0, 0.0]})) as index:
        index.upsert("acme", "emoji", 1, "markdown", "# 表情", ["alice"])
        for lexical in ("isolated", "fts5"):
            for fusion in ("rrf", "convex"):
                options = {"lexical": lexical, "fusion": fusion}
                none = index.search("？！", alice, **options)  # type: ignore[arg-type]
                both = index.search("表情", alice, **options)  # type: ignore[arg-type]
                lex = index.search("表情", alice, mode="lexical", **options)  # type: ignore[arg-type]
                assert docs(none) == docs(both) == docs(lex) == ["emoji"]
                assert rank(none[0], "lexical") is None and rank(none[0], "vector") == 1
                states = [[(t.channel, t.state, t.reason) for t in result.channels] for result in (none, both, lex)]
                assert states == [
                    [("lexical", "skipped", "no_terms"), ("vector", "run", None)],
                    [("lexical", "run", None), ("vector", "run", None)],
                    [("lexical", "run", None), ("vector", "skipped", "mode")],
                ]
                if fusion == "rrf":
                    assert none[0].fused == 1 / 61 and both[0].fused == 1 / 61 + 1 / 61
                else:
                    assert [r.weights for r in (none, both, lex)] == [(0.0, 1.0), (0.15, 0.85), (1.0, 0.0)]
                    assert none[0].fused == lex[0].fused == 1.0 and math.isclose(both[0].fused, 1.0)


@pytest.mark.promise("RRK-3", "CIT-2", "CIT-3", "VEC-7")
def test_equal_texts_are_two_chunks(index: Index, alice: Context) -> None:
    """C022: identity is the chunk, never its text."""
    body = "# 常见问题\n\n发票可在三十天内补开。"
    for name in ("faq-cn", "faq-hq"):
        index.upsert("acme", name, 1, "markdown", body, ["alice"])
    hits = index.search("补开发票", alice)
    assert docs(hits) == ["faq-cn", "faq-hq"] and score(hits[0], "vector") == score(hits[1], "vector")
    fake = replace(hits[0], text="发票不可补开。")
    answers = [index.answer(order, alice, limit=10) for order in ([hits[0], fake, hits[1]], [hits[1], fake, hits[0]])]
    assert [[e.doc_id for e in a.evidence] for a in answers] == [["faq-cn", "faq-hq"], ["faq-hq", "faq-cn"]]
    assert quotes(answers[0]) == quotes(answers[1]) == [body] * 2


@pytest.mark.promise("LEX-3", "VEC-7", "RRF-1", "RRF-3")
def test_ties_keep_their_order_over_pages_and_openings(tmp_path: Path, alice: Context) -> None:
    """C023."""
    names = ["d4", "d1", "d6", "d2", "d5", "d3"]
    for name in names:
        with Index.open(tmp_path / "kb") as index:
            index.upsert("acme", name, 1, "markdown", "# 门禁\n\n门禁卡丢失须当日挂失。", ["alice"])
    with Index.open(tmp_path / "kb") as index:
        for mode in MODES:
            for lexical in ("isolated", "fts5"):
                for limit in range(1, 7):
                    page = index.search("门禁卡", alice, limit=limit, mode=mode, lexical=lexical)  # type: ignore[arg-type]
                    assert docs(page) == names[:limit]
        hybrid = index.search("门禁卡", alice, limit=6)
    assert [(rank(hit, "lexical"), rank(hit, "vector")) for hit in hybrid] == [(n, n) for n in range(1, 7)]
