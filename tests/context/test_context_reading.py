"""Bounded reads, cursors that work nowhere else, and an account that forgets nothing (CTX-26…CTX-30)."""

from typing import Any

import pytest

from kbretrieval import Index
from kbretrieval.context import Budget, TaskContexts, reading
from kbretrieval.context.account import REFUSAL_BYTES
from kbretrieval.errors import IndexCorrupt
from tests.context.place import ALICE, BOB, REFUND, Place
from tests.unit.doubles import code_of, sql

SMALL = Budget(call_bytes=30)
TEXT = "# 家\n\n" + "甲👨‍👩‍👧乙e\u0301" * 30


def _whole(place: Place, scope: Any, doc_id: str) -> list[Any]:
    parts = [place.tasks.read(scope, doc_id)]
    while parts[-1].has_more:
        parts.append(place.tasks.read(scope, doc_id, cursor=parts[-1].next_cursor))
    return parts


@pytest.mark.promise("CTX-26", "CTX-68")
def test_an_open_read_is_bounded_and_can_be_gone_on_with(place: Place) -> None:
    scope = place.scope(budget=SMALL)
    parts = _whole(place, scope, "refund")
    assert "".join(part.text for part in parts) == REFUND
    assert [part.start for part in parts] == [0, *[part.end for part in parts[:-1]]]
    assert all(len(part.text.encode("utf-8")) <= 30 for part in parts)
    assert all((part.next_cursor is not None, part.omitted_reason) == (True, "call_bytes") for part in parts[:-1])
    assert (parts[-1].next_cursor, parts[-1].omitted_reason, parts[-1].has_more) == (None, None, False)
    assert len(parts) == 4


@pytest.mark.promise("CTX-26")
def test_an_open_read_does_not_end_inside_a_cluster(place: Place) -> None:
    place.index.upsert("acme", "family", 1, "markdown", TEXT, ["alice"])
    place.tasks.release("acme", "family", ["answering"])
    place.tasks.put_collection("acme", "policies", ["family"])
    parts = _whole(place, place.scope(budget=SMALL), "family")
    body = "".join(part.text for part in parts)
    assert body.startswith("# 家")
    assert all(part.text[0] not in "\u200d\u0301👩👧" for part in parts)
    assert code_of(place.tasks.read, place.scope(budget=Budget(call_bytes=1)), "family", 2) == "context_too_large"


@pytest.mark.promise("CTX-27")
def test_a_cursor_works_for_its_task_scope_revision_and_projection_alone(place: Place) -> None:
    scope = place.scope(budget=SMALL)
    cursor = place.tasks.read(scope, "refund").next_cursor
    assert cursor is not None
    assert place.tasks.read(scope, "refund", cursor=cursor).start > 0
    twin = place.scope(budget=SMALL)
    assert twin.sha256 == scope.sha256
    others = {
        "scope": twin,
        "task": place.scope(task="T-8", budget=SMALL),
        "purpose and scope": place.tasks.narrow(scope, documents=["refund"]),
        "budget": place.scope(budget=Budget(call_bytes=31)),
        "caller": place.scope(context=BOB, budget=SMALL),
    }
    for name, other in others.items():
        assert code_of(place.tasks.read, other, "refund", cursor=cursor) == "context_cursor_invalid", name
    assert code_of(place.tasks.read, scope, "leave", cursor=cursor) == "context_cursor_invalid"
    position, seal = cursor.split(".")
    for forged in (f"{int(position) + 1}.{seal}", f"{position}.{'0' * 32}", "", "x", seal):
        assert code_of(place.tasks.read, scope, "refund", cursor=forged) == "context_cursor_invalid", forged
    assert code_of(place.tasks.read, scope, "refund", start=1, cursor=cursor) == "context_input_invalid"
    place.revise("refund", 2, REFUND + "\n\n补。")
    fresh = place.scope(budget=SMALL)
    assert code_of(place.tasks.read, fresh, "refund", cursor=cursor) == "context_cursor_invalid"


@pytest.mark.promise("CTX-22", "CTX-24", "CTX-29")
@pytest.mark.parametrize("call_bytes", [0, 2])
def test_a_read_that_could_give_nothing_is_refused_before_it_loads_and_costs(
    place: Place, monkeypatch: pytest.MonkeyPatch, call_bytes: int
) -> None:
    scope = place.scope(budget=Budget(call_bytes=call_bytes))
    monkeypatch.setattr(reading, "verified_document", lambda *_: pytest.fail("a body was loaded"))
    assert code_of(place.tasks.read, scope, "refund", 2) == "context_too_large"
    assert [call.input_bytes for call in place.tasks.account(scope).calls] == [REFUSAL_BYTES]


@pytest.mark.promise("CTX-28", "CTX-29")
def test_reads_are_limited_in_total_and_repeated_ones_cost(place: Place) -> None:
    scope = place.scope(budget=Budget(total_bytes=20))
    assert place.tasks.read(scope, "refund", 0, 4).text == "# 退款"
    assert place.tasks.read(scope, "refund", 0, 4).text == "# 退款"
    assert place.tasks.account(scope).input_left == 4
    assert code_of(place.tasks.read, scope, "refund", 0, 4) == "context_budget_exhausted"
    again = place.scope(budget=Budget(total_bytes=20))
    assert code_of(place.tasks.read, again, "refund", 0, 1) == "context_budget_exhausted", "a new scope is no new task"
    assert place.tasks.read(place.scope(task="T-8"), "refund", 0, 1).text == "#"


@pytest.mark.promise("CTX-29", "CTX-30")
def test_a_refusal_costs_and_keeps_its_code_and_no_content(place: Place) -> None:
    scope = place.scope()
    before = place.tasks.account(scope).input_bytes
    assert code_of(place.tasks.read, scope, "机密文档名zqx") == "context_out_of_scope"
    account = place.tasks.account(scope)
    call = account.calls[-1]
    assert (call.id, call.phase, call.input_bytes, call.code) == (
        "call-1",
        "read",
        REFUSAL_BYTES,
        "context_out_of_scope",
    )
    assert account.input_bytes == before + REFUSAL_BYTES
    assert "zqx" not in repr(account) and "zqx" not in repr(sql(place.path, "SELECT * FROM context_calls"))


@pytest.mark.promise("CTX-29")
def test_a_read_is_paid_before_it_loads_and_keeps_its_price_when_that_fails(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    scope = place.scope()

    def damaged(*_: object) -> None:
        (paid,) = sql(place.path, "SELECT input_bytes FROM context_calls ORDER BY call_key DESC LIMIT 1")[0]
        raise IndexCorrupt(f"{paid} bytes were paid before")

    monkeypatch.setattr("kbretrieval.context.reading.verified_document", damaged)
    assert code_of(place.tasks.read, scope, "refund", 0, 4) == "index_corrupt"
    call = place.tasks.account(scope).calls[-1]
    assert (call.input_bytes, call.code) == (8, "index_corrupt")
    monkeypatch.setattr("kbretrieval.context.assembly.verified_document", damaged)
    assert code_of(place.tasks.assemble, scope, must_read=["leave"]) == "index_corrupt"
    assert place.tasks.account(scope).calls[-1].code == "index_corrupt"


@pytest.mark.promise("CTX-29")
def test_a_restart_restores_the_last_total(place: Place) -> None:
    scope = place.scope()
    place.tasks.read(scope, "refund", 0, 4)
    place.tasks.assemble(scope, must_read=["leave"])
    assert code_of(place.tasks.read, scope, "travel") == "context_out_of_scope"
    account = place.tasks.account(scope)
    assert account.input_bytes > 8 + REFUSAL_BYTES
    with Index.open(place.path) as index:
        again = TaskContexts(index)
        assert again.account(again.scope(scope.id, ALICE)) == account


@pytest.mark.parametrize(("start", "end"), [(0, 10_000), (10_000, None), (10_000, 10_001)])
def test_a_stretch_beyond_the_end_is_refused(place: Place, start: int, end: int | None) -> None:
    assert code_of(place.tasks.read, place.scope(), "refund", start, end) == "context_input_invalid"
