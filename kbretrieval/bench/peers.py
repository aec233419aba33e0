"""What the engine is measured against: peers over the very rows of the engine's file, in the same process.

FTS5 joined with the ACL beside a NumPy float32 product is always there. bm25s, FAISS and usearch are optional: a peer
that is not installed is named as left out. Every peer gets its eligible rows worked out beforehand, for free.
"""

import importlib
import json
import sqlite3
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from kbretrieval.analysis import term_codes
from kbretrieval.bench.eager import K1, B, EagerWeights
from kbretrieval.bench.filling import SHARES, TENANT, reader
from kbretrieval.bench.plain import WINDOW, rrf
from kbretrieval.snapshot.snapshot import Snapshot

Keys = list[int]
Vectors = NDArray[np.float32]
Blocks = Iterator[Vectors]
BLOCK_ROWS = 16_384
FTS5_NUMPY = "FTS5 + ACL join + NumPy float32"
BM25S_FAISS = "bm25s + FAISS flat, id selector"
USEARCH = "usearch exact, no filter"

_RANKED = """SELECT c.chunk_key, bm25(chunks_fts) AS score FROM chunks_fts
    CROSS JOIN chunks c ON c.chunk_key = chunks_fts.rowid CROSS JOIN documents d ON d.doc_key = c.doc_key
    WHERE chunks_fts MATCH ? AND d.tenant = ? AND d.live = 1 AND EXISTS (
        SELECT 1 FROM acl a WHERE a.doc_key = d.doc_key AND a.entry IN (SELECT value FROM json_each(?)))
    ORDER BY score, c.chunk_key LIMIT ?"""


@dataclass(frozen=True, slots=True)
class Rows:
    """The engine's rows as peers take them, by chunk key: keys (n,), vectors (n, dimension) float32, and the mask of
    the rows that each share's reader may see."""

    keys: NDArray[np.int64]
    vectors: NDArray[np.float32]
    masks: Mapping[int, NDArray[np.bool_]]


def read_rows(path: Path, dimension: int, held_in: Callable[[Blocks, int], Vectors] | None = None) -> Rows:
    """Return the rows of an index file, read with SQL of the bench's own.

    held_in: takes the vectors block by block, with their whole number, and returns where they are kept.
    """
    raw = sqlite3.connect(path)
    try:
        keys = np.fromiter(
            (key for (key,) in raw.execute("SELECT chunk_key FROM vectors ORDER BY chunk_key")), np.int64
        )
        stored = raw.execute("SELECT vector FROM vectors ORDER BY chunk_key")
        vectors = (held_in or _in_numpy)(_blocks(stored, dimension), len(keys))
        masks = {share: np.isin(keys, np.fromiter(_readable(raw, share), np.int64)) for share in SHARES}
    finally:
        raw.close()
    return Rows(keys, vectors, masks)


def _blocks(stored: sqlite3.Cursor, dimension: int) -> Blocks:
    while rows := stored.fetchmany(BLOCK_ROWS):
        yield np.frombuffer(b"".join(blob for (blob,) in rows), "<f4").reshape(len(rows), dimension)


def _in_numpy(blocks: Blocks, size: int) -> Vectors:
    vectors, at = np.empty((0, 0), np.float32), 0
    for block in blocks:
        if not at:
            vectors = np.empty((size, block.shape[1]), np.float32)
        vectors[at : at + len(block)] = block
        at += len(block)
    return vectors


def _readable(raw: sqlite3.Connection, share: int) -> Iterable[int]:
    rows = raw.execute(
        "SELECT c.chunk_key FROM chunks c JOIN documents d USING (doc_key) JOIN acl a USING (doc_key)"
        " WHERE d.tenant = ? AND d.live = 1 AND a.entry = ?",
        (TENANT, reader(share).principal),
    )
    return (key for (key,) in rows)


@dataclass(frozen=True, slots=True)
class Asked:
    """A query ready for every peer: its distinct terms and its unit vector."""

    text: str
    terms: tuple[str, ...]
    vector: NDArray[np.float32]


class Peer(Protocol):
    """One way of answering; each list holds at most 100 chunk keys, best first."""

    name: str

    def lexical(self, asked: Asked, share: int) -> Keys: ...

    def vector(self, asked: Asked, share: int) -> Keys: ...


def hybrid(peer: Peer, asked: Asked, share: int) -> list[tuple[int, float]]:
    """Return both lists of a peer, fused."""
    return rrf([peer.lexical(asked, share), peer.vector(asked, share)])


def _nearest(keys: NDArray[np.int64], scores: NDArray[Any], floor: float) -> Keys:
    if len(scores) > WINDOW:
        chosen = np.argpartition(scores, len(scores) - WINDOW)[-WINDOW:]
        keys, scores = keys[chosen], scores[chosen]
    order = np.argsort(-scores)
    return [int(key) for key in keys[order[scores[order] >= floor]]]


class Fts5Numpy:
    """FTS5 with an ACL join in the engine's own file, and a float32 product over the eligible rows."""

    name = FTS5_NUMPY

    def __init__(self, path: Path, rows: Rows, floor: float) -> None:
        self._raw = sqlite3.connect(path)
        self._rows, self._floor = rows, floor
        self._places = {share: np.flatnonzero(mask) for share, mask in rows.masks.items()}

    def close(self) -> None:
        """Close the file."""
        self._raw.close()

    def lexical(self, asked: Asked, share: int) -> Keys:
        """Return the best keys by FTS5's bm25 among readable rows."""
        match = " OR ".join(f'"{term}"' for term in asked.terms)
        entries = json.dumps(reader(share).entries(), ensure_ascii=False)
        return [key for key, _ in self._raw.execute(_RANKED, (match, TENANT, entries, WINDOW))]

    def vector(self, asked: Asked, share: int) -> Keys:
        """Return the best keys by a float32 product; only readable rows are multiplied."""
        rows, places = self._rows, self._places[share]
        whole = len(places) == len(rows.keys)
        scores = (rows.vectors if whole else rows.vectors[places]) @ asked.vector
        return _nearest(rows.keys if whole else rows.keys[places], scores, self._floor)


class FaissRows:
    """A flat FAISS index whose memory all peers look at: a second copy of a million vectors takes 2 GB."""

    def __init__(self, faiss: ModuleType, dimension: int) -> None:
        self.faiss, self.flat = faiss, faiss.IndexFlatIP(dimension)

    def take(self, blocks: Blocks, size: int) -> Vectors:
        """Keep `size` vectors that come in blocks, and return the matrix of them."""
        for block in blocks:
            self.flat.add(block)
        held: Vectors = self.faiss.rev_swig_ptr(self.flat.get_xb(), size * self.flat.d).reshape(size, self.flat.d)
        return held


class Bm25sFaiss:
    """bm25s with a weight mask (statistics of the whole corpus) and a flat FAISS index with a bitmap selector."""

    name = BM25S_FAISS

    def __init__(self, weights: EagerWeights, rows: Rows, floor: float, bm25s: ModuleType, held: FaissRows) -> None:
        self._keys, self._floor, self._faiss, self._columns = rows.keys, floor, held.faiss, weights
        self._lexical = searcher(weights, bm25s)
        self._weights = {share: mask.astype(np.float32) for share, mask in rows.masks.items()}
        self._flat = held.flat
        self._bits = {share: np.packbits(mask, bitorder="little") for share, mask in rows.masks.items()}

    def lexical(self, asked: Asked, share: int) -> Keys:
        """Return the best keys by BM25; rows of weight 0 are dropped."""
        known = self._columns.columns(term_codes(asked.terms))
        weights = None if share == SHARES[0] else self._weights[share]
        scores = self._lexical.get_scores_from_ids(known, weight_mask=weights)
        return _nearest(self._keys, scores, float(np.finfo(np.float32).tiny))

    def vector(self, asked: Asked, share: int) -> Keys:
        """Return the best keys by inner product."""
        bits = self._bits[share]
        chosen = self._faiss.IDSelectorBitmap(len(self._keys), self._faiss.swig_ptr(bits))
        parameters = None if share == SHARES[0] else self._faiss.SearchParameters(sel=chosen)
        scores, places = self._flat.search(asked.vector[None, :], WINDOW, params=parameters)
        kept = (places[0] >= 0) & (scores[0] >= self._floor)
        return [int(key) for key in self._keys[places[0][kept]]]


class Usearch:
    """usearch's exact search over all rows; it takes no filter, so it is measured at 100 % alone."""

    name = USEARCH

    def __init__(self, rows: Rows, floor: float, usearch: ModuleType) -> None:
        self._rows, self._floor, self._usearch = rows, floor, usearch

    def vector(self, asked: Asked, share: int) -> Keys:
        """Return the best keys by inner product over all rows, whatever `share` is."""
        found = self._usearch.search(self._rows.vectors, asked.vector, WINDOW, self._usearch.MetricKind.IP, exact=True)
        kept = 1.0 - np.asarray(found.distances) >= self._floor
        return [int(key) for key in self._rows.keys[np.asarray(found.keys)[kept].astype(np.int64)]]


def searcher(weights: EagerWeights, bm25s: ModuleType) -> Any:
    """Return a bm25s searcher over finished weights; its term numbers are their columns."""
    made = bm25s.BM25(k1=K1, b=B, method="lucene")
    made.scores = {
        "data": weights.data,
        "indices": weights.indices,
        "indptr": weights.indptr,
        "num_docs": weights.rows,
    }
    made.nonoccurrence_array = None  # this method has none
    return made


def installed(*names: str) -> dict[str, ModuleType] | None:
    """Return the modules by name, or None where one is not installed.

    Example:
        >>> installed("no_such_module") is None
        True
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # FAISS warns of its own bindings when it is imported
            return {name: importlib.import_module(name) for name in names}
    except ImportError:
        return None


def optional_peers(
    snapshot: Snapshot, path: Path, dimension: int, floor: float
) -> tuple[Bm25sFaiss | None, Usearch | None, dict[str, str], Rows]:
    """Return the peers that can run here, why another cannot, and the rows of the file that all share.

    `snapshot` has the rows' posting lists.
    """
    absent: dict[str, str] = {}
    both, usearch = installed("bm25s", "faiss"), installed("usearch.index")
    held = FaissRows(both["faiss"], dimension) if both else None
    rows = read_rows(path, dimension, held.take if held else None)
    faiss = Bm25sFaiss(EagerWeights(snapshot), rows, floor, both["bm25s"], held) if both and held else None
    if faiss is None:
        absent[BM25S_FAISS] = "not installed: pip install bm25s faiss-cpu"
    if usearch is None:
        absent[USEARCH] = "not installed: pip install usearch"
    return faiss, Usearch(rows, floor, usearch["usearch.index"]) if usearch else None, absent, rows
