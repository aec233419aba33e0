"""The sums of a log as a picture: searches, refused citations by cause, writes; needs matplotlib (`book`)."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from kbretrieval.errors import InvalidParameter
from kbretrieval.observers.sums import Sums

INSTALL = 'python -m pip install "kbretrieval[book]"'

Bars = list[tuple[str, int]]


def panels(found: Sums) -> Iterator[tuple[str, Bars]]:
    """Yield the title and the bars of each panel, in the order in which they are read.

    Example:
        >>> from kbretrieval.observers.sums import sums
        >>> [title for title, bars in panels(sums([]))]
        ['searches', 'refused citations', 'writes']
    """
    searches, answers = found.searches, found.answers
    outcomes = [("with hits", searches.done - searches.zero_hits), ("without a hit", searches.zero_hits)]
    yield "searches", [*outcomes, *((f"refused: {code}", count) for code, count in searches.refused)]
    yield "refused citations", list(answers.refused_citations)
    yield "writes", list(found.writes.by_outcome)


def _draw_panel(axis: Any, title: str, bars: Bars) -> None:
    names, counts = [name for name, _ in bars], [count for _, count in bars]
    drawn = axis.barh(range(len(bars)), counts, color="C0")
    axis.bar_label(drawn, padding=3, fontsize=8)
    axis.set_yticks(range(len(bars)), names, fontsize=8)
    axis.set_xlim(0, max(counts, default=0) * 1.15 or 1)
    axis.invert_yaxis()
    axis.set_title(title, loc="left", fontsize=10)
    axis.spines[["top", "right"]].set_visible(False)
    axis.locator_params(axis="x", integer=True)


def draw(found: Sums, path: Path) -> None:
    """Write a chart (PNG, or what the name's suffix says).

    Raises `invalid_parameter` where matplotlib is not installed or the file cannot be written.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise InvalidParameter(f"--chart: matplotlib is required, it is not installed; run: {INSTALL}") from None
    made = list(panels(found))
    heights = [max(2, len(bars)) for _, bars in made]
    figure = Figure(figsize=(7.0, 0.32 * sum(heights) + 1.8), layout="constrained")
    axes = figure.subplots(len(made), 1, height_ratios=heights)
    for axis, (title, bars) in zip(axes, made, strict=True):
        _draw_panel(axis, title, bars)
    try:
        figure.savefig(path, dpi=120)
    except (OSError, ValueError) as error:
        raise InvalidParameter(f"--chart: a writable image file is required ({type(error).__name__})") from None
