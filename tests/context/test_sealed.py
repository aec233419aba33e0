"""Sealed comparisons: no answer on the searching side, equal budgets, checked again when opened (CTX-64, CTX-65)."""

import ast
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kbretrieval.context.sealed as sealing
from kbretrieval.context import (
    ARMS,
    Answers,
    Asked,
    Fragment,
    Piece,
    Policy,
    Question,
    Role,
    Scope,
    Seal,
    Selection,
    TaskContexts,
    open_material,
    seal_from,
    seal_material,
    separate_answers,
)
from kbretrieval.context.arms import arms_of, filled
from kbretrieval.errors import ContextArmUnfilled
from tests.context.place import ALICE, BOB, BODIES, ENDS, Place
from tests.unit.doubles import code_of, error_of

SALT = "0123456789abcdef"
ANSWER = "canary7Q 八天"
QUESTIONS = [Question("q1", "退款期限，年假", ANSWER), Question("q2", "入职年假，退款", "canary8Q")]
POINTS = 20


def sealed_at(place: Place, scope: Scope | None = None, points: int = POINTS) -> Seal:
    """Two questions sealed over the policies."""
    asked, answers = separate_answers(QUESTIONS, SALT)
    return seal_material(place.tasks, scope or place.scope(), asked, answers.sha256, points)


@pytest.mark.promise("CTX-64")
def test_every_arm_has_exactly_the_same_code_points_of_source_text(place: Place) -> None:
    seal = sealed_at(place)
    for question in ("q1", "q2"):
        for arm in ARMS:
            material = open_material(place.tasks, seal, ALICE, question, arm)
            assert sum(map(len, material.texts)) == seal.points == material.points == POINTS
            for stretch, text in zip(material.stretches, material.texts, strict=True):
                assert text == BODIES[stretch.doc_id][stretch.start : stretch.end]
    first = open_material(place.tasks, seal, ALICE, "q1", "full_text").stretches
    assert [(item.doc_id, item.start, item.end) for item in first] == [("leave", 0, 17), ("refund", 0, 3)]
    assert open_material(place.tasks, seal, ALICE, "q1", "index").stretches[0].doc_id == "refund"
    assert open_material(place.tasks, seal, ALICE, "q2", "index").stretches[0].doc_id == "leave"


@pytest.mark.promise("CTX-64")
def test_a_budget_that_an_arm_cannot_fill_is_refused_with_both_numbers(place: Place) -> None:
    whole = len(BODIES["refund"]) + len(BODIES["leave"])
    assert sealed_at(place, points=whole).points == whole
    error = error_of(sealed_at, place, points=whole + 1)
    assert error is not None and error.code == "context_arm_unfilled"
    assert f"{whole + 1} code points are required, {whole} found" in error.facts
    narrow = place.tasks.narrow(place.scope(), documents=["leave"])
    assert code_of(sealed_at, place, narrow, points=len(BODIES["leave"]) + 1) == "context_arm_unfilled"


class Listening(TaskContexts):
    """Task contexts that write down everything they are told."""

    def __init__(self, place: Place) -> None:
        super().__init__(place.index)
        self.told: list[str] = []

    def search(self, *given: Any, **named: Any) -> Any:
        self.told.append(repr((given, named)))
        return super().search(*given, **named)

    def read(self, *given: Any, **named: Any) -> Any:
        self.told.append(repr((given, named)))
        return super().read(*given, **named)


@pytest.mark.promise("CTX-64")
def test_the_text_of_an_answer_reaches_nothing_that_searches(place: Place) -> None:
    asked, answers = separate_answers(QUESTIONS, SALT)
    listening, scope = Listening(place), place.scope()
    seal = seal_material(listening, scope, asked, answers.sha256, POINTS)
    material = open_material(listening, seal, ALICE, "q1", "both")
    assert len(listening.told) > 10 and any("退款期限" in told for told in listening.told)
    account = place.tasks.account(scope)
    carriers = [*listening.told, *map(repr, (asked, seal, material, account, QUESTIONS, answers))]
    carriers += [json.dumps(item.to_dict(), ensure_ascii=False) for item in (seal, material)]
    assert not [told for told in carriers if "canary" in told or "八天" in told]
    assert not [text for text in material.texts if repr(text) in repr(material)]
    assert b"canary" not in place.path.read_bytes()
    assert answers.of("q1") == ANSWER


@pytest.mark.promise("CTX-64")
def test_no_function_that_searches_takes_a_question_or_an_answer(place: Place) -> None:
    source = Path(sealing.__file__).read_text(encoding="utf-8")
    names = {node.id for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Name)}
    assert "Asked" in names and not names & {"Question", "Answers", "separate_answers"}
    _, answers = separate_answers(QUESTIONS, SALT)
    for asked in (QUESTIONS, answers, [answers], [("q1", "退款期限")], []):
        assert (
            code_of(seal_material, place.tasks, place.scope(), asked, answers.sha256, POINTS) == "context_input_invalid"
        )
    assert (
        code_of(seal_material, place.tasks, place.scope(), [Asked("q1", "退款")], ANSWER, POINTS)
        == "context_input_invalid"
    )


@pytest.mark.promise("CTX-64")
@pytest.mark.parametrize(
    ("queries", "answer"),
    [
        (["退款期限是七天吗"], "七天"),
        (["is it SKU-2049 ?"], "sku -２０４９"),
        (["退款", "七天内退款"], "七天"),
        (["退款期限七\u200b天"], "七天"),
        (["退款期限七天"], "七\u00ad天"),
    ],
)
def test_a_question_that_tells_an_answer_is_refused(queries: list[str], answer: str) -> None:
    questions = [Question(f"q{number}", query, answer) for number, query in enumerate(queries)]
    error = error_of(separate_answers, questions, SALT)
    assert error is not None and error.code == "context_answer_exposed"
    assert "question 1 of" in error.facts and answer not in error.facts


@pytest.mark.promise("CTX-64")
def test_the_digest_of_the_answers_changes_with_them_and_tells_nothing_of_them() -> None:
    def commitment(answer: str, salt: str = SALT) -> str:
        return separate_answers([Question("q1", "退款期限", answer)], salt)[1].sha256

    assert commitment("七天") == commitment("七天") != commitment("八天")
    assert commitment("七天") != commitment("七天", "fedcba9876543210")
    assert code_of(separate_answers, QUESTIONS, SALT[1:]) == "context_input_invalid"
    assert code_of(separate_answers, [QUESTIONS[0]] * 2, SALT) == "context_input_invalid"
    assert code_of(Question, "q1", "退款", " \n") == "context_input_invalid"
    assert code_of(Answers(SALT, ()).of, "q1") == "context_input_invalid"


@pytest.mark.promise("CTX-65")
@pytest.mark.parametrize("code", ENDS)
@pytest.mark.parametrize("arm", ARMS)
def test_permission_release_binding_and_policy_are_checked_again_when_it_is_opened(
    place: Place, code: str, arm: Any
) -> None:
    seal = sealed_at(place)
    assert open_material(place.tasks, seal, ALICE, "q1", arm)
    ENDS[code](place)
    assert code_of(open_material, place.tasks, seal, ALICE, "q1", arm) == code


@pytest.mark.promise("CTX-65")
def test_changed_material_is_not_opened_and_nobody_else_opens_it(place: Place) -> None:
    seal = sealed_at(place)
    assert code_of(open_material, place.tasks, seal, BOB, "q1", "index") == "context_unknown"
    place.revise("refund", 2, BODIES["refund"] + "\n\n另行通知。")
    assert code_of(open_material, place.tasks, seal, ALICE, "q1", "index") == "context_revision_changed"
    assert code_of(sealed_at, place, replace(place.scope(), purpose="training")) == "context_scope_altered"


@pytest.mark.promise("CTX-65")
def test_nothing_is_sealed_for_a_role_that_gets_no_text(place: Place) -> None:
    place.tasks.set_policy("acme", Policy(roles=(Role("titles", ("title",)),)))
    scope = place.scope(selection=Selection(["policies"], role="titles"))
    assert code_of(sealed_at, place, scope) == "context_field_removed"


@pytest.mark.promise("CTX-65")
def test_the_text_that_is_read_again_has_the_digest_that_was_sealed(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    seal = sealed_at(place)
    read = TaskContexts.read

    def other(self: TaskContexts, *given: Any, **named: Any) -> Fragment:
        part = read(self, *given, **named)
        return replace(part, text=part.text[:-1] + "改")

    monkeypatch.setattr(TaskContexts, "read", other)
    assert code_of(open_material, place.tasks, seal, ALICE, "q1", "index") == "context_seal_altered"


def _renamed(seal: Seal) -> Seal:
    return replace(seal, points=POINTS + 1)


def _shortened(seal: Seal) -> Seal:
    case = seal.cases[0]
    return replace(seal, cases=(replace(case, index=case.index[:0]), *seal.cases[1:]))


def _rescoped(seal: Seal) -> Seal:
    return replace(seal, scope_sha256="0" * 64)


@pytest.mark.promise("CTX-65")
@pytest.mark.parametrize("change", [_renamed, _shortened, _rescoped])
def test_an_altered_seal_opens_nothing_even_with_a_digest_made_anew(
    place: Place, change: Callable[[Seal], Seal]
) -> None:
    altered = change(sealed_at(place))
    assert code_of(open_material, place.tasks, altered, ALICE, "q1", "index") == "context_seal_altered"
    assert code_of(seal_from, altered.to_dict()) == "context_seal_altered"
    anew = replace(altered, sha256=altered.digest())
    assert code_of(open_material, place.tasks, anew, ALICE, "q1", "index") == "context_seal_altered"


@pytest.mark.promise("CTX-65")
def test_other_answers_queries_or_stretches_are_seen_in_the_digest_that_was_noted(place: Place) -> None:
    """Made anew, the digest is another one: what was noted elsewhere tells the two seals apart."""
    seal = sealed_at(place)
    case = seal.cases[0]
    swapped = replace(case, full_text=case.index, index=case.full_text)
    asked = replace(case, asked=Asked("q1", "其他"))
    for change in ({"answers_sha256": "0" * 64}, {"cases": (swapped,)}, {"cases": (asked,)}):
        altered: Seal = replace(seal, **change)  # type: ignore[arg-type]
        assert code_of(open_material, place.tasks, altered, ALICE, "q1", "index") == "context_seal_altered"
        assert altered.digest() != seal.sha256 == seal.digest()


@pytest.mark.promise("CTX-65")
def test_a_seal_holds_no_text_and_comes_back_from_json(place: Place) -> None:
    seal = sealed_at(place)
    stored = json.dumps(seal.to_dict(), ensure_ascii=False)
    assert not [word for word in ("签收后", "入职满", "定制商品") if word in stored]
    again = seal_from(json.loads(stored))
    assert again == seal == sealed_at(place, place.tasks.scope(seal.scope, ALICE))
    assert open_material(place.tasks, again, ALICE, "q2", "both") == open_material(
        place.tasks, seal, ALICE, "q2", "both"
    )
    for broken in ({}, {**seal.to_dict(), "schema": "kbretrieval.context.seal/0"}, {**seal.to_dict(), "cases": [7]}):
        assert code_of(seal_from, broken) == "context_seal_altered"


@pytest.mark.promise("CTX-65")
def test_a_seal_proves_preparation_and_says_nothing_of_quality(place: Place) -> None:
    """Right answers, wrong ones and questions that nothing answers are sealed alike."""
    scope = place.scope()

    def body(answer: str) -> dict[str, Any]:
        asked, answers = separate_answers([Question("q1", "退款期限", answer)], SALT)
        return seal_material(place.tasks, scope, asked, answers.sha256, POINTS).to_dict()

    right, wrong = body("签收后七天"), body("三十年")
    differing = {name for name in right if right[name] != wrong[name]}
    assert differing == {"sha256", "answers_sha256"}
    told = set(right) | set(right["cases"][0]) | set(right["cases"][0]["index"][0])
    assert not told & {"score", "scores", "quality", "rank", "fused", "verdict", "winner"}


@pytest.mark.parametrize(
    ("question", "arm", "points"), [("q3", "index", POINTS), ("q1", "title", POINTS), ("q1", "index", 1)]
)
def test_other_questions_arms_and_budgets_are_refused(place: Place, question: str, arm: Any, points: int) -> None:
    def call() -> Any:
        return open_material(place.tasks, sealed_at(place, points=points), ALICE, question, arm)

    assert code_of(call) == "context_input_invalid"


pieces = st.builds(
    lambda doc_id, start, size: Piece(doc_id, start, start + size),
    st.sampled_from(["a", "b"]),
    st.integers(0, 30),
    st.integers(1, 12),
)
lists = st.lists(pieces, max_size=8)


def covered(given: Any) -> list[tuple[str, int]]:
    """Every code point of some pieces, in their order."""
    return [(piece.doc_id, at) for piece in given for at in range(piece.start, piece.end or 0)]


@pytest.mark.promise("CTX-64")
@settings(max_examples=80)
@given(lists, lists, st.integers(2, 60))
def test_arms_are_filled_to_the_code_point_without_repeating_any_or_refused(
    full: list[Piece], found: list[Piece], points: int
) -> None:
    """The oracle walks over code points one by one."""
    enough = min(len(set(covered(full))), len(set(covered(found)))) >= points
    try:
        arms = arms_of(full, found, points)
    except ContextArmUnfilled:
        first = set(list(dict.fromkeys(covered(found)))[: points // 2])
        rest = set(covered(full)) - first
        assert not enough or len(first) + len(rest) < points
        return
    assert enough
    for name in ARMS:
        assert len(covered(arms[name])) == len(set(covered(arms[name]))) == points
    assert covered(arms["full_text"]) == list(dict.fromkeys(covered(full)))[:points]
    assert covered(arms["index"]) == list(dict.fromkeys(covered(found)))[:points]
    half = covered(arms["index"])[: points // 2]
    later = [point for point in dict.fromkeys(covered(full)) if point not in half]
    assert covered(arms["both"]) == half + later[: points - points // 2]


@pytest.mark.promise("CTX-64")
def test_a_cut_piece_ends_where_the_budget_ends() -> None:
    assert filled("index", [Piece("a", 3, 9)], 2) == (Piece("a", 3, 5),)
    assert code_of(filled, "index", [Piece("a", 3, 9)], 7) == "context_arm_unfilled"
