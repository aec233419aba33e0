"""First part: the engine with the term encoder beside the plain way, on the same documents, in turns.

Both index the same documents, document by document and in turns; then both answer the same queries. Before a time is
taken the answers are compared: chunk keys and fused values of the whole fused list, for FTS5 with the statistics of the
table and for BM25 over the eligible rows.
"""

import hashlib
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from kbretrieval.bench.figures import Equality, Figures, Gate, ratio
from kbretrieval.bench.filling import FORMAT, TENANT, Synthetic, corpus, expect_size, reader
from kbretrieval.bench.plain import Lexical, PlainIndex
from kbretrieval.bench.plain import Mode as PlainMode
from kbretrieval.bench.texts import query, vocabulary
from kbretrieval.bench.timing import Series, in_turns, timed
from kbretrieval.chunking import chunks
from kbretrieval.index import Index
from kbretrieval.projection import project

PART = "terms"
CHUNKS_EACH = 20
SHARES = (100, 10)
TERMS = (8, 32)
COMPARED = 100
TIMED = 5  # the default limit of a search
LEAST_AGAINST_PLAIN = 10.0
_EVERY = 20

Found = list[tuple[int, float]]


class Sides:
    """The engine and the plain way over one corpus; `reader-100` may read all of it."""

    def __init__(self, folder: Path) -> None:
        self.index = Index.open(folder / "engine.sqlite")
        self.plain = PlainIndex(str(folder / "plain.sqlite"))
        self.chunks = 0

    def close(self) -> None:
        """Close both files."""
        self.index.close()
        self.plain.close()

    def add_to_index(self, item: Synthetic) -> None:
        """Index one document with the engine."""
        made = self.index.upsert(TENANT, item.doc_id, 1, FORMAT, item.source, list(item.acl))
        self.chunks += made.chunks

    def add_to_plain(self, item: Synthetic) -> None:
        """Index one document the plain way: project, cut, count, write."""
        cut = chunks(project(item.source, FORMAT), self.index.contract.chunk_size, self.index.contract.overlap)
        self.plain.add(item.number + 1, TENANT, [chunk.text for chunk in cut], item.acl)

    def engine(
        self, text: str, lexical: Lexical, mode: PlainMode = "hybrid", share: int = 100, limit: int = TIMED
    ) -> Found:
        """Search with the engine, in its default options but for `lexical`."""
        found = self.index.search(text, reader(share), limit, mode, lexical=lexical)
        return [(hit.chunk_key, hit.fused) for hit in found]

    def by_hand(
        self, text: str, lexical: Lexical, mode: PlainMode = "hybrid", share: int = 100, limit: int = TIMED
    ) -> Found:
        """Search the plain way."""
        return self.plain.search(text, TENANT, reader(share).entries(), lexical, mode)[:limit]


def _indexed(sides: Sides, documents: Sequence[Synthetic]) -> tuple[tuple[Series, ...], dict[str, float]]:
    ways: dict[str, Callable[[Synthetic], None]] = {"engine": sides.add_to_index, "plain way": sides.add_to_plain}
    taken: dict[str, list[float]] = {name: [] for name in ways}
    spent = dict.fromkeys(ways, 0.0)
    for number, item in enumerate(documents):
        for name in sorted(ways, reverse=number % 2 == 1):
            begin = time.process_time()
            taken[name].append(_sample(ways[name], item))
            spent[name] += time.process_time() - begin
    numbers: dict[str, float] = {}
    for name in ways:
        numbers[f"chunks per second, {name}"] = sides.chunks / sum(taken[name]) * 1000.0
        numbers[f"chunks per second of its own processor time, {name}"] = sides.chunks / spent[name]
    return tuple(Series("index one document", name, tuple(samples)) for name, samples in taken.items()), numbers


def _sample(way: Callable[[Synthetic], None], item: Synthetic) -> float:
    return timed(lambda: way(item))[1]


def _compared(sides: Sides, lexical: Lexical, asked: Sequence[str]) -> Equality:
    rows: list[dict[str, Any]] = []
    held = True
    for share in SHARES:
        for number, text in enumerate(asked):
            got, expected = (side(text, lexical, share=share, limit=COMPARED) for side in (sides.engine, sides.by_hand))
            equal = got == expected and bool(got)
            held = held and equal
            digest = hashlib.sha256(repr([key for key, _ in got]).encode("ascii")).hexdigest()
            asked_for = {"query": number, "lexical": lexical, "share": share}
            rows.append({**asked_for, "found": len(got), "keys_sha256": digest, "equal": equal})
    return Equality(f"hybrid with {lexical}: keys and fused values equal the plain way", tuple(rows), held)


def _searched(sides: Sides, asked: Mapping[int, Sequence[str]], rounds: int) -> tuple[Series, ...]:
    def ways(kind: PlainMode, lexical: Sequence[Lexical]) -> dict[str, Callable[[str], Found]]:
        made: dict[str, Callable[[str], Found]] = {}
        for name in lexical:
            made[f"engine ({name})"] = partial(sides.engine, lexical=name, mode=kind)
            made[f"plain way ({name})"] = partial(sides.by_hand, lexical=name, mode=kind)
        return made

    series: tuple[Series, ...] = ()
    for terms, texts in asked.items():
        series += in_turns(f"hybrid, {terms} terms", ways("hybrid", ("isolated", "fts5")), texts, rounds)
    least = min(asked)
    return series + in_turns(f"lexical, {least} terms", ways("lexical", ("isolated",)), asked[least], rounds)


def measure(folder: Path, size: int, seed: int, queries: int, rounds: int) -> Figures:
    """Return the figures of the engine with the term encoder and of the plain way over `size` eligible chunks.

    `folder` takes the two files. Raises `claim_failed` where the corpus has another size than announced.
    """
    chosen = vocabulary(seed)
    documents = list(corpus(chosen, size, CHUNKS_EACH))
    asked = {terms: [query(chosen, n * _EVERY % len(documents), terms) for n in range(queries)] for terms in TERMS}
    sides = Sides(folder)
    try:
        indexing, numbers = _indexed(sides, documents)
        expect_size(sides.chunks, size)
        every = [text for texts in asked.values() for text in texts]
        compared = (_compared(sides, "isolated", every), _compared(sides, "fts5", every))
        searching = _searched(sides, asked, rounds)
    finally:
        sides.close()
    gates = tuple(
        Gate(what, ratio(searching, what, "plain way (isolated)", "engine (isolated)"), LEAST_AGAINST_PLAIN)
        for what in (*(f"hybrid, {terms} terms" for terms in TERMS), f"lexical, {min(TERMS)} terms")
    )
    return Figures(PART, size, (*indexing, *searching), compared, gates, numbers, {})
