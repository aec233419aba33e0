"""The Python of README runs as it stands there, one block after the other, in an empty folder."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BLOCKS = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL)


def test_every_block_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert len(BLOCKS) == 3
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    said = []
    for block in BLOCKS:
        exec(compile(block, "README.md", "exec"), names)
        said.append(capsys.readouterr().out.splitlines())
    quoted, observed, replayed = said
    assert quoted[0].startswith("travel 1 0 ") and "住宿每晚限额500元。" in "".join(quoted)
    assert observed == [] and (tmp_path / "events.jsonl").read_text(encoding="utf-8").count("\n") == 1
    assert replayed[0].endswith(" True") and len(replayed[0].split()[0]) == 64
    assert "context_access_withdrawn" in replayed[1]
