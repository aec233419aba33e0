"""A scope: the frozen permission of one task to read (CTX-1, CTX-2). It can be narrowed and never widened."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from kbretrieval.context.budget import Budget
from kbretrieval.context.canonical import canonical
from kbretrieval.errors import ContextPolicyReauthRequired
from kbretrieval.identity import Context
from kbretrieval.projection import digest
from kbretrieval.results import Exported


@dataclass(frozen=True, slots=True)
class Bound(Exported):
    """A document as the scope froze it, and the collections through which it is bound."""

    SCHEMA: ClassVar[str] = "kbretrieval.context.bound/1"

    doc_id: str
    revision: int
    acl_revision: int
    document_sha256: str
    collections: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Binding(Exported):
    """How many documents of a collection are bound; None says explicitly that nothing was in it (CTX-51)."""

    SCHEMA: ClassVar[str] = "kbretrieval.context.binding/1"

    collection: str
    documents: int | None


@dataclass(frozen=True, slots=True)
class Refused(Exported):
    """Documents that did not enter the scope, by code (CTX-3).

    `doc_id` is None for what this caller may not know of: absent, deleted and forbidden members look the same.
    """

    SCHEMA: ClassVar[str] = "kbretrieval.context.refused/1"

    code: str
    doc_id: str | None
    count: int


@dataclass(frozen=True, slots=True)
class Scope(Exported):
    """What a task may read, for what, as of which commit, under which policy and budget.

    `id` names the stored scope, `sha256` is the digest of everything else; each call compares both with the store.
    """

    SCHEMA: ClassVar[str] = "kbretrieval.context.scope/1"

    id: str
    sha256: str
    parent: str | None
    tenant: str
    principal: str
    groups: tuple[str, ...]
    task: str
    purpose: str
    role: str
    fields: tuple[str, ...]
    as_of: int
    policy_version: int
    policy_sha256: str
    bindings: tuple[Binding, ...]
    documents: tuple[Bound, ...]
    refused: tuple[Refused, ...]
    budget: Budget

    def context(self) -> Context:
        """Return who asked when the scope was authorised."""
        return Context(self.tenant, self.principal, self.groups)

    def bound(self, doc_id: str) -> Bound | None:
        """Return a document as it was frozen, None where the scope does not bind it."""
        return next((item for item in self.documents if item.doc_id == doc_id), None)

    def body(self) -> str:
        """Return the canonical text that is stored and hashed: everything but `id` and `sha256`."""
        return canonical({name: value for name, value in self.to_dict().items() if name not in ("id", "sha256")})

    def sealed(self) -> "Scope":
        """Return the scope with the digest of its body."""
        return replace(self, sha256=digest(self.body()))


def _plain(kind: type[Any], value: Mapping[str, Any]) -> Any:
    if value["schema"] != kind.SCHEMA:
        raise KeyError("schema")
    given = {name: tuple(v) if isinstance(v, list) else v for name, v in value.items() if name != "schema"}
    return kind(**given)


def scope_from(scope_id: str, sha256: str, body: Mapping[str, Any]) -> Scope:
    """Return the scope that was stored; one of another structure must be authorised anew (CTX-31, CTX-43)."""
    found = body.get("schema")
    if found != Scope.SCHEMA:
        shown = found[:60] if isinstance(found, str) else "another structure"
        raise ContextPolicyReauthRequired(f"{Scope.SCHEMA} is required, {shown} stored")
    try:
        made: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value for name, value in body.items()
        }
        del made["schema"]
        for name, kind in (("bindings", Binding), ("documents", Bound), ("refused", Refused)):
            made[name] = tuple(_plain(kind, item) for item in body[name])
        made["budget"] = _plain(Budget, body["budget"])
        return Scope(id=scope_id, sha256=sha256, **made)
    except (KeyError, TypeError):
        raise ContextPolicyReauthRequired(f"{Scope.SCHEMA} is required, another structure stored") from None
