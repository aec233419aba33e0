"""One table of what goes out of scope, and every phase that has to notice it (CTX-38, CTX-39)."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from kbretrieval import Context
from kbretrieval.context import (
    Bound,
    Package,
    Question,
    Scope,
    Snapshot,
    assembly,
    open_material,
    reading,
    seal_material,
    search,
    separate_answers,
)
from tests.context.place import ALICE, BOB, ENDS, Place, refusal
from tests.unit.doubles import code_of

Phase = Callable[[Place, Scope, Package, Snapshot], Any]

PHASES: dict[str, Phase] = {
    "search": lambda at, scope, package, snapshot: at.tasks.search(scope, "退款期限"),
    "read": lambda at, scope, package, snapshot: at.tasks.read(scope, "refund"),
    "assemble must": lambda at, scope, package, snapshot: at.tasks.assemble(scope, must_read=["leave", "refund"]),
    "assemble optional": lambda at, scope, package, snapshot: at.tasks.assemble(scope, optional=["leave", "refund"]),
    "freeze": lambda at, scope, package, snapshot: at.tasks.freeze(scope, package),
    "replay": lambda at, scope, package, snapshot: at.tasks.replay(snapshot.id, ALICE),
    "deliver": lambda at, scope, package, snapshot: at.tasks.deliver(snapshot.id, ALICE, package.text),
    "publish": lambda at, scope, package, snapshot: at.tasks.publish(snapshot.id, ALICE, "policies", "七天。"),
}


@pytest.mark.promise("CTX-38", "CTX-39", "CTX-3")
@pytest.mark.parametrize("phase", PHASES)
@pytest.mark.parametrize("code", ENDS)
def test_every_phase_refuses_the_same_for_the_same_reason(place: Place, phase: str, code: str) -> None:
    scope = place.scope()
    package = place.package(scope)
    snapshot = place.tasks.freeze(scope, package)
    step = PHASES[phase]
    assert refusal(lambda: step(place, scope, package, snapshot)) is None
    ENDS[code](place)
    assert refusal(lambda: step(place, scope, package, snapshot)) == code
    assert code in place.tasks.check_dependencies(snapshot.id).codes


STEPS = ("search", "assemble", "freeze", "replay", "deliver", "publish")


def _step(place: Place, name: str, made: dict[str, Any]) -> Any:
    """Do one step of a task with what the steps before it made."""
    tasks, scope = place.tasks, made["scope"]
    if name == "search":
        return tasks.search(scope, "退款期限")
    if name == "assemble":
        return tasks.assemble(scope, must_read=[made["search"].rows[0]])
    if name == "freeze":
        return tasks.freeze(scope, made["assemble"])
    if name == "replay":
        return tasks.replay(made["freeze"].id, ALICE)
    if name == "deliver":
        return tasks.deliver(made["freeze"].id, ALICE, made["replay"].text)
    return tasks.publish(made["freeze"].id, ALICE, "policies", "七天。")


@pytest.mark.promise("CTX-38", "CTX-39")
@pytest.mark.parametrize("before", range(len(STEPS)), ids=STEPS)
@pytest.mark.parametrize("code", ENDS)
def test_a_revocation_between_any_two_steps_stops_the_next(place: Place, before: int, code: str) -> None:
    made: dict[str, Any] = {"scope": place.scope()}
    for name in STEPS[:before]:
        made[name] = _step(place, name, made)
    assert made.get("search") is None or made["search"].rows[0].doc_id == "refund"
    ENDS[code](place)
    assert refusal(lambda: _step(place, STEPS[before], made)) == code


@pytest.mark.promise("CTX-38", "CTX-12")
@pytest.mark.parametrize("phase", ["search", "read", "assemble must"])
@pytest.mark.parametrize("code", ENDS)
def test_a_revocation_between_paying_and_loading_stops_the_load(
    place: Place, monkeypatch: pytest.MonkeyPatch, phase: str, code: str
) -> None:
    """What was checked before the text was loaded is checked again with it."""
    scope = place.scope()
    module = {"search": search, "read": reading, "assemble must": assembly}[phase]
    original, ended = module.paid, []

    def paid(*arguments: Any) -> Any:
        if not ended:
            ended.append(ENDS[code](place))
        return original(*arguments)

    monkeypatch.setattr(module, "paid", paid)
    assert refusal(lambda: PHASES[phase](place, scope, None, None)) == code  # type: ignore[arg-type]
    assert ended
    assert place.tasks.account(scope).calls[-1].code in (code, None)


@pytest.mark.promise("CTX-38", "CTX-1")
def test_a_document_that_was_never_bound_is_out_of_scope_in_every_phase(place: Place) -> None:
    """Another collection's, forbidden and absent documents: one code, and nothing tells them apart."""
    scope = place.scope()
    for doc_id in ("travel", "secret", "nowhere"):
        assert code_of(place.tasks.read, scope, doc_id) == "context_out_of_scope"
        assert place.tasks.assemble(scope, optional=[doc_id]).omitted[0].code == "context_out_of_scope"
        assert code_of(place.tasks.assemble, scope, must_read=[doc_id]) == "context_must_read_missing"
        bound = replace(scope.documents[0], doc_id=doc_id)
        package = place.package(scope)
        forged = replace(package, items=(replace(package.items[0], doc_id=doc_id), *package.items[1:]))
        assert code_of(place.tasks.freeze, scope, forged) == "context_out_of_scope"
        wider = replace(scope, documents=(*scope.documents, bound)).sealed()
        for phase in ("search", "read", "assemble must", "freeze"):
            step = PHASES[phase]
            assert code_of(step, place, wider, package, None) == "context_scope_altered"
            assert code_of(step, place, replace(wider, sha256=scope.sha256), package, None) == "context_scope_altered"
        assert code_of(place.tasks.narrow, wider) == "context_scope_altered"


@pytest.mark.promise("CTX-38")
@pytest.mark.parametrize("context", [BOB, Context("other", "alice")], ids=["principal", "tenant"])
def test_another_callers_snapshot_looks_like_none(place: Place, context: Context) -> None:
    snapshot, scope = place.snapshot(), place.scope()
    absent = code_of(place.tasks.replay, "snapshot-99", context)
    assert absent == code_of(place.tasks.replay, snapshot.id, context) == "context_unknown"
    assert code_of(place.tasks.deliver, snapshot.id, context, "x") == "context_unknown"
    assert code_of(place.tasks.inspect, snapshot.id, context) == "context_unknown"
    assert code_of(place.tasks.record_consumption, snapshot.id, context, [0]) == "context_unknown"
    assert code_of(place.tasks.scope, scope.id, context) == "context_unknown"
    assert place.tasks.snapshots(context, "T-7", "answering").rows == ()


@pytest.mark.promise("CTX-38")
def test_a_context_that_lost_its_group_may_not_read_what_the_group_could(place: Place) -> None:
    """The right is that of whoever asks now, not of whoever asked then."""
    place.index.set_acl("acme", "refund", ["group:desk"], 1)
    scope = place.scope(context=Context("acme", "alice", ("desk",)))
    snapshot = place.tasks.freeze(scope, place.tasks.assemble(scope, must_read=["refund"]))
    text = place.tasks.replay(snapshot.id, Context("acme", "alice", ("desk",))).text
    assert text
    assert place.tasks.replay(snapshot.id, ALICE).reason == "context_access_withdrawn"
    assert code_of(place.tasks.deliver, snapshot.id, ALICE, text) == "context_access_withdrawn"


@pytest.mark.promise("CTX-1", "CTX-39", "CTX-65")
def test_a_stored_scope_gives_nobody_a_group_that_the_context_lacks(place: Place) -> None:
    """A scope is fetched, or a seal opened, by who asks now; it froze the groups of who asked then."""
    place.index.set_acl("acme", "refund", ["group:desk"], 1)
    desk, more = Context("acme", "alice", ("desk",)), Context("acme", "alice", ("desk", "legal"))
    scope = place.tasks.narrow(place.scope(context=desk), documents=["refund"])
    asked, answers = separate_answers([Question("q1", "退款期限", "一周")], salt="0123456789abcdef")
    seal = seal_material(place.tasks, scope, asked, answers.sha256, points=8)
    for context, code in ((desk, None), (more, None), (ALICE, "context_access_withdrawn")):
        assert code_of(place.tasks.scope, scope.id, context) == code
        assert code_of(open_material, place.tasks, seal, context, "q1", "index") == code


@pytest.mark.promise("CTX-36", "CTX-40", "CTX-44", "CTX-35")
def test_what_moved_on_can_be_read_as_history_and_not_used_for_new_work(place: Place) -> None:
    scope = place.scope()
    package = place.package(scope)
    snapshot = place.tasks.freeze(scope, package)
    place.revise("refund", 2, "# 退款新规\n\n退款期限为十五天。")
    assert code_of(place.tasks.read, scope, "refund") == "context_revision_changed"
    assert refusal(lambda: place.tasks.assemble(scope, must_read=["refund"])) == "context_revision_changed"
    assert code_of(place.tasks.freeze, scope, package) == "context_revision_changed"
    assert code_of(place.tasks.deliver, snapshot.id, ALICE, package.text) == "context_revision_changed"
    again = place.tasks.replay(snapshot.id, ALICE)
    assert (again.text, again.reason, again.valid_now) == (package.text, None, False)
    assert again.codes == ("context_revision_changed",)
    assert "title: 退款\n" in package.text and "新规" not in package.text
    assert isinstance(scope.bound("refund"), Bound) and scope.bound("refund") == place.tasks.scope(
        scope.id, ALICE
    ).bound("refund")


@pytest.mark.promise("CTX-36")
def test_a_replaced_acl_that_still_admits_the_caller_is_history_too(place: Place) -> None:
    snapshot = place.snapshot()
    place.index.set_acl("acme", "refund", ["*"], 1)
    again = place.tasks.replay(snapshot.id, ALICE)
    assert again.text is not None
    assert again.codes == ("context_acl_changed",)
    assert code_of(place.tasks.deliver, snapshot.id, ALICE, again.text) == "context_acl_changed"


@pytest.mark.promise("CTX-49")
@pytest.mark.parametrize("code", ["context_binding_withdrawn", "context_not_released"])
def test_a_binding_that_is_enabled_again_can_be_checked_again(place: Place, code: str) -> None:
    """It starts nothing by itself: no delivery is made, and no call of the task is written."""
    scope = place.scope()
    snapshot = place.snapshot(scope)
    ENDS[code](place)
    calls = place.tasks.account(scope).calls
    place.tasks.release("acme", "refund", ["answering"])
    place.tasks.put_collection("acme", "policies", ["refund", "leave", "secret"])
    assert place.tasks.account(scope).calls == calls
    assert place.tasks.check_dependencies(snapshot.id).valid
    text = place.tasks.replay(snapshot.id, ALICE).text
    assert text and place.tasks.deliver(snapshot.id, ALICE, text).id == "delivery-1"
