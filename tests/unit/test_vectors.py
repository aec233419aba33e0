"""The vector channel: sparse and dense, exact, typed refusals (VEC-1, VEC-5 to VEC-8)."""

import hashlib
import math
import struct
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kbretrieval import Context, Index, TermEncoder
from kbretrieval.analysis import terms
from kbretrieval.encoders.port import Encoding, encode_dense
from kbretrieval.encoders.terms import sparse_cosine
from tests.unit.doubles import RandomVectors, Table, code_of, docs, error_of, logical_dump, rank, score, sql

ALICE = Context("acme", "alice")
BAD: list[object] = [[0.0, 0.0], [math.nan, 1.0], [math.inf, 0.0], [-math.inf, 0.0], [1.0], [1.0, 0.0, 0.0], None, []]
BAD += [[1e39, 0.0], "ab", {0: 1.0, 1: 0.0}, [[1.0, 0.0]], ["1", "0"], [1j, 0], [None, 1.0], [10**400, 1], 1.0, b"ab"]


@pytest.mark.promise("VEC-1")
def test_the_term_encoder_counts_terms_and_calls_itself_no_embedding() -> None:
    encoder = TermEncoder()
    assert encoder.floor == 0.05 and encoder.dimension == 0
    assert encoder.encode(["退款 退款政策", ""], query=True).vectors == [{"退款": 2, "款政": 1, "政策": 1}, {}]
    assert "embed" not in encoder.identifier


WORDS = st.lists(st.sampled_from(["aa", "bb", "cc", "dd", "ee"]), max_size=10).map(" ".join)


@pytest.mark.promise("VEC-1", "VEC-7")
@settings(max_examples=30)
@given(st.lists(st.tuples(WORDS, st.booleans()), min_size=1, max_size=10), WORDS.filter(bool))
def test_sparse_scores_are_cosines_of_counts(
    tmp_path_factory: pytest.TempPathFactory, corpus: list[tuple[str, bool]], query: str
) -> None:
    with Index.open(tmp_path_factory.mktemp("sparse") / "kb", chunk_size=4096, overlap=0) as index:
        for number, (text, mine) in enumerate(corpus):
            index.upsert("acme", f"d{number}", 1, "text", text, ["alice"] if mine else ["bob"])
        result = index.search(query, ALICE, limit=100, mode="vector")
    asked = Counter(terms(query))
    exact = {
        f"d{n}": sparse_cosine(asked, Counter(terms(text))) for n, (text, mine) in enumerate(corpus) if mine and text
    }
    kept = {name: value for name, value in exact.items() if value >= 0.05}
    assert {hit.doc_id: score(hit, "vector") for hit in result} == kept
    order = [(-(score(hit, "vector") or 0.0), hit.chunk_key) for hit in result]
    assert order == sorted(order)
    trace = result.channel("vector")
    assert (trace.eligible, trace.scored) == (len(exact), len(exact))
    assert (trace.below_floor, trace.returned) == (len(exact) - len(kept), len(kept))


@pytest.mark.promise("VEC-1")
def test_the_cosine_is_symmetric_bounded_and_exact_for_equals() -> None:
    assert sparse_cosine({}, {"a": 1}) == 0.0
    assert sparse_cosine({"a": 3}, {"a": 7}) == 1.0
    assert sparse_cosine({"a": 1, "b": 1}, {"b": 1, "c": 1}) == pytest.approx(0.5)


@pytest.mark.promise("VEC-5")
@pytest.mark.parametrize("bad", BAD, ids=ascii)
def test_a_bad_vector_is_refused_and_nothing_is_written(tmp_path: Path, bad: object) -> None:
    """C025."""
    path = tmp_path / "kb"
    with Index.open(path, Table("table-2", {"坏": bad, "坏查询": bad})) as index:
        index.upsert("acme", "good", 1, "text", "好", ["alice"])
        before = logical_dump(path)
        error = error_of(index.upsert, "acme", "bad", 1, "text", "坏", ["alice"])
        assert error is not None and error.code == "invalid_embedding_output" and "坏" not in str(error)
        assert code_of(index.upsert, "acme", "good", 2, "text", "坏", ["alice"]) == "invalid_embedding_output"
        for mode in ("vector", "hybrid"):
            assert code_of(index.search, "坏查询", ALICE, mode=mode) == "invalid_embedding_output"
        assert logical_dump(path) == before and index.check() == ()
        assert docs(index.search("内容", ALICE, limit=100)) == ["good"]
        assert index.upsert("acme", "bad", 1, "text", "可以再来", ["alice"]).state == "indexed"


@pytest.mark.promise("VEC-5")
@pytest.mark.parametrize("extra", [-3, -1, 1, 2])
def test_a_wrong_count_is_refused(tmp_path: Path, extra: int) -> None:
    """C026."""
    encoder, path = Table("table-2"), tmp_path / "kb"
    with Index.open(path, encoder, chunk_size=18, overlap=0) as index:
        source = "# 清单\n\n第一段写安装步骤。\n\n第二段写巡检步骤。\n\n第三段写报废步骤。"
        before = logical_dump(path)
        encoder.extra = extra
        assert (
            code_of(index.upsert, "acme", "list", 1, "markdown", source, ["alice"]) == "encoder_result_count_mismatch"
        )
        assert logical_dump(path) == before and docs(index.search("步骤", ALICE, limit=100)) == []
        encoder.extra = 0
        made = index.upsert("acme", "list", 1, "markdown", source, ["alice"])
        assert (made.state, made.chunks) == ("indexed", 3)
        assert docs(index.search("报废", ALICE, mode="lexical")) == ["list"]


@pytest.mark.promise("UPD-1", "UPD-2", "ERR-2")
def test_one_document_that_cannot_be_encoded_stops_no_other(tmp_path: Path) -> None:
    """C027."""
    encoder = Table("table-2")
    encoder.fail_on = "第3号"
    with Index.open(tmp_path / "kb", encoder) as index:
        calls = [
            (index.upsert, "acme", f"n{n}", 1, "markdown", f"# 公告\n\n第{n}号公告", ["alice"]) for n in range(1, 6)
        ]
        assert [code_of(*call) for call in calls] == [None, None, "encoder_failed", None, None]
        assert sorted(docs(index.search("公告", ALICE, limit=100))) == ["n1", "n2", "n4", "n5"] and index.check() == ()
        encoder.fail_on = None
        assert index.upsert("acme", "n3", 1, "markdown", "# 公告\n\n第3号公告", ["alice"]).state == "indexed"
        assert index.check() == ()


@pytest.mark.promise("VEC-5", "UPD-1")
def test_a_newer_revision_that_commits_while_encoding_wins(tmp_path: Path) -> None:
    encoder, path = Table("table-2"), tmp_path / "kb"
    with Index.open(path, encoder) as index, Index.open(path, Table("table-2")) as other:
        encoder.before = lambda: other.upsert("acme", "d", 2, "text", "新", ["alice"])
        code = code_of(index.upsert, "acme", "d", 1, "text", "旧", ["alice"])
        assert code == "stale_or_conflicting_revision"
        assert [hit.text for hit in index.search("新", ALICE)] == ["新"]


@pytest.mark.promise("ERR-2", "OBS-2", "VEC-6")
def test_a_damaged_vector_is_one_typed_refusal_and_check_names_it(tmp_path: Path) -> None:
    """C029."""
    path, encoder = tmp_path / "kb", Table("table-2", {"住宿乙": [0.0, 1.0], "住宿": [0.8, 0.6]})
    with Index.open(path, encoder) as index:
        index.upsert("acme", "ok", 1, "text", "住宿甲", ["alice"])
        index.upsert("acme", "hurt", 1, "text", "住宿乙", ["alice", "bob"])
    for cell in (
        struct.pack("<2f", math.nan, 1.0),
        struct.pack("<2f", 3.0, 1.0),
        b"",
        b"\0" * 7,
        bytes(8),
        b"\0" * 4096,
    ):
        sql(path, "UPDATE vectors SET vector = ? WHERE chunk_key = 2", cell)
        with Index.open(path, encoder) as index:
            assert sorted(docs(index.search("住宿", ALICE, mode="lexical"))) == ["hurt", "ok"]
            codes = [code_of(index.search, "住宿", ALICE, 5, mode) for mode in ("vector", "hybrid")]
            assert codes == ["index_corrupt"] * 2
            assert {(fault.doc_id, fault.chunk_key) for fault in index.check()} == {("hurt", 2)}


@pytest.mark.promise("VEC-6")
def test_dense_vectors_are_stored_as_float32_with_the_hash_of_their_text(tmp_path: Path) -> None:
    path = tmp_path / "kb"
    with Index.open(path, Table("table-3", {"甲": [3.0, 4.0, 0.0]}, default=[1.0, 0.0, 0.0])) as index:
        index.upsert("acme", "d", 1, "text", "甲", ["alice"])
    ((blob, digest),) = sql(path, "SELECT vector, text_sha256 FROM vectors")
    assert blob == struct.pack("<3f", 0.6, 0.8, 0.0)
    assert digest == hashlib.sha256("甲".encode()).hexdigest()


def test_a_unit_vector_keeps_its_bits_and_another_is_brought_to_norm_one() -> None:
    unit = np.array([0.6, 0.8], np.float32)
    encoder = Table("t", {"u": unit, "v": [3, 4], "w": np.array([1e-30, 0]), "x": [True, False]})
    made, truncated = encode_dense(encoder, ["u", "v", "w", "x"], query=False)
    assert made.dtype == np.float32 and truncated == frozenset()
    assert made[0].tobytes() == unit.tobytes()
    assert np.allclose(np.linalg.norm(made.astype(np.float64), axis=1), 1.0, atol=1e-6)
    assert encode_dense(encoder, [], query=False)[0].shape == (0, 2)


@pytest.mark.promise("VEC-5")
def test_vectors_may_come_from_a_generator_but_only_as_an_encoding() -> None:
    encoder = Table("t")
    encoder.encode = lambda texts, *, query: Encoding(iter([[1.0, 0.0]]))  # type: ignore[method-assign, arg-type]
    assert encode_dense(encoder, ["a"], query=False)[0].tolist() == [[1.0, 0.0]]
    encoder.encode = lambda texts, *, query: Encoding(1 / 0 for _ in texts)  # type: ignore[method-assign, arg-type]
    assert code_of(encode_dense, encoder, ["a"], query=False) == "encoder_failed"
    encoder.encode = lambda texts, *, query: [[1.0, 0.0]]  # type: ignore[method-assign, return-value, assignment]
    assert code_of(encode_dense, encoder, ["a"], query=False) == "invalid_embedding_output"


def scanned(path: Path, encoder: RandomVectors, query: str, readable: set[int]) -> list[tuple[int, float]]:
    """A plain scan: every readable stored vector, float64, row by row, best first, ties by key."""
    (wanted,) = encode_dense(encoder, [query], query=True)[0].astype(np.float64)
    rows = []
    for key, blob in sql(path, "SELECT chunk_key, vector FROM vectors"):
        if key in readable:
            rows.append((key, float(np.sum(np.frombuffer(blob, "<f4").astype(np.float64) * wanted))))
    return sorted(rows, key=lambda row: (-row[1], row[0]))


@pytest.mark.slow
@pytest.mark.promise("VEC-7", "RRF-3", "PRF-3")
@pytest.mark.parametrize("dimension", [1, 2, 3, 37, 512])
@pytest.mark.parametrize("spread", [1.0, 1e-6])
def test_the_dense_channel_equals_a_plain_scan_in_rows_and_bits(tmp_path: Path, dimension: int, spread: float) -> None:
    path, encoder = tmp_path / "kb", RandomVectors(dimension, spread=spread)
    # Chunks of eight characters; every seventh text stands several times: exact ties.
    texts = [f"{n if n % 7 else n % 49:08}" for n in range(900)]
    acls = [["alice"], ["bob"], ["*"]]
    with Index.open(path, encoder, chunk_size=8, overlap=0) as index:
        for number in range(9):
            index.upsert("acme", f"d{number}", 1, "text", "".join(texts[number::9]), acls[number % 3])
        index.upsert("acme", "one", 1, "text", "10000000", ["carol"])
        index.set_acl("acme", "d0", ["bob"], 1)
        chunks = dict(sql(path, "SELECT c.chunk_key, d.doc_id FROM chunks c JOIN documents d USING (doc_key)"))
    seen = {"alice": {"d2", "d3", "d5", "d6", "d8"}, "carol": {"d2", "d5", "d8", "one"}, "dave": {"d2", "d5", "d8"}}
    for who, names in seen.items():
        readable = {key for key, name in chunks.items() if name in names}
        for query in ("q1", "q2", "00000007"):
            expected = scanned(path, encoder, query, readable)
            middle = expected[len(expected) // 3][1]
            for floor in (-1.0, middle, math.nextafter(middle, 2.0)):
                kept = [row for row in expected if row[1] >= floor]
                again = RandomVectors(dimension, floor=max(-1.0, min(1.0, floor)), spread=spread)
                with Index.open(path, again) as index:
                    result = index.search(query, Context("acme", who), limit=100, mode="vector", window=50)
                got = [(hit.chunk_key, score(hit, "vector")) for hit in result]
                if -1.0 <= floor <= 1.0:
                    assert got == kept[:50]
                    trace = result.channel("vector")
                    assert (trace.eligible, trace.scored) == (len(readable), len(expected))
                    assert trace.below_floor == len(expected) - len(kept)
                    assert (trace.returned, trace.beyond_window) == (len(got), len(kept) - len(got))


@pytest.mark.promise("VEC-7")
def test_one_eligible_row_and_none(tmp_path: Path) -> None:
    with Index.open(tmp_path / "kb", RandomVectors(), chunk_size=8, overlap=0) as index:
        index.upsert("acme", "many", 1, "text", "".join(f"{n:08}" for n in range(50)), ["bob"])
        none = index.search("q", ALICE, mode="vector")
        assert len(none) == 0 and (none.channel("vector").eligible, none.channel("vector").scored) == (0, 0)
        index.upsert("acme", "mine", 1, "text", "12345678", ["alice"])
        one = index.search("q", ALICE, mode="vector")
        assert docs(one) == ["mine"] and rank(one[0], "vector") == 1
        assert (one.channel("vector").eligible, one.channel("vector").returned) == (1, 1)
        assert index.search("q", Context("beta", "alice"), mode="vector").channel("vector").eligible == 0


@pytest.mark.promise("VEC-7")
def test_a_text_scores_the_same_bits_whatever_stands_around_it(tmp_path: Path) -> None:
    found = set()
    for number, around in enumerate((0, 1, 7, 100, 700)):
        with Index.open(tmp_path / f"kb{number}", RandomVectors(200), chunk_size=8, overlap=0) as index:
            index.upsert("acme", "before", 1, "text", "".join(f"{n:08}" for n in range(around)), ["alice", "bob"])
            index.upsert("acme", "it", 1, "text", "同一段文字在这里", ["alice", "carol"])
            index.upsert("acme", "after", 1, "text", "".join(f"{n:08}" for n in range(around)), ["alice"])
            for who in ("alice", "carol"):
                hits = index.search("q", Context("acme", who), limit=100, mode="vector", window=1000)
                found |= {score(hit, "vector") for hit in hits if hit.doc_id == "it"}
                if who == "carol":
                    assert docs(hits) == ["it"]
    assert len(found) == 1


@pytest.mark.promise("VEC-8")
def test_another_connections_commit_is_seen_by_the_next_search(tmp_path: Path) -> None:
    path = tmp_path / "kb"
    with Index.open(path, RandomVectors()) as index, Index.open(path, RandomVectors()) as other:
        for revision in range(1, 5):
            other.upsert("acme", "d", revision, "text", f"正文{revision}", ["alice"])
            assert [hit.text for hit in index.search("q", ALICE, mode="vector")] == [f"正文{revision}"]
        other.set_acl("acme", "d", ["bob"], 1)
        assert docs(index.search("q", ALICE, mode="vector")) == []
        other.set_acl("acme", "d", ["alice"], 2)
        assert docs(index.search("q", ALICE, mode="vector")) == ["d"]
        other.delete("acme", "d", 9)
        assert docs(index.search("q", ALICE, mode="vector")) == []
