"""Freezing a package: each part is made again from the stored material and compared, never believed (CTX-32…CTX-34)."""

from kbretrieval.context.account import reserved
from kbretrieval.context.assembly import assembled
from kbretrieval.context.authorization import stored_scope, usable
from kbretrieval.context.canonical import canonical_digest, utf8_bytes
from kbretrieval.context.material import Planned, planned
from kbretrieval.context.package import Item, Package
from kbretrieval.context.records import PartRow, Spent, insert_snapshot, loaded
from kbretrieval.context.rendering import SEPARATOR
from kbretrieval.context.scope import Scope
from kbretrieval.context.selection import Piece
from kbretrieval.context.snapshots import (
    Snapshot,
    fragment_part,
    header_of,
    json_part,
    snapshot_hash,
    stored_snapshot,
)
from kbretrieval.context.standing import Finding
from kbretrieval.context.vouchers import checked_voucher
from kbretrieval.errors import ContextPackageAltered, ContextTooLarge
from kbretrieval.store.commits import current_commit
from kbretrieval.store.connection import Connection
from kbretrieval.store.contract import Contract, read_contract


def freeze(connection: Connection, given: Scope, package: Package) -> Snapshot:
    """Store a package as a snapshot, in the transaction that checks it once more."""
    package = checked_voucher(package, Package, "package")
    with connection.read():
        scope = stored_scope(connection, given)
    _, made = reserved(connection, scope, "freeze", lambda: _frozen(connection, scope, package))
    return made


def _frozen(connection: Connection, scope: Scope, package: Package) -> tuple[Spent, Snapshot]:
    if (package.scope, package.scope_sha256) != (scope.id, scope.sha256):
        raise ContextPackageAltered("a package of this scope is required, one of another given")
    pieces = _planned_again(connection, scope, package)
    text, items = assembled(connection, scope, pieces)
    if (text, utf8_bytes(text), items) != (package.text, package.bytes, package.items):
        raise ContextPackageAltered(f"{len(items)} items as they are bound are required, others given")
    parts = _parts(scope, read_contract(connection), items, text, current_commit(connection))
    name = insert_snapshot(connection, scope, current_commit(connection), snapshot_hash(parts), parts)
    return Spent(0, 0), stored_snapshot(connection, name).shown()


def _planned_again(connection: Connection, scope: Scope, package: Package) -> list[Planned]:
    wanted = [(_piece(item), item.must) for item in package.items]
    now = usable(connection, scope, sorted({piece.doc_id for piece, _ in wanted}))
    made = []
    for piece, must in wanted:
        found = planned(connection, scope, now, piece, must)
        if isinstance(found, Finding):
            raise found.error()
        made.append(found)
    size = sum(piece.bytes for piece in made) + max(0, len(made) - 1) * len(SEPARATOR)
    if size > scope.budget.input_bytes:
        raise ContextTooLarge(f"{size} bytes given, {scope.budget.input_bytes} allowed in one package")
    return made


def _piece(item: Item) -> Piece:
    return Piece(item.doc_id, item.source_start, item.source_end if item.source_end != item.source_start else None)


def _parts(scope: Scope, contract: Contract, items: tuple[Item, ...], text: str, frozen_at: int) -> list[PartRow]:
    used = {item.doc_id for item in items}
    structure = [item.to_dict() | {"title": None} for item in items]
    projection = {
        "role": scope.role,
        "fields": scope.fields,
        "version": contract.projection,
        "contract_sha256": canonical_digest(contract.to_dict()),
        "policy_version": scope.policy_version,
        "policy_sha256": scope.policy_sha256,
        "separator": SEPARATOR,
    }
    plain = (
        ("header", header_of(scope, frozen_at)),
        ("scope", loaded(scope.body(), "scope")),
        ("sources", [bound.to_dict() for bound in scope.documents if bound.doc_id in used]),
        ("structure", structure),
        ("projection", projection),
    )
    parts = [json_part(number, kind, value) for number, (kind, value) in enumerate(plain)]
    for number, item in enumerate(items, len(parts)):
        end = item.end - (len(SEPARATOR) if item is not items[-1] else 0)
        parts.append(fragment_part(number, item.doc_id, text[item.start : end]))
    return parts
