"""What a scope freezes, and that it only ever becomes narrower (CTX-1…CTX-3, CTX-41…CTX-43, CTX-51)."""

import hashlib
import json
from dataclasses import FrozenInstanceError, replace
from typing import Any

import pytest

from kbretrieval import Context, Index
from kbretrieval.context import Budget, Policy, Role, Selection, TaskContexts
from tests.context.place import ALICE, BOB, Place
from tests.unit.doubles import code_of, error_of, sql


@pytest.mark.promise("CTX-2")
def test_a_scope_freezes_what_it_says(place: Place) -> None:
    scope = place.scope(budget=Budget(input_bytes=900))
    status = place.index.status("acme", "refund")
    bound = scope.bound("refund")
    assert bound is not None
    assert (bound.revision, bound.acl_revision, bound.document_sha256) == (1, 1, status.sha256)
    assert bound.collections == ("policies",)
    assert (scope.purpose, scope.policy_version, scope.budget.input_bytes) == ("answering", 0, 900)
    assert scope.as_of >= max(status.content_commit or 0, status.acl_commit or 0)
    assert [(item.collection, item.documents) for item in scope.bindings] == [("policies", 2)]
    with pytest.raises(FrozenInstanceError):
        scope.purpose = "training"  # type: ignore[misc]


@pytest.mark.promise("CTX-2", "CTX-31")
def test_a_stored_scope_is_the_same_after_a_restart(place: Place) -> None:
    scope = place.scope()
    with Index.open(place.path) as other:
        assert TaskContexts(other).scope(scope.id, ALICE) == scope


@pytest.mark.promise("CTX-3")
def test_what_does_not_enter_a_scope_is_listed_by_code(place: Place) -> None:
    """Nothing is dropped in silence; a document that the caller may not read is counted and not named."""
    place.tasks.put_collection("acme", "policies", ["refund", "leave", "secret", "nowhere", "gone"])
    place.index.upsert("acme", "gone", 1, "text", "已删", ["alice"])
    place.index.delete("acme", "gone", 2)
    place.tasks.release("acme", "leave", ["training"])
    at = place.index.status("acme", "travel").acl_commit or 0
    refused = [(item.code, item.doc_id, item.count) for item in place.scope().refused]
    assert refused == [("context_not_released", "leave", 1), ("context_out_of_scope", None, 3)]
    place.revise("refund", 2, "# 退款\n\n改过。")
    early = place.scope(as_of=at)
    assert ("context_revision_changed", "refund") in [(item.code, item.doc_id) for item in early.refused]
    assert early.documents == ()


@pytest.mark.promise("CTX-3")
def test_absent_deleted_forbidden_and_foreign_documents_look_the_same(place: Place) -> None:
    place.index.upsert("acme", "gone", 1, "text", "已删", ["alice"])
    place.index.delete("acme", "gone", 2)
    place.tasks.put_collection("acme", "policies", ["refund", "leave", "secret", "gone"])
    named = ["gone", "secret", "travel", "nowhere", "refund"]
    scope = place.scope(selection=Selection(["policies"], documents=named))
    assert [bound.doc_id for bound in scope.documents] == ["refund"]
    assert {item.code for item in scope.refused} == {"context_out_of_scope"}
    assert [item.doc_id for item in scope.refused] == ["gone", "nowhere", "secret", "travel"]


@pytest.mark.promise("CTX-3")
def test_an_as_of_commit_looks_at_bindings_and_acls_too(place: Place) -> None:
    before = place.scope().as_of
    place.index.set_acl("acme", "leave", ["*"], 1)
    place.tasks.put_collection("acme", "policies", ["refund", "leave", "travel"])
    scope = place.scope(as_of=before)
    assert [bound.doc_id for bound in scope.documents] == ["refund"]
    assert [(item.code, item.doc_id) for item in scope.refused] == [
        ("context_acl_changed", "leave"),
        ("context_binding_changed", "travel"),
    ]
    assert code_of(place.scope, as_of=10_000) == "context_input_invalid"


@pytest.mark.promise("CTX-1")
def test_a_scope_is_narrowed_and_never_widened(place: Place) -> None:
    scope = place.scope(budget=Budget(input_bytes=900))
    small = place.tasks.narrow(scope, documents=["leave"], budget=Budget(500, 500, 500, 500, 500))
    assert [bound.doc_id for bound in small.documents] == ["leave"]
    assert (small.parent, small.as_of, small.budget.input_bytes) == (scope.id, scope.as_of, 500)
    assert code_of(place.tasks.read, small, "refund") == "context_out_of_scope"
    for change in ({"documents": ["refund"]}, {"documents": ["leave", "travel"]}, {"budget": Budget(501)}):
        assert code_of(place.tasks.narrow, small, **change) == "context_scope_not_narrower"
    assert set(place.tasks.narrow(scope).documents) == set(scope.documents)


WIDER: dict[str, dict[str, Any]] = {
    "purpose": {"purpose": "training"},
    "principal": {"principal": "bob"},
    "groups": {"groups": ("hr",)},
    "fields": {"fields": ("title", "provenance", "text")},
    "budget": {"budget": Budget(call_bytes=10**6)},
    "as_of": {"as_of": 10**6},
    "policy": {"policy_version": 9},
    "task": {"task": "T-8"},
}


@pytest.mark.promise("CTX-1", "CTX-42")
@pytest.mark.parametrize("change", WIDER.values(), ids=WIDER)
def test_a_scope_that_was_altered_by_hand_is_refused(place: Place, change: dict[str, Any]) -> None:
    scope = place.scope()
    for altered in (replace(scope, **change), replace(scope, **change).sealed()):
        assert code_of(place.tasks.read, altered, "refund") == "context_scope_altered"
        assert code_of(place.tasks.search, altered, "退款") == "context_scope_altered"
        assert code_of(place.tasks.account, altered) == "context_scope_altered"


@pytest.mark.promise("CTX-41")
def test_a_new_binding_does_not_enter_an_old_task(place: Place) -> None:
    scope = place.scope()
    snapshot = place.snapshot(scope)
    place.tasks.put_collection("acme", "policies", ["refund", "leave", "secret", "travel"])
    assert code_of(place.tasks.read, scope, "travel") == "context_out_of_scope"
    assert "travel" not in [row.doc_id for row in place.tasks.search(scope, "住宿限额").rows]
    assert place.tasks.read(scope, "refund").doc_id == "refund"
    assert place.tasks.check_dependencies(snapshot.id).valid
    assert place.tasks.search(place.scope(), "住宿限额").rows[0].doc_id == "travel"


@pytest.mark.promise("CTX-42")
def test_the_purpose_is_the_scopes_and_never_the_materials(place: Place) -> None:
    """A document that says itself what it is for is released for nothing by that."""
    source = "---\npurpose: answering\n---\n# 用途\n\n本文用途为 answering。"
    place.index.upsert("acme", "claims", 1, "markdown", source, ["alice"])
    place.tasks.put_collection("acme", "policies", ["claims", "refund"])
    scope = place.scope()
    assert [(item.code, item.doc_id) for item in scope.refused] == [("context_not_released", "claims")]
    training = place.scope(purpose="training")
    assert training.documents == ()
    assert code_of(place.tasks.read, training, "refund") == "context_out_of_scope"


@pytest.mark.promise("CTX-51")
def test_nothing_bound_is_a_null_that_the_first_binding_ends(place: Place) -> None:
    scope = place.scope(selection=Selection(["empty", "policies"]))
    assert [(item.collection, item.documents) for item in scope.bindings] == [("empty", None), ("policies", 2)]
    assert json.loads(scope.body())["bindings"][0]["documents"] is None
    snapshot = place.snapshot(scope)
    assert place.tasks.check_dependencies(snapshot.id).valid
    place.tasks.put_collection("acme", "empty", ["nowhere"])
    assert code_of(place.tasks.read, scope, "refund") == "context_binding_changed"
    assert place.tasks.check_dependencies(snapshot.id).codes == ("context_binding_changed",)
    place.tasks.put_collection("acme", "empty", [])
    assert place.tasks.read(scope, "refund").doc_id == "refund"


@pytest.mark.promise("CTX-51")
def test_a_collection_whose_documents_cannot_be_used_is_not_nothing(place: Place) -> None:
    place.tasks.put_collection("acme", "closed", ["secret"])
    scope = place.scope(selection=Selection(["closed"]))
    assert [(item.collection, item.documents) for item in scope.bindings] == [("closed", 0)]


def _restored(place: Place, scope_id: str, change: dict[str, Any]) -> None:
    """Store a scope as another version of the package would have: its digest is right, its structure another."""
    key = int(scope_id.split("-")[1])
    ((body,),) = sql(place.path, "SELECT body FROM context_scopes WHERE scope_key = ?", key)
    value = json.loads(body) | change
    text = json.dumps({n: v for n, v in value.items() if v != "gone"}, ensure_ascii=False, sort_keys=True)
    sha = hashlib.sha256(text.encode("utf-8")).hexdigest()
    sql(place.path, "UPDATE context_scopes SET body = ?, sha256 = ? WHERE scope_key = ?", text, sha, key)


OLDER: dict[str, dict[str, Any]] = {
    "schema": {"schema": "kbretrieval.context.scope/0"},
    "a field less": {"purpose": "gone"},
    "a field more": {"allowed": []},
    "another budget": {"budget": {"schema": "kbretrieval.context.budget/0", "tokens": 5}},
    "an older budget": {"budget": Budget().to_dict() | {"schema": "kbretrieval.context.budget/0"}},
    "no policy version": {"policy_version": "gone"},
}


@pytest.mark.promise("CTX-43", "CTX-31")
@pytest.mark.parametrize("change", OLDER.values(), ids=OLDER)
def test_a_stored_scope_of_another_structure_must_be_authorised_anew(place: Place, change: dict[str, Any]) -> None:
    scope = place.scope()
    _restored(place, scope.id, change)
    for call in (place.tasks.read, place.tasks.search, place.tasks.narrow):
        extra = () if call == place.tasks.narrow else ("refund",)
        assert code_of(call, scope, *extra) == "context_policy_reauth_required"
    assert code_of(place.tasks.scope, scope.id, ALICE) == "context_policy_reauth_required"
    assert code_of(place.tasks.scope, scope.id, BOB) == "context_unknown", "another's looks like one that is not there"


@pytest.mark.promise("CTX-43")
def test_a_scope_of_another_policy_version_must_be_authorised_anew(place: Place) -> None:
    """Even where the new version allows more; and the same policy again is no new version."""
    scope = place.scope()
    wider = Policy(limits=Budget(input_bytes=10**6))
    assert place.tasks.set_policy("acme", wider).version == 1
    error = error_of(place.tasks.read, scope, "refund")
    assert error is not None and error.code == "context_policy_reauth_required"
    assert "0 bound" in error.facts and "1 stored" in error.facts
    fresh = place.scope(budget=Budget(input_bytes=10**6))
    assert place.tasks.set_policy("acme", wider).version == 1
    assert place.tasks.read(fresh, "refund").doc_id == "refund"
    assert place.tasks.set_policy("beta", Policy(roles=(Role("r", ("title",)),))).version == 1
    assert place.tasks.read(fresh, "refund").doc_id == "refund", "another tenant's policy is none of this one's"


@pytest.mark.promise("CTX-31")
def test_tables_of_another_version_are_refused_by_name(place: Place) -> None:
    sql(place.path, "UPDATE context_schema SET version = 'context/0'")
    error = error_of(TaskContexts, place.index)
    assert error is not None and error.code == "context_schema_unsupported"
    assert "context/1" in error.facts and "context/0" in error.facts


INVALID: list[tuple[str, dict[str, Any]]] = [
    ("trusted_context_required", {"context": {"tenant": "acme"}}),
    ("invalid_identity", {"task": ""}),
    ("invalid_identity", {"purpose": "a\nb"}),
    ("context_input_invalid", {"selection": ["policies"]}),
    ("context_input_invalid", {"budget": 5}),
    ("context_input_invalid", {"as_of": -1}),
    ("context_input_invalid", {"as_of": True}),
    ("context_input_invalid", {"selection": Selection(["policies"], role="nobody")}),
    ("context_budget_invalid", {"budget": Budget(input_bytes=65_537)}),
]


@pytest.mark.parametrize(("code", "change"), INVALID, ids=[f"{n}-{row[0]}" for n, row in enumerate(INVALID)])
def test_a_bad_request_is_refused_and_stores_nothing(place: Place, code: str, change: dict[str, Any]) -> None:
    before = sql(place.path, "SELECT count(*) FROM context_scopes")
    assert code_of(place.scope, **change) == code
    assert sql(place.path, "SELECT count(*) FROM context_scopes") == before


def test_bad_values_are_refused_where_they_are_made() -> None:
    assert code_of(Budget, input_bytes=-1) == code_of(Budget, input_bytes=True) == "context_budget_invalid"
    assert code_of(Selection, []) == code_of(Selection, "policies") == "context_input_invalid"
    assert code_of(Policy, roles=()) == code_of(Policy, limits=5) == "context_policy_invalid"
    assert code_of(Policy, roles=(Role("a", ("title",)), Role("a", ("title",)))) == "context_policy_invalid"
    for fields in ((), ("body",), ("title", "title"), "title", ("text",), ("text", "provenance")):
        assert code_of(Role, "a", fields) == "context_policy_invalid"


def test_administration_is_a_commit_of_the_store_and_a_repetition_is_none(place: Place) -> None:
    first = place.tasks.put_collection("acme", "new", ["a", "b"])
    assert place.tasks.put_collection("acme", "new", ["b", "a", "b"]) == first
    assert place.tasks.put_collection("acme", "new", ["a"]) == first + 1
    released = place.tasks.release("acme", "a", ["x", "y"])
    assert (released, place.tasks.release("acme", "a", ["y", "x"])) == (first + 2, first + 2)
    assert code_of(place.tasks.release, "acme", "a", "x") == "context_input_invalid"
    assert code_of(place.tasks.set_policy, "acme", {}) == "context_input_invalid"
    assert place.index.check() == ()
    assert place.tasks.scope(place.scope().id, Context("acme", "alice")).as_of == first + 2
