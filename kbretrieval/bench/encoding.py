"""Third part: the real model. What indexing costs beside encoding, and what a second core brings (PRF-5).

Each document is encoded alone and indexed, in turns, with one session on all cores; the same chunks are encoded with
one thread and with two, in turns. The vectors that the index stored are compared with those of the encoder alone, bit
for bit.
"""

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from kbretrieval.bench.figures import Equality, Figures, Gate, ratio
from kbretrieval.bench.filling import FORMAT, TENANT, Synthetic, corpus, expect_size
from kbretrieval.bench.texts import vocabulary
from kbretrieval.bench.timing import Series, in_turns, timed
from kbretrieval.chunking import chunks
from kbretrieval.encoders.bge import BGEEncoder
from kbretrieval.encoders.port import Encoder
from kbretrieval.index import Index
from kbretrieval.projection import project
from kbretrieval.store.vector_rows import vectors_by_key

PART = "bge"
CHUNKS_EACH = 10
MOST_AGAINST_ENCODER = 1.3
LEAST_TWO_THREADS = 1.6

Make = Callable[[int | None], Encoder]


def real_model(threads: int | None) -> Encoder:
    """Return the BGE encoder with a number of threads, or one a core; `model_missing` where it is not there."""
    return BGEEncoder(threads=threads)


def _texts(item: Synthetic, index: Index) -> list[str]:
    cut = chunks(project(item.source, FORMAT), index.contract.chunk_size, index.contract.overlap)
    return [chunk.text for chunk in cut]


def _indexed(index: Index, documents: Sequence[Synthetic]) -> tuple[tuple[Series, ...], Equality]:
    alone: list[float] = []
    whole: list[float] = []
    rows = []
    key = 1
    for number, item in enumerate(documents):
        texts = _texts(item, index)
        encoding, spent = timed(lambda texts=texts: index.encoder.encode(texts, query=False))  # type: ignore[misc]
        alone.append(spent)
        made, spent = timed(lambda item=item: index.upsert(TENANT, item.doc_id, 1, FORMAT, item.source, ["*"]))  # type: ignore[misc]
        whole.append(spent)
        keys = list(range(key, key + made.chunks))
        stored = vectors_by_key(index._engine.connection, keys, index.encoder.dimension)
        rows.append({"document": number, "equal": stored.tobytes() == np.stack(encoding.vectors).tobytes()})
        key += made.chunks
    series = (Series("one document", "encoder alone", tuple(alone)), Series("one document", "upsert", tuple(whole)))
    return series, Equality(
        "stored vectors equal the encoder's, bit for bit", tuple(rows), all(r["equal"] for r in rows)
    )


def measure(folder: Path, size: int, seed: int, queries: int, rounds: int, make: Make = real_model) -> Figures:
    """Return the figures of encoding and indexing `size` chunks with the real model.

    `queries` is not used. `folder` takes the file. Raises `model_missing`, and `claim_failed` where the corpus has
    another size than announced.
    """
    documents = list(corpus(vocabulary(seed), size, CHUNKS_EACH))
    with Index.open(folder / "bge.sqlite", make(None)) as index:
        batches = [_texts(item, index) for item in documents]
        expect_size(sum(map(len, batches)), size)
        one, two = make(1), make(2)
        threads = in_turns(
            "encode one document",
            {
                "one thread": lambda texts: one.encode(texts, query=False),
                "two threads": lambda texts: two.encode(texts, query=False),
            },
            batches[:: max(1, len(batches) // 10)],
            rounds,
        )
        indexing, equal = _indexed(index, documents)
    spent = sum(indexing[0].samples) / sum(indexing[1].samples)
    faster = ratio(threads, "encode one document", "one thread", "two threads")
    gates = (
        Gate("encoder's own time within indexing", spent, 1 / MOST_AGAINST_ENCODER, "PRF-5"),
        Gate("two threads against one", faster, LEAST_TWO_THREADS, "PRF-5"),
    )
    numbers = {"texts per second, all cores": size / sum(indexing[0].samples) * 1000.0}
    return Figures(PART, size, (*threads, *indexing), (equal,), gates, numbers, {})
