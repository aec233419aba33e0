"""`kbretrieval migrate`: what it prints, and what it refuses before any work."""

import json
from pathlib import Path

import pytest

from kbretrieval import Index
from kbretrieval.model.files import FOLDER_VARIABLE
from tests.cli.conftest import Run
from tests.unit.doubles import logical_dump


@pytest.mark.promise("MIG-1")
def test_it_prints_what_the_api_returns(run: Run, kb: Path) -> None:
    done = run("migrate", kb, "--chunk-size", 10, "--overlap", 2, "--json")
    assert (done.status, done.err) == (0, "")
    result = json.loads(done.out)
    assert (result["schema"], result["state"], result["documents"]) == ("kbretrieval.migration/1", "migrated", 2)
    assert (result["before"]["chunk_size"], result["after"]["chunk_size"], result["after"]["overlap"]) == (220, 10, 2)
    with Index.open(kb) as index:
        assert (index.contract.to_dict(), index.check()) == (result["after"], ())
        assert result["chunks"] == sum(item.chunks for item in index.documents("acme"))


@pytest.mark.promise("MIG-1")
def test_text_says_the_same_and_a_second_run_does_nothing(run: Run, kb: Path) -> None:
    done = run("migrate", kb, "--encoder", "terms", "--chunk-size", 10, "--overlap", 2)
    assert done.status == 0
    first, before, now = done.out.splitlines()
    assert first.startswith("migrated: 2 documents, 2 chunks before, ")
    assert ", window 220, overlap 40" in before and ", window 10, overlap 2" in now
    dump = logical_dump(kb)
    again = run("migrate", kb, "--chunk-size", 10)
    assert (again.status, again.out.partition(":")[0]) == (0, "unchanged")
    assert logical_dump(kb) == dump


@pytest.mark.promise("MIG-1", "VEC-4")
def test_what_it_refuses_before_any_work(run: Run, kb: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path / "nowhere"))
    dump = logical_dump(kb)
    for arguments, code, status in (
        ((kb, "--encoder", "bge"), "model_missing", 7),
        ((kb, "--chunk-size", 10), "invalid_chunk_window", 2),
        ((tmp_path / "none.sqlite", "--chunk-size", 10), "index_missing", 6),
    ):
        done = run("migrate", *arguments)
        assert (done.status, done.out, done.err.partition(":")[0]) == (status, "", code)
    assert logical_dump(kb) == dump
    assert not (tmp_path / "none.sqlite").exists()
