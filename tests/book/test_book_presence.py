"""Without the model a chapter goes on and says 未检查; with wrong files it stops (MOD-4)."""

from pathlib import Path

import pytest

from kbretrieval import book
from kbretrieval.book.errors import ModelNotReady
from kbretrieval.book.presence import NOT_CHECKED, model_missing
from kbretrieval.errors import ModelHashMismatch
from kbretrieval.model.files import FILES


def put(folder: Path, *names: str) -> Path:
    """Write files of one wrong byte under these names."""
    for name in names:
        (folder / name).write_bytes(b"?")
    return folder


@pytest.mark.promise("MOD-4")
def test_without_the_model_the_first_line_says_not_checked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    book.start(chapter=6, model_folder=tmp_path, model_optional=True)
    said = capsys.readouterr().out
    assert f"模型{NOT_CHECKED}" in said and "kbretrieval model fetch" in said and "模型 ✓" not in said
    with pytest.raises(ModelNotReady):
        book.start(chapter=6, model_folder=tmp_path)


@pytest.mark.promise("MOD-4")
def test_one_of_two_files_is_still_a_missing_model(tmp_path: Path) -> None:
    for file in FILES:
        assert model_missing(tmp_path) and book.real_model(tmp_path) is None
        put(tmp_path, file.name)
    assert not model_missing(tmp_path)


@pytest.mark.promise("MOD-4", "VEC-4")
def test_wrong_files_are_refused_even_where_the_model_is_optional(tmp_path: Path) -> None:
    put(tmp_path, *(file.name for file in FILES))
    with pytest.raises(ModelNotReady):
        book.start(chapter=6, model_folder=tmp_path, model_optional=True)
    with pytest.raises(ModelHashMismatch):
        book.real_model(tmp_path)


@pytest.mark.promise("MOD-4")
def test_a_cell_without_the_model_says_what_was_not_checked(capsys: pytest.CaptureFixture[str]) -> None:
    assert book.can_check(object(), "名次") and capsys.readouterr().out == ""
    assert not book.can_check(None, "名次")
    assert capsys.readouterr().out.startswith(f"{NOT_CHECKED}：名次。")
