"""Which characters the book's font can draw, and what happens to those it cannot (NB-4).

The book's own labels must be complete: `require_glyphs` raises. What a reader brings is drawn with `REPLACEMENT` in
place of each character without a glyph, and the figure says how many there were.
"""

from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path

from kbretrieval.book.errors import FontUnusable, MissingGlyph

FONT_FILE = Path(__file__).resolve().parent / "font" / "KBBookSansSC-Regular.otf"
FONT_FAMILY = "KB Book Sans SC"
REPLACEMENT = "□"

# A line break is laid out by the renderer and never drawn.
_LAID_OUT = frozenset("\n")


class ReaderText(str):
    """Text that a reader supplied, made drawable: `replaced` counts the characters that became `REPLACEMENT`."""

    replaced: int

    def __new__(cls, text: str) -> "ReaderText":
        """Return `text` with one `REPLACEMENT` for each code point without a glyph."""
        drawable = "".join(char if can_draw(char) else REPLACEMENT for char in text)
        made = super().__new__(cls, drawable)
        made.replaced = sum(not can_draw(char) for char in text)
        return made


@lru_cache(maxsize=1)
def covered() -> frozenset[int]:
    """Return the code points that the font has glyphs for; raises `FontUnusable` when it is not the book's font."""
    from matplotlib.ft2font import FT2Font

    try:
        font = FT2Font(str(FONT_FILE))
    except (OSError, RuntimeError) as error:
        raise FontUnusable(
            f"打不开字体文件 {FONT_FILE.name}，"
            "请在仓库根目录重新安装：python -m pip install --force-reinstall --no-deps ."
        ) from error
    if font.family_name != FONT_FAMILY:
        raise FontUnusable(f"字体应当是 {FONT_FAMILY}，文件里是 {font.family_name}，请重新安装 kbretrieval。")
    return frozenset(font.get_charmap())


def can_draw(char: str) -> bool:
    """Return whether the font has a glyph for one character."""
    return char in _LAID_OUT or ord(char) in covered()


def missing_glyphs(texts: Iterable[str]) -> list[str]:
    """Return the characters of `texts` without a glyph, each once, in code point order.

    Example:
        >>> missing_glyphs(["窗口 ✓", "退款期限 → 14 天"])
        []
        >>> missing_glyphs(["👍"])
        ['👍']
    """
    return sorted({char for text in texts for char in text if not can_draw(char)})


def require_glyphs(texts: Iterable[str]) -> None:
    """Raise `MissingGlyph` when a text of the book's own cannot be drawn completely."""
    lacking = missing_glyphs(texts)
    if lacking:
        named = "、".join(f"U+{ord(char):04X}" for char in lacking)
        raise MissingGlyph(f"字体里没有 {named}；若是读者的文本，请用 book.reader_text(…) 包起来。")


def reader_text(text: str) -> ReaderText:
    """Return text that a reader supplied in a form that every plot of the book can draw.

    Example:
        >>> mine = reader_text("好👍")
        >>> mine, mine.replaced
        ('好□', 1)
    """
    return ReaderText(text)


def replacement_note(texts: Iterable[str]) -> str:
    """Return the note that a figure carries when reader text lost characters, or an empty string.

    Example:
        >>> replacement_note([reader_text("好👍"), "自己的标签"])
        '□ 代替了字体里没有的 1 个字符'
    """
    count = sum(text.replaced for text in texts if isinstance(text, ReaderText))
    return f"{REPLACEMENT} 代替了字体里没有的 {count} 个字符" if count else ""
