"""Quotations that outlive a change of their document: the table of snapshot parts, and how a purge empties it.

A snapshot of a task keeps what a task used, also when the document moves on. When the document was deleted, though,
`purge` must reach these copies like every other (DEL-5), so their table is known here.
"""

from kbretrieval.store.connection import Connection

FRAGMENT = "fragment"
PURGED = "source_purged"

# body: the part itself; of a fragment the text that was assembled from one document. reason: empty, or why body is.
CREATE_PARTS = """CREATE TABLE context_parts (
    snapshot_key INTEGER NOT NULL,
    number INTEGER NOT NULL,
    kind TEXT NOT NULL,
    tenant TEXT NOT NULL,
    doc_id TEXT NOT NULL,
    bytes INTEGER NOT NULL,
    sha256 TEXT NOT NULL,
    body TEXT NOT NULL,
    reason TEXT NOT NULL,
    PRIMARY KEY (snapshot_key, number)
) STRICT"""


def empty_fragments(connection: Connection) -> int:
    """Empty the fragments of deleted documents, keep their digests, say why; inside a write transaction (CTX-71).

    Returns how many were emptied; 0 where the file has no task contexts.
    """
    if not connection.run("SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'context_parts'"):
        return 0
    dead = (
        "kind = ? AND reason = '' AND EXISTS (SELECT 1 FROM documents d"
        " WHERE d.tenant = context_parts.tenant AND d.doc_id = context_parts.doc_id AND d.live = 0)"
    )
    (count,) = connection.run(f"SELECT count(*) FROM context_parts WHERE {dead}", (FRAGMENT,))[0]
    connection.run(f"UPDATE context_parts SET body = '', reason = ? WHERE {dead}", (PURGED, FRAGMENT))
    return int(count)
