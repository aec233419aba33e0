"""Fill an index with synthetic documents: through `upsert`, or the very same rows in a few large transactions.

Every document may be read by `reader-100` and by one of forty groups, so that ACLs are many; every tenth one by
`reader-10` as well, every hundredth by `reader-1`. These three readers see 100, 10 and 1 % of the corpus.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from kbretrieval.bench.texts import Vocabulary, source
from kbretrieval.chunking import chunks
from kbretrieval.encoders.port import Encoder
from kbretrieval.encoders.quantizer import quantizer_of
from kbretrieval.encoders.terms import TermEncoder
from kbretrieval.engine import Engine
from kbretrieval.errors import ClaimFailed
from kbretrieval.identity import Context
from kbretrieval.lifecycle import prepare
from kbretrieval.projection import project
from kbretrieval.snapshot.resident import Resident
from kbretrieval.store.chunk_rows import insert_chunks
from kbretrieval.store.connection import DEFAULT_WAIT_SECONDS
from kbretrieval.store.contract import Wanted
from kbretrieval.store.documents import Content, insert_document, next_commit, write_acl
from kbretrieval.store.opening import open_connection

TENANT = "bench"
SHARES = (100, 10, 1)
GROUPS = 40
IN_ONE_TRANSACTION = 500
FORMAT = "markdown"


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


def fill_in_bulk(path: Path, documents: Iterable[Synthetic], encoder: Encoder | None = None) -> int:
    """Write documents into a new index file and return the number of chunks.

    The rows are those of one `upsert` a document, commit numbers included (a test compares the two files table by
    table); only the transactions are fewer, and the look for an older revision is left out.
    """
    connection, contract = open_connection(path, Wanted(encoder, None, None), DEFAULT_WAIT_SECONDS)
    used = encoder or TermEncoder()
    engine = Engine(connection, contract, used, quantizer_of(used), Resident(contract.dimension))
    written, left = 0, iter(documents)
    try:
        while batch := list(islice(left, IN_ONE_TRANSACTION)):
            written += _write(engine, batch)
    finally:
        connection.close()
    return written


def _write(engine: Engine, batch: list[Synthetic]) -> int:
    written = 0
    projections = [project(item.source, FORMAT) for item in batch]
    prepared = [
        prepare(engine, chunks(made, engine.contract.chunk_size, engine.contract.overlap)) for made in projections
    ]
    with engine.connection.write():
        for item, made, rows in zip(batch, projections, prepared, strict=True):
            commit = next_commit(engine.connection)
            content = Content(FORMAT, made, None)
            doc_key = insert_document(engine.connection, TENANT, item.doc_id, 1, content, commit)
            write_acl(engine.connection, doc_key, item.acl)
            insert_chunks(engine.connection, doc_key, rows)
            written += len(rows)
    return written


def expect_size(written: int, size: int) -> None:
    """Raise `claim_failed` unless the corpus has the announced number of chunks: every figure depends on it."""
    if written != size:
        raise ClaimFailed(f"{size} chunks are announced, {written} were made")
