"""`kbretrieval model fetch`: three sources in order, the first that yields both digests wins (MOD-1, MOD-2).

Each source works in a temporary folder inside the target; a file takes its place only after its digest was compared,
by an atomic rename. So a wrong file is never kept, and two fetches at once do no harm.
"""

import os
import re
import signal
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from shutil import which
from threading import Thread

from tqdm import tqdm

from kbretrieval.errors import KBError, StorageIOError
from kbretrieval.model import hub
from kbretrieval.model.files import FILES, PinnedFile, check_folder, read_pinned, sha256_of

MAVEN_ARTIFACT = "dev.langchain4j:langchain4j-embeddings-bge-small-zh-v15-q:0.36.2"
JAR_SHA256 = "7cc5f4b1b258cb4c57eec8614a659a8dd8c08041316a9f4bb136134ac74e7e90"
TIME_LIMIT_SECONDS = 300.0
_ARRIVED = re.compile(r"([0-9.]+)/([0-9.]+) MB")

BY_HAND = (
    "put model_quantized.onnx and tokenizer.json into a folder and run: kbretrieval model fetch --from FOLDER",
    "or with the hub's own client: hf download Xenova/bge-small-zh-v1.5 onnx/model_quantized.onnx tokenizer.json"
    " --revision 75c43b069aac4d136ba6bc1122f995fedcfd2781",
    f"or with Maven: mvn dependency:copy -Dartifact={MAVEN_ARTIFACT} -DoutputDirectory=FOLDER, and unzip the jar",
)

# A source gets a folder and a time limit in seconds, and returns the files that it brought, by pinned file.
Brought = dict[PinnedFile, bytes]


class SourceFailed(Exception):
    """A source did not bring the files; the text is one line for the reader."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """One source and what came of it, `ok` or one line that says why not."""

    source: str
    outcome: str


def from_folder(folder: Path) -> Brought:
    """Return the files of a folder that the reader gives."""
    for state in check_folder(folder):
        if state.state != "ok":
            raise SourceFailed(f"{state.name} is {state.state} there")
    try:
        return {file: read_pinned(folder, file) for file in FILES}
    except KBError as error:
        raise SourceFailed(error.facts) from None


class ProgressBar:
    """Shows how much of the artifact has arrived, read from what the client prints about itself.

    The bar begins with the first line that tells a size in MB; small files before it (kB) are not worth one.
    """

    def __init__(self, quiet: bool) -> None:
        self._quiet = quiet

    def follow(self, stream: Iterable[str]) -> tuple[float, float]:
        """Follow a client's output to its end; returns the last MB arrived and the MB expected, 0.0 where unknown."""
        bar = None
        arrived = total = 0.0
        for line in stream:
            for left, right in _ARRIVED.findall(line):
                arrived, total = float(left), float(right)
                bar = bar or tqdm(total=total, unit="MB", desc="model", file=sys.stderr, disable=self._quiet)
                bar.total, bar.n = total, arrived
                bar.refresh()
        if bar is not None:
            bar.close()
        return arrived, total


def _stop(client: subprocess.Popen[str]) -> None:
    """End a client and whatever it started: a child left alive would hold the pipe, and the limit would be none."""
    if client.poll() is not None:
        return
    if sys.platform == "win32":
        subprocess.run(["taskkill", "/T", "/F", "/PID", str(client.pid)], capture_output=True, check=False)
    else:
        os.killpg(client.pid, signal.SIGKILL)
    client.wait()


def _run(command: list[str], limit: float, *, quiet: bool) -> int:
    """Run a client and return its exit status. Its errors reach a terminal, where its own bar may be among them."""
    try:
        client = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL if quiet else None,
            encoding="utf-8",
            errors="replace",
            start_new_session=True,
        )
    except OSError as error:
        raise SourceFailed(f"cannot be started (errno {error.errno})") from None
    with client:
        reader = Thread(target=ProgressBar(quiet).follow, args=(client.stdout,), daemon=True)
        reader.start()
        try:
            return client.wait(limit)
        except subprocess.TimeoutExpired:
            raise SourceFailed(f"no answer within {limit:g} s") from None
        finally:
            _stop(client)
            reader.join()


def from_hub(work: Path, limit: float, *, quiet: bool) -> Brought:
    """Return the files of the export at its pinned commit, through `huggingface_hub` in a process of its own."""
    status = _run([sys.executable, "-m", "kbretrieval.model.hub", str(work)], limit, quiet=quiet)
    if status:
        raise SourceFailed(hub.OUTCOMES.get(status, f"ended with exit status {status}"))
    try:
        return {file: (work / file.name).read_bytes() for file in FILES}
    except OSError:
        raise SourceFailed("ended without bringing both files") from None


def from_maven(work: Path, limit: float, *, quiet: bool) -> Brought:
    """Return the files out of the Maven artifact, through the `mvn` command."""
    command = which("mvn")
    if command is None:
        raise SourceFailed("the mvn command is not installed")
    status = _run(
        [command, "dependency:copy", f"-Dartifact={MAVEN_ARTIFACT}", f"-DoutputDirectory={work}"], limit, quiet=quiet
    )
    if status:
        raise SourceFailed(f"ended with exit status {status}")
    jars = sorted(work.glob("*.jar"))
    if len(jars) != 1:
        raise SourceFailed(f"one jar is expected, {len(jars)} came")
    content = jars[0].read_bytes()
    if sha256_of(content) != JAR_SHA256:
        raise SourceFailed(f"the jar's digest is {sha256_of(content)[:12]}, {JAR_SHA256[:12]} is pinned")
    try:
        with zipfile.ZipFile(jars[0]) as jar:
            return {file: jar.read(file.jar_path) for file in FILES}
    except (KeyError, zipfile.BadZipFile):
        raise SourceFailed("the jar does not hold the two files") from None


def _keep(brought: Brought, work: Path, target: Path) -> None:
    """Put verified bytes into the target; an unverified one, or a half-written one, never gets there."""
    for file, content in brought.items():
        found = sha256_of(content)
        if found != file.sha256:
            raise SourceFailed(f"{file.name}: {file.sha256[:12]} pinned, {found[:12]} came")
    for file, content in brought.items():
        part = work / f"{file.name}.verified"
        part.write_bytes(content)
        part.replace(target / file.name)


def _sources(given: Path | None, limit: float, quiet: bool) -> Iterator[tuple[str, Callable[[Path], Brought]]]:
    if given is not None:
        yield "folder", lambda _work: from_folder(given)
    yield "hub", lambda work: from_hub(work, limit, quiet=quiet)
    yield "maven", lambda work: from_maven(work, limit, quiet=quiet)


def fetch(
    target: Path,
    given: Path | None = None,
    limit: float = TIME_LIMIT_SECONDS,
    *,
    quiet: bool = False,
    report: Callable[[Attempt], None] = lambda _attempt: None,
) -> tuple[Attempt, ...]:
    """Bring both files into `target` and return the attempts; the last one is `ok` where it worked.

    `limit` is the time in seconds that each source has. Files that are there already and right are kept. Raises
    `storage_io_error` where the target cannot be written.
    """
    if all(state.state == "ok" for state in check_folder(target)):
        report(Attempt("target", "ok"))
        return (Attempt("target", "ok"),)
    attempts: list[Attempt] = []
    try:
        target.mkdir(parents=True, exist_ok=True)
        for name, source in _sources(given, limit, quiet):
            attempts.append(_attempt(name, source, target))
            report(attempts[-1])
            if attempts[-1].outcome == "ok":
                break
    except OSError as error:
        raise StorageIOError(f"the model folder cannot be written (errno {error.errno})") from None
    return tuple(attempts)


def _attempt(name: str, source: Callable[[Path], Brought], target: Path) -> Attempt:
    with tempfile.TemporaryDirectory(dir=target, prefix=".fetch-") as work:
        try:
            _keep(source(Path(work)), Path(work), target)
        except SourceFailed as failure:
            return Attempt(name, str(failure))
    return Attempt(name, "ok")
