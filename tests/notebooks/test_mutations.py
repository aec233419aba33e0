"""Broken mechanisms: for each one a notebook fails and leaves no evidence (NB-16, EVD-7).

The package is copied, one exact line of the copy is changed, and a notebook runs with the copy first on its path; the
tree itself is never touched. The table names the cheapest notebook that has to notice.
"""

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from kbretrieval.book.runner import NotebookRun, run_notebooks
from kbretrieval.evidence.subjects import FOLDER_VARIABLE

CONTRACT, RERANK, LIFECYCLE = "01_contract.ipynb", "08_rerank.ipynb", "13_lifecycle.ipynb"
MAINTENANCE, REPLAY = "16_maintenance.ipynb", "18_replay.ipynb"

RunBroken = Callable[["Mutation | None", str], tuple[NotebookRun, list[str]]]


@dataclass(frozen=True, slots=True)
class Mutation:
    """One line of a module, as it stands and broken; `notebook` has to stop with `error` and no other way."""

    name: str
    module: str
    line: str
    broken: str
    notebook: str
    error: str = "AssertionError"


MUTATIONS = (
    Mutation(
        "rrf: k off by one",
        "fusion.py",
        "total += 1.0 / (k + rank)",
        "total += 1.0 / (k + 1 + rank)",
        CONTRACT,
    ),
    Mutation(
        "coordinates: the cutter's end off by one",
        "chunking.py",
        "made.append((start, end))",
        "made.append((start, max(end - 1, start + 1)))",
        CONTRACT,
    ),
    Mutation(
        "coordinates: the quotation's end off by one",
        "citation.py",
        "end=chunk.end,",
        "end=chunk.end - 1,",
        CONTRACT,
    ),
    Mutation(
        "ACL: dropped from the FTS5 query",
        "store/fts.py",
        "a.entry IN (SELECT value FROM json_each(?))",
        "(a.entry IN (SELECT value FROM json_each(?)) OR 1)",
        CONTRACT,
        "IndexCorrupt",
    ),
    Mutation(
        "ACL: dropped where hits are judged",
        "citation.py",
        "if granted_by(standing.acl, context) is None:",
        "if granted_by(standing.acl, context) is None and not standing.acl:",
        CONTRACT,
    ),
    Mutation(
        "ACL: its revision not compared",
        "citation.py",
        "if hit.acl_revision != document.acl_revision:",
        "if hit.acl_revision < 0:",
        CONTRACT,
    ),
    Mutation(
        "rerank: the fused value before the title's overlap",
        "rerank.py",
        "key=lambda item: (-overlaps[item.key], -item.value, item.key)",
        "key=lambda item: (-item.value, -overlaps[item.key], item.key)",
        RERANK,
    ),
    Mutation(
        "tie: equal scores in the order of a reversed sort",
        "channels/ranking.py",
        "order = np.lexsort((keys, -scores))[:window]",
        'order = np.argsort(scores, kind="stable")[::-1][:window]',
        LIFECYCLE,
    ),
    Mutation(
        "digest: of the wrong bytes",
        "projection.py",
        'return hashlib.sha256(text.encode("utf-8")).hexdigest()',
        'return hashlib.sha256(text.encode("utf-16-le")).hexdigest()',
        CONTRACT,
    ),
    Mutation(
        "vector channel: rows not filtered by permission",
        "channels/vector.py",
        "for part in eligible_postings(snapshot, eligible, term):",
        "for part in eligible_postings(snapshot, type(eligible)(snapshot.alive, eligible.rows, dots, 0, ()), term):",
        CONTRACT,
        "IndexCorrupt",
    ),
    Mutation(
        "vector channel: a changed list is not noticed",
        "store/policies.py",
        "max(content_commit, acl_commit) > ?",
        "content_commit > ?",
        LIFECYCLE,
        "IndexCorrupt",
    ),
    Mutation(
        "migration: keys begin anew in each generation",
        "store/chunk_rows.py",
        "_last_key(connection) + 1))",
        'connection.run(f"SELECT 1 + ifnull(max(chunk_key), 0) FROM {tables.chunks}")[0][0]))',
        MAINTENANCE,
    ),
    Mutation(
        "sync: rights are given before the text is written",
        "sync/plan.py",
        '"restore": 2, "loosen": 3}',
        '"restore": 2, "loosen": 1}',
        MAINTENANCE,
    ),
    Mutation(
        "observer: the caller's name in place of the label",
        "observers/watch.py",
        "self._observer(event(outcome, spent, checked_label(label)))",
        "self._observer(event(outcome, spent, checked_label(principal)))",
        MAINTENANCE,
    ),
    Mutation(
        "snapshot: a hash without the digests of the parts",
        "context/snapshots.py",
        "part.doc_id, part.bytes, part.sha256] for part in parts]",
        'part.doc_id, part.bytes, ""] for part in parts]',
        REPLAY,
    ),
    Mutation(
        "replay: lost access taken for material that moved on",
        "context/standing.py",
        "ONLY_STALE = frozenset({",
        "ONLY_STALE = frozenset({ContextAccessWithdrawn.code, ",
        REPLAY,
    ),
)


@pytest.fixture
def run_broken(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RunBroken:
    """Return a function that runs one notebook on a copy of the package and lists the evidence it left."""

    def run(mutation: Mutation | None, notebook: str) -> tuple[NotebookRun, list[str]]:
        checkout, evidence = tmp_path / "checkout", tmp_path / "evidence"
        shutil.copytree(root / "kbretrieval", checkout / "kbretrieval", ignore=shutil.ignore_patterns("__pycache__"))
        shutil.copytree(root / "fixtures", checkout / "fixtures")
        shutil.copyfile(root / "pyproject.toml", checkout / "pyproject.toml")
        if mutation is not None:
            break_line(checkout / "kbretrieval" / mutation.module, mutation)
        monkeypatch.setenv("PYTHONPATH", str(checkout))
        monkeypatch.setenv(FOLDER_VARIABLE, str(evidence))
        made = run_notebooks([root / "notebooks" / notebook], tmp_path / "executed")[0]
        return made, sorted(path.name for path in evidence.glob("*.json"))

    return run


def break_line(module: Path, mutation: Mutation) -> None:
    """Change the one place in a copied module where the line stands."""
    source = module.read_text(encoding="utf-8")
    assert source.count(mutation.line) == 1, f"{mutation.name}: {source.count(mutation.line)} places, 1 needed"
    module.write_text(source.replace(mutation.line, mutation.broken), encoding="utf-8", newline="\n")


@pytest.mark.slow
@pytest.mark.promise("NB-16", "EVD-7")
@pytest.mark.parametrize("mutation", MUTATIONS, ids=[mutation.name for mutation in MUTATIONS])
def test_a_broken_mechanism_stops_a_notebook_before_its_evidence(mutation: Mutation, run_broken: RunBroken) -> None:
    run, evidence = run_broken(mutation, mutation.notebook)
    assert run.failure is not None, f"{mutation.notebook} did not notice"
    assert run.failure.code == "cell_execution_error"
    assert run.failure.exception.startswith(f"{mutation.error}:"), run.report()
    assert evidence == []


@pytest.mark.slow
@pytest.mark.promise("NB-16")
@pytest.mark.parametrize("unbroken", sorted({mutation.notebook for mutation in MUTATIONS}))
def test_an_unbroken_copy_runs_and_writes_its_evidence(unbroken: str, run_broken: RunBroken) -> None:
    run, evidence = run_broken(None, unbroken)
    assert run.ok, run.report()
    chapter = f"ch{unbroken[:2]}-"
    assert evidence.pop(0) == "MANIFEST.json"
    assert evidence and all(name.startswith(chapter) for name in evidence)
