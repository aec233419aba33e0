"""The plain way: the same algorithms as a reader would first write them, and an independent check of the engine.

SQLite tables, term counts as JSON text, a Python loop over dictionaries for the cosine and for BM25, an FTS5 table
joined with the ACL, RRF over two dictionaries. It shares the analyzer with the engine, because another one would find
other things; everything after the terms is written here a second time.
"""

import json
import math
import sqlite3
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

from kbretrieval.analysis import terms

Lexical = Literal["fts5", "isolated"]
Mode = Literal["lexical", "vector", "hybrid"]
Scored = Iterable[tuple[int, float]]

WINDOW = 100
RRF_K = 60
K1, B = 1.2, 0.75
FLOOR = 0.05

_TABLES = """
CREATE TABLE documents (doc_key INTEGER PRIMARY KEY, tenant TEXT, live INTEGER);
CREATE TABLE acl (doc_key INTEGER, entry TEXT, PRIMARY KEY (doc_key, entry)) WITHOUT ROWID;
CREATE TABLE chunks (chunk_key INTEGER PRIMARY KEY, doc_key INTEGER, text TEXT, vector TEXT);
CREATE VIRTUAL TABLE words USING fts5(terms, tokenize="ascii tokenchars '_'");
"""
_READABLE = (
    " JOIN documents d ON d.doc_key = c.doc_key WHERE d.tenant = ? AND d.live = 1"
    " AND EXISTS (SELECT 1 FROM acl a WHERE a.doc_key = d.doc_key AND a.entry IN (SELECT value FROM json_each(?)))"
)


def cosine(left: Mapping[str, int], right: Mapping[str, int]) -> float:
    """Return the cosine of two term counts, 0.0 where one is empty.

    Example:
        >>> cosine({"年假": 1}, {"年假": 2})
        1.0
    """
    dot = 0
    for term, count in left.items():
        if term in right:
            dot += count * right[term]
    square = sum(n * n for n in left.values()) * sum(n * n for n in right.values())
    return dot / math.sqrt(square) if square else 0.0


def bm25(query: Sequence[str], vectors: Mapping[int, Mapping[str, int]]) -> dict[int, float]:
    """Return key → BM25 of every chunk that holds a term, with the statistics of exactly these chunks.

    Example:
        >>> round(bm25(["年假"], {1: {"年假": 1}, 2: {"病假": 1}})[1], 6)
        0.693147
    """
    lengths = {key: sum(vector.values()) for key, vector in vectors.items()}
    mean = sum(lengths.values()) / len(lengths) if lengths else 0.0
    holding = {term: sum(1 for vector in vectors.values() if term in vector) for term in query}
    scores: dict[int, float] = {}
    for key, vector in vectors.items():
        norm = K1 * (1.0 - B + B * lengths[key] / mean) if mean else K1
        for term in query:
            if term in vector:
                idf = math.log(1.0 + (len(vectors) - holding[term] + 0.5) / (holding[term] + 0.5))
                scores[key] = scores.get(key, 0.0) + idf * vector[term] * (K1 + 1.0) / (vector[term] + norm)
    return scores


def best(scored: Scored, window: int = WINDOW) -> list[int]:
    """Return the keys of the best scores, ties by key.

    Example:
        >>> best([(1, 0.5), (2, 0.9), (3, 0.5)], 2)
        [2, 1]
    """
    return [key for key, _ in sorted(scored, key=lambda item: (-item[1], item[0]))[:window]]


def rrf(lists: Sequence[Sequence[int]]) -> list[tuple[int, float]]:
    """Return (key, value) by reciprocal rank fusion, best first, ties by key.

    Example:
        >>> rrf([[7], [7, 8]])[1] == (8, 1 / 62)
        True
    """
    values: dict[int, float] = {}
    for ranked in lists:
        for rank, key in enumerate(ranked, 1):
            values[key] = values.get(key, 0.0) + 1.0 / (RRF_K + rank)
    return sorted(values.items(), key=lambda item: (-item[1], item[0]))


class PlainIndex:
    """An index in one SQLite file; chunk keys are given in the order in which chunks come, from 1.

    Example:
        >>> index = PlainIndex(":memory:")
        >>> index.add(1, "acme", ["年假五天。", "病假十天。"], ["alice"])
        >>> [key for key, _ in index.search("年假", "acme", ["alice"])]
        [1]
        >>> index.close()
    """

    def __init__(self, path: str) -> None:
        self._raw = sqlite3.connect(path, isolation_level=None)
        self._raw.execute("PRAGMA synchronous=FULL")
        self._raw.executescript(_TABLES)

    def close(self) -> None:
        """Close the file."""
        self._raw.close()

    def add(self, doc_key: int, tenant: str, texts: Sequence[str], acl: Sequence[str]) -> None:
        """Write a document's chunks in one transaction, one statement a row."""
        run = self._raw.execute
        run("BEGIN IMMEDIATE")
        run("INSERT INTO documents VALUES (?, ?, 1)", (doc_key, tenant))
        for entry in acl:
            run("INSERT INTO acl VALUES (?, ?)", (doc_key, entry))
        for text in texts:
            found = terms(text)
            vector = json.dumps(Counter(found), ensure_ascii=False)
            key = run("INSERT INTO chunks (doc_key, text, vector) VALUES (?, ?, ?)", (doc_key, text, vector)).lastrowid
            run("INSERT INTO words (rowid, terms) VALUES (?, ?)", (key, " ".join(found)))
        run("COMMIT")

    def search(
        self, query: str, tenant: str, entries: Sequence[str], lexical: Lexical = "fts5", mode: Mode = "hybrid"
    ) -> list[tuple[int, float]]:
        """Return (chunk key, fused value), best first, of the chunks that one of `entries` may read."""
        wanted = list(dict.fromkeys(terms(query)))
        reader = (tenant, json.dumps(list(entries), ensure_ascii=False))
        vectors = {} if mode == "lexical" and lexical == "fts5" else self._vectors(reader)
        lists = []
        if mode != "vector":
            lists.append(self._fts5(wanted, reader) if lexical == "fts5" else best(bm25(wanted, vectors).items()))
        if mode != "lexical":
            lists.append(self._nearest(Counter(terms(query)), vectors))
        return rrf(lists)

    def _vectors(self, reader: tuple[str, str]) -> dict[int, dict[str, int]]:
        rows = self._raw.execute("SELECT c.chunk_key, c.vector FROM chunks c" + _READABLE, reader)
        return {key: json.loads(vector) for key, vector in rows}

    @staticmethod
    def _nearest(wanted: Mapping[str, int], vectors: Mapping[int, Mapping[str, int]]) -> list[int]:
        scored = ((key, cosine(wanted, vector)) for key, vector in vectors.items())
        return best((key, score) for key, score in scored if score >= FLOOR)

    def _fts5(self, wanted: Sequence[str], reader: tuple[str, str]) -> list[int]:
        match = " OR ".join(f'"{term}"' for term in wanted)
        rows = self._raw.execute(
            "SELECT c.chunk_key, bm25(words) AS score FROM words JOIN chunks c ON c.chunk_key = words.rowid"
            + _READABLE
            + " AND words MATCH ? ORDER BY score, c.chunk_key LIMIT ?",
            (*reader, match, WINDOW),
        )
        return [key for key, _ in rows]
