"""Tables of task contexts, beside the index in the same file; made by the first `TaskContexts` of a file.

context_schema        the version of these tables
context_collections   members of a tenant's collections, each with the commit that put it there
context_releases      purposes for which a document is released
context_policies      every version of a tenant's field policy
context_scopes        scopes as they were authorised, with the digest of their body
context_calls         one row a call: what it cost, and the code of a refusal; no content
context_snapshots     frozen packages: whose, for what, and the digest over all parts
context_parts         the parts of each snapshot (its shape stands in `store.fragments`, where a purge finds it)
context_deliveries    what was sent: which snapshot, at which commit, the digest of the payload
context_consumptions  what was really used of a snapshot
context_publications  what was published on the basis of a snapshot, by its digest
context_signals       the ledger of preferences: who did what with which document, and where it stood

Scopes, snapshots, receipts and signals are never changed; only a purge empties fragments.
"""

from kbretrieval.errors import ContextSchemaUnsupported
from kbretrieval.store.connection import Connection
from kbretrieval.store.fragments import CREATE_PARTS

TABLES_VERSION = "context/1"

STATEMENTS = (
    "CREATE TABLE context_schema (version TEXT NOT NULL) STRICT",
    """CREATE TABLE context_collections (
        tenant TEXT NOT NULL,
        name TEXT NOT NULL,
        doc_id TEXT NOT NULL,
        commit_number INTEGER NOT NULL,
        PRIMARY KEY (tenant, name, doc_id)
    ) STRICT, WITHOUT ROWID""",
    """CREATE TABLE context_releases (
        tenant TEXT NOT NULL,
        doc_id TEXT NOT NULL,
        purpose TEXT NOT NULL,
        PRIMARY KEY (tenant, doc_id, purpose)
    ) STRICT, WITHOUT ROWID""",
    """CREATE TABLE context_policies (
        tenant TEXT NOT NULL,
        version INTEGER NOT NULL,
        sha256 TEXT NOT NULL,
        body TEXT NOT NULL,
        PRIMARY KEY (tenant, version)
    ) STRICT, WITHOUT ROWID""",
    """CREATE TABLE context_scopes (
        scope_key INTEGER PRIMARY KEY AUTOINCREMENT,
        tenant TEXT NOT NULL,
        principal TEXT NOT NULL,
        sha256 TEXT NOT NULL,
        body TEXT NOT NULL
    ) STRICT""",
    """CREATE TABLE context_calls (
        call_key INTEGER PRIMARY KEY AUTOINCREMENT,
        tenant TEXT NOT NULL,
        principal TEXT NOT NULL,
        task TEXT NOT NULL,
        scope_id TEXT NOT NULL,
        phase TEXT NOT NULL,
        input_bytes INTEGER NOT NULL,
        output_tokens INTEGER NOT NULL,
        code TEXT NOT NULL
    ) STRICT""",
    "CREATE INDEX context_calls_of_task ON context_calls (tenant, principal, task)",
    """CREATE TABLE context_snapshots (
        snapshot_key INTEGER PRIMARY KEY AUTOINCREMENT,
        tenant TEXT NOT NULL,
        principal TEXT NOT NULL,
        task TEXT NOT NULL,
        purpose TEXT NOT NULL,
        scope_id TEXT NOT NULL,
        frozen_at INTEGER NOT NULL,
        sha256 TEXT NOT NULL
    ) STRICT""",
    "CREATE INDEX context_snapshots_of_task ON context_snapshots (tenant, principal, task, purpose)",
    CREATE_PARTS,
    """CREATE TABLE context_deliveries (
        delivery_key INTEGER PRIMARY KEY AUTOINCREMENT,
        snapshot_key INTEGER NOT NULL,
        snapshot_sha256 TEXT NOT NULL,
        payload_sha256 TEXT NOT NULL,
        payload_bytes INTEGER NOT NULL,
        commit_number INTEGER NOT NULL
    ) STRICT""",
    """CREATE TABLE context_consumptions (
        consumption_key INTEGER PRIMARY KEY AUTOINCREMENT,
        snapshot_key INTEGER NOT NULL,
        snapshot_sha256 TEXT NOT NULL,
        fragments TEXT NOT NULL,
        code TEXT NOT NULL,
        commit_number INTEGER NOT NULL
    ) STRICT""",
    """CREATE TABLE context_publications (
        publication_key INTEGER PRIMARY KEY AUTOINCREMENT,
        snapshot_key INTEGER NOT NULL,
        snapshot_sha256 TEXT NOT NULL,
        collection TEXT NOT NULL,
        text_sha256 TEXT NOT NULL,
        text_bytes INTEGER NOT NULL,
        commit_number INTEGER NOT NULL
    ) STRICT""",
    """CREATE TABLE context_signals (
        signal_key INTEGER PRIMARY KEY AUTOINCREMENT,
        tenant TEXT NOT NULL,
        principal TEXT NOT NULL,
        about TEXT NOT NULL,
        kind TEXT NOT NULL,
        position INTEGER NOT NULL,
        generation TEXT NOT NULL,
        weights_version TEXT NOT NULL,
        commit_number INTEGER NOT NULL
    ) STRICT""",
    "CREATE INDEX context_signals_of_caller ON context_signals (tenant, principal, about)",
)


def ensure_tables(connection: Connection) -> None:
    """Make the tables where there are none; others than these are `context_schema_unsupported` (CTX-31)."""
    with connection.read():
        if _agree(connection):
            return
    with connection.write():
        if _agree(connection):  # another process may have made them in between
            return
        for statement in STATEMENTS:
            connection.run(statement)
        connection.run("INSERT INTO context_schema VALUES (?)", (TABLES_VERSION,))


def _agree(connection: Connection) -> bool:
    """Tell whether the tables are there, in this version."""
    if not connection.run("SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'context_schema'"):
        return False
    rows = connection.run("SELECT version FROM context_schema")
    if rows != [(TABLES_VERSION,)]:
        found = rows[0][0] if rows else "none"
        raise ContextSchemaUnsupported(f"tables of {TABLES_VERSION} are required, {str(found)[:40]} stored")
    return True
