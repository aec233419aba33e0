"""What `Index.search` ranks, against plain Python over the documents: ties, duplicates, nothing, one row, all hidden.

The rows are computed from what was told to the index alone. Every index keeps tails of many small segments, because it
was searched after each event (LEX-8, VEC-1, VEC-7, VEC-8, PRF-3).
"""

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import kbretrieval.snapshot.snapshot as snapshots
from kbretrieval import Context, Index, SearchResult, TermEncoder
from kbretrieval.analysis import query_terms, terms
from kbretrieval.encoders.port import encode_dense
from kbretrieval.encoders.terms import sparse_cosine
from tests.unit.doubles import RandomVectors, Table, score

ALICE = Context("acme", "alice")

CHUNK = 8
CELLS = ("aa bb   ", "bb aa   ", "aa aa bb", "aa cc   ", "退款税率 aa ", "收税 cc   ", "        ", "dd dd dd")
QUERIES = ("aa", "bb aa aa", "税 cc", "aa bb cc dd", "退款 税", "zz", "！")
ACLS = ((), ("alice",), ("*",), ("bob",), ("group:hr", "bob"))
CALLERS = (Context("t", "alice", ("hr",)), Context("t", "bob"), Context("t", "carol"))


class Counts(TermEncoder):
    """The term encoder with a floor that a test may move."""

    floor = 0.05  # type: ignore[assignment]


DIRECTIONS = ([1, 0, 0], [-1, 0, 0], [0, 1, 0], [1, 1, 0], [1, 1, 1e-4], [3, 4, 0], [2, 2, 0], [1, 0, 1e-7])
STEEP = dict(zip((*CELLS, *QUERIES), (*DIRECTIONS, *DIRECTIONS), strict=False))


@dataclass(frozen=True)
class Told:
    """Something that was told to the index: a document's content of so many cells, its ACL, or its end."""

    number: int
    cells: tuple[str, ...]
    acl: tuple[str, ...]
    kind: str = "content"


@dataclass(frozen=True)
class Row:
    """A readable chunk: the order in which it was written, and its text."""

    written: tuple[int, int]
    text: str

    def counts(self) -> Counter[str]:
        return Counter(terms(self.text))


@dataclass
class Store:
    """An index with what it was told, one tenant an example."""

    index: Index
    encoder: Any
    names: Iterator[int]
    tenant: str = ""

    def tell(self, events: Sequence[Told]) -> dict[str, tuple[int, Told]]:
        """Let events happen in a new tenant, and return each live document with the time of its last content."""
        self.tenant, live, revisions = f"t{next(self.names)}", dict[str, tuple[int, Told]](), Counter[str]()
        for at, event in enumerate(events):
            name = f"d{event.number}"
            if event.kind == "content":
                acl = live[name][1].acl if name in live else event.acl
                live[name] = at, Told(event.number, event.cells, acl)
                revisions[name] += 1
                text = "".join(event.cells)
                self.index.upsert(self.tenant, name, revisions[name], "text", text, list(acl), restore=True)
            elif name not in live:
                continue
            elif event.kind == "acl":
                expected = self.index.status(self.tenant, name).acl_revision or 0
                self.index.set_acl(self.tenant, name, list(event.acl), expected)
                live[name] = live[name][0], Told(event.number, live[name][1].cells, event.acl)
            else:
                revisions[name] += 1
                self.index.delete(self.tenant, name, revisions[name])
                del live[name]
            self.index.search("aa", self.caller(CALLERS[0]), mode="lexical")
        return live

    def caller(self, like: Context) -> Context:
        return Context(self.tenant, like.principal, like.groups)


def readable(live: dict[str, tuple[int, Told]], caller: Context) -> dict[tuple[str, int], Row]:
    """(document, start) → row, for everything that a caller may read."""
    mine = set(caller.entries())
    return {
        (name, number * CHUNK): Row((at, number), cell)
        for name, (at, told) in live.items()
        if mine & set(told.acl)
        for number, cell in enumerate(told.cells)
    }


def holding(row: Counter[str], term: str) -> int:
    """How often a row holds a query term; one Han character stands for every bigram with it (LEX-9)."""
    single = len(term) == 1 and term > "\x7f"
    return sum(n for other, n in row.items() if other == term or (single and len(other) <= 2 and term in other))


def bm25(rows: Sequence[Row], query: str) -> list[float]:
    """The formula of LEX-8, row by row, over these rows alone; 0 where no term is held."""
    counted = [row.counts() for row in rows]
    lengths = [row.total() for row in counted]
    mean = sum(lengths) / len(rows) if sum(lengths) else 1.0
    scores = [0.0] * len(rows)
    for term in query_terms(query)[0]:
        held = [holding(row, term) for row in counted]
        df = sum(1 for tf in held if tf)
        idf = math.log(1 + (len(rows) - df + 0.5) / (df + 0.5))
        for place, tf in enumerate(held):
            scores[place] += idf * tf * 2.2 / (tf + 1.2 * (0.25 + 0.75 * lengths[place] / mean)) if tf else 0.0
    return scores


def placed(result: SearchResult, rows: dict[tuple[str, int], Row], channel: str) -> list[tuple[Row, float]]:
    """The rows and scores of the hits in their order; every hit is a readable row, with its text and its rank."""
    made = []
    for number, hit in enumerate(result, 1):
        ranked = hit.channel(channel)
        assert ranked is not None
        assert ranked.rank == number
        row = rows[hit.doc_id, hit.start]
        assert hit.text == row.text
        made.append((row, ranked.score))
    return made


def assert_counts(result: SearchResult, channel: str, eligible: int, scored: int, candidates: int, window: int) -> None:
    trace = result.channel(channel)
    assert (trace.eligible, trace.scored, trace.below_floor) == (eligible, scored, scored - candidates)
    assert (trace.returned, trace.beyond_window) == (min(window, candidates), max(0, candidates - window))


def assert_bm25(result: SearchResult, rows: dict[tuple[str, int], Row], query: str, window: int) -> None:
    """The scores to twelve digits, and the order exactly: rows alike in length and counts tie bit for bit."""
    asked = query_terms(query)[0]
    if not asked:
        assert (len(result), result.channel("lexical").reason) == (0, "no_terms")
        return
    each = list(rows.values())
    scores = dict(zip(each, bm25(each, query), strict=True))
    kinds = {row: (row.counts().total(), *(holding(row.counts(), term) for term in asked)) for row in each}
    got = placed(result, rows, "lexical")
    value = {kinds[row]: found for row, found in got}
    for row, found in got:
        assert math.isclose(found, scores[row], rel_tol=1e-12)
        assert found == value[kinds[row]]
    expected = sorted((-value[kinds[row]], row.written) for row in each if kinds[row] in value)[:window]
    assert [(-found, row.written) for row, found in got] == expected
    left = max((scores[row] for row in each if kinds[row] not in value), default=0.0)
    assert left == 0.0 or (len(got) == window and left <= got[-1][1] * (1 + 1e-12))
    candidates = sum(1 for found in scores.values() if found)
    assert_counts(result, "lexical", len(rows), candidates, candidates, window)


def assert_exact(
    result: SearchResult, rows: dict[tuple[str, int], Row], scores: dict[Row, float], floor: float, window: int
) -> None:
    """The vector channel gives these rows and these scores, bit for bit, ties in the order of writing."""
    kept = sorted((-value, row.written) for row, value in scores.items() if value >= floor)
    got = placed(result, rows, "vector")
    assert [(-value, row.written) for row, value in got] == kept[:window]
    assert_counts(result, "vector", len(rows), len(scores), len(kept), window)


def floors(scores: dict[Row, float], usual: float) -> list[float]:
    """The usual floor, exactly a score that some row has, and the next number above it."""
    if not scores:
        return [usual]
    middle = sorted(scores.values())[len(scores) // 2]
    return [floor for floor in (usual, middle, math.nextafter(middle, 2.0)) if -1.0 <= floor <= 1.0]


CONTENT = st.builds(
    Told,
    st.integers(0, 5),
    st.lists(st.sampled_from(CELLS), max_size=5).map(tuple),
    st.sampled_from(ACLS),
    st.sampled_from(("content",) * 5 + ("acl", "end")),
)
EVENTS = st.lists(CONTENT, min_size=1, max_size=9)
WINDOWS = st.sampled_from([1, 2, 5, 100])
NOTHING: list[Told] = []
ONE_ROW = [Told(0, ("aa bb   ",), ("alice",))]
HIDDEN = [Told(number, ("aa bb   ", "        "), ()) for number in range(3)]
ALIKE = [Told(number, ("aa aa bb", "aa bb   ") * 3, ("*",)) for number in range(6)]
REWRITTEN = [
    *(Told(number, CELLS[number : number + 3], ("*",)) for number in range(6)),
    *(Told(number, CELLS[number + 2 :: -1], ("bob",)) for number in (1, 3)),
    Told(0, (), (), "end"),
    Told(4, (), ("alice",), "acl"),
    Told(5, CELLS[:2], ()),
]
BLANK = [Told(0, ("        ",) * 2, ("*",)), Told(1, (), ("*",))]


@pytest.fixture(scope="module")
def store_of(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[Any], Store]]:
    """A store for each encoder, kept open; segments of ten rows, so that a few events join some and fill others."""
    stores: dict[str, Store] = {}

    def opened(encoder: Any) -> Store:
        if encoder.identifier not in stores:
            path: Path = tmp_path_factory.mktemp("properties") / "kb.sqlite"
            index = Index.open(path, encoder, CHUNK, 0)
            index._engine.connection.run("PRAGMA synchronous=OFF")
            stores[encoder.identifier] = Store(index, encoder, count())
        return stores[encoder.identifier]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(snapshots, "SEGMENT_ROWS", 10)
        yield opened
        for store in stores.values():
            store.index.close()


@pytest.mark.promise("LEX-8", "LEX-9", "VEC-1", "VEC-7", "VEC-8", "RRF-3")
@settings(max_examples=20)
@given(EVENTS, st.sampled_from(QUERIES), WINDOWS)
@example(NOTHING, "aa", 1)
@example(ONE_ROW, "bb aa aa", 1)
@example(HIDDEN, "aa", 100)
@example(ALIKE, "aa", 5)
@example(ALIKE, "aa bb cc dd", 100)
@example(REWRITTEN, "退款 税", 2)
@example(BLANK, "aa", 5)
def test_terms_are_ranked_as_plain_python_ranks_them(
    store_of: Callable[[Any], Store], events: list[Told], query: str, window: int
) -> None:
    store = store_of(Counts())
    live = store.tell(events)
    for caller in map(store.caller, CALLERS):
        rows = readable(live, caller)
        assert_bm25(store.index.search(query, caller, 100, "lexical", window=window), rows, query, window)
        asked = Counter(terms(query))
        scores = {row: sparse_cosine(asked, row.counts()) for row in rows.values() if row.counts()}
        for floor in floors(scores, 0.05):
            store.encoder.floor = floor
            result = store.index.search(query, caller, 100, "vector", window=window)
            if asked:
                # A row without a common term has cosine 0 and is no candidate, even at floor 0 or below.
                assert_exact(result, rows, scores, floor if floor > 0 else math.nextafter(0.0, 1.0), window)
            else:
                assert (len(result), result.channel("vector").reason) == (0, "no_terms")


@pytest.mark.promise("VEC-7", "VEC-8", "PRF-3", "RRF-3")
@pytest.mark.parametrize("kind", ["steep", "line", "gaussian", "crowd"])
@settings(max_examples=12)
@given(EVENTS, st.sampled_from(QUERIES), WINDOWS)
@example(NOTHING, "aa", 1)
@example(ONE_ROW, "aa", 1)
@example(HIDDEN, "aa", 100)
@example(ALIKE, "aa", 5)
@example(REWRITTEN, "aa", 1)
@example(REWRITTEN, "税 cc", 2)
@example(BLANK, "aa", 5)
def test_vectors_are_ranked_as_a_plain_scan_ranks_them(
    store_of: Callable[[Any], Store], kind: str, events: list[Told], query: str, window: int
) -> None:
    """Few steep directions with ties and opposites; one dimension; Gaussian ones; ones that float32 hardly tells
    apart."""
    encoder = {
        "steep": Table("steep", STEEP, -1.0, (0.0, 0.0, 1.0)),
        "line": RandomVectors(1),
        "gaussian": RandomVectors(16),
        "crowd": RandomVectors(8, spread=1e-7),
    }[kind]
    store = store_of(encoder)
    live = store.tell(events)
    wanted = encode_dense(encoder, [query], query=True)[0][0].astype(np.float64)
    vectors = dict(zip(CELLS, encode_dense(encoder, CELLS, query=False)[0].astype(np.float64), strict=True))
    for caller in map(store.caller, CALLERS):
        rows = readable(live, caller)
        scores = {row: float(np.add.reduce(vectors[row.text] * wanted)) for row in rows.values() if row.text.strip()}
        for floor in floors(scores, -1.0):
            store.encoder.floor = floor
            result = store.index.search(query, caller, 100, "vector", window=window)
            assert_exact(result, rows, scores, floor, window)


@pytest.mark.promise("RRF-3", "VEC-7", "OBS-1")
@pytest.mark.parametrize("query", ["q1", "q2", "q3", "q4"])
def test_the_trace_adds_up_where_many_rows_stand_at_the_floor(tmp_path: Path, query: str) -> None:
    """More rows than are read one by one have exactly the floor's score: they are returned, and counted as such."""
    encoder, count = RandomVectors(3), 600
    with Index.open(tmp_path / "kb", encoder, 8, 0) as index:
        index.upsert("acme", "many", 1, "text", "samesame" * count, ["alice"])
        encoder.floor = score(index.search(query, ALICE, 1, "vector")[0], "vector") or 0.0
        for window in (10, 1000):
            trace = index.search(query, ALICE, 100, "vector", window=window).channel("vector")
            assert (trace.scored, trace.returned) == (count, min(count, window))
            assert (trace.below_floor, trace.beyond_window) == (0, count - trace.returned)
