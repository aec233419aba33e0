"""The Makefile and the CI script: every target stands alone, and failures are told apart."""

import os
import re
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest

TARGETS = ["book", "lab", "test", "lint", "faults", "bench", "bench-ci", "html", "model", "lock", "promises", "clean"]
NEEDS_MAKE = pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed; README has other lines")
pytestmark = NEEDS_MAKE


@pytest.fixture
def checkout(tmp_path: Path, root: Path) -> Path:
    """A folder with what the Makefile reads, and an environment of stubs whose stamps are fresh."""
    for name in ("Makefile", "pyproject.toml", "constraints.txt"):
        shutil.copy(root / name, tmp_path / name)
        os.utime(tmp_path / name, (1_000_000_000, 1_000_000_000))
    for name in ("python", "kbretrieval", "jupyter", "ruff", "mypy"):
        _script(tmp_path / ".venv" / "bin" / name, f'echo "{name} $*"')
    for name in ("book", "dev"):
        (tmp_path / ".venv" / f".stamp-{name}").touch()
    return tmp_path


def _script(path: Path, body: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{body}\n", encoding="utf-8", newline="\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def _make(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    # The suite itself may run under make, whose flags and variables must not reach this one.
    outer = ("MAKE", "MFLAGS", "VENV", "PYTHON")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(outer)}
    return subprocess.run(
        ["make", "--no-print-directory", "-C", str(folder), *arguments],
        env=environment,
        capture_output=True,
        encoding="utf-8",
        check=False,
    )


def test_make_alone_lists_every_target(checkout: Path) -> None:
    assert re.findall(r"^make ([\w-]+)", _make(checkout).stdout, re.MULTILINE) == TARGETS


@pytest.mark.parametrize("target", TARGETS[:-1])
def test_a_target_in_a_fresh_clone_installs_first(checkout: Path, target: str) -> None:
    shutil.rmtree(checkout / ".venv")
    lines = _make(checkout, "-n", target).stdout
    steps = [lines.find(step) for step in ("-m venv .venv", "install -c constraints.txt -e", "touch ")]
    assert -1 not in steps
    assert steps == sorted(steps)


@pytest.mark.parametrize("target", TARGETS[:-1])
def test_a_target_with_fresh_stamps_installs_nothing(checkout: Path, target: str) -> None:
    made = _make(checkout, target)
    assert made.returncode == 0, made.stderr
    assert "pip" not in made.stdout


@pytest.mark.parametrize("changed", ["pyproject.toml", "constraints.txt"])
def test_a_change_of_the_dependencies_installs_again(checkout: Path, changed: str) -> None:
    os.utime(checkout / changed)
    for name in ("book", "dev"):
        os.utime(checkout / ".venv" / f".stamp-{name}", (1_000_000_001, 1_000_000_001))
    assert "-m pip" in _make(checkout, "test").stdout
    assert "-m pip" not in _make(checkout, "book").stdout, "all extras hold the book's, too"


def test_an_old_python_is_refused(checkout: Path) -> None:
    shutil.rmtree(checkout / ".venv")
    pretend = "import sys; sys.version_info = (3, 9, 2); exec(sys.argv[1])"
    body = f'[ "$1" = --version ] && {{ echo "Python 3.9.2"; exit 0; }}\nexec "{sys.executable}" -c "{pretend}" "$2"'
    old = _script(checkout / "old", body)
    made = _make(checkout, "test", f"PYTHON={old}")
    assert made.returncode != 0
    assert "Python 3.11 or newer is needed" in made.stderr
    assert "is Python 3.9.2" in made.stderr
    assert not (checkout / ".venv").exists()


def test_an_absent_python_is_named(checkout: Path) -> None:
    shutil.rmtree(checkout / ".venv")
    made = _make(checkout, "book", "PYTHON=python-that-is-absent")
    assert made.returncode != 0
    assert "no python-that-is-absent on PATH" in made.stderr


def test_a_failed_installation_is_tried_again(checkout: Path) -> None:
    (checkout / ".venv" / ".stamp-dev").unlink()
    _script(checkout / ".venv" / "bin" / "python", "exit 1")
    assert _make(checkout, "test").returncode != 0
    assert not (checkout / ".venv" / ".stamp-dev").exists()


@pytest.mark.parametrize(("status", "succeeds", "says"), [(0, True, ""), (1, False, ""), (2, True, "NOT EVERYTHING")])
def test_book_tells_false_from_unchecked(checkout: Path, status: int, succeeds: bool, says: str) -> None:
    _script(checkout / ".venv" / "bin" / "python", f'echo "python $*"; exit {status}')
    made = _make(checkout, "book")
    assert (made.returncode == 0) is succeeds
    assert "kbretrieval notebooks run --output build/notebooks" in made.stdout
    assert "python -m kbretrieval.evidence verify build/evidence" in made.stdout
    assert ("NOT EVERYTHING COULD BE CHECKED" in made.stdout) is bool(says)
    assert ("open the notebooks: make lab" in made.stdout) is succeeds


def test_book_stops_when_a_notebook_fails(checkout: Path) -> None:
    _script(checkout / ".venv" / "bin" / "kbretrieval", "exit 1")
    made = _make(checkout, "book")
    assert made.returncode != 0
    assert "verifying" not in made.stdout


def _without_model(folder: Path) -> None:
    _script(folder / ".venv" / "bin" / "kbretrieval", 'echo "kbretrieval $*"; [ "$1" != model ]')


@pytest.mark.promise("MOD-4")
@pytest.mark.parametrize(("target", "then"), [("book", "kbretrieval notebooks run"), ("test", "python -m pytest")])
def test_without_the_model_the_rest_runs_and_says_so(
    checkout: Path, monkeypatch: pytest.MonkeyPatch, target: str, then: str
) -> None:
    monkeypatch.delenv("CI", raising=False)
    here = _make(checkout, target).stdout
    assert 0 <= here.find("kbretrieval model fetch") < here.find(then)
    assert "NOT CHECKED" not in here
    _without_model(checkout)
    made = _make(checkout, target)
    assert made.returncode == 0
    assert 0 <= made.stdout.find("NOT CHECKED: whatever needs the model") < made.stdout.find(then)


@pytest.mark.promise("MOD-4")
@pytest.mark.parametrize("target", ["book", "test"])
def test_in_ci_a_failing_fetch_fails_the_run(checkout: Path, monkeypatch: pytest.MonkeyPatch, target: str) -> None:
    monkeypatch.setenv("CI", "true")
    _without_model(checkout)
    made = _make(checkout, target)
    assert made.returncode != 0
    assert "in CI the model must be here" in made.stderr
    assert "pytest" not in made.stdout
    assert "notebooks run" not in made.stdout


@pytest.mark.parametrize("failing", ["-m not alone", "-m alone", "no such words"])
def test_both_halves_of_the_tests_run_and_either_can_fail(checkout: Path, failing: str) -> None:
    body = f'echo "python $*"; case "$*" in *"{failing}"*) exit 1;; esac'
    _script(checkout / ".venv" / "bin" / "python", body)
    made = _make(checkout, "test", "WORKERS=3")
    assert (made.returncode == 0) is (failing == "no such words")
    beside, alone = (line for line in made.stdout.splitlines() if line.startswith("python -m pytest"))
    assert "-m not alone -n 3 --dist loadfile" in beside and "--cov-fail-under=0" in beside
    assert "-m alone" in alone and "--cov-append" in alone and "fail-under" not in alone


def test_clean_removes_what_was_made(checkout: Path) -> None:
    (checkout / "build" / "notebooks").mkdir(parents=True)
    assert _make(checkout, "clean").returncode == 0
    assert sorted(path.name for path in checkout.iterdir()) == ["Makefile", "constraints.txt", "pyproject.toml"]


@pytest.mark.skipif(sys.platform == "win32", reason="the CI script is for Debian")
def test_the_ci_script_is_sound_and_executable(root: Path) -> None:
    script = root / ".ci" / "run"
    assert os.access(script, os.X_OK)
    subprocess.run(["bash", "-n", str(script)], check=True)
    text = script.read_text(encoding="utf-8")
    assert "set -euo pipefail" in text
    assert [line.split()[-1] for line in text.splitlines() if line.startswith("make ")] == ["lint", "test", "bench-ci"]
