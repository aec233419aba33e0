"""Delivery: payload, envelope, output tokens, and consumption apart from it (CTX-21, CTX-28, CTX-45, CTX-50)."""

import json
from typing import Any

import pytest

from kbretrieval import Index
from kbretrieval.context import Budget, TaskContexts, delivery
from kbretrieval.store.connection import Connection
from tests.context.place import ALICE, BOB, ENDS, Place
from tests.unit.doubles import code_of, sql


def _text(place: Place, snapshot_id: str) -> str:
    return place.tasks.replay(snapshot_id, ALICE).text or ""


@pytest.mark.promise("CTX-45")
def test_check_and_mark_stand_in_one_write_transaction(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every statement of a delivery runs between one BEGIN IMMEDIATE and one COMMIT."""
    snapshot = place.snapshot()
    text = _text(place, snapshot.id)
    statements: list[str] = []
    original = Connection.run
    monkeypatch.setattr(Connection, "run", lambda self, *a: statements.append(a[0]) or original(self, *a))
    inserted = Connection.insert
    monkeypatch.setattr(Connection, "insert", lambda self, *a: statements.append(a[0]) or inserted(self, *a))
    place.tasks.deliver(snapshot.id, ALICE, text)
    assert statements[0] == "BEGIN IMMEDIATE" and statements[-1] == "COMMIT"
    assert sum(statement.startswith(("BEGIN", "COMMIT")) for statement in statements) == 2
    assert any("context_releases" in statement for statement in statements)
    assert any(statement.startswith("INSERT INTO context_deliveries") for statement in statements)


@pytest.mark.promise("CTX-45")
def test_a_payload_holds_the_text_in_one_piece(place: Place) -> None:
    snapshot = place.snapshot()
    text = _text(place, snapshot.id)
    assert "\n" in text
    fine = (
        text,
        "请回答：" + text + "完",
        json.dumps({"input": text}),
        json.dumps({"input": text}, ensure_ascii=False),
    )
    for payload in fine:
        receipt = place.tasks.deliver(snapshot.id, ALICE, payload)
        assert receipt.snapshot_sha256 == snapshot.sha256
        assert receipt.payload_bytes == len(payload.encode("utf-8"))
    for payload in ("", text[1:], text.replace("七", "九"), "x"):
        assert code_of(place.tasks.deliver, snapshot.id, ALICE, payload) == "context_payload_mismatch"
    for wrong in (b"x", None, "\ud800"):
        assert code_of(place.tasks.deliver, snapshot.id, ALICE, wrong) == "context_input_invalid"
    assert sql(place.path, "SELECT count(*) FROM context_deliveries") == [(len(fine),)]


@pytest.mark.promise("CTX-28")
def test_the_envelope_has_a_limit_of_its_own(place: Place) -> None:
    snapshot = place.snapshot(place.scope(budget=Budget(envelope_bytes=10)))
    text = _text(place, snapshot.id)
    assert place.tasks.deliver(snapshot.id, ALICE, "甲乙丙" + text).envelope_bytes == 9
    assert code_of(place.tasks.deliver, snapshot.id, ALICE, "甲乙丙丁" + text) == "context_too_large"


@pytest.mark.promise("CTX-21", "CTX-28", "CTX-45")
def test_output_tokens_are_an_account_of_their_own(place: Place) -> None:
    scope = place.scope(budget=Budget(output_tokens=100))
    snapshot = place.snapshot(scope)
    text, read = _text(place, snapshot.id), place.tasks.account(scope).input_bytes
    place.tasks.deliver(snapshot.id, ALICE, text, output_tokens=60)
    assert code_of(place.tasks.deliver, snapshot.id, ALICE, text, output_tokens=41) == "context_budget_exhausted"
    assert sql(place.path, "SELECT count(*) FROM context_deliveries") == [(1,)], "what is refused is not marked as sent"
    place.tasks.deliver(snapshot.id, ALICE, text, output_tokens=40)
    account = place.tasks.account(scope)
    assert (account.output_tokens, account.output_left) == (100, 0)
    assert account.input_bytes == read + 64, "one refusal; deliveries read nothing"
    assert code_of(place.tasks.deliver, snapshot.id, ALICE, text, output_tokens=-1) == "context_input_invalid"


@pytest.mark.promise("CTX-30", "CTX-47")
@pytest.mark.parametrize("code", ENDS)
def test_a_refused_delivery_marks_nothing_and_leaves_its_code(place: Place, code: str) -> None:
    scope = place.scope()
    snapshot = place.snapshot(scope)
    text = _text(place, snapshot.id)
    ENDS[code](place)
    assert code_of(place.tasks.deliver, snapshot.id, ALICE, text) == code
    assert sql(place.path, "SELECT count(*) FROM context_deliveries") == [(0,)]
    assert place.tasks.account(scope).calls[-1].code == code


@pytest.mark.promise("CTX-47", "CTX-39")
def test_what_was_delivered_before_a_revocation_stays_delivered(place: Place) -> None:
    snapshot = place.snapshot()
    receipt = place.tasks.deliver(snapshot.id, ALICE, _text(place, snapshot.id))
    place.index.set_acl("acme", "refund", ["bob"], 1)
    assert receipt.commit < (place.index.status("acme", "refund").acl_commit or 0)
    assert sql(place.path, "SELECT snapshot_sha256, commit_number FROM context_deliveries") == [
        (snapshot.sha256, receipt.commit)
    ]


@pytest.mark.promise("CTX-50")
def test_consumption_is_recorded_apart_from_deliverability(place: Place) -> None:
    snapshot = place.snapshot()
    before = place.tasks.record_consumption(snapshot.id, ALICE, [1, 0, 1])
    place.index.set_acl("acme", "refund", ["bob"], 1)
    after = place.tasks.record_consumption(snapshot.id, ALICE, [0])
    assert (before.fragments, before.deliverable, before.code) == ((0, 1), True, None)
    assert (after.fragments, after.deliverable, after.code) == ((0,), False, "context_access_withdrawn")
    assert before.snapshot_sha256 == after.snapshot_sha256 == snapshot.sha256
    rows = sql(place.path, "SELECT snapshot_sha256, fragments, code FROM context_consumptions ORDER BY 1, 3")
    assert rows == [(snapshot.sha256, "[0, 1]", ""), (snapshot.sha256, "[0]", "context_access_withdrawn")]
    for wrong in ([2], [-1], [True], "0", 0):
        assert code_of(place.tasks.record_consumption, snapshot.id, ALICE, wrong) == "context_input_invalid"


@pytest.mark.promise("CTX-48")
def test_a_publication_checks_principal_collection_and_basis(place: Place) -> None:
    """A stale basis, another's snapshot and a collection beyond the scope write nothing."""
    snapshot = place.snapshot()
    made = place.tasks.publish(snapshot.id, ALICE, "policies", "退款期限为七天。")
    assert (made.snapshot_sha256, made.collection, made.text_bytes) == (snapshot.sha256, "policies", 24)
    assert code_of(place.tasks.publish, snapshot.id, ALICE, "trips", "七天。") == "context_out_of_scope"
    assert code_of(place.tasks.publish, snapshot.id, BOB, "policies", "七天。") == "context_unknown"
    assert code_of(place.tasks.publish, snapshot.id, ALICE, "policies", "") == "context_input_invalid"
    place.revise("refund", 2, "# 退款\n\n十五天。")
    assert code_of(place.tasks.publish, snapshot.id, ALICE, "policies", "七天。") == "context_revision_changed"
    rows = sql(place.path, "SELECT snapshot_sha256, collection, text_sha256 FROM context_publications")
    assert rows == [(snapshot.sha256, "policies", made.text_sha256)]
    assert "七天" not in repr(sql(place.path, "SELECT * FROM context_publications"))


@pytest.mark.promise("CTX-48")
def test_a_publication_is_one_write_transaction(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    snapshot = place.snapshot()
    statements: list[str] = []
    original = Connection.run
    monkeypatch.setattr(Connection, "run", lambda self, *a: statements.append(a[0]) or original(self, *a))
    place.tasks.publish(snapshot.id, ALICE, "policies", "七天。")
    assert [statement for statement in statements if statement.startswith(("BEGIN", "COMMIT"))] == [
        "BEGIN IMMEDIATE",
        "COMMIT",
    ]


def test_a_delivery_that_cannot_write_is_none(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """A store error is no refusal of the task: it is passed on, and nothing is marked."""
    snapshot = place.snapshot()
    text = _text(place, snapshot.id)
    with Index.open(place.path) as other, other._engine.connection.write():
        place.index._engine.connection._wait_seconds = 0.0
        assert code_of(place.tasks.deliver, snapshot.id, ALICE, text) == "busy"
    place.index._engine.connection._wait_seconds = 5.0

    def fails(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(delivery, "marked", fails)
    with pytest.raises(KeyboardInterrupt):
        place.tasks.deliver(snapshot.id, ALICE, text)
    assert sql(place.path, "SELECT count(*) FROM context_deliveries") == [(0,)]
    assert TaskContexts(place.index).check_dependencies(snapshot.id).valid
