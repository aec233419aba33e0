"""Opening, updating and holding an index: what it takes besides searching (PRF-4, PRF-8, PRF-9)."""

from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path

import numpy as np

from kbretrieval.analysis import terms
from kbretrieval.bench.filling import FORMAT, TENANT, acl, reader
from kbretrieval.bench.texts import Vocabulary, source
from kbretrieval.bench.timing import Series, timed, without_collector
from kbretrieval.bench.vectors import Remembering
from kbretrieval.chunking import chunks
from kbretrieval.encoders.port import Encoder
from kbretrieval.encoders.quantizer import CodedRows
from kbretrieval.errors import ClaimFailed
from kbretrieval.index import Index
from kbretrieval.projection import project
from kbretrieval.snapshot.segment import PostingLists, Segment
from kbretrieval.snapshot.snapshot import Snapshot, advanced, empty_snapshot
from kbretrieval.store.chunk_rows import posting_blobs
from kbretrieval.store.commits import head
from kbretrieval.store.connection import DEFAULT_WAIT_SECONDS
from kbretrieval.store.contract import Wanted
from kbretrieval.store.opening import open_connection

OPENED = "open until the first hit"
REBUILT = "rebuild the snapshot"
UPDATED = "update one document until both channels find it"
RETOKENISED = "re-tokenise every chunk"
RETOKENISED_AT_MOST = 20_000
QUOTED = 16


def opened_and_retokenised(
    path: Path, encoder: Encoder, text: str, texts: Sequence[str], size: int, times: int
) -> tuple[Series, Series]:
    """Return how long it takes from opening a file to its first hit, and how long cutting every chunk into terms.

    In turns, so that a neighbour slows down both. The operating system's cache is warm. Cutting is measured over a part
    of `texts` each time and scaled up to `size` chunks.
    """
    opening, cutting = [], []
    for number in range(times):
        opening.append(timed(lambda: _first_hit(path, encoder, text))[1])
        part = texts[number::times]
        cutting.append(timed(lambda: [posting_blobs(terms(item)) for item in part])[1] * size / len(part))  # noqa: B023
    return Series(OPENED, "engine", tuple(opening)), Series(RETOKENISED, "engine", tuple(cutting))


def _first_hit(path: Path, encoder: Encoder, text: str) -> None:
    with Index.open(path, encoder) as index:
        if not index.search(text, reader(100), 1):
            raise ClaimFailed("a first hit is required, none was found")


def snapshot_of(index: Index) -> Snapshot:
    """Return what an open index keeps in memory of the bench's tenant."""
    engine = index._engine
    with engine.connection.read():
        return engine.resident.current(engine.connection, TENANT)


def rebuilt(path: Path, encoder: Encoder, times: int) -> tuple[Series, int]:
    """Return how long a full rebuild of the snapshot takes, and the bytes of its arrays."""
    connection, contract = open_connection(path, Wanted(encoder, None, None), DEFAULT_WAIT_SECONDS)
    samples, size = [], 0
    try:
        for _ in range(times):
            with connection.read():
                now = head(connection)
                made, took = timed(
                    lambda: advanced(empty_snapshot(TENANT), connection, now, contract.dimension)  # noqa: B023
                )
            samples.append(took)
            size = held_bytes(made)
            del made
    finally:
        connection.close()
    return Series(REBUILT, "engine", tuple(samples)), size


def held_bytes(snapshot: Snapshot) -> int:
    """Return the bytes of a snapshot's arrays: columns, posting lists, int8 rows; Python's own objects aside."""
    rooms: list[Segment | PostingLists | CodedRows | Snapshot] = [snapshot]
    for segment in snapshot.segments:
        rooms += [segment, segment.lists, segment.vectors]
    parts = [getattr(room, item.name) for room in rooms for item in fields(room)]
    return sum(part.nbytes for part in parts if isinstance(part, np.ndarray))


def updated(
    index: Index, encoder: Remembering, chosen: Vocabulary, documents: int, chunks_each: int, times: int
) -> tuple[Series, Series]:
    """Return how long one upsert alone takes, and one upsert with the search that finds it in both channels.

    Vectors are made beforehand: the encoder's own time is not in the samples.
    """
    alone, whole = [], []
    with without_collector():
        for number in range(times):
            at = number * 97 % documents
            made = source(chosen, documents + number, chunks_each)
            cut = chunks(project(made, FORMAT), index.contract.chunk_size, index.contract.overlap)
            text = cut[0].text[:QUOTED]
            encoder.remember([chunk.text for chunk in cut], as_query=text)
            _, wrote = timed(lambda: index.upsert(TENANT, f"d{at:07d}", 2 + number, FORMAT, made, list(acl(at))))  # noqa: B023
            found, took = timed(lambda: index.search(text, reader(100), 5))  # noqa: B023
            if not any(hit.revision == 2 + number and len(hit.channels) == 2 for hit in found):
                raise ClaimFailed("the new revision is required in both channels, one did not find it")
            alone.append(wrote)
            whole.append(wrote + took)
    return Series(UPDATED, "engine, upsert alone", tuple(alone)), Series(UPDATED, "engine", tuple(whole))
