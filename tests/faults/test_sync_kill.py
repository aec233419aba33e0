"""Runs of a source ended by SIGKILL, inside and between transactions, and run again (SYN-7, POL-3)."""

import os
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from kbretrieval import Index
from tests.faults.synchronising import NEW, NEW_RULES, begun, synchronised
from tests.faults.workers import Worker
from tests.unit.doubles import code_of, logical_dump

pytestmark = pytest.mark.skipif(os.name != "posix", reason="SIGKILL and fork are POSIX")


@pytest.fixture(scope="module")
def worker() -> Iterator[Worker]:
    with Worker("tests.faults.synchronising") as started:
        yield started


@pytest.fixture(scope="module")
def old(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("sync") / "old.sqlite"
    begun(path)
    return path


def copied(old: Path, folder: Path) -> Path:
    return Path(shutil.copy(old, folder / "kb.sqlite"))


@pytest.mark.promise("SYN-7", "POL-3")
def test_a_killed_run_is_finished_by_the_next(worker: Worker, old: Path, tmp_path: Path, full: bool) -> None:
    whole = tmp_path / "whole.sqlite"
    steps = len(synchronised(Path(shutil.copy(old, whole)), NEW, NEW_RULES).steps)
    expected, number = logical_dump(whole), 2
    # Opening and reading commit too. In full every commit is struck, before and after it; in short one in seven.
    while worker.ask(path=str(copied(old, tmp_path)), how="after", number=number)["signal"] == signal.SIGKILL:
        for how in ("after", "before"):
            path = tmp_path / "kb.sqlite"
            if how == "before":
                worker.ask(path=str(copied(old, tmp_path)), how=how, number=number)
            synchronised(path, NEW, NEW_RULES)
            assert logical_dump(path) == expected
            with Index.open(path) as index:
                assert index.check() == ()
        number += 1 if full else 7
    assert number > steps + 3


@pytest.mark.promise("SYN-7")
def test_a_run_that_stands_still_holds_others_up_and_a_dead_one_does_not(
    worker: Worker, old: Path, tmp_path: Path
) -> None:
    path = copied(old, tmp_path)
    standing = worker.ask(path=str(path), how="stop", number=2)
    try:
        assert standing["signal"] == signal.SIGSTOP
        assert code_of(synchronised, path, NEW, NEW_RULES, wait_seconds=0.05) == "busy"
    finally:
        worker.ask(child=standing["child"])
    assert len(synchronised(path, NEW, NEW_RULES, wait_seconds=0.05).steps) > 2
