"""Plain tables and rendered sentences: Markdown for the page, aligned text for everything else (NB-3, NB-7).

Each output carries both forms, so that a viewer that strips HTML, a terminal and a screen reader lose nothing.
"""

import string
import unicodedata
from collections.abc import Mapping, Sequence

from kbretrieval.book.errors import PlotDataMismatch, SentenceMismatch

Row = Mapping[str, object]


def format_value(value: object) -> str:
    """Return how a table or sentence shows one value: ✓ or ✗ for a boolean, — for None, shortest form for a float.

    Example:
        >>> [format_value(item) for item in (True, None, 0.1 + 0.2, 7, "期限")]
        ['✓', '—', '0.30000000000000004', '7', '期限']
    """
    if isinstance(value, bool):
        return "✓" if value else "✗"
    return "—" if value is None else str(value)


def display_width(text: str) -> int:
    """Return the number of terminal columns; wide and full-width characters take two.

    Example:
        >>> display_width("RRF 融合")
        8
    """
    return sum(2 if unicodedata.east_asian_width(char) in "WF" else 1 for char in text)


def column_names(rows: Sequence[Row], columns: Sequence[str] | None = None) -> list[str]:
    """Return `columns`, or the rows' keys in order of appearance; raises `PlotDataMismatch` when there are none."""
    names = list(columns or dict.fromkeys(key for row in rows for key in row))
    if not names:
        raise PlotDataMismatch(f"at least 1 column needed, {len(names)} given")
    return names


def markdown_table(rows: Sequence[Row], columns: Sequence[str] | None = None) -> str:
    """Return a Markdown table; bars, angle brackets and line breaks in values are escaped.

    Example:
        >>> print(markdown_table([{"问题": "q07", "名次": 1}]))
        | 问题 | 名次 |
        |---|---|
        | q07 | 1 |
    """
    names = column_names(rows, columns)
    lines = ["| " + " | ".join(map(_cell, names)) + " |", "|" + "---|" * len(names)]
    lines += ["| " + " | ".join(_cell(format_value(row.get(name))) for name in names) + " |" for row in rows]
    return "\n".join(lines)


def plain_table(rows: Sequence[Row], columns: Sequence[str] | None = None) -> str:
    """Return the table as aligned text, two spaces between columns and no trailing spaces.

    Example:
        >>> print(plain_table([{"问题": "q07", "名次": 1}]))
        问题  名次
        q07   1
    """
    names = column_names(rows, columns)
    cells = [names, *([format_value(row.get(name)).replace("\n", "↵") for name in names] for row in rows)]
    widths = [max(display_width(line[place]) for line in cells) for place in range(len(names))]
    return "\n".join(
        "  ".join(cell + " " * (width - display_width(cell)) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in cells
    )


def table(rows: Sequence[Row], columns: Sequence[str] | None = None) -> None:
    """Show rows as a table, as Markdown and as plain text; nothing is returned."""
    publish({"text/markdown": markdown_table(rows, columns), "text/plain": plain_table(rows, columns)})


def sentence(template: str, /, **values: object) -> str:
    """Return `template` with each `{name}` or `{name:format}` replaced by its value.

    Raises `SentenceMismatch` when a placeholder has no value, a value no placeholder, or a placeholder is more than a
    name: a sentence can then never say something that the run did not give.

    Example:
        >>> sentence("融合分数是 {score:.4f}，来自 {count} 个通道。", score=2 / 61, count=2)
        '融合分数是 0.0328，来自 2 个通道。'
    """
    parts = list(string.Formatter().parse(template))
    wanted = {name for _, name, _, _ in parts if name is not None}
    if wanted != set(values):
        raise SentenceMismatch(f"placeholders {sorted(wanted)} wanted, values {sorted(values)} given")
    rendered = []
    for literal, name, layout, _ in parts:
        rendered.append(literal)
        if name is not None:
            rendered.append(format(values[name], layout) if layout else format_value(values[name]))
    return "".join(rendered)


def say(template: str, /, **values: object) -> None:
    """Show a sentence whose numbers are rendered from values (NB-7); see `sentence` for the rules."""
    text = sentence(template, **values)
    publish({"text/markdown": text.replace("<", "&lt;"), "text/plain": text})


def publish(bundle: Mapping[str, str]) -> None:
    """Send one output with the given representations to the notebook; outside of one, print its plain text."""
    from IPython import get_ipython
    from IPython.display import display

    if get_ipython() is None:
        print(bundle["text/plain"])
        return
    display(dict(bundle), raw=True)  # type: ignore[no-untyped-call]


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;").replace("\n", "↵")
