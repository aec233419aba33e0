"""Normalising, comparing, linting and solving: pure functions, tried on notebooks made by hand."""

import base64
import copy
from collections.abc import Callable
from typing import Any

import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from kbretrieval.book.display import image_html
from kbretrieval.book.lints import lint, lint_text
from kbretrieval.book.normalise import differences, near, normalise, pictures_comparable, to_text
from kbretrieval.book.solutions import solve

ALT = "热图。横轴：文档；纵轴：问题。结论：最高 0.71。"


def png(width: int, body: bytes = b"") -> bytes:
    """Return the head of a PNG of this width, followed by a body."""
    return (
        b"\x89PNG\r\n\x1a\n\x00\x00\x00\x0dIHDR" + width.to_bytes(4, "big") + (9).to_bytes(4, "big") + b"\0" * 40 + body
    )


def page(*, tag: str = "", text: str = "余弦 0.71\n", picture: bytes = b"", alt: str = ALT) -> Any:
    """Return a clean notebook with one text and one figure."""
    markup = image_html(picture or png(80), alt, 40)
    outputs = [
        new_output("stream", name="stdout", text=text),
        new_output("display_data", {"text/html": markup, "text/plain": alt}),
        new_output("display_data", {"text/markdown": "| a |\n|---|\n| 1 |", "text/plain": "a\n1"}),
    ]
    cell = new_code_cell("show()", execution_count=1, outputs=outputs, metadata={"tags": [tag]} if tag else {})
    return new_notebook(cells=[new_markdown_cell("先预测，再运行。"), cell])


def codes(notebook: Any) -> set[str]:
    """Return the codes of all findings."""
    return {fault.code for fault in lint(notebook)}


def test_the_page_is_clean_and_normalising_twice_is_once() -> None:
    assert codes(page()) == set()
    once = normalise(page())
    assert to_text(normalise(once)) == to_text(once)
    assert lint_text(to_text(once), once) == [] and pictures_comparable(once) in {True, False}
    assert [fault.code for fault in lint_text(to_text(once) + "\n", once)] == ["not_committed_form"]


@pytest.mark.promise("NB-13")
def test_what_depends_on_the_machine_is_dropped_and_nothing_else() -> None:
    one, two = page(), page()
    two.metadata.language_info = {"name": "python", "version": "3.99.0"}
    two.cells[1].metadata.execution = {"iopub.execute_input": "now"}
    two.cells[1].id = "another"
    two.cells[1].outputs[0:1] = [new_output("stream", name="stdout", text=part) for part in ("余弦 ", "0.71\n")]
    assert to_text(normalise(one)) == to_text(normalise(two))
    two.cells[1].source = "show() "
    assert [d.what for d in differences(one, two, pixels=True)] == ["source differs"]


@pytest.mark.promise("NB-13", "NB-6")
def test_observed_cells_alone_may_move_by_five_hundredths() -> None:
    moved = {"text": "余弦 0.76\n", "alt": ALT.replace("0.71", "0.74"), "picture": png(80, b"other")}
    assert differences(page(tag="observed"), page(tag="observed", **moved), pixels=True) == []
    exact = [d.what for d in differences(page(), page(**moved), pixels=True)]
    assert exact == [
        "output 1: stream stdout differs",
        "output 2: pixels of a figure differ",
        "output 2: text/html differs",
        "output 2: text/plain differs",
    ]
    further = differences(page(tag="observed"), page(tag="observed", text="余弦 0.77\n"), pixels=True)
    assert [(d.cell, d.what) for d in further] == [(2, "output 1: stream stdout differs")]
    assert differences(page(tag="observed"), page(), pixels=True)[0].what == "metadata differs"


@pytest.mark.promise("NB-13", "VEC-9")
def test_a_tail_may_say_something_else_in_as_many_outputs() -> None:
    """Which hits stand next to the floor is each machine's own; that there is a table of them is not."""
    here, there = page(tag="observed"), page(tag="observed", text="q01 多一个片段\n", alt=ALT + "别处不同。")
    assert len(differences(here, there, pixels=True)) == 3
    for notebook in (here, there):
        notebook.cells[1].metadata.tags = ["observed", "tail"]
    assert differences(here, there, pixels=True) == []
    there.cells[1].outputs.pop()
    assert differences(here, there, pixels=True)[0].what == "3 outputs committed, 2 executed"
    assert differences(page(tag="tail"), page(tag="tail", text="另一句话\n"), pixels=True) != []


@pytest.mark.promise("NB-13")
def test_figures_are_compared_by_pixels_only_where_asked() -> None:
    other = page(picture=png(80, b"other"))
    assert differences(page(), other, pixels=False) == []
    assert len(differences(page(), other, pixels=True)) == 1
    for tag in ("", "observed"):
        wider = differences(page(tag=tag), page(tag=tag, picture=png(81)), pixels=False)
        assert [d.what for d in wider] == ["output 2: number or size of figures differs"]


def test_lost_cells_and_outputs_are_differences() -> None:
    shorter, quieter = page(), page()
    shorter.cells.pop()
    quieter.cells[1].outputs.pop()
    assert differences(page(), shorter, pixels=False)[0].what == "2 cells committed, 1 executed"
    assert differences(page(), quieter, pixels=False)[0].what == "3 outputs committed, 2 executed"


def test_near_keeps_words_signs_and_counts() -> None:
    assert near("−0.01 和 1e-3", "0.02 和 2e-3")
    assert not near("q07 0.5", "q08 0.5") and not near("0.5 分", "0.5 点") and not near("0.5", "0.5 0.5")


def damage(change: Callable[[Any], None]) -> Any:
    """Return the clean page after one change to its code cell."""
    notebook = copy.deepcopy(page())
    change(notebook.cells[1])
    return notebook


def set_text(text: str) -> Callable[[Any], None]:
    """Return a change that makes a text the first output."""

    def change(cell: Any) -> None:
        cell.outputs[0].text = text

    return change


DAMAGE: list[tuple[str, str, Callable[[Any], None]]] = [
    ("NB-1", "cell_too_long", lambda cell: cell.update(source="a = 1\n" * 26)),
    ("NB-1", "cell_empty", lambda cell: cell.update(source="# 只有注释")),
    ("NB-3", "poor_alt_text", lambda cell: cell.outputs[1].data.update({"text/html": image_html(png(8), "图", 1)})),
    ("NB-3", "alt_missing", lambda cell: cell.outputs[1].data.update({"text/html": '<img src="x.png">'})),
    ("NB-3", "alt_not_plain", lambda cell: cell.outputs[1].data.update({"text/plain": "<Figure>"})),
    ("NB-3", "table_missing", lambda cell: cell.outputs.pop(2)),
    ("NB-3", "bare_picture", lambda cell: cell.outputs[1].data.update({"image/png": "iVBO"})),
    ("NB-5", "absolute_path", set_text("写入 /home/reader/kb.sqlite")),
    ("NB-5", "absolute_path", set_text("写入 C:\\Users\\reader")),
    ("NB-5", "absolute_path", lambda cell: cell.update(source="open('/tmp/x.json')")),
    ("NB-5", "memory_address", set_text("<object at 0x7f12ab34cd56>")),
    ("NB-5", "random_id", set_text("f81d4fae-7dec-11d0-a765-00a0c91e6bf6")),
    ("NB-5", "wall_time", set_text("Wall time: 3 ms")),
    ("NB-5", "wall_time", set_text("2026-03-01 10:20:30.123456")),
    ("NB-5", "stderr_output", lambda cell: cell.outputs[0].update(name="stderr")),
    ("NB-5", "error_output", lambda cell: cell.outputs.append(new_output("error", ename="E", evalue="", traceback=[]))),
    ("NB-5", "execution_gap", lambda cell: cell.update(execution_count=2)),
    ("NB-5", "cell_metadata", lambda cell: cell.metadata.update({"collapsed": True})),
]


@pytest.mark.promise("NB-1", "NB-3", "NB-5")
@pytest.mark.parametrize(("rule", "code", "change"), DAMAGE, ids=[f"{d[1]}-{i}" for i, d in enumerate(DAMAGE)])
def test_each_breach_of_a_house_rule_is_found(rule: str, code: str, change: Callable[[Any], None]) -> None:
    assert code in codes(damage(change)), rule


def test_code_without_prose_is_found_and_innocent_text_is_not() -> None:
    bare = page()
    del bare.cells[0]
    assert codes(bare) == {"prose_missing"}
    innocent = "第 3/4 行；a/tmp/b；https://example.org/home/x；2026-03-01；[0, 63)；6c0b2305；notebooks/07_rrf.ipynb\n"
    assert codes(page(text=innocent)) == set()
    # Base64 is full of slashes and must not be taken for a path.
    assert codes(page(picture=png(80, base64.b64decode("/tmp/" * 8 + "AAAA")))) == set()


def test_a_solution_takes_the_place_of_its_stub_only() -> None:
    stub = "answer = None\ndef fused(rank):\n    return None\ncheck(fused, answer)"
    notebook = new_notebook(
        cells=[new_code_cell("def fused(rank): return 'kept'"), new_code_cell(stub, metadata={"tags": ["exercise"]})]
    )
    solution = "import math\nK = 60\nanswer = K\ndef fused(rank):\n    return math.fsum([1 / (K + rank)])\n"
    solved = solve(notebook, solution)
    assert solved.cells[0].source == notebook.cells[0].source and notebook.cells[1].source == stub
    seen: list[object] = []
    exec(solved.cells[1].source, {"check": lambda function, value: seen.extend([function(1), value])})
    assert seen == [1 / 61, 60]
