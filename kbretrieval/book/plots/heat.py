"""The heat map: a matrix of values, each written into its cell (chapter 6)."""

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from kbretrieval.book.plots.canvas import bare, finish, inscribe, new_figure, require
from kbretrieval.book.style import HEAT_MAP, INK, styled


def heat_map(
    values: Sequence[Sequence[float]],
    rows: Sequence[str],
    columns: Sequence[str],
    *,
    title: str,
    x_label: str,
    y_label: str,
    low: float | None = None,
    high: float | None = None,
    digits: int = 2,
    scale: bool = True,
) -> Figure:
    """Return a heat map of `values`, one list per name in `rows`, each as long as `columns`.

    The colour scale goes from `low` to `high` (by default the least and greatest value); lightness rises with the
    value, so it survives grey printing, and the value stands in the cell with `digits` decimals. `scale=False` leaves
    the bar with the colours out, for a map whose colours only say yes or no. Raises `PlotDataMismatch` when shapes
    differ or nothing is given; `MissingGlyph`.

    Example:
        >>> figure = heat_map([[1.0, 0.0]], ["报销"], ["报销", "退款"], title="余弦", x_label="文本", y_label="问题")
        >>> figure.get_label()
        '热图'
    """
    _require_shape(values, rows, columns)
    least = min(min(row) for row in values) if low is None else low
    greatest = max(max(row) for row in values) if high is None else high
    slanted = max(map(len, columns)) > 5
    with styled():
        height = 1.9 + 0.44 * len(rows) + (0.06 * max(map(len, columns)) if slanted else 0)
        figure, axes = new_figure(3.0 + 0.68 * len(columns), height, "热图")
        image = axes.imshow(values, cmap=HEAT_MAP, vmin=least, vmax=greatest, aspect="auto")
        _write_values(axes, values, (least + greatest) / 2, digits)
        _name_cells(axes, rows, columns, slanted)
        inscribe(axes, title, x_label, y_label)
        bare(axes)
        if scale:
            figure.colorbar(image, ax=axes, shrink=0.9, pad=0.02, ticks=None if digits else MaxNLocator(integer=True))
        return finish(figure, [*rows, *columns])


def _require_shape(values: Sequence[Sequence[float]], rows: Sequence[str], columns: Sequence[str]) -> None:
    require(bool(rows) and bool(columns), f"rows and columns needed, {len(rows)} and {len(columns)} given")
    require(len(values) == len(rows), f"{len(rows)} rows named, {len(values)} given")
    for name, row in zip(rows, values, strict=True):
        require(len(row) == len(columns), f"{name}: {len(columns)} columns named, {len(row)} values given")


def _write_values(axes: Axes, values: Sequence[Sequence[float]], middle: float, digits: int) -> None:
    for y, row in enumerate(values):
        for x, value in enumerate(row):
            colour = INK if value > middle else "white"
            axes.text(x, y, f"{value:.{digits}f}", ha="center", va="center", color=colour, fontsize=9)


def _name_cells(axes: Axes, rows: Sequence[str], columns: Sequence[str], slanted: bool) -> None:
    axes.set_xticks(range(len(columns)), list(columns))
    axes.set_yticks(range(len(rows)), list(rows))
    if slanted:
        axes.tick_params(axis="x", rotation=35)
        for label in axes.get_xticklabels():
            label.set(ha="right", rotation_mode="anchor")
