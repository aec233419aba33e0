"""The chart of a run: medians per way, a panel per thing measured; needs matplotlib (the `book` extra)."""

from collections.abc import Sequence
from pathlib import Path

from kbretrieval.bench.figures import Figures
from kbretrieval.bench.timing import Series
from kbretrieval.errors import InvalidParameter


def _panels(all_figures: Sequence[Figures]) -> dict[str, list[Series]]:
    panels: dict[str, list[Series]] = {}
    for figures in all_figures:
        for series in figures.series:
            panels.setdefault(f"{series.what}, {figures.size:,} chunks", []).append(series)
    return panels


def draw(all_figures: Sequence[Figures], path: Path) -> None:
    """Write a chart (PNG, or what the name's suffix says): logarithmic ms, a dot at the median and a line to p90.

    Raises `invalid_parameter` where matplotlib is not installed or the file cannot be written.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise InvalidParameter("--chart: matplotlib is required, it is not installed") from None
    panels = _panels(all_figures)
    rows = sum(len(series) + 1 for series in panels.values())
    figure = Figure(figsize=(9, 0.32 * rows + 0.6 * len(panels)), layout="constrained")
    heights = [len(series) + 1 for series in panels.values()]
    axes = figure.subplots(len(panels), 1, squeeze=False, sharex=True, height_ratios=heights)[:, 0]
    for axis, (title, series) in zip(axes, panels.items(), strict=True):
        names, medians = [s.way for s in series], [s.p50 for s in series]
        axis.errorbar(medians, names, xerr=[[0.0] * len(series), [s.p90 - s.p50 for s in series]], fmt="o")
        axis.set_xscale("log")
        axis.grid(axis="x", alpha=0.3)
        axis.invert_yaxis()
        axis.margins(y=0.2)
        axis.set_title(title, loc="left", fontsize=9)
    axes[-1].set_xlabel("ms (median, line to p90)")
    try:
        figure.savefig(path, dpi=120)
    except (OSError, ValueError) as error:
        raise InvalidParameter(f"--chart: a writable image file is required ({type(error).__name__})") from None
