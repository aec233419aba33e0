"""Several processes at one file: two creators, many writers, a revocation under way (FLT-14, FLT-6, CON-5)."""

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from kbretrieval import Context, Index
from tests.faults.telling import Told
from tests.faults.workers import Worker

pytestmark = pytest.mark.alone

MODULE = "tests.faults.process"
CHANGED = "index_projection_contract_changed_rebuild_required"


def rounds(folder: Path, number: int, *broken: str) -> list[list[str | None]]:
    """What two processes were told that created the same new file at the same moment, with different windows."""
    told = []
    with Worker(MODULE, *broken) as one, Worker(MODULE, *broken) as other:
        for n in range(number):
            path = folder / f"{n}.sqlite"
            moment = time.time() + 0.02 if n else time.time() + 2.0
            one.tell(do="race", path=str(path), size=80, moment=moment)
            other.tell(do="race", path=str(path), size=90, moment=moment)
            told.append([one.hear(), other.hear()])
    return told


@pytest.mark.promise("FLT-14", "CON-3", "CON-1")
def test_of_two_creators_exactly_one_succeeds(tmp_path: Path, full: bool, record_property: Told) -> None:
    """C063: always; the winner's settings are stored, and the loser wrote nothing."""
    told = rounds(tmp_path, 200 if full else 60)
    record_property("rounds", len(told))
    assert [pair for pair in told if sorted(pair, key=str) != [None, CHANGED]] == []
    for n, pair in enumerate(told):
        with Index.open(tmp_path / f"{n}.sqlite") as index:
            assert index.contract.chunk_size == (80 if pair[0] is None else 90)
            assert index.check() == ()
    assert len({pair[0] for pair in told}) == 2, "each of them should win now and then"


@pytest.mark.promise("FLT-14")
def test_a_build_that_checks_outside_a_transaction_is_caught(tmp_path: Path) -> None:
    told = rounds(tmp_path, 12, "without-transaction")
    assert [pair for pair in told if sorted(pair, key=str) != [None, CHANGED]] != []


@contextmanager
def running(number: int, *broken: str) -> Iterator[list[Worker]]:
    """So many processes, all of them ready."""
    with ExitStack() as stack:
        workers = [stack.enter_context(Worker(MODULE, *broken)) for _ in range(number)]
        assert [worker.ask(do="ready") for worker in workers] == [True] * number
        yield workers


@pytest.mark.promise("CON-5", "ACL-3", "UPD-1")
def test_no_acknowledged_change_is_lost(tmp_path: Path, full: bool) -> None:
    """C057: compare and swap from four processes; nothing but `stale_acl_revision` is raised."""
    path = tmp_path / "kb.sqlite"
    with Index.open(path) as index:
        index.upsert("acme", "c", 1, "markdown", "# 计数\n\n计数器", ["alice"])
    with running(4) as workers:
        for worker in workers:
            worker.tell(do="swap", path=str(path), times=200 if full else 40)
        told = [worker.hear() for worker in workers]
    assert {code for item in told for code in item["errors"]} <= {"stale_acl_revision"}
    with Index.open(path) as index:
        assert index.status("acme", "c").acl_revision == 1 + sum(item["done"] for item in told)
        assert index.check() == ()


def shares(path: Path, writers: int, commits: int, *broken: str) -> list[int]:
    """How many of so many commits each writer made, all of them writing as fast as they can."""
    with Index.open(path) as index:
        for n in range(writers):
            index.upsert("acme", f"w{n}", 1, "markdown", "# 计数", ["alice"])
    with running(writers, *broken) as workers:
        for n, worker in enumerate(workers):
            worker.tell(do="write", path=str(path), doc_id=f"w{n}", commits=commits)
        return [worker.hear() for worker in workers]


@pytest.mark.promise("CON-5", "FLT-5")
def test_no_writer_starves(tmp_path: Path, full: bool, record_property: Told) -> None:
    """The slowest gets a fifth of the fastest or more; counted in commits, so that a slow disk changes nothing."""
    done = shares(tmp_path / "kb.sqlite", 8 if full else 4, 2000 if full else 400)
    record_property("commits of each writer", done)
    assert min(done) * 5 >= max(done), done


@pytest.mark.promise("CON-5", "FLT-5")
def test_a_build_that_leaves_the_waiting_to_sqlite_is_caught(tmp_path: Path) -> None:
    """It starves a writer in about three runs of four; in none of six is less than one in a thousand."""
    for n in range(6):
        done = shares(tmp_path / f"{n}.sqlite", 4, 300, "drivers-waiting")
        if min(done) * 5 < max(done):
            return
    raise AssertionError("no writer starved")


def older_answers(path: Path, times: int, *broken: str) -> int:
    """How many answers another process gave under the older list after `set_acl` had returned here."""
    wrong = 0
    with Index.open(path) as index, Worker(MODULE, *broken) as reader:
        index.upsert("acme", "switch", 1, "markdown", "# 开关\n\n开关状态说明", ["alice"])
        alice = Context("acme", "alice")
        mine = index.search("开关状态", alice)
        for n in range(1, times + 1):
            granted = n % 2 == 1
            assert reader.ask(do="look", path=str(path), query="开关状态") == (["switch"] if granted else [])
            assert broken or reader.ask(do="answer", path=str(path)) == (["switch"] if granted else [])
            if broken:
                reader.ask(do="answer", path=str(path))
            index.set_acl("acme", "switch", ["bob"] if granted else ["alice"], n)
            wrong += reader.ask(do="answer", path=str(path)) != []
            wrong += n > 1 and index.answer(mine, alice).state != "abstain"
    return wrong


@pytest.mark.promise("FLT-6", "ACL-7", "ACL-4", "VEC-8")
def test_a_revocation_holds_in_another_process_at_once(tmp_path: Path, full: bool, record_property: Told) -> None:
    """C047: and a new grant never revives a hit of an older one."""
    alternations = 1000 if full else 400
    record_property("alternations", alternations)
    assert older_answers(tmp_path / "kb.sqlite", alternations) == 0


@pytest.mark.promise("FLT-6", "ACL-7")
def test_a_build_that_remembers_for_a_while_is_caught(tmp_path: Path) -> None:
    assert older_answers(tmp_path / "kb.sqlite", 40, "remembering") > 0
