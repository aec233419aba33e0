"""Chunks → everything that is derived from them: terms and vectors, each text encoded once (PRF-10)."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from kbretrieval.analysis import terms
from kbretrieval.chunking import Chunk
from kbretrieval.embedded import embedded_digest, embedded_text
from kbretrieval.encoders.port import Encoder, encode_dense
from kbretrieval.encoders.quantizer import Quantizer
from kbretrieval.store.chunk_rows import PreparedChunk
from kbretrieval.store.vector_rows import FLOAT, coded_vectors

Blobs = Mapping[str, tuple[bytes, bool]]
Known = Callable[[Sequence[str]], Blobs]


def prepared_chunks(
    cut: Sequence[Chunk], encoder: Encoder, quantizer: Quantizer, known: Known, embedded: str
) -> tuple[list[PreparedChunk], int]:
    """Return chunks ready to be written, and how many texts were encoded.

    `known` is given the digests of the texts that need a vector and returns what is stored already, as text digest →
    (float32 blob, truncated); a text that stands twice is encoded once. `embedded` is the contract's method.
    Raises what the encoder's gate raises.
    """
    if not encoder.dimension:
        return [PreparedChunk(chunk, terms(chunk.text), None) for chunk in cut], 0
    digests = [embedded_digest(embedded, chunk.heading_path, chunk.text, chunk.sha256) for chunk in cut]
    texts = {
        digest: embedded_text(embedded, chunk.heading_path, chunk.text)
        for digest, chunk in zip(digests, cut, strict=True)
        if not chunk.text.isspace()
    }
    stored = known(list(texts))
    missing = [digest for digest in texts if digest not in stored]
    made, truncated = encode_dense(encoder, [texts[digest] for digest in missing], query=False)
    blobs = (np.ascontiguousarray(vector, FLOAT).tobytes() for vector in made)
    fresh = {digest: (blob, n in truncated) for n, (digest, blob) in enumerate(zip(missing, blobs, strict=True))}
    vectors = coded_vectors({**stored, **fresh}, quantizer)
    made_of = zip(cut, digests, strict=True)
    return [PreparedChunk(chunk, terms(chunk.text), vectors.get(digest)) for chunk, digest in made_of], len(missing)
