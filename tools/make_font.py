"""Make the CJK font subset that `kbretrieval.book` draws with (NB-4).

The source is Noto Sans SC as shipped by the package `pylopdf-fonts-zh-cn` (development extra). Its licence text names
no reserved font name; the subset is renamed all the same, because "Noto" is a trademark and a modified font should not
pass for the original. Two runs give the same bytes, whatever the hash seed: no time stamp is written, every set sorted.

    python tools/make_font.py            write kbretrieval/book/font/
    python tools/make_font.py --check    exit 1 when the committed font is not what would be written
"""

import argparse
import io
import json
import sys
import unicodedata
from collections.abc import Iterator
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

import pylopdf_fonts_zh_cn
from fontTools import __version__ as fonttools_version
from fontTools import subset
from fontTools.misc.transform import Transform
from fontTools.pens.t2CharStringPen import T2CharStringPen
from fontTools.pens.transformPen import TransformPen
from fontTools.ttLib import TTFont

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "kbretrieval" / "book" / "font"
FILE = "KBBookSansSC-Regular.otf"
FAMILY = "KB Book Sans SC"
POSTSCRIPT = "KBBookSansSC-Regular"
DISTRIBUTION = "pylopdf-fonts-zh-cn"
LIMIT_BYTES = 1_000_000

SUBSCRIPTS = "₀₁₂₃₄₅₆₇₈₉"
BALLOT_X = "✗"
GREEK = "".join(map(chr, [*range(0x391, 0x3A2), *range(0x3A3, 0x3AA), *range(0x3B1, 0x3CA)]))
CJK_PUNCTUATION = "".join(map(chr, range(0x3001, 0x3018))) + "“”‘’…—–·•‖※"
SYMBOLS = "←↑→↓↔⇒⇔✓×÷±≤≥≠≈≡−∞∑∏√∈∉∩∪∧∨∀∃∅∂∆∇∝∥⊂⊆□■△▲▽▼◇◆○●◎★☆♀♂℃‰§¶°′″€£¥①②③④⑤⑥⑦⑧⑨⑩ⅠⅡⅢⅣⅤ¹²³½¼¾─│┌┐└┘├┤┬┴┼━┃"

# The licence's fourth condition forbids using the holders' names for promotion: the description states origin only.
DESCRIPTION = "A subset of Noto Sans SC 2.004 with eleven added glyphs, made by tools/make_font.py."
NOTICE = """\
KBBookSansSC-Regular.otf is a Modified Version (a renamed subset with eleven added glyphs) of
Noto Sans SC 2.004, © 2014-2021 Adobe (http://www.adobe.com/).
It is made by tools/make_font.py from the copy in the Python package pylopdf-fonts-zh-cn {version}.
No Reserved Font Name is declared by that copy. The licence of the original, unchanged, follows.

"""

# Words of the trade and names in examples that level 1 lacks. Where drawing raises `MissingGlyph`, add it here.
TRADE_HAN = "阈幂溯冗踪楔谬谓锚瑕疵缀闾孓鑫晗琪璐骐喆玥芮倩婷敏颖萱"


def level_one() -> str:
    """Return the 3,755 Han characters of GB 2312 level 1 (rows 16 to 55) in code order."""
    cells = (bytes([row + 0xA0, cell + 0xA0]) for row in range(16, 56) for cell in range(1, 95))
    return "".join(raw.decode("gb2312", errors="ignore") for raw in cells)


def wanted_text() -> str:
    """Return every character that the subset must have, apart from the Han of `han_to_draw`."""
    latin = "".join(map(chr, [*range(0x20, 0x7F), *range(0xA0, 0x180)]))
    full_width = "".join(map(chr, range(0xFF01, 0xFF5F))) + "￥\u3000"
    return latin + GREEK + CJK_PUNCTUATION + SYMBOLS + full_width + level_one() + TRADE_HAN


def strings(value: object) -> Iterator[str]:
    """Yield all strings inside parsed JSON, keys included, so that escapes do not hide a character."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from strings(key)
            yield from strings(item)
    elif isinstance(value, list):
        for item in value:
            yield from strings(item)


def drawing_texts(notebook: Any) -> Iterator[str]:
    """Yield the source and outputs (alternative text, plotted table) of each cell that shows a picture.

    Prose, and what other cells print, is set by the browser with fonts of its own.
    """
    for cell in notebook["cells"]:
        outputs = cell.get("outputs", [])
        if any("<img" in "".join(output.get("data", {}).get("text/html", "")) for output in outputs):
            yield "".join(cell["source"])
            yield from strings(outputs)


def han_to_draw(root: Path = ROOT) -> str:
    """Return the Han that figures may draw and level 1 lacks, sorted: of fixtures, drawing cells and this package."""
    texts: list[str] = []
    for path in sorted((root / "fixtures").rglob("*.json")):
        texts.extend(strings(json.loads(path.read_text(encoding="utf-8"))))
    for path in sorted((root / "notebooks").rglob("*.ipynb")):
        texts.extend(drawing_texts(json.loads(path.read_text(encoding="utf-8"))))
    texts.extend(path.read_text(encoding="utf-8") for path in sorted((root / "kbretrieval" / "book").rglob("*.py")))
    found = {char for text in texts for char in text if unicodedata.name(char, "").startswith("CJK UNIFIED")}
    return "".join(sorted(found - set(level_one())))


def subset_font(text: str, spare: str) -> TTFont:
    """Return Noto Sans SC cut down to `text`, plus the glyphs of `spare`, whose outlines are overwritten later."""
    font = TTFont(pylopdf_fonts_zh_cn.sans_path(), recalcTimestamp=False)
    options = subset.Options()
    options.hinting = False
    options.layout_features = []
    options.drop_tables += ["VORG", "vhea", "vmtx", "BASE", "GSUB", "GPOS", "GDEF", "DSIG"]
    options.notdef_outline = True
    options.name_IDs = ["*"]
    options.name_languages = ["*"]
    cutter = subset.Subsetter(options)
    cutter.populate(text=text + spare)
    cutter.subset(font)
    return font


def draw_ballot_x(pen: Any) -> None:
    """Draw ✗ as two slightly slanted strokes (the source font has ✓ only); units are thousandths of an em."""
    for corners in (
        [(170, 60), (250, 20), (800, 690), (720, 740)],
        [(180, 700), (690, 20), (780, 70), (270, 740)],
    ):
        pen.moveTo(corners[0])
        for corner in corners[1:]:
            pen.lineTo(corner)
        pen.closePath()


def add_glyphs(font: TTFont, spare: str) -> None:
    """Overwrite the spare glyphs with ✗ and subscript digits, and point the character map at them."""
    cmap = font.getBestCmap()
    top = font["CFF "].cff.topDictIndex[0]
    charstrings, glyphs = top.CharStrings, font.getGlyphSet()
    for char, donor in zip(BALLOT_X + SUBSCRIPTS, spare, strict=True):
        name = cmap[ord(donor)]
        if char == BALLOT_X:
            width, pen = 950, T2CharStringPen(950, glyphs)
            draw_ballot_x(pen)
        else:
            digit = cmap[ord("0") + SUBSCRIPTS.index(char)]
            width = round(font["hmtx"][digit][0] * 0.62)
            pen = T2CharStringPen(width, glyphs)
            glyphs[digit].draw(TransformPen(pen, Transform(0.6, 0, 0, 0.6, 6, -140)))
        old = charstrings[name]
        charstrings[name] = pen.getCharString(private=old.private, globalSubrs=old.globalSubrs)
        font["hmtx"][name] = (width, font["hmtx"][name][1])
        for table in font["cmap"].tables:
            table.cmap.pop(ord(donor), None)
            if table.isUnicode():
                table.cmap[ord(char)] = name


def rename(font: TTFont) -> None:
    """Give the subset its own names everywhere a program may read one, and keep copyright and licence."""
    table = font["name"]
    table.names = [record for record in table.names if record.langID == 0x409 and record.nameID in {0, 13, 14}]
    version = f"Version 2.004; subset 1; fontTools {fonttools_version}"
    for number, value in {
        1: FAMILY,
        2: "Regular",
        3: f"2.004;{POSTSCRIPT};subset-1",
        4: FAMILY,
        5: version,
        6: POSTSCRIPT,
        10: DESCRIPTION,
    }.items():
        table.setName(value, number, 3, 1, 0x409)
    cff = font["CFF "].cff
    cff.fontNames[0] = POSTSCRIPT
    top = cff.topDictIndex[0]
    top.FullName, top.FamilyName = FAMILY, FAMILY
    for part in top.FDArray:
        part.FontName = part.FontName.replace("NotoSansSC", "KBBookSansSC")


def build() -> bytes:
    """Return the bytes of the font; raises ValueError when a character is missing or the file is too large."""
    text = wanted_text() + han_to_draw()
    spare = "".join(map(chr, range(0x30A1, 0x30A1 + 11)))  # katakana: in the source font, not in the book
    font = subset_font(text, spare)
    add_glyphs(font, spare)
    rename(font)
    # The Latin Extended-A block of the source has gaps, everything else is required.
    missing = [char for char in text if ord(char) not in font.getBestCmap() and not 0xA0 <= ord(char) < 0x180]
    if missing:
        raise ValueError(f"the source font lacks {missing}")
    out = io.BytesIO()
    font.save(out, reorderTables=True)
    if len(out.getvalue()) >= LIMIT_BYTES:
        raise ValueError(f"{len(out.getvalue())} bytes made, {LIMIT_BYTES} allowed")
    return out.getvalue()


def licence_text() -> str:
    """Return the notice of this subset followed by the source package's licence file, unchanged."""
    source = distribution(DISTRIBUTION)
    text = source.read_text("licenses/LICENSE")
    if text is None:
        raise FileNotFoundError(f"{DISTRIBUTION} {source.version} carries no licence file")
    return NOTICE.format(version=source.version) + text


def main() -> int:
    """Write or check the font and its licence; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    check = parser.parse_args().check
    data, licence = build(), licence_text()
    font_path, licence_path = FOLDER / FILE, FOLDER / "OFL.txt"
    if check:
        same = font_path.read_bytes() == data and licence_path.read_text(encoding="utf-8") == licence
        print("the committed font is up to date" if same else "the committed font differs: run tools/make_font.py")
        return 0 if same else 1
    FOLDER.mkdir(parents=True, exist_ok=True)
    font_path.write_bytes(data)
    licence_path.write_text(licence, encoding="utf-8", newline="\n")
    print(f"{FILE}: {len(data)} bytes; Han outside level 1: {han_to_draw() or 'none'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
