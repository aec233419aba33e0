"""The Python and the commands of README run as they stand there, one after the other, in an empty folder."""

import re
import shlex
from pathlib import Path

import pytest

from kbretrieval import Index
from kbretrieval.cli import main

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```$", TEXT, re.DOTALL | re.MULTILINE)
PYTHON = [body for kind, body in BLOCKS if kind == "python"]
# Lines about this machine, the model or the notebooks have tests of their own; they are told by their first word.
ELSEWHERE = {"doctor", "model"}


def commands() -> list[list[str]]:
    """Every line of README that calls the program, as its words."""
    lines = [line for kind, body in BLOCKS if not kind for line in body.splitlines()]
    found = [shlex.split(line, comments=True) for line in lines if line.startswith("kbretrieval ")]
    return [words[1:] for words in found if words[1] not in ELSEWHERE]


def test_every_block_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    said = []
    for block in PYTHON:
        exec(compile(block, "README.md", "exec"), names)
        said.append(capsys.readouterr().out.splitlines())
    english, quoted, life, observed, replayed = said
    assert english == ["travel 1 1 alice # Travel", "", "Hotels: up to 120 a night."]
    assert quoted == ["travel 1 0 17 alice # 差旅", "", "住宿每晚限额500元。"]
    assert life == ["abstain", "True", "True", "0", "deleted_document_requires_explicit_restore"]
    assert observed == [] and (tmp_path / "events.jsonl").read_text(encoding="utf-8").count("\n") == 1
    assert replayed[0].endswith(" True") and len(replayed[0].split()[0]) == 64
    assert "context_access_withdrawn" in replayed[1]


def _run(words: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    """Run one line of README; `> FILE` is done as a shell does."""
    words, _, target = (words[:-2], ">", words[-1]) if ">" in words else (words, "", "")
    assert main(words) == 0, words
    out = capsys.readouterr().out
    if target:
        Path(target).write_text(out, encoding="utf-8", newline="\n")
    return out


def test_every_command_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for path, text in {
        "docs/policies/travel.md": "# 差旅\n\n住宿标准每晚500元。Hotels per night: 120.\n",
        "docs/projects/alpha/plan.md": "# Alpha\n",
        "acl.yml": next(body for kind, body in BLOCKS if kind == "yaml"),
    }.items():
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        Path(path).write_text(text, encoding="utf-8", newline="\n")
    Index.open("kb.sqlite").close()  # so that the lines need no model: an index brings its own encoder
    said = {" ".join(words): _run(words, capsys) for words in commands()}
    assert {words.partition(" ")[0] for words in said} >= {"sync", "answer", "audit", "explain", "backup", "migrate"}
    answers = [out for words, out in said.items() if words.startswith("answer")]
    assert len(answers) == 3 and all("granted by *" in out for out in answers)
    audit = next(out for words, out in said.items() if words.startswith("audit"))
    assert "valid" in audit and Path("kb-backup.sqlite").stat().st_size > 0
