"""ARCHITECTURE.md and the package's docstring say what is there: every module, public name and measured number."""

import inspect
import json
import re
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from pathlib import Path
from statistics import median

import pytest

import kbretrieval
from kbretrieval.errors import code_table

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
TREE = PAGE[PAGE.index("## The tree") : PAGE.index("## A document's life")]
ROOMS = sorted(
    f"{path.name}/" if path.is_dir() else path.name
    for path in (ROOT / "kbretrieval").iterdir()
    if (path.is_dir() or path.suffix == ".py") and not path.name.startswith("_")
)


@pytest.mark.parametrize("room", ROOMS)
def test_every_room_has_its_line(room: str) -> None:
    firsts = [row.split("|")[1] for row in TREE.splitlines() if row.startswith("| `")]
    assert any(f"`{room}`" in first or f"`kbretrieval/{room}`" in first for first in firsts)


def test_every_file_that_is_named_is_there() -> None:
    named = re.findall(r"`((?:[\w-]+/)*[\w-]+\.(?:py|json|md|toml)|(?:[\w-]+/)+)`", PAGE)
    homes = (ROOT, ROOT / "kbretrieval", *(path for path in (ROOT / "kbretrieval").iterdir() if path.is_dir()))
    assert len(named) > 40
    assert not [name for name in named if not any((home / name).exists() for home in homes)]


@pytest.mark.parametrize("name", [name for name in kbretrieval.__all__ if name != "__version__"])
def test_every_public_name_is_told_about(name: str) -> None:
    assert f"`{name}`" in str(kbretrieval.__doc__)
    made = getattr(kbretrieval, name)
    assert (made if isinstance(made, type) else type(made)).__doc__


def _told(name: str) -> Iterator[str]:
    """Every docstring of a public name: its own, and those of its public methods."""
    made = getattr(kbretrieval, name)
    for key in vars(made) if isinstance(made, type) else ():
        if not key.startswith("_"):
            yield inspect.getdoc(getattr(made, key)) or ""
    yield inspect.getdoc(made) or ""


def _names() -> set[str]:
    """Attributes, fields and parameters of the public names."""
    made = [each for name in kbretrieval.__all__ if isinstance(each := getattr(kbretrieval, name), type)]
    found = {key for each in made for key in dir(each)} | {
        f.name for each in made if is_dataclass(each) for f in fields(each)
    }
    calls = [call for each in made for call in vars(each).values() if callable(call)]
    return found.union(*(inspect.signature(call).parameters for call in [*calls, kbretrieval.Index.open]))


@pytest.mark.parametrize("name", [name for name in kbretrieval.__all__ if name != "__version__"])
def test_a_docstring_names_refusals_that_exist(name: str) -> None:
    known = {row.code for row in code_table()} | _names()
    said = {word for text in _told(name) for word in re.findall(r"`([a-z]+(?:_[a-z]+)+)`", text)}
    assert said <= known, said - known


def _ms(samples: dict[str, list[str]], terms: int) -> int:
    """A hybrid search over all rows in milliseconds, as the page rounds it."""
    return 10 * round(median(map(float, samples[f"hybrid, {terms} terms, 100 % eligible / engine"])) / 10)


@pytest.mark.parametrize("page", ["ARCHITECTURE.md", "README.md"])
def test_the_numbers_are_those_of_the_evidence(page: str) -> None:
    found = json.loads((ROOT / "evidence" / "bench-dense-1000000.json").read_text(encoding="utf-8"))["observed"]
    text = (ROOT / page).read_text(encoding="utf-8")
    disk, memory = (float(found["numbers"][f"bytes a chunk {where}"]) for where in ("on disk", "in memory"))
    wanted = [f"{disk / 1000:.1f} kB", f"{memory * 1e6 / 2**30:.2f} GiB"]
    wanted += [f"{_ms(found['samples_ms'], terms)}" for terms in (8, 32)]
    assert not [number for number in wanted if not re.search(rf"(?<![\d.]){re.escape(number)}(?![\d.])", text)]
    assert 25_000 < median(map(float, found["samples_ms"]["open until the first hit / engine"])) < 35_000
