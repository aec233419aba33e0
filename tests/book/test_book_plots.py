"""The seven plots: their labels render, nothing overlaps, colours survive, data that do not fit are refused."""

from collections.abc import Callable
from itertools import combinations, pairwise

import pytest
from matplotlib.figure import Figure
from matplotlib.text import Text

from kbretrieval import book
from kbretrieval.book.display import KINDS, png_bytes
from kbretrieval.book.errors import MissingGlyph, PlotDataMismatch
from kbretrieval.book.style import HATCHES, LINES, MARKERS, PALETTE, lightness

TEXT = "差旅报销上限为每人每天五百元。超出部分需要部门负责人事先批准。\n报销单在出差结束后三十天内提交，逾期不予受理。"

FIGURES: dict[str, Callable[[], Figure]] = {
    "slope": lambda: book.slope_chart(
        {
            "词面": ["travel#0", "refund#0", "leave#0", "expense-policy#12"],
            "向量": ["refund#0", "travel#0", "远程办公#0"],
            "融合": ["travel#0", "refund#0", "远程办公#0", "leave#0", "expense-policy#12"],
            "重排": ["refund#0", "travel#0", "leave#0", "远程办公#0", "expense-policy#12"],
        },
        title="名次如何移动",
    ),
    "bars": lambda: book.contribution_bars(
        {"travel#0": {"词面": 1 / 61, "向量": 1 / 61}, "refund#0": {"词面": 1 / 62}}, title="每个通道给了多少"
    ),
    "strip": lambda: book.window_strip(TEXT, [(0, 32), (24, 55)], title="窗口 32，重叠 8"),
    "heat": lambda: book.heat_map(
        [[1, 0.2, 0.45], [0.2, 1, 0.6]],
        ["差旅", "报销"],
        ["出差花的钱怎么报", "报销", "退款"],
        title="余弦相似度",
        x_label="文档",
        y_label="问题",
    ),
    "timeline": lambda: book.timeline(
        ["一", "二", "三", "四"],
        {"读者甲": ["30 天", "30 天", "14 天", "14 天"], "读者乙": ["30 天", "30 天", "30 天", "拒绝"]},
        title="谁看到什么",
        marks={2: "提交", 3: "撤权"},
    ),
    "floor": lambda: book.floor_curve(
        [step / 20 for step in range(20)],
        {
            "正例命中": [1 - step * step / 500 for step in range(20)],
            "负例为空": [min(1, step / 12) for step in range(20)],
        },
        title="门槛扫描",
        chosen=0.4,
    ),
    "ruler": lambda: book.unit_ruler(
        ["é", book.reader_text("👍🏽"), "报", "销"],
        {"字素": [1, 1, 1, 1], "码点": [1, 2, 1, 1], "UTF-8 字节": [2, 8, 3, 3]},
        title="两个字的四种坐标",
        marked=(2, 4),
    ),
}


def drawn_texts(figure: Figure) -> list[Text]:
    """Return the texts that are really drawn: a tick beyond the limits of its axis keeps a label that is not."""
    beyond = set()
    for axes in figure.axes:
        for axis in (axes.xaxis, axes.yaxis):
            low, high = sorted(axis.get_view_interval())
            beyond |= {tick.label1 for tick in axis.get_major_ticks() if not low <= tick.get_loc() <= high}
    texts = [item for item in figure.findobj(Text) if isinstance(item, Text) and item not in beyond]
    return [item for item in texts if item.get_visible() and item.get_text().strip()]


def overlaps(figure: Figure) -> list[tuple[str, str]]:
    """Return the pairs of visible texts whose boxes intersect by more than a point."""
    png_bytes(figure)
    renderer = figure.canvas.get_renderer()  # type: ignore[attr-defined]
    boxes = [(item.get_text(), item.get_window_extent(renderer)) for item in drawn_texts(figure)]
    hits = []
    for (one, a), (two, b) in combinations(boxes, 2):
        wide, high = min(a.x1, b.x1) - max(a.x0, b.x0), min(a.y1, b.y1) - max(a.y0, b.y0)
        if wide > 2 and high > 2:
            hits.append((one, two))
    return hits


@pytest.mark.promise("NB-2", "NB-4")
@pytest.mark.parametrize("name", FIGURES)
def test_it_draws_all_labels_apart_from_each_other_and_inside(name: str) -> None:
    figure = FIGURES[name]()
    assert figure.get_label() in KINDS
    hits = overlaps(figure)
    # A slanted label's upright box is larger than the label: those of the heat map cannot be judged this way.
    assert [pair for pair in hits if "出差花的钱怎么报" not in pair] == []
    width, height = figure.canvas.get_width_height()
    for item in drawn_texts(figure):
        box = item.get_window_extent()
        assert box.x0 > -1 and box.y0 > -1 and box.x1 < width + 1 and box.y1 < height + 1, item.get_text()


@pytest.mark.promise("NB-13")
@pytest.mark.parametrize("name", FIGURES)
def test_the_same_data_give_the_same_bytes(name: str) -> None:
    first, second = png_bytes(FIGURES[name]()), png_bytes(FIGURES[name]())
    assert first == second
    assert b"Software" not in first and b"tEXt" not in first and b"tIME" not in first


@pytest.mark.promise("NB-3")
def test_colours_keep_their_order_in_grey_and_marks_differ_by_shape() -> None:
    steps = [lightness(colour) for colour in PALETTE]
    assert all(later - earlier >= 10 for earlier, later in pairwise(steps))
    assert len(set(MARKERS)) == len(set(map(str, LINES))) == len(set(HATCHES)) == len(PALETTE)


@pytest.mark.promise("NB-4")
def test_an_own_label_without_glyph_raises_and_a_readers_text_is_marked() -> None:
    with pytest.raises(MissingGlyph, match=r"missing_glyph: .*U\+1F44D"):
        book.window_strip("好👍", [(0, 2)], title="窗口")
    with pytest.raises(MissingGlyph, match=r"U\+1F44D"):
        book.contribution_bars({"好": {"词面": 1.0}}, title="👍")
    figure = book.window_strip(book.reader_text("好👍"), [(0, 2)], title="窗口")
    drawn = [item.get_text() for item in figure.findobj(Text) if isinstance(item, Text)]
    assert "□" in drawn and "□ 代替了字体里没有的 1 个字符" in drawn


@pytest.mark.promise("NB-4")
def test_a_label_added_later_cannot_be_shown_either() -> None:
    figure = book.contribution_bars({"好": {"词面": 1.0}}, title="标题")
    figure.text(0.5, 0.5, "カ")
    with pytest.raises(MissingGlyph, match="missing_glyph"):
        png_bytes(figure)


def test_a_result_that_skips_a_channel_has_no_line_through_it() -> None:
    figure = book.slope_chart({"词面": ["a"], "向量": ["b"], "融合": ["a", "b"]}, title="名次")
    ends = sorted(tuple(line.get_ydata()) for line in figure.axes[0].lines)  # type: ignore[arg-type]
    assert ends == [(1, 2)]


def test_the_colour_bar_of_a_heat_map_counts_in_whole_numbers_or_is_left_out() -> None:
    def drawn(**options: int | bool) -> Figure:
        names = {"title": "泄露", "x_label": "出口", "y_label": "引擎"}
        return book.heat_map([[0, 1], [2, 1]], ["甲", "乙"], ["检索", "兑现"], **names, **options)  # type: ignore[arg-type]

    counts, yes_or_no = drawn(digits=0), drawn(digits=0, scale=False)
    png_bytes(counts)
    labels = [label.get_text() for label in counts.axes[1].get_yticklabels() if label.get_text()]
    assert labels == ["0", "1", "2"] and len(yes_or_no.axes) == 1


REFUSED: list[tuple[Callable[[], Figure], str]] = [
    (lambda: book.slope_chart({"词面": ["a"]}, title="x"), "at least 2 columns needed, 1 given"),
    (lambda: book.slope_chart({"词面": ["a", "a"], "向量": []}, title="x"), "2 results given, 1 different"),
    (lambda: book.slope_chart({"词面": [], "向量": []}, title="x"), "at least 1 result needed, 0 given"),
    (lambda: book.contribution_bars({}, title="x"), "results and channels needed, 0 and 0 given"),
    (lambda: book.contribution_bars({"a": {"词面": -1.0}}, title="x"), "0 or more needed, -1.0 given"),
    (lambda: book.window_strip("", [], title="x"), "at least 1 code point needed"),
    (lambda: book.window_strip("文", [(0, 2)], title="x"), r"window \[0, 2\) given, text is \[0, 1\)"),
    (lambda: book.heat_map([[1]], ["a"], ["b", "c"], title="x", x_label="x", y_label="y"), "2 columns named, 1 values"),
    (lambda: book.timeline(["一"], {"甲": []}, title="x"), "1 steps given, 0 states"),
    (lambda: book.timeline(["一"], {"甲": ["a"]}, title="x", marks={1: "m"}), "mark at step 1 given"),
    (lambda: book.floor_curve([0.2, 0.1], {"a": [1, 1]}, title="x"), "rising floors needed"),
    (lambda: book.floor_curve([0.1], {"a": [1, 1]}, title="x"), "1 floors given, 2 values"),
    (lambda: book.unit_ruler("文", {"码点": [1, 1]}, title="x"), "码点: 1 pieces given, 2 lengths"),
    (lambda: book.unit_ruler("文", {"码点": [0]}, title="x"), "1 or more needed, 0 given"),
    (lambda: book.unit_ruler("文", {"码点": [1]}, title="x", marked=(0, 2)), r"marked range \[0, 2\) given"),
]


@pytest.mark.parametrize(("draw", "facts"), REFUSED, ids=[facts for _, facts in REFUSED])
def test_data_that_do_not_fit_are_refused_with_both_facts(draw: Callable[[], Figure], facts: str) -> None:
    with pytest.raises(PlotDataMismatch, match=f"plot_data_mismatch: .*{facts}"):
        draw()
