"""How much a store holds, tenant by tenant: counted by SQLite, no text read."""

from dataclasses import dataclass
from typing import ClassVar

from kbretrieval.results import Exported
from kbretrieval.store.connection import Connection
from kbretrieval.store.documents import expect


@dataclass(frozen=True, slots=True)
class TenantCounts(Exported):
    """Documents of one tenant, live and deleted, and the chunks of the live ones in the serving generation."""

    SCHEMA: ClassVar[str] = "kbretrieval.tenant_counts/1"

    tenant: str
    live: int
    tombstones: int
    chunks: int


def tenant_counts(connection: Connection) -> tuple[TenantCounts, ...]:
    """Return the counts of every tenant, by its name; inside a transaction."""
    rows = connection.run(
        "SELECT d.tenant, sum(d.live), sum(1 - d.live),"
        " (SELECT count(*) FROM chunks c WHERE c.doc_key IN (SELECT doc_key FROM documents WHERE tenant = d.tenant))"
        " FROM documents d GROUP BY d.tenant ORDER BY d.tenant"
    )
    return tuple(TenantCounts(*expect(row, (str, int, int, int), "count")) for row in rows)
