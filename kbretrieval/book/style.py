"""How the book's figures look: one style, one font, colours that survive colour blindness and grey printing (NB-3).

Importing this module changes nothing. `styled()` sets the style for the length of a `with` block and puts the old one
back; only the font stays known to matplotlib, which has no way to forget one.
"""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

from kbretrieval.book.errors import FontUnusable
from kbretrieval.book.glyphs import FONT_FAMILY, FONT_FILE

# The hues are those that Okabe and Ito (2008) found safe for colour-blind readers; the lightness is set so that it
# rises by at least ten (CIE L*) at each step and the order survives printing in grey.
PALETTE: tuple[str, ...] = ("#1b1b1b", "#14507f", "#c5500a", "#35a882", "#f2c14e")
MARKERS: tuple[str, ...] = ("o", "s", "^", "D", "X")
LINES: tuple[str | tuple[int, tuple[int, ...]], ...] = ("-", (0, (5, 2)), (0, (1, 1)), (0, (5, 1, 1, 1)), (0, (8, 2)))
HATCHES: tuple[str, ...] = ("", "///", "...", "xx", "\\\\")
HEAT_MAP = "cividis"
INK, MUTED, GRID = "#1b1b1b", "#5a5a5a", "#d0d0d0"

DPI = 144

STYLE: dict[str, Any] = {
    "font.family": [FONT_FAMILY],
    "font.size": 10.5,
    "axes.titlesize": 12,
    "axes.titlepad": 12,
    "axes.titlelocation": "left",
    "axes.labelpad": 7,
    "axes.unicode_minus": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": MUTED,
    "axes.labelcolor": INK,
    "axes.axisbelow": True,
    "text.color": INK,
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "grid.color": GRID,
    "grid.linewidth": 0.6,
    "hatch.linewidth": 0.6,
    "lines.linewidth": 1.8,
    "lines.markersize": 7,
    "legend.frameon": False,
    "figure.facecolor": "white",
    "figure.dpi": DPI,
    "savefig.dpi": DPI,
    "path.simplify": True,
}


@lru_cache(maxsize=1)
def register_font() -> None:
    """Make the font known to matplotlib, once; raises `FontUnusable`.

    On a fresh machine matplotlib first lists the system's fonts and says so in a log line, which would stand in a
    notebook's output as stderr (NB-5): that line, and no other, is held back.
    """
    logger = logging.getLogger("matplotlib.font_manager")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        from matplotlib import font_manager

        font_manager.fontManager.addfont(str(FONT_FILE))
    except OSError as error:
        raise FontUnusable(
            f"读不到字体文件 {FONT_FILE.name}，"
            "请在仓库根目录重新安装：python -m pip install --force-reinstall --no-deps ."
        ) from error
    finally:
        logger.setLevel(level)


@contextmanager
def styled() -> Iterator[None]:
    """Draw in the book's style inside the block, whatever a reader's own matplotlibrc says.

    Example:
        >>> import matplotlib
        >>> before = matplotlib.rcParams["font.size"]
        >>> with styled():
        ...     matplotlib.rcParams["font.size"]
        10.5
        >>> matplotlib.rcParams["font.size"] == before
        True
    """
    register_font()
    import matplotlib

    settings: Any = {key: value for key, value in matplotlib.rcParamsDefault.items() if not key.startswith("backend")}
    settings.update(STYLE)
    with matplotlib.rc_context(settings):
        yield


def lightness(colour: str) -> float:
    """Return the CIE lightness L* of an sRGB colour, 0 for black and 100 for white.

    Example:
        >>> round(lightness("#ffffff")), round(lightness("#000000"))
        (100, 0)
    """
    channels = [int(colour[start : start + 2], 16) / 255 for start in (1, 3, 5)]
    linear = [value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4 for value in channels]
    luminance = 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
    root: float = luminance ** (1 / 3) if luminance > 0.008856 else 7.787 * luminance + 16 / 116
    return 116 * root - 16
