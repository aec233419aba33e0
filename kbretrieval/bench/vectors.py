"""BGE-like synthetic vectors: an encoder double whose vector is a function of the text alone.

How a vector is made. BAAI/bge-small-zh-v1.5 puts all texts into a narrow cone with a few outlier dimensions, and texts
on one subject close together. So here: a mean direction shared by all texts, with four outlier dimensions of ±0.25;
512 cluster centres, each a Gaussian direction seeded by a passage of the fixtures' own texts (the windows of twelve
characters, one after the other, around all bodies, which are so short that 359 centres are different); and Gaussian
noise. The three are added with weights 0.60, 0.45 and 0.66 and brought to norm 1. Nothing here is semantic.

The BLAKE2b digest of the text decides: its first 32 bits draw the cluster, the second and the third draw where two
stretches of 512 numbers begin in one pool of 2^20 + 511 Gaussian numbers, and the noise is their sum. That takes a
twentieth of seeding a generator for each text, and the noise of one vector is as Gaussian as before. Only texts that
draw the same stretch, four in a million, have something in common that their clusters do not explain.

The cosine of two texts, measured over the chunks of 400 synthetic documents: .36 ± .04 (one standard deviation) in two
clusters, .56 ± .03 within one; with a stretch in common it is .58 and .78.
"""

import hashlib
from collections.abc import Iterator, Sequence
from functools import cache

import numpy as np
from numpy.typing import NDArray

from kbretrieval.bench.texts import fixture_bodies
from kbretrieval.encoders.port import Encoding
from kbretrieval.encoders.quantizer import CODE_LIMIT, Quantizer

DIMENSION = 512
CLUSTERS = 512
FLOOR = 0.40
OUTLIERS = (17, 130, 301, 444)
STRETCHES = 1 << 20
_PASSAGE = 12
_MEAN, _CENTRE, _NOISE = 0.60, 0.45, 0.66
_REACH = 6.0
_BLOCK = 128  # vectors made at once: their numbers stay in the processor's cache

Floats = NDArray[np.float64]


def _digest(text: str) -> bytes:
    return hashlib.blake2b(text.encode("utf-8"), digest_size=16).digest()


def _generator(text: str) -> np.random.Generator:
    return np.random.Generator(np.random.PCG64(int.from_bytes(_digest(text), "little")))


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


@cache
def noise_stretches() -> Floats:
    """Return every stretch of the pool, shape (2^20, 512): a read-only view of 8 MB. Two added have the noise's norm.

    Example:
        >>> 0.6 < float(np.linalg.norm(noise_stretches()[7] + noise_stretches()[70_000])) < 0.72
        True
    """
    pool = _generator("noise").standard_normal(STRETCHES + DIMENSION - 1) * (_NOISE / np.sqrt(2 * DIMENSION))
    return np.lib.stride_tricks.sliding_window_view(pool, DIMENSION)


class DenseDouble:
    """Stands for a dense encoder of 512 dimensions; queries and documents are treated alike.

    Example:
        >>> double = DenseDouble()
        >>> first, again = double.encode(["年假", "年假"], query=False).vectors
        >>> first.tolist() == again.tolist(), len(first)
        (True, 512)
    """

    identifier = "bench-double:512/2"
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
        return Quantizer("bench-double/2", self._mean + self._centres.mean(axis=0), spread * _REACH / CODE_LIMIT)

    def encode(self, texts: Sequence[str], *, query: bool) -> Encoding:
        """Return float32 vectors of norm 1."""
        return Encoding(list(self._vectors(texts)))

    def _vectors(self, texts: Sequence[str]) -> Iterator[NDArray[np.float32]]:
        stretches = noise_stretches()
        for begin in range(0, len(texts), _BLOCK):
            digests = b"".join(map(_digest, texts[begin : begin + _BLOCK]))
            drawn = np.frombuffer(digests, "<u4").reshape(-1, 4)
            made = self._centres[drawn[:, 0] % CLUSTERS] + self._mean
            made += stretches[drawn[:, 1] % STRETCHES]
            made += stretches[drawn[:, 2] % STRETCHES]
            yield from _unit(made).astype(np.float32)


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
        self._known.update(zip(texts, self._vectors(texts), strict=True))
        if as_query is not None:
            self._known[as_query] = self._known[texts[0]]

    def encode(self, texts: Sequence[str], *, query: bool) -> Encoding:
        """Return float32 vectors of norm 1, remembered ones as they are."""
        fresh = self._vectors([text for text in texts if text not in self._known])
        return Encoding([self._known[text] if text in self._known else next(fresh) for text in texts])


class Gaussian(DenseDouble):
    """Directions without any structure, and no floor: the hardest case for a bound that selects."""

    identifier = "bench-gaussian:512/1"
    floor = -1.0
    quantizer = None

    def _vectors(self, texts: Sequence[str]) -> Iterator[NDArray[np.float32]]:
        for text in texts:
            yield _unit(_generator(text).standard_normal(DIMENSION)).astype(np.float32)
