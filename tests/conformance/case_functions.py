"""Functions that a case writes down, sent to a process of its own and built again there.

A fork would inherit the open connections of this process, which SQLite forbids; and a lambda cannot be pickled. What is
sent is its code, and the plain values that it reads; every other name it finds in the new process.
"""

import base64
import marshal
import pickle
from collections.abc import Callable, Iterator
from types import CellType, CodeType, FunctionType
from typing import Any

PLAIN = (str, bytes, int, float, list, tuple, dict, type(None))


def _names_read(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names_read(constant)


def packed(function: Callable[..., Any]) -> str:
    """Return a function of a case as one line of text.

    Example:
        >>> unpacked(packed(lambda number: number + 1), {})(2)
        3
    """
    assert isinstance(function, FunctionType)
    cells = [cell.cell_contents for cell in function.__closure__ or ()]
    seen = {name: function.__globals__[name] for name in _names_read(function.__code__) if name in function.__globals__}
    plain = {name: value for name, value in seen.items() if isinstance(value, PLAIN)}
    whole = pickle.dumps((marshal.dumps(function.__code__), cells, plain))
    return base64.b64encode(whole).decode("ascii")


def unpacked(text: str, names: dict[str, Any]) -> Callable[..., Any]:
    """Build such a function again, among the names of this process."""
    code, cells, plain = pickle.loads(base64.b64decode(text))
    closure = tuple(CellType(value) for value in cells)
    return FunctionType(marshal.loads(code), names | plain, closure=closure or None)
