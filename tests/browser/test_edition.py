"""The static edition in a real browser: offline, Chinese, headings and landmarks in order, pictures drawn (NB-18)."""

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from selenium.webdriver import Chrome, Keys
from selenium.webdriver.common.by import By

from kbretrieval.book.contents import CHAPTERS, Chapter
from kbretrieval.book.edition import page, write_edition
from tests.browser.chromium import open_browser, programs

PUBLISHED = [chapter for chapter in CHAPTERS if chapter.published]

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.alone, pytest.mark.promise("NB-18")]

_SEEN = """
const all = (selector, take) => [...document.querySelectorAll(selector)].map(take);
return {
  lang: document.documentElement.lang,
  headings: all('main :is(h1, h2, h3, h4, h5, h6)', item => Number(item.tagName[1])),
  landmarks: all('body > :is(nav, main)', item => item.tagName.toLowerCase()),
  pictures: all('main img', item => [item.alt, item.complete ? item.naturalWidth : 0]),
  loaded: performance.getEntriesByType('resource').map(item => item.name).filter(name => !name.startsWith('data:')),
  links: all('a[href]', item => item.href),
  current: all('[aria-current=page]', item => item.getAttribute('href')),
  wide: document.documentElement.scrollWidth - document.documentElement.clientWidth,
};
"""


def faults(seen: dict[str, Any], folder: Path) -> list[str]:
    """Return what is wrong with a page as the browser has it."""
    found = []
    if seen["lang"] != "zh":
        found.append("language")
    levels = seen["headings"]
    if levels[:1] != [1] or levels.count(1) != 1 or any(b > a + 1 for a, b in pairwise(levels)):
        found.append("headings")
    if seen["landmarks"][:2] != ["nav", "main"]:
        found.append("landmarks")
    if not all(alt and width > 0 for alt, width in seen["pictures"]):
        found.append("pictures")
    if seen["loaded"]:
        found.append("loaded from elsewhere")
    files = {link.partition("#")[0] for link in seen["links"]}
    if not files <= {path.as_uri() for path in folder.iterdir()}:
        found.append("links")
    if seen["wide"] > 0:
        found.append("wider than the window")
    return found


@pytest.fixture(scope="module")
def edition(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("html")
    write_edition(root / "notebooks", folder)
    return folder


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chrome]:
    programs()
    opened = open_browser(tmp_path_factory.mktemp("chromium"))
    try:
        yield opened
    finally:
        opened.quit()


def looked_at(browser: Chrome, file: Path) -> dict[str, Any]:
    browser.get(file.as_uri())
    seen: dict[str, Any] = browser.execute_script(_SEEN)
    return seen


@pytest.mark.parametrize("chapter", PUBLISHED, ids=lambda chapter: chapter.file)
def test_a_chapter_reads_well_in_a_browser(browser: Chrome, edition: Path, chapter: Chapter) -> None:
    name = Path(chapter.file).with_suffix(".html").name
    seen = looked_at(browser, edition / name)
    assert faults(seen, edition) == []
    assert seen["pictures"]
    assert seen["current"] == [name]


def test_the_reader_turns_from_the_contents_to_the_last_page(browser: Chrome, edition: Path) -> None:
    seen = looked_at(browser, edition / "index.html")
    assert faults(seen, edition) == []
    browser.find_elements(By.CSS_SELECTOR, "nav li a")[0].click()
    shown = [browser.title]
    while further := [a for a in browser.find_elements(By.CSS_SELECTOR, ".turn a") if a.text.endswith("→")]:
        further[0].click()
        shown.append(browser.title)
    assert shown == [chapter.label for chapter in PUBLISHED]


def test_the_first_stop_of_the_keyboard_leads_past_the_navigation(browser: Chrome, edition: Path) -> None:
    looked_at(browser, edition / Path(PUBLISHED[0].file).with_suffix(".html").name)
    browser.find_element(By.TAG_NAME, "body").send_keys(Keys.TAB)
    first = browser.switch_to.active_element
    assert first.get_attribute("class") == "skip"
    first.send_keys(Keys.ENTER)
    assert browser.current_url.endswith("#main")


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("<h1>一</h1><h3>三</h3>", ["headings"]),
        ("<h2>二</h2>", ["headings"]),
        ('<h1>一</h1><img alt="" src="data:,">', ["pictures"]),
        ('<h1>一</h1><a href="no-such-page.html">去</a>', ["links"]),
        ('<h1>一</h1><link rel="stylesheet" href="http://127.0.0.1:9/x.css">', ["loaded from elsewhere"]),
        ('<h1>一</h1><div style="width: 9000px">宽</div>', ["wider than the window"]),
    ],
)
def test_a_page_with_a_fault_is_told_by_it(browser: Chrome, tmp_path: Path, body: str, expected: list[str]) -> None:
    for name in ("index.html", "page.html"):
        (tmp_path / name).write_text(page("样页", body, ()), encoding="utf-8", newline="\n")
    assert faults(looked_at(browser, tmp_path / "page.html"), tmp_path) == expected
