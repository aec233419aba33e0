"""What administrators bind: members of collections, purposes of documents, versions of the field policy.

Each change is a commit of the store (CON-6), so that a task's as-of commit orders bindings and documents alike. What is
set already is no change.
"""

import json
from collections.abc import Sequence
from typing import Any

from kbretrieval.context.canonical import canonical
from kbretrieval.context.policy import DEFAULT_POLICY, Policy, PolicyVersion, policy_from, versioned
from kbretrieval.errors import IndexCorrupt
from kbretrieval.store.commits import current_commit, next_commit
from kbretrieval.store.connection import Connection
from kbretrieval.store.documents import expect


def put_collection(connection: Connection, tenant: str, name: str, doc_ids: Sequence[str]) -> int:
    """Replace the members of a collection and return the store's commit; members that stay keep theirs."""
    with connection.write():
        stored = set(members_of(connection, tenant, [name])[name])
        if stored == set(doc_ids):
            return current_commit(connection)
        commit = next_commit(connection, "context.collection", tenant, name, *doc_ids)
        gone, new = sorted(stored - set(doc_ids)), sorted(set(doc_ids) - stored)
        connection.run_many(
            "DELETE FROM context_collections WHERE tenant = ? AND name = ? AND doc_id = ?",
            [(tenant, name, doc_id) for doc_id in gone],
        )
        connection.run_many(
            "INSERT INTO context_collections VALUES (?, ?, ?, ?)", [(tenant, name, doc_id, commit) for doc_id in new]
        )
        return commit


def members_of(connection: Connection, tenant: str, names: Sequence[str]) -> dict[str, dict[str, int]]:
    """Return collection → member → the commit that put it there; a collection without members is empty."""
    rows = connection.run(
        "SELECT name, doc_id, commit_number FROM context_collections"
        " WHERE tenant = ? AND name IN (SELECT value FROM json_each(?)) ORDER BY name, doc_id",
        (tenant, _dumped(names)),
    )
    made: dict[str, dict[str, int]] = {name: {} for name in names}
    for row in rows:
        name, doc_id, commit = expect(row, (str, str, int), "collection")
        made[name][doc_id] = commit
    return made


def put_release(connection: Connection, tenant: str, doc_id: str, purposes: Sequence[str]) -> int:
    """Replace the purposes for which a document is released, and return the store's commit."""
    with connection.write():
        rows = connection.run(
            "SELECT purpose FROM context_releases WHERE tenant = ? AND doc_id = ? ORDER BY purpose", (tenant, doc_id)
        )
        if [purpose for (purpose,) in rows] == list(purposes):
            return current_commit(connection)
        commit = next_commit(connection, "context.release", tenant, doc_id, *purposes)
        connection.run("DELETE FROM context_releases WHERE tenant = ? AND doc_id = ?", (tenant, doc_id))
        connection.run_many(
            "INSERT INTO context_releases VALUES (?, ?, ?)", [(tenant, doc_id, purpose) for purpose in purposes]
        )
        return commit


def released_for(connection: Connection, tenant: str, purpose: str, doc_ids: Sequence[str]) -> frozenset[str]:
    """Return those of the documents that are released for a purpose."""
    rows = connection.run(
        "SELECT doc_id FROM context_releases WHERE tenant = ? AND purpose = ?"
        " AND doc_id IN (SELECT value FROM json_each(?))",
        (tenant, purpose, _dumped(doc_ids)),
    )
    return frozenset(doc_id for (doc_id,) in rows)


def put_policy(connection: Connection, tenant: str, policy: Policy) -> PolicyVersion:
    """Store a policy as the tenant's next version, unless it is the present one already."""
    with connection.write():
        present = present_policy(connection, tenant)
        if present.version and present.policy == policy:
            return present
        made = versioned(present.version + 1, policy)
        next_commit(connection, "context.policy", tenant, made.version, made.sha256)
        connection.run(
            "INSERT INTO context_policies VALUES (?, ?, ?, ?)",
            (tenant, made.version, made.sha256, canonical(policy.to_dict())),
        )
        return made


def present_policy(connection: Connection, tenant: str) -> PolicyVersion:
    """Return the tenant's latest policy; the default, as version 0, where none was set."""
    rows = connection.run(
        "SELECT version, sha256, body FROM context_policies WHERE tenant = ? ORDER BY version DESC LIMIT 1", (tenant,)
    )
    if not rows:
        return versioned(0, DEFAULT_POLICY)
    version, sha256, body = expect(rows[0], (int, str, str), "field policy")
    made = versioned(version, policy_from(_loaded(body)))
    if made.sha256 != sha256:
        raise IndexCorrupt("a stored field policy does not have its digest")
    return made


def _loaded(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise IndexCorrupt("a stored field policy is no JSON") from None


def _dumped(names: Sequence[str]) -> str:
    return json.dumps(list(names), ensure_ascii=False)
