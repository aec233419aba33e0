"""The two pinned files of the model, where they are kept, and the one way in which they are read (VEC-4, MOD-3).

The original is BAAI/bge-small-zh-v1.5 (MIT); the file is a community export of it, quantised. They are not the same
thing, and both are named wherever the encoder describes itself.
"""

import hashlib
import os
import sys
from dataclasses import dataclass
from pathlib import Path

from kbretrieval.errors import ModelHashMismatch, ModelMissing

ORIGINAL = "BAAI/bge-small-zh-v1.5"
ORIGINAL_REVISION = "7999e1d3359715c523056ef9478215996d62a620"
EXPORT = "Xenova/bge-small-zh-v1.5"
EXPORT_REVISION = "75c43b069aac4d136ba6bc1122f995fedcfd2781"
FOLDER_VARIABLE = "KBRETRIEVAL_MODEL_DIR"
HOW_TO_GET = "run: kbretrieval model fetch"


@dataclass(frozen=True, slots=True)
class PinnedFile:
    """A file by name, size in bytes and SHA-256, with its names in the two public sources."""

    name: str
    size: int
    sha256: str
    hub_path: str
    jar_path: str


MODEL = PinnedFile(
    "model_quantized.onnx",
    24_010_842,
    "15b717c382bcb518ba457b93ea6850ede7f4f1cd8937454aa06972366cd19bcc",
    "onnx/model_quantized.onnx",
    "bge-small-zh-v1.5-q.onnx",
)
TOKENIZER = PinnedFile(
    "tokenizer.json",
    439_125,
    "48cea5d44424912a6fd1ea647bf4fe50b55ab8b1e5879c3275f80e339e8fae26",
    "tokenizer.json",
    "bge-small-zh-v1.5-q-tokenizer.json",
)
FILES = (MODEL, TOKENIZER)


def model_folder() -> Path:
    """Return where the files are looked for: `KBRETRIEVAL_MODEL_DIR`, else a folder in the user's cache."""
    given = os.environ.get(FOLDER_VARIABLE)
    if given:
        return Path(given)
    if sys.platform == "win32":
        cache = Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    else:
        cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return cache / "kbretrieval" / "bge-small-zh-v1.5"


def sha256_of(content: bytes) -> str:
    """Return the hexadecimal SHA-256 of bytes."""
    return hashlib.sha256(content).hexdigest()


def read_pinned(folder: Path, file: PinnedFile) -> bytes:
    """Return the bytes of a pinned file; the bytes that were hashed are the bytes that are returned.

    Raises `model_missing`, with the one line that says how to get it, and `model_hash_mismatch`.
    """
    try:
        content = (folder / file.name).read_bytes()
    except OSError as error:
        raise ModelMissing(f"{file.name} is required, it cannot be read (errno {error.errno}); {HOW_TO_GET}") from None
    found = sha256_of(content)
    if found != file.sha256:
        raise ModelHashMismatch(f"{file.name}: {file.sha256[:12]} pinned, {found[:12]} found; {HOW_TO_GET}")
    return content


@dataclass(frozen=True, slots=True)
class FileState:
    """What is there of one pinned file: `ok`, `missing` or `wrong`."""

    name: str
    state: str
    sha256: str | None


def check_folder(folder: Path) -> tuple[FileState, ...]:
    """Return the state of each pinned file in a folder; nothing is loaded."""
    made = []
    for file in FILES:
        try:
            found = sha256_of((folder / file.name).read_bytes())
        except OSError:
            made.append(FileState(file.name, "missing", None))
        else:
            made.append(FileState(file.name, "ok" if found == file.sha256 else "wrong", found))
    return tuple(made)
