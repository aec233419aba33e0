"""Dense vectors: the engine's list equals a full scan, peers answer over the same rows, gates stand where promised."""

import sqlite3
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import bm25s
import numpy as np
import pytest

from kbretrieval import Index
from kbretrieval.analysis import term_codes
from kbretrieval.bench import exactness, peers, scale, upkeep
from kbretrieval.bench.eager import EagerWeights
from kbretrieval.bench.exactness import compared, row_scores
from kbretrieval.bench.figures import Figures
from kbretrieval.bench.filling import SHARES, corpus, fill_in_bulk, reader
from kbretrieval.bench.peers import (
    BM25S_FAISS,
    FTS5_NUMPY,
    USEARCH,
    Asked,
    Bm25sFaiss,
    FaissRows,
    Fts5Numpy,
    Rows,
    read_rows,
    searcher,
)
from kbretrieval.bench.texts import vocabulary
from kbretrieval.bench.timing import Series
from kbretrieval.bench.vectors import DIMENSION, FLOOR, DenseDouble, Gaussian
from kbretrieval.channels import vector
from kbretrieval.encoders.port import Encoder
from kbretrieval.snapshot.snapshot import Snapshot

WORDS = vocabulary(7)


class Flat:
    """The few calls of FAISS that the peer uses, by hand: the test needs no FAISS."""

    def __init__(self, dimension: int) -> None:
        self.d = dimension
        self._vectors = np.zeros((0, dimension), np.float32)

    def add(self, vectors: Any) -> None:
        self._vectors = np.concatenate([self._vectors, vectors])

    def get_xb(self) -> Any:
        return self._vectors.reshape(-1)

    def search(self, queries: Any, k: int, params: Any) -> tuple[Any, Any]:
        scores = self._vectors @ queries[0]
        if params is not None:
            scores[~np.unpackbits(params.sel, bitorder="little", count=len(scores)).astype(bool)] = -2.0
        order = np.argsort(-scores)[:k]
        return scores[order][None, :], np.where(scores[order] > -2.0, order, -1)[None, :]


FAISS = SimpleNamespace(
    IndexFlatIP=Flat,
    IDSelectorBitmap=lambda n, bits: bits,
    SearchParameters=lambda sel: SimpleNamespace(sel=sel),
    swig_ptr=lambda bits: bits,
    rev_swig_ptr=lambda held, size: held[:size],
)


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An index file of 600 chunks."""
    path = tmp_path_factory.mktemp("filled") / "dense.sqlite"
    fill_in_bulk(path, corpus(WORDS, 600, 2), DenseDouble())
    return path


@pytest.fixture(scope="module")
def queries() -> list[Asked]:
    return scale.asked(WORDS, DenseDouble(), range(6), 8)


@pytest.fixture(scope="module")
def rows(filled: Path) -> Rows:
    return read_rows(filled, DIMENSION)


@pytest.fixture(scope="module")
def snapshot(filled: Path) -> Snapshot:
    with Index.open(filled, DenseDouble()) as index:
        return upkeep.snapshot_of(index)


@pytest.mark.promise("PRF-3")
@pytest.mark.parametrize("encoder", [DenseDouble(), Gaussian()], ids=["BGE-like", "Gaussian"])
def test_the_vector_list_equals_a_full_scan_in_rows_and_bits(tmp_path: Path, encoder: Encoder) -> None:
    path = tmp_path / "a.sqlite"
    fill_in_bulk(path, corpus(WORDS, 600, 6), encoder)
    with Index.open(path, encoder) as index:
        asked = scale.asked(WORDS, encoder, range(8), 8)
        made = compared("same", index, read_rows(path, DIMENSION), asked)
        assert made.held
        assert len(made.rows) == 8 * len(SHARES)
        assert len(exactness.engine_list(index, asked[0], 10)) > 5


def test_scores_of_float32_are_seen(
    filled: Path, rows: Rows, queries: list[Asked], monkeypatch: pytest.MonkeyPatch
) -> None:
    exact = vector.exact_scores
    monkeypatch.setattr(vector, "exact_scores", lambda *given: exact(*given).astype(np.float32).astype(np.float64))
    with Index.open(filled, DenseDouble()) as index:
        assert not compared("same", index, rows, queries).held


def test_the_scan_scores_by_hand(rows: Rows, queries: list[Asked]) -> None:
    scores = row_scores(rows.vectors, queries[0].vector)
    by_hand = [
        sum(float(a) * float(b) for a, b in zip(rows.vectors[n], queries[0].vector, strict=True)) for n in (0, 599)
    ]
    assert scores[[0, 599]].tolist() == pytest.approx(by_hand, abs=1e-12)


def test_peers_see_the_rows_that_the_reader_sees(rows: Rows) -> None:
    assert {share: int(mask.sum()) for share, mask in rows.masks.items()} == {100: 600, 10: 60, 1: 6}
    assert rows.keys.tolist() == list(range(1, 601))


@pytest.mark.parametrize("share", SHARES)
def test_peers_answer_as_the_engine_does(
    filled: Path, rows: Rows, snapshot: Snapshot, queries: list[Asked], share: int
) -> None:
    held = FaissRows(cast(Any, FAISS), DIMENSION)
    assert np.array_equal(held.take(iter([rows.vectors[:250], rows.vectors[250:]]), 600), rows.vectors)
    both = Bm25sFaiss(EagerWeights(snapshot), rows, FLOOR, bm25s, held)
    fts5 = Fts5Numpy(filled, rows, FLOOR)
    with Index.open(filled, DenseDouble()) as index:
        for asked in queries:
            near = [key for key, _ in exactness.engine_list(index, asked, share)]
            assert near == fts5.vector(asked, share) == both.vector(asked, share)
            named = index.search(asked.text, reader(share), 100, "lexical", lexical="fts5")
            assert [hit.chunk_key for hit in named] == fts5.lexical(asked, share)
            found = both.lexical(asked, share)
            assert set(found) <= set(rows.keys[rows.masks[share]].tolist())
            if share == 100:
                isolated = [hit.chunk_key for hit in index.search(asked.text, reader(share), 100, "lexical")]
                assert found[:3] == isolated[:3]
    fts5.close()


def test_finished_weights_are_those_that_bm25s_computes(filled: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kbretrieval.snapshot.snapshot.SEGMENT_ROWS", 128)  # several segments
    raw = sqlite3.connect(filled)
    texts = [text.split(" ") for (text,) in raw.execute("SELECT terms FROM chunks_fts ORDER BY rowid")]
    raw.close()
    its_own = bm25s.BM25(k1=1.2, b=0.75, method="lucene")
    its_own.index(texts, show_progress=False)
    with Index.open(filled, DenseDouble()) as index:
        snapshot = upkeep.snapshot_of(index)
    assert len(snapshot.segments) == 5
    weights = EagerWeights(snapshot)
    found = searcher(weights, bm25s)
    for term in sorted(set(its_own.vocab_dict) - {""})[::37]:  # it adds an empty one of its own
        scores = found.get_scores_from_ids(weights.columns(term_codes([term])))
        assert np.allclose(scores, its_own.get_scores([term]), rtol=1e-5, atol=0)
        assert scores.any()
    assert weights.columns(term_codes(["没有这个词", "没"])).size == 0


def test_a_peer_that_is_not_installed_is_named(
    filled: Path, snapshot: Snapshot, rows: Rows, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(peers, "installed", lambda *names: None)
    both, usearch, absent, shared = peers.optional_peers(snapshot, filled, DIMENSION, FLOOR)
    assert both is None
    assert usearch is None
    assert np.array_equal(shared.vectors, rows.vectors)
    assert absent == {
        BM25S_FAISS: "not installed: pip install bm25s faiss-cpu",
        USEARCH: "not installed: pip install usearch",
    }


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {
        "EXACT_QUERIES": 5,
        "GAUSSIAN_CHUNKS": 100,
        "GAUSSIAN_QUERIES": 2,
        "UPDATES": 2,
        "SETTLE_SECONDS": 0.0,
        "OPENINGS": 2,
    }.items():
        monkeypatch.setattr(scale, name, value)


@pytest.mark.usefixtures("short")
def test_everything_that_is_promised_is_measured(tmp_path: Path) -> None:
    made = scale.measure(tmp_path, 200, 7, 1, 1)
    assert made.held
    assert [len(item.rows) for item in made.equalities] == [15, 6]
    measured = {series.what for series in made.series}
    assert {upkeep.OPENED, upkeep.REBUILT, upkeep.RETOKENISED, upkeep.UPDATED} < measured
    assert {f"hybrid, {terms} terms, {share} % eligible" for terms in (8, 32) for share in SHARES} < measured
    assert made.numbers["bytes a chunk in memory"] > DIMENSION + 3 * 100  # int8 row and postings
    assert {series.way for series in made.series} >= {"engine", FTS5_NUMPY}


def _series(size_of: Callable[[str], float]) -> tuple[Series, ...]:
    named = "hybrid, 8 terms, 100 % eligible"
    ways = [(named, way) for way in ("engine", FTS5_NUMPY, BM25S_FAISS)]
    steps = [(what, "engine") for what in (upkeep.OPENED, upkeep.REBUILT, upkeep.RETOKENISED, upkeep.UPDATED)]
    return tuple(Series(what, way, (size_of(way if what == named else what),)) for what, way in (*ways, *steps))


@pytest.mark.promise("PRF-1", "PRF-2", "PRF-4", "PRF-8", "PRF-9")
@pytest.mark.parametrize(("size", "least"), [(100_000, (3.0, 1.5)), (1_000_000, (1.5, 1.5))])
def test_gates_stand_where_they_are_promised(size: int, least: tuple[float, float]) -> None:
    took = {FTS5_NUMPY: 4.0, BM25S_FAISS: 2.0, upkeep.REBUILT: 30.0, upkeep.RETOKENISED: 6.0}
    gates = scale.gates(_series(lambda name: took.get(name, 1.0)), size, 1.5 * 2**30 / 2e6)
    opening = [(6.0, 5)] if size < scale.LARGE else []
    wanted = [(30.0, 20), (2.0, 1), *opening, (4.0, least[0]), (2.0, least[1])]
    assert [(gate.ratio, gate.least) for gate in gates] == wanted
    assert all(gate.held for gate in gates)
    assert not any(gate.held for gate in scale.gates(_series(lambda name: 1.0), size, 1700.0))


def test_a_small_size_is_reported_and_not_judged() -> None:
    assert scale.gates(_series(lambda name: 1.0), 10_000, 1700.0) == ()


def test_figures_of_one_part_tell_what_failed() -> None:
    assert Figures("dense", 20, (), (), (), {}, {}).held
