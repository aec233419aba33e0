"""How one line of the running package is broken for a while: a function's code is exchanged, no file is touched.

The code object goes, not the name: whoever imported the function, under whatever name, calls the broken one. The broken
code is made from the function's own source with one line changed, so a mutant whose line is gone is an error.
"""

import inspect
import textwrap
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

from kbretrieval import KBError

Scene = Callable[[Path], None]


class NoSuchLine(LookupError):
    """A line that a mutant wants to change is not there exactly once."""


@dataclass(frozen=True, slots=True)
class Change:
    """One place in one function, as it stands and broken; `where` is `module:function` or `module:Class.method`."""

    where: str
    line: str
    broken: str


@dataclass(frozen=True, slots=True)
class Mutant:
    """A named build with one check removed or weakened, and the scene that has to fail with `error`, and how.

    `promise` is the number that it breaks. A check that is made twice, once where it saves work and once where it
    decides, needs two changes.
    """

    name: str
    promise: str
    scene: Scene
    changes: tuple[Change, ...]
    error: str = "AssertionError"


def mutant(name: str, promise: str, scene: Scene, where: str, line: str, changed: str, error: str = "") -> Mutant:
    """Return a mutant with one change; where no error is named, a comparison of the scene fails."""
    return Mutant(name, promise, scene, (Change(where, line, changed),), error or "AssertionError")


def function_at(where: str) -> FunctionType:
    """Return the function that `where` names."""
    module, _, path = where.partition(":")
    found: Any = import_module(module)
    for name in path.split("."):
        found = getattr(found, name)
    if not isinstance(found, FunctionType):
        raise TypeError(f"{where}: a plain function is required")
    return found


def broken_code(change: Change) -> CodeType:
    """Return the code of a function with its one line changed; raises `NoSuchLine` where it is not there once."""
    function = function_at(change.where)
    source = textwrap.dedent(inspect.getsource(function))
    count = source.count(change.line)
    if count != 1 or change.line == change.broken:
        raise NoSuchLine(f"{change.where}: the line to change stands there {count} times, 1 needed")
    text = source.replace(change.line, change.broken)
    made: dict[str, Any] = {}
    exec(compile(text, f"<broken {change.where}>", "exec", dont_inherit=True), dict(function.__globals__), made)
    code: CodeType = made[function.__name__].__code__
    return code


@contextmanager
def broken(mutant: Mutant) -> Iterator[None]:
    """Run the package with this mutant's changes, and put every function back afterwards."""
    with ExitStack() as stack:
        for change in mutant.changes:
            function, code = function_at(change.where), broken_code(change)
            stack.callback(setattr, function, "__code__", function.__code__)
            function.__code__ = code
        yield


def failures(scenes: Sequence[Scene], folder: Path) -> dict[str, str]:
    """Return scene → error for the scenes that fail, each in a folder of its own.

    A failed comparison and a refusal of the package count. Any other exception passes through: it would mean that the
    broken line does not even run, which proves nothing.
    """
    found = {}
    for scene in scenes:
        place = folder / scene.__name__
        place.mkdir(parents=True)
        try:
            scene(place)
        except (AssertionError, KBError) as error:
            found[scene_name(scene)] = type(error).__name__
    return found


def scene_name(scene: Scene) -> str:
    """Return a scene's name in words."""
    return scene.__name__.replace("_", " ")
