"""BGE-like synthetic vectors: an encoder double whose vector is a function of the text alone.

How a vector is made. BAAI/bge-small-zh-v1.5 puts all texts into a narrow cone with a few outlier dimensions, and texts
on one subject close together. So here: a mean direction shared by all texts, with four outlier dimensions of ±0.25;
512 cluster centres, each a Gaussian direction seeded by a passage of the fixtures' own texts (the windows of twelve
characters, one after the other, around all bodies); and Gaussian noise seeded by the BLAKE2b digest of the text. The
three are added with weights 0.60, 0.45 and 0.66 and brought to norm 1, which gives a cosine of about .36 between
texts of two clusters and .56 within one. The cluster is drawn by the same digest. Nothing here is semantic.
"""

import hashlib
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from kbretrieval.bench.texts import fixture_bodies
from kbretrieval.encoders.port import Encoding
from kbretrieval.encoders.quantizer import CODE_LIMIT, Quantizer

DIMENSION = 512
CLUSTERS = 512
FLOOR = 0.40
OUTLIERS = (17, 130, 301, 444)
_PASSAGE = 12
_MEAN, _CENTRE, _NOISE = 0.60, 0.45, 0.66
_REACH = 6.0

Floats = NDArray[np.float64]


def _generator(text: str) -> np.random.Generator:
    digest = hashlib.blake2b(text.encode("utf-8"), digest_size=16).digest()
    return np.random.Generator(np.random.PCG64(int.from_bytes(digest, "little")))


def _unit(vectors: Floats) -> Floats:
    made: Floats = vectors / np.sqrt(np.sum(vectors * vectors, axis=-1, keepdims=True))
    return made


def mean_direction() -> Floats:
    """Return the direction that all vectors share, of norm 1."""
    made = _generator("mean").standard_normal(DIMENSION) * 0.03
    made[list(OUTLIERS)] = (0.25, -0.25, 0.25, -0.25)
    return _unit(made)


def cluster_centres() -> Floats:
    """Return unit vectors of shape (512, 512), one a passage of the fixtures."""
    joined = "".join(fixture_bodies())
    passages = [(joined + joined)[at % len(joined) :][:_PASSAGE] for at in range(CLUSTERS)]
    return _unit(np.stack([_generator(passage).standard_normal(DIMENSION) for passage in passages]))


class DenseDouble:
    """Stands for a dense encoder of 512 dimensions; queries and documents are treated alike.

    Example:
        >>> double = DenseDouble()
        >>> first, again = double.encode(["年假", "年假"], query=False).vectors
        >>> first.tolist() == again.tolist(), len(first)
        (True, 512)
    """

    identifier = "bench-double:512/1"
    dimension = DIMENSION
    floor = FLOOR

    def __init__(self) -> None:
        self._mean = mean_direction() * _MEAN
        self._centres = cluster_centres() * _CENTRE

    @property
    def quantizer(self) -> Quantizer | None:
        """The encoder-wide constants of int8 rows: mean and six standard deviations, known from how vectors are made.

        The sum of the three parts has norm 1 but for about a hundredth, so its moments serve as they are.
        """
        spread = np.sqrt(self._centres.var(axis=0) + _NOISE**2 / DIMENSION)
        return Quantizer("bench-double/1", self._mean + self._centres.mean(axis=0), spread * _REACH / CODE_LIMIT)

    def encode(self, texts: Sequence[str], *, query: bool) -> Encoding:
        """Return float32 vectors of norm 1."""
        return Encoding([self._vector(text) for text in texts])

    def _vector(self, text: str) -> NDArray[np.float32]:
        generator = _generator(text)
        centre = self._centres[int(generator.random() * CLUSTERS)]
        noise = generator.standard_normal(DIMENSION) * (_NOISE / np.sqrt(DIMENSION))
        return _unit(self._mean + centre + noise).astype(np.float32)


class Remembering(DenseDouble):
    """The double with vectors made beforehand, so that encoding takes no time inside a sample.

    Example:
        >>> double = Remembering()
        >>> double.remember(["年假五天。"], as_query="年假")
        >>> query, text = double.encode(["年假", "年假五天。"], query=True).vectors
        >>> query.tobytes() == text.tobytes()
        True
    """

    def __init__(self) -> None:
        super().__init__()
        self._known: dict[str, NDArray[np.float32]] = {}

    def remember(self, texts: Sequence[str], *, as_query: str | None = None) -> None:
        """Make the vectors of texts now; `as_query` gets the vector of the first, as a query that means the same."""
        for text in texts:
            self._known[text] = self._vector(text)
        if as_query is not None:
            self._known[as_query] = self._known[texts[0]]

    def encode(self, texts: Sequence[str], *, query: bool) -> Encoding:
        """Return float32 vectors of norm 1, remembered ones as they are."""
        return Encoding([self._known[text] if text in self._known else self._vector(text) for text in texts])


class Gaussian(DenseDouble):
    """Directions without any structure, and no floor: the hardest case for a bound that selects."""

    identifier = "bench-gaussian:512/1"
    floor = -1.0
    quantizer = None

    def _vector(self, text: str) -> NDArray[np.float32]:
        return _unit(_generator(text).standard_normal(DIMENSION)).astype(np.float32)
