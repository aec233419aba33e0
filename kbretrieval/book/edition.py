"""The static edition: one page a chapter and a table of contents, readable offline without any program (NB-18).

Pages are made from the committed notebooks as they stand; nothing is executed. They name no address outside the folder.
"""

import re
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any

from kbretrieval.book.contents import CHAPTERS, Chapter

TITLE = "企业知识库检索：笔记本"

_SECTION = re.compile(r'<h2 id="([^"]+)">(.*?)<a class="anchor-link"', re.DOTALL)
_STYLE = """
body { max-width: 52rem; margin: 2rem auto; padding: 0 1rem; line-height: 1.7; font-family: system-ui, sans-serif; }
pre { overflow-x: auto; padding: .7rem; background: #f5f5f2; line-height: 1.45; }
img { max-width: 100%; height: auto; }
code { overflow-wrap: anywhere; }
table { border-collapse: collapse; display: block; overflow-x: auto; margin: .7rem 0; }
th, td { border: 1px solid #999; padding: .2rem .6rem; }
nav ol { list-style: none; padding: 0; columns: 3 13rem; }
.prompt, .jp-InputPrompt, .jp-OutputPrompt, .anchor-link { display: none; }
.highlight span { font-style: normal !important; }
.skip { position: absolute; left: -99rem; } .skip:focus { left: 1rem; top: .5rem; background: #fff; padding: .3rem; }
[aria-current] { font-weight: bold; }
.turn { display: flex; justify-content: space-between; margin: 2rem 0; border-top: 1px solid #999; padding-top: .7rem; }
@media print { nav, .skip { display: none; } pre { white-space: pre-wrap; } }
"""


def page(title: str, body: str, chapters: Sequence[Chapter], shown: Chapter | None = None, style: str = "") -> str:
    """Return a whole page in Chinese: a link past the navigation, the navigation, the main part, and the way on.

    Example:
        >>> '<html lang="zh">' in page("目录", "<h1>目录</h1>", ())
        True
    """
    links = "".join(f"<li>{_link(c, c.label, c is shown)}</li>" for c in chapters)
    return (
        f'<!DOCTYPE html>\n<html lang="zh">\n<head><meta charset="utf-8">'
        f'<meta name="viewport" content="width=device-width, initial-scale=1"><title>{escape(title)}</title>'
        f"<style>{_STYLE}{style}</style></head>\n<body>\n"
        f'<a class="skip" href="#main">跳到正文</a>\n'
        f'<nav aria-label="目录"><a href="index.html">目录</a><ol>{links}</ol></nav>\n'
        f'<main id="main">\n{body}\n</main>\n{_turn(chapters, shown)}</body>\n</html>\n'
    )


def _link(chapter: Chapter, text: str, current: bool = False) -> str:
    return f'<a href="{_file(chapter)}"{" aria-current=page" if current else ""}>{escape(text)}</a>'


def _turn(chapters: Sequence[Chapter], shown: Chapter | None) -> str:
    """Return the links to the chapters before and behind the one that is shown."""
    if shown is None:
        return ""
    at = chapters.index(shown)
    before = _link(chapters[at - 1], f"← {chapters[at - 1].label}") if at else "<span></span>"
    behind = _link(chapters[at + 1], f"{chapters[at + 1].label} →") if at + 1 < len(chapters) else "<span></span>"
    return f'<nav class="turn" aria-label="前后章">{before}{behind}</nav>\n'


def _file(chapter: Chapter) -> str:
    return Path(chapter.file).with_suffix(".html").name


def _body(exporter: Any, notebook: Path) -> str:
    made, _ = exporter.from_filename(str(notebook))
    return with_sections(str(made))


def with_sections(body: str) -> str:
    """Return a chapter's body with links to its sections before the first of them; chapters are long pages.

    Example:
        >>> '<li><a href="#a">甲</a></li>' in with_sections('<h2 id="a">甲<a class="anchor-link" href="#a">¶</a></h2>')
        True
    """
    links = "".join(f'<li><a href="#{mark}">{title}</a></li>' for mark, title in _SECTION.findall(body))
    before, section, behind = body.partition("<h2 ")
    return f'{before}<nav aria-label="本章"><p>本章各节</p><ol>{links}</ol></nav>{section}{behind}' if links else body


def write_edition(notebooks: Path, output: Path) -> list[Path]:
    """Write index.html and one page for each published chapter, and return their paths."""
    from nbconvert import HTMLExporter
    from pygments.formatters import HtmlFormatter

    exporter = HTMLExporter(template_name="basic")  # type: ignore[no-untyped-call]
    colours = HtmlFormatter(style="bw").get_style_defs(".highlight")
    published = [chapter for chapter in CHAPTERS if chapter.published]
    output.mkdir(parents=True, exist_ok=True)
    questions = "".join(f"<li>{escape(c.label)}：{escape(c.question)}</li>" for c in published)
    pages = {
        "index.html": page("企业知识库检索：笔记本", f"<h1>企业知识库检索：笔记本</h1><ul>{questions}</ul>", published)
    }
    for chapter in published:
        body = _body(exporter, notebooks / chapter.file)
        pages[_file(chapter)] = page(chapter.label, body, published, chapter, colours)
    for name, text in pages.items():
        (output / name).write_text(text, encoding="utf-8", newline="\n")
    return [output / name for name in pages]
