"""The committed form of an executed notebook, and the comparison of two of them (NB-13).

The form drops what depends on the machine or the run and carries no lesson: language and kernel versions, cell ids,
chunking of streams, cell metadata other than tags. Everything else is compared byte for byte, except in cells tagged
`observed`, where numbers may differ by 0.05, figures by their pixels, and versions (three numbers or more) altogether.
Which hits stand next to the floor, and on which processor, is each machine's own (VEC-9): of cells tagged `tail` as
well, only the number and the kinds of outputs are compared.
"""

import base64
import binascii
import copy
import html
import platform
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

import nbformat

OBSERVED = "observed"
TAIL = "tail"
TOLERANCE = 0.05
METADATA_KEY = "kbretrieval"
DRAWING_PACKAGES = ("matplotlib", "pillow")

_KERNELSPEC = {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"}
_NUMBER = re.compile(r"[-−+]?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?")
_VERSION = re.compile(r"\d+(?:\.\d+){2,}")
_IMAGE = re.compile(r'<img alt="(?P<alt>[^"]*)"[^>]*? src="data:image/png;base64,(?P<data>[^"]*)">')


@dataclass(frozen=True, slots=True)
class Difference:
    """Where two notebooks differ: 1-based cell number (0: the notebook itself) and what is different, with no text."""

    cell: int
    what: str


@dataclass(frozen=True, slots=True)
class Picture:
    """A figure as it stands in an output: alternative text, size in pixels, and the bytes."""

    alt: str
    width: int
    height: int
    data: str


def normalise(notebook: Any, versions: Mapping[str, str] | None = None) -> Any:
    """Return a copy in committed form; `versions` are those of the packages that drew the figures (default: present).

    Twice normalised is once normalised. Cell ids become `cell-001` and so on.
    """
    made = copy.deepcopy(notebook)
    stored = versions if versions is not None else {name: version(name) for name in DRAWING_PACKAGES}
    made.metadata = _node({"kernelspec": _KERNELSPEC, METADATA_KEY: dict(stored)})
    made.nbformat, made.nbformat_minor = 4, 5
    for number, cell in enumerate(made.cells, start=1):
        tags = cell.metadata.get("tags", [])
        cell.metadata = _node({"tags": sorted(tags)} if tags else {})
        cell.id = f"cell-{number:03d}"
        if cell.cell_type == "code":
            cell.outputs = _joined_streams([_bare_output(output) for output in cell.outputs])
    return made


def to_text(notebook: Any) -> str:
    """Return the file's text: sorted keys, one space of indent, characters as they are, one newline at the end."""
    text: str = nbformat.writes(notebook, version=4)  # type: ignore[no-untyped-call]
    return text.rstrip("\n") + "\n"


def pictures_comparable(notebook: Any) -> bool:
    """Return whether this machine draws the very bytes that the notebook holds: Linux x86-64, same drawing packages."""
    stored = notebook.metadata.get(METADATA_KEY, {})
    here = {name: version(name) for name in DRAWING_PACKAGES}
    return sys.platform == "linux" and platform.machine() in {"x86_64", "AMD64"} and dict(stored) == here


def differences(committed: Any, executed: Any, *, pixels: bool, without: str = "") -> list[Difference]:
    """Return where two notebooks differ after normalising; empty when they are the same.

    `pixels` asks for equal PNG bytes outside of `observed` cells; otherwise alternative text and size are compared.
    Cells tagged `without` are left out (used for solved exercises).
    """
    left, right = normalise(committed, {}), normalise(executed, {})
    if len(left.cells) != len(right.cells):
        return [Difference(0, f"{len(left.cells)} cells committed, {len(right.cells)} executed")]
    found: list[Difference] = []
    for number, (old, new) in enumerate(zip(left.cells, right.cells, strict=True), start=1):
        if without and without in old.metadata.get("tags", []):
            continue
        found += [Difference(number, what) for what in _cell_differences(old, new, pixels)]
    return found


def pictures(output: Any) -> list[Picture]:
    """Return the figures inside the `text/html` of one output, as `book.show` writes them."""
    markup = "".join(output.get("data", {}).get("text/html", ""))
    return [_picture(found["alt"], found["data"]) for found in _IMAGE.finditer(markup)]


def near(old: str, new: str, tolerance: float = TOLERANCE) -> bool:
    """Return whether two texts are the same apart from numbers that differ by no more than `tolerance`.

    What Python, SQLite or a package calls its version is not compared: which are new enough is said in words.

    Example:
        >>> near("余弦 0.71，第 1 名", "余弦 0.74，第 1 名"), near("余弦 0.71，第 1 名", "余弦 0.71，第 2 名")
        (True, False)
        >>> near("Python 3.11.7 ✓", "Python 3.13.0 ✓"), near("Python 3.11.7 ✓", "Python 3.9.2 ✗")
        (True, False)
    """
    old, new = (_VERSION.sub("", text) for text in (old, new))
    if _NUMBER.split(old) != _NUMBER.split(new):
        return False
    pairs = zip(_NUMBER.findall(old), _NUMBER.findall(new), strict=True)
    # The sum of two decimals may exceed the tolerance by a rounding error of the subtraction alone.
    return all(abs(_value(a) - _value(b)) <= tolerance + 1e-9 for a, b in pairs)


def _node(content: dict[str, Any]) -> Any:
    return nbformat.NotebookNode(content)  # type: ignore[no-untyped-call]


def _value(number: str) -> float:
    return float(number.replace("−", "-"))


def _bare_output(output: Any) -> Any:
    if "metadata" in output:
        output.metadata = _node({})
    return output


def _joined_streams(outputs: list[Any]) -> list[Any]:
    joined: list[Any] = []
    for output in outputs:
        if joined and output.output_type == "stream" and joined[-1].get("name") == output.name:
            joined[-1].text += output.text
        else:
            joined.append(output)
    return joined


def _picture(alt: str, data: str) -> Picture:
    try:
        header = base64.b64decode(data[:64])
    except binascii.Error:
        header = b""
    width, height = int.from_bytes(header[16:20], "big"), int.from_bytes(header[20:24], "big")
    return Picture(html.unescape(alt), width, height, data)


def _cell_differences(old: Any, new: Any, pixels: bool) -> list[str]:
    facts = [key for key in ("cell_type", "source", "metadata", "execution_count") if old.get(key) != new.get(key)]
    if facts or old.cell_type != "code":
        return [f"{key} differs" for key in facts]
    if len(old.outputs) != len(new.outputs):
        return [f"{len(old.outputs)} outputs committed, {len(new.outputs)} executed"]
    tags = set(old.metadata.get("tags", []))
    found: list[str] = []
    for place, (before, after) in enumerate(zip(old.outputs, new.outputs, strict=True), start=1):
        unlike = _kind_differences(before, after)
        if not unlike and not tags >= {OBSERVED, TAIL}:
            unlike = _output_differences(before, after, OBSERVED in tags, pixels)
        found += [f"output {place}: {what}" for what in unlike]
    return found


def _kind_differences(old: Any, new: Any) -> list[str]:
    before, after = _representations(old), _representations(new)
    return [] if list(before) == list(after) else [f"{sorted(before)} committed, {sorted(after)} executed"]


def _output_differences(old: Any, new: Any, observed: bool, pixels: bool) -> list[str]:
    before, after = _representations(old), _representations(new)
    drawn, redrawn = pictures(old), pictures(new)
    found = []
    if [(p.width, p.height) for p in drawn] != [(p.width, p.height) for p in redrawn]:
        found.append("number or size of figures differs")
    if pixels and not observed and [p.data for p in drawn] != [p.data for p in redrawn]:
        found.append("pixels of a figure differ")
    for name, text in before.items():
        alike = near(text, after[name]) if observed else text == after[name]
        found += [] if alike else [f"{name} differs"]
    return found


def _representations(output: Any) -> dict[str, str]:
    if output.output_type == "stream":
        return {f"stream {output.name}": output.text}
    if output.output_type == "error":
        return {"error": f"{output.ename}: {output.evalue}"}
    data = {name: value if isinstance(value, str) else repr(value) for name, value in sorted(output.data.items())}
    if "text/html" in data:
        data["text/html"] = _IMAGE.sub(lambda found: found.group(0).replace(found["data"], ""), data["text/html"])
    return data
