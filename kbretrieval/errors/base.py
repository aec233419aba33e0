"""The roots of every refusal, and the exit status of each kind."""

from typing import ClassVar

INPUT, PARTIAL, STATE, ACCESS, STORE, MODEL = 2, 3, 4, 5, 6, 7


class KBError(Exception):
    """The root of every refusal; never raised itself (ERR-1).

    `code` is stable, `facts` are both facts, `exit_status` is what the command line returns. No document text, query
    text or secret is in any of them. Bad values are also a `ValueError`, a missing context also a `PermissionError`.

    Example:
        >>> error = KBError("1 given, 2 stored")
        >>> str(error), error.facts
        ('kb_error: 1 given, 2 stored', '1 given, 2 stored')
    """

    code: ClassVar[str] = "kb_error"
    exit_status: ClassVar[int] = 1

    def __init__(self, facts: str) -> None:
        super().__init__(f"{self.code}: {facts}")
        self.facts = facts


class BadValue(KBError, ValueError):
    """A value was refused before any work."""

    exit_status = INPUT


class StateConflict(KBError):
    """The stored state does not allow the change."""

    exit_status = STATE


class StoreError(KBError):
    """The file, its file system or its locks."""

    exit_status = STORE


class EncoderError(KBError):
    """The encoder, or what it returned."""

    exit_status = MODEL
