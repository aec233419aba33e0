"""Subjects: the files that a claim is about, named below the project root (EVD-4)."""

import hashlib
import os
import re
from dataclasses import dataclass
from pathlib import Path

from kbretrieval.evidence.environment import PACKAGE_FOLDER
from kbretrieval.evidence.errors import SubjectInvalid

FOLDER_VARIABLE = "KBRETRIEVAL_EVIDENCE"
MAX_SUBJECT_BYTES = 1024 * 1024 * 1024  # a few seconds of SHA-256


@dataclass(frozen=True, slots=True)
class Digest:
    """SHA-256 (hexadecimal) and length in bytes of a file."""

    sha256: str
    bytes: int


def project_root() -> Path:
    """Return the checkout that this package stands in, else the working directory.

    Example:
        >>> project_root().is_dir()
        True
    """
    checkout = PACKAGE_FOLDER.parent
    return checkout if (checkout / "pyproject.toml").is_file() else Path.cwd()


def default_folder() -> Path:
    """Return where claims are written unless told otherwise: `build/evidence` of the project.

    The variable `KBRETRIEVAL_EVIDENCE` names another folder, which is how a rerun (EVD-6) and
    `make` direct a notebook without a change to its cells.

    Example:
        >>> default_folder().name
        'evidence'
    """
    named = os.environ.get(FOLDER_VARIABLE)
    return Path(named) if named else project_root() / "build" / "evidence"


def check_name(name: str) -> None:
    """Raise `SubjectInvalid` unless `name` is a plain POSIX path that stays below the root.

    Example:
        >>> check_name("../x")
        Traceback (most recent call last):
        kbretrieval.evidence.errors.SubjectInvalid: evidence_subject_invalid: part '..' given, a path below the project root needed
    """  # noqa: E501
    if re.search(r'[\\:*?"<>|\x00-\x1f]', name):
        raise SubjectInvalid("a character reserved on some system given, a plain POSIX path needed")
    for part in name.split("/"):
        if part in {"", ".", ".."}:
            raise SubjectInvalid(f"part {part!a} given, a path below the project root needed")


def digest(path: Path) -> Digest:
    """Return the digest of a file. Raises `SubjectInvalid` when it cannot be read.

    Example:
        >>> digest(Path(__file__)).bytes > 0
        True
    """
    try:
        with path.open("rb") as file:
            found = hashlib.file_digest(file, "sha256")
            return Digest(found.hexdigest(), file.tell())
    except OSError as error:
        raise SubjectInvalid(f"{path.name!a} given, {type(error).__name__} when read") from None


def shipped(root: Path, name: str) -> Digest | None:
    """Return the digest of subject `name` below `root`, None when it is not there.

    Raises `SubjectInvalid` when the name, or a link on the way, leads out of the root, and for a file beyond 1 GiB.

    Example:
        >>> shipped(Path("no-such-folder"), "a.json") is None
        True
    """
    check_name(name)
    path = root / name
    try:
        if not path.is_file():
            return None
        size, inside = path.stat().st_size, path.resolve().is_relative_to(root.resolve())
    except OSError as error:  # a name that is too long for the system, for example
        raise SubjectInvalid(f"{name[:40]!a} given, {type(error).__name__} when looked for") from None
    if not inside:
        raise SubjectInvalid(f"{name!a} given, it leads out of the project root")
    if size > MAX_SUBJECT_BYTES:
        raise SubjectInvalid(f"{name!a} of {size} bytes given, at most {MAX_SUBJECT_BYTES} allowed")
    return digest(path)
