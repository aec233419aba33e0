"""A real history of Markdown files, synchronised state by state (SYN-3, SYN-4, SYN-6).

Read from `../shared/corpora`, never copied; a folder of small files of it, so that the test stays short.
"""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from kbretrieval import Index
from kbretrieval.sync import FolderSource, Policy
from tests.rules import SHARED_ABSENT
from tests.unit.sync_place import TENANT, World, without_waiting_for_the_disk

MAX_BYTES = 1600
MOMENTS = (142, 450, 642)
RULES = Policy.from_yaml("{version: 1, default: ['*'], rules: [{match: src/api/**, allow: [alice]}]}")


@pytest.fixture(scope="module")
def history(shared: Path) -> Path:
    folder = shared / "corpora" / "vue_docs_zh"
    if not folder.is_dir():
        pytest.skip(f"{SHARED_ABSENT} ../shared holds no history of documents")
    return folder


def trees(history: Path) -> Iterator[dict[str, str]]:
    """The files at some moments: path and name of the blob."""
    tree: dict[str, str] = {}
    for line in (history / "events.jsonl").read_text(encoding="utf-8").splitlines():
        event = json.loads(line)
        if event["op"] in "DR":
            del tree[event["path"] if event["op"] == "D" else event["from"]]
        if event["op"] != "D":
            tree[event["path"]] = event["blob"]
        if event["seq"] in MOMENTS:
            yield {path: blob for path, blob in tree.items() if (history / "blobs" / blob).stat().st_size < MAX_BYTES}


def laid_out(history: Path, root: Path, tree: dict[str, str]) -> dict[str, str]:
    """Make a folder hold exactly these files; the texts of those that are not hidden."""
    for old in root.rglob("*.md"):
        if old.relative_to(root).as_posix() not in tree:
            old.unlink()
    for path, blob in tree.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes((history / "blobs" / blob).read_bytes())
    seen = (path for path in tree if not any(part.startswith(".") for part in path.split("/")))
    return {path: (root / path).read_text(encoding="utf-8") for path in seen}


@pytest.mark.promise("SYN-3", "SYN-4", "SYN-6", "SYN-7")
def test_an_index_that_followed_a_history_equals_one_made_at_its_end(
    history: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    without_waiting_for_the_disk(monkeypatch)
    root, world = tmp_path / "docs", World(tmp_path / "kb.sqlite")
    root.mkdir()
    moves = 0
    for tree in trees(history):
        texts = laid_out(history, root, tree)
        options = {"restore_all": True, "confirm_deletions": len(world.documents())}
        report = world.run(FolderSource(root), RULES, **options)
        assert (report.refused, report.kept) == ((), ())
        moves += len(report.steps)
        live = {name: item for name, item in world.documents().items() if item.state == "live"}
        assert set(live) == set(texts)
        assert all(live[name].acl == RULES.acl_for(name) for name in live)
        before = world.dump()
        assert world.run(FolderSource(root), RULES, **options).steps == ()
        assert world.dump() == before
    assert moves > 100
    fresh = World(tmp_path / "fresh.sqlite")
    fresh.run(FolderSource(root), RULES)
    kept = {name: (item.title, item.sha256, item.acl, item.chunks) for name, item in live.items()}
    assert kept == {name: (i.title, i.sha256, i.acl, i.chunks) for name, i in fresh.documents().items()}
    assert {item.state for item in world.documents().values()} == {"live", "deleted"}
    with Index.open(world.path) as index:
        assert index.check() == () and index.documents(TENANT)
