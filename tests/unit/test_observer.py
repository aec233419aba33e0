"""OBS-3: an observer gets small frozen events of what an index does, and can neither stop nor change it."""

import dataclasses
import json
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kbretrieval import Context, Index, KBError
from kbretrieval.observers import AnswerObserved, Event, Observation, SearchObserved, WriteObserved
from kbretrieval.observers.watch import MAX_LABEL, Watch
from kbretrieval.sync import FolderSource, Policy, synchronise
from tests.unit.doubles import Table, code_of, logical_dump, sql

ALICE, BOB = Context("acme", "alice"), Context("acme", "bob")
TEXT = "# 差旅\n\n住宿每晚限额五百元，代号飞鸟。"
QUERY = "住宿限额"


def opened(path: Path, **options: Any) -> tuple[Index, list[Event]]:
    """An index with an observer that keeps what it gets."""
    events: list[Event] = []
    return Index.open(path, observer=events.append, **options), events


def history(index: Index) -> list[object]:
    """A few operations of every kind, some of them refused; their results and codes."""
    made: list[object] = [
        index.upsert("acme", "travel", 1, "markdown", TEXT, ["alice"]),
        index.upsert("acme", "travel", 1, "markdown", TEXT, ["alice"]),
        code_of(index.upsert, "acme", "travel", 1, "markdown", TEXT + "再。", ["alice"]),
        code_of(index.upsert, "acme", "bad", 1, "json", "{", ["alice"]),
    ]
    old = index.search(QUERY, ALICE)
    made += [old, index.upsert("acme", "travel", 2, "markdown", TEXT + "新。", ["alice"])]
    made += [index.answer(old, ALICE), code_of(index.search, "", ALICE), code_of(index.answer, 7, ALICE)]
    made += [index.answer(index.search(QUERY, ALICE), ALICE), index.search("飞鸟", BOB, mode="lexical")]
    made += [index.set_acl("acme", "travel", ["bob"], 1), code_of(index.set_acl, "acme", "travel", ["bob"], 1)]
    made += [index.delete("acme", "travel", 3), index.delete("acme", "travel", 3)]
    made += [index.upsert("acme", "travel", 4, "markdown", TEXT, ["bob"], restore=True), index.repair_derived()]
    return made


@pytest.mark.promise("OBS-3")
def test_each_write_is_told_with_its_kind_and_outcome(tmp_path: Path) -> None:
    index, events = opened(tmp_path / "kb.sqlite")
    with index:
        history(index)
        index.purge()
    writes = [(event.kind, event.outcome) for event in events if isinstance(event, WriteObserved)]
    assert writes == [
        *(("upsert", "created"), ("upsert", "unchanged"), ("upsert", "stale_or_conflicting_revision")),
        *(("upsert", "invalid_json"), ("upsert", "updated")),
        *(("set_acl", "replaced"), ("set_acl", "stale_acl_revision")),
        *(("delete", "deleted"), ("delete", "unchanged"), ("upsert", "restored")),
        *(("repair_derived", "unchanged"), ("purge", "purged")),
    ]


@pytest.mark.promise("OBS-3")
def test_a_search_is_told_with_what_its_channels_did(tmp_path: Path) -> None:
    index, events = opened(tmp_path / "kb.sqlite")
    with index:
        index.upsert("acme", "travel", 1, "markdown", TEXT, ["alice"])
        found = index.search(QUERY, ALICE, mode="lexical", window=1)
        assert code_of(index.search, "", ALICE) == "bounded_query_required"
    told, refused = (event for event in events if isinstance(event, SearchObserved))
    assert (told.outcome, told.mode, told.hits, told.label) == ("done", "lexical", len(found), None)
    assert told.milliseconds > 0
    assert [(item.channel, item.state, item.reason) for item in told.channels] == [
        ("lexical", "run", None),
        ("vector", "skipped", "mode"),
    ]
    for item in told.channels:
        trace = found.channel(item.channel)
        counts = ("eligible", "scored", "below_floor", "beyond_window", "returned")
        assert [getattr(item, name) for name in counts] == [getattr(trace, name) for name in counts]
    assert (refused.outcome, refused.mode, refused.channels, refused.hits) == ("bounded_query_required", None, (), 0)


def spoiled(index: Index) -> list[Any]:
    """Hits with a verdict each, every verdict that needs no damaged store, and one that holds twice."""
    for name in ("kept", "changed", "shut", "moved", "gone"):
        index.upsert("acme", name, 1, "text", f"{QUERY}第{name}号", ["alice"])
    hits = {hit.doc_id: hit for hit in index.search(QUERY, ALICE, limit=10)}
    index.upsert("acme", "changed", 2, "text", f"{QUERY}另", [])
    index.set_acl("acme", "shut", ["bob"], 1)
    index.set_acl("acme", "moved", ["alice", "bob"], 1)
    index.delete("acme", "gone", 2)
    kept = hits["kept"]
    return [
        *hits.values(),
        dataclasses.replace(kept, principal="bob"),
        dataclasses.replace(kept, tenant="other"),
        dataclasses.replace(kept, chunk_key=kept.chunk_key + 1000),
        dataclasses.replace(kept, chunk_sha256="0" * 64),
        {"a": 1},
        kept,
    ]


@pytest.mark.promise("OBS-3", "OBS-4", "ACL-8")
def test_verdicts_are_counted_and_the_answer_says_nothing_of_them(tmp_path: Path) -> None:
    index, events = opened(tmp_path / "kb.sqlite")
    with index:
        hits = spoiled(index)
        assert len(hits) == 11
        quoted, judged = index.answer(hits, ALICE, 10), index.audit(hits, ALICE)
        silent = index.answer([hit for hit, item in zip(hits, judged, strict=True) if item.verdict != "valid"], ALICE)
    with Index.open(tmp_path / "kb.sqlite") as unobserved:
        assert unobserved.answer(hits, ALICE, 10) == quoted
        assert unobserved.answer([], ALICE) == silent
    told, abstained = (event for event in events if isinstance(event, AnswerObserved))
    refused = ["deleted", "revision changed", "access withdrawn", "ACL changed", "other principal", "other tenant"]
    refused += ["chunk missing", "text altered", "malformed"]
    assert [(item.verdict, item.hits) for item in told.verdicts] == sorted(
        [*((name, 1) for name in refused), ("valid", 2)]
    )
    assert (told.quotations, told.abstained, told.unjudged, told.outcome) == (1, False, 0, "done")
    assert (abstained.quotations, abstained.abstained) == (0, True)
    assert {item.verdict for item in abstained.verdicts} == set(refused)


@pytest.mark.promise("OBS-3")
def test_a_damaged_store_is_a_verdict_and_hits_after_the_last_quotation_are_not_judged(tmp_path: Path) -> None:
    index, events = opened(tmp_path / "kb.sqlite")
    with index:
        for name in ("a", "b", "c"):
            index.upsert("acme", name, 1, "text", f"{QUERY}{name}", ["alice"])
        hits = list(index.search(QUERY, ALICE))
        sql(tmp_path / "kb.sqlite", "UPDATE documents SET body = 'x' WHERE doc_id = ?", hits[0].doc_id)
        assert len(index.answer(hits, ALICE, 1).evidence) == 1
    told = events[-1]
    assert isinstance(told, AnswerObserved)
    assert told.to_dict()["verdicts"] == {"store corrupted": 1, "valid": 1} and told.unjudged == 1


@pytest.mark.promise("OBS-3", "SYN-3")
def test_a_run_over_a_folder_is_told_write_by_write(tmp_path: Path) -> None:
    index, events = opened(tmp_path / "kb.sqlite")
    (tmp_path / "docs").mkdir()
    for name in ("a", "b"):
        (tmp_path / "docs" / f"{name}.txt").write_text(TEXT + name, encoding="utf-8", newline="\n")
    policy = tmp_path / "acl.yml"
    for entry in ("alice", "alice", "bob"):
        policy.write_text(f"version: 1\ndefault: [{entry}]\nrules: []\n", encoding="utf-8", newline="\n")
        synchronise(index, FolderSource(tmp_path / "docs"), Policy.read(policy), tenant="acme")
    index.close()
    told = [(event.kind, event.outcome) for event in events if isinstance(event, WriteObserved)]
    assert told == [("upsert", "created")] * 2 + [("set_acl", "replaced")] * 4, "taken from alice, then given to bob"


def everything_in(value: object) -> str:
    """All that an event holds, as text."""
    return json.dumps(value, ensure_ascii=False, default=lambda item: item.to_dict() | {"is": repr(item)})


@pytest.mark.promise("OBS-3", "ERR-1")
def test_no_event_holds_a_text_a_query_a_name_or_a_key(tmp_path: Path) -> None:
    index, events = opened(tmp_path / "kb.sqlite")
    with index:
        history(index)
        hit = index.search("飞鸟", BOB)[0]
        code_of(index.answer, [hit.to_dict() | {"text": "秘密"}], BOB, 99)
        code_of(index.upsert, "租户", "文档", 0, "markdown", TEXT, [])
        code_of(index.search, "机密查询", BOB, mode="机密模式")
    assert len(events) == 22
    held = "".join(everything_in(event) for event in events)
    words = ["差旅", "住宿", "限额", "飞鸟", "秘密", "机密", "租户", "文档", "travel", "acme", "alice", "bob"]
    assert [word for word in [*words, hit.document_sha256, hit.chunk_sha256] if word in held] == []
    for event in events:
        with pytest.raises(dataclasses.FrozenInstanceError):
            event.label = "x"  # type: ignore[misc]
        assert not hasattr(event, "__dict__")


@pytest.mark.promise("OBS-3")
def test_names_are_told_only_as_the_caller_labels_them(tmp_path: Path) -> None:
    asked: list[tuple[str, str | None]] = []

    def label(tenant: str, principal: str | None) -> str | None:
        asked.append((tenant, principal))
        return "部门甲" if principal == "alice" else None

    index, events = opened(tmp_path / "kb.sqlite", label=label)
    with index:
        index.upsert("acme", "travel", 1, "markdown", TEXT, ["alice"])
        index.answer(index.search(QUERY, ALICE), ALICE)
        index.search(QUERY, BOB)
        index.purge()
        code_of(index.search, QUERY, "alice")
    assert asked == [("acme", None), ("acme", "alice"), ("acme", "alice"), ("acme", "bob")]
    assert [event.label for event in events] == [None, "部门甲", "部门甲", None, None, None]


class Interrupted(BaseException):
    """No failure: somebody wants the program to end."""


def failing(error: BaseException) -> Callable[[Event], None]:
    def observe(event: Event) -> None:
        raise error

    return observe


@pytest.mark.promise("OBS-3")
@pytest.mark.parametrize(
    "error", [ZeroDivisionError("1"), OSError(28, "full"), KBError("x"), RecursionError()], ids=repr
)
def test_an_observer_that_raises_changes_nothing(tmp_path: Path, error: Exception) -> None:
    for name in ("with", "without"):
        (tmp_path / name).mkdir()
    with Index.open(tmp_path / "without" / "kb.sqlite") as index:
        expected = history(index)
        assert index.observation == Observation(0, 0, None)
    with Index.open(tmp_path / "with" / "kb.sqlite", observer=failing(error)) as index:
        assert history(index) == expected
        kind = error.code if isinstance(error, KBError) else type(error).__name__
        assert index.observation == Observation(0, 18, kind)
        assert index.check() == ()
    dumps = {logical_dump(tmp_path / name / "kb.sqlite") for name in ("with", "without")}
    assert len(dumps) == 1


@pytest.mark.promise("OBS-3")
def test_an_interrupt_in_an_observer_passes_and_what_was_written_stays(tmp_path: Path) -> None:
    with Index.open(tmp_path / "kb.sqlite", observer=failing(Interrupted())) as index:
        with pytest.raises(Interrupted):
            index.upsert("acme", "travel", 1, "markdown", TEXT, ["alice"])
        assert index.status("acme", "travel").state == "live" and index.check() == ()


@pytest.mark.promise("OBS-3")
@pytest.mark.parametrize("label", [7, "x" * (MAX_LABEL + 1), "\udc80"], ids=["number", "long", "surrogate"])
def test_a_label_that_is_none_is_counted_and_tells_nothing(tmp_path: Path, label: Any) -> None:
    index, events = opened(tmp_path / "kb.sqlite", label=lambda tenant, principal: label)
    with index:
        assert len(index.search(QUERY, ALICE)) == 0
        assert index.observation == Observation(0, 1, "invalid_parameter") and events == []


@pytest.mark.promise("OBS-3")
def test_events_come_when_the_operation_is_over(tmp_path: Path) -> None:
    """Another connection can write at once: no transaction is open and no lock held while the observer works."""
    path = tmp_path / "kb.sqlite"
    with Index.open(path, wait_seconds=0) as other:
        revisions = iter(range(1, 9))
        observe = lambda event: other.upsert("acme", "log", next(revisions), "text", "x", ["alice"])  # noqa: E731
        with Index.open(path, observer=observe) as index:
            index.upsert("acme", "travel", 1, "markdown", TEXT, ["alice"])
            index.answer(index.search(QUERY, ALICE), ALICE)
            code_of(index.delete, "acme", "travel", 1)
            assert index.observation == Observation(4, 0, None)


@pytest.mark.promise("OBS-3")
@pytest.mark.parametrize("name", ["observer", "label"])
def test_what_cannot_be_called_is_refused_before_a_file_is_made(tmp_path: Path, name: str) -> None:
    options: dict[str, Any] = {name: 7}
    assert code_of(Index.open, tmp_path / "kb.sqlite", **options) == "invalid_parameter"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.promise("OBS-3")
def test_without_an_observer_no_clock_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def unread() -> float:
        raise AssertionError("a clock was read")

    monkeypatch.setattr(time, "perf_counter", unread)
    with Index.open(tmp_path / "kb.sqlite") as index:
        history(index)


@pytest.mark.promise("OBS-3")
def test_milliseconds_are_those_of_the_operation() -> None:
    ticks, waits = iter([10.0, 10.25, 20.0, 20.5]), iter([1.0, 1.125, 2.0, 2.0])
    events: list[Event] = []
    watch = Watch(events.append, None, lambda: next(waits), lambda: next(ticks))
    with watch.write("delete", "acme") as told:
        told.outcome = "deleted"
    with pytest.raises(ZeroDivisionError), watch.write("upsert", "acme"):
        raise ZeroDivisionError
    assert events == [WriteObserved("delete", "deleted", 125.0, 250.0, None)]


@pytest.mark.alone
@pytest.mark.promise("OBS-3")
@pytest.mark.parametrize("same_index", [True, False], ids=["thread", "connection"])
def test_waiting_for_another_writer_is_told(tmp_path: Path, same_index: bool) -> None:
    """A writer holds the store while the other one begins; only the first of two deletes waited."""
    path, held, go = tmp_path / "kb.sqlite", threading.Event(), threading.Event()
    slow = Table("slow", default=(1.0, 0.0))
    index, events = opened(path, encoder=slow)
    other = index if same_index else opened(path, encoder=slow)[0]

    def hold() -> None:
        with other._engine.connection.write():
            held.set()
            go.wait(10)
            time.sleep(0.2)

    holder = threading.Thread(target=hold)
    holder.start()
    held.wait(10)
    go.set()
    index.delete("acme", "gone", 1)
    holder.join()
    index.delete("acme", "gone", 2)
    index.close()
    other.close()
    waited, free = (event for event in events if isinstance(event, WriteObserved))
    assert 20 <= waited.waited_milliseconds <= waited.milliseconds
    assert free.waited_milliseconds < 20


@pytest.mark.promise("OBS-3")
def test_a_write_that_waits_in_vain_is_busy_and_says_how_long(tmp_path: Path) -> None:
    path = tmp_path / "kb.sqlite"
    index, events = opened(path, wait_seconds=0.05)
    with Index.open(path) as other, index, other._engine.connection.write():
        assert code_of(index.delete, "acme", "gone", 1) == "busy"
    (told,) = events
    assert isinstance(told, WriteObserved)
    assert told.outcome == "busy" and told.waited_milliseconds >= 10


@pytest.mark.promise("OBS-3")
def test_threads_lose_no_event(tmp_path: Path) -> None:
    index, events = opened(tmp_path / "kb.sqlite")
    threads = [threading.Thread(target=lambda: [index.search(QUERY, ALICE) for _ in range(20)]) for _ in range(4)]
    with index:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(events) == 80 and index.observation == Observation(80, 0, None)
