"""What a reader does with a notebook in JupyterLab: look at it, restart and run all, save."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from selenium.webdriver import Chrome
from selenium.webdriver.common.by import By
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.wait import WebDriverWait

RUN_ALL = "Restart Kernel and Run All Cells…"
SAVE = "Save Notebook"
SHOW_SECONDS, RUN_SECONDS = 180.0, 240.0

# The page holds only the cells around those that were looked at: the one that is wanted, or the last one before it, is
# brought into view, and what stands in its outputs is said; nothing while it is not there.
_LOOK = """
const wanted = arguments[0];
const cells = [...document.querySelectorAll('.jp-Notebook .jp-Cell[data-windowed-list-index]')];
const place = cell => Number(cell.dataset.windowedListIndex);
const near = cells.filter(cell => place(cell) <= wanted).sort((a, b) => place(a) - place(b)).pop();
if (!near) return null;
near.scrollIntoView({block: place(near) === wanted ? 'start' : 'end'});
if (place(near) !== wanted) return null;
const images = [...near.querySelectorAll('.jp-OutputArea-output img')];
if (images.length && arguments[1]) images[0].scrollIntoView({block: 'center'});
return images.map(image => [image.alt, image.complete ? image.naturalWidth : 0]);
"""
_DONE = "return document.querySelector('.jp-Notebook-ExecutionIndicator-tooltip').textContent"


@dataclass(frozen=True, slots=True)
class SeenFigure:
    """An `<img>` of an output as the page has it: alternative text, and the width in pixels, 0 if nothing is drawn."""

    alt: str
    width: int


@dataclass(frozen=True, slots=True)
class NotebookPage:
    """A notebook that is open in a browser."""

    browser: Chrome

    def open(self, address: str) -> None:
        """Open the notebook and wait until its cells show and its kernel has nothing to do."""
        self.browser.get(address)
        self._until(SHOW_SECONDS, lambda: bool(self._all(".jp-CodeCell")))
        self._until(SHOW_SECONDS, self._idle)

    def figures(self, cell: int, expected: int = 0) -> list[SeenFigure]:
        """Go to a cell (0-based) and return the figures in its output, after waiting for as many as are expected."""
        seen: list[SeenFigure] = []

        def there() -> bool:
            found = self.browser.execute_script(_LOOK, cell, expected > 0)
            seen[:] = [SeenFigure(*item) for item in found or []]
            drawn = sum(figure.width > 0 for figure in seen)
            return found is not None and drawn >= expected

        self._until(SHOW_SECONDS, there)
        return seen

    def run_all(self, cells: int) -> None:
        """Choose "Restart Kernel and Run All Cells" in the Run menu, confirm, and wait until so many code cells ran."""
        self._choose("Run", RUN_ALL)
        self._until(SHOW_SECONDS, lambda: bool(self._all(".jp-Dialog")))
        self._all(".jp-Dialog button.jp-mod-accept")[0].click()
        said = f"Executed {cells} cells"
        self._until(RUN_SECONDS, lambda: self._idle() and said in str(self.browser.execute_script(_DONE)))

    def save(self, file: Path) -> None:
        """Choose "Save Notebook" in the File menu and wait until the file on disk is newer."""
        before = file.stat().st_mtime_ns
        self._choose("File", SAVE)
        self._until(SHOW_SECONDS, lambda: file.stat().st_mtime_ns != before)

    def errors(self) -> int:
        """Return how many outputs the page marks as an error or as coming from stderr."""
        marks = ("application/vnd.jupyter.error", "application/vnd.jupyter.stderr")
        return sum(len(self._all(f'.jp-OutputArea-output[data-mime-type="{mark}"]')) for mark in marks)

    def photograph(self, cell: int, file: Path) -> None:
        """Write a screenshot with the first figure of a cell in the middle."""
        self.figures(cell, 1)
        file.parent.mkdir(parents=True, exist_ok=True)
        assert self.browser.save_screenshot(str(file))

    def _idle(self) -> bool:
        return bool(self._all('.jp-Notebook-ExecutionIndicator[data-status="idle"]'))

    def _choose(self, menu: str, item: str) -> None:
        self._labelled(".lm-MenuBar-itemLabel", menu).click()
        self._labelled(".lm-Menu-itemLabel", item).click()

    def _labelled(self, selector: str, text: str) -> WebElement:
        def found() -> list[WebElement]:
            return [element for element in self._all(selector) if element.text == text and element.is_displayed()]

        self._until(SHOW_SECONDS, lambda: bool(found()))
        return found()[0]

    def _all(self, selector: str) -> list[WebElement]:
        return self.browser.find_elements(By.CSS_SELECTOR, selector)

    def _until(self, seconds: float, condition: Callable[[], bool]) -> None:
        WebDriverWait(self.browser, seconds, poll_frequency=0.2).until(lambda _: condition())
