"""FLT-12: arbitrary text, structures, bytes and command lines. A typed refusal or a result, never anything else.

Short in CI; 20,000 examples in all with KBRETRIEVAL_FAULTS=full (`make faults`), or any other number with
KBRETRIEVAL_FUZZ_EXAMPLES. The examples are the same in every run.
"""

import json
import os
import re
import shutil
import sys
from collections.abc import Callable, Iterator
from io import BytesIO, TextIOWrapper
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kbretrieval import Answer, Context, Hit, Index, KBError, SearchResult
from kbretrieval.cli import main
from kbretrieval.cli.entry import INTERRUPTED
from kbretrieval.errors import code_table
from kbretrieval.observers import (
    AnswerObserved,
    ChannelObserved,
    SearchObserved,
    Sums,
    WriteObserved,
    read_log,
    sums,
)
from kbretrieval.observers.events import VerdictObserved
from kbretrieval.projection import FORMATS, Projection, digest, project
from tests.unit.doubles import logical_dump

FULL, SHORT = 20_000, 2_000
SHARES = {"projection": 0.3, "hit": 0.15, "answer": 0.15, "search": 0.25, "log": 0.05, "command": 0.1}
ALICE = Context("acme", "alice")
LINE = re.compile(r"(?P<code>[a-z][a-z0-9_]*): [^\n]+\n")
CODES = {row.code: row.exit_status for row in code_table()}


def total() -> int:
    """How many examples in all."""
    usual = FULL if os.environ.get("KBRETRIEVAL_FAULTS") == "full" else SHORT
    return int(os.environ.get("KBRETRIEVAL_FUZZ_EXAMPLES", usual))


def examples(share: str) -> Callable[[Any], Any]:
    """Settings of one fuzzed entry: its share of all examples; the fixtures are not changed by any."""
    quiet = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.filter_too_much]
    return settings(max_examples=max(1, round(total() * SHARES[share])), suppress_health_check=quiet)


# Every code point, surrogates and controls included, and the marks that parsers look for.
CHARACTERS = st.characters(exclude_categories=())
MARKDOWN = [
    "# ",
    "## ",
    "---\n",
    "...\n",
    "```\n",
    "> ",
    "- ",
    "    ",
    "\n\n",
    "\r\n",
    "\r",
    "\t",
    "===\n",
    "<!--",
    "-->",
]
MARKDOWN += ["\\", "`", "*", "[", "]", "(", ")", "<", ">", "&amp;", "title: ", "!!python/object:os.system", "&a ", "*a"]
JSON = ["{", "}", '"', ":", ",", '{"title": "', '", "sections": [', '{"heading": "', '", "text": "', '"}', "]}", "null"]
JSON += ["1e999", "NaN", "\\ud800", "\\u0000"]
ODD = ["税", "𠮷", "👨\u200d👩\u200d👧", "e\u0301", "\u200b", "\u202e", "\ufeff", "\x00", "\ud800"]
MATCH = ["NEAR(", '"a" OR "b"', "group:", "^", "退款", "政策"]
MARKS = [*MARKDOWN, *JSON, *ODD, *MATCH]
TEXT = st.one_of(
    st.text(CHARACTERS, max_size=40),
    st.lists(st.one_of(st.sampled_from(MARKS), st.text(CHARACTERS, max_size=5)), max_size=30).map("".join),
    st.binary(max_size=60).map(lambda raw: raw.decode("utf-8", "surrogateescape")),
    st.binary(max_size=60).map(lambda raw: raw.decode("latin-1")),
)
LEAF = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), TEXT, st.binary(max_size=9), st.just(2**200))
VALUE = st.recursive(
    LEAF,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.tuples(inner, inner),
        st.dictionaries(st.one_of(TEXT, st.integers(), st.none()), inner, max_size=4),
    ),
    max_leaves=12,
)


# A source that is nearly right, so that the checks behind the syntax are reached.
SECTION = st.one_of(st.fixed_dictionaries({"heading": TEXT, "text": TEXT}), st.none(), st.integers(), TEXT)
NEARLY = st.fixed_dictionaries({"title": TEXT, "sections": st.lists(SECTION, max_size=4)}).map(json.dumps)


@pytest.fixture(scope="module")
def kb(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Index, Path]]:
    """An index with a few documents, in a folder of its own."""
    folder = tmp_path_factory.mktemp("fuzz")
    with Index.open(folder / "kb.sqlite") as index:
        for number in range(6):
            acl = ["alice"] if number % 2 else ["bob", "group:hr"]
            text = f"# 制度{number}\n\n退款政策第{number}条 refund_{number}"
            index.upsert("acme", f"d{number}", 1, "markdown", text, acl)
        yield index, folder / "kb.sqlite"


@pytest.fixture(scope="module")
def hit(kb: tuple[Index, Path]) -> dict[str, Any]:
    """One exported hit, to be spoiled."""
    return kb[0].search("退款", ALICE)[0].to_dict()


def outcome(call: Callable[[], object]) -> object:
    """What a call returns, or its refusal; any other exception passes through, and fails the test."""
    try:
        return call()
    except KBError as error:
        assert error.code in CODES and str(error).startswith(f"{error.code}: ")
        return error


@pytest.mark.promise("FLT-12", "PRJ-2", "ERR-2")
@examples("projection")
@given(st.one_of(TEXT, NEARLY, VALUE), st.one_of(st.sampled_from(FORMATS), VALUE))
def test_a_source_is_projected_or_refused(source: Any, source_format: Any) -> None:
    made = outcome(lambda: project(source, source_format))
    if isinstance(made, Projection):
        assert made.sha256 == digest(made.body) and "\r" not in made.body
        assert all(0 <= heading.start < len(made.body) for heading in made.headings)
        # One byte order mark is taken away (PRJ-1): a second one is text, until somebody hands it in first.
        assert project(made.body, "text").body == made.body.removeprefix("\ufeff")


def spoiled(hit: dict[str, Any]) -> st.SearchStrategy[Any]:
    """An exported hit with one field replaced, or with several replaced, taken away or added."""
    field = st.sampled_from(sorted(hit))
    one = st.tuples(field, LEAF).map(lambda pair: hit | {pair[0]: pair[1]})
    changes = st.tuples(st.dictionaries(st.one_of(field, TEXT), VALUE, max_size=3), st.sets(field, max_size=1))
    many = changes.map(lambda two: {name: value for name, value in (hit | two[0]).items() if name not in two[1]})
    return st.one_of(one, many)


@pytest.mark.promise("FLT-12", "CIT-2", "ERR-2")
@examples("hit")
@given(st.data())
def test_a_hit_is_read_back_or_refused(hit: dict[str, Any], data: st.DataObject) -> None:
    value = data.draw(st.one_of(spoiled(hit), VALUE))
    made = outcome(lambda: Hit.from_dict(value))
    if isinstance(made, Hit):
        assert made.to_dict() == {**value, "channels": made.to_dict()["channels"]}
        assert {type(made.fused), type(made.title_overlap)} == {float} and type(made.start) is type(made.end) is int
        json.dumps(made.to_dict(), allow_nan=False).encode("utf-8")


@pytest.mark.promise("FLT-12", "CIT-1", "CIT-8", "ERR-2")
@examples("answer")
@given(st.data())
def test_an_answer_quotes_the_store_or_abstains(
    kb: tuple[Index, Path], hit: dict[str, Any], data: st.DataObject
) -> None:
    hits = data.draw(st.one_of(st.lists(st.one_of(spoiled(hit), VALUE, st.just(hit)), max_size=3), VALUE))
    limit = data.draw(st.one_of(st.integers(1, 10), VALUE))
    index = kb[0]
    made = outcome(lambda: index.answer(hits, ALICE, limit))
    if isinstance(made, Answer):
        assert {item.doc_id for item in made.evidence} <= {"d1", "d3", "d5"}
        assert all(item.quote.startswith("# 制度") and item.granted_by == "alice" for item in made.evidence)
        assert any(item is hit for item in hits) <= (made.state == "extractive")
        assert len(index.audit(hits, ALICE)) == len(hits)


EVENTS = [
    WriteObserved("upsert", "created", 0.0, 1.0, None),
    AnswerObserved("done", (VerdictObserved("valid", 1),), 0, 1, False, 1.0, None),
    SearchObserved("done", "lexical", (ChannelObserved("lexical", "run", None, 1, 1, 0, 0, 1),), 1, 1.0, "甲"),
]


def written_as_json(value: Any) -> bytes:
    """JSON of what can be written as JSON, else any bytes."""
    return json.dumps(value, default=str, skipkeys=True).encode("utf-8", "surrogatepass")


LOG_LINE = st.one_of(
    st.sampled_from(EVENTS).map(lambda event: json.dumps(event.to_dict()).encode()),
    st.sampled_from(EVENTS).flatmap(lambda event: spoiled(event.to_dict())).map(written_as_json),
    TEXT.map(lambda text: text.encode("utf-8", "surrogatepass")),
    st.binary(max_size=60),
)


@pytest.mark.promise("FLT-12", "OBS-4", "ERR-2")
@examples("log")
@given(st.lists(LOG_LINE, max_size=3))
def test_a_log_is_summed_or_refused(tmp_path: Path, lines: list[bytes]) -> None:
    path = tmp_path / LOG
    path.write_bytes(b"".join(line + b"\n" for line in lines))
    made = outcome(lambda: sums(read_log(path)))
    if isinstance(made, Sums):
        assert made.events == len(lines)
        json.dumps(made.to_dict(), allow_nan=False)


@pytest.mark.promise("FLT-12", "LEX-4", "LEX-5", "ERR-2")
@examples("search")
@given(st.one_of(TEXT, VALUE), st.sampled_from(["lexical", "vector", "hybrid"]), st.sampled_from(["isolated", "fts5"]))
def test_a_search_finds_only_what_may_be_read(kb: tuple[Index, Path], query: Any, mode: Any, lexical: Any) -> None:
    made = outcome(lambda: kb[0].search(query, ALICE, mode=mode, lexical=lexical))
    if isinstance(made, SearchResult):
        assert {hit.doc_id for hit in made} <= {"d1", "d3", "d5"}
        assert {hit.principal for hit in made} <= {"alice"}
    usable = isinstance(query, str) and 1 <= len(query) <= 1024 and not re.search("[\ud800-\udfff]", query)
    assert usable == isinstance(made, SearchResult)


NEW = ["--doc-id", "new", "--revision", "1"]
LOG = "events.jsonl"
SYNC = ["sync", "docs", "--acl", "acl.yml", "--encoder", "terms"]  # never the model, whatever index is named later
STARTS = [
    *(["search"], ["answer"], ["audit"], ["add"], ["delete"], ["acl"], ["status"], ["documents"], ["check"]),
    *(
        ["repair"],
        ["purge"],
        ["backup"],
        ["search", "退款"],
        ["answer", "退款"],
        ["answer", "--hits", "-"],
        ["audit", "-"],
    ),
    *(["add", "-", "--format", name, *NEW] for name in FORMATS),
    *(["stats"], ["stats", "kb.sqlite"], ["stats", LOG], ["stats", "hits.json"], ["explain"], ["explain", "d1"]),
    *(["explain", "docs/d1"], ["explain", "d1", "--hits", "-"], ["explain", "d1", "--hits", "hits.json"], ["sync"]),
    *(SYNC, [*SYNC, "--dry-run"]),
    *([], ["kbretrieval"], ["model"], ["notebooks", "html"]),
]
WORDS = [
    "--tenant", "--as", "--group", "--json", "--limit", "--mode", "--hits", "--format", "--acl", "--revision",
    "--doc-id", "--help", "--expected", "--restore", "--rrf-k", "--chunk-size", "--lexical-share", "--encoder",
    "--", "-", "--index", "--version", "--fusion=convex", "--json=1", "--restore-all", "--connector",
    "--confirm-deletions",
]  # fmt: skip
VALUES = [
    "acme", "alice", "hybrid", "1", "0", "-1", "2", "terms", "markdown", "d1", "0.5", "nan", "hits.json", "a.md",
    "", "9" * 30,
]  # fmt: skip
USUAL = ["--index", "kb.sqlite", "--tenant", "acme", "--as", "alice"]
ASKING, WHOLE = {"search", "answer", "audit", "explain"}, {"check", "repair", "purge", "backup"}


def usual_options(start: list[str]) -> list[str]:
    """The options that a command cannot do without."""
    if not start or start[0] == "stats":
        return []
    return USUAL[:2] if start[0] in WHOLE else USUAL if start[0] in ASKING else USUAL[:4]


def written(word: str | bytes) -> str:
    """What Python makes of an argument: bytes that are no text come escaped, and none holds NUL."""
    text = word.decode("utf-8", "surrogateescape") if isinstance(word, bytes) else word
    return text.replace("\x00", "")


WORD = st.one_of(st.sampled_from(WORDS), st.sampled_from(VALUES), TEXT, st.binary(max_size=20)).map(written)
# No file is named by chance: a path in an arbitrary word could lead out of the folder.
INSIDE = WORD.filter(lambda word: not {"/", "\\"} & set(word))
LINES = st.tuples(
    st.sampled_from(STARTS), st.one_of(st.just([]), st.lists(INSIDE, max_size=6)), st.sampled_from([True, True, False])
)
STDIN = st.one_of(
    TEXT.map(lambda text: text.encode("utf-8", "surrogatepass")), NEARLY.map(str.encode), st.binary(max_size=60)
)


@pytest.mark.promise("FLT-12", "ERR-1", "ERR-2")
@examples("command")
@given(line=LINES, stdin=STDIN)
def test_a_command_line_runs_or_is_refused_in_one_line(
    kb: tuple[Index, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str], line: Any, stdin: bytes
) -> None:
    start, words, usual = line
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(_copied(kb[1], tmp_path))
        patch.setattr(sys, "stdin", TextIOWrapper(BytesIO(stdin), encoding="ascii"))
        status = main([*start, *(usual_options(start) if usual else []), *words])
    out, err = capsys.readouterr()
    assert status != INTERRUPTED and "Traceback" not in out + err
    if status:
        refusal = LINE.fullmatch(err)
        assert refusal is not None, err
        assert CODES[refusal["code"]] == status
    else:
        assert err == ""


def _copied(path: Path, folder: Path) -> Path:
    """A folder with a copy of the index and a kept hit, the same before each example."""
    for old in folder.iterdir():
        if old.is_dir():
            shutil.rmtree(old)  # "notebooks html" makes one
        else:
            old.unlink()
    (folder / "kb.sqlite").write_bytes(path.read_bytes())
    (folder / "hits.json").write_text("[{}]", encoding="utf-8")
    (folder / "a.md").write_text("# 甲", encoding="utf-8")
    (folder / LOG).write_text(json.dumps(EVENTS[0].to_dict()) + "\n", encoding="utf-8")
    (folder / "docs").mkdir()
    (folder / "docs" / "a.md").write_text("# 甲", encoding="utf-8")
    (folder / "acl.yml").write_text("version: 1\ndefault: [alice]\nrules: []\n", encoding="utf-8")
    return folder


@pytest.mark.promise("FLT-12")
def test_fuzzing_changed_nothing(kb: tuple[Index, Path], tmp_path: Path) -> None:
    """Runs last in this file: what only reads has written nothing, and the store is sound."""
    fresh = tmp_path / "fresh.sqlite"
    fresh.write_bytes(kb[1].read_bytes())
    assert kb[0].check() == ()
    assert [item.doc_id for item in kb[0].documents("acme")] == [f"d{number}" for number in range(6)]
    assert logical_dump(fresh) == logical_dump(kb[1])


def test_an_untyped_error_would_be_seen() -> None:
    with pytest.raises(ZeroDivisionError):
        outcome(lambda: 1 / 0)
    assert sum(SHARES.values()) == pytest.approx(1.0)


@pytest.mark.parametrize(("mode", "size", "expected"), [("", "", SHORT), ("full", "", FULL), ("full", "50", 50)])
def test_the_size_follows_the_environment(monkeypatch: pytest.MonkeyPatch, mode: str, size: str, expected: int) -> None:
    monkeypatch.setenv("KBRETRIEVAL_FAULTS", mode)
    monkeypatch.delenv("KBRETRIEVAL_FUZZ_EXAMPLES", raising=False)
    if size:
        monkeypatch.setenv("KBRETRIEVAL_FUZZ_EXAMPLES", size)
    assert total() == expected
