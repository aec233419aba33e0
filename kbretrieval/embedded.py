"""What a dense encoder is given of a chunk: its text, or its text below its heading path (QUA-4).

A chunk in the middle of a document no longer says what the document is about; its headings do. Stored text and
coordinates are the same either way: only the vector differs, so the choice is part of the contract. On two public sets
the headed form wins and loses nothing beyond chance (`evidence/quality-*-cut-bge.json`): it is offered, and no default.
"""

from collections.abc import Sequence
from typing import Final, Literal

from kbretrieval.projection import digest

Embed = Literal["chunk", "headed"]

CHUNK: Final = "chunk/1"
HEADED: Final = "heading-path+chunk/1"
METHODS: Final[dict[str, str]] = {"chunk": CHUNK, "headed": HEADED}


def embedded_text(method: str, heading_path: Sequence[str], text: str) -> str:
    """Return the text whose vector a chunk gets: the headings above it a line each, outermost first, then its own.

    Example:
        >>> embedded_text(HEADED, ("差旅制度", "住宿"), "每晚限额500元。")
        '差旅制度\\n住宿\\n每晚限额500元。'
    """
    return "\n".join([*heading_path, text]) if method == HEADED else text


def embedded_digest(method: str, heading_path: Sequence[str], text: str, sha256: str) -> str:
    """Return the SHA-256 of the text whose vector a chunk gets; `sha256` is that of its own text."""
    return digest(embedded_text(method, heading_path, text)) if method == HEADED else sha256
