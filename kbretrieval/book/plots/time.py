"""The timeline: what each reader saw at each step (chapters 10 to 12)."""

from collections.abc import Mapping, Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from kbretrieval.book.plots.canvas import bare, finish, inscribe, new_figure, require, spread
from kbretrieval.book.style import HATCHES, INK, PALETTE, styled

# Light enough to write on; the hatching tells them apart where lightness does not.
FILLS = ("#ffffff", "#dce6ee", "#f6dccb", "#d3ede4", "#fbeac3")


def timeline(
    steps: Sequence[str],
    lanes: Mapping[str, Sequence[str]],
    *,
    title: str,
    marks: Mapping[int, str] | None = None,
    x_label: str = "步骤",
    y_label: str = "读者",
) -> Figure:
    """Return a timeline with one lane per reader; each lane gives the state seen at each of `steps`.

    Neighbouring equal states form one block; equal states look alike in all lanes. `marks` maps a step's position
    (0-based) to the name of what happened just before it, drawn as a vertical line. Steps are ordinal: distances say
    nothing about time. Raises `PlotDataMismatch` when a lane's length differs or a mark lies outside; `MissingGlyph`.

    Example:
        >>> figure = timeline(["一", "二"], {"甲": ["30 天", "14 天"]}, title="甲看到的期限", marks={1: "提交"})
        >>> figure.get_label()
        '时间线图'
    """
    marked = dict(marks or {})
    require(bool(steps) and bool(lanes), f"steps and lanes needed, {len(steps)} and {len(lanes)} given")
    for name, states in lanes.items():
        require(len(states) == len(steps), f"{name}: {len(steps)} steps given, {len(states)} states")
    for position in marked:
        require(0 <= position < len(steps), f"mark at step {position} given, steps are 0 to {len(steps) - 1}")
    looks = list(dict.fromkeys(state for states in lanes.values() for state in states))
    with styled():
        figure, axes = new_figure(max(6.0, 2.0 + 1.25 * len(steps)), 1.9 + 0.6 * len(lanes), "时间线图")
        for row, states in enumerate(lanes.values()):
            _draw_lane(axes, row, states, looks)
        _draw_marks(axes, marked, len(lanes))
        axes.set_xlim(-0.55, len(steps) - 0.45)
        axes.set_ylim(len(lanes) - 0.5, -1.05 if marked else -0.5)
        axes.set_xticks(range(len(steps)), list(steps))
        axes.set_yticks(range(len(lanes)), list(lanes))
        inscribe(axes, title, x_label, y_label)
        bare(axes)
        return finish(figure, [*steps, *lanes, *looks, *marked.values()])


def _draw_marks(axes: Axes, marked: Mapping[int, str], lanes: int) -> None:
    for position, name in marked.items():
        line = [position - 0.5, position - 0.5]
        axes.plot(line, [-0.52, lanes - 0.5], color=PALETTE[2], linewidth=2.0, linestyle=(0, (4, 2)))
        axes.text(position - 0.5, -0.62, name, ha="center", va="bottom", color=INK, fontsize=9.5)


def _draw_lane(axes: Axes, row: int, states: Sequence[str], looks: list[str]) -> None:
    start = 0
    for end in range(1, len(states) + 1):
        if end < len(states) and states[end] == states[start]:
            continue
        look = looks.index(states[start])
        axes.add_patch(
            Rectangle(
                (start - 0.48, row - 0.34),
                end - start - 0.04,
                0.68,
                facecolor=spread(FILLS, look),
                edgecolor=spread(PALETTE, look),
                hatch=spread(HATCHES, look),
                linewidth=1.2,
            )
        )
        label = {"boxstyle": "round,pad=0.2", "facecolor": "white", "edgecolor": "none"}
        axes.text((start + end - 1) / 2, row, states[start], ha="center", va="center", fontsize=9.5, bbox=label)
        start = end
