"""kbretrieval: a permission-aware retrieval index whose quotations can be checked.

| public name | what it is |
|---|---|
| `Index` | the index in one SQLite file: every operation is a method of it |
| `Context` | who asks, built by trusted code from an identity that is already authenticated |
| `SearchOptions`, `BOOK` | how a search is done; the settings of the book's experiments |
| `SearchResult`, `Hit` | what a search found: vouchers, with rank and score of each channel |
| `Answer`, `Evidence` | quotations that were just read from the store and checked, or an abstention |
| `Provenance` | where a document came from; comes back with each quotation |
| `TermEncoder` | the encoder of a new index; the real model is `kbretrieval.encoders.bge.BGEEncoder` |
| `KBError` | the root of every refusal, each with a stable `code` |

Positions are code points of a document's projection, `[start, end)`; digests are hexadecimal SHA-256. Folders are
synchronised by `kbretrieval.sync`, an index is migrated by `kbretrieval.migration`, task contexts are in
`kbretrieval.context`, events in `kbretrieval.observers`. Names are resolved on first use (PEP 562), so that
`kbretrieval.offline` and `kbretrieval.evidence` run on the standard library alone.

Example:
    >>> import json, pathlib, tempfile
    >>> from kbretrieval import Context, Hit, Index, KBError
    >>> folder = tempfile.TemporaryDirectory()
    >>> index = Index.open(pathlib.Path(folder.name) / "kb.sqlite")
    >>> index.upsert("acme", "travel", 1, "markdown", "# 差旅\\n\\n住宿每晚限额500元。", ["group:staff"]).chunks
    1
    >>> alice = Context("acme", "alice", groups=["staff"])
    >>> found = index.search("住宿限额", alice)
    >>> [(hit.doc_id, hit.channels[0].rank) for hit in found], found.channel("lexical").eligible
    ([('travel', 1)], 1)
    >>> kept = json.dumps(found[0].to_dict())  # a hit may be kept as JSON, and is checked all the same
    >>> item = index.answer([Hit.from_dict(json.loads(kept))], alice).evidence[0]
    >>> item.quote[6:], (item.start, item.end), (item.line_start, item.line_end), item.granted_by
    ('住宿每晚限额500元。', (0, 17), (1, 3), 'group:staff')
    >>> index.set_acl("acme", "travel", ["bob"], expected_acl_revision=1).acl_revision
    2
    >>> index.answer([json.loads(kept)], alice).state, len(index.search("住宿限额", alice))
    ('abstain', 0)
    >>> try:
    ...     index.set_acl("acme", "travel", ["eve"], expected_acl_revision=1)
    ... except KBError as error:
    ...     print(error)
    stale_acl_revision: ACL revision 1 given, 2 stored
    >>> index.close()
    >>> folder.cleanup()
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
