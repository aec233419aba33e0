"""The static edition: every published chapter, offline, in Chinese, with its pictures described (NB-18)."""

import re
from pathlib import Path

import pytest

from kbretrieval.book.contents import CHAPTERS
from kbretrieval.book.edition import with_sections, write_edition

pytestmark = pytest.mark.slow

PUBLISHED = [chapter for chapter in CHAPTERS if chapter.published]


@pytest.fixture(scope="module")
def edition(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("html")
    write_edition(root / "notebooks", folder)
    return folder


@pytest.mark.promise("NB-18")
def test_each_published_chapter_has_a_page_and_a_link(edition: Path) -> None:
    wanted = {"index.html", *(Path(chapter.file).with_suffix(".html").name for chapter in PUBLISHED)}
    assert {path.name for path in edition.iterdir()} == wanted
    links = set(re.findall(r'href="([^"#]+)"', (edition / "index.html").read_text(encoding="utf-8")))
    assert links == wanted


@pytest.mark.promise("NB-18")
@pytest.mark.parametrize("chapter", PUBLISHED, ids=lambda chapter: chapter.file)
def test_a_page_is_chinese_offline_and_describes_its_pictures(edition: Path, chapter: object) -> None:
    text = (edition / Path(chapter.file).with_suffix(".html").name).read_text(encoding="utf-8")  # type: ignore[attr-defined]
    assert '<html lang="zh">' in text
    assert '<main id="main">' in text
    assert not re.search(r'(?:src|href)="(?:https?:)?//', text)
    assert "<script" not in text
    pictures = re.findall(r"<img [^>]*>", text)
    assert pictures
    assert all(re.search(r'alt="[^"]*结论', picture) for picture in pictures)


@pytest.mark.promise("NB-18")
def test_a_page_leads_to_each_of_its_sections(edition: Path) -> None:
    text = (edition / "07_rrf.html").read_text(encoding="utf-8")
    listed = re.findall(r'href="#([^"]+)"', text.partition('<nav aria-label="本章">')[2].partition("</nav>")[0])
    assert listed == re.findall(r'<h2 id="([^"]+)"', text) and len(set(listed)) > 10


def test_a_page_without_sections_gets_no_list_of_them() -> None:
    assert with_sections("<h1>一</h1><p>只有一段。</p>") == "<h1>一</h1><p>只有一段。</p>"
