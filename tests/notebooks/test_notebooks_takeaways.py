"""Each chapter ends with what a reader takes away: a rule, the file that holds it, the promises that guard it."""

import re
import tomllib
from pathlib import Path

import nbformat
import pytest

from kbretrieval.book.contents import CHAPTERS

ROOT = Path(__file__).resolve().parents[2]
TITLE, NEXT = "## 带走什么", "## 本章没有证明什么"
PROMISES = {
    number
    for page in tomllib.loads((ROOT / "docs" / "promises.toml").read_text(encoding="utf-8"))["page"]
    for number in page["promises"]
}


def faults(text: str) -> list[str]:
    """Return what is wrong with the takeaways in the prose of a notebook: missing, misplaced, or naming what is not."""
    if text.count(f"{TITLE}\n") != 1 or NEXT not in text.partition(TITLE)[2]:
        return [f"one section {TITLE} before {NEXT} is required"]
    section = text.partition(TITLE)[2].partition("\n## ")[0]
    files = re.findall(r"`(kbretrieval/[\w./]+)`", section)
    numbers = re.findall(r"`([A-Z]+-\d+)`", section)
    found = [f"no file {name}" for name in files if not (ROOT / name).is_file()]
    for names, inside in re.findall(r"`(kbretrieval/[\w./]+)`(?: 的 |（)((?:`\w+`、?)+)", section):
        source = (ROOT / names).read_text(encoding="utf-8") if (ROOT / names).is_file() else ""
        wanted = re.findall(r"`(\w+)`", inside)
        found += [f"{names} defines no {name}" for name in wanted if not re.search(rf"def {name}\(", source)]
    found += [f"no promise {number}" for number in numbers if number not in PROMISES]
    found += [] if files else ["no file is named"]
    found += [] if numbers else ["no promise is named"]
    return found


@pytest.mark.parametrize("chapter", [c.file for c in CHAPTERS if c.published])
def test_a_chapter_says_what_to_take_along_and_where_it_stands(chapter: str) -> None:
    notebook = nbformat.read(ROOT / "notebooks" / chapter, as_version=4)
    prose = "\n\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")
    assert faults(prose) == []


@pytest.mark.parametrize(
    ("section", "expected"),
    [
        (f"{TITLE}\n\n- `kbretrieval/fusion.py`（`rrf`），`RRF-1`。\n\n{NEXT}\n", []),
        (f"{NEXT}\n\n{TITLE}\n\n- `kbretrieval/fusion.py`，`RRF-1`。\n", ["one section"]),
        (f"{TITLE}\n\n- `kbretrieval/fuse.py`，`RRF-1`。\n\n{NEXT}\n", ["no file kbretrieval/fuse.py"]),
        (
            f"{TITLE}\n\n- `kbretrieval/fusion.py`（`fuse`），`RRF-1`。\n\n{NEXT}\n",
            ["kbretrieval/fusion.py defines no fuse"],
        ),
        (f"{TITLE}\n\n- `kbretrieval/fusion.py`，`RRF-99`。\n\n{NEXT}\n", ["no promise RRF-99"]),
        (f"{TITLE}\n\n- 名次没有单位。\n\n{NEXT}\n", ["no file is named", "no promise is named"]),
    ],
)
def test_a_planted_fault_is_found(section: str, expected: list[str]) -> None:
    found = faults(section)
    assert len(found) == len(expected)
    assert all(one.startswith(other) for one, other in zip(found, expected, strict=True))
