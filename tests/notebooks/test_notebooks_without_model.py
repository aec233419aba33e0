"""A chapter that needs the model runs without it, says 未检查, and its evidence is incomplete, never ok (MOD-4)."""

from pathlib import Path

import pytest

from kbretrieval.book.contents import CHAPTERS, Chapter
from kbretrieval.book.presence import NOT_CHECKED
from kbretrieval.book.runner import run_notebooks
from kbretrieval.evidence import verify_folder
from kbretrieval.evidence.subjects import FOLDER_VARIABLE as EVIDENCE_VARIABLE
from kbretrieval.model.files import FOLDER_VARIABLE as MODEL_VARIABLE

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
WITH_MODEL = [item for item in CHAPTERS if item.published and item.needs_model]


@pytest.mark.promise("MOD-4")
@pytest.mark.parametrize("chapter", WITH_MODEL, ids=[item.file.removesuffix(".ipynb") for item in WITH_MODEL])
def test_without_the_model_nothing_is_called_checked(
    chapter: Chapter, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    empty, evidence = tmp_path / "model", tmp_path / "evidence"
    empty.mkdir()
    monkeypatch.setenv(MODEL_VARIABLE, str(empty))
    monkeypatch.setenv(EVIDENCE_VARIABLE, str(evidence))
    (run,) = run_notebooks([ROOT / "notebooks" / chapter.file], tmp_path / "run")
    assert run.ok, run.report()
    written = run.output.read_text(encoding="utf-8")
    assert f"模型{NOT_CHECKED}" in written and "模型 ✓" not in written
    said = [
        str(output)
        for cell in run.notebook.cells
        if "observed" in cell.metadata.get("tags", [])
        for output in cell.outputs
    ]
    assert said and all(NOT_CHECKED in text for text in said)
    assert verify_folder(evidence, ROOT).exit_code == 2
