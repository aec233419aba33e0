"""Publication of what was made of a snapshot: checked and written down in one transaction (CTX-48)."""

from dataclasses import dataclass
from typing import ClassVar

from kbretrieval.context.account import attempted
from kbretrieval.context.canonical import utf8_bytes
from kbretrieval.context.delivery import owned
from kbretrieval.context.dependencies import examined
from kbretrieval.context.records import Spent, insert_publication
from kbretrieval.context.scope import Scope
from kbretrieval.context.snapshots import Stored
from kbretrieval.context.vouchers import fits
from kbretrieval.errors import ContextInputInvalid, ContextOutOfScope, KBError
from kbretrieval.identity import Context
from kbretrieval.projection import digest
from kbretrieval.results import Exported
from kbretrieval.store.commits import current_commit
from kbretrieval.store.connection import Connection


@dataclass(frozen=True, slots=True)
class Publication(Exported):
    """A text was published for a collection while its basis held, at `commit`. The text itself is not kept."""

    SCHEMA: ClassVar[str] = "kbretrieval.context.publication/1"

    id: str
    call: str
    snapshot: str
    snapshot_sha256: str
    collection: str
    text_sha256: str
    text_bytes: int
    commit: int


def checked_text(text: object) -> tuple[str, int]:
    """Return the digest and size of a text to be published, or raise `context_input_invalid`."""
    if not fits(text, str) or not text:
        raise ContextInputInvalid(
            "text: a string that is not empty, without lone surrogates, is required, another given"
        )
    return digest(str(text)), utf8_bytes(str(text))


def publish(
    connection: Connection, snapshot_id: object, context: Context, collection: str, text: tuple[str, int]
) -> Publication:
    """Check principal, collection and every dependency, and write, in one write transaction."""
    with connection.write():
        stored, scope = owned(connection, snapshot_id, context)
        outcome = attempted(
            connection,
            scope,
            "publish",
            lambda: (Spent(0, 0), _written(connection, stored, scope, context, collection, text)),
        )
    if isinstance(outcome, KBError):
        raise outcome
    call, (name, commit) = outcome
    return Publication(name, call, stored.id, stored.row.sha256, collection, *text, commit)


def _written(
    connection: Connection, stored: Stored, scope: Scope, context: Context, collection: str, text: tuple[str, int]
) -> tuple[str, int]:
    if collection not in [item.collection for item in scope.bindings]:
        raise ContextOutOfScope(f"one of {len(scope.bindings)} collections of the scope is required, another given")
    refusal = examined(connection, stored, context, "write transaction").refusal()
    if refusal is not None:
        raise refusal
    commit = current_commit(connection)
    return insert_publication(connection, stored.row, collection, text, commit), commit
