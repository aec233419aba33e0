"""Two tenants that use the same names for everything, principal and task included: nothing of one is another's."""

import pytest

from kbretrieval import Context
from kbretrieval.context import Policy, PreferenceLedger, Role, Scope, Selection, rerank_by_preference
from tests.context.place import ALICE, BOB, BODIES, Place

TWIN = Context("beta", ALICE.principal)


@pytest.fixture
def twin(place: Place) -> Scope:
    """A scope of the other tenant's alice, over documents, collection, purpose and task of the same names."""
    for doc_id in ("refund", "leave"):
        place.index.upsert(TWIN.tenant, doc_id, 1, "markdown", BODIES[doc_id], ["alice"])
        place.tasks.release(TWIN.tenant, doc_id, ["answering"])
    place.tasks.put_collection(TWIN.tenant, "policies", ["refund", "leave"])
    return place.scope(context=TWIN)


@pytest.mark.promise("CTX-29")
@pytest.mark.parametrize("who", [TWIN, BOB])
def test_calls_of_another_tenant_or_principal_are_on_another_account(place: Place, twin: Scope, who: Context) -> None:
    scope = place.scope()
    place.tasks.read(scope, "refund", 0, 4)
    before = place.tasks.account(scope)
    theirs = twin if who is TWIN else place.scope(context=who)
    place.tasks.read(theirs, "leave")
    assert place.tasks.account(scope) == before
    assert [call.phase for call in place.tasks.account(theirs).calls] == ["read"]


@pytest.mark.promise("CTX-66")
@pytest.mark.parametrize("who", [TWIN, BOB])
def test_snapshots_of_another_tenant_or_principal_are_not_listed(place: Place, twin: Scope, who: Context) -> None:
    mine = place.snapshot()
    theirs = place.snapshot(twin if who is TWIN else place.scope(context=who))
    listed = {
        name: place.tasks.snapshots(reader, "T-7", "answering") for name, reader in (("me", ALICE), ("they", who))
    }
    assert [row.id for row in listed["me"].rows] == [mine.id]
    assert [row.id for row in listed["they"].rows] == [theirs.id]


@pytest.mark.promise("CTX-55")
def test_signals_of_a_namesake_in_another_tenant_are_not_read(place: Place, twin: Scope) -> None:
    ledger, scope = PreferenceLedger(place.tasks), place.scope()
    shown = rerank_by_preference(place.tasks.search(twin, "退款期限"), [])
    ledger.record(twin, shown.receipt, shown.rows[0].key, "adopted")
    assert (len(ledger.signals(twin)), ledger.signals(scope)) == (1, ())


@pytest.mark.promise("CTX-43", "CTX-52")
def test_the_field_policy_of_another_tenant_governs_nothing_here(place: Place, twin: Scope) -> None:
    scope = place.scope()
    place.tasks.set_policy(TWIN.tenant, Policy(roles=(Role("reading", ("title",)),)))
    assert place.tasks.read(scope, "refund").text == place.tasks.read(place.scope(), "refund").text
    fields = place.scope(context=TWIN, selection=Selection(collections=["policies"], role="reading")).fields
    assert (fields, "text" in place.scope().fields) == (("title",), True)
