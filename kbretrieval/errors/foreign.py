"""Calls of code that is not ours, an encoder or a source: whatever it raises is one typed refusal (ERR-2)."""

from collections.abc import Callable
from typing import TypeVar

from kbretrieval.errors.base import KBError

Made = TypeVar("Made")


def guarded(call: Callable[[], Made], refusal: type[KBError], who: str) -> Made:
    """Return what `call` returns; refusals of the package pass, any other exception becomes `refusal`, by its type.

    Example:
        >>> from kbretrieval.errors import EncoderFailed
        >>> guarded(lambda: 1 / 0, EncoderFailed, "the encoder")
        Traceback (most recent call last):
        kbretrieval.errors.stores.EncoderFailed: encoder_failed: the encoder raised ZeroDivisionError
    """
    try:
        return call()
    except KBError:
        raise
    except Exception as error:  # noqa: BLE001 - foreign code may raise anything
        kind = type(error).__name__
    # Raised outside the handler: the foreign error may hold a text, and would stay reachable as context (ERR-1).
    raise refusal(f"{who} raised {kind}")
