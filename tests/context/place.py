"""What the tests of task contexts share: a place, the phases of a task, and the ways in which a right can end."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kbretrieval import Context, Index, KBError
from kbretrieval.context import Budget, Package, Policy, Role, Scope, Selection, Snapshot, TaskContexts

TENANT = "acme"
ALICE = Context(TENANT, "alice")
BOB = Context(TENANT, "bob")

REFUND = "# 退款\n\n退款期限为签收后七天。\n\n## 例外\n\n定制商品 SKU-2049 不予受理。"
LEAVE = "# 年假\n\n入职满一年，年假五天。"
TRAVEL = "# 差旅\n\n住宿每晚限额500元。"
SECRET = "# 薪酬\n\n调薪方案未公布，退款期限另议。"
BODIES = {"refund": REFUND, "leave": LEAVE, "travel": TRAVEL, "secret": SECRET}


@dataclass(frozen=True)
class Place:
    """An open index with its task contexts."""

    path: Path
    index: Index
    tasks: TaskContexts

    def scope(self, **changes: Any) -> Scope:
        """Authorise alice to answer from the collection of policies."""
        asked: dict[str, Any] = {"context": ALICE, "task": "T-7", "purpose": "answering"}
        asked |= {"selection": Selection(collections=["policies"]), "budget": Budget()}
        return self.tasks.authorize_scope(**(asked | changes))

    def package(self, scope: Scope) -> Package:
        """Assemble the refund policy, and the leave policy if it fits."""
        return self.tasks.assemble(scope, must_read=["refund"], optional=["leave"])

    def snapshot(self, scope: Scope | None = None) -> Snapshot:
        """Authorise, assemble and freeze."""
        scope = scope or self.scope()
        return self.tasks.freeze(scope, self.package(scope))

    def revise(self, doc_id: str, revision: int, source: str) -> None:
        """Store another revision of a document."""
        self.index.upsert(TENANT, doc_id, revision, "markdown", source, [])


@contextmanager
def opened_place(path: Path) -> Iterator[Place]:
    """Make and open the place; what it writes need not survive the machine."""
    with Index.open(path) as index:
        index._engine.connection.run("PRAGMA synchronous=OFF")
        tasks = TaskContexts(index)
        for doc_id, source in BODIES.items():
            index.upsert(TENANT, doc_id, 1, "markdown", source, ["bob"] if doc_id == "secret" else ["alice", "bob"])
            tasks.release(TENANT, doc_id, ["answering"])
        tasks.put_collection(TENANT, "policies", ["refund", "leave", "secret"])
        tasks.put_collection(TENANT, "trips", ["travel"])
        yield Place(path, index, tasks)


def _withdraw_access(place: Place) -> None:
    revision = place.index.status(TENANT, "refund").acl_revision
    assert revision is not None
    place.index.set_acl(TENANT, "refund", ["bob"], revision)


def _delete(place: Place) -> None:
    place.index.delete(TENANT, "refund", 2)


def _unbind(place: Place) -> None:
    place.tasks.put_collection(TENANT, "policies", ["leave", "secret"])


def _withdraw_release(place: Place) -> None:
    place.tasks.release(TENANT, "refund", ["training"])


def _change_policy(place: Place) -> None:
    place.tasks.set_policy(TENANT, Policy(roles=(Role("reading", ("title",)),)))


ENDS: dict[str, Callable[[Place], None]] = {
    "context_access_withdrawn": _withdraw_access,
    "context_source_deleted": _delete,
    "context_binding_withdrawn": _unbind,
    "context_not_released": _withdraw_release,
    "context_policy_reauth_required": _change_policy,
}
"""Every way in which the refund policy can go out of a scope, by the code that each phase then gives."""


def refusal(call: Callable[[], Any]) -> str | None:
    """Return the code under which a phase keeps the refund policy out, None if it hands it out.

    Phases speak in their own ways: an exception, a list of what is missing, a reason, or a count of what was left out.
    """
    try:
        made = call()
    except KBError as error:
        return next((code for _, doc_id, code in getattr(error, "missing", ()) if doc_id == "refund"), error.code)
    if hasattr(made, "rows"):
        code = next((item.code for item in made.left if item.what == "documents"), None)
        assert ("refund" in [row.doc_id for row in made.rows]) == (code is None)
        return code
    return next((item.code for item in getattr(made, "omitted", ())), None) or getattr(made, "reason", None)
