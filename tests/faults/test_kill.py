"""FLT-1, C060: killed, or refused by the file system, at the n-th write, sync, truncate or unlink of a change.

strace injects the faults, so the code under test knows of nothing. Lost or reordered unsynced writes (a power failure)
are not covered.
"""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.faults.stricken import OLD, STEPS, opened
from tests.faults.telling import Told
from tests.faults.workers import Worker
from tests.unit.doubles import code_of, logical_dump

pytestmark = [
    pytest.mark.strace,
    pytest.mark.skipif(shutil.which("strace") is None, reason="not run: strace is not installed"),
]

LATEST = 400
KILL, NO_SPACE, BROKEN_DISK = "signal=SIGKILL", "error=ENOSPC", "error=EIO"
CODES = {NO_SPACE: "storage_full", BROKEN_DISK: "storage_io_error"}


@dataclass(frozen=True)
class Place:
    """The file under attack, its bytes before each step, and the dumps before and after each step."""

    path: Path
    start: bytes
    before: str
    after: dict[str, str]

    def reset(self) -> None:
        for item in self.path.parent.iterdir():
            item.unlink()
        self.path.write_bytes(self.start)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Place:
    path = tmp_path_factory.mktemp("stricken") / "kb.sqlite"
    with opened(path) as index:
        for doc_id in ("r", "s", "dead"):
            index.upsert("acme", doc_id, 1, "markdown", OLD, ["alice"])
        index.delete("acme", "dead", 2)
    start, before, after = path.read_bytes(), logical_dump(path), {}
    for name, step in STEPS.items():
        path.write_bytes(start)
        with opened(path) as index:
            step(index)
        after[name] = logical_dump(path)
    assert before not in after.values()
    return Place(path, start, before, after)


@contextmanager
def struck(
    place: Place, call: str, fault: str, decoy: Path, *arguments: str, forever: bool = False
) -> Iterator[Worker]:
    """A worker under strace, which meets the fault at the latest-th call of a kind on the index's files."""
    decoy.write_bytes(b"x")
    when = f"{LATEST}+" if forever else str(LATEST)
    files = [place.path, place.path.with_name("kb.sqlite-journal"), place.path.parent, decoy, f"{decoy}.absent"]
    watched = [part for file in files for part in ("-P", str(file))]
    traced = ["strace", "-f", "-qq", "-o", "/dev/null", *watched, "-e", f"trace={call}"]
    injected = ["-e", f"inject={call}:{fault}:when={when}"]
    with Worker("tests.faults.stricken", *arguments, before=[*traced, *injected]) as worker:
        yield worker


def points(
    place: Place, worker: Worker, call: str, step: str, decoy: Path, stride: int = 1, forever: bool = False
) -> Iterator[tuple[int, list[str | None]]]:
    """What each child said, from the first call of the step until the fault comes too late to meet it."""
    for n in range(1, LATEST, stride):
        place.reset()
        retry = n % 2 == 0 and not forever
        order = {"path": str(place.path), "decoy": str(decoy), "call": call, "padding": LATEST - n, "step": step}
        said = worker.ask(**order, retry=retry)
        if said and said[0] is None:
            return
        yield n, said
    raise AssertionError("more calls than expected")


def whole(place: Place, step: str, said: list[str | None]) -> str:
    """Check that the file is the whole old or the whole new state, sound, and that the next step works; which one."""
    dump = logical_dump(place.path)
    assert dump in (place.before, place.after[step]), (step, said)
    with opened(place.path) as index:
        assert index.check() == ()
        code = code_of(STEPS[step], index)
        assert code in (None, "stale_acl_revision")
        assert code is None or dump == place.after[step]
    if dump == place.before or step != "purge":
        assert logical_dump(place.path) == place.after[step]
    return "old" if dump == place.before else "new"


@pytest.mark.slow
@pytest.mark.promise("FLT-1", "UPD-2", "DEL-2")
def test_killed_at_any_call(place: Place, tmp_path: Path, full: bool, record_property: Told) -> None:
    """Whole old or whole new, and the next operation works; what was acknowledged is there."""
    seen, kinds = 0, set()
    for call, stride in (("pwrite64", 1 if full else 3), ("fdatasync", 1), ("unlink", 1), ("ftruncate", 1)):
        with struck(place, call, KILL, tmp_path / "decoy") as worker:
            for step in STEPS:
                for n, said in points(place, worker, call, step, tmp_path / "decoy", stride):
                    assert said == [], (call, step, n)
                    kinds.add((call, step, whole(place, step, said)))
                    seen += 1
    record_property("points", seen)
    assert seen >= (250 if full else 100)
    assert {kind for _, _, kind in kinds} == {"old", "new"}


@pytest.mark.slow
@pytest.mark.promise("FLT-1", "UPD-2", "ERR-2")
@pytest.mark.parametrize("fault", [NO_SPACE, BROKEN_DISK])
def test_refused_at_any_call(place: Place, tmp_path: Path, full: bool, fault: str, record_property: Told) -> None:
    """One typed code; a step that failed and is tried again in the same process succeeds."""
    seen = 0
    calls = ("pwrite64",) if fault == NO_SPACE else ("pwrite64", "fdatasync", "unlink", "ftruncate")
    for call in calls:
        with struck(place, call, fault, tmp_path / "decoy") as worker:
            for step in STEPS:
                stride = (1 if full else 11) if call == "pwrite64" else 1
                for n, said in points(place, worker, call, step, tmp_path / "decoy", stride):
                    seen += 1
                    assert said[0] == CODES[fault], (call, step, n, said)
                    if len(said) == 2:
                        assert said[1] in (None, "stale_acl_revision"), (call, step, n, said)
                        assert logical_dump(place.path) == place.after[step]
                    elif fault == NO_SPACE and step != "purge":
                        assert whole(place, step, said) == "old"
                    else:
                        whole(place, step, said)
    record_property("points", seen)
    assert seen >= (200 if full else 20)


@pytest.mark.slow
@pytest.mark.promise("FLT-1", "UPD-2", "ERR-2")
def test_a_disk_that_stays_full(place: Place, tmp_path: Path, full: bool, record_property: Told) -> None:
    """Not even the rollback can write: the next reader finds the whole old state."""
    seen = 0
    with struck(place, "pwrite64", NO_SPACE, tmp_path / "decoy", forever=True) as worker:
        for step in STEPS:
            stride = 1 if full else 13
            for n, said in points(place, worker, "pwrite64", step, tmp_path / "decoy", stride, forever=True):
                assert said[0] in ("storage_full", "storage_io_error"), (step, n, said)
                assert whole(place, step, said) == "old" or step == "purge"
                seen += 1
    record_property("points", seen)
    assert seen >= (200 if full else 15)


@pytest.mark.promise("FLT-1")
def test_a_build_that_commits_before_the_chunks_is_caught(place: Place, tmp_path: Path) -> None:
    mixed = 0
    with struck(place, "fdatasync", KILL, tmp_path / "decoy", "broken") as worker:
        for _, _said in points(place, worker, "fdatasync", "upsert", tmp_path / "decoy"):
            mixed += logical_dump(place.path) not in (place.before, place.after["upsert"])
    assert mixed > 0
