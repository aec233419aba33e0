"""The two pinned files: which they are, where they are looked for, and what `model check` says of them."""

import sys
from pathlib import Path

import pytest

from kbretrieval.cli import main
from kbretrieval.encoders.bge import IDENTIFIER, BGEEncoder
from kbretrieval.errors import ModelHashMismatch, ModelMissing
from kbretrieval.model import files
from kbretrieval.model.files import FILES, MODEL, TOKENIZER, check_folder, model_folder, read_pinned


@pytest.mark.promise("MOD-1", "MOD-3", "VEC-4")
def test_the_pins_are_the_published_ones() -> None:
    assert [(file.name, file.size, file.sha256) for file in FILES] == [
        ("model_quantized.onnx", 24_010_842, "15b717c382bcb518ba457b93ea6850ede7f4f1cd8937454aa06972366cd19bcc"),
        ("tokenizer.json", 439_125, "48cea5d44424912a6fd1ea647bf4fe50b55ab8b1e5879c3275f80e339e8fae26"),
    ]
    assert (files.ORIGINAL, files.ORIGINAL_REVISION) == (
        "BAAI/bge-small-zh-v1.5",
        "7999e1d3359715c523056ef9478215996d62a620",
    )
    assert (files.EXPORT, files.EXPORT_REVISION) == (
        "Xenova/bge-small-zh-v1.5",
        "75c43b069aac4d136ba6bc1122f995fedcfd2781",
    )


@pytest.mark.promise("MOD-3", "CON-1")
def test_the_identifier_names_both_models_and_both_digests() -> None:
    for part in (files.ORIGINAL, files.EXPORT, files.ORIGINAL_REVISION, files.EXPORT_REVISION):
        assert part in IDENTIFIER
    assert MODEL.sha256 in IDENTIFIER
    assert TOKENIZER.sha256 in IDENTIFIER


@pytest.mark.promise("MOD-1")
def test_the_variable_names_the_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(files.FOLDER_VARIABLE, str(tmp_path / "mine"))
    assert model_folder() == tmp_path / "mine"
    monkeypatch.setenv(files.FOLDER_VARIABLE, "")
    assert model_folder().parts[-2:] == ("kbretrieval", "bge-small-zh-v1.5")


@pytest.mark.parametrize(
    ("system", "variable"), [("linux", "XDG_CACHE_HOME"), ("darwin", "XDG_CACHE_HOME"), ("win32", "LOCALAPPDATA")]
)
def test_the_cache_of_each_system_is_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, system: str, variable: str
) -> None:
    monkeypatch.delenv(files.FOLDER_VARIABLE, raising=False)
    monkeypatch.setattr(sys, "platform", system)
    monkeypatch.setenv(variable, str(tmp_path))
    assert model_folder() == tmp_path / "kbretrieval" / "bge-small-zh-v1.5"


def _folder(tmp_path: Path, names: dict[str, bytes]) -> Path:
    for name, content in names.items():
        (tmp_path / name).write_bytes(content)
    return tmp_path


@pytest.mark.promise("VEC-4", "MOD-4")
def test_a_missing_file_says_in_one_line_how_to_get_it(tmp_path: Path) -> None:
    with pytest.raises(ModelMissing) as refusal:
        read_pinned(tmp_path, MODEL)
    said = str(refusal.value)
    assert said.startswith("model_missing: model_quantized.onnx")
    assert "run: kbretrieval model fetch" in said
    assert "\n" not in said
    assert str(tmp_path) not in said


@pytest.mark.promise("VEC-4")
def test_a_wrong_file_names_both_digests(tmp_path: Path) -> None:
    _folder(tmp_path, {MODEL.name: b"another"})
    with pytest.raises(ModelHashMismatch, match=r"15b717c382bc pinned, [0-9a-f]{12} found"):
        read_pinned(tmp_path, MODEL)


@pytest.mark.promise("VEC-4", "MOD-4")
@pytest.mark.parametrize(
    ("there", "code"),
    [
        ({}, "model_missing"),
        ({MODEL.name: b"x"}, "model_hash_mismatch"),
        ({TOKENIZER.name: b"{}"}, "model_missing"),
    ],
)
def test_the_encoder_refuses_before_it_imports_a_runtime(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, there: dict[str, bytes], code: str
) -> None:
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    with pytest.raises((ModelMissing, ModelHashMismatch)) as refusal:
        BGEEncoder(_folder(tmp_path, there))
    assert refusal.value.code == code


@pytest.mark.promise("MOD-2")
def test_check_tells_missing_from_wrong(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _folder(tmp_path, {TOKENIZER.name: b"{}"})
    assert [state.state for state in check_folder(tmp_path)] == ["missing", "wrong"]
    assert main(["model", "check", "--to", str(tmp_path)]) == 1
    assert capsys.readouterr().out.splitlines() == ["model_quantized.onnx: missing", "tokenizer.json: wrong"]


@pytest.mark.model
@pytest.mark.promise("MOD-2")
def test_check_is_content_with_the_pinned_files(model_folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["model", "check", "--to", str(model_folder)]) == 0
    assert capsys.readouterr().out.splitlines() == ["model_quantized.onnx: ok", "tokenizer.json: ok"]
