"""A reader's way in JupyterLab: open a chapter, see its figures described, restart and run all, find no error (NB-17).

The notebook is a copy in a folder that the server serves; the committed file and the reader's evidence are untouched.
"""

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat
import pytest

from kbretrieval.book.checks import gap_faults, output_faults
from kbretrieval.book.contents import CHAPTERS, Chapter
from kbretrieval.book.normalise import pictures
from tests.browser.chromium import open_browser, programs
from tests.browser.lab import Lab, serving
from tests.browser.page import NotebookPage

# Which chapters are opened, and the kind of chart that is looked for and photographed.
CHARTS = {0: "时间线图", 7: "名次斜率图", 12: "时间线图"}
OPENED = [chapter for chapter in CHAPTERS if chapter.published and chapter.number in CHARTS]

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.alone]


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """A server for all chapters; nothing is started where the browser is missing."""
    programs()
    with serving(tmp_path_factory.mktemp("lab")) as served:
        yield served


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NotebookPage]:
    """A browser for all chapters."""
    browser = open_browser(tmp_path_factory.mktemp("chromium"))
    try:
        yield NotebookPage(browser)
    finally:
        browser.quit()


def described(notebook: Any) -> dict[int, list[str]]:
    """Return the alternative texts of the figures by 0-based cell number, as the file has them."""
    found = {
        number: [picture.alt for output in cell.get("outputs", []) for picture in pictures(output)]
        for number, cell in enumerate(notebook.cells)
    }
    return {number: alts for number, alts in found.items() if alts}


def assert_figures(page: NotebookPage, wanted: dict[int, list[str]]) -> None:
    """Every figure stands in the page with its alternative text, and is drawn."""
    for cell, alts in wanted.items():
        seen = page.figures(cell, len(alts))
        assert [figure.alt for figure in seen] == alts
        assert all(figure.width > 0 for figure in seen), f"cell {cell}: a figure that is not drawn"


def test_the_kernel_that_is_offered_is_this_interpreter(lab: Lab) -> None:
    """A notebook asks for `python3`; a server elsewhere could start any Python under that name."""
    assert lab.ask("api/kernelspecs/python3")["spec"]["argv"][0] == sys.executable


@pytest.mark.promise("NB-17", "NB-3")
@pytest.mark.parametrize("chapter", OPENED, ids=[item.file.removesuffix(".ipynb") for item in OPENED])
def test_a_chapter_shows_its_figures_and_runs_from_the_menu(
    chapter: Chapter, lab: Lab, page: NotebookPage, root: Path
) -> None:
    copy = lab.root / chapter.file
    shutil.copyfile(root / "notebooks" / chapter.file, copy)
    committed = nbformat.read(copy, as_version=4)
    wanted = described(committed)
    chart = next(cell for cell, alts in wanted.items() if alts[0].startswith(CHARTS[chapter.number]))
    code = [cell for cell in committed.cells if cell.cell_type == "code"]

    page.open(lab.page(chapter.file))
    arrived = lab.ask(f"api/contents/{chapter.file}?content=1")["content"]["cells"][chart]
    assert arrived["metadata"]["trusted"] is False, "alternative text has to arrive before the notebook is trusted"
    assert_figures(page, wanted)

    page.run_all(len(code))
    page.save(copy)
    executed = nbformat.read(copy, as_version=4)
    assert [*gap_faults(executed), *output_faults(executed)] == []
    assert_figures(page, described(executed))
    page.figures(len(executed.cells) - 1)
    assert page.errors() == 0
    assert described(executed).keys() == wanted.keys()
    page.photograph(chart, root / "build" / "browser" / f"{chapter.file.removesuffix('.ipynb')}.png")
