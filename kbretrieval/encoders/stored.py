"""Which encoder an existing file brings: terms, BGE, or one that is only known by its identifier."""

from collections.abc import Sequence

from kbretrieval.encoders.bge import IDENTIFIER, StoredBGE
from kbretrieval.encoders.port import Encoder, Encoding
from kbretrieval.encoders.terms import TermEncoder
from kbretrieval.errors import EncoderUnavailable


class NamedEncoder:
    """Stands for an encoder of which only the identifier is stored: reading works, encoding is refused.

    Answers, audits, deletes and lexical searches need no encoder; what does says `encoder_unavailable`.
    """

    def __init__(self, identifier: str, dimension: int) -> None:
        self.identifier = identifier
        self.dimension = dimension
        self.floor = 0.0

    def encode(self, texts: Sequence[str], *, query: bool) -> Encoding:
        """Raise `encoder_unavailable`, naming the stored identifier."""
        raise EncoderUnavailable(f"{self.identifier} stored, no encoder given; pass it to Index.open")


def encoder_for(identifier: str, dimension: int) -> Encoder:
    """Return the encoder that a stored contract names.

    Example:
        >>> encoder_for(TermEncoder().identifier, 0).dimension
        0
    """
    terms = TermEncoder()
    if identifier == terms.identifier:
        return terms
    return StoredBGE() if identifier == IDENTIFIER else NamedEncoder(identifier, dimension)
