"""kbretrieval: a permission-aware retrieval index whose quotations can be checked.

The public names are resolved on first use (PEP 562), so that `kbretrieval.offline` and
`kbretrieval.evidence` run on the standard library alone.

Example:
    >>> from kbretrieval import Context
    >>> Context("acme", "alice").principal
    'alice'
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from kbretrieval._version import __version__

if TYPE_CHECKING:
    from kbretrieval.encoders.terms import TermEncoder as TermEncoder
    from kbretrieval.errors import KBError as KBError
    from kbretrieval.identity import Context as Context
    from kbretrieval.identity import Provenance as Provenance
    from kbretrieval.index import Index as Index
    from kbretrieval.options import BOOK as BOOK
    from kbretrieval.options import SearchOptions as SearchOptions
    from kbretrieval.results import Answer as Answer
    from kbretrieval.results import Evidence as Evidence
    from kbretrieval.results import Hit as Hit
    from kbretrieval.results import SearchResult as SearchResult

_HOMES = {
    "Answer": "results",
    "BOOK": "options",
    "Context": "identity",
    "Evidence": "results",
    "Hit": "results",
    "Index": "index",
    "KBError": "errors",
    "Provenance": "identity",
    "SearchOptions": "options",
    "SearchResult": "results",
    "TermEncoder": "encoders.terms",
}

__all__ = ["__version__", *sorted(_HOMES)]  # noqa: PLE0604


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
