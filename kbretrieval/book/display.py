"""Showing a figure so that nobody is left out: alternative text, caption and the plotted table (NB-3).

JupyterLab and nbconvert ignore alternative text in image metadata, therefore the figure is an `<img alt="…">` in
`text/html`, with the same words as its `text/plain`; caption and table are outputs of their own.
"""

import base64
import html
import io
import unicodedata
import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING

from kbretrieval.book.errors import MissingGlyph, PoorAltText
from kbretrieval.book.style import DPI, styled
from kbretrieval.book.tables import Row, markdown_table, plain_table, publish

if TYPE_CHECKING:
    from matplotlib.figure import Figure

KINDS = ("名次斜率图", "堆叠条形图", "条形图", "窗口带图", "坐标尺图", "热图", "时间线图", "折线图", "散点图", "直方图")
CONCLUSION = "结论："

# Screens show about 96 dots an inch; the rest of the file's resolution is for dense screens and for print.
_CSS_DOTS = 96


def alt_text(kind: str, *, x: str, y: str, conclusion: str) -> str:
    """Return alternative text in the form that `check_alt` asks for.

    Example:
        >>> alt_text("热图", x="文档", y="问题", conclusion="对角线最亮。")
        '热图。横轴：文档；纵轴：问题。结论：对角线最亮。'
    """
    return f"{kind}。横轴：{x}；纵轴：{y}。{CONCLUSION}{conclusion}"


def alt_faults(alt: str, kind: str = "") -> list[str]:
    """Return what the alternative text lacks, one phrase each: Chinese, chart type, both axes, a conclusion.

    With `kind` the chart type has to be this one, otherwise one of `KINDS`.

    Example:
        >>> alt_faults("一张图")
        ['chart type', 'axis 横轴', 'axis 纵轴', 'conclusion after 结论：']
    """
    kinds = (kind,) if kind else KINDS
    faults = [] if any(unicodedata.name(char, "").startswith("CJK UNIFIED") for char in alt) else ["Chinese text"]
    faults += [] if any(word in alt for word in kinds) else ["chart type"]
    faults += [f"axis {axis}" for axis in ("横轴", "纵轴") if axis not in alt]
    return faults + ([] if alt.partition(CONCLUSION)[2].strip() else [f"conclusion after {CONCLUSION}"])


def check_alt(alt: str, kind: str = "") -> None:
    """Raise `PoorAltText` naming all that is lacking."""
    faults = alt_faults(alt, kind)
    if faults:
        raise PoorAltText(f"替代文字缺少：{'、'.join(faults)}（可用 book.alt_text 拼出）。")


def png_bytes(figure: "Figure") -> bytes:
    """Return the figure as PNG without time stamp, software name or any other text chunk.

    The same figure gives the same bytes on one machine with one set of packages; between versions of matplotlib only
    size and content are the same. Raises `MissingGlyph` when a character would be drawn as an empty box.
    """
    out = io.BytesIO()
    with styled(), warnings.catch_warnings():
        warnings.filterwarnings("error", message=".*[Gg]lyph.*missing")
        try:
            figure.savefig(out, format="png", dpi=DPI, metadata={"Software": None})
        except UserWarning as warning:
            raise MissingGlyph(f"图里有字体画不出的字符（{warning}）。") from warning
    return out.getvalue()


def image_html(png: bytes, alt: str, width: int) -> str:
    """Return the `<img>` element that carries the picture in the page; `width` is in CSS pixels."""
    data = base64.b64encode(png).decode("ascii")
    return f'<img alt="{html.escape(alt)}" width="{width}" src="data:image/png;base64,{data}">'


def show(
    figure: "Figure", *, alt: str, caption: str, table: Sequence[Row], columns: Sequence[str] | None = None
) -> None:
    """Show a figure, then its caption, then the plotted table; nothing is returned.

    `alt` is Chinese and names chart type, axes and conclusion (`PoorAltText` otherwise); a figure of `book.plots` knows
    its own type and insists on it. `table` holds the plotted values as rows, `columns` their order.
    """
    check_alt(alt, str(figure.get_label()))
    if not caption.strip() or not table:
        raise PoorAltText(f"图要有说明和数据表：说明 {len(caption.strip())} 字，表 {len(table)} 行。")
    width = round(float(figure.get_size_inches()[0]) * _CSS_DOTS)
    publish({"text/html": image_html(png_bytes(figure), alt, width), "text/plain": alt})
    publish({"text/markdown": f"*{caption}*", "text/plain": caption})
    publish({"text/markdown": markdown_table(table, columns), "text/plain": plain_table(table, columns)})
