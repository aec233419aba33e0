"""Contribution bars: what each channel adds to one fused score (chapter 7)."""

from collections.abc import Mapping, Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from kbretrieval.book.plots.canvas import finish, inscribe, new_figure, require, spread
from kbretrieval.book.style import HATCHES, PALETTE, styled


def contribution_bars(
    parts: Mapping[str, Mapping[str, float]],
    *,
    title: str,
    x_label: str = "融合分数",
    y_label: str = "结果",
    digits: int = 4,
) -> Figure:
    """Return stacked horizontal bars; `parts` maps each result, best first, to contributions per channel.

    The total stands at the end of each bar with `digits` decimals. Channels differ by lightness and by hatching. Raises
    `PlotDataMismatch` for no result, no channel or a contribution below 0; `MissingGlyph`.

    Example:
        >>> figure = contribution_bars({"travel#0": {"词面": 1 / 61, "向量": 1 / 61}}, title="两个第一名")
        >>> figure.get_label()
        '堆叠条形图'
    """
    channels = list(dict.fromkeys(name for row in parts.values() for name in row))
    require(bool(parts) and bool(channels), f"results and channels needed, {len(parts)} and {len(channels)} given")
    smallest = min(value for row in parts.values() for value in row.values())
    require(smallest >= 0, f"contributions of 0 or more needed, {smallest} given")
    totals = [sum(row.values()) for row in parts.values()]
    with styled():
        figure, axes = new_figure(7.6, 1.7 + 0.42 * len(parts), "堆叠条形图")
        _draw_stacks(axes, list(parts.values()), channels)
        for row, total in enumerate(totals):
            axes.annotate(f"{total:.{digits}f}", (total, row), xytext=(6, 0), textcoords="offset points", va="center")
        axes.set_yticks(range(len(parts)), list(parts))
        axes.set_ylim(len(parts) - 0.5, -0.5)
        axes.set_xlim(0, max(totals) * 1.15 or 1)
        axes.grid(axis="x")
        inscribe(axes, title, x_label, y_label)
        figure.legend(loc="outside lower center", ncols=len(channels))
        return finish(figure, [*parts, *channels])


def _draw_stacks(axes: Axes, rows: Sequence[Mapping[str, float]], channels: Sequence[str]) -> None:
    left = [0.0] * len(rows)
    for position, channel in enumerate(channels):
        widths = [row.get(channel, 0.0) for row in rows]
        axes.barh(
            range(len(rows)),
            widths,
            left=left,
            height=0.62,
            label=channel,
            color=spread(PALETTE[1:], position),
            hatch=spread(HATCHES, position),
            edgecolor="white",
            linewidth=0.8,
        )
        left = [start + width for start, width in zip(left, widths, strict=True)]
