"""Other tenants under the same names, and a file that was changed behind the package's back: each check alone holds.

The checks stand behind others that usually notice first, so each is met here by a change that only it can see.
"""

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from kbretrieval.context import Policy, Role, Selection
from kbretrieval.context.policy import versioned
from kbretrieval.projection import digest
from tests.context.place import ALICE, TENANT, Place
from tests.unit.doubles import code_of, sql

OTHER = "beta"
FORGED = "# 退款\n\n退款期限为签收后九十天。"


def stored(place: Place, column: str, table: str, where: str = "1") -> Any:
    return sql(place.path, f"SELECT {column} FROM {table} WHERE {where} LIMIT 1")[0][0]


@pytest.mark.promise("CTX-2")
def test_a_release_by_another_tenant_releases_nothing_here(place: Place) -> None:
    place.tasks.release(OTHER, "refund", ["answering"])
    place.tasks.release(TENANT, "refund", [])
    found = place.scope()
    assert "refund" not in [bound.doc_id for bound in found.documents]
    assert ("context_not_released", "refund") in [(item.code, item.doc_id) for item in found.refused]


@pytest.mark.promise("CTX-2")
def test_a_collection_of_another_tenant_adds_no_member_here(place: Place) -> None:
    before = [bound.doc_id for bound in place.scope().documents]
    place.tasks.put_collection(OTHER, "policies", ["travel"])
    assert [bound.doc_id for bound in place.scope().documents] == before
    assert "travel" not in before
    place.tasks.put_collection(OTHER, "policies", [])
    assert [bound.doc_id for bound in place.scope().documents] == before


@pytest.mark.promise("CTX-38")
def test_another_text_under_the_bound_revision_is_a_changed_document(place: Place) -> None:
    scope = place.scope()
    # Body and digest changed together, as a careful forger does: nothing but the bound digest still tells.
    sql(place.path, "UPDATE documents SET body = ?, sha256 = ? WHERE doc_id = 'refund'", FORGED, digest(FORGED))
    assert code_of(place.tasks.read, scope, "refund") == "context_revision_changed"


@pytest.mark.promise("CTX-38", "CTX-43")
def test_another_policy_under_the_bound_version_asks_for_a_new_authorisation(place: Place) -> None:
    place.tasks.set_policy(TENANT, Policy(roles=(Role("reading", ("title", "text")),)))
    scope = place.scope(selection=Selection(collections=["policies"], role="reading"))
    wider = Policy(roles=(Role("reading", ("title", "text", "provenance")),))
    made = versioned(scope.policy_version, wider)
    body = json.dumps(wider.to_dict(), ensure_ascii=False)
    sql(place.path, "UPDATE context_policies SET body = ?, sha256 = ?", body, made.sha256)
    assert code_of(place.tasks.read, scope, "refund") == "context_policy_reauth_required"


@pytest.mark.promise("CTX-43", "CTX-52")
def test_a_policy_that_is_not_its_digest_is_no_policy(place: Place) -> None:
    place.tasks.set_policy(TENANT, Policy(roles=(Role("reading", ("title",)),)))
    body = str(stored(place, "body", "context_policies"))
    assert '"title"' in body
    sql(place.path, "UPDATE context_policies SET body = ?", body.replace('"title"', '"title","text"', 1))
    asked = Selection(collections=["policies"], role="reading")
    assert code_of(place.scope, selection=asked) == "index_corrupt"


@pytest.mark.promise("CTX-12", "CTX-38")
@pytest.mark.parametrize("phase", ["read", "assemble"])
def test_a_body_that_is_not_its_digest_is_handed_out_by_no_phase(place: Place, phase: str) -> None:
    scope = place.scope()
    sql(place.path, "UPDATE documents SET body = ? WHERE doc_id = 'refund'", FORGED)
    calls: dict[str, Callable[[], object]] = {
        "read": lambda: place.tasks.read(scope, "refund"),
        "assemble": lambda: place.tasks.assemble(scope, must_read=["refund"]),
    }
    assert code_of(calls[phase]) == "index_corrupt"


@pytest.mark.promise("CTX-33")
def test_a_package_that_names_another_digest_of_its_scope_is_not_frozen(place: Place) -> None:
    scope = place.scope()
    package = replace(place.package(scope), scope_sha256="0" * 64)
    assert code_of(place.tasks.freeze, scope, package) == "context_package_altered"


@pytest.mark.promise("CTX-37")
def test_a_snapshot_whose_stored_scope_is_another_now_is_not_valid(place: Place) -> None:
    snapshot = place.snapshot()
    body = str(stored(place, "body", "context_scopes")).replace('"answering"', '"training"', 1)
    sql(place.path, "UPDATE context_scopes SET body = ?, sha256 = ?", body, digest(body))
    found = place.tasks.check_dependencies(snapshot.id)
    assert [(item.kind, item.code) for item in found.dependencies if item.code] == [
        ("scope", "context_snapshot_damaged")
    ]
    assert not found.valid


@pytest.mark.promise("CTX-37")
def test_a_file_older_than_the_snapshot_in_it_is_not_believed(place: Place) -> None:
    snapshot = place.snapshot()
    sql(place.path, "UPDATE counters SET value = ? WHERE name = 'commit'", snapshot.frozen_at - 1)
    found = place.tasks.check_dependencies(snapshot.id)
    wrong = [(item.kind, item.code) for item in found.dependencies if item.code]
    assert wrong == [("transaction", "context_snapshot_damaged")]
    assert not found.valid


@pytest.mark.promise("CTX-71")
def test_a_purge_leaves_the_fragments_of_a_document_that_another_tenant_deleted(place: Place) -> None:
    snapshot = place.snapshot()
    before = place.tasks.replay(snapshot.id, ALICE)
    place.index.upsert(OTHER, "refund", 1, "markdown", FORGED, ["carol"])
    place.index.delete(OTHER, "refund", 2)
    place.index.purge()
    after = place.tasks.replay(snapshot.id, ALICE)
    assert (after.text, after.reason, after.valid_now) == (before.text, None, True)
