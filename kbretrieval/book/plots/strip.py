"""The window strip: a text, character by character, with the chunk windows that lie on it (chapter 4)."""

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from kbretrieval.book.glyphs import ReaderText
from kbretrieval.book.plots.canvas import bare, finish, inscribe, new_figure, require, spread
from kbretrieval.book.style import HATCHES, MUTED, PALETTE, styled

NEW_LINE_MARK = "¶"
LANE = 0.62


def window_strip(
    text: str,
    windows: Sequence[tuple[int, int]],
    *,
    title: str,
    per_row: int = 40,
    x_label: str = "码点偏移（每格一个码点）",
    y_label: str = "每行起点",
) -> Figure:
    """Return the text in rows of `per_row` code points with one bar below it for each half-open window `[start, end)`.

    Windows count code points. Neighbours take lanes in turn, so that an overlap shows as two bars one above the other;
    the window's number stands at the head of each of its bars. A line break is drawn as ¶ and takes one cell. Raises
    `PlotDataMismatch` for a window outside the text or an empty text; `MissingGlyph` unless `text` is reader text.

    Example:
        >>> figure = window_strip("差旅报销上限为五百元", [(0, 6), (4, 10)], title="窗口 6，重叠 2")
        >>> figure.get_label()
        '窗口带图'
    """
    require(bool(text), "a text of at least 1 code point needed, 0 given")
    for start, end in windows:
        require(0 <= start < end <= len(text), f"window [{start}, {end}) given, text is [0, {len(text)})")
    lanes = _lanes(windows)
    pitch = 1.1 + LANE * (max(lanes, default=-1) + 1) + 0.5
    rows = -(-len(text) // per_row)
    cells = min(per_row, len(text))
    with styled():
        figure, axes = new_figure(1.5 + 0.21 * cells, 1.25 + 0.24 * pitch * rows, "窗口带图")
        _write_text(axes, text, per_row, pitch)
        for number, window in enumerate(windows):
            _draw_window(axes, number, window, per_row, pitch, 1.1 + LANE * lanes[number])
        axes.set_xlim(-0.2, cells + 0.2)
        axes.set_ylim(rows * pitch, -0.2)
        axes.set_xticks([*range(0, cells, 10), cells])
        axes.set_yticks([row * pitch + 0.5 for row in range(rows)], [str(row * per_row) for row in range(rows)])
        inscribe(axes, title, x_label, y_label)
        bare(axes)
        axes.tick_params(axis="x", length=3, color=MUTED)
        return finish(figure, [text] if isinstance(text, ReaderText) else [])


def _lanes(windows: Sequence[tuple[int, int]]) -> list[int]:
    free: list[int] = []
    chosen: list[int] = []
    for start, end in windows:
        lane = next((number for number, busy_until in enumerate(free) if busy_until <= start), len(free))
        # Two lanes at least, in turn: windows that touch without overlap stay apart as well.
        if chosen and lane == chosen[-1]:
            lane = next((n for n, busy in enumerate(free) if busy <= start and n != lane), len(free))
        if lane == len(free):
            free.append(end)
        else:
            free[lane] = end
        chosen.append(lane)
    return chosen


def _write_text(axes: Axes, text: str, per_row: int, pitch: float) -> None:
    for offset, char in enumerate(text):
        x, y = offset % per_row, offset // per_row * pitch
        shown = NEW_LINE_MARK if char == "\n" else char
        axes.text(x + 0.5, y + 0.5, shown, ha="center", va="center", fontsize=10)


def _draw_window(axes: Axes, number: int, window: tuple[int, int], per_row: int, pitch: float, below: float) -> None:
    start, end = window
    for row in range(start // per_row, (end - 1) // per_row + 1):
        span = max(start - row * per_row, 0), min(end - row * per_row, per_row)
        _draw_bar(axes, number, span, row * pitch + below)


def _draw_bar(axes: Axes, number: int, span: tuple[int, int], top: float) -> None:
    left, right = span
    axes.add_patch(
        Rectangle(
            (left + 0.05, top),
            right - left - 0.1,
            LANE - 0.12,
            facecolor="white" if number % 2 else spread(PALETTE, 1),
            edgecolor=spread(PALETTE, 1 if number % 2 == 0 else 2),
            hatch=HATCHES[1] if number % 2 else "",
            linewidth=1.2,
        )
    )
    label = {"boxstyle": "square,pad=0.1", "facecolor": "white", "edgecolor": "none"}
    axes.text(left + 0.35, top + LANE / 2 - 0.06, str(number), va="center", fontsize=7.5, bbox=label)
