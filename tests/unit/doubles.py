"""What the unit tests share: a dense test encoder, readers of results, and a full logical dump of an index file."""

import errno
import hashlib
import sqlite3
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kbretrieval import Answer, Hit, Index, KBError
from kbretrieval.encoders.port import Encoding

MODES = ("lexical", "vector", "hybrid")


class Table:
    """A dense encoder that looks vectors up by text: the same table for documents and queries.

    `default` is the vector of every other text. `extra` adds (or, negative, drops) vectors of each document call.
    `fail_on` is a substring at which encoding raises. `before` is called once, before the next encoding.
    """

    def __init__(
        self,
        identifier: str,
        vectors: Mapping[str, Any] | None = None,
        floor: float = 0.4,
        default: Sequence[float] = (1.0, 0.0),
    ) -> None:
        self.identifier = identifier
        self.dimension = len(default)
        self.floor = floor
        self.vectors = dict(vectors or {})
        self.default = list(default)
        self.extra = 0
        self.fail_on: str | None = None
        self.before: Callable[[], object] | None = None

    def encode(self, texts: Sequence[str], *, query: bool) -> Encoding:
        """Return the vectors of the table."""
        if self.before is not None:
            call, self.before = self.before, None
            call()
        for text in texts:
            if self.fail_on is not None and self.fail_on in text:
                raise RuntimeError(f"cannot encode {text}")
        made = [self.vectors.get(text, self.default) for text in texts]
        if not query and self.extra < 0:
            made = made[: self.extra]
        if not query and self.extra > 0:
            made += [self.default] * self.extra
        return Encoding(made)


class RandomVectors:
    """A dense encoder whose vectors are Gaussian numbers drawn from each text's digest; `spread` below 1 draws them
    close around one vector, so that single-precision products cannot tell them apart."""

    def __init__(self, dimension: int = 8, floor: float = -1.0, spread: float = 1.0) -> None:
        self.identifier = f"random-{dimension}-{spread}"
        self.dimension = dimension
        self.floor = floor
        self._spread = spread
        self._centre = np.random.default_rng(7).standard_normal(dimension)

    def _vector(self, text: str) -> NDArray[np.float64]:
        seed = int.from_bytes(hashlib.sha256(text.encode("utf-8")).digest()[:8], "little")
        drawn = np.random.default_rng(seed).standard_normal(self.dimension)
        return drawn if self._spread == 1.0 else self._centre + self._spread * drawn

    def encode(self, texts: Sequence[str], *, query: bool) -> Encoding:
        """Return one vector a text, the same alone and among others."""
        return Encoding([self._vector(text) for text in texts])


def docs(hits: Iterable[Hit]) -> list[str]:
    """Return the documents of the hits in their order."""
    return [hit.doc_id for hit in hits]


def rank(hit: Hit, channel: str) -> int | None:
    """Return the hit's rank in a channel, None where it is absent."""
    placed = hit.channel(channel)
    return None if placed is None else placed.rank


def score(hit: Hit, channel: str) -> float | None:
    """Return the hit's raw score in a channel, None where it is absent."""
    placed = hit.channel(channel)
    return None if placed is None else placed.score


def quotes(answer: Answer) -> list[str]:
    """Return the quotations of an answer in their order."""
    return [item.quote for item in answer.evidence]


def error_of(call: Callable[..., object], *args: Any, **kw: Any) -> KBError | None:
    """Return the refusal that a call raises, None if it raises none; anything but a refusal passes through.

    An index that was opened against expectation is closed: newer Pythons warn of one that is left to the collector.
    """
    try:
        made = call(*args, **kw)
    except KBError as error:
        return error
    if isinstance(made, Index):
        made.close()
    return None


def code_of(call: Callable[..., object], *args: Any, **kw: Any) -> str | None:
    """Return the code of the refusal that a call raises, None if it raises none."""
    error = error_of(call, *args, **kw)
    return None if error is None else error.code


def held_open(part: Path, target: Path) -> Path:
    """Stands for `Path.replace` on Windows, where another program has the target open."""
    raise PermissionError(errno.EACCES, "held open")


def sql(path: str | Path, statement: str, *values: Any) -> list[tuple[Any, ...]]:
    """Return the rows of one statement, run on a connection of its own and committed."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        return connection.execute(statement, values).fetchall()


def logical_rows(path: str | Path) -> list[str]:
    """Return every row of every table of an index and every term instance of its FTS5 table, as sorted text lines.

    Nothing is left out: keys, digests, commit numbers and SQLite's own key sequence are part of it. FTS5's shadow
    tables are represented by the terms they hold, because equal content may be stored in different segments.
    """
    made = []
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        names = connection.execute("SELECT name, sql FROM sqlite_master WHERE type IN ('table', 'index')").fetchall()
        fts = [name for name, text in names if text and "USING fts5" in text]
        made += [f"schema {name} {text}" for name, text in names]
        for name, text in names:
            shadow = any(name.startswith(f"{table}_") for table in fts)
            if not text or not text.startswith("CREATE TABLE") or (shadow and not name.endswith("_content")):
                continue
            made += [f"{name} {row!r}" for row in connection.execute(f"SELECT * FROM {name}")]
        for table in fts:
            connection.execute(f"CREATE VIRTUAL TABLE temp.terms_of USING fts5vocab(main, {table}, 'instance')")
            made += [f"terms {row!r}" for row in connection.execute("SELECT * FROM temp.terms_of")]
            connection.execute("DROP TABLE temp.terms_of")
    return sorted(made)


def logical_dump(path: str | Path) -> str:
    """Return the hexadecimal SHA-256 of everything that an index file says: the oracle of "nothing was written"."""
    return hashlib.sha256("\n".join(logical_rows(path)).encode("utf-8", "surrogateescape")).hexdigest()
