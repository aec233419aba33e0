"""Is the real model on this machine? A notebook that goes on without it says 未检查 there, never ok (MOD-4)."""

from pathlib import Path
from typing import TYPE_CHECKING

from kbretrieval.book.tables import say

if TYPE_CHECKING:
    from kbretrieval.encoders.bge import BGEEncoder

NOT_CHECKED = "未检查"
HOW_TO_MEND = "请运行 `kbretrieval model fetch`，再从头运行本章"


def model_missing(folder: Path | None = None) -> bool:
    """Return whether a file of the model is absent; a wrong file is not absent, and is refused where it is loaded.

    `folder` is by default the one that the encoder looks in.

    Example:
        >>> from tempfile import TemporaryDirectory
        >>> with TemporaryDirectory() as empty:
        ...     model_missing(Path(empty))
        True
    """
    from kbretrieval.model.files import FILES, model_folder

    where = folder or model_folder()
    return not all((where / file.name).is_file() for file in FILES)


def real_model(folder: Path | None = None) -> "BGEEncoder | None":
    """Return the encoder with the real model, or None where a file of it is absent.

    Raises `model_hash_mismatch` for files that are there and wrong, and `model_missing` for absent packages.
    """
    from kbretrieval.encoders.bge import BGEEncoder

    return None if model_missing(folder) else BGEEncoder(folder)


def can_check(model: object, what: str) -> bool:
    """Return True with a model; without one show one sentence that `what` was not checked, and return False.

    Example:
        >>> can_check(None, "向量的长度")
        未检查：向量的长度。这台机器上没有模型，请运行 `kbretrieval model fetch`，再从头运行本章。
        False
    """
    if model is None:
        say("{mark}：{what}。这台机器上没有模型，{mend}。", mark=NOT_CHECKED, what=what, mend=HOW_TO_MEND)
    return model is not None
