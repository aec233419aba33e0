"""A small folder of evidence below a project root of its own."""

from pathlib import Path

import pytest

from kbretrieval.evidence import Claim
from tests.evidence.evidence_claims import MakeClaim, fill


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "fixtures").mkdir()
    (tmp_path / "fixtures" / "corpus.json").write_bytes('{"doc": "每晚五百元"}\n'.encode())
    return tmp_path


@pytest.fixture
def folder(root: Path) -> Path:
    return root / "evidence"


@pytest.fixture
def make_claim(root: Path, folder: Path) -> MakeClaim:
    def make(name: str = "ch07-ranks", **changes: object) -> Claim:
        settings: dict[str, object] = {"argv": ("python", "-m", "kbretrieval"), "folder": folder, "root": root}
        return Claim(name, "两个结论相同。", **{**settings, **changes})  # type: ignore[arg-type]

    return make


@pytest.fixture
def three(make_claim: MakeClaim) -> list[str]:
    names = ["book-demo", "ch07-ranks", "ch11-refused"]
    for at, name in enumerate(names):
        claim = fill(make_claim(name, chapter=7 + at, promises=("RRF-1",), seed=at), (1, 2, 3 + at))
        claim.trec({"q01": ["a", "b"]}, {"q01": {"a": 1}})
        claim.write()
    return names
