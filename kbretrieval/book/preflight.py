"""The first call of every notebook: is this the right kernel, the right package, and is everything there?"""

import hashlib
import json
import re
import site
import sys
import sysconfig
from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, distribution
from importlib.util import find_spec
from pathlib import Path

from kbretrieval._version import __version__
from kbretrieval.book.contents import chapter as chapter_of
from kbretrieval.book.errors import (
    EditionMismatch,
    FixtureDigestMismatch,
    FixturesMissing,
    ForeignKernel,
    ModelNotReady,
    PackageMissing,
)
from kbretrieval.book.presence import HOW_TO_MEND, NOT_CHECKED, model_missing

PACKAGE = Path(__file__).resolve().parent.parent
NEEDED = ("matplotlib", "IPython")
INSTALL = 'python -m pip install "kbretrieval[book]"'


def start(chapter: int, *, edition: str = "", model_folder: Path | None = None, model_optional: bool = False) -> None:
    """Check kernel, package edition, fixtures, font and, where the chapter needs it, the model; print one short line.

    `edition` is the version the notebook was written for (compared by its first two numbers); when it is not given, a
    checkout above the working directory is compared instead. `model_folder` holds the two model files; by default
    the folder that the encoder looks in. With `model_optional` a chapter goes on where they are absent, and the line
    says 未检查 (MOD-4); wrong files are refused all the same. On failure one sentence with the command that mends it:
    an error of `kbretrieval.book.errors`. From then on a cell that stops says why (`kbretrieval.book.failing`). The
    line names no version of Python, no path and no time, so that committed
    output is the same on every machine. It does not check that a search works.

    Example:
        >>> start(chapter=13)
        第 13 章《核心实验》准备就绪：kbretrieval 0.1.0，夹具 knowledge-fixture-v1，字体 ✓，本章不用模型
    """
    this = chapter_of(chapter)
    check_kernel()
    check_edition(edition)
    check_packages(NEEDED)
    fixtures = check_fixtures(fixtures_folder())
    _check_font()
    model = "本章不用模型"
    if this.needs_model and model_optional and model_missing(model_folder):
        model = f"模型{NOT_CHECKED}（没有模型，{HOW_TO_MEND}）"
    elif this.needs_model:
        check_model(model_folder)
        model = "模型 ✓"
    _explain_failures()
    print(f"{this.label}准备就绪：kbretrieval {__version__}，夹具 {fixtures}，字体 ✓，{model}")


def check_kernel(folders: Iterable[str] | None = None) -> None:
    """Raise `ForeignKernel` unless this interpreter is the one that the package is installed in.

    A package that is merely importable (through the working directory or `PYTHONPATH`) is not installed: then the
    notebook runs on another Python's libraries. `folders` are the places to look in; by default this interpreter's own.
    """
    own = {*(folders if folders is not None else _own_folders())}
    try:
        home = str(Path(str(distribution("kbretrieval").locate_file(""))).resolve())
    except PackageNotFoundError:
        home = ""
    if home not in own:
        name = "Python (kbretrieval)"
        raise ForeignKernel(
            "这个内核的 Python 里没有安装 kbretrieval。请在装有它的环境里运行 "
            f'`python -m ipykernel install --sys-prefix --name kbretrieval --display-name "{name}"`，再选内核 {name}。'
        )


def check_edition(edition: str = "", here: Path | None = None) -> None:
    """Raise `EditionMismatch` when the notebook's edition, or the checkout around it, is not the imported package's."""
    wanted = edition or _checkout_edition(here or Path.cwd())
    if wanted and wanted.split(".")[:2] != __version__.split(".")[:2]:
        raise EditionMismatch(
            f"笔记本写给 kbretrieval {wanted}，装着的是 {__version__}。"
            '请在仓库根目录运行 `python -m pip install -e ".[book]"`。'
        )


def check_packages(names: Iterable[str]) -> None:
    """Raise `PackageMissing` naming the packages that are not installed."""
    absent = [name for name in names if find_spec(name) is None]
    if absent:
        raise PackageMissing(f"缺少 {'、'.join(absent)}。请运行 `{INSTALL}`。")


def fixtures_folder() -> Path:
    """Return the fixtures of the checkout, or those inside an installed package; raises `FixturesMissing`."""
    for folder in (PACKAGE.parent / "fixtures", PACKAGE / "_fixtures"):
        if (folder / "manifest.json").is_file():
            return folder
    raise FixturesMissing("找不到夹具 manifest.json。请运行 `git checkout -- fixtures`，或重新安装 kbretrieval。")


def check_fixtures(folder: Path) -> str:
    """Return the manifest's version after comparing every digest in it; raises `FixtureDigestMismatch`."""
    manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    for name, wanted in sorted(manifest["sha256"].items()):
        path = folder / name
        given = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "没有这个文件"
        if given != wanted:
            raise FixtureDigestMismatch(
                f"夹具 {name} 的摘要是 {given[:12]}，清单里是 {wanted[:12]}。请运行 `git checkout -- fixtures`。"
            )
    return str(manifest["version"])


def check_model(folder: Path | None = None) -> None:
    """Raise `ModelNotReady` unless the folder (default: where the encoder looks) holds exactly the pinned files."""
    from kbretrieval.model.files import check_folder, model_folder

    for file in check_folder(folder or model_folder()):
        if file.state == "missing":
            raise ModelNotReady(f"本章要用模型，缺少 {file.name}。请运行 `kbretrieval model fetch`。")
        if file.state != "ok":
            raise ModelNotReady(
                f"{file.name} 的摘要 {(file.sha256 or '')[:12]} 不是书里固定的那一份。"
                "请删去它，再运行 `kbretrieval model fetch`。"
            )


def _explain_failures() -> None:
    from IPython.core.getipython import get_ipython

    from kbretrieval.book.failing import install

    shell = get_ipython()
    if shell is not None:
        install(shell)


def _check_font() -> None:
    from kbretrieval.book.glyphs import covered
    from kbretrieval.book.style import register_font

    covered()
    register_font()


def _own_folders() -> set[str]:
    folders = [sysconfig.get_path("purelib"), sysconfig.get_path("platlib"), *site.getsitepackages()]
    folders += [site.getusersitepackages()] if site.ENABLE_USER_SITE else []
    prefixes = {str(Path(sys.prefix).resolve()), str(Path(sys.base_prefix).resolve())}
    # Debian and conda keep packages in several folders on the interpreter's path, all of them below its prefix.
    below = [entry for entry in sys.path if entry and any(str(Path(entry).resolve()).startswith(p) for p in prefixes)]
    return {str(Path(entry).resolve()) for entry in [*folders, *below] if Path(entry).name.endswith("-packages")}


def _checkout_edition(here: Path) -> str:
    for folder in (here, *here.parents):
        version = folder / "kbretrieval" / "_version.py"
        if version.is_file() and (folder / "notebooks").is_dir():
            found = re.search(r'__version__ = "([^"]+)"', version.read_text(encoding="utf-8"))
            return found.group(1) if found else ""
    return ""
