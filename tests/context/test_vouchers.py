"""Vouchers that a caller made by hand: any value in any field is one typed refusal, or what the store says anyway."""

from collections.abc import Callable, Iterator
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kbretrieval import Index
from kbretrieval.context import (
    Answers,
    Found,
    Item,
    PreferenceLedger,
    PreferenceReceipt,
    Question,
    Role,
    Seal,
    Selection,
    Signal,
    TaskContexts,
    Weights,
    open_material,
    rerank_by_preference,
    seal_material,
    separate_answers,
)
from kbretrieval.context.vouchers import fits
from tests.context.place import ALICE, REFUND, Place
from tests.unit.doubles import Table, code_of

SALT = "0123456789abcdef"


class Agreeable(str):
    """A text that calls itself equal to every other, and holds every other."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return True

    def __ne__(self, other: object) -> bool:
        return False

    def __hash__(self) -> int:
        return 0

    def __contains__(self, key: object) -> bool:
        return True


WRONG: tuple[Any, ...] = (
    b"x",
    [],
    [[]],
    {},
    (None,),
    ("x",),
    float("nan"),
    float("inf"),
    "\ud800",
    object(),
    10**5000,
    Agreeable(),
)


def forgeries(voucher: Any) -> Iterator[tuple[str, Any]]:
    """Every field of a voucher with every wrong value, as far as the voucher can be made at all."""
    for field in fields(voucher):
        for value in WRONG:
            made: list[Any] = []
            code = code_of(
                lambda made=made, name=field.name, value=value: made.append(replace(voucher, **{name: value}))
            )
            if code is None:
                yield f"{field.name}={type(value).__name__}", made[0]


def codes(voucher: Any, use: Callable[[Any], object]) -> set[str | None]:
    """What a use of every forgery ends with; anything but a refusal of the package passes through."""
    return {code_of(use, forged) for _, forged in forgeries(voucher)}


@pytest.mark.promise("CTX-33")
def test_a_package_with_anything_else_in_a_field_is_not_frozen(place: Place) -> None:
    scope = place.scope()
    package = place.package(scope)

    def with_item(item: Item) -> object:
        return place.tasks.freeze(scope, replace(package, items=(item, *package.items[1:])))

    assert codes(package, lambda forged: place.tasks.freeze(scope, forged)) == {"context_input_invalid"}
    assert codes(package.items[0], with_item) == {"context_input_invalid"}
    assert code_of(place.tasks.freeze, scope, replace(package, bytes=package.bytes - 1)) == "context_package_altered"
    assert place.tasks.snapshots(ALICE, "T-7", "answering").rows == ()


@pytest.mark.promise("CTX-60", "CTX-10")
def test_a_result_or_receipt_with_anything_else_in_a_field_is_refused(place: Place) -> None:
    scope = place.scope()
    found = place.tasks.search(scope, "退款期限")
    receipt = rerank_by_preference(found, []).receipt
    ledger = PreferenceLedger(place.tasks)

    def with_row(row: Any) -> object:
        return rerank_by_preference(replace(found, rows=(row, *found.rows[1:])), [])

    def with_placed(placed: Any) -> object:
        forged = replace(receipt, placed=(placed, *receipt.placed[1:]))
        return ledger.record(scope, forged, found.rows[0].key, "picked")

    uses: list[tuple[Found | PreferenceReceipt, Callable[[Any], object]]] = [
        (found, lambda forged: rerank_by_preference(forged, [])),
        (found, place.tasks.check_generation),
        (receipt, place.tasks.check_generation),
        (receipt, lambda forged: ledger.record(scope, forged, found.rows[0].key, "picked")),
    ]
    for voucher, use in uses:
        assert codes(voucher, use) == {"context_input_invalid"}
    assert codes(found.rows[0], with_row) == {"context_input_invalid"}
    assert codes(receipt.placed[0], with_placed) == {"context_input_invalid"}
    assert codes(place.tasks.record_generation(), place.tasks.check_generation) == {"context_input_invalid"}
    assert ledger.signals(scope) == ()


@pytest.mark.promise("CTX-10", "CTX-58")
def test_a_result_of_any_encoder_is_what_was_handed_out(tmp_path: Path) -> None:
    """Also where its floor is a number of NumPy's, which stands in the trace of the search."""
    table = Table("table-2", floor=np.float64(0.1))
    with Index.open(tmp_path / "kb.sqlite", encoder=table) as index:
        tasks = TaskContexts(index)
        index.upsert("acme", "refund", 1, "markdown", REFUND, ["alice"])
        tasks.release("acme", "refund", ["answering"])
        tasks.put_collection("acme", "policies", ["refund"])
        scope = tasks.authorize_scope(ALICE, "T-7", "answering", Selection(["policies"]))
        found = tasks.search(scope, "退款期限")
        assert [row.doc_id for row in rerank_by_preference(found, []).rows] == ["refund"]
        assert tasks.check_generation(found).number == 1


@pytest.mark.promise("CTX-55")
def test_a_signal_is_of_a_named_caller_under_a_named_ranking() -> None:
    signal = Signal("acme", "alice", "doc:refund", "picked", 1, "9f2c", "preference/1")
    assert list(forgeries(signal)) == []
    assert code_of(replace, signal, tenant="") == "invalid_identity"


@pytest.mark.promise("CTX-65", "CTX-64")
def test_a_seal_with_anything_else_in_a_field_is_not_opened(place: Place) -> None:
    asked, answers = separate_answers([Question("q1", "退款期限", "一周")], salt=SALT)
    seal = seal_material(place.tasks, place.scope(), asked, answers.sha256, points=16)
    case = seal.cases[0]

    def opened(forged: Seal) -> object:
        return open_material(place.tasks, forged, ALICE, "q1", "both")

    assert codes(seal, opened) == {"context_input_invalid"}
    assert codes(case, lambda forged: opened(replace(seal, cases=(forged,)))) == {"context_input_invalid"}
    stretch = case.both[0]
    assert codes(stretch, lambda forged: opened(replace(seal, cases=(replace(case, both=(forged,)),)))) == {
        "context_input_invalid"
    }
    assert list(forgeries(answers)) == [], "answers of another form cannot be made"


@pytest.mark.promise("CTX-64")
@pytest.mark.parametrize("given", ["答" * 64, "A" * 64, "0" * 63, None])
def test_what_stands_for_the_answers_in_a_seal_is_a_digest(place: Place, given: Any) -> None:
    asked, _ = separate_answers([Question("q1", "退款期限", "一周")], salt=SALT)
    scope = place.scope()
    assert code_of(seal_material, place.tasks, scope, asked, given, points=16) == "context_input_invalid"
    assert place.tasks.account(scope).calls == (), "refused before any work"


@pytest.mark.promise("CTX-64")
def test_answers_and_salt_are_text_that_can_be_digested() -> None:
    for answer in ("七天\ud800", " \u3000", "\u200b"):
        assert code_of(Question, "q1", "退款期限", answer) == "context_input_invalid"
    assert (
        code_of(separate_answers, [Question("q1", "退款期限", "七天")], salt="\ud800" * 16) == "context_input_invalid"
    )


@pytest.mark.promise("CTX-45", "CTX-48")
@pytest.mark.parametrize("text", [Agreeable("x"), "\ud800", b"x", None])
def test_what_is_sent_or_published_is_plain_text(place: Place, text: Any) -> None:
    snapshot = place.snapshot()
    assert code_of(place.tasks.deliver, snapshot.id, ALICE, text) == "context_input_invalid"
    assert code_of(place.tasks.publish, snapshot.id, ALICE, "policies", text) == "context_input_invalid"


def test_what_stands_on_an_index_is_refused_without_one(place: Place) -> None:
    wrong: Any = object()
    asked, answers = separate_answers([Question("q1", "退款期限", "一周")], salt=SALT)
    assert code_of(TaskContexts, wrong) == "context_input_invalid"
    assert code_of(PreferenceLedger, wrong) == "context_input_invalid"
    assert code_of(seal_material, wrong, place.scope(), asked, answers.sha256, 16) == "context_input_invalid"
    assert code_of(seal_material, place.tasks, wrong, asked, answers.sha256, 16) == "context_input_invalid"
    seal = seal_material(place.tasks, place.scope(), asked, answers.sha256, points=16)
    assert code_of(open_material, wrong, seal, ALICE, "q1", "both") == "context_input_invalid"


@pytest.mark.promise("CTX-52")
@pytest.mark.parametrize("given", [([],), ("title", "title"), ("body",), ("title", None)])
def test_fields_of_a_role_are_names_of_fields_each_once(given: Any) -> None:
    assert code_of(Role, "reading", given) == "context_policy_invalid"


@pytest.mark.promise("CTX-2", "CTX-54")
@pytest.mark.parametrize(
    "number", [10**5000, -(10**5000), 10**400, 2**63], ids=["5000 digits", "below zero", "400 digits", "2**63"]
)
def test_a_number_beyond_all_measure_is_refused_and_not_written_out(place: Place, number: int) -> None:
    assert code_of(place.scope, as_of=number) == "context_input_invalid"
    for name in ("channel", "weak", "strong", "explored"):
        changes: dict[str, Any] = {name: number}
        assert code_of(Weights, "mine/1", **changes) == "context_input_invalid"


@pytest.mark.parametrize("value", [Agreeable("x"), True, 1.0, ["x"], None])
def test_only_the_exact_type_fits(value: Any) -> None:
    assert not fits(value, int)
    assert not fits(value, tuple[str, ...])
    assert fits(value, str | None) == (value is None)
    assert fits(("x", 1), tuple[str, int])
    assert not fits(("x", 1, 1), tuple[str, int])
    assert not fits(Answers(SALT, ()), Seal)
