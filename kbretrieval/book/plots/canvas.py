"""What all plots share: a figure that belongs to no window, and the last check before it is handed out."""

from collections.abc import Iterable
from typing import Any

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.text import Text

from kbretrieval.book.errors import PlotDataMismatch
from kbretrieval.book.glyphs import replacement_note, require_glyphs
from kbretrieval.book.style import MUTED


def new_figure(width: float, height: float, kind: str) -> tuple[Figure, Axes]:
    """Return a figure of `width` by `height` inches with one pair of axes; its label carries the kind of chart."""
    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    figure.set_label(kind)
    return figure, figure.add_subplot()


def finish(figure: Figure, given: Iterable[str] = ()) -> Figure:
    """Return the figure, with a note when reader text among `given` lost characters; raises `MissingGlyph` (NB-4)."""
    note = replacement_note(given)
    if note:
        figure.supxlabel(note, fontsize=8, color=MUTED, x=0.99, ha="right")
    require_glyphs([item.get_text() for item in figure.findobj(Text) if isinstance(item, Text)])
    return figure


def require(holds: bool, facts: str) -> None:
    """Raise `PlotDataMismatch` with both facts when the data do not fit together."""
    if not holds:
        raise PlotDataMismatch(facts)


def inscribe(axes: Axes, title: str, x_label: str, y_label: str) -> None:
    """Write the title above the axes and a name along each of them."""
    axes.set_title(title)
    axes.set_xlabel(x_label)
    axes.set_ylabel(y_label)


def bare(axes: Axes) -> None:
    """Take away spines and tick marks where position, not a scale, carries the meaning."""
    axes.tick_params(length=0)
    for spine in axes.spines.values():
        spine.set_visible(False)


def spread(items: tuple[Any, ...], position: int) -> Any:
    """Return the palette's, marker list's or hatch list's entry for a position, going round at its end."""
    return items[position % len(items)]
