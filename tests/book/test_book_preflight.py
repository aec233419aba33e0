"""The start check: each thing that can be missing is named in one sentence with the command that mends it."""

import hashlib
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from kbretrieval import book
from kbretrieval.book import glyphs, preflight
from kbretrieval.book.errors import (
    BookError,
    EditionMismatch,
    FixtureDigestMismatch,
    FontUnusable,
    ForeignKernel,
    ModelNotReady,
    PackageMissing,
    UnknownChapter,
)
from kbretrieval.model import files


def test_it_prints_one_short_line(capsys: pytest.CaptureFixture[str]) -> None:
    book.start(chapter=7)
    line = capsys.readouterr().out
    assert line.count("\n") == 1 and line.startswith("第 07 章《RRF》准备就绪") and len(line) < 100
    assert sys.version.split()[0] not in line


def test_an_error_shows_as_one_line_in_a_notebook() -> None:
    with pytest.raises(UnknownChapter) as caught:
        book.start(chapter=19)
    assert caught.value._render_traceback_() == ["unknown_chapter: 目录里只有第 0 到第 18 章，给出的是 19。"]


def test_a_foreign_kernel_is_recognised(tmp_path: Path) -> None:
    preflight.check_kernel()
    with pytest.raises(ForeignKernel, match=r"foreign_kernel: .*python -m ipykernel install"):
        preflight.check_kernel([str(tmp_path)])


def test_another_interpreter_that_only_finds_the_sources_is_foreign() -> None:
    source = "from kbretrieval.book import preflight; preflight.check_kernel()"
    root = str(Path(preflight.__file__).parents[2])
    # Without site-packages the package is importable but not installed, as for a kernel that has only the path.
    code = f"import sys; sys.path.insert(0, {root!r}); {source}"
    done = subprocess.run([sys.executable, "-S", "-c", code], capture_output=True, encoding="utf-8", check=False)
    assert done.returncode == 1 and "foreign_kernel" in done.stderr


def test_another_edition_is_refused(tmp_path: Path) -> None:
    preflight.check_edition("0.1")
    with pytest.raises(EditionMismatch, match=r"edition_mismatch: 笔记本写给 kbretrieval 9\.3.*pip install"):
        preflight.check_edition("9.3")
    (tmp_path / "notebooks").mkdir()
    (tmp_path / "kbretrieval").mkdir()
    (tmp_path / "kbretrieval" / "_version.py").write_text('__version__ = "0.9.0"\n', encoding="utf-8")
    with pytest.raises(EditionMismatch, match=r"0\.9\.0"):
        preflight.check_edition(here=tmp_path / "notebooks")


def test_a_changed_or_absent_fixture_is_refused(tmp_path: Path) -> None:
    folder = shutil.copytree(preflight.fixtures_folder(), tmp_path / "fixtures")
    assert preflight.check_fixtures(folder) == "knowledge-fixture-v1"
    corpus = folder / "corpus.json"
    corpus.chmod(0o644)
    data = bytearray(corpus.read_bytes())
    data[100] ^= 1
    corpus.write_bytes(data)
    with pytest.raises(FixtureDigestMismatch, match=r"corpus\.json 的摘要是 \w{12}，清单里是 e103bc584fd4.*checkout"):
        preflight.check_fixtures(folder)
    corpus.unlink()
    with pytest.raises(FixtureDigestMismatch, match="没有这个文件"):
        preflight.check_fixtures(folder)


def test_a_missing_package_is_named_with_its_command() -> None:
    with pytest.raises(PackageMissing, match=r'缺少 no_such_package。.*pip install "kbretrieval\[book\]"`'):
        preflight.check_packages(["json", "no_such_package"])


def test_a_missing_or_wrong_model_file_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    digest = hashlib.sha256(b"right").hexdigest()
    monkeypatch.setattr(files, "FILES", (files.PinnedFile("model.onnx", 5, digest, "", ""),))
    with pytest.raises(ModelNotReady, match=r"缺少 model\.onnx。请运行 `kbretrieval model fetch`"):
        preflight.check_model(tmp_path)
    (tmp_path / "model.onnx").write_bytes(b"wrong")
    with pytest.raises(ModelNotReady, match=r"model_not_ready: model\.onnx 的摘要 \w{12} 不是"):
        preflight.check_model(tmp_path)
    (tmp_path / "model.onnx").write_bytes(b"right")
    preflight.check_model(tmp_path)


def test_only_chapters_that_need_the_model_ask_for_it(tmp_path: Path) -> None:
    book.start(chapter=13, model_folder=tmp_path)
    with pytest.raises(ModelNotReady):
        book.start(chapter=14, model_folder=tmp_path)


def test_another_or_missing_font_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    import matplotlib

    other = Path(matplotlib.get_data_path()) / "fonts" / "ttf" / "DejaVuSans.ttf"
    for path, said in ((other, "文件里是 DejaVu Sans"), (tmp_path / "none.otf", "打不开字体文件")):
        monkeypatch.setattr(glyphs, "FONT_FILE", path)
        glyphs.covered.cache_clear()
        with pytest.raises(FontUnusable, match=said):
            glyphs.covered()
    glyphs.covered.cache_clear()


def test_every_refusal_has_a_code_of_its_own() -> None:
    codes = [kind.code for kind in BookError.__subclasses__()]
    assert len(set(codes)) == len(codes) and all(code == code.lower() for code in codes)


@pytest.mark.promise("NB-2")
def test_importing_the_package_loads_nothing_heavy_and_changes_nothing() -> None:
    code = (
        "import sys, kbretrieval.book as book; book.sentence('{a}', a=1); book.start; book.CHAPTERS; book.styled;"
        "print([name for name in ('matplotlib', 'IPython', 'numpy', 'nbclient', 'pandas') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, encoding="utf-8", check=True)
    assert done.stdout == "[]\n"


def test_every_public_name_resolves_and_no_module_hides_one() -> None:
    import importlib
    import pkgutil

    modules = {info.name for info in pkgutil.iter_modules(book.__path__)}
    assert modules.isdisjoint(book.__all__)
    for name in ("preflight", "display"):
        importlib.import_module(f"kbretrieval.book.{name}")
    assert all(callable(getattr(book, name)) or name == "CHAPTERS" for name in book.__all__)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        book.__getattr__("nothing")
