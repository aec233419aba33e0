"""`promise`, pytest's mark where pytest is installed, and otherwise a decorator that changes nothing."""

from collections.abc import Callable
from typing import TypeVar

Carrier = TypeVar("Carrier", bound=Callable[..., object])


def _unmarked(*numbers: str) -> Callable[[Carrier], Carrier]:
    def same(carrier: Carrier) -> Carrier:
        return carrier

    return same


try:
    import pytest
except ModuleNotFoundError:
    promise = _unmarked
else:
    promise = pytest.mark.promise
