"""The ledger of preferences: whose signal, about what, where it stood, under which ranking (CTX-55, CTX-59, CTX-60)."""

from dataclasses import replace
from typing import Any

import pytest

from kbretrieval.context import PreferenceLedger, Reranked, Scope, Signal, TaskContexts, rerank_by_preference
from tests.context.place import ALICE, BOB, ENDS, Place
from tests.unit.doubles import code_of, error_of

QUERY = "退款期限年假"


def shown_to(place: Place, scope: Scope) -> Reranked:
    """What the caller of a scope is shown, with the signals noted so far."""
    return rerank_by_preference(place.tasks.search(scope, QUERY), PreferenceLedger(place.tasks).signals(scope))


@pytest.mark.promise("CTX-55", "CTX-59")
def test_a_line_says_who_did_what_where_and_under_which_ranking(place: Place) -> None:
    ledger, scope = PreferenceLedger(place.tasks), place.scope()
    made = shown_to(place, scope)
    kinds = ("picked", "rejected", "consumed", "adopted")
    noted = [ledger.record(scope, made.receipt, made.rows[1].key, kind) for kind in kinds]
    about, generation = made.rows[1].document_key, place.tasks.search(scope, QUERY).contract_sha256
    assert noted == [Signal("acme", "alice", about, kind, 2, generation, "preference/1") for kind in kinds]
    assert ledger.signals(scope) == tuple(noted)
    placed = next(item for item in shown_to(place, scope).receipt.placed if item.about == about)
    assert (placed.counts.picked, placed.counts.rejected, placed.counts.consumed, placed.counts.adopted) == (1, 1, 1, 1)
    assert (placed.counts.seen, placed.weak, placed.strong) == (0, 0.0, 2 / 3)


@pytest.mark.promise("CTX-56")
def test_the_position_and_version_are_those_that_the_reader_saw(place: Place) -> None:
    ledger, scope = PreferenceLedger(place.tasks), place.scope()
    found = place.tasks.search(scope, QUERY)
    last = found.rows[-1]
    before = rerank_by_preference(found, [], version="preference-off/1")
    first = ledger.record(scope, before.receipt, last.key, "adopted")
    assert (first.position, first.weights_version) == (len(found.rows), "preference-off/1")
    # A channel that weighed nothing ranks first what alone has a preference, among rows that are equally relevant.
    level = replace(found, rows=tuple(replace(row, fused=last.fused) for row in found.rows))
    again = rerank_by_preference(level, ledger.signals(scope))
    second = ledger.record(scope, again.receipt, last.key, "picked")
    assert (second.position, second.weights_version) == (1, "preference/1")
    stale = replace(again.receipt, version="preference/0")
    assert code_of(ledger.record, scope, stale, last.key, "picked") == "context_input_invalid"
    assert len(ledger.signals(scope)) == 2


@pytest.mark.promise("CTX-55")
def test_signals_move_their_callers_rankings_alone(place: Place) -> None:
    ledger, mine, yours = PreferenceLedger(place.tasks), place.scope(), place.scope(context=BOB)
    plain = shown_to(place, yours)
    made = shown_to(place, mine)
    ledger.record(mine, made.receipt, made.rows[-1].key, "adopted")
    assert len(ledger.signals(mine)) == 1
    assert ledger.signals(yours) == ()
    assert replace(shown_to(place, yours).receipt, scope="") == replace(plain.receipt, scope="")


@pytest.mark.promise("CTX-55")
def test_signals_outlive_the_task_and_the_program_and_stop_at_the_scope(place: Place) -> None:
    scope = place.scope()
    made = shown_to(place, scope)
    for row in made.rows:
        PreferenceLedger(place.tasks).record(scope, made.receipt, row.key, "picked")
    again = PreferenceLedger(TaskContexts(place.index))
    later = place.scope(task="T-8")
    assert {signal.about for signal in again.signals(later)} == {"doc:refund", "doc:leave"}
    assert {signal.about for signal in again.signals(place.tasks.narrow(later, documents=["leave"]))} == {"doc:leave"}


@pytest.mark.promise("CTX-60")
@pytest.mark.parametrize("code", ENDS)
def test_a_receipt_notes_nothing_about_what_may_not_be_used_any_more(place: Place, code: str) -> None:
    ledger, scope = PreferenceLedger(place.tasks), place.scope()
    made = shown_to(place, scope)
    key = next(row.key for row in made.rows if row.doc_id == "refund")
    ENDS[code](place)
    error = error_of(ledger.record, scope, made.receipt, key, "consumed")
    assert error is not None and error.code == code
    assert "refund" not in str(error)
    assert place.index._engine.connection.run("SELECT count(*) FROM context_signals") == [(0,)]


@pytest.mark.promise("CTX-60")
def test_a_forged_receipt_or_scope_notes_nothing(place: Place) -> None:
    ledger, scope, other = PreferenceLedger(place.tasks), place.scope(), place.scope(task="T-8")
    made = shown_to(place, scope)
    first = made.receipt.placed[0]

    def noted(scope: Any, receipt: Any, key: str = first.key, kind: Any = "picked") -> str | None:
        return code_of(ledger.record, scope, receipt, key, kind)

    secret = replace(made.receipt, placed=(replace(first, about="doc:secret"),))
    assert noted(scope, secret) == "context_out_of_scope"
    assert noted(replace(scope, principal="bob"), made.receipt) == "context_scope_altered"
    assert noted(other, made.receipt) == "context_input_invalid"
    assert noted(scope, made) == "context_input_invalid"
    assert noted(scope, made.receipt, key="slice:0") == "context_input_invalid"
    assert noted(scope, made.receipt, kind="liked") == "context_input_invalid"
    assert noted(scope, replace(made.receipt, placed=(replace(first, place=51),))) == "context_input_invalid"
    assert noted(scope, replace(made.receipt, placed=(first, first))) == "context_input_invalid"
    assert ledger.signals(scope) == ()


@pytest.mark.promise("CTX-60")
def test_the_ledger_of_a_scope_that_holds_no_more_is_not_read(place: Place) -> None:
    ledger, scope = PreferenceLedger(place.tasks), place.scope()
    assert scope.context() == ALICE
    ENDS["context_policy_reauth_required"](place)
    assert code_of(ledger.signals, scope) == "context_policy_reauth_required"


@pytest.mark.parametrize("change", ["kind = 'liked'", "position = 0", "principal = 'alice', position = 99"])
def test_a_damaged_line_is_found(place: Place, change: str) -> None:
    ledger, scope = PreferenceLedger(place.tasks), place.scope()
    made = shown_to(place, scope)
    ledger.record(scope, made.receipt, made.rows[0].key, "picked")
    place.index._engine.connection.run(f"UPDATE context_signals SET {change}")
    assert code_of(ledger.signals, scope) == "index_corrupt"
