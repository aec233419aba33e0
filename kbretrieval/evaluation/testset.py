"""A public test set: `corpus.jsonl`, `queries.jsonl`, `qrels.tsv`, read strictly and recorded by digest (chapter 15).

A wrong shape is `invalid_fixture` with the file and the line, never with a text: a set that is read leniently gives
figures that nobody can compare.
"""

import hashlib
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kbretrieval.errors import BoundedQueryRequired, InvalidFixture
from kbretrieval.retrieval import checked_query

PASSAGES, QUESTIONS, QRELS = "corpus.jsonl", "queries.jsonl", "qrels.tsv"
FILES = (PASSAGES, QUESTIONS, QRELS)
QRELS_HEADER = ("query-id", "corpus-id", "score")

_WORD = re.compile(r"\S+")
_GRADE = re.compile(r"-?[0-9]{1,9}")
_LONE = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Passage:
    """One passage of a test set; `title` may be empty, title and text together may not."""

    id: str
    title: str
    text: str

    @property
    def source(self) -> str:
        """The passage as plain text: its title as the first line, so that it is the document's title too.

        Example:
            >>> Passage("p1", "年假", "五天。").source.split(chr(10))
            ['年假', '五天。']
        """
        return "\n".join(part for part in (self.title, self.text) if part)

    @property
    def markdown(self) -> str:
        """The passage as Markdown: its title as the one heading above its text.

        Example:
            >>> Passage("p1", "年假", "五天。").markdown
            '# 年假\\n\\n五天。'
        """
        return "\n\n".join(part for part in (f"# {self.title}" if self.title else "", self.text) if part)


@dataclass(frozen=True, slots=True)
class JudgedQuestion:
    """A question with its judgements, document → grade; none for a question that nobody judged."""

    id: str
    text: str
    judged: dict[str, int]

    @property
    def relevant(self) -> frozenset[str]:
        """The documents with a grade above 0."""
        return frozenset(document for document, grade in self.judged.items() if grade > 0)


@dataclass(frozen=True, slots=True)
class JudgedSet:
    """A loaded test set; `sha256` maps each of the three files to its digest."""

    name: str
    folder: Path
    passages: tuple[Passage, ...]
    questions: tuple[JudgedQuestion, ...]
    sha256: dict[str, str]

    @property
    def measurable(self) -> tuple[JudgedQuestion, ...]:
        """The questions with at least one relevant document: no metric is defined for another."""
        return tuple(question for question in self.questions if question.relevant)


def _bytes(folder: Path, name: str) -> bytes:
    try:
        return (folder / name).read_bytes()
    except OSError as error:
        raise InvalidFixture(f"{name} is required, it cannot be read (errno {error.errno})") from None


def _lines(raw: bytes, name: str) -> list[str]:
    """Return the lines, ended by LF or CRLF: U+2028 and its like may stand inside a text."""
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise InvalidFixture(f"{name}, line {line}: UTF-8 is required, other bytes are there") from None
    return [line.removesuffix("\r") for line in text.removesuffix("\n").split("\n")]


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(dict(pairs)) != len(pairs):
        raise ValueError
    return dict(pairs)


def _records(raw: bytes, name: str, wanted: tuple[str, ...]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield each line's place and object; keys beyond the wanted ones are allowed, as in the public sets."""
    seen: set[str] = set()
    for number, line in enumerate(_lines(raw, name), 1):
        place = f"{name}, line {number}"
        try:
            record = json.loads(line, object_pairs_hook=_unique)
        except (ValueError, RecursionError):
            raise InvalidFixture(f"{place}: one JSON object without repeated keys is required") from None
        if not isinstance(record, dict) or not all(isinstance(record.get(key), str) for key in wanted):
            raise InvalidFixture(f"{place}: an object with the strings {', '.join(wanted)} is required")
        if any(_LONE.search(record[key]) for key in wanted):
            raise InvalidFixture(f"{place}: text without lone surrogates is required, one is there")
        if not _WORD.fullmatch(record["_id"]):
            raise InvalidFixture(f"{place}: an _id without white space is required, another is there")
        if record["_id"] in seen:
            raise InvalidFixture(f"{place}: an _id may stand once, this one stands twice")
        seen.add(record["_id"])
        yield place, record


def _passages(raw: bytes) -> tuple[Passage, ...]:
    made = []
    for place, record in _records(raw, PASSAGES, ("_id", "title", "text")):
        if not (record["title"] + record["text"]).strip():
            raise InvalidFixture(f"{place}: a title or a text is required, both are empty")
        made.append(Passage(record["_id"], record["title"], record["text"]))
    return tuple(made)


def _questions(raw: bytes, judged: dict[str, dict[str, int]]) -> tuple[JudgedQuestion, ...]:
    made = []
    for place, record in _records(raw, QUESTIONS, ("_id", "text")):
        try:
            text = checked_query(record["text"])
        except BoundedQueryRequired as error:
            raise InvalidFixture(f"{place}: {error.facts}") from None
        made.append(JudgedQuestion(record["_id"], text, judged.get(record["_id"], {})))
    return tuple(made)


def _judgements(raw: bytes) -> Iterator[tuple[str, str, str, int]]:
    """Yield place, query, document and grade of each line after the header."""
    first, *rest = _lines(raw, QRELS)
    if tuple(first.split("\t")) != QRELS_HEADER:
        raise InvalidFixture(f"{QRELS}, line 1: the header {', '.join(QRELS_HEADER)} is required, another is there")
    for number, line in enumerate(rest, 2):
        fields = line.split("\t")
        if len(fields) != len(QRELS_HEADER) or not _GRADE.fullmatch(fields[2]):
            raise InvalidFixture(
                f"{QRELS}, line {number}: query, document and a whole number are required, tabs between"
            )
        yield f"{QRELS}, line {number}", fields[0], fields[1], int(fields[2])


def _judged(raw: bytes, questions: set[str], passages: set[str]) -> dict[str, dict[str, int]]:
    made: dict[str, dict[str, int]] = {}
    for place, question, document, grade in _judgements(raw):
        if question not in questions or document not in passages:
            absent = QUESTIONS if question not in questions else PASSAGES
            raise InvalidFixture(f"{place}: an _id of {absent} is required, it holds no such one")
        if document in made.setdefault(question, {}):
            raise InvalidFixture(f"{place}: a pair may be judged once, this one is judged twice")
        made[question][document] = grade
    return made


def load_judged_set(folder: Path) -> JudgedSet:
    """Return the test set of a folder, named after it; raises `invalid_fixture` with the file and the line.

    Ids hold no white space (TREC files could not carry them), stand once, and are known where they are judged; a
    question has 1 to 1,024 code points; at least one judgement is above 0.

    Example:
        >>> load_judged_set(Path("no-such-folder"))
        Traceback (most recent call last):
        kbretrieval.errors.inputs.InvalidFixture: invalid_fixture: corpus.jsonl is required, it cannot be read (errno 2)
    """
    raw = {name: _bytes(folder, name) for name in FILES}
    passages = _passages(raw[PASSAGES])
    known = {record["_id"] for _, record in _records(raw[QUESTIONS], QUESTIONS, ("_id", "text"))}
    judged = _judged(raw[QRELS], known, {passage.id for passage in passages})
    questions = _questions(raw[QUESTIONS], judged)
    if not any(question.relevant for question in questions):
        raise InvalidFixture(f"{QRELS}: a judgement above 0 is required, {len(judged)} questions have none")
    digests = {name: hashlib.sha256(content).hexdigest() for name, content in raw.items()}
    return JudgedSet(folder.resolve().name, folder, passages, questions, digests)
