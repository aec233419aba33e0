"""pyproject.toml, constraints.txt, environment.yml and CONTRIBUTING.md name the same dependencies."""

import re
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tools import lock

DECLARED = lock.declared()
ELSEWHERE = {"colorama", "pywin32", "pywinpty", "appnope"}
ALL = [pytest.param(group, need, id=f"{group}-{need.name}") for group in DECLARED for need in DECLARED[group]]


@pytest.mark.parametrize(("group", "need"), ALL)
def test_every_dependency_is_pinned_and_the_pin_is_allowed(group: str, need: Requirement) -> None:
    pin = lock.read_pins()[canonicalize_name(need.name)]
    assert need.specifier.contains(pin), f"{group}: {need} against {pin}"


def test_the_pins_are_sorted_and_bare(root: Path) -> None:
    names = [line for line in (root / "constraints.txt").read_text(encoding="utf-8").splitlines() if line[0] != "#"]
    assert names == sorted(names, key=lambda line: line.partition("==")[0])
    assert len(names) == len(lock.read_pins()), "a name stands twice, or a line is no pin"


@pytest.mark.parametrize("line", ["numpy>=1.26", "numpy", "-r other.txt", "numpy==2.0 --hash=sha256:00", "a @ b"])
def test_what_is_no_bare_pin_is_refused(tmp_path: Path, line: str) -> None:
    path = tmp_path / "constraints.txt"
    path.write_text(line + "\n", encoding="utf-8", newline="\n")
    with pytest.raises(ValueError, match="not a pin"):
        lock.read_pins(path)


def test_the_pins_close_over_what_the_dependencies_need() -> None:
    pins = lock.read_pins()
    needed = lock.closure(need for group in DECLARED.values() for need in group)
    assert set(needed) - ELSEWHERE <= set(pins), "make lock"


def test_what_other_platforms_alone_need_is_left_to_them() -> None:
    assert not {*ELSEWHERE, "kbretrieval"} & set(lock.read_pins())


def test_an_absent_dependency_is_named() -> None:
    with pytest.raises(lock.NotInstalled, match="no-such-distribution"):
        lock.closure([Requirement("no-such-distribution")])


def test_conda_readers_get_the_same_dependencies(root: Path) -> None:
    environment = yaml.safe_load((root / "environment.yml").read_text(encoding="utf-8"))
    *conda, pip = environment["dependencies"]
    lines = [line for line in pip["pip"] if not line.startswith("-")]
    assert sorted(lines) == sorted(str(need) for group in ("core", "bge", "book") for need in DECLARED[group])
    assert [line for line in pip["pip"] if line.startswith("-")] == ["-c constraints.txt", "-e ."]
    pyproject = (root / "pyproject.toml").read_text(encoding="utf-8")
    wanted = re.search(r'^requires-python = "(.+)"$', pyproject, re.MULTILINE)
    assert wanted is not None
    tried = re.findall(r"Python :: 3\.(\d+)", pyproject)
    assert conda == [f"python{wanted[1]},<3.{max(map(int, tried)) + 1}", "pip"]


def test_contributing_gives_a_reason_for_every_dependency(root: Path) -> None:
    text = (root / "CONTRIBUTING.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `([^`]+)` \| (\w+) \| (.{10,}) \|$", text, re.MULTILINE)
    assert [(name, group) for name, group, _ in rows] == [
        (need.name, group) for group, needs in DECLARED.items() for need in needs
    ]
