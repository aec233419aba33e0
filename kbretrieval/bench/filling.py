"""Fill an index with synthetic documents: the very rows that `upsert` would write, in one large transaction.

Every document may be read by `reader-100` and by one of forty groups, so that ACLs are many; every tenth one by
`reader-10` as well, every hundredth by `reader-1`. These three readers see 100, 10 and 1 % of the corpus.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np

from kbretrieval.bench.rows import STRIDE, ChunkColumns, chunk_columns, projected, window_count
from kbretrieval.bench.texts import Vocabulary, source
from kbretrieval.chunking import DEFAULT_SIZE
from kbretrieval.encoders.port import UNIT_TOLERANCE, Encoder, Matrix
from kbretrieval.encoders.quantizer import Quantizer, quantizer_of
from kbretrieval.encoders.terms import TermEncoder
from kbretrieval.errors import ClaimFailed
from kbretrieval.identity import Context
from kbretrieval.projection import Projection
from kbretrieval.store.commits import current_commit, next_commit
from kbretrieval.store.connection import DEFAULT_WAIT_SECONDS, Connection
from kbretrieval.store.contract import Wanted
from kbretrieval.store.documents import Content
from kbretrieval.store.opening import open_connection
from kbretrieval.store.schema import FTS_TABLE
from kbretrieval.store.vector_rows import FLOAT

TENANT = "bench"
SHARES = (100, 10, 1)
GROUPS = 40
IN_ONE_BATCH = 25
FORMAT = "markdown"

_HASTY = ("journal_mode=MEMORY", "synchronous=OFF", "cache_size=-131072")


@dataclass(frozen=True, slots=True)
class Synthetic:
    """One document of the synthetic corpus."""

    number: int
    doc_id: str
    source: str
    acl: tuple[str, ...]


def reader(share: int) -> Context:
    """Return the context that may read `share` per cent of the corpus.

    Example:
        >>> reader(10).principal
        'reader-10'
    """
    return Context(TENANT, f"reader-{share}")


def acl(number: int) -> tuple[str, ...]:
    """Return the ACL entries of document `number`, counted from 0.

    Example:
        >>> acl(110)
        ('reader-100', 'group:team-30', 'reader-10')
    """
    entries = ["reader-100", f"group:team-{number % GROUPS}"]
    return (*entries, *(f"reader-{share}" for share in SHARES[1:] if number % (100 // share) == 0))


def corpus(chosen: Vocabulary, size: int, chunks_each: int) -> Iterator[Synthetic]:
    """Yield documents of `chunks_each` chunks, `size` chunks in all; the last document may be shorter."""
    for number in range(-(-size // chunks_each)):
        here = min(chunks_each, size - number * chunks_each)
        yield Synthetic(number, f"d{number:07d}", source(chosen, number, here), acl(number))


@dataclass(frozen=True, slots=True)
class _Target:
    """Where rows go, and what makes their vectors."""

    connection: Connection
    encoder: Encoder
    quantizer: Quantizer


def fill_in_bulk(path: Path, documents: Iterable[Synthetic], encoder: Encoder | None = None) -> int:
    """Write synthetic documents, numbered from 0, into a new index file and return the number of chunks.

    The rows are those of one `upsert` a document, commit numbers included; a test compares the two files table by
    table. Only the way is another: one transaction whose commit waits for no disk, and the columns of many chunks
    worked out at once (`rows`). Raises `claim_failed` for a file that has commits, and for a source of another form
    than `texts.source` makes.
    """
    used = encoder or TermEncoder()
    connection, _ = open_connection(path, Wanted(used, None, None), DEFAULT_WAIT_SECONDS)
    try:
        commit = current_commit(connection)
        if commit:
            raise ClaimFailed(f"an index without commits is required, one with {commit} given")
        for pragma in _HASTY:
            connection.outside_transaction(f"PRAGMA {pragma}")
        with connection.write(), _large_hash(connection):
            return _filled(_Target(connection, used, quantizer_of(used)), documents)
    finally:
        connection.close()


@contextmanager
def _large_hash(connection: Connection) -> Iterator[None]:
    """Let FTS5 gather 16 MiB of terms before it writes them, instead of 1: a quarter less work. Kept nowhere."""
    connection.run(f"INSERT INTO {FTS_TABLE} ({FTS_TABLE}, rank) VALUES ('hashsize', ?)", (16 * 2**20,))
    yield
    connection.run(f"INSERT INTO {FTS_TABLE} ({FTS_TABLE}, rank) VALUES ('hashsize', ?)", (2**20,))
    connection.run(f"DELETE FROM {FTS_TABLE}_config WHERE k = 'hashsize'")


def _filled(target: _Target, documents: Iterable[Synthetic]) -> int:
    written, left = 0, iter(documents)
    while batch := list(islice(left, IN_ONE_BATCH)):
        written += _write(target, batch, written)
    return written


def _write(target: _Target, batch: list[Synthetic], written: int) -> int:
    """Write some documents behind `written` chunks and return the number of their chunks."""
    connection, projections = target.connection, [projected(item.source) for item in batch]
    made = chunk_columns([projection.body for projection in projections])
    keys = range(written + 1, written + 1 + len(made.texts))
    _write_documents(connection, batch, projections)
    connection.run_many(
        "INSERT INTO chunks VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", list(_chunk_rows(keys, batch, projections, made))
    )
    postings = zip(keys, made.lengths, made.codes, made.counts, strict=True)
    connection.run_many("INSERT INTO postings VALUES (?, ?, ?, ?)", list(postings))
    rows = list(zip(keys, made.terms, strict=True))
    connection.run_many(f"INSERT INTO {FTS_TABLE} (rowid, terms) VALUES (?, ?)", rows)
    if target.encoder.dimension:
        _write_vectors(target, keys, made)
    return len(keys)


def _write_documents(connection: Connection, batch: list[Synthetic], projections: list[Projection]) -> None:
    """Write documents and ACLs; in a new file a document's key and its commit are its number, counted from 1."""
    documents: list[tuple[str | int, ...]] = []
    for item, made in zip(batch, projections, strict=True):
        event = (TENANT, item.doc_id, 1, made.sha256, made.source_sha256, made.title)
        commit = next_commit(connection, "create", *event, *item.acl)
        columns = Content(FORMAT, made, None).columns()
        documents.append((item.number + 1, TENANT, item.doc_id, *columns, commit, commit))
    connection.run_many("INSERT INTO documents VALUES (?, ?, ?, 1, 1, 1, ?, ?, ?, ?, ?, ?, ?, ?, ?)", documents)
    entries = [(item.number + 1, at, entry) for item in batch for at, entry in enumerate(item.acl)]
    connection.run_many("INSERT INTO acl VALUES (?, ?, ?)", entries)


def _chunk_rows(
    keys: Sequence[int], batch: list[Synthetic], projections: list[Projection], made: ChunkColumns
) -> Iterator[tuple[int | str, ...]]:
    columns = zip(keys, made.texts, made.digests, strict=True)
    for item, projection in zip(batch, projections, strict=True):
        path = json.dumps([projection.title], ensure_ascii=False, separators=(",", ":"))
        numbers = range(window_count(projection.body))
        # The numbers first: zip takes from them before it takes a chunk that is the next document's.
        for number, (key, text, sha256) in zip(numbers, columns, strict=False):
            span = (number * STRIDE, number * STRIDE + DEFAULT_SIZE)
            yield (key, item.number + 1, number, *span, text, projection.title, path, sha256)


def _write_vectors(target: _Target, keys: Sequence[int], made: ChunkColumns) -> None:
    vectors, truncated = _encoded(target.encoder, made.texts)
    coded = target.quantizer.coded(vectors)
    rows = zip(keys, made.digests, truncated, vectors, strict=True)
    target.connection.run_many("INSERT INTO vectors VALUES (?, ?, ?, ?)", list(rows))
    codes = zip(keys, coded.codes, coded.residuals.tolist(), coded.norms.tolist(), strict=True)
    target.connection.run_many("INSERT INTO vector_codes VALUES (?, ?, ?, ?)", list(codes))


def _encoded(encoder: Encoder, texts: list[str]) -> tuple[Matrix, list[int]]:
    """Return the float32 vectors of texts, and of each 1 if it was truncated, else 0.

    `encode_dense` looks at one vector after the other, which takes longer than making it. What it would have to mend
    or refuse is refused here.
    """
    encoding = encoder.encode(texts, query=False)
    vectors = np.stack(encoding.vectors)
    far = np.abs(np.sqrt(np.sum(vectors.astype(np.float64) ** 2, axis=1)) - 1.0).max()
    if vectors.shape != (len(texts), encoder.dimension) or vectors.dtype != FLOAT or not far <= UNIT_TOLERANCE:
        raise ClaimFailed(f"float32 rows of norm 1 are required, {vectors.dtype} rows within {far:.1e} of it given")
    return vectors, [int(at in encoding.truncated) for at in range(len(texts))]


def expect_size(written: int, size: int) -> None:
    """Raise `claim_failed` unless the corpus has the announced number of chunks: every figure depends on it."""
    if written != size:
        raise ClaimFailed(f"{size} chunks are announced, {written} were made")
