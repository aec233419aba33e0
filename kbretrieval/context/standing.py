"""What still holds of a scope: one rule for search, assembly, reading, replay and delivery (CTX-38).

`stand` reads what the store says now, in the transaction of whoever asks; the findings are pure functions of that.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from kbretrieval.context.bindings import members_of, present_policy, released_for
from kbretrieval.context.policy import PolicyVersion
from kbretrieval.context.scope import Bound, Scope
from kbretrieval.errors import (
    ContextAccessWithdrawn,
    ContextAclChanged,
    ContextBindingChanged,
    ContextBindingWithdrawn,
    ContextNotReleased,
    ContextOutOfScope,
    ContextPolicyReauthRequired,
    ContextRevisionChanged,
    ContextSnapshotDamaged,
    ContextSourceDeleted,
    SourcePurged,
    StateConflict,
)
from kbretrieval.identity import Context
from kbretrieval.store.connection import Connection
from kbretrieval.store.extents import Sheet, sheets_of

REFUSALS: dict[str, type[StateConflict]] = {
    kind.code: kind
    for kind in (
        *(ContextAccessWithdrawn, ContextAclChanged, ContextBindingChanged, ContextBindingWithdrawn),
        *(ContextNotReleased, ContextOutOfScope, ContextPolicyReauthRequired, ContextRevisionChanged),
        *(ContextSnapshotDamaged, ContextSourceDeleted, SourcePurged),
    )
}

# What was read once may be read again as history when only these are found: the caller may still see the material,
# which has moved on (CTX-36). Every other finding refuses reading in every phase.
ONLY_STALE = frozenset({ContextRevisionChanged.code, ContextAclChanged.code, ContextBindingChanged.code})


@dataclass(frozen=True, slots=True)
class Finding:
    """Why something may not be used: the kind of refusal, and both facts."""

    kind: type[StateConflict]
    facts: str

    @property
    def code(self) -> str:
        """The stable code of the refusal."""
        return self.kind.code

    def error(self) -> StateConflict:
        """Return the refusal itself."""
        return self.kind(self.facts)


@dataclass(frozen=True, slots=True)
class Standing:
    """What the store says now about a scope and some of its documents."""

    policy: PolicyVersion
    members: dict[str, dict[str, int]]
    released: frozenset[str]
    sheets: dict[str, Sheet]


def stand(connection: Connection, scope: Scope, context: Context, doc_ids: Sequence[str]) -> Standing:
    """Read what the findings need; inside a transaction, as the context that asks now."""
    return Standing(
        policy=present_policy(connection, scope.tenant),
        members=members_of(connection, scope.tenant, [item.collection for item in scope.bindings]),
        released=released_for(connection, scope.tenant, scope.purpose, doc_ids),
        sheets=sheets_of(connection, context, doc_ids),
    )


def scope_finding(scope: Scope, now: Standing) -> Finding | None:
    """Return what makes the whole scope unusable: another policy version, or a first binding where there was none."""
    if (scope.policy_version, scope.policy_sha256) != (now.policy.version, now.policy.sha256):
        facts = f"policy version {scope.policy_version} bound, {now.policy.version} stored"
        return Finding(ContextPolicyReauthRequired, facts)
    for item in scope.bindings:
        if item.documents is None and now.members[item.collection]:
            return Finding(ContextBindingChanged, f"nothing bound, {len(now.members[item.collection])} documents now")
    return None


def document_finding(scope: Scope, doc_id: str, now: Standing) -> Finding | None:
    """Return the first thing that keeps a document from being used in a scope, or None."""
    return bound_finding(scope.bound(doc_id), now)


def bound_finding(bound: Bound | None, now: Standing) -> Finding | None:
    """Return the first thing that keeps a bound document from being used, or None; None given is one never bound.

    Deletion and lost rights come before what merely moved on.
    """
    if bound is None:
        return Finding(ContextOutOfScope, "a document that the scope binds is required, another given")
    doc_id, sheet = bound.doc_id, now.sheets.get(bound.doc_id)
    if sheet is None or not sheet.live:
        return Finding(ContextSourceDeleted, f"revision {bound.revision} bound, a deletion is stored")
    if not sheet.readable:
        return Finding(ContextAccessWithdrawn, f"ACL revision {bound.acl_revision} bound, no access now")
    if not any(doc_id in now.members.get(name, {}) for name in bound.collections):
        return Finding(ContextBindingWithdrawn, f"bound in {len(bound.collections)} collections, in 0 of them now")
    if doc_id not in now.released:
        return Finding(ContextNotReleased, "a release for the purpose of the scope is required, none stored")
    if sheet.acl_revision != bound.acl_revision:
        return Finding(ContextAclChanged, f"ACL revision {bound.acl_revision} bound, {sheet.acl_revision} stored")
    if (sheet.revision, sheet.sha256) != (bound.revision, bound.document_sha256):
        return Finding(ContextRevisionChanged, f"revision {bound.revision} bound, {sheet.revision} stored")
    return None


def refuse(finding: Finding | None) -> None:
    """Raise what was found, if anything was."""
    if finding is not None:
        raise finding.error()
