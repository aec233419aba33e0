"""FLT-4: a small security suite passes on the unbroken build, and each mutant fails the scene that it names.

In full (`make faults`) every mutant is put before all scenes. `tools/mutants.py` does the same and writes the table as
evidence.
"""

import json
from pathlib import Path

import pytest

from kbretrieval.citation import verdict
from tests.faults import order_scenes, scope_scenes, security_scenes, voucher_scenes
from tests.faults.breaking import Change, Mutant, NoSuchLine, broken, broken_code, failures, mutant, scene_name
from tests.faults.mutants import MUTANTS, SCENES
from tests.unit.sync_place import without_waiting_for_the_disk

LEAST_MUTANTS = 24
VERDICT = "kbretrieval.citation:verdict"
FIRST = voucher_scenes.a_voucher_grants_nothing


@pytest.fixture(autouse=True)
def _quick_commits(monkeypatch: pytest.MonkeyPatch) -> None:
    without_waiting_for_the_disk(monkeypatch)


@pytest.mark.promise("FLT-4")
def test_the_unbroken_build_passes_every_scene(tmp_path: Path) -> None:
    assert failures(SCENES, tmp_path) == {}


@pytest.mark.promise("FLT-4")
@pytest.mark.parametrize("build", MUTANTS, ids=lambda build: build.name)
def test_a_mutant_fails_the_scene_that_it_names(build: Mutant, tmp_path: Path, full: bool) -> None:
    with broken(build):
        found = failures(SCENES if full else (build.scene,), tmp_path / "broken")
    assert found.get(scene_name(build.scene)) == build.error
    assert failures((build.scene,), tmp_path / "whole") == {}


@pytest.mark.promise("FLT-4")
def test_the_table_is_complete(root: Path) -> None:
    """No scene without a mutant, no mutant twice, and the committed evidence has this table."""
    assert len(MUTANTS) >= LEAST_MUTANTS
    assert len({build.name for build in MUTANTS}) == len({build.changes for build in MUTANTS}) == len(MUTANTS)
    written = [
        value
        for module in (security_scenes, voucher_scenes, order_scenes, scope_scenes)
        for value in vars(module).values()
        if getattr(value, "__module__", "") == module.__name__ and _takes_a_folder_alone(value)
    ]
    assert {scene_name(scene) for scene in written} == {scene_name(scene) for scene in SCENES}
    claim = json.loads((root / "evidence" / "faults-mutants.json").read_text(encoding="utf-8"))
    kept = [(row["name"], row["promise"], row["scene"], row["error"]) for row in claim["deterministic"]["rows"]]
    assert kept == [(build.name, build.promise, scene_name(build.scene), build.error) for build in MUTANTS]
    assert all(row["killed"] for row in claim["deterministic"]["rows"])


def _takes_a_folder_alone(value: object) -> bool:
    code = getattr(value, "__code__", None)
    return code is not None and code.co_varnames[: code.co_argcount] == ("folder",) and not code.co_flags & 0x0C


def test_what_changes_no_behaviour_is_not_called_killed(tmp_path: Path) -> None:
    harmless = mutant("harmless", "CIT-5", FIRST, VERDICT, 'return "malformed"', 'return "mal" "formed"')
    with broken(harmless):
        assert failures((FIRST,), tmp_path) == {}


def test_a_line_that_is_gone_is_an_error() -> None:
    for line, changed in (("if hit is gone:", "if False:"), ("return", "pass"), ('return "malformed"',) * 2):
        with pytest.raises(NoSuchLine):
            broken_code(Change(VERDICT, line, changed))


def test_a_broken_line_that_does_not_run_proves_nothing(tmp_path: Path) -> None:
    """And the function is whole again afterwards, whoever holds it."""
    before = verdict.__code__
    crash = mutant("crash", "CIT-5", FIRST, VERDICT, "if hit is None:", "if unknown_name:")
    with pytest.raises(NameError), broken(crash):
        failures((FIRST,), tmp_path)
    assert verdict.__code__ is before
