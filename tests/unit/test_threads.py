"""One index used from several threads, by two connections, after close, and in a forked child."""

import os
import threading
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kbretrieval import Context, Index, KBError, retrieval
from tests.unit.doubles import MODES, code_of, docs

TEXT = "# 甲\n\n内容"


def every_call(index: Index, alice: Context, folder: Path) -> list[Callable[[], object]]:
    hits: list[Any] = [{}]
    return [
        lambda: index.search("内容", alice),
        lambda: index.answer(hits, alice),
        lambda: index.audit(hits, alice),
        lambda: index.upsert("acme", "d", 2, "markdown", "# 乙", ["alice"]),
        lambda: index.set_acl("acme", "d", ["bob"], 1),
        lambda: index.delete("acme", "d", 2),
        lambda: index.status("acme", "d"),
        lambda: index.documents("acme"),
        index.check,
        index.purge,
        lambda: index.backup(folder / "copy"),
    ]


@pytest.mark.promise("ERR-2")
def test_after_close_every_call_says_so(index_path: Path, alice: Context) -> None:
    """C062: a second close is harmless; the file is whole."""
    index = Index.open(index_path)
    index.upsert("acme", "d", 1, "markdown", TEXT, ["alice"])
    index.close()
    index.close()
    calls = every_call(index, alice, index_path.parent)
    assert [code_of(call) for call in calls] == ["index_closed"] * len(calls)
    assert [item.name for item in index_path.parent.iterdir()] == [index_path.name]
    with Index.open(index_path) as again:
        assert docs(again.search("内容", alice)) == ["d"]


@pytest.mark.promise("ERR-2", "FLT-15")
@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_forked_child_is_refused_and_the_parent_goes_on(index: Index, index_path: Path, alice: Context) -> None:
    """C062: even its close leaves the parent's connection alone."""
    index.upsert("acme", "d", 1, "markdown", TEXT, ["alice"])
    calls = every_call(index, alice, index_path.parent)
    reader, writer = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # the child starts no thread
        child = os.fork()
    if child == 0:
        told = "the child failed"
        try:
            told = " ".join(str(code_of(call)) for call in calls)
            index.close()
        finally:
            os.write(writer, told.encode("utf-8"))
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader, encoding="utf-8") as pipe:
        assert pipe.read().split() == ["index_forked"] * len(calls)
    os.waitpid(child, 0)
    assert docs(index.search("内容", alice)) == ["d"]
    assert index.delete("acme", "d", 2).state == "deleted"


def in_threads(calls: list[Callable[[], None]]) -> list[BaseException]:
    """Run the calls at once and return what they raised."""
    raised: list[BaseException] = []
    barrier = threading.Barrier(len(calls))

    def run(call: Callable[[], None]) -> None:
        barrier.wait()
        try:
            call()
        except BaseException as error:  # noqa: BLE001 - handed to the test, whatever it is
            raised.append(error)

    threads = [threading.Thread(target=run, args=(call,)) for call in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return raised


@pytest.mark.promise("ACL-3", "CIT-1", "FLT-15")
def test_threads_share_one_index(index: Index, alice: Context) -> None:
    """Compare and swap loses no update, every answer holds, and the store is sound afterwards."""
    index._engine.connection.run("PRAGMA synchronous=OFF")
    index.upsert("acme", "shared", 1, "markdown", TEXT, ["alice"])
    won: list[int] = []

    def write(name: str) -> None:
        for revision in range(1, 16):
            index.upsert("acme", name, revision, "markdown", f"# {name}\n\n内容{revision}", ["alice"])

    def swap() -> None:
        for _ in range(15):
            seen = index.status("acme", "shared").acl_revision or 0
            try:
                won.append(index.set_acl("acme", "shared", ["alice"], seen).acl_revision)
            except KBError as error:
                assert error.code == "stale_acl_revision"

    def read() -> None:
        for _ in range(15):
            answer = index.answer(index.search("内容", alice, limit=20), alice, limit=10)
            for item in answer.evidence:
                assert item.doc_id == "shared" or item.quote == f"# {item.doc_id}\n\n内容{item.revision}"

    assert in_threads([lambda: write("w1"), lambda: write("w2"), swap, swap, read, read]) == []
    assert sorted(won) == list(range(2, len(won) + 2))
    assert index.status("acme", "shared").acl_revision == len(won) + 1
    assert [index.status("acme", name).revision for name in ("w1", "w2")] == [15, 15]
    assert index.check() == ()


@pytest.mark.promise("ERR-2")
def test_a_close_in_the_middle_ends_the_others_with_one_code(index_path: Path, alice: Context) -> None:
    index = Index.open(index_path)
    index.upsert("acme", "d", 1, "markdown", TEXT, ["alice"])
    reading = threading.Event()

    def read() -> None:
        while True:
            index.answer(index.search("内容", alice), alice)
            reading.set()

    def close() -> None:
        reading.wait()
        index.close()

    raised = in_threads([read, read, close])
    assert [getattr(error, "code", repr(error)) for error in raised] == ["index_closed"] * 2


@pytest.mark.promise("VEC-8", "LEX-7", "ACL-7")
def test_a_second_connection_sees_each_commit_at_once(index: Index, index_path: Path, alice: Context) -> None:
    """C058"""
    with Index.open(index_path) as second:

        def seen() -> list[list[str]]:
            return [docs(second.search("周报", alice, mode=mode)) for mode in MODES]  # type: ignore[arg-type]

        index.upsert("acme", "w1", 1, "markdown", "# 周报\n\n周报甲", ["alice"])
        assert seen() == [["w1"]] * 3
        index.upsert("acme", "w2", 1, "markdown", "# 周报\n\n周报乙", ["alice"])
        assert seen() == [["w1", "w2"]] * 3
        hits = second.search("周报", alice)
        index.set_acl("acme", "w2", ["bob"], 1)
        assert [item.doc_id for item in second.answer(hits, alice, limit=10).evidence] == ["w1"]
        assert seen() == [["w1"]] * 3
        index.delete("acme", "w1", 2)
        assert seen() == [[]] * 3


@pytest.mark.promise("VEC-8")
def test_a_snapshot_of_one_commit_never_changes(index: Index, alice: Context) -> None:
    """What a search holds while others write is one commit, whole; the next search sees the next one."""
    for n in range(3):
        index.upsert("acme", f"d{n}", 1, "markdown", f"# 甲\n\n内容{n}", ["alice"])
    index.search("内容", alice)
    old = index._engine.resident._snapshots["acme"]
    alive, keys = old.alive.copy(), old.column("chunk_keys").copy()
    index.delete("acme", "d1", 2)
    index.set_acl("acme", "d2", ["bob"], 1)
    assert docs(index.search("内容", alice)) == ["d0"]
    new = index._engine.resident._snapshots["acme"]
    assert (new is old, new.head.number - old.head.number) == (False, 2)
    assert (old.alive == alive).all() and (old.column("chunk_keys") == keys).all()
    assert int(old.eligible(alice).count) == 3


@pytest.mark.promise("VEC-8", "CON-5")
def test_no_transaction_is_held_while_a_search_scores(
    index: Index, index_path: Path, alice: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Others may write meanwhile; what comes out is of one commit all the same, and the newest."""
    index.upsert("acme", "d", 1, "markdown", "# 甲\n\n内容1", ["alice"])
    held: list[bool] = []
    original = retrieval.rank_bm25
    with Index.open(index_path, wait_seconds=0) as other:

        def scored(*arguments: Any) -> Any:
            held.append(index._engine.connection._raw.in_transaction)
            if len(held) <= retrieval.OPTIMISTIC_TRIES:
                revision = len(held) + 1
                other.upsert("acme", "d", revision, "markdown", f"# 甲\n\n内容{revision}", ["alice"])
            return original(*arguments)

        monkeypatch.setattr(retrieval, "rank_bm25", scored)
        (hit,) = index.search("内容", alice, mode="lexical")
    assert held == [False] * retrieval.OPTIMISTIC_TRIES + [True], "after three tries it no longer lets go"
    assert (hit.revision, hit.text) == (4, "# 甲\n\n内容4")
