"""`doctor`: each thing made missing is named, with the one command that mends it."""

import json
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kbretrieval import doctor
from kbretrieval._version import __version__
from kbretrieval.cli import main
from kbretrieval.doctor import Finding
from kbretrieval.model.files import FOLDER_VARIABLE
from kbretrieval.store import probe

LINES = ["numpy>=1.26", "onnxruntime>=1.17; extra == 'bge'", 'tokenizers>=0.19 ; extra=="bge"', "bare; extra == 'dev'"]
VERSIONS = {"numpy": "2.4.6", "onnxruntime": "1.17", "tokenizers": "0.23.3+local", "bare": "1"}


def _named(findings: tuple[Finding, ...], name: str) -> Finding:
    (found,) = [finding for finding in findings if finding.name == name]
    return found


def test_here_everything_the_core_needs_is_ok(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[-1] == "the core works"
    assert all(line.split()[0] in {"ok", "missing", "wrong"} for line in lines[:-1])
    for name in ("python", "sqlite", "sqlite FTS5", "sqlite STRICT tables", "unicode", "packages", "font"):
        assert any(line.startswith(f"ok       {name} ") for line in lines), name
    assert all("run: " in line for line in lines[:-1] if not line.startswith("ok"))
    assert not [line for line in lines if line.startswith("ok") and "run: " in line]


def test_json_says_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    status = main(["doctor", "--json"])
    said = json.loads(capsys.readouterr().out)
    assert said["schema"] == "kbretrieval.doctor/1"
    assert said["core_works"] is (status == 0) is True
    assert [Finding(**finding).name for finding in said["findings"]] == [f.name for f in doctor.examine()]


@pytest.mark.parametrize(
    ("found", "name"),
    [
        (doctor.check_python((3, 10, 9)), "python"),
        (doctor.check_unicode("13.0.0"), "unicode"),
        (doctor.check_package(lambda name: "0.0.1"), "kbretrieval"),
    ],
)
def test_what_is_too_old_is_wrong_and_the_core_does_not_work(found: Finding, name: str) -> None:
    assert (found.name, found.state, found.needed) == (name, "wrong", True)
    assert found.mend
    assert not doctor.core_works([found])


@pytest.mark.parametrize("version", [(3, 11, 0), (3, 13, 1), (4, 0, 0)])
def test_a_newer_python_is_no_fault(version: tuple[int, int, int]) -> None:
    assert doctor.check_python(version) == Finding("python", "ok", ".".join(map(str, version)), True)


class Crippled(sqlite3.Connection):
    """A library without FTS5 and without STRICT tables, as far as its answers go."""

    def execute(self, statement: str, *values: Any) -> sqlite3.Cursor:
        """Refuse what such a library refuses."""
        if "fts5" in statement:
            raise sqlite3.OperationalError("no such module: fts5")
        if "STRICT" in statement:
            raise sqlite3.OperationalError("unknown table option: STRICT")
        return super().execute(statement, *values)


class Lax(sqlite3.Connection):
    """A library that takes the word STRICT and does nothing about it, and whose FTS5 finds nothing."""

    def execute(self, statement: str, *values: Any) -> sqlite3.Cursor:
        """Weaken the statements."""
        return super().execute(statement.replace(" STRICT", "").replace("MATCH ?", "MATCH ? AND 0"), *values)


@pytest.mark.parametrize("kind", [Crippled, Lax])
def test_strict_tables_and_fts5_are_tried(monkeypatch: pytest.MonkeyPatch, kind: type[sqlite3.Connection]) -> None:
    original: Callable[..., sqlite3.Connection] = sqlite3.connect
    monkeypatch.setattr(probe.sqlite3, "connect", lambda name: original(name, factory=kind))  # type: ignore[attr-defined]
    strict = _named(doctor.check_sqlite(), "sqlite STRICT tables")
    assert (strict.state, strict.needed) == ("missing", True)
    assert strict.mend == "conda env create -f environment.yml"
    lexical = _named(doctor.check_sqlite(), "sqlite FTS5")
    assert (lexical.state, lexical.needed, lexical.mend) == ("missing", True, strict.mend)
    assert not doctor.core_works(doctor.check_sqlite())


def test_an_absent_distribution_is_named() -> None:
    found = doctor.check_package(lambda name: None)
    assert (found.state, found.found) == ("missing", "not installed")
    assert "pip install" in found.mend
    assert doctor.check_package(lambda name: __version__).state == "ok"


@pytest.mark.parametrize(
    ("extra", "changed", "state", "said"),
    [
        ("", {}, "ok", "numpy 2.4.6"),
        ("", {"numpy": None}, "missing", "numpy is not installed"),
        ("", {"numpy": "1.9"}, "wrong", "numpy 1.9, 1.26 needed"),
        ("bge", {}, "ok", "onnxruntime 1.17, tokenizers 0.23.3+local"),
        ("bge", {"tokenizers": None}, "missing", "tokenizers is not installed"),
        ("bge", {"onnxruntime": "1.2"}, "wrong", "onnxruntime 1.2, 1.17 needed"),
        ("bge", {"onnxruntime": "1.2", "tokenizers": None}, "missing", "tokenizers is not installed"),
        ("dev", {}, "ok", "bare 1"),
        ("dev", {"bare": None}, "missing", "bare is not installed"),
    ],
)
def test_packages_are_judged_by_extra(extra: str, changed: dict[str, str | None], state: str, said: str) -> None:
    versions = VERSIONS | changed
    found = doctor.check_requirements(LINES, extra, versions.get)
    assert (found.state, found.needed) == (state, not extra)
    assert found.found.startswith(said)
    assert found.mend == ("" if state == "ok" else doctor.install_command(extra))
    assert doctor.core_works([found]) is (state == "ok" or bool(extra))


def test_every_declared_package_is_judged() -> None:
    import importlib.metadata

    lines = importlib.metadata.requires("kbretrieval") or []
    nothing = [doctor.check_requirements(lines, extra, lambda name: None) for extra in ("", *doctor.EXTRAS)]
    assert sum(finding.found.count("is not installed") for finding in nothing) == len(lines) > 20


@pytest.mark.parametrize(
    ("checkout", "commands"),
    [
        (True, ["python -m pip install -e .", 'python -m pip install -e ".[bge]"']),
        (
            False,
            [
                f"python -m pip install kbretrieval-{__version__}-py3-none-any.whl",
                'python -m pip install "kbretrieval[bge]"',
            ],
        ),
    ],
)
def test_the_command_fits_checkout_and_wheel(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, checkout: bool, commands: list[str]
) -> None:
    if checkout:
        (tmp_path / "pyproject.toml").touch()
    monkeypatch.setattr(doctor, "CHECKOUT", tmp_path)
    assert [doctor.install_command(extra) for extra in ("", "bge")] == commands


@pytest.mark.promise("MOD-4")
def test_a_missing_model_is_named_and_the_core_works(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "tokenizer.json").write_bytes(b"{}")
    monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path))
    assert main(["doctor"]) == 0
    lines = {line.split()[2]: line for line in capsys.readouterr().out.splitlines() if " model " in line}
    assert lines["weights"].startswith("missing")
    assert lines["tokenizer"].startswith("wrong")
    assert all(line.endswith("run: kbretrieval model fetch") for line in lines.values())


def _kernel(monkeypatch: pytest.MonkeyPatch, command: list[str] | None) -> Finding:
    monkeypatch.setattr(doctor, "find_spec", lambda name: object())
    monkeypatch.setattr(doctor, "_kernel_command", lambda: command)
    return doctor.check_kernel()


@pytest.mark.parametrize("name", ["python", "python3", "python3.11", sys.executable])
def test_a_kernel_of_this_interpreter_is_ok(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    assert _kernel(monkeypatch, [name, "-m", "ipykernel_launcher"]).state == "ok"


@pytest.mark.parametrize(
    ("command", "state"), [(["/elsewhere/bin/python", "-m", "ipykernel_launcher"], "wrong"), (None, "missing")]
)
def test_another_kernel_is_told_with_its_remedy(
    monkeypatch: pytest.MonkeyPatch, command: list[str] | None, state: str
) -> None:
    found = _kernel(monkeypatch, command)
    assert (found.state, found.needed) == (state, False)
    assert found.mend == "python -m ipykernel install --sys-prefix --name python3"
    assert "elsewhere" not in found.found


def test_a_kernel_specification_on_disk_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    specification = tmp_path / "kernels" / "python3" / "kernel.json"
    specification.parent.mkdir(parents=True)
    text = json.dumps({"argv": ["/elsewhere/bin/python"], "display_name": "x", "language": "python"})
    specification.write_text(text, encoding="utf-8", newline="\n")
    monkeypatch.setenv("JUPYTER_PATH", str(tmp_path))
    monkeypatch.setenv("JUPYTER_PREFER_ENV_PATH", "0")
    assert doctor.check_kernel().state == "wrong"


def test_without_jupyter_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "find_spec", lambda name: None)
    assert doctor.check_kernel().mend == doctor.install_command("book")


@pytest.mark.parametrize(("content", "state"), [(None, "missing"), (b"no font", "wrong"), (b"OTTO no font", "wrong")])
def test_a_font_that_is_absent_or_none_is_told(tmp_path: Path, content: bytes | None, state: str) -> None:
    path = tmp_path / "font.otf"
    if content is not None:
        path.write_bytes(content)
    found = doctor.check_font(path)
    assert (found.state, found.needed) == (state, False)
    assert found.mend


def test_it_runs_on_the_standard_library_alone(root: Path) -> None:
    run = subprocess.run(
        [sys.executable, "-S", "-E", "-m", "kbretrieval", "doctor"],
        cwd=root,
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert run.returncode == 1
    lines = run.stdout.splitlines()
    assert lines[-1] == "the core does not work"
    assert any(line.startswith("missing  kbretrieval ") and "pip install" in line for line in lines)
    assert run.stderr == ""


def test_another_command_without_its_packages_says_one_line(root: Path) -> None:
    run = subprocess.run(
        [sys.executable, "-S", "-E", "-m", "kbretrieval", "demo"],
        cwd=root,
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert (run.returncode, run.stdout) == (1, "")
    assert run.stderr.splitlines() == ["the package typer is missing; run: python -m kbretrieval.doctor"]
