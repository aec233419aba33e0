"""A search from query to hits: channels → fusion → rerank, all on one commit (chapters 5–8).

The snapshot is brought up to date in a short read transaction and scored without one; float32 rows of the vector
channel's candidates, and then the hits, are read in short ones of their own. If a commit fell in between, the search
starts anew, the last time inside a single transaction.
"""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext

import numpy as np
from numpy.typing import NDArray

from kbretrieval.analysis import counted_query_terms
from kbretrieval.channels.bm25 import METHOD, STATISTICS, rank_bm25
from kbretrieval.channels.fts5 import METHOD as FTS_METHOD
from kbretrieval.channels.fts5 import STATISTICS as FTS_STATISTICS
from kbretrieval.channels.fts5 import rank_fts5
from kbretrieval.channels.ranking import QueryTerms, Ranked, skipped
from kbretrieval.channels.vector import DENSE, SPARSE, rank_dense, rank_sparse, select_dense
from kbretrieval.channels.vector import STATISTICS as VECTOR_STATISTICS
from kbretrieval.encoders.port import encode_dense
from kbretrieval.engine import Engine
from kbretrieval.errors import BoundedQueryRequired, IndexCorrupt
from kbretrieval.fusion import CONVEX, RRF, Fused, convex, convex_shares, left_out_score, rrf
from kbretrieval.identity import Context
from kbretrieval.options import SearchOptions
from kbretrieval.rerank import RERANKERS, rerank, title_overlap
from kbretrieval.results import Hit, SearchResult
from kbretrieval.snapshot.eligible import Eligible
from kbretrieval.snapshot.resident import Shelf
from kbretrieval.snapshot.snapshot import Snapshot
from kbretrieval.store.chunk_rows import Found, found_chunks
from kbretrieval.store.commits import head
from kbretrieval.store.vector_rows import vectors_by_key

Moment = Callable[[], AbstractContextManager[None]]

MAX_QUERY = 1024
OPTIMISTIC_TRIES = 3


def checked_query(query: object) -> str:
    """Return a query of 1 to 1,024 code points without lone surrogates, else raise `bounded_query_required` (LEX-5)."""
    if not isinstance(query, str):
        raise BoundedQueryRequired(f"a string is required, {type(query).__name__} given")
    if not 1 <= len(query) <= MAX_QUERY:
        raise BoundedQueryRequired(f"1 to {MAX_QUERY} code points are required, {len(query)} given")
    if any("\ud800" <= character <= "\udfff" for character in query):
        raise BoundedQueryRequired("text without lone surrogates is required, one given")
    return query


def analyzed(query: str) -> QueryTerms:
    """Return the terms of a query as both channels use them (LEX-4)."""
    used, given = counted_query_terms(query)
    return QueryTerms(tuple(used), tuple(used.values()), given)


class _CommitMoved(Exception):
    """Another commit fell between two moments of a search."""


class Search:
    """One search: its parts, checked, and the query's vector; `run` gives the result."""

    def __init__(
        self, engine: Engine, query: str, context: Context, limit: int, mode: str, options: SearchOptions
    ) -> None:
        self._engine, self._context, self._limit, self._mode, self._options = engine, context, limit, mode, options
        self._terms = analyzed(query)
        self._query_vector: NDArray[np.float32] | None = None
        if mode != "lexical" and engine.encoder.dimension:
            vectors, _ = encode_dense(engine.encoder, [query], query=True)
            self._query_vector = vectors[0]

    def run(self) -> SearchResult:
        """Return the hits and the trace, all of one commit."""
        connection = self._engine.connection
        for _ in range(OPTIMISTIC_TRIES):
            try:
                return self._attempt(connection.read)
            except _CommitMoved:
                continue
        with connection.read():
            return self._attempt(nullcontext)

    def _attempt(self, moment: Moment) -> SearchResult:
        """Search once; each `moment` is a read transaction, and between them nothing is held."""
        with moment():
            snapshot, lexical = self._from_store()
            shelf = self._engine.resident.shelf
        eligible = self.eligible(snapshot)
        lexical = lexical or self._lexical(snapshot, eligible)
        vector = self._vector(snapshot, eligible, shelf, moment)
        fused = self._fused(lexical, vector)
        with moment():
            self._check_commit(snapshot)
            return self._result(fused, lexical, vector)

    def eligible(self, snapshot: Snapshot) -> Eligible:
        """Return the rows that the channels may rank; a search in a task's scope makes them fewer."""
        return snapshot.eligible(self._context)

    def _check_commit(self, snapshot: Snapshot) -> None:
        if head(self._engine.connection) != snapshot.head:
            raise _CommitMoved

    def _from_store(self) -> tuple[Snapshot, Ranked | None]:
        engine = self._engine
        snapshot = engine.resident.current(engine.connection, self._context.tenant)
        if self._mode == "vector" or self._options.lexical != "fts5":
            return snapshot, None
        eligible = snapshot.eligible(self._context).count
        return snapshot, rank_fts5(engine.connection, self._context, eligible, self._terms, self._options.window)

    def _lexical(self, snapshot: Snapshot, eligible: Eligible) -> Ranked:
        if self._mode == "vector":
            method, statistics = (
                (FTS_METHOD, FTS_STATISTICS) if self._options.lexical == "fts5" else (METHOD, STATISTICS)
            )
            return skipped("lexical", method, statistics, "mode", self._terms, eligible.count)
        return rank_bm25(snapshot, eligible, self._terms, self._options.window)

    def _vector(self, snapshot: Snapshot, eligible: Eligible, shelf: Shelf, moment: Moment) -> Ranked:
        encoder, window = self._engine.encoder, self._options.window
        if self._mode == "lexical":
            method = DENSE if encoder.dimension else SPARSE
            return skipped("vector", method, VECTOR_STATISTICS, "mode", self._terms, eligible.count)
        if self._query_vector is None:
            return rank_sparse(snapshot, eligible, self._terms, encoder.floor, window)
        coded = self._engine.quantizer.query(self._query_vector)
        selection = select_dense(snapshot, eligible, coded, encoder.floor, window, self._engine.resident.scanners)
        vectors = self._read_vectors(snapshot, selection.wanted.tolist(), shelf, moment)
        return rank_dense(
            selection,
            vectors,
            self._query_vector,
            self._terms,
            eligible=eligible.count,
            floor=encoder.floor,
            window=window,
        )

    def _read_vectors(self, snapshot: Snapshot, keys: list[int], shelf: Shelf, moment: Moment) -> NDArray[np.float32]:
        """Return the float32 vectors of some chunks, from the shelf, or what it lacks from the store."""
        dimension = self._engine.encoder.dimension
        if not keys:
            return np.zeros((0, dimension), np.float32)
        missing = shelf.missing(keys)
        if missing:
            with moment():
                self._check_commit(snapshot)
                shelf.put(missing, vectors_by_key(self._engine.connection, missing, dimension))
        vectors = shelf.get(keys)
        if vectors is None:  # more are wanted than the shelf holds, or another thread's search pushed some out
            with moment():
                self._check_commit(snapshot)
                vectors = vectors_by_key(self._engine.connection, keys, dimension)
        return vectors

    def _fused(self, lexical: Ranked, vector: Ranked) -> list[Fused]:
        """Return the candidates of a reranker; without one those that become hits."""
        ran = [ranked for ranked in (lexical, vector) if ranked.trace.state == "run"]
        lists = [(ranked.trace.channel, ranked.rows) for ranked in ran]
        most = self._limit if self._options.rerank == "none" else None
        if self._options.fusion == "convex":
            left_out = {r.trace.channel: left_out_score(r.rows, r.trace.floor, r.trace.beyond_window) for r in ran}
            return convex(lists, self._options.lexical_share, left_out, most)
        return rrf(lists, self._options.rrf_k, most)

    def _result(self, fused: Sequence[Fused], lexical: Ranked, vector: Ranked) -> SearchResult:
        """Read what the hits show; inside the transaction that proved the commit."""
        options = self._options
        found = found_chunks(self._engine.connection, self._context, [item.key for item in fused])
        if len(found) != len(fused):
            raise IndexCorrupt(f"{len(fused)} ranked chunks are expected in the store, {len(found)} are there")
        overlaps = {key: title_overlap(self._terms.used, item.title) for key, item in found.items()}
        ordered = rerank(fused, overlaps, options.rerank)[: self._limit]
        traces = (lexical.trace, vector.trace)
        shares = convex_shares([trace.channel for trace in traces if trace.state == "run"], options.lexical_share)
        convex_weights = tuple(shares.get(trace.channel, 0.0) for trace in traces)
        return SearchResult(
            hits=tuple(self._hit(item, found[item.key], overlaps[item.key]) for item in ordered),
            mode=self._mode,
            options=options,
            channels=traces,
            fusion=CONVEX if options.fusion == "convex" else RRF,
            weights=convex_weights if options.fusion == "convex" else (1.0, 1.0),
            reranker=RERANKERS[options.rerank],
            encoder=self._engine.encoder.identifier,
        )

    def _hit(self, fused: Fused, found: Found, overlap: float) -> Hit:
        chunk = found.chunk
        return Hit(
            chunk_key=chunk.chunk_key,
            tenant=self._context.tenant,
            doc_id=found.doc_id,
            revision=found.revision,
            acl_revision=found.acl_revision,
            document_sha256=found.document_sha256,
            chunk_sha256=chunk.sha256,
            start=chunk.start,
            end=chunk.end,
            principal=self._context.principal,
            text=chunk.text,
            title=found.title,
            heading=chunk.heading,
            channels=fused.channels,
            fused=fused.value,
            title_overlap=overlap,
        )
