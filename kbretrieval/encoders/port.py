"""The `Encoder` port, and the check that stands between any encoder and the store (VEC-5)."""

import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from kbretrieval.errors import (
    EncoderFailed,
    EncoderResultCountMismatch,
    InvalidEmbeddingOutput,
    InvalidEncoder,
)
from kbretrieval.errors.foreign import guarded

MAX_IDENTIFIER = 1000
UNIT_TOLERANCE = 1e-6

Matrix = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Encoding:
    """What an encoder returns: one vector a text, and the positions of texts cut at the encoder's token limit."""

    vectors: Sequence[Any]
    truncated: frozenset[int] = frozenset()


@runtime_checkable
class Encoder(Protocol):
    """Turns texts into vectors.

    `identifier` names everything that the vectors depend on (model and tokenizer digests, pooling, instruction) and is
    part of the contract. `dimension` is the length of a vector; 0 means that the vector is the chunk's own term counts
    (`TermEncoder`). `floor` is the least cosine of a candidate, a demonstration cut and no probability.
    """

    @property
    def identifier(self) -> str: ...

    @property
    def dimension(self) -> int: ...

    @property
    def floor(self) -> float: ...

    def encode(self, texts: Sequence[str], *, query: bool) -> Encoding:
        """Return one vector for each text; `query` says whether the texts are queries or documents."""
        ...


def checked_encoder(value: object) -> Encoder:
    """Return `value` if it has every part of the port, else raise `invalid_encoder`."""
    if isinstance(value, type) or not isinstance(value, Encoder):
        raise InvalidEncoder(f"identifier, dimension, floor and encode are required, {type(value).__name__} lacks one")
    identifier, dimension, floor = value.identifier, value.dimension, value.floor
    if not isinstance(identifier, str) or not 1 <= len(identifier) <= MAX_IDENTIFIER:
        raise InvalidEncoder(f"identifier: 1 to {MAX_IDENTIFIER} characters are required")
    if any(unicodedata.category(character) in ("Cc", "Cs") for character in identifier):
        # It is stored in the contract, and stands in refusals, which are one line.
        raise InvalidEncoder("identifier: a control character or surrogate is not allowed")
    if type(dimension) is not int or not 0 <= dimension <= 65_536:
        raise InvalidEncoder("dimension: an integer from 0 to 65536 is required")
    if not isinstance(floor, float) or not -1.0 <= floor <= 1.0:
        given = "another" if isinstance(floor, float) else type(floor).__name__
        raise InvalidEncoder(f"floor: a float from -1.0 to 1.0 is required, {given} given")
    return value


def encode_dense(encoder: Encoder, texts: Sequence[str], *, query: bool) -> tuple[Matrix, frozenset[int]]:
    """Return unit vectors of shape (len(texts), dimension), float32, and the positions of truncated texts.

    Raises `encoder_failed` (whatever the encoder raised, without its text), `encoder_result_count_mismatch` and
    `invalid_embedding_output`. A vector whose norm is not 1 is brought to norm 1; one that is, keeps its bits.
    """
    if not texts:
        return np.zeros((0, encoder.dimension), np.float32), frozenset()
    encoding = guarded(lambda: encoder.encode(list(texts), query=query), EncoderFailed, "the encoder")
    if not isinstance(encoding, Encoding) or not isinstance(encoding.truncated, frozenset):
        raise InvalidEmbeddingOutput(f"an Encoding is required, {type(encoding).__name__} returned")
    # One more than wanted shows that there are too many, however many a generator would go on to give.
    vectors = guarded(lambda: list(islice(encoding.vectors, len(texts) + 1)), EncoderFailed, "the encoder")
    if len(vectors) != len(texts):
        raise EncoderResultCountMismatch(f"{len(texts)} texts given, {len(vectors)} vectors returned")
    made = np.empty((len(texts), encoder.dimension), np.float32)
    for row, vector in enumerate(vectors):
        made[row] = _unit(vector, encoder.dimension, row)
    return made, encoding.truncated


def _wide(vector: object) -> NDArray[np.float64] | None:
    """Return the numbers of a vector, None if they are none; strings of digits and complex numbers are none."""
    try:
        given = np.asarray(vector)
        with np.errstate(over="ignore"):
            return given.astype(np.float64) if given.dtype.kind in "biufO" else None
    except (TypeError, ValueError, OverflowError):
        return None


def _unit(vector: object, dimension: int, row: int) -> Matrix:
    if vector is None or isinstance(vector, (str, bytes, Mapping)):
        raise InvalidEmbeddingOutput(
            f"vector {row}: {dimension} numbers are required, {type(vector).__name__} returned"
        )
    wide = _wide(vector)
    if wide is None:
        raise InvalidEmbeddingOutput(f"vector {row}: {dimension} numbers are required, something else returned")
    if wide.shape != (dimension,):
        raise InvalidEmbeddingOutput(f"vector {row}: shape ({dimension},) is required, {wide.shape} returned")
    with np.errstate(over="ignore"):
        narrow: Matrix = wide.astype(np.float32)
        norm = float(np.sqrt(np.sum(wide * wide)))
    if not np.isfinite(narrow).all() or not np.isfinite(norm):
        raise InvalidEmbeddingOutput(f"vector {row}: finite numbers are required, others returned")
    if norm == 0.0 or not narrow.any():
        raise InvalidEmbeddingOutput(f"vector {row}: a norm above zero is required, zero returned")
    if abs(norm - 1.0) > UNIT_TOLERANCE:
        narrow = (wide / norm).astype(np.float32)
    return narrow
