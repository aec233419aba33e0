"""Fixtures of the command line: one small index, and a way to run a command in this process."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from kbretrieval import Index
from kbretrieval.cli import main


@dataclass(frozen=True, slots=True)
class Ran:
    """What one command did."""

    status: int
    out: str
    err: str


Run = Callable[..., Ran]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    """Run a command in this process; its status and both outputs."""

    def call(*arguments: object) -> Ran:
        capsys.readouterr()
        status = main([str(argument) for argument in arguments])
        return Ran(status, *capsys.readouterr())

    return call


@pytest.fixture
def kb(tmp_path: Path) -> Path:
    """An index of one tenant: a policy for alice and the group hr, a notice for everyone, one deleted page."""
    path = tmp_path / "kb.sqlite"
    with Index.open(path) as index:
        index.upsert("acme", "travel", 1, "markdown", "# 差旅\n\n住宿每晚限额500元。", ["alice", "group:hr"])
        index.upsert("acme", "notice", 3, "text", "食堂通知：午餐十一点半开始。", ["*"])
        index.upsert("acme", "gone", 1, "text", "旧的住宿限额。", ["alice"])
        index.delete("acme", "gone", 2)
    return path
