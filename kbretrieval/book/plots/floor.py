"""The floor curve: measures along a threshold that is swept (chapters 4, 7 and 15)."""

from collections.abc import Mapping, Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from kbretrieval.book.plots.canvas import finish, inscribe, new_figure, require, spread
from kbretrieval.book.style import INK, LINES, MARKERS, PALETTE, styled


def floor_curve(
    floors: Sequence[float],
    series: Mapping[str, Sequence[float]],
    *,
    title: str,
    x_label: str = "门槛",
    y_label: str = "比例",
    chosen: float | None = None,
    chosen_label: str = "选定的门槛",
) -> Figure:
    """Return line curves of each series over `floors`, which rise; `chosen` is marked by a vertical line.

    Lines differ by lightness, by dashes and by marker. Raises `PlotDataMismatch` when a series is not as long as
    `floors`, the floors do not rise, or nothing is given; `MissingGlyph`.

    Example:
        >>> figure = floor_curve([0.0, 0.5], {"正例命中": [1.0, 0.9]}, title="扫描门槛", chosen=0.05)
        >>> figure.get_label()
        '折线图'
    """
    require(bool(floors) and bool(series), f"floors and series needed, {len(floors)} and {len(series)} given")
    require(list(floors) == sorted(set(floors)), f"rising floors needed, {list(floors)} given")
    for name, values in series.items():
        require(len(values) == len(floors), f"{name}: {len(floors)} floors given, {len(values)} values")
    with styled():
        figure, axes = new_figure(7.6, 4.0, "折线图")
        _draw_curves(axes, floors, series)
        if chosen is not None:
            axes.axvline(chosen, color=INK, linewidth=1.0, linestyle=(0, (2, 2)), label=f"{chosen_label} {chosen:g}")
        axes.grid(True)
        axes.margins(x=0.03, y=0.08)
        inscribe(axes, title, x_label, y_label)
        entries = len(series) + (chosen is not None)
        figure.legend(loc="outside lower center", ncols=min(entries, 4))
        return finish(figure, list(series))


def _draw_curves(axes: Axes, floors: Sequence[float], series: Mapping[str, Sequence[float]]) -> None:
    step = max(1, len(floors) // 12)
    for position, (name, values) in enumerate(series.items()):
        axes.plot(
            floors,
            values,
            label=name,
            color=spread(PALETTE, position),
            linestyle=spread(LINES, position),
            marker=spread(MARKERS, position),
            markevery=(position % step, step),
            markeredgecolor="white",
            markeredgewidth=0.7,
        )
