"""Isolated BM25 against two other implementations (LEX-8), and the single Han character (LEX-9)."""

import math
from pathlib import Path

import bm25s
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kbretrieval import Context, Index, SearchResult
from kbretrieval.analysis import terms
from kbretrieval.channels.bm25 import K1, B, inverse_document_frequency
from tests.unit.doubles import docs, score

ALICE = Context("acme", "alice", ("hr",))
READABLE = [["alice"], ["*"], ["group:hr"], ["bob", "alice"]]
HIDDEN = [["bob"], [], ["group:it"]]


def slow_bm25(rows: dict[str, list[str]], query: list[str]) -> dict[str, float]:
    """The formula of LEX-8, written out; only rows that hold a term have a score."""
    mean = sum(map(len, rows.values())) / len(rows) if rows else 0.0
    scores = {}
    for name, row in rows.items():
        total = 0.0
        for term in dict.fromkeys(query):
            df = sum(1 for other in rows.values() if term in other)
            tf = row.count(term)
            if tf:
                idf = math.log(1 + (len(rows) - df + 0.5) / (df + 0.5))
                total += idf * tf * 2.2 / (tf + 1.2 * (1 - 0.75 + 0.75 * len(row) / mean))
        if set(row) & set(query):
            scores[name] = total
    return scores


def filled(path: Path, corpus: list[tuple[str, list[str]]]) -> Index:
    """An index of one-chunk documents d0, d1, … with their ACLs."""
    index = Index.open(path, chunk_size=4096, overlap=0)
    for number, (text, acl) in enumerate(corpus):
        index.upsert("acme", f"d{number}", 1, "text", text, acl)
    return index


def assert_agree(result: SearchResult, expected: dict[str, float]) -> None:
    assert set(docs(result)) == set(expected)
    got = [score(hit, "lexical") or 0.0 for hit in result]
    for hit, value in zip(result, got, strict=True):
        assert math.isclose(value, expected[hit.doc_id], rel_tol=1e-12)
    order = [(-value, hit.chunk_key) for value, hit in zip(got, result, strict=True)]
    assert order == sorted(order)
    trace = result.channel("lexical")
    assert (trace.scored, trace.returned, trace.below_floor, trace.beyond_window) == (
        len(expected),
        len(expected),
        0,
        0,
    )


WORDS = st.lists(st.sampled_from(["aa", "bb", "cc", "dd", "ee_1", "f2"]), max_size=12)
CORPORA = st.lists(st.tuples(WORDS.map(" ".join), st.sampled_from(READABLE + HIDDEN)), min_size=1, max_size=12)


@pytest.mark.promise("LEX-8", "LEX-6")
@settings(max_examples=40)
@given(CORPORA, WORDS.filter(bool))
def test_scores_are_those_of_the_formula_over_readable_rows(
    tmp_path_factory: pytest.TempPathFactory, corpus: list[tuple[str, list[str]]], query: list[str]
) -> None:
    with filled(tmp_path_factory.mktemp("bm25") / "kb", corpus) as index:
        result = index.search(" ".join(query), ALICE, limit=100, mode="lexical")
        readable = {f"d{n}": text.split() for n, (text, acl) in enumerate(corpus) if acl in READABLE}
        # An empty text has no chunk and therefore no row.
        rows = {name: row for name, row in readable.items() if row}
        assert result.channel("lexical").eligible == len(rows)
        assert_agree(result, slow_bm25(rows, query))


@pytest.mark.promise("LEX-8")
def test_scores_agree_with_bm25s(tmp_path: Path) -> None:
    random = np.random.default_rng(11)
    vocabulary = [f"w{n}" for n in range(60)]
    corpus = []
    for _ in range(150):
        words = random.choice(vocabulary, size=random.integers(1, 40), p=np.arange(60, 0, -1) / 1830)
        corpus.append((" ".join(words), (READABLE + HIDDEN)[random.integers(len(READABLE + HIDDEN))]))
    rows = {f"d{n}": text.split() for n, (text, acl) in enumerate(corpus) if acl in READABLE}
    peer = bm25s.BM25(k1=1.2, b=0.75, method="lucene", dtype="float64")
    peer.index(list(rows.values()), show_progress=False)
    with filled(tmp_path / "kb", corpus) as index:
        for _ in range(20):
            query = list(dict.fromkeys(random.choice(vocabulary, size=random.integers(1, 9))))
            # Lucene's variant leaves out the constant factor k1 + 1.
            scores = peer.get_scores([str(word) for word in query]) * 2.2
            expected = {n: float(s) for n, s in zip(rows, scores, strict=True) if s > 0}
            assert_agree(index.search(" ".join(query), ALICE, limit=100, mode="lexical", window=1000), expected)


@pytest.mark.promise("LEX-8")
def test_constants_and_idf() -> None:
    assert (K1, B) == (1.2, 0.75)
    for total in range(1, 30):
        values = [inverse_document_frequency(total, df) for df in range(1, total + 1)]
        assert all(value > 0 for value in values) and values == sorted(values, reverse=True)


@pytest.mark.promise("LEX-8", "VEC-7", "RRK-3")
def test_equal_texts_tie_bit_for_bit_wherever_they_stand(index: Index, alice: Context) -> None:
    for number in range(40):
        text = "退款政策 说明" if number % 4 == 0 else f"退款 别的{number} " * (number % 5 + 1)
        index.upsert("acme", f"d{number:02}", 1, "text", text, ["alice"])
    for channel in ("lexical", "vector"):
        hits = index.search("政策 退款 说明", alice, limit=100, mode=channel)  # type: ignore[arg-type]
        equal = [hit for hit in hits if hit.text == "退款政策 说明"]
        assert len({score(hit, channel) for hit in equal}) == 1
        assert [hit.doc_id for hit in equal] == [f"d{n:02}" for n in range(0, 40, 4)]


HAN = st.text(st.sampled_from("税率收入 a"), max_size=14)


@pytest.mark.promise("LEX-9", "LEX-8")
@settings(max_examples=40)
@given(st.lists(HAN, min_size=1, max_size=10), st.sampled_from(["税", "税 收入", "率", "税率 税", "入"]))
def test_one_han_character_stands_for_every_bigram_that_holds_it(
    tmp_path_factory: pytest.TempPathFactory, texts: list[str], query: str
) -> None:
    corpus = [(text, [["alice"], ["bob"]][n % 3 == 2]) for n, text in enumerate(texts)]
    asked = terms(query)

    rows = {f"d{n}": terms(text) for n, (text, acl) in enumerate(corpus) if acl == ["alice"] and text}
    mean = sum(map(len, rows.values())) / len(rows) if rows else 0.0
    expected: dict[str, float] = {}
    for term in asked:
        counts = {
            name: sum(1 for other in row if (term in other if len(term) == 1 else term == other))
            for name, row in rows.items()
        }
        holding = {name: tf for name, tf in counts.items() if tf}
        idf = math.log(1 + (len(rows) - len(holding) + 0.5) / (len(holding) + 0.5))
        for name, tf in holding.items():
            part = idf * tf * 2.2 / (tf + 1.2 * (0.25 + 0.75 * len(rows[name]) / mean))
            expected[name] = expected.get(name, 0.0) + part
    with filled(tmp_path_factory.mktemp("han") / "kb", corpus) as index:
        assert_agree(index.search(query, ALICE, limit=100, mode="lexical"), expected)
        single = index.search("税", ALICE, limit=100, mode="lexical", lexical="fts5")
        assert set(docs(single)) == {name for name, row in rows.items() if "税" in row}
