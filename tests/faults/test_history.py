"""Several processes at one file for a while: their histories hold nothing that no order of commits explains (FLT-5)."""

import os
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest

from kbretrieval import Index
from tests.faults.crowd import BROKEN, DOCUMENTS, TENANT
from tests.faults.events import Event, Final, counted, merged, shares
from tests.faults.history import anomalies
from tests.faults.telling import Told
from tests.faults.workers import Worker

pytestmark = [pytest.mark.alone, pytest.mark.slow]

MODULE = "tests.faults.crowd"
# A broken build goes unnoticed in at most two short runs of three; in forty, less than once in ten million times.
TRIES = 40


@pytest.fixture(scope="module")
def crowd(full: bool) -> Iterator[list[Worker]]:
    """Processes that have imported everything: four, in full eight."""
    with ExitStack() as stack:
        workers = [stack.enter_context(Worker(MODULE)) for _ in range(8 if full else 4)]
        for worker in workers:
            worker.tell(do="ready")
        assert all(worker.hear() for worker in workers)
        yield workers


@dataclass(frozen=True, slots=True)
class Run:
    """What came of one run: all events, what is stored in the end, and what `check()` says of it."""

    events: list[Event]
    finals: list[Final]
    faults: int


def run(workers: list[Worker], folder: Path, seconds: float, mix: str = "even", broken: str = "") -> Run:
    """Let the crowd work on a new file."""
    folder.mkdir(exist_ok=True)
    path, diaries = str(folder / "kb.sqlite"), [folder / f"{n}.jsonl" for n in range(len(workers) + 1)]
    workers[0].ask(do="found", path=path, history=str(diaries[-1]))
    order = {"do": "work", "path": path, "seconds": seconds, "mix": mix, "broken": broken}
    for n, worker in enumerate(workers):
        worker.tell(**order, history=str(diaries[n]), number=n)
    for worker in workers:
        worker.hear()
    with Index.open(path) as index:
        stored = {doc_id: index.status(TENANT, doc_id) for doc_id in DOCUMENTS}
        faults = len(index.check())
    finals = [
        Final(doc_id, one.state == "live", one.revision or 0, one.acl_revision or 0, one.acl, one.sha256 or "")
        for doc_id, one in stored.items()
    ]
    return Run(merged(diaries), finals, faults)


@pytest.fixture(scope="module")
def sound(crowd: list[Worker], tmp_path_factory: pytest.TempPathFactory, full: bool) -> Run:
    """The engine as it is, for a while: a minute in full, ten seconds in CI."""
    return run(crowd, tmp_path_factory.mktemp("sound"), 60 if full else 10 if os.environ.get("CI") == "true" else 3)


@pytest.mark.promise("FLT-5")
def test_two_processes_leave_no_anomaly(crowd: list[Worker], tmp_path: Path, full: bool) -> None:
    """With fewer at work each operation is short, and its span tells more."""
    made = run(crowd[:2], tmp_path, 60 if full else 1)
    assert anomalies(made.events, made.finals) == []
    assert made.faults == 0
    assert shares(made.events)[0] > 0


@pytest.mark.promise("FLT-5", "UPD-1", "UPD-2", "ACL-3", "ACL-7", "CON-5")
def test_a_history_of_several_processes_has_no_anomaly(sound: Run, record_property: Told) -> None:
    """No anomaly, no lost update, nothing but typed refusals; and every kind of operation succeeded."""
    assert anomalies(sound.events, sound.finals) == []
    assert sound.faults == 0
    counts = counted(sound.events)
    record_property("operations", dict(counts))
    for kind in ("upsert indexed", "set_acl replaced", "delete deleted", "search done", "answer extractive"):
        assert counts[kind] > 0, counts


@pytest.mark.promise("FLT-5", "CON-5")
def test_every_process_of_a_mixed_crowd_gets_its_writes_done(crowd: list[Worker], sound: Run) -> None:
    """The slowest has a fifth of the fastest or more."""
    done = shares(sound.events)
    assert len(done) == len(crowd)
    assert done[0] * 5 >= done[-1], done


TWICE = {"two content changes of one revision", "two list changes of one revision"}
SHOWN_BY = {
    "answers from what was read a while ago": (
        "reading",
        {"an older version", "a deleted document", "a replaced list"},
    ),
    "an upsert that looks before its transaction": ("writing", TWICE),
    "a swap that looks before its transaction": ("writing", TWICE),
    "a delete that looks before its transaction": ("writing", TWICE),
    "a document that is committed before its chunks": ("reading", {"a readable document was not found"}),
}


@pytest.mark.promise("FLT-5")
@pytest.mark.parametrize("broken", sorted(BROKEN.keys() - {""}))
def test_a_broken_build_is_caught(crowd: list[Worker], tmp_path: Path, broken: str) -> None:
    """By a crowd of the same kind and the same checker, within a few short runs, and by what is broken."""
    mix, kinds = SHOWN_BY[broken]
    for n in range(TRIES):
        made = run(crowd[:4], tmp_path / str(n), 0.4, mix, broken)
        if kinds & {one.kind for one in anomalies(made.events, made.finals)}:
            return
    raise AssertionError("nothing was found")
