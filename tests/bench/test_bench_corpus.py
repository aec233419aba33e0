"""The synthetic corpus: the same from the same seed, of the announced size, and written as `upsert` would write it."""

import random
import sqlite3
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from kbretrieval import Index
from kbretrieval.analysis import query_terms, terms
from kbretrieval.bench import filling
from kbretrieval.bench.filling import (
    FORMAT,
    SHARES,
    TENANT,
    corpus,
    expect_size,
    fill_in_bulk,
    reader,
)
from kbretrieval.bench.rows import chunk_columns, projected
from kbretrieval.bench.texts import Vocabulary, fixture_bodies, query, second_order, source, text, vocabulary
from kbretrieval.bench.vectors import DIMENSION, DenseDouble, Remembering
from kbretrieval.chunking import DEFAULT_OVERLAP, DEFAULT_SIZE, chunks
from kbretrieval.encoders.port import Encoder, Encoding
from kbretrieval.encoders.terms import TermEncoder
from kbretrieval.errors import ClaimFailed
from kbretrieval.projection import project
from kbretrieval.store.chunk_rows import posting_blobs
from kbretrieval.store.fts import fts_text

WORDS = vocabulary(7)
STRIDE = DEFAULT_SIZE - DEFAULT_OVERLAP


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


def _word_by_word(chosen: Vocabulary, number: int, code_points: int) -> str:
    draws = np.random.Generator(np.random.PCG64([chosen.seed, number])).random(code_points // 2 + 1)
    made = ""
    for place, at in enumerate(np.searchsorted(chosen.cumulative, draws, side="right").tolist(), 1):
        made += chosen.words[at] + ("。" if place % 21 == 0 else "，" if place % 7 == 0 else "")
    return made[:code_points]


@pytest.mark.parametrize("chosen", [WORDS, vocabulary(7, 3)], ids=["20,000 words", "3 words"])
def test_a_text_is_made_as_the_module_says(chosen: Vocabulary) -> None:
    for number, length in [(0, 1), (1, 2), (2, 40), (3, 333), (4, 1840), (5, 3640)]:
        assert text(chosen, number, length) == _word_by_word(chosen, number, length)


def test_half_of_the_words_walk_along_the_fixtures() -> None:
    chain = second_order(fixture_bodies())
    common = WORDS.words[:400]
    walked = [w for w in common if all(w[at + 2] in chain.get(w[at : at + 2], "") for at in range(len(w) - 2))]
    from_fixtures = [w for w in walked if w[:2] in chain]
    assert len(from_fixtures) > len(common) // 3


def _cosines(texts: list[str]) -> np.ndarray:
    made = np.stack(DenseDouble().encode(texts, query=False).vectors)
    return np.asarray((made @ made.T)[np.triu_indices(len(texts), 1)])


def test_vectors_lie_in_a_narrow_cone_and_depend_on_the_text_alone() -> None:
    double, texts = DenseDouble(), [f"第{number}条" for number in range(300)]
    made = np.stack(double.encode(texts, query=False).vectors)
    assert made.shape == (300, DIMENSION)
    assert np.allclose(np.linalg.norm(made, axis=1), 1.0, atol=1e-6)
    assert 0.34 < float(np.median(_cosines(texts))) < 0.38
    alone = double.encode([texts[5]], query=True).vectors[0]
    assert alone.tobytes() == made[5].tobytes()


def test_texts_of_one_cluster_are_closer_and_no_two_texts_share_a_vector() -> None:
    cosines = _cosines([f"第{number}条" for number in range(1500)])
    within = cosines[cosines > 0.5]
    assert 0.54 < float(np.median(within)) < 0.59
    assert 0.5 < len(within) / (len(cosines) / 512) < 2.5, "some passages of the fixtures are the same"
    assert float(cosines.max()) < 0.85


def test_a_remembered_vector_is_given_among_fresh_ones() -> None:
    double, texts = Remembering(), ["年假", "报销", "住宿"]
    double.remember(["年假五天。"], as_query="报销")
    found, plain = (encoder.encode(texts, query=True).vectors for encoder in (double, DenseDouble()))
    assert [a.tobytes() == b.tobytes() for a, b in zip(found, plain, strict=True)] == [True, False, True]
    assert found[1].tobytes() == DenseDouble().encode(["年假五天。"], query=False).vectors[0].tobytes()


def _random_bodies(letters: str, count: int) -> list[str]:
    draw = random.Random(letters)
    return ["".join(draw.choices(letters, k=DEFAULT_SIZE + STRIDE * (number % 3))) for number in range(count)]


@pytest.mark.parametrize(
    "letters",
    ["年假，。", "年假报e04a，", "年e，。 ", "a0，", "年"],
    ids=["ideographs", "mixed", "alone", "words", "one"],
)
def test_columns_are_those_of_the_cutter_and_the_analyzer(letters: str) -> None:
    bodies = _random_bodies(letters, 12)
    made = chunk_columns(bodies)
    cut = [chunk for body in bodies for chunk in chunks(project(body, "text"))]
    assert made.texts == [chunk.text for chunk in cut]
    assert made.digests == [chunk.sha256 for chunk in cut]
    found = [terms(chunk.text) for chunk in cut]
    assert list(zip(made.lengths, made.codes, made.counts, strict=True)) == [posting_blobs(item) for item in found]
    assert made.terms == [fts_text(item) for item in found]


def test_a_projection_is_the_projectors() -> None:
    for number in range(40):
        assert projected(source(WORDS, number, 2)) == project(source(WORDS, number, 2), FORMAT)


@pytest.mark.parametrize("body", ["年" * 221, "年" * 40, "", "年" * 219 + "A", "年" * 219 + "ー", "年" * 219 + "😀"])
def test_another_text_than_a_synthetic_one_is_refused(body: str) -> None:
    with pytest.raises(ClaimFailed):
        chunk_columns([body])


def _dump(path: Path) -> dict[str, list[tuple[object, ...]]]:
    raw = sqlite3.connect(path)
    try:
        names = "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'chunks_fts%'"
        made = {name: raw.execute(f"SELECT * FROM {name} ORDER BY 1, 2").fetchall() for (name,) in raw.execute(names)}
        made["schema"] = raw.execute("SELECT * FROM sqlite_schema ORDER BY name").fetchall()
        made["fts"] = raw.execute("SELECT rowid, terms FROM chunks_fts ORDER BY rowid").fetchall()
        made["fts config"] = raw.execute("SELECT * FROM chunks_fts_config").fetchall()
        made["fts sizes"] = raw.execute("SELECT * FROM chunks_fts_docsize ORDER BY id").fetchall()
        made["fts totals"] = raw.execute("SELECT * FROM chunks_fts_data WHERE id = 1").fetchall()
        raw.execute("CREATE VIRTUAL TABLE temp.seen USING fts5vocab(main, chunks_fts, instance)")
        made["fts postings"] = raw.execute("SELECT term, doc, offset FROM temp.seen ORDER BY 1, 2, 3").fetchall()
    finally:
        raw.close()
    return made


@pytest.mark.parametrize("encoder", [TermEncoder(), DenseDouble()], ids=["sparse", "dense"])
def test_the_bulk_path_writes_the_very_rows_of_upsert(
    tmp_path: Path, encoder: Encoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    documents = list(corpus(WORDS, 105, 10))
    monkeypatch.setattr(filling, "IN_ONE_BATCH", 4)
    expect_size(fill_in_bulk(tmp_path / "bulk.sqlite", documents, encoder), 105)
    with Index.open(tmp_path / "one.sqlite", encoder) as index:
        for item in documents:
            index.upsert(TENANT, item.doc_id, 1, FORMAT, item.source, list(item.acl))
    with Index.open(tmp_path / "bulk.sqlite", encoder) as index:
        assert index.check() == ()
    bulk, one = _dump(tmp_path / "bulk.sqlite"), _dump(tmp_path / "one.sqlite")
    assert len(one["fts postings"]) > 1000
    assert {"documents", "chunks", "postings", "vectors", "vector_codes", "counters"} < one.keys()
    assert {name: bulk[name] == one[name] for name in one} == dict.fromkeys(one, True)


def test_a_filled_file_is_an_index_like_any_other(tmp_path: Path) -> None:
    path = tmp_path / "a.sqlite"
    fill_in_bulk(path, corpus(WORDS, 60, 2))
    raw = sqlite3.connect(path)
    assert raw.execute("PRAGMA journal_mode").fetchone() == ("delete",)
    raw.close()
    assert [item.name for item in tmp_path.iterdir()] == ["a.sqlite"]
    with Index.open(path) as index:
        index.upsert(TENANT, "d0000003", 2, FORMAT, "# 新的\n\n年假。", ["*"])
        index.delete(TENANT, "d0000004", 2)
        assert index.check() == ()
        assert index.search("新的年假", reader(100), lexical="fts5")[0].doc_id == "d0000003"


def test_a_file_that_has_commits_is_refused_and_stays_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "a.sqlite"
    fill_in_bulk(path, corpus(WORDS, 4, 2))
    before = path.read_bytes()
    with pytest.raises(ClaimFailed, match="without commits is required, one with 2 given"):
        fill_in_bulk(path, corpus(WORDS, 4, 2))
    assert path.read_bytes() == before


def test_no_documents_make_an_empty_index(tmp_path: Path) -> None:
    assert fill_in_bulk(tmp_path / "a.sqlite", []) == 0
    with Index.open(tmp_path / "a.sqlite") as index:
        assert index.check() == ()


def _longer(vectors: list[np.ndarray]) -> list[np.ndarray]:
    return [vector * np.float32(1.01) for vector in vectors]


def _wider(vectors: list[np.ndarray]) -> list[np.ndarray]:
    return [vector.astype(np.float64) for vector in vectors]


@pytest.mark.parametrize("spoil", [_longer, _wider])
def test_vectors_that_upsert_would_have_to_mend_are_refused(
    tmp_path: Path, spoil: Callable[[list[np.ndarray]], list[np.ndarray]], monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = DenseDouble.encode
    monkeypatch.setattr(
        DenseDouble, "encode", lambda *given, query: Encoding(spoil(list(plain(*given, query=query).vectors)))
    )
    with pytest.raises(ClaimFailed, match="rows of norm 1 are required"):
        fill_in_bulk(tmp_path / "a.sqlite", corpus(WORDS, 4, 2), DenseDouble())


def test_the_readers_see_their_shares_and_a_query_finds_what_it_quotes(tmp_path: Path) -> None:
    fill_in_bulk(tmp_path / "a.sqlite", corpus(WORDS, 400, 2))
    with Index.open(tmp_path / "a.sqlite") as index:
        seen = {share: index.search("年假", reader(share)).channels[0].eligible for share in SHARES}
        for number in range(0, 200, 23):
            for lexical in ("isolated", "fts5"):
                hits = index.search(query(WORDS, number, 8), reader(100), 1, lexical=lexical)
                assert hits[0].doc_id == f"d{number:07d}"
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
