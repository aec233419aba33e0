"""The toy dense channel: exact similarity between hand-made vectors (OFF-39). No model, no tokenizer, no ANN."""

import math
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

from kbretrieval.offline.errors import UnknownMetric, WrongDimension, ZeroVector
from kbretrieval.offline.model import Document
from kbretrieval.offline.ranking import Ranked, ranked

Vector = Sequence[float]


def dot(left: Vector, right: Vector) -> float:
    """Return the dot product, correctly rounded over its exact products; unequal lengths: `WrongDimension`.

    Example:
        >>> dot((1.0, 2.0), (3.0, 4.0))
        11.0
    """
    _same_dimension(left, right)
    return math.fsum(a * b for a, b in zip(left, right, strict=True))


def cosine(left: Vector, right: Vector) -> float:
    """Return the dot product divided by both lengths; a vector of zeros: `ZeroVector`.

    Example:
        >>> cosine((2.0, 0.0), (3.0, 0.0))
        1.0
    """
    product = dot(left, right)
    lengths = math.hypot(*left) * math.hypot(*right)
    if lengths == 0.0:
        raise ZeroVector(f"length {math.hypot(*left):g} and {math.hypot(*right):g} given, more than 0 expected")
    return product / lengths


def negative_euclidean(left: Vector, right: Vector) -> float:
    """Return minus the Euclidean distance, so that larger is nearer here too; 0.0 for equal vectors.

    Example:
        >>> negative_euclidean((0.0, 3.0), (4.0, 0.0))
        -5.0
    """
    _same_dimension(left, right)
    # Subtracted from zero, not negated: a distance of 0 must not show as -0.0.
    return 0.0 - math.dist(left, right)


MEASURES: Mapping[str, Callable[[Vector, Vector], float]] = MappingProxyType(
    {"cosine": cosine, "dot": dot, "euclidean": negative_euclidean}
)


def dense_window(
    documents: Sequence[Document], vector: Vector, window: int, metric: str = "cosine"
) -> tuple[Ranked, ...]:
    """Return the `window` nearest documents by (-similarity, id) (OFF-39, OFF-40).

    A document whose dot product with the query is not positive shares no direction with it and is no candidate
    (OFF-37), whatever the measure: minus a distance has no zero of its own to cut at, and on unit vectors this rule
    gives the three measures the same candidates. `documents` must be the eligible ones; this function does not
    filter. Raises `UnknownMetric`.

    Example:
        >>> memo = Document("d", "T", "x", "alpha", ("guest",), "published", "en", "app", "r1", (0.6, 0.8))
        >>> dense_window([memo], (1.0, 0.0), 5)
        (Ranked(id='d', rank=1, score=0.6),)
    """
    if metric not in MEASURES:
        raise UnknownMetric(f"{metric!a} given, one of {', '.join(MEASURES)} expected")
    measure = MEASURES[metric]
    related = (document for document in documents if dot(vector, document.vector) > 0.0)
    return ranked(((document.id, measure(vector, document.vector)) for document in related), window)


def _same_dimension(left: Vector, right: Vector) -> None:
    if len(left) != len(right):
        raise WrongDimension(f"{len(left)} and {len(right)} numbers given, equal counts expected")
