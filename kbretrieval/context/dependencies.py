"""What a snapshot depends on, checked now: its parts, structure, sources, bindings and policy (CTX-37)."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

from kbretrieval.context.records import find_scope
from kbretrieval.context.scope import Scope
from kbretrieval.context.snapshots import Stored
from kbretrieval.context.standing import ONLY_STALE, REFUSALS, Finding, document_finding, scope_finding, stand
from kbretrieval.errors import (
    ContextPolicyReauthRequired,
    ContextSnapshotDamaged,
    ContextUnknown,
    IndexCorrupt,
    KBError,
    SourcePurged,
    StateConflict,
)
from kbretrieval.identity import Context
from kbretrieval.results import Exported
from kbretrieval.store.commits import current_commit
from kbretrieval.store.connection import Connection


@dataclass(frozen=True, slots=True)
class Dependency(Exported):
    """One thing that was checked; `code` is None where it holds, else the refusal of new work that depends on it.

    kinds: `part` (a stored part and its digest), `structure` (the parts agree with each other), `scope` (the stored
    scope is the frozen one), `policy` (field policy and bindings of the scope), `source` (a document), `transaction`
    (the commit at which the task looked).
    """

    SCHEMA: ClassVar[str] = "kbretrieval.context.dependency/1"

    kind: str
    name: str
    code: str | None
    facts: str


@dataclass(frozen=True, slots=True)
class Report(Exported):
    """What was checked at one commit, and what was locked while it was.

    `intact`: every stored part has its digest, and they agree. `readable`: it may be replayed as history. `valid`: it
    may be delivered.
    """

    SCHEMA: ClassVar[str] = "kbretrieval.context.report/1"

    snapshot: str
    sha256: str
    commit: int
    locked: str
    dependencies: tuple[Dependency, ...]
    intact: bool
    readable: bool
    valid: bool

    @property
    def codes(self) -> tuple[str, ...]:
        """The codes of what does not hold, each once, in the order in which they decide."""
        return _codes(self.dependencies)

    @property
    def reading_codes(self) -> tuple[str, ...]:
        """The codes that forbid even reading it again as history."""
        return tuple(code for code in self.codes if code not in ONLY_STALE)

    def refusal(self) -> StateConflict | None:
        """Return the first refusal of new work, or None."""
        found = next((item for item in self.dependencies if item.code), None)
        return None if found is None or found.code is None else REFUSALS[found.code](found.facts)


def _codes(dependencies: Sequence[Dependency]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(item.code for item in dependencies if item.code))


def examined(connection: Connection, stored: Stored, context: Context | None, locked: str) -> Report:
    """Check everything that a snapshot depends on; inside one transaction, `locked` says of which kind.

    Rights are those of `context`, or where none asks, of the context that was frozen.
    """
    found = tuple(_dependencies(connection, stored, context))
    return Report(
        snapshot=stored.id,
        sha256=stored.row.sha256,
        commit=current_commit(connection),
        locked=locked,
        dependencies=found,
        intact=not stored.damaged,
        readable=set(_codes(found)) <= ONLY_STALE,
        valid=not _codes(found),
    )


def _dependencies(connection: Connection, stored: Stored, context: Context | None) -> Iterator[Dependency]:
    yield from _parts(stored)
    if stored.damaged:
        return
    try:
        scope = stored.scope()
    except ContextPolicyReauthRequired as error:
        yield Dependency("policy", stored.row.scope_id, error.code, error.facts)
        return
    yield _scope(connection, scope)
    doc_ids = sorted({item.doc_id for item in stored.items()})
    now = stand(connection, scope, context or scope.context(), doc_ids)
    yield _made("policy", f"version {scope.policy_version}", scope_finding(scope, now))
    for doc_id in doc_ids:
        yield _made("source", doc_id, document_finding(scope, doc_id, now))
    head = current_commit(connection)
    behind = head < max(scope.as_of, stored.row.frozen_at)
    facts = f"frozen at commit {stored.row.frozen_at}, {head} stored"
    yield Dependency("transaction", f"as of {scope.as_of}", ContextSnapshotDamaged.code if behind else None, facts)


def _parts(stored: Stored) -> Iterator[Dependency]:
    for part in stored.parts:
        name = f"{part.kind} {part.number}"
        code = ContextSnapshotDamaged.code if name in stored.damaged else None
        if code is None and part.reason:
            code = SourcePurged.code
        yield Dependency("part", name, code, f"sha256 {part.sha256[:8]} frozen")
    for name in stored.damaged:
        if name in ("hash", "row"):
            yield Dependency("part", name, ContextSnapshotDamaged.code, f"sha256 {stored.row.sha256[:8]} frozen")
    if set(stored.damaged) <= {"structure"}:
        code = ContextSnapshotDamaged.code if stored.damaged else None
        yield Dependency("structure", "intervals", code, f"{len(stored.parts)} parts frozen")


def _scope(connection: Connection, scope: Scope) -> Dependency:
    """Compare the frozen scope with the one that was stored when it was authorised."""
    facts = f"sha256 {scope.sha256[:8]} frozen"
    try:
        same = find_scope(connection, scope.id).sha256 == scope.sha256
    except (ContextUnknown, ContextPolicyReauthRequired, IndexCorrupt) as error:
        return Dependency("scope", scope.id, _state_code(error), facts)
    return Dependency("scope", scope.id, None if same else ContextSnapshotDamaged.code, facts)


def _state_code(error: KBError) -> str:
    return error.code if isinstance(error, ContextPolicyReauthRequired) else ContextSnapshotDamaged.code


def _made(kind: str, name: str, finding: Finding | None) -> Dependency:
    if finding is None:
        return Dependency(kind, name, None, "holds as it was bound")
    return Dependency(kind, name, finding.code, finding.facts)
