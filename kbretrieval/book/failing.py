"""What a reader sees when a cell stops: the line, the values it compared, and what that means.

A notebook's assertions hold under the shipped parameters. A reader who turns one meets them with other values, and a
bare `AssertionError` would say nothing. A refusal of the package says what it refused in one line, which thirty frames
of the package would bury.

`install` is called by `book.start`; it changes what is shown, never what is raised.
"""

import ast
import linecache
import reprlib
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from types import FrameType, TracebackType
from typing import Any

# What may be called a second time for its value alone; with any other call an assertion is left unevaluated.
_HARMLESS = {
    "abs",
    "all",
    "any",
    "bool",
    "dict",
    "frozenset",
    "int",
    "isinstance",
    "len",
    "list",
    "max",
    "min",
    "range",
}
_HARMLESS |= {"repr", "reversed", "round", "set", "sorted", "str", "sum", "tuple", "type", "zip"}
_HARMLESS_METHODS = {"count", "encode", "endswith", "get", "hex", "items", "join", "keys", "partition", "read_bytes"}
_HARMLESS_METHODS |= {"replace", "split", "splitlines", "startswith", "strip", "values"}
_CHANGED = (
    "没有改过任何一格时它必须成立，不成立就是缺陷。改过参数或代码的话，它说的是：在你的设置下结果不同。"
    "先比较上面的值；要接着看，从下一格往下运行。"
)
_REFUSED = "包按规则拒绝了这次调用：冒号之前是稳定的代码，之后是要求的和给出的。改好参数，再从第一格运行。"
_UNPROVED = (
    "要写的数没有凑齐，或者有一项比较没有成立，所以不写证据文件。改过参数时本该如此：证据记的是默认参数下的结果。"
)


@dataclass(frozen=True, slots=True)
class Stop:
    """Where a cell stopped: its frame, the 1-based line in the cell, and the whole statement at that line."""

    frame: FrameType
    line: int
    statement: ast.stmt | None
    text: str


def install(shell: Any) -> None:
    """Make the shell explain failed assertions and refusals; a second call changes nothing.

    `shell` is IPython's. The exception keeps its class and, where it has one, its message; what is raised outside a
    cell's own code, by a library for example, is shown with its traceback as ever.
    """
    show = shell.showtraceback
    if getattr(show, "explains", False):
        return

    def explaining(*arguments: Any, **options: Any) -> Any:
        given = arguments[0] if arguments else options.get("exc_tuple")
        _, value, traceback = given or sys.exc_info()
        lines = explain(value, traceback, shell.user_ns)
        if lines and value is not None and not hasattr(value, "_render_traceback_"):
            value._render_traceback_ = lambda: lines  # type: ignore[union-attr]
        return show(*arguments, **options)

    explaining.explains = True  # type: ignore[attr-defined]
    shell.showtraceback = explaining


def explain(value: BaseException | None, traceback: TracebackType | None, names: dict[str, Any]) -> list[str]:
    """Return the lines to show instead of a traceback; none for what is neither an assertion nor a coded refusal.

    `names` are the cell's globals, by which its frames are known. A bare assertion made in the cell gets the compared
    values as its message.
    """
    stop = _stop(traceback, names)
    if value is None or stop is None:
        return []
    place = f"第 {stop.line} 行：{stop.text}"
    if isinstance(value, AssertionError):
        if not isinstance(stop.statement, ast.Assert):
            return []
        seen = [f"{text} → {shown}" for text, shown in _operands(stop.statement.test, stop.frame)]
        value.args = value.args or ("；".join(seen) or stop.text,)
        return [f"断言不成立。{place}", *(f"    {line}" for line in seen), _CHANGED]
    code = getattr(value, "code", None)
    if not isinstance(value, Exception) or not isinstance(code, str):
        return []
    return [str(value), place, _UNPROVED if code.startswith("evidence_") else _REFUSED]


def _stop(traceback: TracebackType | None, names: dict[str, Any]) -> Stop | None:
    """Return the innermost place in the cell's own code, None when there is none with source."""
    own: tuple[FrameType, int] | None = None
    while traceback is not None:
        if traceback.tb_frame.f_globals is names:
            own = (traceback.tb_frame, traceback.tb_lineno)
        traceback = traceback.tb_next
    lines = linecache.getlines(own[0].f_code.co_filename) if own else []
    if own is None or own[1] > len(lines):
        return None
    frame, line = own
    statement = _statement("".join(lines), line)
    if isinstance(statement, ast.Assert):
        return Stop(frame, statement.lineno, statement, ast.unparse(statement))
    return Stop(frame, line, statement, lines[line - 1].strip())


def _statement(source: str, line: int) -> ast.stmt | None:
    """Return the innermost statement at this line."""
    try:
        tree = ast.parse(source)
    except SyntaxError:  # a cell with a magic line
        return None
    found = [node for node in ast.walk(tree) if isinstance(node, ast.stmt) and _covers(node, line)]
    return max(found, key=lambda node: (node.lineno, -(node.end_lineno or line))) if found else None


def _covers(node: ast.stmt, line: int) -> bool:
    return node.lineno <= line <= (node.end_lineno or node.lineno)


def _operands(test: ast.expr, frame: FrameType) -> Iterator[tuple[str, str]]:
    """Yield text and value of what the failed part of an assertion compares, as far as looking has no effect."""
    parts = test.values if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And) else [test]
    for part in parts:
        if _effects(part):
            return
        if not _value(part, frame):
            sides = [part.left, *part.comparators] if isinstance(part, ast.Compare) else [part]
            told = [side for side in sides if not isinstance(side, ast.Constant)]
            yield from ((ast.unparse(side), _shortened(_value(side, frame))) for side in told)
            return


def _effects(part: ast.expr) -> bool:
    """Return whether evaluating this once more might do something."""
    calls = [node.func for node in ast.walk(part) if isinstance(node, ast.Call)]
    names = {call.id for call in calls if isinstance(call, ast.Name)}
    methods = {call.attr for call in calls if isinstance(call, ast.Attribute)}
    other = any(not isinstance(call, ast.Name | ast.Attribute) for call in calls)
    unknown = names - _HARMLESS or methods - _HARMLESS_METHODS or other
    return bool(unknown) or any(isinstance(node, ast.NamedExpr | ast.Await | ast.Yield) for node in ast.walk(part))


def _value(part: ast.expr, frame: FrameType) -> Any:
    code = compile(ast.fix_missing_locations(ast.Expression(part)), "<assertion>", "eval")
    return eval(code, {**frame.f_globals, **frame.f_locals})


def _shortened(value: object) -> str:
    short = reprlib.Repr()
    short.maxlist = short.maxtuple = short.maxset = short.maxdict = 12
    short.maxstring, short.maxother = 60, 120
    return short.repr(value)
