"""The rank slope chart: the same results in the order of each channel, joined by lines (chapter 7)."""

from collections.abc import Collection, Mapping, Sequence
from itertools import pairwise

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from kbretrieval.book.plots.canvas import bare, finish, new_figure, require, spread
from kbretrieval.book.style import INK, LINES, MARKERS, MUTED, PALETTE, styled
from kbretrieval.book.tables import display_width

COLUMN_INCHES = 1.75


def slope_chart(
    columns: Mapping[str, Sequence[str]], *, title: str, highlight: Collection[str] = (), rank_label: str = "名次"
) -> Figure:
    """Return a slope chart; `columns` maps a column's name (词面, 向量, 融合, 重排) to its results, best first.

    A result that a column does not have has no box there, and no line leads to it. `highlight` names the results drawn
    in colour, each with its own line style and marker; without it all are. Raises `PlotDataMismatch` for fewer than two
    columns, a repeated result in one column, or no result at all; `MissingGlyph` for a label that cannot be drawn.

    Example:
        >>> figure = slope_chart({"词面": ["travel#0", "refund#0"], "融合": ["refund#0", "travel#0"]}, title="名次变化")
        >>> figure.get_label()
        '名次斜率图'
    """
    require(len(columns) > 1, f"at least 2 columns needed, {len(columns)} given")
    for name, ranked in columns.items():
        require(len(set(ranked)) == len(ranked), f"{name}: {len(ranked)} results given, {len(set(ranked))} different")
    depth = max(len(ranked) for ranked in columns.values())
    require(depth > 0, "at least 1 result needed, 0 given")
    results = list(dict.fromkeys(item for ranked in columns.values() for item in ranked))
    coloured = [item for item in results if item in highlight] if highlight else results
    half = min(0.42, 0.12 + max(map(display_width, results)) * 0.072 / 2 / COLUMN_INCHES)
    with styled():
        figure, axes = new_figure(1.6 + COLUMN_INCHES * len(columns), 1.1 + 0.42 * depth, "名次斜率图")
        for result in results:
            place = coloured.index(result) if result in coloured else None
            _draw_result(axes, result, list(columns.values()), place, half)
        axes.set_title(title)
        axes.set_xlim(-0.5, len(columns) - 0.5)
        axes.set_ylim(depth + 0.55, 0.45)
        axes.set_xticks(range(len(columns)), list(columns), fontsize=11.5)
        axes.xaxis.tick_top()
        axes.set_yticks(range(1, depth + 1))
        axes.set_ylabel(rank_label)
        bare(axes)
        return finish(figure, results)


def _draw_result(axes: Axes, result: str, ranked: Sequence[Sequence[str]], place: int | None, half: float) -> None:
    colour = MUTED if place is None else spread(PALETTE, place)
    points = [(column, items.index(result) + 1) for column, items in enumerate(ranked) if result in items]
    for (left, upper), (right, lower) in pairwise(points):
        if right - left > 1:
            continue
        axes.plot(
            [left + half, right - half],
            [upper, lower],
            color=colour,
            linestyle="-" if place is None else spread(LINES, place),
            marker=None if place is None else spread(MARKERS, place),
            linewidth=0.9 if place is None else 2.0,
            zorder=1 if place is None else 2,
        )
    for column, rank in points:
        axes.text(
            column,
            rank,
            result,
            ha="center",
            va="center",
            color=MUTED if place is None else INK,
            fontsize=9.5 if display_width(result) <= 16 else 7.5,
            bbox={"boxstyle": "round,pad=0.25", "facecolor": "white", "edgecolor": colour, "linewidth": 1.2},
            zorder=3,
        )
