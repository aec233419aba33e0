"""How a search is done: `SearchOptions`, and `BOOK`, the settings of the book's experiments."""

from dataclasses import dataclass, fields, replace
from typing import Any, Literal, TypedDict

from kbretrieval.errors import InvalidSearchOptions

Mode = Literal["lexical", "vector", "hybrid"]
MODES: tuple[Mode, ...] = ("lexical", "vector", "hybrid")
MAX_WINDOW = 1000
MAX_LIMIT = 100
MAX_K = 1_000_000


class Overrides(TypedDict, total=False):
    """Single options that may be given as keywords of `search`."""

    lexical: Literal["isolated", "fts5"]
    fusion: Literal["rrf", "convex"]
    rrf_k: int
    window: int
    rerank: Literal["none", "title"]
    lexical_share: float


_CHOICES = {"lexical": ("isolated", "fts5"), "fusion": ("rrf", "convex"), "rerank": ("none", "title")}
_RANGES = {"rrf_k": (1, MAX_K), "window": (1, MAX_WINDOW)}


def _check_integer(name: str, value: object, least: int, most: int) -> None:
    if type(value) is not int or not least <= value <= most:
        shown = value if type(value) is int and abs(value) < 10**12 else type(value).__name__
        raise InvalidSearchOptions(f"{name}: an integer from {least} to {most} is required, {shown} given")


@dataclass(frozen=True, slots=True)
class SearchOptions:
    """Options of a search, checked when made (`invalid_search_options`); frozen (LEX-8, RRF-1…RRF-4, RRK-1).

    lexical        `isolated` (BM25 over the caller's eligible rows) or `fts5` (the book's baseline, shared statistics)
    fusion         `rrf`, or `convex`: a weighted sum of scores on one scale
    rrf_k          the constant of RRF, 1 to 1,000,000
    window         candidates kept per channel, 1 to 1,000
    rerank         `none` or `title`
    lexical_share  weight of the lexical channel in `convex`, 0.0 to 1.0

    Example:
        >>> SearchOptions(rrf_k=10).rrf_k
        10
    """

    lexical: Literal["isolated", "fts5"] = "isolated"
    fusion: Literal["rrf", "convex"] = "rrf"
    rrf_k: int = 60
    window: int = 100
    rerank: Literal["none", "title"] = "none"
    lexical_share: float = 0.15

    def __post_init__(self) -> None:
        for name, choices in _CHOICES.items():
            value = getattr(self, name)
            if not isinstance(value, str) or value not in choices:
                raise InvalidSearchOptions(f"{name}: one of {', '.join(choices)} is required, another given")
        for name, (least, most) in _RANGES.items():
            _check_integer(name, getattr(self, name), least, most)
        share: object = self.lexical_share
        if type(share) not in (int, float) or not 0.0 <= self.lexical_share <= 1.0:
            raise InvalidSearchOptions("lexical_share: a number from 0.0 to 1.0 is required, another given")

    def to_dict(self) -> dict[str, Any]:
        """Return the options by name."""
        return {field.name: getattr(self, field.name) for field in fields(self)}


BOOK = SearchOptions(lexical="fts5", rrf_k=60, rerank="title")


def checked_search(limit: object, mode: object, options: object, overrides: dict[str, Any]) -> SearchOptions:
    """Return the options with single keywords applied; refuse bad limits (1 to 100), modes and unknown keywords.

    Example:
        >>> checked_search(5, "hybrid", BOOK, {"rerank": "none"}).rerank
        'none'
    """
    _check_integer("limit", limit, 1, MAX_LIMIT)
    if not isinstance(mode, str) or mode not in MODES:
        raise InvalidSearchOptions(f"mode: one of {', '.join(MODES)} is required, another given")
    if type(options) is not SearchOptions:
        raise InvalidSearchOptions(f"options: SearchOptions is required, {type(options).__name__} given")
    unknown = set(overrides) - {field.name for field in fields(SearchOptions)}
    if unknown:
        raise InvalidSearchOptions(f"{len(SearchOptions.__slots__)} options are known, {len(unknown)} unknown given")
    return replace(options, **overrides)
