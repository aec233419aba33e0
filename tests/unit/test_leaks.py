"""FLT-10: a marker word in bodies, queries and hits is found in no message, log line, traceback or representation."""

import io
import logging
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from kbretrieval import Context, Index, KBError
from tests.unit.doubles import Table, error_of

WORD = "canary7Q"
DENSE = Table("table-2")


@contextmanager
def captured_logs() -> Iterator[io.StringIO]:
    """Everything that any logger says, from DEBUG on."""
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    root = logging.getLogger()
    level = root.level
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    try:
        yield stream
    finally:
        root.removeHandler(handler)
        root.setLevel(level)


def chain(error: BaseException | None) -> Iterator[BaseException]:
    """An error, what it was raised from, and what it was raised in."""
    seen: list[BaseException] = []
    todo = [error]
    while todo:
        item = todo.pop()
        if item is not None and item not in seen:
            seen.append(item)
            todo += [item.__cause__, item.__context__]
    return iter(seen)


def told_by(error: KBError) -> list[str]:
    """Everything a log could show of an error: text, representation, attributes, traceback without source lines."""
    frames = traceback.TracebackException.from_exception(error, lookup_lines=False)
    bare = [(frame.filename, frame.lineno, frame.name, "") for frame in frames.stack]
    frames.stack = traceback.StackSummary.from_list(bare)
    told = ["".join(frames.format())]
    for item in chain(error):
        told += [str(item), repr(item), repr(item.args), repr(getattr(item, "__dict__", {}))]
        told += [repr(getattr(item, name, "")) for name in ("doc", "object", "facts")]
    return told


def refused_calls(index: Index, alice: Context) -> list[Callable[[], object]]:
    hit = index.search(WORD, alice)[0]
    broken: Any = {**hit.to_dict(), "revision": WORD}
    odd: Any = WORD
    sources = [
        ("pdf", WORD),
        ("json", WORD),
        ("json", '{"title": "' + WORD + '", "title": "x"}'),
        ("json", '{"' + WORD + '": 1}'),
        ("json", '["' + WORD),
        ("json", "[" * 100 + WORD),
        ("json", '{"title": "' + WORD + '", "sections": [{"' + WORD + '": 1}]}'),
        ("markdown", WORD + "\x00"),
        ("markdown", WORD + "\ud800"),
        ("text", WORD + "\ud800"),
        ("markdown", f"---\n{WORD}: [\n---\n" + WORD + "\ud800"),
        ("markdown", WORD * 600_000),
    ]
    return [
        lambda: index.search(WORD * 200, alice),
        lambda: index.search(WORD + "\ud800", alice),
        lambda: index.search(WORD, None),  # type: ignore[arg-type]
        lambda: index.search(WORD, alice, limit=0),
        lambda: index.search(WORD, alice, mode=odd),
        lambda: index.search(WORD, alice, lexical=odd),
        lambda: index.upsert("acme", "c", 1, "markdown", WORD, ["alice"]),
        lambda: index.upsert("acme", "c", 2, "markdown", WORD, [WORD + " "]),
        lambda: index.upsert("acme", "c", 2, "markdown", WORD, odd),
        *(lambda f=f, s=s: index.upsert("acme", "c", 2, f, s, ["alice"]) for f, s in sources),
        lambda: index.answer(odd, alice),
        lambda: index.answer([hit], alice, odd),
        lambda: index.answer([hit] * 201, alice),
        lambda: type(hit).from_dict(broken),
        lambda: type(hit).from_dict({**broken, WORD: WORD}),
        lambda: index.delete("acme", "c", 1),
        lambda: index.set_acl("acme", "c", ["bob"], 9),
        lambda: index.set_acl("acme", WORD, ["bob"], 9),
        lambda: Context(WORD + "\u200b", "alice"),
        lambda: Index.open(WORD + "\x00"),
    ]


@pytest.mark.promise("FLT-10", "ERR-1", "OBS-1")
def test_no_refusal_log_or_representation_carries_text(index: Index, alice: Context, bob: Context) -> None:
    """C075: `__context__` included, which `from None` hides from a traceback and keeps in memory."""
    index.upsert("acme", "c", 1, "markdown", f"# 甲\n\n{WORD} 正文", ["alice"])
    with captured_logs() as log:
        calls = refused_calls(index, alice)
        errors = [error_of(call) for call in calls]
        index.answer(index.search(WORD, alice), alice)
        index.audit(index.search(WORD, alice), alice)
        index.check()
        index.delete("acme", "c", 5)
        index.purge()
    assert [number for number, error in enumerate(errors) if error is None] == []
    leaking = [(n, text) for n, error in enumerate(errors) if error for text in told_by(error) if WORD in text]
    assert leaking == []
    assert WORD not in log.getvalue()
    assert list(index.search(WORD, bob)) == []
    assert WORD not in repr(index) + repr(index._engine) + repr(index.contract) + repr(index.status("acme", "c"))


@pytest.mark.promise("FLT-10", "ERR-1", "ERR-2")
def test_what_an_encoder_says_stays_with_it(index_path: Any) -> None:
    """An encoder that raises with the text in its message: `encoder_failed`, without its text."""
    table = Table("table-2")
    table.fail_on = WORD
    with Index.open(index_path, encoder=table) as index:
        calls: list[Callable[[], object]] = [
            lambda: index.upsert("acme", "c", 1, "markdown", WORD, ["alice"]),
            lambda: index.search(WORD, Context("acme", "alice")),
        ]
        for call in calls:
            error = error_of(call)
            assert error is not None
            assert error.code == "encoder_failed"
            assert [text for text in told_by(error) if WORD in text] == []


@pytest.mark.promise("FLT-10")
def test_the_scan_finds_what_was_planted() -> None:
    with captured_logs() as log:
        logging.getLogger("kbretrieval.anything").debug("text %s", WORD)
    assert WORD in log.getvalue()

    class Talking(KBError):
        code = "talking"

    def careless() -> None:
        try:
            raise ValueError(WORD)
        except ValueError:
            raise Talking("nothing here") from None

    error = error_of(careless)
    assert error is not None
    assert [text for text in told_by(error) if WORD in text] != []
