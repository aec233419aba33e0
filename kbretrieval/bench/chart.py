"""The chart of a run: medians against the number of chunks, a panel per thing measured; needs matplotlib (`book`)."""

from collections.abc import Sequence
from pathlib import Path

from kbretrieval.bench.figures import Figures
from kbretrieval.errors import InvalidParameter

COLUMNS = 4
MARKERS = "osD^v<>P"
INSTALL = 'python -m pip install "kbretrieval[book]"'

Point = tuple[int, float, float]
Panels = dict[str, dict[str, list[Point]]]


def panels(all_figures: Sequence[Figures]) -> Panels:
    """Return what was measured → way → (chunks, median in ms, p90 in ms), by the number of chunks.

    Example:
        >>> from kbretrieval.bench.timing import Series
        >>> panels([Figures("terms", 20, (Series("search", "engine", (2.0,)),), (), (), {}, {})])
        {'search': {'engine': [(20, 2.0, 2.0)]}}
    """
    made: Panels = {}
    for figures in sorted(all_figures, key=lambda item: item.size):
        for series in figures.series:
            ways = made.setdefault(series.what, {})
            ways.setdefault(series.way, []).append((figures.size, series.p50, series.p90))
    return made


def draw(all_figures: Sequence[Figures], path: Path) -> None:
    """Write a chart (PNG, or what the name's suffix says): both axes logarithmic, a line from each median to its p90.

    Raises `invalid_parameter` where matplotlib is not installed or the file cannot be written.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise InvalidParameter(f"--chart: matplotlib is required, it is not installed; run: {INSTALL}") from None
    found = panels(all_figures)
    rows = -(-len(found) // COLUMNS)
    figure = Figure(figsize=(4.2 * COLUMNS, 3.2 * rows + 0.6), layout="constrained")
    axes = figure.subplots(rows, COLUMNS, squeeze=False).ravel()
    names = sorted(
        {way for ways in found.values() for way in ways}, key=lambda way: (not way.startswith("engine"), way)
    )
    for axis, (title, ways) in zip(axes, found.items(), strict=False):
        for way, points in ways.items():
            sizes, medians, highest = zip(*points, strict=True)
            place = names.index(way)
            axis.plot(sizes, medians, marker=MARKERS[place % len(MARKERS)], color=f"C{place}", label=way)
            axis.vlines(sizes, medians, highest, color=f"C{place}", linewidth=1)
        axis.set(xscale="log", yscale="log", xlabel="chunks", ylabel="ms")
        axis.grid(alpha=0.3)
        axis.set_title(title, loc="left", fontsize=9)
    for axis in axes[len(found) :]:
        axis.set_visible(False)
    shown = {name: handle for axis in axes for handle, name in zip(*axis.get_legend_handles_labels(), strict=True)}
    figure.legend([shown[name] for name in names], names, loc="outside lower center", ncols=3, fontsize=9)
    try:
        figure.savefig(path, dpi=100)
    except (OSError, ValueError) as error:
        raise InvalidParameter(f"--chart: a writable image file is required ({type(error).__name__})") from None
