"""What the notebooks use: the start check, pictures, tables, sentences and exercises.

    from kbretrieval import book
    book.start(chapter=7)

Names are resolved on first use (PEP 562): importing this package loads neither matplotlib nor IPython.

Example:
    >>> from kbretrieval import book
    >>> book.sentence("窗口是 {window} 个码点。", window=80)
    '窗口是 80 个码点。'
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kbretrieval.book.contents import CHAPTERS as CHAPTERS
    from kbretrieval.book.display import alt_text as alt_text
    from kbretrieval.book.display import show as show
    from kbretrieval.book.errors import BookError as BookError
    from kbretrieval.book.exercises import exercise as exercise
    from kbretrieval.book.glyphs import reader_text as reader_text
    from kbretrieval.book.plots import contribution_bars as contribution_bars
    from kbretrieval.book.plots import floor_curve as floor_curve
    from kbretrieval.book.plots import heat_map as heat_map
    from kbretrieval.book.plots import slope_chart as slope_chart
    from kbretrieval.book.plots import timeline as timeline
    from kbretrieval.book.plots import unit_ruler as unit_ruler
    from kbretrieval.book.plots import window_strip as window_strip
    from kbretrieval.book.preflight import fixtures_folder as fixtures_folder
    from kbretrieval.book.preflight import start as start
    from kbretrieval.book.presence import can_check as can_check
    from kbretrieval.book.presence import real_model as real_model
    from kbretrieval.book.runner import run_notebooks as run_notebooks
    from kbretrieval.book.style import styled as styled
    from kbretrieval.book.tables import say as say
    from kbretrieval.book.tables import sentence as sentence
    from kbretrieval.book.tables import table as table

# No module may bear the name of a function: importing a submodule would put the module in the function's place.
_HOMES = {
    "BookError": "errors",
    "CHAPTERS": "contents",
    "alt_text": "display",
    "can_check": "presence",
    "contribution_bars": "plots",
    "exercise": "exercises",
    "fixtures_folder": "preflight",
    "floor_curve": "plots",
    "heat_map": "plots",
    "reader_text": "glyphs",
    "real_model": "presence",
    "run_notebooks": "runner",
    "say": "tables",
    "sentence": "tables",
    "show": "display",
    "slope_chart": "plots",
    "start": "preflight",
    "styled": "style",
    "table": "tables",
    "timeline": "plots",
    "unit_ruler": "plots",
    "window_strip": "plots",
}

__all__ = sorted(_HOMES)  # noqa: PLE0605


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
