"""The roots of every refusal, and the exit status of each kind."""

from typing import ClassVar

INPUT, PARTIAL, STATE, ACCESS, STORE, MODEL = 2, 3, 4, 5, 6, 7


class KBError(Exception):
    """The root of every refusal; never raised itself."""

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
