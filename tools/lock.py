"""Write constraints.txt: the exact versions, installed here, of everything that the package and its extras need.

Usage: python tools/lock.py [--check]

The closure is walked over the metadata of the installed distributions, starting with pyproject.toml. What only another
platform needs (colorama and pywin32 on Windows, appnope on macOS) is not installed here and therefore stays unpinned:
pip chooses it there. Neither hosts nor hashes are written, so that a reader's own mirror serves as well.
"""

import argparse
import importlib.metadata
import re
import sys
import tomllib
from collections.abc import Iterable
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parent.parent
CONSTRAINTS = ROOT / "constraints.txt"
HEADER = """\
# Exact versions of everything that kbretrieval, its extras and its build need: those with which it was tested.
# Made by `make lock` from an environment with all extras; used by every `pip install -c constraints.txt`.
# What only Windows or macOS needs is not listed, and pip chooses it there.
"""


class NotInstalled(LookupError):
    """A dependency of pyproject.toml is absent from this environment."""


def declared(root: Path = ROOT) -> dict[str, tuple[Requirement, ...]]:
    """The requirements of pyproject.toml by group: ``core``, each extra, and ``build``."""
    with (root / "pyproject.toml").open("rb") as source:
        table = tomllib.load(source)
    groups = {"core": table["project"]["dependencies"], **table["project"]["optional-dependencies"]}
    groups["build"] = table["build-system"]["requires"]
    return {name: tuple(map(Requirement, lines)) for name, lines in groups.items()}


def _applies(requirement: Requirement, extras: Iterable[str]) -> bool:
    marker = requirement.marker
    return marker is None or any(marker.evaluate({"extra": extra}) for extra in ("", *extras))


def closure(roots: Iterable[Requirement]) -> dict[str, str]:
    """Name → installed version of the requirements and of everything that they need on this platform.

    Names are spelled as on the project's page; a missing distribution is ``NotInstalled`` with its name.
    """
    pins: dict[str, str] = {}
    seen: set[tuple[str, frozenset[str]]] = set()
    queue = [requirement for requirement in roots if _applies(requirement, ())]
    while queue:
        wanted = queue.pop()
        key = (canonicalize_name(wanted.name), frozenset(wanted.extras))
        if key in seen:
            continue
        seen.add(key)
        try:
            found = importlib.metadata.distribution(wanted.name)
        except importlib.metadata.PackageNotFoundError as missing:
            raise NotInstalled(f"{wanted.name} is not installed: install with all extras first") from missing
        pins[canonicalize_name(wanted.name)] = found.version
        queue += [need for need in map(Requirement, found.requires or ()) if _applies(need, wanted.extras)]
    return pins


def render(pins: dict[str, str]) -> str:
    """The text of constraints.txt, in order of names."""
    return HEADER + "".join(f"{name}=={pins[name]}\n" for name in sorted(pins))


def read_pins(path: Path = CONSTRAINTS) -> dict[str, str]:
    """Name → version from a file of ``name==version`` lines; any other line is a ``ValueError``."""
    pins = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            match = re.fullmatch(r"([a-z0-9-]+)==([0-9][A-Za-z0-9.+!]*)", line)
            if match is None:
                raise ValueError(f"{path.name}: not a pin: {line}")
            pins[match[1]] = match[2]
    return pins


def main() -> int:
    """Write the file, or with ``--check`` compare it; exit status 1 if it was not up to date."""
    parser = argparse.ArgumentParser(description="write constraints.txt")
    parser.add_argument("--check", action="store_true", help="compare only")
    check = parser.parse_args().check
    roots = [requirement for group in declared().values() for requirement in group]
    # An editable install builds with this one; it is not declared anywhere else.
    text = render(closure([*roots, Requirement("editables")]))
    if check:
        current = CONSTRAINTS.read_text(encoding="utf-8") if CONSTRAINTS.exists() else ""
        if current != text:
            print("constraints.txt differs from this environment: make lock", file=sys.stderr)
        return int(current != text)
    CONSTRAINTS.write_text(text, encoding="utf-8", newline="\n")
    print(f"{CONSTRAINTS.name} written")
    return 0


if __name__ == "__main__":
    sys.exit(main())
