"""Markdown: headings and title by CommonMark, front matter, hostile input (PRJ-3)."""

import time
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbretrieval.markdown_source import headings_of, split_front_matter
from kbretrieval.projection import project

# source, title, headings as (start, level, text)
CASES: list[tuple[str, str, list[tuple[int, int, str]]]] = [
    ("# 甲", "甲", [(0, 1, "甲")]),
    ("   # 甲  ##  \n", "甲", [(0, 1, "甲")]),
    ("#\t甲", "甲", [(0, 1, "甲")]),
    ("###### 六\n", "Untitled", [(0, 6, "六")]),
    ("####### 七\n", "Untitled", []),
    ("#甲\n", "Untitled", []),
    ("\\# 甲\n", "Untitled", []),
    ("    # 缩进是代码\n", "Untitled", []),
    ("\t# 制表符也是\n", "Untitled", []),
    ("段落\n# 甲\n", "甲", [(3, 1, "甲")]),
    ("段落\n    # 不是代码，是段落\n", "Untitled", []),
    ("甲\n===\n", "甲", [(0, 1, "甲")]),
    ("甲\n乙\n---\n", "Untitled", [(0, 2, "甲 乙")]),
    ("甲\n\n---\n", "Untitled", []),
    ("***\n# 甲\n***\n", "甲", [(4, 1, "甲")]),
    ("```\n# 码\n```\n# 乙\n", "乙", [(12, 1, "乙")]),
    ("~~~~\n# 码\n~~~\n# 码\n~~~~\n# 乙\n", "乙", [(22, 1, "乙")]),
    ("```\n# 没有关上\n", "Untitled", []),
    ("``` `x\n# 甲\n", "甲", [(7, 1, "甲")]),
    ("<div>\n# 甲\n</div>\n\n# 乙\n", "乙", [(18, 1, "乙")]),
    ("<!--\n# 甲\n\n# 甲\n-->\n# 乙\n", "乙", [(18, 1, "乙")]),
    ("<script>\n\n# 甲\n</script>\n# 乙\n", "乙", [(24, 1, "乙")]),
    ("> # 甲\n> 乙\n\n# 丙\n", "丙", [(11, 1, "丙")]),
    ("> 甲\n===\n", "Untitled", []),
    ("- # 甲\n  # 乙\n\n# 丙\n", "丙", [(13, 1, "丙")]),
    ("1. 甲\n   ---\n", "Untitled", []),
    ("-\n  # 甲\n# 乙\n", "乙", [(8, 1, "乙")]),
    ("> - > # 甲\n# 乙\n", "乙", [(10, 1, "乙")]),
    ("# \n#\n## \n# <b></b>\n# ![](x)\n# &nbsp;\n# 乙\n", "乙", [(37, 1, "乙")]),
    ("# *甲* **乙** `丙` [丁](u) ![戊](u) <b>己</b>\n", "甲 乙 丙 丁 戊 己", [(0, 1, "甲 乙 丙 丁 戊 己")]),
    ("# a\\*b &amp; &#x4e59; <https://e.x>\n", "a*b & 乙 https://e.x", [(0, 1, "a*b & 乙 https://e.x")]),
    ("# [甲][r] [乙]\n\n[r]: /u\n[乙]: /v\n", "甲 乙", [(0, 1, "甲 乙")]),
    ("[r]: /u\n甲\n===\n", "甲", [(8, 1, "甲")]),
    ("甲\u2028# 乙\u0085# 丙\x0b# 丁\n# 戊\n", "戊", [(14, 1, "戊")]),
    ("甲\n\n## 二\n\n# 一\n\n# 再\n", "一", [(3, 2, "二"), (9, 1, "一"), (14, 1, "再")]),
    ("# e&#x301;\n", "\u00e9", [(0, 1, "\u00e9")]),
    ("# " + "长" * 3000, "长" * 1024, [(0, 1, "长" * 1024)]),
    ("# " + "[" * 64 + "*甲*", "[" * 64 + "甲", [(0, 1, "[" * 64 + "甲")]),
    ("# " + "[" * 65 + "*甲*", "[" * 65 + "*甲*", [(0, 1, "[" * 65 + "*甲*")]),
    ("", "Untitled", []),
    ("\n\n", "Untitled", []),
]


@pytest.mark.promise("PRJ-3")
@pytest.mark.parametrize(("source", "title", "headings"), CASES, ids=[ascii(row[0])[:40] for row in CASES])
def test_headings_are_those_of_commonmark(source: str, title: str, headings: list[tuple[int, int, str]]) -> None:
    made = project(source, "markdown")
    assert [(h.start, h.level, h.text) for h in made.headings] == headings
    assert made.title == title
    assert made.body == project(source, "text").body  # the marks are kept


# source, title, headings
FRONT: list[tuple[str, str, list[tuple[int, int, str]]]] = [
    ("---\ntitle: 年假\n---\n正文", "年假", []),
    ("---\ntitle: 年假\n...\n正文", "年假", []),
    ("---\r\ntitle: 年假\r\n---\r\n# 题\r\n", "题", [(18, 1, "题")]),
    ("--- \t\ntitle: '年假'\n---  \n## 二", "年假", [(24, 2, "二")]),
    ("\ufeff---\ntitle: 年假\n---\n", "年假", []),
    ("---\n---\n正文", "Untitled", []),
    ("---\n# 只有注释\n---\n正文", "Untitled", []),
    ("---\ntags: [a, b]\n---\n", "Untitled", []),
    ("---\ntitle: 2026\n---\n", "2026", []),
    ("---\ntitle: [a]\n---\n", "Untitled", []),
    ("---\ntitle:\n---\n", "Untitled", []),
    ("---\ntitle: e\\u0301\n---\n", "e\\u0301", []),
    ('---\ntitle: "e\\u0301"\n---\n', "\u00e9", []),
    ("---\ntitle: !!python/object/apply:os.getcwd []\n---\n", "Untitled", []),
    ("---\ntitle: a\n", "Untitled", []),
    ("----\ntitle: a\n----\n", "Untitled", [(5, 2, "title: a")]),
    ("\n---\ntitle: a\n---\n", "Untitled", [(5, 2, "title: a")]),
    (" ---\ntitle: a\n---\n", "Untitled", [(5, 2, "title: a")]),
    ("---\ntitle: [\n---\n", "Untitled", [(4, 2, "title: [")]),
    ("---\na: b\n c: d\n---\n", "Untitled", [(4, 2, "a: b c: d")]),
    ("---\n- 甲\n---\n", "Untitled", []),
    ("---\n只是文字\n---\n", "Untitled", [(4, 2, "只是文字")]),
    ("---\na: *没有\n---\n", "Untitled", [(4, 2, "a: *没有")]),
    ("---\nb: &x [*x]\n---\n# 题", "题", [(4, 2, "b: &x [*x]"), (19, 1, "题")]),
]


@pytest.mark.promise("PRJ-3")
@pytest.mark.parametrize(("source", "title", "headings"), FRONT, ids=[ascii(row[0])[:40] for row in FRONT])
def test_front_matter_is_a_mapping_between_two_lines_at_the_head(
    source: str, title: str, headings: list[tuple[int, int, str]]
) -> None:
    made = project(source, "markdown")
    assert (made.title, [(h.start, h.level, h.text) for h in made.headings]) == (title, headings)


@pytest.mark.promise("PRJ-3")
@pytest.mark.parametrize("unit", ["a", "字", "😀"])
def test_front_matter_ends_at_sixteen_kilobytes(unit: str) -> None:
    room = 16_384 - len("title: 年假\nx: \n".encode())
    fits = f"---\ntitle: 年假\nx: {unit * (room // len(unit.encode()))}\n---\n"
    over = fits.replace("x: ", "x: " + unit, 1)
    assert project(fits, "markdown").title == "年假"
    assert project(over, "markdown").title == "Untitled"
    assert split_front_matter(over) == (None, over)


@pytest.mark.promise("PRJ-3", "PRJ-2")
@given(st.text(st.sampled_from("-\n:# title[]{}&*!|>'\"%@`甲a\t,?.\\ux0"), max_size=80))
def test_front_matter_never_moves_a_coordinate_and_never_raises(text: str) -> None:
    source = "---\n" + text + "\n---\n# 题\n"
    title, rest = split_front_matter(source)
    assert len(rest) == len(source) and rest.count("\n") == source.count("\n")
    assert title is None or title
    kept = rest.lstrip(" \n")
    assert source.endswith(kept)
    for start, level, _ in headings_of(rest):
        line = source[start:].split("\n", 1)[0]
        assert line.strip() and (level <= 2 or line.lstrip().startswith("#"))


@pytest.mark.slow
@pytest.mark.promise("PRJ-3")
def test_a_bomb_in_the_front_matter_stays_small() -> None:
    lines = ["a0: &x0 [a, a]"] + [f"a{n}: &x{n} [{', '.join([f'*x{n - 1}'] * 9)}]" for n in range(1, 60)]
    made = project("---\n" + "\n".join(lines) + "\n---\n# 题", "markdown")
    assert made.title == "题"
    for deep in ("[" * 16_000, "- " * 8_000):
        assert project(f"---\n{deep}\n---\n# 题", "markdown").title == "题"


def _lines(pattern: str) -> Callable[[int], str]:
    return lambda size: (pattern * (size // len(pattern) + 1))[:size]


HOSTILE: dict[str, Callable[[int], str]] = {
    **{ascii(p): _lines(p) for p in (">", "- ", "[", "*", "`", "<", "![", "1. ", "> - ", "_a", "](", "\\", "&", "\t")},
    **{
        ascii(p): _lines(p)
        for p in ("- a\n", "> a\n", "[\n", "[a]:\n", "```\n", "<!--\n", "=\n", "> a\nb\n", "- > a\n")
    },
    "nested lists": lambda size: "".join(f"{' ' * (2 * (n % 200))}- a\n" for n in range(size // 204)),
    "nested quotes": lambda size: "".join(f"{'>' * (n % 200)} a\n" for n in range(size // 103)),
    "references": lambda size: "".join(f"[{n:06}]: /u\n" for n in range(size // 13)),
    "brackets in headings": lambda size: ("# " + "[" * 1024 + "\n") * (size // 1027),
    "stars in headings": lambda size: ("# " + "*a _b " * 170 + "\n") * (size // 1027),
    "brackets to the bound": lambda size: ("# " + "[" * 64 + "](" * 480 + "\n") * (size // 1027),
    "bracket run in a heading": lambda size: "# " + "[" * size,
}


@pytest.mark.alone
@pytest.mark.slow
@pytest.mark.promise("PRJ-3", "PRJ-5")
@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_markdown_takes_linear_time(name: str) -> None:
    make, sizes = HOSTILE[name], (8_000, 32_000)
    spent = []
    for size in sizes:
        source, times = make(size), []
        for _ in range(2):
            begin = time.process_time()
            headings_of(source)
            times.append(time.process_time() - begin)
        spent.append(max(min(times), 0.004))  # below that the clock and the collector decide
    # Four times the text: 4 is linear, 16 quadratic.
    assert spent[1] / spent[0] < 10
