"""Names of a case that need other processes: killed, with a full disk, side by side, in a race, with another locale."""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from tests.conformance.case_functions import packed
from tests.faults.workers import ROOT, Worker

MODULE = "tests.conformance.case_worker"
Window = tuple[int, int]
LATEST = 120
"""The call that strace strikes; a step has fewer."""
AHEAD_SECONDS = 0.004
FAULTS = {"kill": "signal=SIGKILL", "full": "error=ENOSPC"}
FASTER = {"kill": [], "full": ["--seccomp-bpf"]}
"""strace then stops at the calls in question alone, but sends no signal."""

# The regular expressions that the package compiles ask for the locale's encoding, in a way that Python warns of.
PROGRAM = """
import json, os, sys, warnings
warnings.filterwarnings("ignore", "UTF-8 Mode affects locale", EncodingWarning)
sys.path.insert(0, os.environ["CASE_ROOT"])
from kbretrieval import Context, Index, TermEncoder
from kbretrieval.evidence import Claim
FILE, OUT = os.environ["CASE_FILE"], os.environ["CASE_OUT"]
def write_evidence(path, hits, answer):
    folder, name = os.path.split(path)
    with Claim(name.removesuffix(".json"), "引文可核。", argv=("python", "-m", "kbretrieval"), folder=folder) as claim:
        for item in answer.evidence:
            claim.row(doc_id=item.doc_id, start=item.start, end=item.end, quote=item.quote, sha256=item.sha256)
        claim.equal("documents", [item.doc_id for item in answer.evidence], [hit.doc_id for hit in hits])
"""


class Processes:
    """The names of one case that start processes; `window` is what an index file was opened with."""

    def __init__(self, folder: Path, files: Mapping[str, str], window: Callable[[str], Window]) -> None:
        self._folder, self._files, self._window = folder, files, window
        self._started = ExitStack()
        self._workers: dict[str, Worker] = {}

    def close(self) -> None:
        """End every process."""
        self._started.close()

    def _worker(self, name: str, *arguments: str, before: Sequence[str] = ()) -> Worker:
        if name not in self._workers:
            self._workers[name] = self._started.enter_context(Worker(MODULE, *arguments, before=before))
        return self._workers[name]

    def _team(self, *names: str) -> list[Worker]:
        """So many processes, all of them ready before one is given an order; they start side by side."""
        fresh = [name for name in names if name not in self._workers]
        workers = [self._worker(name, "without-syncs") for name in names]
        for name in fresh:
            assert self._workers[name].ask(do="ready")
        return workers

    def parallel(self, number: int, function: Callable[..., Any]) -> list[Any]:
        """Call `function(index)` in so many processes at once, each with an index of its own; what each returned."""
        path = self._files["FILE"]
        workers = self._team(*(f"parallel {n}" for n in range(number)))
        moment = time.time() + 0.5
        for worker in workers:
            order = {"function": packed(function), "path": path, "window": self._window(path)}
            worker.tell(do="on_index", **order, moment=moment)
        return [worker.hear() for worker in workers]

    def race(self, one: Callable[[], Any], other: Callable[[], Any]) -> list[Any]:
        """Call two functions in two processes at the same moment; what each returned."""
        workers = self._team("one", "other")
        moment = time.time() + AHEAD_SECONDS
        for worker, function in zip(workers, (one, other), strict=True):
            worker.tell(do="call", function=packed(function), moment=moment)
        return [worker.hear() for worker in workers]

    @contextmanager
    def hold_reader(self, file: str, seconds: float) -> Iterator[None]:
        """Another process keeps a read transaction open, and ends it so many seconds after the block has begun."""
        worker = self._worker("reader")
        worker.ask(do="hold", path=file)
        worker.tell(do="release", seconds=seconds)
        yield
        assert worker.hear()

    def _struck(self, kind: str, n: int, step: Callable[..., Any]) -> str | None:
        path, decoy = Path(self._files["FILE"]), self._folder / "decoy"
        decoy.write_bytes(b"x")
        watched = [path, Path(f"{path}-journal"), decoy]
        paths = [part for file in watched for part in ("-P", str(file))]
        injected = ["-e", "trace=pwrite64", "-e", f"inject=pwrite64:{FAULTS[kind]}:when={LATEST}"]
        traced = ["strace", "-f", *FASTER[kind], "-qq", "-o", "/dev/null", *paths, *injected]
        worker = self._worker(kind, before=traced)
        order = {"path": str(path), "decoy": str(decoy), "call": "pwrite64", "padding": LATEST - n}
        assert n < LATEST, "more writes than expected"
        said: list[str | None] = worker.ask(do="strike", function=packed(step), window=self._window(str(path)), **order)
        return said[0] if said else "killed"

    def kill_at(self, n: int, step: Callable[..., Any]) -> str | None:
        """Take `step(index)` in a child that is killed at its n-th write: "killed", or None when it came to its end."""
        return self._struck("kill", n, step)

    def full_at(self, n: int, step: Callable[..., Any]) -> str | None:
        """Take `step(index)` in a child that has no space at its n-th write: what it was refused with, or None."""
        return self._struck("full", n, step)

    def run_python(self, program: str, env: Mapping[str, str], flags: Sequence[str]) -> tuple[int, str]:
        """Run a program in an interpreter with these settings: its exit status, and what it said on standard error."""
        file = self._folder / "program.py"  # an argument of the interpreter could hold no Chinese in a C locale
        file.write_text(f"{PROGRAM}\n{program}\nindex.close()\n", encoding="utf-8", newline="\n")
        places = {"CASE_ROOT": str(ROOT), "CASE_FILE": self._files["FILE"], "CASE_OUT": self._files["OUT"]}
        line = [sys.executable, *flags, str(file)]
        done = subprocess.run(line, env=os.environ | places | dict(env), capture_output=True, check=False, timeout=60)
        return done.returncode, done.stderr.decode("utf-8", "replace")
