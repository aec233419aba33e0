"""Exercises: the reader fills in a stub, and the same cell says ✗ with a hint, or ✓.

The convention, which the tests rely on:

- an exercise cell carries the tag `exercise`; it defines the stub (a function, or a name set to None) and then calls
  `exercise(...)`; the stub as shipped must come out ✗;
- `notebooks/solutions/NN_exercises.py` defines the solved functions and values under the same names; what else it has
  at its top level (imports, constants) is run before the cell;
- the tests put the solved definitions in the place of the stubs, run the notebook again and want ✓ everywhere.

An exception inside the reader's function is not swallowed: its traceback points at the reader's own line. Only
`NotImplementedError` counts as "not written yet".
"""

import math
from collections.abc import Callable, Sequence

from kbretrieval.book.errors import ExerciseMalformed

PASSED, FAILED = "✓", "✗"


def exercise(
    name: str,
    answer: object,
    *,
    hint: str,
    cases: Sequence[tuple[tuple[object, ...], object]] = (),
    check: Callable[[object], bool] | None = None,
) -> None:
    """Print one line, `✓ name` or `✗ name：hint`, for the reader's `answer`.

    With `cases`, pairs of arguments and expected result, `answer` is a function and every case must come out. With
    `check`, a predicate gets `answer` (a value or a function) and must return True; None is never handed to it. Raises
    `ExerciseMalformed` when there is nothing to check with, or no hint.

    Example:
        >>> def reciprocal(rank): return None
        >>> exercise("练习 1", reciprocal, cases=[((1,), 1 / 61)], hint="分母是 60 加名次。")
        ✗ 练习 1：分母是 60 加名次。
        >>> exercise("练习 1", lambda rank: 1 / (60 + rank), cases=[((1,), 1 / 61)], hint="分母是 60 加名次。")
        ✓ 练习 1
    """
    if (not cases and check is None) or not hint.strip():
        raise ExerciseMalformed(f"练习要有检查和提示：cases {len(cases)} 个，提示 {len(hint.strip())} 字。")
    if _solved(answer, cases, check):
        print(f"{PASSED} {name}")
    else:
        print(f"{FAILED} {name}：{hint}")


def same(given: object, expected: object) -> bool:
    """Return whether an answer equals the expected one; floats may differ in the ninth digit, types must be alike.

    Example:
        >>> same(0.1 + 0.2, 0.3), same([1, 2], [2, 1]), same(True, 1)
        (True, False, False)
    """
    if isinstance(given, float) and isinstance(expected, float):
        return math.isclose(given, expected, rel_tol=1e-9, abs_tol=1e-12)
    if isinstance(given, list | tuple) and isinstance(expected, list | tuple):
        alike = type(given) is type(expected) and len(given) == len(expected)
        return alike and all(map(same, given, expected))
    return isinstance(given, bool) == isinstance(expected, bool) and given == expected


def _solved(
    answer: object, cases: Sequence[tuple[tuple[object, ...], object]], check: Callable[[object], bool] | None
) -> bool:
    if answer is None or (cases and not callable(answer)):
        return False
    try:
        right = all(same(answer(*arguments), expected) for arguments, expected in cases) if callable(answer) else True
        return right and (check is None or bool(check(answer)))
    except NotImplementedError:
        return False
