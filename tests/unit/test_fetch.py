"""`model fetch`: sources in order, one line an attempt, and nothing unverified is ever kept. No network."""

import dataclasses
import errno
import hashlib
import io
import os
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from kbretrieval.cli import main
from kbretrieval.errors import StorageIOError
from kbretrieval.model import fetch as fetching
from kbretrieval.model import files
from kbretrieval.model.fetch import Attempt, ProgressBar, SourceFailed, fetch, from_maven
from kbretrieval.model.files import EXPORT_REVISION, FILES, PinnedFile

POSIX_SCRIPT = pytest.mark.skipif(sys.platform == "win32", reason="the stand-in for mvn is a shell script")
CONTENT = {file.name: f"bytes of {file.name}".encode() for file in FILES}
SMALL = tuple(
    dataclasses.replace(file, size=len(CONTENT[file.name]), sha256=hashlib.sha256(CONTENT[file.name]).hexdigest())
    for file in FILES
)

# What Maven 3.8 prints into a pipe while bytes arrive; a new state overwrites the old one.
MAVEN_OUTPUT = (
    "[INFO] Scanning for projects...\n"
    "Progress (1): 2.1/16 kB\rProgress (1): 16 kB    \r                    \rDownloaded from central: a.pom\n"
    "Progress (1): 0.1/16 MB\rProgress (1): 0.2/16 MB\rProgress (1): 3.1/16 MB\rProgress (1): 16/16 MB\r"
    "Progress (1): 16 MB   \r                    \rDownloaded from central: a.jar\n[INFO] BUILD SUCCESS\n"
)


def _jar(content: dict[str, bytes]) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as jar:
        for file in FILES:
            if file.name in content:
                jar.writestr(zipfile.ZipInfo(file.jar_path), content[file.name])
    return made.getvalue()


def _folder(path: Path, content: dict[str, bytes]) -> Path:
    path.mkdir(parents=True, exist_ok=True)
    for name, body in content.items():
        (path / name).write_bytes(body)
    return path


@dataclass(frozen=True)
class Sources:
    """Small files under their own pins, a stand-in for Maven and an empty hub cache that never asks the network."""

    home: Path
    monkeypatch: pytest.MonkeyPatch

    @property
    def target(self) -> Path:
        """Where the files should arrive."""
        return self.home / "target"

    def kept(self) -> dict[str, bytes]:
        """What is in the target now, hidden files and folders included."""
        there = sorted(self.target.iterdir()) if self.target.exists() else []
        return {path.name: path.read_bytes() if path.is_file() else b"" for path in there}

    def maven(self, body: str) -> None:
        """Put a script in the place of `mvn`; `$3` is the last argument, -DoutputDirectory=FOLDER."""
        script = _folder(self.home / "bin", {}) / "mvn"
        script.write_text(f'#!/bin/sh\nfolder="${{3#-DoutputDirectory=}}"\n{body}\n', encoding="utf-8", newline="\n")
        script.chmod(0o755)

    def maven_brings(self, jar: bytes, *, pinned: bool = True) -> None:
        """Let the stand-in copy a jar, under its own pin or under another one."""
        (self.home / "made.jar").write_bytes(jar)
        digest = hashlib.sha256(jar if pinned else b"another").hexdigest()
        self.monkeypatch.setattr(fetching, "JAR_SHA256", digest)
        self.maven(f'cp "{self.home}/made.jar" "$folder/some-artifact.jar"')

    def hub_holds(self, content: dict[str, bytes]) -> None:
        """Fill the hub library's own cache, as an earlier download would have."""
        snapshot = self.home / "hf" / "hub" / "models--Xenova--bge-small-zh-v1.5" / "snapshots" / EXPORT_REVISION
        for file in FILES:
            if file.name in content:
                _folder((snapshot / file.hub_path).parent, {Path(file.hub_path).name: content[file.name]})

    def fetch(self, given: Path | None = None, limit: float = 60.0) -> list[tuple[str, str]]:
        """Fetch and return the attempts, which must be the reported ones."""
        reported: list[Attempt] = []
        made = fetch(self.target, given, limit, quiet=True, report=reported.append)
        assert list(made) == reported
        return [(attempt.source, attempt.outcome) for attempt in made]


@pytest.fixture
def sources(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Sources:
    """Sources that bring nothing until a test says so."""
    monkeypatch.setattr(files, "FILES", SMALL)
    monkeypatch.setattr(fetching, "FILES", SMALL)
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.delenv("HF_HUB_CACHE", raising=False)
    monkeypatch.delenv(files.FOLDER_VARIABLE, raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "bin") + os.pathsep + "/usr/bin" + os.pathsep + "/bin")
    made = Sources(tmp_path, monkeypatch)
    if sys.platform != "win32":
        made.maven("exit 7")
    return made


def _scripted(monkeypatch: pytest.MonkeyPatch, **outcomes: str) -> list[str]:
    """Replace the two network sources by scripted ones; returns the list that records who was asked."""
    asked: list[str] = []

    def source(name: str) -> Callable[..., dict[PinnedFile, bytes]]:
        def bring(work: Path, limit: float, *, quiet: bool) -> dict[PinnedFile, bytes]:
            asked.append(name)
            if outcomes[name] != "ok":
                raise SourceFailed(outcomes[name])
            return {file: CONTENT[file.name] for file in SMALL}

        return bring

    for name in ("hub", "maven"):
        monkeypatch.setattr(fetching, f"from_{name}", source(name))
    return asked


@pytest.mark.promise("MOD-1")
@pytest.mark.parametrize(
    ("folder", "hub", "attempts"),
    [
        ("ok", "ok", [("folder", "ok")]),
        ("no", "ok", [("folder", "model_quantized.onnx is missing there"), ("hub", "ok")]),
        ("no", "no", [("folder", "model_quantized.onnx is missing there"), ("hub", "no"), ("maven", "ok")]),
        ("", "no", [("hub", "no"), ("maven", "ok")]),
    ],
)
def test_the_first_source_that_yields_both_digests_wins(
    sources: Sources, folder: str, hub: str, attempts: list[tuple[str, str]]
) -> None:
    asked = _scripted(sources.monkeypatch, hub=hub, maven="ok")
    given = _folder(sources.home / "given", CONTENT if folder == "ok" else {}) if folder else None
    assert sources.fetch(given) == attempts
    assert asked == [name for name, _ in attempts if name != "folder"]
    assert sources.kept() == CONTENT


@pytest.mark.promise("MOD-2")
def test_what_is_there_and_right_is_kept_and_nobody_is_asked(sources: Sources) -> None:
    asked = _scripted(sources.monkeypatch, hub="ok", maven="ok")
    _folder(sources.target, CONTENT)
    assert sources.fetch() == [("target", "ok")]
    assert not asked


@pytest.mark.promise("MOD-2")
def test_a_wrong_file_of_a_folder_is_not_taken(sources: Sources) -> None:
    _scripted(sources.monkeypatch, hub="no", maven="no")
    given = _folder(sources.home / "given", CONTENT | {"tokenizer.json": b"wrong"})
    assert sources.fetch(given)[0] == ("folder", "tokenizer.json is wrong there")
    assert sources.kept() == {}


@pytest.mark.promise("MOD-2")
@pytest.mark.parametrize("name", CONTENT)
def test_a_source_whose_bytes_are_wrong_is_left_for_the_next(sources: Sources, name: str) -> None:
    _scripted(sources.monkeypatch, hub="no", maven="ok")

    def wrong(work: Path, limit: float, *, quiet: bool) -> dict[PinnedFile, bytes]:
        return {file: b"wrong" if file.name == name else CONTENT[file.name] for file in SMALL}

    sources.monkeypatch.setattr(fetching, "from_hub", wrong)
    first, second = sources.fetch()
    assert first[1].startswith(f"{name}: ")
    assert "pinned" in first[1]
    assert second == ("maven", "ok")
    assert sources.kept() == CONTENT


@pytest.mark.promise("MOD-2")
def test_a_wrong_file_in_the_target_is_replaced_only_by_a_right_one(sources: Sources) -> None:
    _folder(sources.target, {"tokenizer.json": b"old and wrong"})
    _scripted(sources.monkeypatch, hub="no", maven="no")
    sources.fetch()
    assert sources.kept() == {"tokenizer.json": b"old and wrong"}
    _scripted(sources.monkeypatch, hub="ok", maven="no")
    sources.fetch()
    assert sources.kept() == CONTENT


@POSIX_SCRIPT
@pytest.mark.promise("MOD-1")
def test_the_files_come_out_of_the_artifact(sources: Sources) -> None:
    sources.maven_brings(_jar(CONTENT))
    assert sources.fetch() == [("hub", "the hub was not reached, or refused"), ("maven", "ok")]
    assert sources.kept() == CONTENT


@pytest.mark.promise("MOD-1")
def test_the_hub_library_brings_them_from_its_own_cache_without_network(sources: Sources) -> None:
    sources.hub_holds(CONTENT)
    assert sources.fetch() == [("hub", "ok")]
    assert sources.kept() == CONTENT


@pytest.mark.promise("MOD-2")
def test_half_of_the_hub_is_no_hub(sources: Sources) -> None:
    sources.hub_holds({FILES[0].name: CONTENT[FILES[0].name]})
    assert sources.fetch()[0] == ("hub", "the hub was not reached, or refused")
    assert sources.kept() == {}


def _maven_failure(sources: Sources, limit: float = 30.0) -> str:
    work = _folder(sources.home / "work", {})
    with pytest.raises(SourceFailed) as failure:
        from_maven(work, limit, quiet=True)
    return str(failure.value)


@POSIX_SCRIPT
@pytest.mark.promise("MOD-2")
def test_a_jar_with_another_digest_is_refused_unopened(sources: Sources) -> None:
    sources.maven_brings(_jar(CONTENT), pinned=False)
    sources.monkeypatch.setattr(zipfile, "ZipFile", None)
    assert "the jar's digest is" in _maven_failure(sources)


@POSIX_SCRIPT
@pytest.mark.promise("MOD-2")
@pytest.mark.parametrize(
    ("jar", "said"),
    [
        (_jar({FILES[0].name: b"x"}), "the jar does not hold the two files"),
        (b"no archive", "the jar does not hold the two files"),
    ],
)
def test_a_jar_without_the_files_is_refused(sources: Sources, jar: bytes, said: str) -> None:
    sources.maven_brings(jar)
    assert _maven_failure(sources) == said


@POSIX_SCRIPT
@pytest.mark.promise("MOD-2")
@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("exit 7", "ended with exit status 7"),
        ("exit 0", "one jar is expected, 0 came"),
        ('touch "$folder/a.jar" "$folder/b.jar"', "one jar is expected, 2 came"),
    ],
)
def test_a_client_that_fails_is_one_line(sources: Sources, body: str, said: str) -> None:
    sources.maven(body)
    assert _maven_failure(sources) == said


@pytest.mark.promise("MOD-2")
def test_without_the_client_the_source_says_so(sources: Sources) -> None:
    sources.monkeypatch.setenv("PATH", str(sources.home))
    assert _maven_failure(sources) == "the mvn command is not installed"


@pytest.mark.alone
@POSIX_SCRIPT
@pytest.mark.promise("MOD-2")
def test_at_the_time_limit_the_client_ends_with_its_children(sources: Sources) -> None:
    # The child holds the pipe: a client stopped alone would leave the reader waiting for it.
    sources.maven('sleep 60 & echo $! > "$folder/pid"; wait')
    begun = time.monotonic()
    assert _maven_failure(sources, limit=0.5) == "no answer within 0.5 s"
    assert time.monotonic() - begun < 20
    child = int((sources.home / "work" / "pid").read_text(encoding="ascii"))
    deadline = time.monotonic() + 10
    while _runs(child) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not _runs(child)


def _runs(process: int) -> bool:
    state = Path(f"/proc/{process}/stat")
    if state.exists():  # an orphan that nobody has collected yet is dead all the same
        return state.read_text(encoding="utf-8").rpartition(")")[2].split()[0] != "Z"
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return not Path("/proc/self").exists()


@pytest.mark.promise("MOD-2")
def test_a_target_that_cannot_be_made_is_a_storage_error(sources: Sources) -> None:
    (sources.home / "target").write_bytes(b"a file")
    with pytest.raises(StorageIOError, match="cannot be written"):
        sources.fetch()


@pytest.mark.promise("MOD-2")
def test_a_full_disk_leaves_nothing_behind(sources: Sources) -> None:
    _scripted(sources.monkeypatch, hub="ok", maven="ok")
    written: Callable[[Path, bytes], int] = Path.write_bytes

    def full(self: Path, content: bytes) -> int:
        written(self, content[:3])
        raise OSError(errno.ENOSPC, "no space")

    sources.monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(StorageIOError, match=f"errno {errno.ENOSPC}"):
        sources.fetch()
    assert sources.kept() == {}


@pytest.mark.promise("MOD-2")
def test_the_command_names_three_ways_when_all_fail(sources: Sources, capsys: pytest.CaptureFixture[str]) -> None:
    _scripted(sources.monkeypatch, hub="was not reached", maven="is not installed")
    given = _folder(sources.home / "given", {})
    assert main(["model", "fetch", "--to", str(sources.target), "--from", str(given)]) == 1
    said = capsys.readouterr()
    assert said.out.splitlines() == [
        "folder: model_quantized.onnx is missing there",
        "hub: was not reached",
        "maven: is not installed",
    ]
    ways = said.err.splitlines()
    assert len(ways) == 3
    for way, words in zip(ways, ("--from FOLDER", "hf download Xenova/", "mvn dependency:copy"), strict=True):
        assert words in way


@pytest.mark.promise("MOD-1")
@pytest.mark.parametrize("by", ["option", "variable"])
def test_the_command_takes_a_folder_of_the_reader(
    sources: Sources, capsys: pytest.CaptureFixture[str], by: str
) -> None:
    _scripted(sources.monkeypatch, hub="no", maven="no")
    given = _folder(sources.home / "given", CONTENT)
    options = ["--from", str(given)] if by == "option" else []
    if by == "variable":
        sources.monkeypatch.setenv(files.FOLDER_VARIABLE, str(given))
    assert main(["model", "fetch", "--to", str(sources.target), *options]) == 0
    assert capsys.readouterr().out == "folder: ok\n"
    assert sources.kept() == CONTENT


def test_an_unwritable_target_and_a_wrong_limit_have_their_exit_statuses(
    sources: Sources, capsys: pytest.CaptureFixture[str]
) -> None:
    (sources.home / "target").write_bytes(b"a file")
    assert main(["model", "fetch", "--to", str(sources.target)]) == 6
    assert capsys.readouterr().err.startswith("storage_io_error: ")
    assert main(["model", "fetch", "--to", str(sources.target), "--limit", "0.1"]) == 2


@pytest.mark.model
@pytest.mark.promise("MOD-2")
def test_two_fetches_at_once_do_no_harm(model_folder: Path, tmp_path: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "kbretrieval",
        "model",
        "fetch",
        "--from",
        str(model_folder),
        "--to",
        str(tmp_path),
    ]
    both = [subprocess.Popen(command, stdout=subprocess.PIPE, encoding="utf-8") for _ in range(2)]
    said = [process.communicate(timeout=120)[0] for process in both]
    assert [process.returncode for process in both] == [0, 0]
    assert {line for text in said for line in text.splitlines()} <= {"folder: ok", "target: ok"}
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(file.name for file in FILES)
    assert {state.state for state in files.check_folder(tmp_path)} == {"ok"}


@pytest.mark.promise("MOD-2")
def test_the_bar_follows_what_maven_prints(capsys: pytest.CaptureFixture[str]) -> None:
    assert ProgressBar(quiet=False).follow(io.StringIO(MAVEN_OUTPUT, newline=None)) == (16.0, 16.0)
    drawn = capsys.readouterr().err
    assert "3.1/16" in drawn
    assert "16.0/16" in drawn


@pytest.mark.promise("MOD-2")
def test_a_quiet_bar_draws_nothing_and_small_files_have_none(capsys: pytest.CaptureFixture[str]) -> None:
    assert ProgressBar(quiet=True).follow(io.StringIO(MAVEN_OUTPUT, newline=None)) == (16.0, 16.0)
    small = MAVEN_OUTPUT.replace("MB", "kB")
    assert ProgressBar(quiet=False).follow(io.StringIO(small, newline=None)) == (0.0, 0.0)
    assert capsys.readouterr().err == ""


@POSIX_SCRIPT
@pytest.mark.promise("MOD-2")
def test_the_pipe_hands_over_each_state_before_the_next_line_end(sources: Sources) -> None:
    followed: list[Any] = []
    original = ProgressBar.follow

    def spy(self: ProgressBar, stream: Any) -> tuple[float, float]:
        followed.append(original(self, stream))
        return (0.0, 0.0)

    sources.monkeypatch.setattr(ProgressBar, "follow", spy)
    sources.maven("printf 'Progress (1): 3.1/16 MB\\rProgress (1): 9/16 MB\\r'; exit 7")
    assert _maven_failure(sources) == "ended with exit status 7"
    assert followed == [(9.0, 16.0)]
