"""Who may see what: five conditions, all of them, before anything is scored (OFF-30, OFF-31, OFF-32).

The conditions are data, so that a reader can take one away and watch the gate fire. The gate itself does not use this
module: it judges with code of its own.
"""

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType

from kbretrieval.offline.errors import UnknownId
from kbretrieval.offline.model import Document, Query

Condition = Callable[[Document, Query], bool]

CONDITIONS: Mapping[str, Condition] = MappingProxyType(
    {
        "tenant": lambda document, query: document.tenant == query.tenant,
        "acl": lambda document, query: not set(document.acl).isdisjoint(query.subject_groups),
        "status": lambda document, query: document.status == "published",
        "language": lambda document, query: document.language in query.languages,
        "product": lambda document, query: document.product in query.products,
    }
)


def failed_conditions(document: Document, query: Query) -> tuple[str, ...]:
    """Return the names of the conditions that this document fails for this query; empty means eligible.

    Example:
        >>> draft = Document("d", "T", "x", "alpha", ("guest",), "draft", "en", "app", "r1", (1.0,))
        >>> failed_conditions(draft, Query("q", "x", "beta", ("guest",), ("en",), ("app",), (1.0,), {}, ()))
        ('tenant', 'status')
    """
    return tuple(name for name, holds in CONDITIONS.items() if not holds(document, query))


def eligible_documents(
    documents: Iterable[Document], query: Query, conditions: Mapping[str, Condition] = CONDITIONS
) -> tuple[Document, ...]:
    """Return the documents that satisfy every condition, in ascending order of id (OFF-30).

    A query without groups sees nothing (OFF-31), because no ACL shares a member with the empty set.
    `conditions` exists for experiments: with fewer than the five, nothing is promised.

    Example:
        >>> memo = Document("d", "T", "x", "alpha", ("guest",), "published", "en", "app", "r1", (1.0,))
        >>> eligible_documents([memo], Query("q", "x", "alpha", (), ("en",), ("app",), (1.0,), {}, ()))
        ()
    """
    passed = (document for document in documents if all(holds(document, query) for holds in conditions.values()))
    return tuple(sorted(passed, key=lambda document: document.id))


def conditions_without(name: str) -> Mapping[str, Condition]:
    """Return the five conditions less one, for experiments that show what it carries; unknown: `UnknownId`.

    Example:
        >>> sorted(conditions_without("status"))
        ['acl', 'language', 'product', 'tenant']
    """
    if name not in CONDITIONS:
        raise UnknownId(f"condition {name!a} asked for, known are {', '.join(CONDITIONS)}")
    return MappingProxyType({key: holds for key, holds in CONDITIONS.items() if key != name})
