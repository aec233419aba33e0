"""The certificate of the dense channel: int8 rows select, and lose nothing (PRF-3, VEC-7)."""

from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from kbretrieval.channels.ranking import QueryTerms, best, least_of_best
from kbretrieval.channels.vector import exact_scores, rank_dense, select_dense
from kbretrieval.encoders import quantizer as module
from kbretrieval.encoders.bge import bge_quantizer
from kbretrieval.encoders.quantizer import Quantizer, integer_dots, plain, quantizer_of
from kbretrieval.encoders.terms import TermEncoder
from kbretrieval.identity import Context
from kbretrieval.snapshot.acls import AclTable
from kbretrieval.snapshot.eligible import view_of
from kbretrieval.snapshot.scanners import Scanners
from kbretrieval.snapshot.segment import PostingLists, Segment
from kbretrieval.snapshot.snapshot import Snapshot
from kbretrieval.store.commits import Head

Vectors = NDArray[np.float32]
NO_TERMS = QueryTerms((), (), 0)


def units(seed: int, count: int, dimension: int, spread: float = 1.0) -> Vectors:
    """Seeded unit vectors around one direction; a small spread makes near ties."""
    rng = np.random.default_rng(seed)
    made = rng.normal(size=dimension) + spread * rng.normal(size=(count, dimension))
    return (made / np.linalg.norm(made, axis=1, keepdims=True)).astype(np.float32)


def quantizers(dimension: int, seed: int) -> list[Quantizer]:
    """Good constants, the plain ones, and absurd ones: the result may not depend on them."""
    rows = units(seed, 200, dimension).astype(np.float64)
    fitted = Quantizer("fitted", rows.mean(axis=0), 6 * rows.std(axis=0) / 127 + 1e-9)
    absurd = Quantizer("absurd", np.full(dimension, 5.0), np.full(dimension, 1e-4))
    return [fitted, plain(dimension), absurd]


def segment_of(vectors: Vectors, quantizer: Quantizer, first_key: int) -> Segment:
    """A segment with vectors and no terms."""
    count = len(vectors)
    none, zeros = np.zeros(0, np.int64), np.zeros(count, np.int64)
    return Segment(
        chunk_keys=np.arange(first_key, first_key + count),
        doc_keys=np.arange(count),
        lengths=zeros,
        squares=zeros,
        lists=PostingLists(
            none,
            np.zeros(1, np.int32),
            none.astype(np.uint16),
            none.astype(np.uint8),
            none,
            none.astype(np.uint16),
        ),
        vectors=quantizer.coded(vectors),
        has_vector=np.ones(count, np.bool_),
        damaged=np.zeros(count, np.bool_),
    )


def snapshot_of(segments: tuple[Segment, ...]) -> Snapshot:
    """A snapshot of acme whose rows everybody of acme may read."""
    count, acls = sum(map(len, segments)), AclTable()
    number = acls.number_of(["*"])
    return Snapshot("acme", Head(1, b""), segments, np.ones(count, np.bool_), np.full(count, number, np.int32), acls)


@pytest.fixture(scope="module")
def scanners() -> Iterator[Scanners]:
    made = Scanners(threads=3)
    yield made
    made.close()


@pytest.mark.promise("PRF-3", "VEC-7")
@given(seed=st.integers(0, 10**6), dimension=st.sampled_from([1, 2, 8, 64]), spread=st.sampled_from([0.01, 1.0, 50.0]))
def test_every_score_lies_between_its_bounds(seed: int, dimension: int, spread: float) -> None:
    vectors, query = units(seed, 60, dimension, spread), units(seed + 1, 1, dimension)[0]
    exact = exact_scores(vectors, query)
    for quantizer in quantizers(dimension, seed):
        rows, coded = quantizer.coded(vectors), quantizer.query(query)
        lower, upper = coded.bounds(integer_dots(rows.codes, coded.codes), rows)
        assert (lower <= exact).all()
        assert (exact <= upper).all()


@pytest.mark.promise("PRF-3", "VEC-7")
@given(
    seed=st.integers(0, 10**6),
    window=st.sampled_from([1, 2, 5, 100]),
    floor=st.sampled_from([-1.0, 0.0, 0.4, 0.99]),
    share=st.sampled_from([0.0, 0.05, 0.5, 1.0]),
    repeats=st.integers(1, 4),
    block=st.sampled_from([7, 8192]),
    copied=st.sampled_from([0, 200, 2**20]),
)
def test_the_selection_gives_the_plain_scan_bit_for_bit(
    scanners: Scanners, seed: int, window: int, floor: float, share: float, repeats: int, block: int, copied: int
) -> None:
    rng = np.random.default_rng(seed)
    vectors = np.tile(units(seed, 40, 16), (repeats, 1))  # duplicates: exact ties
    query = units(seed + 1, 1, 16)[0]
    mask = rng.random(len(vectors)) < share
    keys = np.arange(1, len(vectors) + 1)
    scores = np.array([np.add.reduce(row.astype(np.float64) * query.astype(np.float64)) for row in vectors])
    wanted = best(keys[mask & (scores >= floor)], scores[mask & (scores >= floor)], window)
    cut = int(rng.integers(0, len(vectors) + 1))
    for quantizer in quantizers(16, seed):
        parts = (segment_of(vectors[:cut], quantizer, 1), segment_of(vectors[cut:], quantizer, cut + 1))
        snapshot = snapshot_of(parts)
        view = view_of(mask, snapshot.segments)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("kbretrieval.snapshot.eligible.BLOCK_ROWS", block)
            patch.setattr("kbretrieval.snapshot.eligible.KEPT_COPY_BYTES", copied)
            selection = select_dense(snapshot, view, quantizer.query(query), floor, window, scanners)
        chosen = selection.wanted
        assert set(chosen) <= set(keys[mask])  # nothing hidden is ever read
        ranked = rank_dense(
            selection, vectors[chosen - 1], query, NO_TERMS, eligible=view.count, floor=floor, window=window
        )
        assert ranked.rows == wanted
        assert ranked.trace.scored == int(mask.sum())
        assert ranked.trace.below_floor == int((mask & (scores < floor)).sum())


@pytest.mark.promise("PRF-3")
def test_good_constants_leave_few_candidates() -> None:
    vectors, query = units(3, 4000, 64), units(4, 1, 64)[0]
    read = []
    for quantizer in quantizers(64, 3):
        segment = segment_of(vectors, quantizer, 1)
        snapshot = snapshot_of((segment,))
        view = view_of(snapshot.alive, snapshot.segments)
        read.append(len(select_dense(snapshot, view, quantizer.query(query), -1.0, 10).keys))
    fitted, _, absurd = read
    assert 10 <= fitted < 100
    assert absurd == 4000  # bounds that say nothing let every row through


@pytest.mark.promise("PRF-3")
@given(st.integers(0, 10**6), st.sampled_from([1, 7, 512, 1500]))
def test_integer_products_are_exact_with_and_without_the_accelerator(seed: int, dimension: int) -> None:
    rng = np.random.default_rng(seed)
    rows = rng.integers(-127, 128, (5, dimension)).astype(np.int8)
    query = rng.integers(-127, 128, dimension).astype(np.int8)
    exact = (rows.astype(np.int64) @ query.astype(np.int64)).tolist()
    kernel = module._simsimd
    try:
        for used in (kernel, None):
            module._simsimd = used
            assert integer_dots(rows, query).tolist() == exact
    finally:
        module._simsimd = kernel


@pytest.mark.promise("PRF-3")
@given(st.lists(st.sampled_from([0.0, 0.25, 0.5, 1.0]), min_size=1, max_size=60), st.integers(1, 70))
def test_the_least_of_the_best_is_a_place_in_the_sorted_list(values: list[float], window: int) -> None:
    ordered = sorted(values, reverse=True)
    expected = ordered[window - 1] if len(values) > window else float("-inf")
    assert least_of_best(np.array(values), window) == expected


def test_a_long_list_gives_the_same_least() -> None:
    scores = np.random.default_rng(5).random(100_000).round(3)  # many ties
    assert least_of_best(scores, 100) == np.sort(scores)[-100]
    assert least_of_best(np.zeros(100_000), 100) == 0.0


def test_constants_of_another_size_are_not_used() -> None:
    assert bge_quantizer().mean.shape == bge_quantizer().scale.shape == (512,)
    assert (bge_quantizer().scale > 0).all()
    assert quantizer_of(TermEncoder()).name == "int8-plain/1"

    class Odd(TermEncoder):
        quantizer = plain(3)

    assert quantizer_of(Odd()).mean.shape == (0,)


def test_one_reader_sees_nothing_of_another_tenant() -> None:
    segment = segment_of(units(1, 5, 4), plain(4), 1)
    snapshot = snapshot_of((segment,))
    assert snapshot.eligible(Context("acme", "alice")).count == 5
    assert snapshot.eligible(Context("beta", "alice")).count == 0
