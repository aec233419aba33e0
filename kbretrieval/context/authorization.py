"""Authorising a scope and narrowing it (CTX-1…CTX-3, CTX-41, CTX-42, CTX-51)."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from kbretrieval.context.bindings import members_of, present_policy, released_for
from kbretrieval.context.budget import Budget
from kbretrieval.context.policy import PolicyVersion
from kbretrieval.context.records import find_scope, insert_scope
from kbretrieval.context.scope import Binding, Bound, Refused, Scope
from kbretrieval.context.selection import MAX_DOCUMENTS, Selection
from kbretrieval.context.standing import Standing, refuse, scope_finding, stand
from kbretrieval.errors import (
    ContextAccessWithdrawn,
    ContextAclChanged,
    ContextBindingChanged,
    ContextBudgetInvalid,
    ContextInputInvalid,
    ContextNotReleased,
    ContextOutOfScope,
    ContextRevisionChanged,
    ContextScopeAltered,
    ContextScopeNotNarrower,
    ContextTooLarge,
)
from kbretrieval.identity import Context
from kbretrieval.store.commits import current_commit
from kbretrieval.store.connection import Connection
from kbretrieval.store.extents import Sheet, sheets_of


@dataclass(frozen=True, slots=True)
class Request:
    """What is asked for, checked: who, for which task and purpose, from which collections, at which commit."""

    context: Context
    task: str
    purpose: str
    selection: Selection
    budget: Budget
    as_of: int | None


@dataclass(frozen=True, slots=True)
class _View:
    """What the store says at the moment of authorisation."""

    as_of: int
    members: dict[str, dict[str, int]]
    released: frozenset[str]
    sheets: dict[str, Sheet]


def authorize(connection: Connection, request: Request) -> Scope:
    """Freeze what a task may read, in one transaction, and store it."""
    context, chosen = request.context, request.selection
    with connection.write():
        policy, fields = _allowed(connection, request)
        view, wanted = _viewed(connection, request)
        documents, refused = _sorted_out(view, wanted, named=chosen.documents is not None)
        scope = Scope(
            id="",
            sha256="",
            parent=None,
            tenant=context.tenant,
            principal=context.principal,
            groups=context.groups,
            task=request.task,
            purpose=request.purpose,
            role=chosen.role,
            fields=fields,
            as_of=view.as_of,
            policy_version=policy.version,
            policy_sha256=policy.sha256,
            bindings=_bindings(view.members, documents),
            documents=documents,
            refused=refused,
            budget=request.budget,
        ).sealed()
        return replace(scope, id=insert_scope(connection, scope))


def _allowed(connection: Connection, request: Request) -> tuple[PolicyVersion, tuple[str, ...]]:
    """Return the present policy and the fields of the role; a budget beyond its limits is refused."""
    policy = present_policy(connection, request.context.tenant)
    fields = policy.policy.fields_of(request.selection.role)
    if fields is None:
        raise ContextInputInvalid(f"role: one of {len(policy.policy.roles)} roles is required, another given")
    excess = request.budget.excess(policy.policy.limits)
    if excess:
        raise ContextBudgetInvalid(f"{excess} by policy version {policy.version}")
    return policy, fields


def _viewed(connection: Connection, request: Request) -> tuple[_View, list[str]]:
    context, chosen, head = request.context, request.selection, current_commit(connection)
    as_of = head if request.as_of is None else request.as_of
    if as_of > head:
        raise ContextInputInvalid(f"as_of: a commit up to {head} is required, {as_of} given")
    members = members_of(connection, context.tenant, chosen.collections)
    wanted = _wanted(members, chosen.documents)
    released = released_for(connection, context.tenant, request.purpose, wanted)
    return _View(as_of, members, released, sheets_of(connection, context, wanted)), wanted


def _wanted(members: dict[str, dict[str, int]], documents: Sequence[str] | None) -> list[str]:
    named = sorted({doc_id for held in members.values() for doc_id in held} if documents is None else set(documents))
    if len(named) > MAX_DOCUMENTS:
        raise ContextTooLarge(f"at most {MAX_DOCUMENTS} documents are allowed in a scope, {len(named)} selected")
    return named


def _sorted_out(view: _View, wanted: Iterable[str], named: bool) -> tuple[tuple[Bound, ...], tuple[Refused, ...]]:
    """Return what enters the scope, and what does not with its code.

    A document that the caller may not read is named only if the caller named it, and under the code of one that does
    not exist.
    """
    documents, refused, unseen = [], [], Counter[str]()
    for doc_id in wanted:
        found = _entry(view, doc_id)
        if isinstance(found, Bound):
            documents.append(found)
        elif found == ContextOutOfScope.code and not named:
            unseen[found] += 1
        else:
            refused.append(Refused(found, doc_id, 1))
    refused += [Refused(code, None, count) for code, count in sorted(unseen.items())]
    return tuple(documents), tuple(refused)


def _entry(view: _View, doc_id: str) -> Bound | str:
    sheet = view.sheets.get(doc_id)
    held = tuple(sorted(name for name, members in view.members.items() if doc_id in members))
    if sheet is None or not sheet.readable or not held:
        return ContextOutOfScope.code
    if doc_id not in view.released:
        return ContextNotReleased.code
    if sheet.content_commit > view.as_of:
        return ContextRevisionChanged.code
    if sheet.acl_commit > view.as_of:
        return ContextAclChanged.code
    since = tuple(name for name in held if view.members[name][doc_id] <= view.as_of)
    if not since:
        return ContextBindingChanged.code
    return Bound(doc_id, sheet.revision, sheet.acl_revision, sheet.sha256, since)


def _bindings(members: dict[str, dict[str, int]], documents: Sequence[Bound]) -> tuple[Binding, ...]:
    count = Counter(name for bound in documents for name in bound.collections)
    return tuple(Binding(name, count[name] if held else None) for name, held in sorted(members.items()))


def stored_scope(connection: Connection, given: Scope) -> Scope:
    """Return the stored scope that a caller's scope is; one that differs from it is `context_scope_altered`."""
    if type(given) is not Scope:
        raise ContextInputInvalid(f"a Scope is required, {type(given).__name__} given")
    stored = find_scope(connection, given.id)
    if given != stored:
        raise ContextScopeAltered("the scope as it was stored is required, another given")
    return stored


def fetched_scope(connection: Connection, scope_id: object, context: Context) -> Scope:
    """Return a stored scope of the caller who asks now, if that context still has every group that was frozen."""
    with connection.read():
        found = find_scope(connection, scope_id, owner=(context.tenant, context.principal))
    lost = set(found.groups) - set(context.groups)
    if lost:
        raise ContextAccessWithdrawn(f"{len(found.groups)} groups frozen, {len(lost)} of them not given")
    return found


def usable(connection: Connection, scope: Scope, doc_ids: Sequence[str]) -> Standing:
    """Return what holds now of some documents; raise what makes the whole scope unusable."""
    now = stand(connection, scope, scope.context(), doc_ids)
    refuse(scope_finding(scope, now))
    return now


def narrowed(connection: Connection, given: Scope, documents: Sequence[str] | None, budget: Budget | None) -> Scope:
    """Return a stored scope with fewer documents or a smaller budget (CTX-1); whatever is wider is refused."""
    with connection.write():
        scope = stored_scope(connection, given)
        usable(connection, scope, ())
        kept = scope.documents
        if documents is not None:
            missing = set(documents) - {bound.doc_id for bound in scope.documents}
            if missing:
                raise ContextScopeNotNarrower(f"{len(missing)} of {len(documents)} documents given are not bound")
            kept = tuple(bound for bound in scope.documents if bound.doc_id in documents)
        excess = budget.excess(scope.budget) if budget else None
        if excess:
            raise ContextScopeNotNarrower(excess)
        count = Counter(name for bound in kept for name in bound.collections)
        bindings = tuple(
            item if item.documents is None else replace(item, documents=count[item.collection])
            for item in scope.bindings
        )
        made = replace(
            scope, id="", parent=scope.id, documents=kept, bindings=bindings, budget=budget or scope.budget
        ).sealed()
        return replace(made, id=insert_scope(connection, made))
