"""The synthetic corpus: the same from the same seed, of the announced size, and written as `upsert` would write it."""

import sqlite3
from pathlib import Path

import numpy as np
import pytest

from kbretrieval import Index
from kbretrieval.analysis import query_terms
from kbretrieval.bench.filling import FORMAT, SHARES, TENANT, corpus, expect_size, fill_in_bulk, reader
from kbretrieval.bench.texts import fixture_bodies, query, second_order, source, vocabulary
from kbretrieval.bench.vectors import DIMENSION, DenseDouble
from kbretrieval.chunking import DEFAULT_OVERLAP, DEFAULT_SIZE, chunks
from kbretrieval.encoders.port import Encoder
from kbretrieval.encoders.terms import TermEncoder
from kbretrieval.errors import ClaimFailed
from kbretrieval.projection import project

WORDS = vocabulary(7)
TABLES = ("contract", "counters", "documents", "acl", "chunks", "postings", "vectors", "sqlite_sequence")


@pytest.mark.parametrize("count", [1, 2, 20])
def test_a_source_has_exactly_the_announced_chunks(count: int) -> None:
    for number in range(5):
        made = project(source(WORDS, number, count), FORMAT)
        assert len(chunks(made, DEFAULT_SIZE, DEFAULT_OVERLAP)) == count


@pytest.mark.parametrize("terms", [8, 32])
def test_a_query_has_exactly_the_announced_terms(terms: int) -> None:
    assert {len(query_terms(query(WORDS, number, terms))[0]) for number in range(50)} == {terms}


def test_a_seed_decides_every_text_and_another_seed_decides_otherwise() -> None:
    assert vocabulary(7).words == WORDS.words != vocabulary(8).words
    assert source(WORDS, 3, 2) == source(vocabulary(7), 3, 2) != source(WORDS, 4, 2)


def test_half_of_the_words_walk_along_the_fixtures() -> None:
    chain = second_order(fixture_bodies())
    common = WORDS.words[:400]
    walked = [w for w in common if all(w[at + 2] in chain.get(w[at : at + 2], "") for at in range(len(w) - 2))]
    from_fixtures = [w for w in walked if w[:2] in chain]
    assert len(from_fixtures) > len(common) // 3


def test_vectors_lie_in_a_narrow_cone_and_depend_on_the_text_alone() -> None:
    double, texts = DenseDouble(), [f"第{number}条" for number in range(300)]
    made = np.stack(double.encode(texts, query=False).vectors)
    assert made.shape == (300, DIMENSION)
    assert np.allclose(np.linalg.norm(made, axis=1), 1.0, atol=1e-6)
    cosines = (made @ made.T)[np.triu_indices(300, 1)]
    assert 0.30 < float(np.median(cosines)) < 0.45
    alone = double.encode([texts[5]], query=True).vectors[0]
    assert alone.tobytes() == made[5].tobytes()


def _dump(path: Path) -> dict[str, list[tuple[object, ...]]]:
    raw = sqlite3.connect(path)
    try:
        made = {name: raw.execute(f"SELECT * FROM {name} ORDER BY 1, 2").fetchall() for name in TABLES}
        made["fts"] = raw.execute("SELECT rowid, terms FROM chunks_fts ORDER BY rowid").fetchall()
        raw.execute("CREATE VIRTUAL TABLE temp.seen USING fts5vocab(main, chunks_fts, instance)")
        made["fts postings"] = raw.execute("SELECT term, doc, offset FROM temp.seen ORDER BY 1, 2, 3").fetchall()
    finally:
        raw.close()
    return made


@pytest.mark.parametrize("encoder", [TermEncoder(), DenseDouble()], ids=["sparse", "dense"])
def test_the_bulk_path_writes_the_very_rows_of_upsert(tmp_path: Path, encoder: Encoder) -> None:
    documents = list(corpus(WORDS, 105, 10))
    expect_size(fill_in_bulk(tmp_path / "bulk.sqlite", documents, encoder), 105)
    with Index.open(tmp_path / "one.sqlite", encoder) as index:
        for item in documents:
            index.upsert(TENANT, item.doc_id, 1, FORMAT, item.source, list(item.acl))
    with Index.open(tmp_path / "bulk.sqlite", encoder) as index:
        assert index.check() == ()
    bulk, one = _dump(tmp_path / "bulk.sqlite"), _dump(tmp_path / "one.sqlite")
    assert len(one["fts postings"]) > 1000
    assert {name: bulk[name] == one[name] for name in one} == dict.fromkeys(one, True)


def test_the_readers_see_their_shares(tmp_path: Path) -> None:
    fill_in_bulk(tmp_path / "a.sqlite", corpus(WORDS, 400, 2))
    with Index.open(tmp_path / "a.sqlite") as index:
        seen = {share: index.search("年假", reader(share)).channels[0].eligible for share in SHARES}
    assert seen == {100: 400, 10: 40, 1: 4}


def test_another_size_than_announced_is_refused() -> None:
    with pytest.raises(ClaimFailed, match="100 chunks are announced, 99 were made"):
        expect_size(99, 100)


def test_the_doubles_constants_fit_its_vectors() -> None:
    double = DenseDouble()
    constants = double.quantizer
    assert constants is not None
    made = np.stack(double.encode([f"第{number}条" for number in range(600)], query=False).vectors)
    far = np.abs(made - constants.mean) / (constants.scale * 127 / 6)
    assert 0.7 < float(np.sqrt(np.mean(far**2))) < 1.2, "one standard deviation is a sixth of the codes' reach"
