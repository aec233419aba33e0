"""Questions with answers, for the side that judges; what the side that searches gets of them has no answer (CTX-64)."""

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from kbretrieval.context.canonical import canonical_digest
from kbretrieval.context.search import checked_request
from kbretrieval.context.vouchers import checked_voucher, fits
from kbretrieval.errors import ContextAnswerExposed, ContextInputInvalid
from kbretrieval.identity import checked_name
from kbretrieval.results import Exported

SALT_POINTS = 16


@dataclass(frozen=True, slots=True)
class Question:
    """A question with its answer, for the judging side alone; the answer is in no representation.

    Raises `context_input_invalid`, `bounded_query_required` and `invalid_identity`.

    Example:
        >>> Question("q1", "退款期限", "签收后七天")
        Question(id='q1', query='退款期限')
    """

    id: str
    query: str
    answer: str = field(repr=False)

    def __post_init__(self) -> None:
        Asked(self.id, self.query)
        if not fits(self.answer, str) or not _plain(self.answer):
            raise ContextInputInvalid("answer: text that is not blank is required, another value given")


@dataclass(frozen=True, slots=True)
class Asked(Exported):
    """All that the searching side gets of a question."""

    SCHEMA: ClassVar[str] = "kbretrieval.context.asked/1"

    id: str
    query: str

    def __post_init__(self) -> None:
        checked_name(self.id, "id")
        checked_request(self.query, 1, "hybrid")


@dataclass(frozen=True, slots=True)
class Answers:
    """The answers by question, for the judging side; `sha256` commits to them, and thanks to the salt tells nothing.

    Example:
        >>> _, answers = separate_answers([Question("q1", "退款期限", "签收后七天")], salt="0123456789abcdef")
        >>> answers.of("q1")
        '签收后七天'
    """

    salt: str = field(repr=False)
    pairs: tuple[tuple[str, str], ...] = field(repr=False)

    def __post_init__(self) -> None:
        checked_voucher(self, Answers, "answers")

    @property
    def sha256(self) -> str:
        """The digest that a seal carries."""
        return canonical_digest([self.salt, [list(pair) for pair in self.pairs]])

    def of(self, question: str) -> str:
        """Return the answer to a question; raises `context_input_invalid`."""
        found = dict(self.pairs).get(question)
        if found is None:
            raise ContextInputInvalid(f"question: one of {len(self.pairs)} is required, another given")
        return found


def separate_answers(questions: Sequence[Question], salt: str) -> tuple[tuple[Asked, ...], Answers]:
    """Return what the searching side gets, and what it does not.

    No answer may stand in a query or a name, compared without blanks, format characters, case and compatibility forms:
    such a question would tell it (`context_answer_exposed`). An answer in other words is not found. `salt` is at least
    16 code points that nobody can guess. Raises `context_input_invalid` for anything else.

    Example:
        >>> asked, _ = separate_answers([Question("q1", "退款期限", "签收后七天")], salt="0123456789abcdef")
        >>> asked
        (Asked(id='q1', query='退款期限'),)
    """
    if not isinstance(questions, (tuple, list)) or any(type(item) is not Question for item in questions):
        raise ContextInputInvalid(f"questions: a list of Question is required, {type(questions).__name__} given")
    if not fits(salt, str) or len(salt) < SALT_POINTS:
        raise ContextInputInvalid(f"salt: {SALT_POINTS} code points or more are required, another value given")
    if len({item.id for item in questions}) != len(questions):
        raise ContextInputInvalid(f"questions: {len(questions)} given, each name once is required")
    told = [_plain(text) for item in questions for text in (item.id, item.query)]
    for number, item in enumerate(questions, 1):
        if any(_plain(item.answer) in text for text in told):
            raise ContextAnswerExposed(f"question {number} of {len(questions)}: its answer stands in a query or name")
    asked = tuple(Asked(item.id, item.query) for item in questions)
    return asked, Answers(salt, tuple((item.id, item.answer) for item in questions))


def _plain(text: str) -> str:
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    return "".join(item for item in folded if not item.isspace() and unicodedata.category(item) != "Cf")
