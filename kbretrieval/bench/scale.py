"""Second part: hybrid search over dense vectors at every size and share, beside peers (PRF-1 to PRF-4, 6, 8, 9).

The index is filled in bulk with the rows of `upsert`; the encoder is the double with BGE-like vectors, its time left
out of the samples (a query's vector is made beforehand). The engine and its peers answer the same queries in turns. The
peers' statistics are the whole table's, the engine's those of the eligible rows, so lexical lists are not compared
here; the vector lists are, with a full scan.
"""

import sqlite3
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from kbretrieval.analysis import query_terms
from kbretrieval.bench import upkeep
from kbretrieval.bench.exactness import compared
from kbretrieval.bench.figures import Equality, Figures, Gate, ratio
from kbretrieval.bench.filling import SHARES, corpus, expect_size, fill_in_bulk, reader
from kbretrieval.bench.peers import (
    BM25S_FAISS,
    FTS5_NUMPY,
    Asked,
    Bm25sFaiss,
    Fts5Numpy,
    Peer,
    Rows,
    Usearch,
    hybrid,
    optional_peers,
    read_rows,
)
from kbretrieval.bench.texts import Vocabulary, query, vocabulary
from kbretrieval.bench.timing import Series, in_turns, timed
from kbretrieval.bench.vectors import DIMENSION, FLOOR, Gaussian, Remembering
from kbretrieval.encoders.port import Encoder
from kbretrieval.index import Index
from kbretrieval.options import Mode
from kbretrieval.snapshot.snapshot import Snapshot

PART = "dense"
CHUNKS_EACH = 10
TERMS = (8, 32)
EXACT_QUERIES, EXACT_SCANNED = 100, 10_000_000
GAUSSIAN_CHUNKS, GAUSSIAN_QUERIES = 2_000, 20
UPDATES = 15
OPENINGS = 5
LARGE = 1_000_000
MOST_BYTES = 1.5 * 2**30 / LARGE
HELD = "bytes a chunk in memory"
SETTLE_SECONDS = 0.15
LEXICAL: Mode = "lexical"
VECTOR: Mode = "vector"
_EVERY = 31

Way = Callable[[Asked], object]


def asked(chosen: Vocabulary, encoder: Encoder, numbers: Sequence[int], terms: int) -> list[Asked]:
    """Return queries of `terms` distinct terms with their vectors; one a document number."""
    texts = [query(chosen, number, terms) for number in numbers]
    vectors = encoder.encode(texts, query=True).vectors
    return [Asked(text, tuple(query_terms(text)[0]), vector) for text, vector in zip(texts, vectors, strict=True)]


def _engine(index: Index, item: Asked, mode: Mode, share: int) -> object:
    return index.search(item.text, reader(share), 5, mode)


class Field:
    """The engine and its peers over one filled file."""

    def __init__(self, path: Path, index: Index, snapshot: Snapshot) -> None:
        self.index = index
        self.bm25s, self.usearch, self.absent, self.rows = optional_peers(snapshot, path, DIMENSION, FLOOR)
        self.fts5 = Fts5Numpy(path, self.rows, FLOOR)

    def _peers(self) -> list[Fts5Numpy | Bm25sFaiss]:
        return [self.fts5, *([self.bm25s] if self.bm25s else [])]

    def ways(self, mode: Mode, share: int) -> dict[str, Way]:
        """Return who can answer in a mode for a share's reader, by name."""
        made: dict[str, Way] = {"engine": partial(_engine, self.index, mode=mode, share=share)}
        for peer in self._peers():
            made[peer.name] = _peer_way(peer, mode, share)
        if mode == "vector" and share == SHARES[0] and self.usearch is not None:
            made[Usearch.name] = partial(self.usearch.vector, share=share)
        return made


def _peer_way(peer: Peer, mode: Mode, share: int) -> Way:
    if mode == "hybrid":
        return partial(hybrid, peer, share=share)
    return partial(peer.lexical if mode == "lexical" else peer.vector, share=share)


def _searched(field: Field, queries: dict[int, list[Asked]], rounds: int) -> tuple[Series, ...]:
    series: tuple[Series, ...] = ()
    least = min(TERMS)
    for share in SHARES:
        for terms in TERMS:
            named = f"hybrid, {terms} terms, {share} % eligible"
            series += in_turns(named, field.ways("hybrid", share), queries[terms], rounds, SETTLE_SECONDS)
        for named, mode in ((f"lexical, {least} terms", LEXICAL), ("vector", VECTOR)):
            ways = field.ways(mode, share)
            series += in_turns(f"{named}, {share} % eligible", ways, queries[least], rounds, SETTLE_SECONDS)
    return series


def gates(series: tuple[Series, ...], size: int, held: float) -> tuple[Gate, ...]:
    """Return the gates that the promises set for this size; smaller sizes are reported only.

    held: bytes a chunk in memory.
    """
    what, ways = f"hybrid, {min(TERMS)} terms, 100 % eligible", {item.way for item in series}
    made = [
        Gate(
            "rebuild of the snapshot against one update", _upkeep(series, upkeep.REBUILT, upkeep.UPDATED), 20, "PRF-4"
        ),
        Gate("1.5 GiB against the memory for a million chunks", MOST_BYTES / held, 1, "PRF-9"),
    ]
    least = {FTS5_NUMPY: 3.0, BM25S_FAISS: 1.5} if size < LARGE else dict.fromkeys((FTS5_NUMPY, BM25S_FAISS), 1.5)
    if size < LARGE:  # beyond it a machine's memory holds no longer the whole file
        made.append(
            Gate("re-tokenising against opening", _upkeep(series, upkeep.RETOKENISED, upkeep.OPENED), 5, "PRF-8")
        )
    promise = "PRF-1" if size < LARGE else "PRF-2"
    made += [
        Gate(f"{what}, against {peer}", ratio(series, what, peer, "engine"), floor, promise)
        for peer, floor in least.items()
        if peer in ways
    ]
    return tuple(made) if size >= 100_000 else ()


def _upkeep(series: tuple[Series, ...], slower: str, faster: str) -> float:
    medians = {item.what: item.p50 for item in series if item.way == "engine"}
    return medians[slower] / medians[faster]


def gaussian(folder: Path, chosen: Vocabulary) -> Equality:
    """Return the comparison of the vector channel with a full scan over directions without structure."""
    path, encoder = folder / "gaussian.sqlite", Gaussian()
    fill_in_bulk(path, corpus(chosen, GAUSSIAN_CHUNKS, CHUNKS_EACH), encoder)
    with Index.open(path, encoder) as index:
        queries = asked(chosen, encoder, range(GAUSSIAN_QUERIES), min(TERMS))
        return compared("Gaussian vectors: rows and bits equal a full scan", index, read_rows(path, DIMENSION), queries)


def measure(folder: Path, size: int, seed: int, queries: int, rounds: int) -> Figures:
    """Return the figures of the engine and its peers over `size` chunks with dense vectors.

    `folder` takes the files: about 8 kB a chunk. Raises `claim_failed` where an outcome is not the announced one.
    """
    chosen, encoder, path = vocabulary(seed), Remembering(), folder / "dense.sqlite"
    documents = -(-size // CHUNKS_EACH)
    written, filling = timed(lambda: fill_in_bulk(path, corpus(chosen, size, CHUNKS_EACH), encoder))
    expect_size(written, size)
    numbers = {"chunks per second, filled in bulk": size / filling * 1000, "bytes a chunk on disk": _bytes(path) / size}
    items = {terms: asked(chosen, encoder, [n * _EVERY % documents for n in range(queries)], terms) for terms in TERMS}
    for item in (item for made in items.values() for item in made):
        encoder.remember([item.text])
    times = OPENINGS if size < LARGE else 1
    upkeeping = upkeep.opened_and_retokenised(path, encoder, items[min(TERMS)][0].text, _texts(path), size, times)
    rebuilding, numbers[HELD] = upkeep.rebuilt(path, encoder, times)
    numbers[HELD] /= size
    with Index.open(path, encoder) as index:
        field = Field(path, index, upkeep.snapshot_of(index))
        scans = max(5, min(EXACT_QUERIES, EXACT_SCANNED // size))
        exact = _exact(index, field.rows, asked(chosen, encoder, [n * 7 % documents for n in range(scans)], min(TERMS)))
        searching = _searched(field, items, rounds)
        field.fts5.close()
        updating = upkeep.updated(index, encoder, chosen, documents, CHUNKS_EACH, UPDATES)
    series = (*upkeeping, rebuilding, *updating, *searching)
    equalities = (exact, gaussian(folder, chosen))
    return Figures(PART, size, series, equalities, gates(series, size, numbers[HELD]), numbers, field.absent)


def _exact(index: Index, rows: Rows, queries: Sequence[Asked]) -> Equality:
    return compared("BGE-like vectors: rows and bits equal a full scan", index, rows, queries)


def _bytes(path: Path) -> int:
    return path.stat().st_size


def _texts(path: Path) -> list[str]:
    raw = sqlite3.connect(path)
    try:
        rows = raw.execute("SELECT text FROM chunks ORDER BY chunk_key LIMIT ?", (upkeep.RETOKENISED_AT_MOST,))
        return [text for (text,) in rows]
    finally:
        raw.close()
