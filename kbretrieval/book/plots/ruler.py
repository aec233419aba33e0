"""The unit ruler: one text measured in several units, so that one place has several offsets (chapter 3)."""

from collections.abc import Mapping, Sequence
from itertools import accumulate

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from kbretrieval.book.plots.canvas import bare, finish, inscribe, new_figure, require
from kbretrieval.book.style import HATCHES, INK, MUTED, PALETTE, styled

CELL_INCHES = 0.3
MARKED_FILL = "#f6dccb"


def unit_ruler(
    pieces: Sequence[str],
    lengths: Mapping[str, Sequence[int]],
    *,
    title: str,
    marked: tuple[int, int] = (0, 0),
    x_label: str = "偏移，从零数起",
    y_label: str = "单位",
) -> Figure:
    """Return one ruler per unit; `lengths` maps a unit to how many of it each of `pieces` takes, 1 or more.

    All rulers use one scale, each piece's box is as wide as it is long in that unit, and the offset stands under each
    boundary. `marked` is a half-open range of pieces, drawn filled and hatched with its two offsets in black. Raises
    `PlotDataMismatch` when lengths do not fit the pieces or the range lies outside; `MissingGlyph` unless a piece is
    reader text.

    Example:
        >>> figure = unit_ruler("住宿", {"码点": [1, 1], "UTF-8 字节": [3, 3]}, title="两把尺子", marked=(1, 2))
        >>> figure.get_label()
        '坐标尺图'
    """
    require(bool(pieces) and bool(lengths), f"pieces and units needed, {len(pieces)} and {len(lengths)} given")
    for unit, measured in lengths.items():
        require(len(measured) == len(pieces), f"{unit}: {len(pieces)} pieces given, {len(measured)} lengths")
        require(min(measured) >= 1, f"{unit}: lengths of 1 or more needed, {min(measured)} given")
    first, last = marked
    require(0 <= first <= last <= len(pieces), f"marked range [{first}, {last}) given, pieces are [0, {len(pieces)})")
    longest = max(sum(measured) for measured in lengths.values())
    with styled():
        figure, axes = new_figure(1.9 + CELL_INCHES * longest, 1.2 + 0.62 * len(lengths), "坐标尺图")
        for row, measured in enumerate(lengths.values()):
            _draw_ruler(axes, row, pieces, [0, *accumulate(measured)], marked)
        axes.set_xlim(-0.4, longest + 0.4)
        axes.set_ylim(len(lengths) - 0.3, -0.45)
        axes.set_xticks([])
        axes.set_yticks(range(len(lengths)), list(lengths))
        inscribe(axes, title, x_label, y_label)
        bare(axes)
        return finish(figure, pieces)


def _draw_ruler(axes: Axes, row: int, pieces: Sequence[str], bounds: Sequence[int], marked: tuple[int, int]) -> None:
    for number, piece in enumerate(pieces):
        left, right = bounds[number], bounds[number + 1]
        chosen = marked[0] <= number < marked[1]
        axes.add_patch(
            Rectangle(
                (left + 0.05, row - 0.29),
                right - left - 0.1,
                0.58,
                facecolor=MARKED_FILL if chosen else "white",
                edgecolor=PALETTE[2] if chosen else PALETTE[1],
                hatch=HATCHES[1] if chosen else "",
                linewidth=1.2,
            )
        )
        label = {"boxstyle": "square,pad=0.05", "facecolor": "white", "edgecolor": "none"} if chosen else None
        axes.text((left + right) / 2, row, piece, ha="center", va="center", fontsize=9.5, bbox=label)
    ends = {bounds[marked[0]], bounds[marked[1]]} if marked[0] < marked[1] else set()
    for offset in bounds:
        colour = INK if offset in ends else MUTED
        axes.text(offset, row + 0.42, str(offset), ha="center", va="center", fontsize=7, color=colour)
