"""What a task asks for: a selection of collections, and pieces of documents by name (CTX-25)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from kbretrieval.errors import ContextInputInvalid
from kbretrieval.identity import MAX_DOC_ID, MAX_NAME, checked_name
from kbretrieval.results import Exported

MAX_COLLECTIONS = 100
MAX_DOCUMENTS = 2_000
MAX_PIECES = 200


@dataclass(frozen=True, slots=True)
class Selection(Exported):
    """Collections, optionally some of their documents by name, and the role in which they are read.

    Names are kept sorted, each once. Raises `context_input_invalid` and `invalid_identity`.

    Example:
        >>> Selection(collections=["policies", "faq", "faq"]).collections
        ('faq', 'policies')
    """

    SCHEMA: ClassVar[str] = "kbretrieval.context.selection/1"

    collections: Sequence[str]
    documents: Sequence[str] | None = None
    role: str = "reading"

    def __post_init__(self) -> None:
        names = checked_names(self.collections, "collections", most=MAX_COLLECTIONS)
        if not names:
            raise ContextInputInvalid("collections: 1 or more are required, 0 given")
        object.__setattr__(self, "collections", names)
        if self.documents is not None:
            object.__setattr__(self, "documents", checked_names(self.documents, "documents", MAX_DOC_ID))
        object.__setattr__(self, "role", checked_name(self.role, "role"))


@dataclass(frozen=True, slots=True)
class Piece(Exported):
    """A stretch of a document in code points, `[start, end)`; `end` None is the end of the document.

    Raises `context_input_invalid` and `invalid_identity`.

    Example:
        >>> Piece("refund", 0, 40).end
        40
    """

    SCHEMA: ClassVar[str] = "kbretrieval.context.piece/1"

    doc_id: str
    start: int = 0
    end: int | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "doc_id", checked_name(self.doc_id, "doc_id", MAX_DOC_ID))
        checked_stretch(self.start, self.end)


def checked_stretch(start: object, end: object) -> None:
    """Raise `context_input_invalid` unless start and end are code points of a non-empty stretch, or end is None."""
    if type(start) is not int or not 0 <= start < 2**31:
        raise ContextInputInvalid("start: an integer from 0 is required, another value given")
    if end is not None and (type(end) is not int or not start < end < 2**31):
        raise ContextInputInvalid("end: an integer above start, or None, is required, another value given")


def checked_pieces(given: object, what: str) -> tuple[Piece, ...]:
    """Return pieces from a list of pieces, names of documents (all of each) and rows of a search, at most 200.

    Example:
        >>> checked_pieces(["refund"], "must_read")
        (Piece(doc_id='refund', start=0, end=None),)
    """
    if not isinstance(given, (tuple, list)) or len(given) > MAX_PIECES:
        size = len(given) if isinstance(given, (tuple, list)) else type(given).__name__
        raise ContextInputInvalid(f"{what}: a list of at most {MAX_PIECES} is required, {size} given")
    return tuple(_piece(value, what) for value in given)


def checked_names(given: object, what: str, limit: int = MAX_NAME, most: int = MAX_DOCUMENTS) -> tuple[str, ...]:
    """Return a list of at most `most` names as a sorted tuple, each once; `limit` counts code points of each.

    Example:
        >>> checked_names(["b", "a", "b"], "doc_ids")
        ('a', 'b')
    """
    if not isinstance(given, (tuple, list)) or len(given) > most:
        size = len(given) if isinstance(given, (tuple, list)) else type(given).__name__
        raise ContextInputInvalid(f"{what}: a list of at most {most} names is required, {size} given")
    return tuple(sorted({checked_name(name, what, limit) for name in given}))


def _piece(value: Any, what: str) -> Piece:
    if isinstance(value, str):
        return Piece(value)
    piece = getattr(value, "piece", value)
    if type(piece) is not Piece:
        raise ContextInputInvalid(f"{what}: names, pieces or rows are required, {type(value).__name__} given")
    return piece
