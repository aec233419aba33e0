"""Waiting for other connections: our own, fair, up to a deadline, and only where a write began as one (CON-5)."""

import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from kbretrieval import Context, Index
from tests.unit.doubles import Table, code_of

pytestmark = pytest.mark.alone

TEXT = "# 计数\n\n计数器"


@contextmanager
def holding(path: Path, begin: str, seconds: float) -> Iterator[None]:
    """Another connection keeps a transaction open for some seconds."""
    started = threading.Event()

    def hold() -> None:
        with closing(sqlite3.connect(path, isolation_level=None)) as connection:
            connection.execute(begin)
            connection.execute("SELECT count(*) FROM documents").fetchall()
            started.set()
            time.sleep(seconds)
            connection.execute("COMMIT")

    thread = threading.Thread(target=hold)
    thread.start()
    started.wait()
    yield
    thread.join()


@pytest.mark.promise("CON-5", "UPD-1")
def test_a_writer_waits_for_a_reader(index: Index, index_path: Path) -> None:
    """C057"""
    index.upsert("acme", "c", 1, "markdown", TEXT, ["alice"])
    with holding(index_path, "BEGIN", 0.4):
        started = time.monotonic()
        assert index.upsert("acme", "c", 2, "markdown", TEXT + "新值", ["alice"]).state == "indexed"
        assert time.monotonic() - started >= 0.3


@pytest.mark.promise("CON-5")
def test_everyone_waits_for_a_writer(index: Index, index_path: Path, alice: Context) -> None:
    index.upsert("acme", "c", 1, "markdown", TEXT, ["alice"])
    hits = index.search("计数器", alice)
    calls: list[Callable[[], object]] = [
        lambda: index.search("计数器", alice),
        lambda: index.answer(hits, alice),
        lambda: index.set_acl("acme", "c", ["alice"], 1),
        lambda: Index.open(index_path).close(),
        index.check,
        index.purge,
    ]
    for call in calls:
        with holding(index_path, "BEGIN EXCLUSIVE", 0.15):
            started = time.monotonic()
            assert code_of(call) is None
            assert time.monotonic() - started >= 0.1


@pytest.mark.promise("CON-5", "ERR-2")
def test_after_the_deadline_it_is_busy(index_path: Path, tmp_path: Path, alice: Context) -> None:
    """In each call, with both facts, nothing written, and the next call works."""
    with Index.open(index_path, wait_seconds=0.05) as index:
        index.upsert("acme", "c", 1, "markdown", TEXT, ["alice"])
        hits = index.search("计数器", alice)
        calls: list[Callable[[], object]] = [
            lambda: index.search("计数器", alice),
            lambda: index.answer(hits, alice),
            lambda: index.upsert("acme", "c", 2, "markdown", TEXT + "二", ["alice"]),
            lambda: index.set_acl("acme", "c", ["bob"], 1),
            lambda: index.delete("acme", "c", 2),
            lambda: index.status("acme", "c"),
            lambda: index.documents("acme"),
            index.check,
            index.purge,
            lambda: index.backup(tmp_path / "copy"),
            lambda: Index.open(index_path, wait_seconds=0.05),
        ]
        before = index.status("acme", "c")
        with holding(index_path, "BEGIN EXCLUSIVE", 1.5):
            started = time.monotonic()
            assert [code_of(call) for call in calls] == ["busy"] * len(calls)
            assert time.monotonic() - started < 1.4
        assert not (tmp_path / "copy").exists()
        assert index.status("acme", "c") == before
        assert code_of(index.set_acl, "acme", "c", ["bob"], 1) is None


@pytest.mark.promise("CON-5", "UPD-1")
def test_every_write_stands_in_a_transaction_that_began_as_a_write(index_path: Path, alice: Context) -> None:
    """C057: seen by a trace of the statements. A deferred transaction that reads and then writes is busy at once."""
    seen: list[str] = []
    with Index.open(index_path, encoder=Table("table-2")) as index:
        index._engine.connection._raw.set_trace_callback(seen.append)
        index.upsert("acme", "c", 1, "markdown", TEXT, ["alice"])
        index.upsert("acme", "c", 2, "markdown", TEXT + "二", ["alice"])
        index.set_acl("acme", "c", ["alice", "bob"], 1)
        index.answer(index.search("计数器", alice, lexical="fts5"), alice)
        index.delete("acme", "c", 3)
        index.upsert("acme", "c", 4, "markdown", TEXT, ["alice"], restore=True)
        index.check()
        index.purge()
        index._engine.connection._raw.set_trace_callback(None)
    assert wrong_writes(seen) == []
    assert {text for text in seen if text.startswith("BEGIN")} == {"BEGIN", "BEGIN IMMEDIATE"}


def wrong_writes(seen: list[str]) -> list[str]:
    """Statements that write outside BEGIN IMMEDIATE; FTS5's own statements, which begin with a dash, left out."""
    inside, wrong = "", []
    for text in seen:
        verb = text.split(maxsplit=1)[0].upper()
        if verb == "BEGIN":
            inside = text
        elif verb in ("COMMIT", "ROLLBACK"):
            inside = ""
        elif verb in ("INSERT", "UPDATE", "DELETE", "REPLACE", "CREATE", "DROP") and inside != "BEGIN IMMEDIATE":
            wrong.append(text)
    return [text for text in wrong if "vacuum_db" not in text]


@pytest.mark.promise("CON-5")
def test_a_write_that_began_as_a_read_is_found() -> None:
    assert wrong_writes(["BEGIN", "SELECT 1", "UPDATE t SET n = 1", "COMMIT"]) == ["UPDATE t SET n = 1"]
    assert wrong_writes(["INSERT INTO t VALUES (1)"]) == ["INSERT INTO t VALUES (1)"]
    assert wrong_writes(["BEGIN IMMEDIATE", "INSERT INTO t VALUES (1)", "COMMIT"]) == []
