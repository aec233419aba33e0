"""The encoders that an evaluation can name, with what its report says about them."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from kbretrieval.encoders.bge import BGEEncoder
from kbretrieval.encoders.port import Encoder
from kbretrieval.encoders.terms import TermEncoder


class EncoderName(StrEnum):
    """The encoders by name."""

    TERMS = "terms"
    BGE = "bge"


@dataclass(frozen=True, slots=True)
class NamedChoice:
    """An encoder with its name and the book's description of it."""

    name: EncoderName
    encoder: Encoder
    metadata: dict[str, Any]


def encoder_named(name: EncoderName) -> NamedChoice:
    """Return an encoder by name; `model_missing` where the model is not there."""
    if name is EncoderName.BGE:
        model = BGEEncoder()
        return NamedChoice(name, model, model.metadata())
    return NamedChoice(name, TermEncoder(), {"encoder": "character/ASCII term counts, not semantic embedding"})
