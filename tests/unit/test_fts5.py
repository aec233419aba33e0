"""The book's baseline, a real FTS5 table (LEX-3, LEX-4, LEX-6)."""

import re
import sqlite3
from collections import Counter
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kbretrieval import Context, Index
from kbretrieval.analysis import terms
from kbretrieval.store.fts import fts_token, match_expression
from tests.unit.doubles import MODES, docs, rank, score, sql

WORDS = ["alpha", "bravo", "charlie", "delta", "echo", "foxtrot"]


@pytest.mark.promise("LEX-3")
def test_the_table_is_a_real_fts5_table(index: Index, index_path: Path) -> None:
    rows = sql(index_path, "SELECT name FROM sqlite_master WHERE sql LIKE '%USING fts5%'")
    assert rows == [("chunks_fts",)]
    index.upsert("acme", "d", 1, "text", "酒店发票 E042 refund_policy", ["alice"])
    stored = sql(index_path, "SELECT terms FROM chunks_fts")
    assert stored == [("酒店 店发 发票 e042 refund_policy",)]  # readable


LETTERS = st.characters(categories=["L", "N", "M"])
TEXTS = st.text(st.one_of(LETTERS, st.sampled_from('退款 aZ_"*^:-()\t\u200b\u0301')), max_size=120)


@pytest.mark.promise("LEX-3")
@settings(max_examples=40)
@given(st.lists(TEXTS, min_size=1, max_size=3))
def test_fts5_knows_exactly_the_analyzers_terms(tmp_path_factory: pytest.TempPathFactory, texts: list[str]) -> None:
    path = tmp_path_factory.mktemp("vocabulary") / "kb"
    with Index.open(path, chunk_size=4096, overlap=0) as index:
        for number, text in enumerate(texts):
            index.upsert("acme", f"d{number}", 1, "text", text, ["alice"])
        stored = [row[0] for row in sql(path, "SELECT text FROM chunks ORDER BY chunk_key")]
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE VIRTUAL TABLE temp.v USING fts5vocab(main, chunks_fts, 'row')")
        known = dict(connection.execute("SELECT term, cnt FROM temp.v").fetchall())
    assert known == Counter(term for text in stored for term in terms(text))


@pytest.mark.promise("LEX-3")
def test_very_long_terms_stay_distinct_and_in_one_piece(tmp_path: Path, alice: Context) -> None:
    # 4,096 code points that NFKC triples: longer than any token FTS5 keeps apart by itself.
    long = ["ﬃ" * 4096, "ﬃ" * 4095 + "x", "a" * 4096, "a" * 4095, "𐐨" * 4096, "𐐨" * 4095]
    with Index.open(tmp_path / "kb", chunk_size=4096, overlap=0) as index:
        for number, text in enumerate(long):
            index.upsert("acme", f"d{number}", 1, "text", text, ["alice"])
        assert index.check() == ()
    with closing(sqlite3.connect(tmp_path / "kb")) as connection:
        connection.execute("CREATE VIRTUAL TABLE temp.v USING fts5vocab(main, chunks_fts, 'row')")
        known = [row[0] for row in connection.execute("SELECT term FROM temp.v")]
        found = [terms(text) for text in long]
        assert sorted(known) == sorted(fts_token(term) for (term,) in found)
        for number, (term,) in enumerate(found, 1):
            rows = connection.execute(
                "SELECT rowid FROM chunks_fts WHERE chunks_fts MATCH ?", (match_expression([term]),)
            )
            assert rows.fetchall() == [(number,)]


ENDINGS = st.tuples(st.integers(4080, 4100), st.text(st.sampled_from("ab"), max_size=20))


@pytest.mark.promise("LEX-3")
@given(st.lists(ENDINGS, min_size=2, max_size=6))
def test_tokens_are_injective(endings: list[tuple[int, str]]) -> None:
    found = {"a" * length + ending for length, ending in endings}
    assert len({fts_token(term) for term in found}) == len(found)
    assert all(len(fts_token(term)) <= 4096 for term in found)


@pytest.fixture
def punctuated(index: Index) -> Index:
    bodies = {
        "bench": "# 压测\n\n单号 BENCH-100821 已归档。",
        "agent": "# 架构\n\n多个 multi-agent 流程，共 05 组。",
        "nasa": "# 合作\n\n联系 @nasa 的数据组。",
        "incident": "# 事故\n\nnear miss 要 and 记录 not 忽略。",
    }
    for name, body in bodies.items():
        index.upsert("acme", name, 1, "markdown", body, ["alice"])
    return index


@pytest.mark.promise("LEX-4", "ERR-2")
@pytest.mark.parametrize("lexical", ["isolated", "fts5"])
def test_punctuation_is_never_syntax(punctuated: Index, alice: Context, lexical: str) -> None:
    """C007."""
    expected = {
        "BENCH-100821": "bench",
        "bench:100821": "bench",
        "multi-agent": "agent",
        "05": "agent",
        "-agent": "agent",
    }
    expected |= dict.fromkeys(["@nasa", "col:x OR nasa*", "^nasa", "{nasa}", "nasa --", '"nasa', "terms:nasa"], "nasa")
    expected |= dict.fromkeys(["NEAR(", "NOT", "AND", "near^2"], "incident")
    for query, name in expected.items():
        assert docs(punctuated.search(query, alice, mode="lexical", lexical=lexical)) == [name], query  # type: ignore[arg-type]


ASCII = [chr(point) for point in range(32, 127)]


@pytest.mark.promise("LEX-4", "ERR-2")
def test_every_ascii_character_and_operator_around_a_word(punctuated: Index, alice: Context) -> None:
    marks = [c for c in ASCII if not c.isalnum() and c != "_"] + ["\0", "\n", "\x1f", '""', "' OR 1=1 --", "\\"]
    for mark in marks:
        for query in (f"{mark}nasa", f"nasa{mark}", f"{mark}nasa{mark}", f"nasa {mark} nasa", f"nasa{mark}nasa{mark}"):
            for lexical in ("isolated", "fts5"):
                hits = punctuated.search(query, alice, mode="lexical", lexical=lexical)  # type: ignore[arg-type]
                assert "nasa" in docs(hits), repr(query)
    everything = "".join(ASCII) + "\0"
    for mode in MODES:
        punctuated.search(everything, alice, mode=mode, lexical="fts5")  # type: ignore[arg-type]


@pytest.mark.promise("LEX-4", "ERR-2")
@settings(max_examples=200)
@given(
    st.text(
        st.one_of(st.characters(exclude_categories=["Cs"]), st.sampled_from('"*^:-()+{}NEAROT ')),
        min_size=1,
        max_size=40,
    )
)
def test_the_expression_holds_quoted_terms_alone(query: str) -> None:
    expression = match_expression(terms(query)[:64])
    assert re.sub(r'"[^"\0]*"', "t", expression) in (" OR ".join(["t"] * n) for n in range(65))


@pytest.mark.promise("LEX-3", "LEX-8", "RRF-2")
def test_smaller_is_better_in_fts5_and_larger_in_isolated(index: Index, alice: Context) -> None:
    """C009: the raw value is kept."""
    for number, word in enumerate(WORDS):
        index.upsert("acme", f"one{number}", 1, "markdown", f"# 零件\n\n{word} 单项说明", ["alice"])
    index.upsert("acme", "full", 1, "markdown", f"# 总表\n\n{' '.join(WORDS)} golf", ["alice"])
    for number in range(8):
        index.upsert("acme", f"none{number}", 1, "markdown", f"# 无关\n\n第{number}份周报", ["alice"])
    query = " ".join(WORDS) + " golf"
    hits = index.search(query, alice, limit=20, mode="lexical", lexical="fts5")
    own = index.search(query, alice, limit=20, mode="lexical")
    assert docs(hits) == docs(own) == ["full"] + [f"one{n}" for n in range(6)]
    raw = [score(hit, "lexical") or 0.0 for hit in hits]
    assert [rank(hit, "lexical") for hit in hits] == list(range(1, 8))
    assert raw == sorted(raw) and raw[-1] < 0 and raw[0] < 4 * raw[1]
    scores = [score(hit, "lexical") or 0.0 for hit in own]
    assert scores == sorted(scores, reverse=True) and min(scores) > 0
    assert [round(value, 6) for value in scores[:2]] == [11.067062, 1.885972]


@pytest.mark.promise("LEX-3")
def test_the_raw_value_is_sqlites_own(index: Index, index_path: Path, alice: Context) -> None:
    for number in range(12):
        index.upsert("acme", f"d{number}", 1, "text", f"退款 {'说明 ' * number} 政策{number % 3}", ["alice"])
    hits = index.search("退款 政策", alice, limit=100, mode="lexical", lexical="fts5")
    raw = sql(
        index_path,
        "SELECT rowid, bm25(chunks_fts) FROM chunks_fts WHERE chunks_fts MATCH ? ORDER BY 2, 1",
        '"退款" OR "政策"',
    )
    assert [(hit.chunk_key, score(hit, "lexical")) for hit in hits] == raw


@pytest.mark.promise("LEX-3", "LEX-8")
def test_tiny_scores_are_no_threshold(index: Index, tmp_path: Path, alice: Context) -> None:
    """C010: equal scores go by chunk key."""
    for name, title in {"travel": "差旅", "meal": "餐费", "bus": "交通"}.items():
        index.upsert("acme", name, 1, "markdown", f"# {title}\n\n报销须知", ["alice"])
    index.upsert("acme", "leave", 1, "markdown", "# 年假\n\n申请须知", ["alice"])
    fts = index.search("报销", alice, limit=10, mode="lexical", lexical="fts5")
    own = index.search("报销", alice, limit=10, mode="lexical")
    assert docs(fts) == docs(own) == ["travel", "meal", "bus"]
    assert [round(score(hit, "lexical") or 0, 12) for hit in fts] == [-1e-06] * 3
    assert [round(score(hit, "lexical") or 0, 6) for hit in own] == [0.356675] * 3
    with Index.open(tmp_path / "tiny") as tiny:
        tiny.upsert("acme", "only", 1, "markdown", "# 考勤\n\n迟到三次记一次旷工。", ["alice"])
        one = tiny.search("旷工 迟到", alice, mode="lexical", lexical="fts5")[0]
        assert -1e-5 < (score(one, "lexical") or 0) < 0
        assert round(score(tiny.search("旷工 迟到", alice, mode="lexical")[0], "lexical") or 0, 6) == 0.575364


@pytest.mark.promise("LEX-6", "LEX-8")
def test_the_leak_of_the_baseline_is_named_and_isolated_has_none(index: Index, alice: Context) -> None:
    """C011: another tenant reverses the order of fts5, and moves no bit of isolated."""
    index.upsert("acme", "p1", 1, "markdown", "# 条款\n\n退款 两周 办理", ["alice"])
    index.upsert("acme", "p2", 1, "markdown", "# 条款\n\n发票 两周 办理 完结", ["alice"])
    for number in range(6):
        index.upsert("acme", f"f{number}", 1, "markdown", f"# 周报\n\n第{number}周无事", ["alice"])
    keys = [(lexical, mode) for lexical in ("isolated", "fts5") for mode in ("lexical", "hybrid")]

    def view() -> dict[tuple[str, str], object]:
        return {(c, m): index.search("退款 发票", alice, mode=m, lexical=c) for c, m in keys}  # type: ignore[arg-type]

    before = view()
    for number in range(30):
        index.upsert("beta", f"x{number:02}", 1, "markdown", "# 别家\n\n退款 退款", ["*"])
    after = view()
    assert all(docs(result) == ["p1", "p2"] for result in before.values())  # type: ignore[arg-type]
    assert after["isolated", "lexical"] == before["isolated", "lexical"]
    assert after["isolated", "hybrid"] == before["isolated", "hybrid"]
    own, fts = after["isolated", "lexical"], after["fts5", "lexical"]
    assert [round(score(hit, "lexical"), 6) for hit in own] == [1.933748, 1.77316]  # type: ignore
    assert docs(fts) == ["p2", "p1"]  # type: ignore[arg-type]
    assert own.channel("lexical").statistics == "eligible rows"  # type: ignore[attr-defined]
    assert fts.channel("lexical").statistics == "whole table, all tenants"  # type: ignore[attr-defined]


@pytest.mark.promise("LEX-6", "ACL-5")
@pytest.mark.parametrize("lexical", ["isolated", "fts5"])
def test_hidden_rows_do_not_fill_the_window(index: Index, alice: Context, lexical: str) -> None:
    for number in range(20):
        index.upsert("acme", f"hidden{number}", 1, "text", "退款 退款 退款", ["bob"])
        index.upsert("beta", f"other{number}", 1, "text", "退款 退款 退款", ["*"])
    index.upsert("acme", "mine", 1, "text", "关于退款的一点说明，写得比较长", ["alice"])
    index.upsert("acme", "gone", 1, "text", "退款", ["alice"])
    index.delete("acme", "gone", 2)
    for mode in MODES:
        result = index.search("退款", alice, limit=5, mode=mode, lexical=lexical, window=1)  # type: ignore[arg-type]
        assert docs(result) == ["mine"]
        assert {trace.eligible for trace in result.channels} == {1}


@pytest.mark.promise("LEX-7")
@pytest.mark.parametrize("lexical", ["isolated", "fts5"])
def test_text_is_found_right_after_commit_on_every_connection(
    index: Index, index_path: Path, alice: Context, lexical: str
) -> None:
    with Index.open(index_path) as other:
        for revision, word in enumerate(["退款", "发票", "年假"], 1):
            index.upsert("acme", "d", revision, "text", word, ["alice"])
            for opened in (index, other):
                for mode in MODES:
                    assert docs(opened.search(word, alice, mode=mode, lexical=lexical)) == ["d"]  # type: ignore[arg-type]
                    old = opened.search("无关" if revision == 1 else "退款", alice, mode=mode, lexical=lexical)  # type: ignore[arg-type]
                    assert docs(old) == []
