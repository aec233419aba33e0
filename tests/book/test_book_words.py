"""Alternative text, tables, sentences and exercises: what is said, and what is refused."""

import pytest

from kbretrieval import book
from kbretrieval.book.display import alt_faults, check_alt, image_html
from kbretrieval.book.errors import ExerciseMalformed, PoorAltText, SentenceMismatch
from kbretrieval.book.tables import markdown_table, plain_table

ALT = "堆叠条形图。横轴：融合分数；纵轴：结果。结论：各出一半。"
ROWS = [{"结果": "travel#0", "词面": 0.5}]


@pytest.mark.promise("NB-3")
@pytest.mark.parametrize(
    ("alt", "lacks"),
    [
        ("", ["Chinese text", "chart type", "axis 横轴", "axis 纵轴", "conclusion after 结论："]),
        ("A bar chart.", ["Chinese text", "chart type", "axis 横轴", "axis 纵轴", "conclusion after 结论："]),
        ("热图。横轴：文档；纵轴：问题。结论： ", ["conclusion after 结论："]),
        ("一张图。横轴：文档；纵轴：问题。结论：亮。", ["chart type"]),
        (ALT, []),
    ],
)
def test_alt_text_names_chart_axes_and_conclusion(alt: str, lacks: list[str]) -> None:
    assert alt_faults(alt) == lacks


@pytest.mark.promise("NB-3")
def test_the_kind_named_must_be_the_figures_own() -> None:
    with pytest.raises(PoorAltText, match=r"poor_alt_text: .*chart type"):
        check_alt(ALT, "热图")
    figure = book.contribution_bars({"好": {"词面": 1.0}}, title="标题")
    with pytest.raises(PoorAltText, match="chart type"):
        book.show(figure, alt=ALT.replace("堆叠条形图", "热图"), caption="说明", table=ROWS)
    with pytest.raises(PoorAltText, match="表 0 行"):
        book.show(figure, alt=ALT, caption="说明", table=[])
    with pytest.raises(PoorAltText, match="说明 0 字"):
        book.show(figure, alt=ALT, caption=" ", table=ROWS)


def test_outside_a_notebook_the_words_are_printed(capsys: pytest.CaptureFixture[str]) -> None:
    figure = book.contribution_bars({"travel#0": {"词面": 0.5}}, title="标题")
    book.show(figure, alt=ALT, caption="说明", table=ROWS)
    assert capsys.readouterr().out == f"{ALT}\n说明\n结果      词面\ntravel#0  0.5\n"


def test_alt_text_is_escaped_in_the_page() -> None:
    assert image_html(b"x", 'a"<b>&', 10).startswith('<img alt="a&quot;&lt;b&gt;&amp;" width="10" src="data:image/png')


def test_table_cells_are_escaped_and_aligned() -> None:
    rows: list[dict[str, object]] = [{"词": "a|b", "值": None}, {"词": "<i>\n二", "值": True}]
    assert markdown_table(rows).splitlines()[2:] == ["| a\\|b | — |", "| &lt;i>↵二 | ✓ |"]
    assert plain_table(rows).splitlines() == ["词      值", "a|b     —", "<i>↵二  ✓"]


@pytest.mark.promise("NB-7")
def test_a_sentence_takes_exactly_its_values() -> None:
    assert book.sentence("{a} 和 {b:.2f}，{c}", a=1, b=0.125, c=None) == "1 和 0.12，—"
    for template, values in (("{a}", {}), ("无", {"a": 1}), ("{a.real}", {"a": 1}), ("{}", {"a": 1})):
        with pytest.raises(SentenceMismatch, match=r"sentence_mismatch: placeholders .* wanted, values .* given"):
            book.sentence(template, **values)


def say_of(capsys: pytest.CaptureFixture[str], answer: object, **options: object) -> str:
    """Return the line that an exercise prints."""
    book.exercise("练习", answer, hint="看公式。", **options)  # type: ignore[arg-type]
    return capsys.readouterr().out


def test_an_exercise_turns_from_wrong_to_right(capsys: pytest.CaptureFixture[str]) -> None:
    def unwritten(rank: int) -> float:
        raise NotImplementedError

    cases = [((1,), 1 / 61), ((2,), 1 / 62)]
    assert say_of(capsys, unwritten, cases=cases) == "✗ 练习：看公式。\n"
    assert say_of(capsys, lambda rank: 1 / 61, cases=cases) == "✗ 练习：看公式。\n"
    assert say_of(capsys, lambda rank: 1 / (60 + rank), cases=cases) == "✓ 练习\n"
    assert say_of(capsys, None, check=lambda value: True) == "✗ 练习：看公式。\n"
    assert say_of(capsys, 3, cases=cases) == "✗ 练习：看公式。\n"
    assert say_of(capsys, 14, check=lambda value: value == 14) == "✓ 练习\n"
    assert say_of(capsys, 30, check=lambda value: value == 14) == "✗ 练习：看公式。\n"


def test_a_readers_own_exception_points_at_the_readers_line() -> None:
    with pytest.raises(ZeroDivisionError):
        book.exercise("练习", lambda rank: 1 / 0, cases=[((1,), 1.0)], hint="看公式。")


def test_an_exercise_without_check_or_hint_is_refused() -> None:
    with pytest.raises(ExerciseMalformed, match="cases 0 个"):
        book.exercise("练习", len, hint="看公式。")
    with pytest.raises(ExerciseMalformed, match="提示 0 字"):
        book.exercise("练习", len, cases=[(("",), 0)], hint=" ")
