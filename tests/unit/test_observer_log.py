"""OBS-4: events as JSON lines, read back strictly, and summed up."""

import json
import math
import multiprocessing
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

import pytest

from kbretrieval import Context, Index
from kbretrieval.citation import Verdict
from kbretrieval.observers import (
    CAUSES,
    AnswerObserved,
    ChannelObserved,
    Event,
    JsonLinesObserver,
    Logged,
    Observation,
    SearchObserved,
    WriteObserved,
    read_log,
    sums,
)
from kbretrieval.observers.events import VerdictObserved
from kbretrieval.observers.log import MAX_LINE
from kbretrieval.observers.sums import percentile
from tests.unit.doubles import code_of, error_of

ALICE = Context("acme", "alice")
SKIPPED = ChannelObserved("vector", "skipped", "mode", 2, 0, 0, 0, 0)
RUN = ChannelObserved("lexical", "run", None, 2, 2, 1, 0, 1)
NOTHING = ChannelObserved("lexical", "run", None, 0, 0, 0, 0, 0)
SEARCHES = [
    SearchObserved("done", "lexical", (RUN, SKIPPED), 1, 4.0, "部门甲"),
    SearchObserved("done", "hybrid", (NOTHING, NOTHING), 0, 1.0, None),
    SearchObserved("done", "hybrid", (RUN, NOTHING), 0, 2.5, None),
    SearchObserved("busy", None, (), 0, 30_000.0, None),
]
ANSWERS = [
    AnswerObserved("done", (VerdictObserved("ACL changed", 2), VerdictObserved("valid", 3)), 1, 2, False, 3.0, None),
    AnswerObserved("done", (VerdictObserved("deleted", 1), VerdictObserved("text altered", 1)), 0, 0, True, 5.0, None),
    AnswerObserved("too_many_hits", (), 0, 0, False, 0.1, None),
]
WRITES = [
    WriteObserved("upsert", "created", 0.0, 9.0, None),
    WriteObserved("upsert", "created", 7.5, 9.0, None),
    WriteObserved("set_acl", "stale_acl_revision", 0.5, 1.0, None),
]
EVENTS: list[Event] = [*SEARCHES, *ANSWERS, *WRITES]


def written(path: Path, events: list[Event], clock: Callable[[], float] | None = None) -> Path:
    with JsonLinesObserver(path, clock) as observer:
        for event in events:
            observer(event)
    return path


@pytest.mark.promise("OBS-4")
def test_events_come_back_as_they_were(tmp_path: Path) -> None:
    times = iter(range(100, 200))
    path = written(tmp_path / "events.jsonl", EVENTS, lambda: next(times) + 0.12345)
    lines = list(read_log(path))
    assert [line.event for line in lines] == EVENTS
    assert [line.at for line in lines] == [100.123 + n for n in range(len(EVENTS))]
    assert [line.at for line in read_log(written(tmp_path / "untimed.jsonl", EVENTS))] == [None] * len(EVENTS)
    raw = path.read_bytes()
    assert raw.count(b"\n") == len(EVENTS) and raw.endswith(b"\n") and b"\r" not in raw
    assert "部门甲" in raw.decode("utf-8")
    if os.name == "posix":
        assert path.stat().st_mode & 0o777 == 0o600


@pytest.mark.promise("OBS-4")
def test_a_second_observer_goes_on_where_the_first_one_ended(tmp_path: Path) -> None:
    path = written(written(tmp_path / "events.jsonl", EVENTS[:3]), EVENTS[3:])
    assert [line.event for line in read_log(path)] == EVENTS


def append_many(path: str, number: int, together: Any) -> None:
    """One process that writes a long label of its own, many times, while the others do the same."""
    with JsonLinesObserver(path) as observer:
        together.wait(30)
        for _ in range(200):
            observer(WriteObserved("upsert", "created", 0.0, 1.0, str(number) * 180))


@pytest.mark.promise("OBS-4")
@pytest.mark.skipif(os.name == "nt", reason="on Windows a file is one process's own; see JsonLinesObserver")
def test_processes_and_threads_share_a_log(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    context = multiprocessing.get_context("spawn")
    together = context.Barrier(3)
    processes = [context.Process(target=append_many, args=(str(path), number, together)) for number in (1, 2)]
    with JsonLinesObserver(path) as shared:

        def append() -> None:
            for _ in range(100):
                shared(WriteObserved("delete", "deleted", 0.0, 1.0, "7" * 180))

        threads = [threading.Thread(target=append) for _ in range(2)]
        for process in processes:
            process.start()
        together.wait(30)
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for process in processes:
            process.join()
    labels = [line.event.label for line in read_log(path)]
    assert sorted({label: labels.count(label) for label in labels}.values()) == [200, 200, 200]


@pytest.mark.promise("OBS-4")
def test_a_line_is_one_write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    writes: list[bytes] = []
    write = os.write

    def noted(file: int, line: bytes) -> int:
        writes.append(line)
        return write(file, line)

    monkeypatch.setattr(os, "write", noted)
    written(tmp_path / "events.jsonl", EVENTS)
    assert len(writes) == len(EVENTS) and all(line.endswith(b"\n") and line.count(b"\n") == 1 for line in writes)


@pytest.mark.promise("OBS-3", "OBS-4")
def test_a_full_disk_loses_a_line_and_no_operation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, write = tmp_path / "events.jsonl", os.write
    with JsonLinesObserver(path) as observer, Index.open(tmp_path / "kb.sqlite", observer=observer) as index:
        index.delete("acme", "a", 1)
        monkeypatch.setattr(os, "write", lambda file, line: write(file, line[:9]))
        assert index.delete("acme", "b", 1).state == "deleted"
        assert index.observation == Observation(1, 1, "storage_full")

        def failing(file: int, line: bytes) -> int:
            raise OSError(5, "broken")

        monkeypatch.setattr(os, "write", failing)
        index.delete("acme", "c", 1)
        assert index.observation == Observation(1, 2, "storage_io_error")
        monkeypatch.setattr(os, "write", write)
        index.delete("acme", "d", 1)
        observer.close()
        observer.close()
        index.delete("acme", "e", 1)
        assert index.observation == Observation(2, 3, "storage_io_error")
        assert [item.doc_id for item in index.documents("acme")] == ["a", "b", "c", "d", "e"]
    lines = path.read_bytes().split(b"\n")
    assert [len(line) > 9 for line in lines] == [True, False, True, False]
    assert [line.event is None for line in read_log(path)] == [False, True, False]


@pytest.mark.promise("OBS-4")
def test_after_a_torn_line_another_process_begins_a_new_one(tmp_path: Path) -> None:
    path = written(tmp_path / "events.jsonl", EVENTS[:1])
    path.write_bytes(path.read_bytes() + b'{"schema')
    written(path, EVENTS[1:2])
    assert path.read_bytes().count(b"\n") == 3
    assert [line.event for line in read_log(path)] == [EVENTS[0], None, EVENTS[1]]


@pytest.mark.promise("OBS-4")
@pytest.mark.parametrize("number", range(len(EVENTS)))
def test_an_event_cut_short_anywhere_is_counted_as_torn_and_the_rest_is_read(tmp_path: Path, number: int) -> None:
    whole = written(tmp_path / "whole.jsonl", EVENTS[number : number + 1], lambda: 7.25).read_bytes()
    path = tmp_path / "events.jsonl"
    lines = [whole[:size] for size in range(1, len(whole) - 1)]
    path.write_bytes(b"\n".join(lines) + b"\n" + whole)
    made = sums(read_log(path))
    assert (made.events, made.torn, made.first_at) == (1, len(lines), 7.25)


@pytest.mark.promise("OBS-4")
def test_a_log_is_never_written_into_another_file(tmp_path: Path) -> None:
    with Index.open(tmp_path / "kb.sqlite") as index:
        index.delete("acme", "a", 1)
        before = (tmp_path / "kb.sqlite").read_bytes()
        assert code_of(JsonLinesObserver, tmp_path / "kb.sqlite") == "invalid_path"
        assert (tmp_path / "kb.sqlite").read_bytes() == before
    assert code_of(JsonLinesObserver, tmp_path) == "invalid_path"
    assert code_of(JsonLinesObserver, tmp_path / "none" / "events.jsonl") == "storage_io_error"
    assert code_of(JsonLinesObserver, 7) == "invalid_path"
    assert code_of(JsonLinesObserver, tmp_path / "events.jsonl", 7) == "invalid_parameter"


def changed(event: Event, **fields: Any) -> dict[str, Any]:
    return event.to_dict() | fields


def without(event: Event, name: str) -> dict[str, Any]:
    return {key: value for key, value in event.to_dict().items() if key != name}


SEARCH, ANSWER, WRITE = SEARCHES[0], ANSWERS[0], WRITES[0]
CHANNEL = RUN.to_dict()
BAD: dict[str, object] = {
    "text": b"canary",
    "no utf-8": b'{"schema": "\xff"}',
    "empty line": b"",
    "list": [1],
    "number": 7,
    "deep": b"[" * 5000,
    "digits": b'{"a": ' + b"9" * 5000 + b"}",
    "no schema": {},
    "schema of another type": changed(WRITE, schema=["x"]),
    "unknown schema": changed(WRITE, schema="kbretrieval.canary/1"),
    "field too many": changed(WRITE, canary=1),
    "field missing": without(WRITE, "label"),
    "kind": changed(WRITE, kind="Canary text"),
    "long outcome": changed(WRITE, outcome="canary" * 20),
    "outcome": changed(SEARCH, outcome="\x1b[2J"),
    "label": changed(WRITE, label=7),
    "long label": changed(WRITE, label="x" * 201),
    "negative": changed(WRITE, milliseconds=-1),
    "not finite": changed(WRITE, milliseconds=math.inf),
    "true milliseconds": changed(WRITE, waited_milliseconds=True),
    "huge": changed(WRITE, milliseconds=2**60),
    "time": changed(WRITE, at="now"),
    "time after all": changed(WRITE, at=1e12),
    "mode": changed(SEARCH, mode="canary"),
    "mode of another type": changed(SEARCH, mode=["lexical"]),
    "hits": changed(SEARCH, hits=1.0),
    "true hits": changed(SEARCH, hits=True),
    "channels": changed(SEARCH, channels={}),
    "no channel": changed(SEARCH, channels=[7]),
    "many channels": changed(SEARCH, channels=[CHANNEL] * 10),
    "state": changed(SEARCH, channels=[CHANNEL | {"state": "canary"}]),
    "reason": changed(SEARCH, channels=[CHANNEL | {"reason": "a canary"}]),
    "channel field": changed(SEARCH, channels=[CHANNEL | {"scored": -1}]),
    "verdicts": changed(ANSWER, verdicts=[1]),
    "unknown verdict": changed(ANSWER, verdicts={"canary": 1}),
    "verdict count": changed(ANSWER, verdicts={"valid": "1"}),
    "abstained": changed(ANSWER, abstained=1),
    "long line": json.dumps(WRITE.to_dict()).encode() + b" " * MAX_LINE,
}


@pytest.mark.promise("OBS-4", "ERR-1")
@pytest.mark.parametrize("name", BAD)
def test_a_line_that_is_no_event_is_refused_by_its_number(tmp_path: Path, name: str) -> None:
    bad = BAD[name]
    line = bad if isinstance(bad, bytes) else json.dumps(bad).encode("utf-8")
    path = written(tmp_path / "events.jsonl", EVENTS[:2])
    path.write_bytes(path.read_bytes() + line + b"\n")
    error = error_of(list, read_log(path))
    assert error is not None and str(error).startswith("invalid_observation_log: line 3: ")
    assert "anary" not in str(error) and error.__context__ is None and error.__cause__ is None


@pytest.mark.promise("OBS-4")
def test_a_log_that_is_not_there_is_refused(tmp_path: Path) -> None:
    assert code_of(list, read_log(tmp_path / "none")) == "invalid_path"
    assert code_of(list, read_log(tmp_path)) == "invalid_path"


@pytest.mark.promise("OBS-4")
def test_sums_of_known_events() -> None:
    found = sums(Logged(event, 100.0 - n) for n, event in enumerate(EVENTS))
    assert (found.events, found.first_at, found.last_at) == (10, 91.0, 100.0)
    assert found.searches.to_dict() == {
        "schema": "kbretrieval.search_sums/1",
        "done": 3,
        "by_mode": {"hybrid": 2, "lexical": 1},
        "refused": {"busy": 1},
        "skipped": {"vector: mode": 1},
        "zero_hits": 2,
        "nothing_eligible": 1,
        "p50": 2.5,
        "p90": 4.0,
    }
    assert found.answers.to_dict() == {
        "schema": "kbretrieval.answer_sums/1",
        "done": 2,
        "refused": {"too_many_hits": 1},
        "abstained": 1,
        "quotations": 2,
        "unjudged": 1,
        "verdicts": {"ACL changed": 2, "deleted": 1, "text altered": 1, "valid": 3},
        "refused_citations": {
            "content changed": 0,
            "policy changed": 2,
            "deleted": 1,
            "chunk mismatch": 1,
            "corrupted": 0,
            "others": 0,
        },
        "p50": 3.0,
        "p90": 5.0,
    }
    assert found.writes.to_dict() == {
        "schema": "kbretrieval.write_sums/1",
        "writes": 3,
        "by_outcome": {"set_acl: stale_acl_revision": 1, "upsert: created": 2},
        "waited_p90": 7.5,
        "waited_most": 7.5,
    }


@pytest.mark.promise("OBS-4")
def test_every_refusal_has_one_cause() -> None:
    causes = [verdict for verdicts in CAUSES.values() for verdict in verdicts]
    assert sorted([*causes, "valid"]) == sorted(get_args(Verdict))


@pytest.mark.promise("OBS-4")
def test_nothing_has_no_percentile_and_no_time() -> None:
    found = sums([])
    assert found.searches.p50 is found.answers.p90 is found.writes.waited_most is found.first_at is None
    assert [percentile(range(1, 11), share) for share in (0.0, 0.5, 0.9, 1.0)] == [1, 5, 9, 10]


@pytest.mark.promise("OBS-4")
def test_an_index_in_use_leaves_a_log_that_can_be_summed(tmp_path: Path) -> None:
    with (
        JsonLinesObserver(tmp_path / "events.jsonl") as observer,
        Index.open(tmp_path / "kb.sqlite", observer=observer) as index,
    ):
        index.upsert("acme", "travel", 1, "text", "住宿限额", ["alice"])
        old = index.search("住宿", ALICE, mode="lexical")
        index.upsert("acme", "travel", 2, "text", "住宿新限额", ["alice"])
        assert index.answer(old, ALICE).state == "abstain"
        assert index.search("飞鸟", ALICE, mode="lexical").hits == ()
        code_of(index.answer, 7, ALICE)
    found = sums(read_log(tmp_path / "events.jsonl"))
    assert (found.searches.done, found.searches.zero_hits, found.searches.nothing_eligible) == (2, 1, 0)
    assert dict(found.answers.refused_citations)["content changed"] == found.answers.abstained == 1
    assert dict(found.writes.by_outcome) == {"upsert: created": 1, "upsert: updated": 1}
    assert dict(found.answers.refused) == {"hits_list_required": 1}
