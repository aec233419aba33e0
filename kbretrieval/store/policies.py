"""What a snapshot asks of the store: which documents changed since a commit, and their ACLs."""

import json
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from kbretrieval.store.connection import Connection
from kbretrieval.store.documents import expect


@dataclass(frozen=True, slots=True)
class Changed:
    """A document whose content or policy is younger than a commit."""

    doc_key: int
    live: bool
    content_commit: int


def changed_documents(connection: Connection, tenant: str, since: int) -> list[Changed]:
    """Return the documents of a tenant with a content or ACL commit above `since`; found by an index."""
    rows = connection.run(
        "SELECT doc_key, live, content_commit FROM documents"
        " WHERE tenant = ? AND max(content_commit, acl_commit) > ? ORDER BY doc_key",
        (tenant, since),
    )
    for row in rows:
        expect(row, (int, int, int), "document")
    return [Changed(doc_key, live == 1, commit) for doc_key, live, commit in rows]


def acls_of(connection: Connection, doc_keys: Sequence[int]) -> dict[int, tuple[str, ...]]:
    """Return document key → ACL entries in their order."""
    rows = connection.run(
        "SELECT doc_key, entry FROM acl WHERE doc_key IN (SELECT value FROM json_each(?)) ORDER BY doc_key, position",
        (json.dumps(list(doc_keys)),),
    )
    made: defaultdict[int, list[str]] = defaultdict(list)
    for row in rows:
        doc_key, entry = expect(row, (int, str), "ACL entry")
        made[doc_key].append(entry)
    return {doc_key: tuple(entries) for doc_key, entries in made.items()}
