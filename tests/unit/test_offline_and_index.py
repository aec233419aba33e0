"""Two independent implementations, one answer: the offline experiment and the index, run on the same input.

They share no code. The index decides tenant and ACL alone, so status, language and product reach it as ACL entries.
Where the two are meant to differ, a test says how.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kbretrieval import Context, Index, SearchResult, offline
from kbretrieval import analysis as index_analysis
from kbretrieval import fusion as index_fusion
from kbretrieval.evaluation import metrics as index_metrics
from tests.unit.doubles import Table, docs, rank, score

FIXTURE = offline.load_fixture(
    Path(__file__).resolve().parents[2] / "fixtures" / "offline" / "semantic-search-fixture.json"
)
QUERIES = [query.id for query in FIXTURE.queries]
READER, NOBODY = "reader", "nobody"
CHANNELS = {"bm25": "lexical", "dense": "vector"}

# A float32 vector and another order of multiplication: the scores agree to this, the orders exactly.
DENSE_TOLERANCE = 1e-6
BM25_TOLERANCE = 1e-12


def eligible(query: offline.Query) -> set[str]:
    """Return the documents that the offline experiment lets this query see."""
    return {document.id for document in offline.eligible_documents(FIXTURE.documents, query)}


def toy_encoder() -> Table:
    """Return the fixture's hand-made vectors as an encoder; its floor leaves out a cosine of zero only."""
    vectors = {document.searchable: document.vector for document in FIXTURE.documents}
    vectors |= {query.text: query.vector for query in FIXTURE.queries}
    return Table("toy-topic-7d-v1", vectors, floor=DENSE_TOLERANCE, default=(0.0,) * 6 + (1.0,))


@dataclass(frozen=True, slots=True)
class Both:
    """One query answered twice, with the same window."""

    index: SearchResult
    offline: offline.QueryRun


def searched(path: Path, query: offline.Query, mode: str = "hybrid", window: int = 5) -> SearchResult:
    """Return what the index finds when every document of the fixture is in it and `READER` may read the eligible."""
    allowed = eligible(query)
    with Index.open(path, encoder=toy_encoder()) as index:
        for document in FIXTURE.documents:  # ascending id, so that the index's keys break ties as the ids do
            acl = [READER if document.id in allowed else NOBODY]
            index.upsert("alpha", document.id, 1, "text", document.searchable, acl)
        return index.search(query.text, Context("alpha", READER), 100, mode, window=window)  # type: ignore[arg-type]


@pytest.fixture(params=QUERIES)
def both(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Both]:
    """Every query of the fixture, answered by both."""
    query = FIXTURE.query(request.param)
    yield Both(searched(tmp_path / "kb.sqlite", query), offline.run_query(FIXTURE.documents, query))


@pytest.mark.promise("LEX-8", "OFF-36")
def test_bm25_gives_the_same_documents_ranks_and_scores(both: Both) -> None:
    found = {hit.doc_id: (rank(hit, "lexical"), score(hit, "lexical")) for hit in both.index if hit.channel("lexical")}
    expected = {hit.id: (hit.rank, hit.score) for hit in both.offline.bm25}
    assert {name: place for name, (place, _) in found.items()} == {name: place for name, (place, _) in expected.items()}
    for name, (_, value) in expected.items():
        assert found[name][1] == pytest.approx(value, rel=BM25_TOLERANCE, abs=0)


@pytest.mark.promise("VEC-7", "OFF-39")
def test_exact_cosine_gives_the_same_documents_and_ranks(both: Both) -> None:
    placed = {hit.doc_id: hit.channel("vector") for hit in both.index}
    found = {name: channel.rank for name, channel in placed.items() if channel}
    assert found == {hit.id: hit.rank for hit in both.offline.dense}
    for hit in both.offline.dense:
        channel = placed[hit.id]
        assert channel is not None and channel.score == pytest.approx(hit.score, abs=DENSE_TOLERANCE)


@pytest.mark.promise("RRF-1", "RRF-2", "OFF-42", "OFF-43")
def test_the_whole_chain_ends_in_the_same_order_and_the_same_fused_bits(both: Both) -> None:
    assert tuple(docs(both.index)) == both.offline.ids("hybrid")
    for hit, fused in zip(both.index, both.offline.hybrid, strict=True):
        assert hit.fused == fused.score
        assert {name: rank(hit, channel) for name, channel in CHANNELS.items()} == dict(fused.source_ranks)


@pytest.mark.promise("RRF-3", "OFF-44")
@pytest.mark.parametrize("window", [1, 2, 5])
def test_a_window_cuts_both_before_fusion(tmp_path: Path, window: int) -> None:
    query = FIXTURE.query("q-e042")
    expected = offline.run_query(FIXTURE.documents, query, offline.Settings(rank_window=window))
    found = searched(tmp_path / "kb.sqlite", query, window=window)
    assert tuple(docs(found)) == expected.ids("hybrid")
    assert [hit.fused for hit in found] == [hit.score for hit in expected.hybrid]
    first = "d-05-upload-format" if window == 1 else "d-06-upload-e042"
    assert docs(found)[0] == first


@pytest.mark.promise("LEX-8", "OFF-30")
def test_what_is_not_eligible_moves_neither(tmp_path: Path) -> None:
    query = FIXTURE.query("q-refund")
    before = searched(tmp_path / "before.sqlite", query, "lexical")
    with Index.open(tmp_path / "after.sqlite", encoder=toy_encoder()) as index:
        for document in FIXTURE.documents:
            seen = document.id in eligible(query)
            text = document.searchable if seen else query.text * 20
            index.upsert("alpha", document.id, 1, "text", text, [READER if seen else NOBODY])
        after = index.search(query.text, Context("alpha", READER), 100, "lexical")
    hidden = [
        document if document.id in eligible(query) else replace(document, text=query.text * 20)
        for document in FIXTURE.documents
    ]
    unmoved = offline.run_query(hidden, query).bm25
    assert unmoved == offline.run_query(FIXTURE.documents, query).bm25
    assert [(hit.doc_id, score(hit, "lexical")) for hit in after] == [
        (hit.doc_id, score(hit, "lexical")) for hit in before
    ]


def on_offline(rankings: Sequence[Sequence[int]], k: int) -> list[tuple[int, float]]:
    """Return (key, value) from the offline experiment; padded ids sort as the keys do."""
    named = {str(place): [f"{key:04d}" for key in ranking] for place, ranking in enumerate(rankings)}
    return [(int(hit.id), hit.score) for hit in offline.rrf(named, k)]


def on_index(rankings: Sequence[Sequence[int]], k: int) -> list[tuple[int, float]]:
    """Return (key, value) from the index; the raw scores fall, and RRF must not look at them."""
    lists = [(str(place), [(key, -float(at)) for at, key in enumerate(r)]) for place, r in enumerate(rankings)]
    return [(fused.key, fused.value) for fused in index_fusion.rrf(lists, k)]


RANKING = st.lists(st.integers(0, 60), unique=True, max_size=40)
K = st.integers(1, 1000)


@pytest.mark.promise("RRF-1", "OFF-42")
@settings(max_examples=200, deadline=None, derandomize=True)
@given(st.lists(RANKING, min_size=1, max_size=2), K)
def test_rrf_of_up_to_two_lists_is_equal_bit_for_bit(rankings: list[list[int]], k: int) -> None:
    assert on_offline(rankings, k) == on_index(rankings, k)


@settings(max_examples=100, deadline=None, derandomize=True)
@given(st.lists(RANKING, min_size=3, max_size=5), K)
def test_rrf_of_more_lists_differs_in_the_last_bits_only(rankings: list[list[int]], k: int) -> None:
    left, right = dict(on_offline(rankings, k)), dict(on_index(rankings, k))
    assert left.keys() == right.keys()
    assert all(math.isclose(left[key], right[key], rel_tol=1e-15 * len(rankings)) for key in left)


def placed_at(ranks: Sequence[int], other: Sequence[int]) -> list[list[int]]:
    """Return one list per rank in which key 1 stands at `ranks` and key 2 at `other`, with keys of no account else."""
    lists = []
    for at, (one, two) in enumerate(zip(ranks, other, strict=True)):
        made = [100 * (at + 1) + place for place in range(max(ranks))]
        made[one - 1], made[two - 1] = 1, 2
        lists.append(made)
    return lists


def test_three_lists_show_where_the_sums_differ() -> None:
    # Ranks 7, 1, 2 and 1, 2, 7 are a tie on paper. fsum sees it and lets the id decide; RRF-1 asks the index for a sum
    # in the order of its channels, whose last bit decides here. Two addends commute, and the index has two channels.
    rankings = placed_at((7, 1, 2), (1, 2, 7))
    here, there = on_offline(rankings, 60)[:2], on_index(rankings, 60)[:2]
    assert here[0][1] == here[1][1] and [key for key, _ in here] == [1, 2]
    assert there[0][1] > there[1][1] and [key for key, _ in there] == [2, 1]
    assert dict(here) == pytest.approx(dict(there), rel=1e-15)


# Characters on which both analyzers promise the same: no `_`, no marks, no script that only the index knows.
SHARED = st.text(
    st.sampled_from("退款重复扣账号上传々〇ＡＢＣｅ０４２abcXYZ019 \n\t，。！？-./:()「」①²ßK⼈㈱")
    | st.characters(min_codepoint=0x4E00, max_codepoint=0x9FFF)
    | st.characters(min_codepoint=0x21, max_codepoint=0x7E, exclude_characters="_"),
    max_size=40,
)


@pytest.mark.promise("LEX-1", "OFF-33", "OFF-34", "OFF-35")
@settings(max_examples=300, deadline=None, derandomize=True)
@given(SHARED)
def test_terms_agree_on_shared_input(text: str) -> None:
    assert offline.terms(text) == tuple(index_analysis.terms(text))


TEXTS = [*(document.searchable for document in FIXTURE.documents), *(query.text for query in FIXTURE.queries)]


@pytest.mark.promise("LEX-1", "OFF-33")
@pytest.mark.parametrize("text", TEXTS)
def test_terms_agree_on_the_fixture(text: str) -> None:
    assert offline.terms(text) == tuple(index_analysis.terms(text)) != ()


DIFFERENT = [
    ("the index keeps the underscore", "user_id", ("user", "id"), ("user_id",)),
    ("full width as well", "ｕｓｅｒ＿ｉｄ", ("user", "id"), ("user_id",)),
    ("accented Latin", "café", ("caf",), ("café",)),
    ("other alphabets", "отчёт", (), ("отчёт",)),
    ("other digits", "٤٢", (), ("٤٢",)),
    ("kana", "カード", (), ("カー", "ード")),
    ("hangul", "환불", (), ("환불",)),
    ("a mark that casefold leaves", "İ", ("i",), ("i̇",)),
    ("an invisible character inside a word", "E0\u200b42", ("e0", "42"), ("e042",)),
    ("a variation selector between two Han", "退\ufe00款", ("退", "款"), ("退款",)),
]


@pytest.mark.promise("LEX-2")
@pytest.mark.parametrize(
    ("text", "here", "there"), [case[1:] for case in DIFFERENT], ids=[case[0] for case in DIFFERENT]
)
def test_terms_differ_where_the_index_promises_more(text: str, here: tuple[str, ...], there: tuple[str, ...]) -> None:
    assert offline.terms(text) == here
    assert tuple(index_analysis.terms(text)) == there


@pytest.mark.promise("LEX-9")
def test_a_query_of_one_character_reaches_bigrams_in_the_index_alone(tmp_path: Path) -> None:
    texts = ["发票税率说明", "住宿标准"]
    with Index.open(tmp_path / "kb.sqlite") as index:
        for number, text in enumerate(texts):
            index.upsert("alpha", f"d-{number}", 1, "text", text, [READER])
        assert docs(index.search("税", Context("alpha", READER), mode="lexical")) == ["d-0"]
    assert offline.bm25_scores(texts, "税") == (0.0, 0.0)


BODY = st.text(st.sampled_from("退款申请上传E042 ab，"), min_size=1, max_size=30).filter(
    lambda text: text.strip() != ""
)
QUERY = BODY.filter(lambda text: all(len(term) > 1 or term.isascii() for term in offline.terms(text)))


@pytest.mark.promise("LEX-8", "OFF-36", "OFF-37")
@settings(max_examples=40, deadline=None, derandomize=True)
@given(st.lists(st.tuples(BODY, st.booleans()), min_size=1, max_size=6), QUERY)
def test_bm25_agrees_on_made_up_rows_of_which_some_are_hidden(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[str, bool]], query: str
) -> None:
    path = tmp_path_factory.mktemp("made-up") / "kb.sqlite"
    with Index.open(path) as index:
        for number, (text, seen) in enumerate(rows):
            index.upsert("alpha", f"d-{number}", 1, "text", text, [READER if seen else NOBODY])
        found = index.search(query, Context("alpha", READER), 100, "lexical")
    names = [f"d-{number}" for number, (_, seen) in enumerate(rows) if seen]
    scores = offline.bm25_scores([text for text, seen in rows if seen], query)
    expected = {name: value for name, value in zip(names, scores, strict=True) if value > 0}
    assert {hit.doc_id: score(hit, "lexical") for hit in found} == pytest.approx(expected, rel=BM25_TOLERANCE, abs=0)


JUDGED = st.dictionaries(st.integers(0, 9).map(str), st.integers(1, 3), min_size=1, max_size=5)
ORDER = st.permutations([str(number) for number in range(10)])


@pytest.mark.promise("OFF-45", "OFF-46", "OFF-47")
@settings(max_examples=100, deadline=None, derandomize=True)
@given(ORDER, JUDGED, st.integers(1, 10))
def test_metrics_agree_and_ndcg_does_for_grades_of_one(order: list[str], judged: dict[str, int], k: int) -> None:
    assert offline.recall_at_k(order, judged, k) == index_metrics.recall_at(order, judged, k)
    assert offline.reciprocal_rank_at_k(order, judged, k) == index_metrics.reciprocal_rank_at(order, judged, k)
    flat = dict.fromkeys(judged, 1)
    assert offline.ndcg_at_k(order, flat, k) == index_metrics.ndcg_at(order, flat, k)


def test_ndcg_differs_for_other_grades() -> None:
    # Gain 2^grade - 1 in the experiment (OFF-47), gain = grade in the index's evaluation, as trec_eval has it.
    exponential = (1 + 7 / math.log2(3)) / (7 + 1 / math.log2(3))
    linear = (1 + 3 / math.log2(3)) / (3 + 1 / math.log2(3))
    assert offline.ndcg_at_k(["b", "a"], {"a": 3, "b": 1}, 3) == pytest.approx(exponential, rel=1e-12)
    assert index_metrics.ndcg_at(["b", "a"], {"a": 3, "b": 1}, 3) == pytest.approx(linear, rel=1e-12)
    assert exponential != pytest.approx(linear, rel=0.05)
