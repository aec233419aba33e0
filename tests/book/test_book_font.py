"""The font subset: its size, coverage, name and licence, and that its recipe makes it (NB-4)."""

import importlib.util
import io
import json
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from fontTools.ttLib import TTFont

from kbretrieval.book import glyphs

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def recipe() -> ModuleType:
    """Return tools/make_font.py as a module."""
    spec = importlib.util.spec_from_file_location("make_font", ROOT / "tools" / "make_font.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def font() -> Any:
    """Return the committed font."""
    return TTFont(glyphs.FONT_FILE)


@pytest.mark.promise("NB-4")
def test_it_is_smaller_than_a_megabyte() -> None:
    assert 500_000 < glyphs.FONT_FILE.stat().st_size < 1_000_000


@pytest.mark.promise("NB-4")
def test_it_covers_level_one_punctuation_latin_greek_and_the_symbols(recipe: ModuleType) -> None:
    assert len(recipe.level_one()) == 3755
    assert glyphs.missing_glyphs([recipe.level_one()]) == []
    assert glyphs.missing_glyphs(["→✓✗×≤≥−·…“”「」《》₀₁₂₃₄₅₆₇₈₉（），。：；？！￥"]) == []
    assert glyphs.missing_glyphs([recipe.GREEK, recipe.SYMBOLS, recipe.CJK_PUNCTUATION, recipe.TRADE_HAN]) == []
    assert glyphs.missing_glyphs(["".join(map(chr, range(0x20, 0x7F)))]) == []
    assert glyphs.missing_glyphs(["カタ👍"]) == ["カ", "タ", "👍"]


@pytest.mark.slow
@pytest.mark.promise("NB-4")
def test_it_covers_the_han_of_fixtures_drawing_cells_and_this_package(recipe: ModuleType) -> None:
    lacking = glyphs.missing_glyphs([recipe.han_to_draw()])
    assert lacking == [], "run tools/make_font.py"


def _cell(source: str, html: str, alt: str) -> dict[str, Any]:
    return {"source": [source], "outputs": [{"data": {"text/html": [html], "text/plain": [alt]}}]}


def test_a_cell_that_draws_counts_and_prose_does_not(recipe: ModuleType, tmp_path: Path) -> None:
    cells = [
        {"cell_type": "markdown", "source": ["𠮷野家の弁当"]},
        _cell("print('弁')", "<p>弁</p>", "弁"),
        _cell("book.show(title='燚')", '<img alt="龘">', "靐"),
    ]
    (tmp_path / "notebooks").mkdir()
    (tmp_path / "notebooks" / "01.ipynb").write_text(json.dumps({"cells": cells}), encoding="utf-8", newline="\n")
    assert recipe.han_to_draw(tmp_path) == "".join(sorted("燚龘靐"))


def test_added_glyphs_have_outlines_of_their_own(font: Any) -> None:
    drawn, cmap = font.getGlyphSet(), font.getBestCmap()
    from fontTools.pens.boundsPen import BoundsPen

    boxes = {}
    for char in "✗₀₉0":
        pen = BoundsPen(drawn)
        drawn[cmap[ord(char)]].draw(pen)
        boxes[char] = pen.bounds
    assert boxes["₀"][1] < 0 < boxes["₀"][3] < boxes["0"][3] * 0.7
    assert boxes["✗"][2] - boxes["✗"][0] > 500
    assert cmap[ord("₀")] != cmap[ord("₉")]


def test_it_bears_its_own_name_and_carries_the_licence(font: Any) -> None:
    names = {record.nameID: str(record) for record in font["name"].names}
    assert (names[1], names[4], names[6]) == ("KB Book Sans SC", "KB Book Sans SC", "KBBookSansSC-Regular")
    assert "SIL Open Font License" in names[13] and "Adobe" in names[0]
    cff = font["CFF "].cff
    assert cff.fontNames == ["KBBookSansSC-Regular"] and cff.topDictIndex[0].FullName == "KB Book Sans SC"
    assert not any("NotoSansSC" in part.FontName for part in cff.topDictIndex[0].FDArray)
    licence = (glyphs.FONT_FILE.parent / "OFL.txt").read_text(encoding="utf-8")
    assert "Modified Version" in licence.splitlines()[0]
    assert "SIL OPEN FONT LICENSE Version 1.1" in licence and "PERMISSION & CONDITIONS" in licence


@pytest.mark.slow
@pytest.mark.promise("NB-4")
def test_the_recipe_makes_the_committed_font(recipe: ModuleType, font: Any) -> None:
    data = recipe.build()
    made = TTFont(io.BytesIO(data))
    assert made.getBestCmap().keys() == font.getBestCmap().keys()
    version = [str(table["name"].getName(5, 3, 1, 0x409)) for table in (made, font)]
    # Another version of fontTools may pack the same outlines differently.
    assert version[0] != version[1] or data == glyphs.FONT_FILE.read_bytes()
    assert recipe.licence_text() == (glyphs.FONT_FILE.parent / "OFL.txt").read_text(encoding="utf-8")
