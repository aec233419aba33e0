"""OBS-4: `stats` sums up a log of events, or counts an index."""

import builtins
import json
import subprocess
import sys
from dataclasses import replace
from datetime import datetime, tzinfo
from pathlib import Path
from typing import Any, Self

import pytest

from kbretrieval import Context, Index
from kbretrieval.cli import stats_shown
from kbretrieval.observers import JsonLinesObserver, read_log, sums
from kbretrieval.store.files import is_sqlite
from kbretrieval.store.staging import begin_staging
from tests.cli.conftest import Run
from tests.unit.doubles import code_of, logical_dump

ALICE = Context("acme", "alice")


@pytest.fixture
def log(tmp_path: Path, kb: Path) -> Path:
    """The log of a small history: two searches, one without a hit, an answer from an old hit, a refused write."""
    path = tmp_path / "events.jsonl"
    with JsonLinesObserver(path, clock=lambda: 1_700_000_000.0) as observer, Index.open(kb, observer=observer) as index:
        hits = index.search("住宿限额", ALICE)
        index.search("飞鸟", ALICE, mode="lexical")
        index.set_acl("acme", "travel", ["bob"], 1)
        index.answer(hits, ALICE)
        index.answer(index.search("午餐", ALICE), ALICE)
    return path


@pytest.mark.promise("OBS-4")
def test_stats_of_a_log_are_its_sums(run: Run, log: Path) -> None:
    done = run("stats", log, "--json")
    assert (done.status, done.err) == (0, "")
    expected = sums(read_log(log))
    assert json.loads(done.out) == json.loads(json.dumps(expected.to_dict()))
    shown = run("stats", log)
    assert (shown.status, shown.err) == (0, "")
    lines = [line.split() for line in shown.out.splitlines()]
    assert lines[0] == ["6", "events", "from", "2023-11-14T22:13:20Z", "to", "2023-11-14T22:13:20Z"]
    assert ["searches:", "3", "done,", "1", "without", "a", "hit", "(0", "with", "nothing", "eligible);"] in [
        line[:11] for line in lines
    ]
    assert ["answers:", "2", "done,", "1", "abstained,", "1", "quotations;"] in [line[:7] for line in lines]
    assert ["policy", "changed", "1", "█" * 30] in lines and ["content", "changed", "0"] in lines
    assert ["set_acl:", "replaced", "1", "█" * 30] in lines and ["vector:", "mode", "1", "█" * 30] in lines
    assert not {"住宿限额", "飞鸟", "acme", "alice", "bob", "travel"} & set(shown.out.split())


@pytest.mark.promise("OBS-4")
def test_a_moment_needs_no_calendar_of_the_system(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Windows(datetime):
        """Its calendar ends in the year 3000."""

        @classmethod
        def fromtimestamp(cls, timestamp: float, tz: tzinfo | None = None) -> Self:
            raise OSError(22, "Invalid argument")

    monkeypatch.setattr(stats_shown, "datetime", Windows)
    path = tmp_path / "events.jsonl"
    observer = JsonLinesObserver(path, clock=lambda: 90_000_000_000.0)
    with observer, Index.open(tmp_path / "kb.sqlite", observer=observer) as index:
        index.search("住宿限额", ALICE)
    assert run("stats", path).out.startswith("1 events from 4821-12-26T16:00:00Z")


@pytest.mark.promise("OBS-4")
def test_a_line_that_a_kill_left_unfinished_is_told(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    with JsonLinesObserver(path) as observer, Index.open(tmp_path / "kb.sqlite", observer=observer) as index:
        index.search("住宿限额", ALICE)
        index.search("住宿限额", ALICE)
    path.write_bytes(path.read_bytes()[:-9])
    done = run("stats", path)
    assert done.status == 0 and done.out.startswith("1 events and 1 torn lines\n")
    made = json.loads(run("stats", path, "--json").out)
    assert (made["events"], made["torn"]) == (1, 1)


@pytest.mark.promise("OBS-4")
def test_an_empty_log_has_no_events(run: Run, tmp_path: Path) -> None:
    JsonLinesObserver(tmp_path / "events.jsonl").close()
    done = run("stats", tmp_path / "events.jsonl")
    assert done.status == 0 and done.out.startswith("0 events\n")
    assert json.loads(run("stats", tmp_path / "events.jsonl", "--json").out)["events"] == 0


@pytest.mark.promise("OBS-4", "ERR-1")
@pytest.mark.parametrize("raw", ["canary\n", "x", "{}\n" * 9, "canary " * 3000], ids=["line", "letter", "json", "long"])
def test_a_file_that_is_neither_is_refused_by_its_first_line(run: Run, tmp_path: Path, raw: str) -> None:
    path = tmp_path / "notes.txt"
    path.write_text(raw, encoding="utf-8", newline="\n")
    done = run("stats", path)
    assert (done.status, done.out) == (2, "")
    assert done.err.startswith("invalid_observation_log: line 1: ") and "canary" not in done.err


@pytest.mark.promise("OBS-4")
def test_what_is_no_file_is_refused(run: Run, tmp_path: Path) -> None:
    absent, folder = run("stats", tmp_path / "none"), run("stats", tmp_path)
    assert absent.status == 6 and absent.err.startswith("index_missing: ")
    assert folder.status == 2 and folder.err.startswith("invalid_path: ")
    assert sorted(tmp_path.iterdir()) == []


@pytest.mark.promise("OBS-4")
def test_the_chart_is_a_picture(run: Run, log: Path, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="matplotlib is in the extra `book`")
    picture = tmp_path / "events.png"
    assert run("stats", log, "--chart", picture).status == 0
    assert picture.read_bytes().startswith(b"\x89PNG\r\n")
    empty = tmp_path / "empty.jsonl"
    JsonLinesObserver(empty).close()
    assert run("stats", empty, "--chart", tmp_path / "empty.png").status == 0
    refused = run("stats", log, "--chart", tmp_path / "none" / "events.png")
    assert refused.status == 2 and refused.err.startswith("invalid_parameter: --chart: ")


@pytest.mark.promise("OBS-4")
def test_without_matplotlib_the_chart_is_refused_and_the_table_is_not(
    run: Run, log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = builtins.__import__

    def absent(name: str, *more: Any, **named: Any) -> Any:
        if name.partition(".")[0] == "matplotlib":
            raise ImportError(name)
        return original(name, *more, **named)

    monkeypatch.setattr(builtins, "__import__", absent)
    refused = run("stats", log, "--chart", tmp_path / "events.png")
    assert (refused.status, refused.out) == (2, "")
    assert refused.err.startswith("invalid_parameter: --chart: matplotlib is required")
    assert refused.err.rstrip().endswith('run: python -m pip install "kbretrieval[book]"')
    assert run("stats", log).status == 0 and not (tmp_path / "events.png").exists()


@pytest.mark.promise("OBS-4")
def test_stats_of_an_index_are_its_counts(run: Run, kb: Path, tmp_path: Path) -> None:
    with Index.open(kb) as index:
        index.upsert("另一家", "a", 1, "text", "甲" * 500, ["*"])
        counted, contract = index.counts(), index.contract
    before = logical_dump(kb)
    done = run("stats", kb, "--json")
    assert (done.status, done.err) == (0, "")
    made = json.loads(done.out)
    assert made == json.loads(json.dumps(counted.to_dict()))
    keys = ("tenant", "live", "tombstones", "chunks")
    assert [[item[key] for key in keys] for item in made["tenants"]] == [["acme", 2, 1, 2], ["另一家", 1, 0, 3]]
    assert (made["commit"], made["migrating"], made["contract"]) == (5, False, contract.to_dict())
    assert made["file_bytes"] == kb.stat().st_size
    shown = run("stats", kb)
    lines = [line.split() for line in shown.out.splitlines()]
    assert ["另一家", "1", "0", "3"] in lines and ["encoder", contract.encoder] in lines
    refused = run("stats", kb, "--chart", tmp_path / "x.png")
    assert refused.status == 2 and refused.err.startswith("invalid_parameter: --chart: ")
    assert logical_dump(kb) == before


@pytest.mark.promise("OBS-4", "MIG-1")
def test_a_migration_that_has_begun_is_told_and_its_rows_are_not_counted(run: Run, kb: Path) -> None:
    with Index.open(kb) as index:
        before, connection = index.counts(), index._engine.connection
        with connection.write():
            begin_staging(connection, replace(index.contract, chunk_size=100, overlap=20))
        begun = index.counts()
    assert (before.migrating, begun.migrating) == (False, True)
    assert (begun.tenants, begun.contract) == (before.tenants, before.contract)
    assert ["migrating", "yes"] in [line.split() for line in run("stats", kb).out.splitlines()]


WRITER = """
import sys
from kbretrieval import Index, KBError
try:
    with Index.open(sys.argv[1], wait_seconds=0) as index:
        print(index.delete("acme", "travel", 9).state)
except KBError as error:
    print(error.code)
"""


@pytest.mark.promise("OBS-4", "CON-2")
def test_a_look_at_an_index_ends_no_lock_that_this_process_holds(kb: Path) -> None:
    """A file that is opened here to read its first bytes, and closed again, loses every lock that SQLite has on it."""

    def from_elsewhere() -> str:
        done = subprocess.run([sys.executable, "-c", WRITER, kb], capture_output=True, encoding="utf-8", check=True)
        return done.stdout.strip()

    with Index.open(kb) as index:
        with index._engine.connection.read():
            index._engine.connection.run("SELECT count(*) FROM documents")
            assert is_sqlite(kb) and code_of(JsonLinesObserver, kb) == "invalid_path"
            assert from_elsewhere() == "busy"
        assert from_elsewhere() == "deleted"


@pytest.mark.promise("OBS-4")
def test_an_empty_index_has_no_documents(run: Run, tmp_path: Path) -> None:
    Index.open(tmp_path / "new.sqlite").close()
    done = run("stats", tmp_path / "new.sqlite")
    assert done.status == 0 and done.out.startswith("no documents\n")
