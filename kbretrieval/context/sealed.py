"""Sealed material for a comparison of arms: full text, index only, both (CTX-64, CTX-65).

No function here takes an answer: the judging side separates the answers from the queries (`separate_answers`), and a
seal carries their digest alone. Nor does a seal hold any text of documents: it holds names, stretches and digests, and
whoever opens it reads the material again through the scope, where everything is checked again. A seal proves how a
comparison was prepared, and that the material has not changed since; whether an arm is any good it cannot say.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, TypeVar

from kbretrieval.context.arms import ARMS, ArmName, arms_of, checked_points
from kbretrieval.context.canonical import canonical_digest
from kbretrieval.context.questions import Asked
from kbretrieval.context.scope import Scope
from kbretrieval.context.search import checked_request
from kbretrieval.context.selection import Piece
from kbretrieval.context.tasks import TaskContexts
from kbretrieval.context.vouchers import checked_voucher
from kbretrieval.errors import ContextInputInvalid, ContextSealAltered
from kbretrieval.identity import Context
from kbretrieval.projection import digest
from kbretrieval.results import Exported

Made = TypeVar("Made", bound=Exported)

_DIGEST = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class Stretch(Exported):
    """`[start, end)` of a document's projection in code points, and the digest of its text."""

    SCHEMA: ClassVar[str] = "kbretrieval.context.stretch/1"

    doc_id: str
    start: int
    end: int
    sha256: str


@dataclass(frozen=True, slots=True)
class SealedCase(Exported):
    """One question, the state of the index that was searched, and the stretches of each arm in the order of `ARMS`."""

    SCHEMA: ClassVar[str] = "kbretrieval.context.sealed-case/1"

    asked: Asked
    contract_sha256: str
    commit: int
    full_text: tuple[Stretch, ...]
    index: tuple[Stretch, ...]
    both: tuple[Stretch, ...]


@dataclass(frozen=True, slots=True)
class Seal(Exported):
    """A prepared comparison: `sha256` covers the rest. Note it elsewhere; who holds the seal alone could make another.

    `points` is what every arm of every case has. Nothing in it says how well an arm does.
    """

    SCHEMA: ClassVar[str] = "kbretrieval.context.seal/1"

    sha256: str
    scope: str
    scope_sha256: str
    policy_sha256: str
    answers_sha256: str
    points: int
    cases: tuple[SealedCase, ...]

    def digest(self) -> str:
        """Return the digest of everything but `sha256`, recomputed."""
        return canonical_digest({name: value for name, value in self.to_dict().items() if name != "sha256"})


@dataclass(frozen=True, slots=True)
class Material(Exported):
    """What an arm gets for one question: texts in order, as many code points in all as every other arm has."""

    SCHEMA: ClassVar[str] = "kbretrieval.context.material/1"

    asked: Asked
    arm: ArmName
    points: int
    stretches: tuple[Stretch, ...]
    texts: tuple[str, ...] = field(repr=False)


def seal_material(
    tasks: TaskContexts, scope: Scope, asked: Sequence[Asked], answers_sha256: str, points: int, limit: int = 20
) -> Seal:
    """Search and seal the material of every arm; `points` code points each, `limit` rows of each search.

    The full text is that of the scope's documents from their beginnings, by name. Searches and reads are paid by the
    scope's task. Raises `context_arm_unfilled`, `context_input_invalid` and what keeps material from being used.

    Example:
        >>> from kbretrieval.context import Question, Selection, rehearsal, separate_answers
        >>> asked, answers = separate_answers([Question("q1", "退款期限", "一周")], salt="0123456789abcdef")
        >>> with rehearsal() as (tasks, alice):
        ...     scope = tasks.authorize_scope(alice, "T-7", "answering", Selection(["policies"]))
        ...     seal = seal_material(tasks, scope, asked, answers.sha256, points=20)
        >>> [(item.doc_id, item.start, item.end) for item in seal.cases[0].both]
        [('refund', 0, 10), ('leave', 0, 10)]
    """
    checked_points(points)
    if not isinstance(tasks, TaskContexts) or type(scope) is not Scope:
        raise ContextInputInvalid("task contexts and a Scope are required, others given")
    if not isinstance(asked, (tuple, list)) or not asked or any(type(item) is not Asked for item in asked):
        raise ContextInputInvalid("asked: a list of Asked that is not empty is required, another value given")
    if len({item.id for item in asked}) != len(asked):
        raise ContextInputInvalid(f"asked: {len(asked)} given, each name once is required")
    if type(answers_sha256) is not str or not _DIGEST.fullmatch(answers_sha256):
        raise ContextInputInvalid(
            f"answers_sha256: a digest is required, another {type(answers_sha256).__name__} given"
        )
    for item in asked:
        checked_request(item.query, limit, "hybrid")
    full = tuple(_openings(tasks, scope, points))
    cases = tuple(_case(tasks, scope, item, full, points, limit) for item in asked)
    made = Seal("", scope.id, scope.sha256, scope.policy_sha256, answers_sha256, points, cases)
    return replace(made, sha256=made.digest())


def _openings(tasks: TaskContexts, scope: Scope, points: int) -> Iterator[Piece]:
    """Yield the documents of a scope from their beginnings, no more than `points` code points need."""
    left = points
    for bound in scope.documents:
        cursor, more = None, True
        while more and left > 0:
            part = tasks.read(scope, bound.doc_id, cursor=cursor)
            if part.text:
                yield Piece(part.doc_id, part.start, part.end)
            left -= len(part.text)
            cursor, more = part.next_cursor, part.has_more


def _case(
    tasks: TaskContexts, scope: Scope, asked: Asked, full: Sequence[Piece], points: int, limit: int
) -> SealedCase:
    found = tasks.search(scope, asked.query, limit)
    arms = arms_of(full, [row.piece for row in found.rows], points)
    stretches: dict[Any, tuple[Stretch, ...]] = {
        name: tuple(_stretch(tasks, scope, piece) for piece in arms[name]) for name in ARMS
    }
    return SealedCase(asked, found.contract_sha256, found.commit, **stretches)


def _stretch(tasks: TaskContexts, scope: Scope, piece: Piece) -> Stretch:
    part = tasks.read(scope, piece.doc_id, piece.start, piece.end)
    return Stretch(part.doc_id, part.start, part.end, digest(part.text))


def seal_from(value: Mapping[str, Any]) -> Seal:
    """Return the seal that `to_dict` exported, for example after a restart; another is `context_seal_altered`.

    Example:
        >>> empty = Seal("", "scope-1", "", "", "", 20, ())
        >>> seal_from(replace(empty, sha256=empty.digest()).to_dict()).points
        20
    """
    try:
        made = _loaded(Seal, {**value, "cases": tuple(_case_from(case) for case in value["cases"])})
        found = checked_voucher(made, Seal, "seal").digest()
    except (KeyError, TypeError, ValueError, AttributeError, ContextInputInvalid):
        raise ContextSealAltered(f"{Seal.SCHEMA} is required, another structure given") from None
    if found != made.sha256:
        raise ContextSealAltered(f"sha256 {made.sha256[:8]} sealed, {found[:8]} found")
    return made


def _case_from(value: Mapping[str, Any]) -> SealedCase:
    arms: dict[str, Any] = {name: tuple(_loaded(Stretch, item) for item in value[name]) for name in ARMS}
    return _loaded(SealedCase, {**value, **arms, "asked": _loaded(Asked, value["asked"])})


def _loaded(kind: type[Made], value: Mapping[str, Any]) -> Made:
    if value["schema"] != kind.SCHEMA:
        raise KeyError("schema")
    return kind(**{name: item for name, item in value.items() if name != "schema"})


def open_material(tasks: TaskContexts, seal: Seal, context: Context, question: str, arm: ArmName) -> Material:
    """Return the material of one arm for one question, read and checked again now.

    Whoever opens it must be the caller of the scope that was sealed, and every document must still be the one that was
    bound, readable, released, and under the same field policy. Raises `context_seal_altered`, `context_unknown` and
    what keeps material from being used.

    Example:
        >>> from kbretrieval.context import Question, Selection, rehearsal, separate_answers
        >>> asked, answers = separate_answers([Question("q1", "退款期限", "一周")], salt="0123456789abcdef")
        >>> with rehearsal() as (tasks, alice):
        ...     scope = tasks.authorize_scope(alice, "T-7", "answering", Selection(["policies"]))
        ...     seal = seal_material(tasks, scope, asked, answers.sha256, points=16)
        ...     texts = [open_material(tasks, seal, alice, "q1", arm).texts for arm in ARMS]
        >>> [sum(map(len, arm)) for arm in texts]
        [16, 16, 16]
    """
    seal = checked_voucher(seal, Seal, "seal")
    if not isinstance(tasks, TaskContexts) or arm not in ARMS:
        raise ContextInputInvalid(f"task contexts and one of {', '.join(ARMS)} are required, others given")
    if seal.digest() != seal.sha256:
        raise ContextSealAltered(f"sha256 {seal.sha256[:8]} sealed, {seal.digest()[:8]} found")
    case = next((item for item in seal.cases if item.asked.id == question), None)
    if case is None:
        raise ContextInputInvalid(f"question: one of {len(seal.cases)} is required, another given")
    scope = tasks.scope(seal.scope, context)
    if (scope.sha256, scope.policy_sha256) != (seal.scope_sha256, seal.policy_sha256):
        raise ContextSealAltered(f"scope {seal.scope_sha256[:8]} sealed, {scope.sha256[:8]} stored")
    stretches: tuple[Stretch, ...] = getattr(case, arm)
    texts = tuple(_verified(tasks, scope, stretch) for stretch in stretches)
    if sum(map(len, texts)) != seal.points:
        raise ContextSealAltered(f"{arm}: {seal.points} code points sealed, {sum(map(len, texts))} found")
    return Material(case.asked, arm, seal.points, stretches, texts)


def _verified(tasks: TaskContexts, scope: Scope, stretch: Stretch) -> str:
    text = tasks.read(scope, stretch.doc_id, stretch.start, stretch.end).text
    if digest(text) != stretch.sha256:
        raise ContextSealAltered(f"sha256 {stretch.sha256[:8]} sealed, {digest(text)[:8]} found")
    return text
