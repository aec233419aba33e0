"""Vectors of a dense encoder: float32 rows, and the int8 rows that select among them (VEC-6, PRF-3)."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from kbretrieval.encoders.quantizer import Quantizer
from kbretrieval.errors import IndexCorrupt
from kbretrieval.store.connection import Connection
from kbretrieval.store.schema import SERVING, Tables

FLOAT = np.dtype("<f4")
NORM_TOLERANCE = 1e-3


@dataclass(frozen=True, slots=True)
class StoredVector:
    """A dense vector as it is stored: float32 little-endian, and its int8 codes with the norms that bound their error.

    `text_sha256` is the digest of the text that was encoded; `truncated` tells whether it was cut at the encoder's
    token limit.
    """

    text_sha256: str
    blob: bytes
    truncated: bool
    codes: bytes
    residual: float
    norm: float


def vector_fault(blob: object, dimension: int) -> Literal["vector_shape", "vector_norm"] | None:
    """Say what is wrong with a stored vector: not `dimension` finite float32 numbers, or not of norm 1; or None.

    Example:
        >>> vector_fault(np.array([0.6, 0.8], FLOAT).tobytes(), 2), vector_fault(b"", 2)
        (None, 'vector_shape')
    """
    if not isinstance(blob, bytes) or len(blob) != dimension * FLOAT.itemsize:
        return "vector_shape"
    vector = np.frombuffer(blob, FLOAT).astype(np.float64)
    if not np.isfinite(vector).all():
        return "vector_shape"
    return "vector_norm" if abs(float(np.sum(vector * vector)) - 1.0) > NORM_TOLERANCE else None


def coded_vectors(raw: Mapping[str, tuple[bytes, bool]], quantizer: Quantizer) -> dict[str, StoredVector]:
    """Return what is stored for vectors given by text digest as (float32 blob, truncated)."""
    if not raw:
        return {}
    matrix = np.frombuffer(b"".join(blob for blob, _ in raw.values()), FLOAT).reshape(len(raw), -1)
    rows = quantizer.coded(matrix)
    norms = zip(rows.codes, rows.residuals.tolist(), rows.norms.tolist(), strict=True)
    return {
        text: StoredVector(text, blob, cut, codes.tobytes(), residual, norm)
        for (text, (blob, cut)), (codes, residual, norm) in zip(raw.items(), norms, strict=True)
    }


def known_vectors(
    connection: Connection, digests: Sequence[str], dimension: int, tables: Tables = SERVING
) -> dict[str, tuple[bytes, bool]]:
    """Return text digest → (float32 blob, truncated) for texts that a chunk of a generation holds already (PRF-10).

    A damaged vector is left out, so that it is made anew and does not spread to later documents with the same text.
    """
    rows = connection.run(
        f"SELECT text_sha256, truncated, vector FROM {tables.vectors}"
        " WHERE text_sha256 IN (SELECT value FROM json_each(?)) ORDER BY chunk_key",
        (json.dumps(list(digests)),),
    )
    return {digest: (blob, cut == 1) for digest, cut, blob in rows if not vector_fault(blob, dimension)}


def vectors_by_key(connection: Connection, keys: Sequence[int], dimension: int) -> NDArray[np.float32]:
    """Return the float32 vectors of some chunks, shape (len(keys), dimension), in the order of the keys.

    Raises `index_corrupt` where one is missing or damaged: a list without it would look complete.
    """
    rows = connection.run(
        "SELECT v.chunk_key, v.vector FROM json_each(?) wanted CROSS JOIN vectors v ON v.chunk_key = wanted.value",
        (json.dumps(list(keys)),),
    )
    blobs = {key: blob for key, blob in rows if isinstance(blob, bytes) and len(blob) == dimension * FLOAT.itemsize}
    if len(blobs) != len(keys):
        raise IndexCorrupt(f"{len(keys)} vectors are expected in the store, {len(blobs)} whole ones are there")
    matrix = np.frombuffer(b"".join(blobs[key] for key in keys), FLOAT).reshape(len(keys), dimension)
    with np.errstate(invalid="ignore", over="ignore"):
        squares = np.einsum("ij,ij->i", matrix, matrix)
    sound = int(np.count_nonzero(np.abs(squares - 1.0) <= NORM_TOLERANCE))  # False for NaN and infinity, too
    if sound != len(keys):
        raise IndexCorrupt(f"{len(keys)} vectors are read, {len(keys) - sound} of them are damaged")
    return matrix.astype(np.float32)
