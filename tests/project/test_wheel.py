"""What is in the checkout is in the wheel: modules, fixtures, the font with its licence."""

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory, root: Path) -> dict[str, bytes]:
    """Name → bytes of every file in a wheel that was built from the checkout without network."""
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "pip", "--quiet", "wheel", "--no-deps", "--no-build-isolation", "--no-index"]
    built = subprocess.run(
        [*command, "--wheel-dir", str(folder), str(root)], capture_output=True, encoding="utf-8", check=False
    )
    assert built.returncode == 0, built.stderr
    (path,) = folder.glob("kbretrieval-*.whl")
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def _tracked(root: Path, folder: str) -> list[str]:
    command = ["git", "ls-files", "-z", folder]
    listing = subprocess.run(command, cwd=root, capture_output=True, encoding="utf-8", check=True)
    return [name for name in listing.stdout.split("\0") if name and (root / name).is_file()]


def test_the_wheel_holds_the_whole_package(wheel: dict[str, bytes], root: Path) -> None:
    names = _tracked(root, "kbretrieval")
    assert "kbretrieval/py.typed" in names
    assert "kbretrieval/book/font/OFL.txt" in names
    assert not [name for name in names if wheel.get(name) != (root / name).read_bytes()]


def test_the_wheel_holds_the_fixtures_byte_for_byte(wheel: dict[str, bytes], root: Path) -> None:
    names = _tracked(root, "fixtures")
    assert "fixtures/corpus.json" in names
    inside = {name: name.replace("fixtures/", "kbretrieval/_fixtures/", 1) for name in names}
    assert not [name for name in names if wheel.get(inside[name]) != (root / name).read_bytes()]


def test_the_wheel_holds_the_font(wheel: dict[str, bytes]) -> None:
    fonts = [name for name in wheel if name.startswith("kbretrieval/book/font/") and name.endswith((".otf", ".ttf"))]
    assert len(fonts) == 1
    assert len(wheel[fonts[0]]) < 1_000_000


def test_the_wheel_holds_nothing_else(wheel: dict[str, bytes]) -> None:
    assert {name.partition("/")[0].partition("-")[0] for name in wheel} == {"kbretrieval"}
    assert not [name for name in wheel if "__pycache__" in name or name.endswith((".onnx", ".pyc"))]
