"""The sparse baseline: term counts and their cosine (VEC-1). It is no embedding and knows no synonyms."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence

from kbretrieval.analysis import ANALYZER_VERSION, terms
from kbretrieval.encoders.port import Encoding

TERM_FLOOR = 0.05


class TermEncoder:
    """Counts terms; two texts without a shared term have cosine 0, whatever they mean (VEC-1). Never an embedding.

    In an index its vectors are the chunks' posting lists, so nothing is stored twice. It needs no model.

    Example:
        >>> TermEncoder().encode(["退款 退款"], query=False).vectors[0]["退款"]
        2
    """

    __slots__ = ()

    @property
    def identifier(self) -> str:
        """The encoder's name in the contract."""
        return f"terms:{ANALYZER_VERSION}"

    @property
    def dimension(self) -> int:
        """0: the vectors are sparse."""
        return 0

    @property
    def floor(self) -> float:
        """The least cosine of a candidate; a demonstration cut, no probability."""
        return TERM_FLOOR

    def encode(self, texts: Sequence[str], *, query: bool) -> Encoding:
        """Return one mapping term → count a text; queries and documents are treated alike."""
        return Encoding([Counter(terms(text)) for text in texts])


def sparse_cosine(left: Mapping[str, int], right: Mapping[str, int]) -> float:
    """Return the cosine of two term counts: integer dot product, one division; 0.0 where one is empty.

    Example:
        >>> sparse_cosine({"退款": 1}, {"退款": 1, "政策": 1})
        0.7071067811865475
    """
    dot = sum(count * right.get(term, 0) for term, count in left.items())
    squares = sum(n * n for n in left.values()) * sum(n * n for n in right.values())
    return dot / math.sqrt(squares) if squares else 0.0
