"""Outcomes that were written down instead of computed, found in the source of a notebook (EVD-7).

The writer cannot see where a boolean came from; the syntax tree can.
"""

import ast

_CHECKS = {"check": (1,), "equal": (1, 2), "within": (1, 2)}


def literal_outcomes(source: str) -> list[int]:
    """Return the lines (from 1) with a check whose every compared argument is a literal.

    `claim.check("a", True)` and `claim.equal("a", 1, 1)` are found; `claim.equal("a", got, 1)` compares.
    A name that was bound to a literal earlier is not followed. Raises `SyntaxError` for other text.

    Example:
        >>> literal_outcomes("claim.check('a', True)\\nclaim.equal('b', got, 1)")
        [1]
    """
    return sorted(
        node.lineno
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and _is_literal_check(node, node.func)
    )


def _is_literal_check(call: ast.Call, function: ast.Attribute) -> bool:
    positions = _CHECKS.get(function.attr)
    if positions is None:
        return False
    named = {keyword.arg: keyword.value for keyword in call.keywords}
    names = ("name", "outcome") if function.attr == "check" else ("name", "got", "expected")
    compared = [call.args[at] if at < len(call.args) else named.get(names[at]) for at in positions]
    return all(isinstance(value, ast.expr) and _is_literal(value) for value in compared)


def _is_literal(value: ast.expr) -> bool:
    try:
        ast.literal_eval(value)
    except (ValueError, TypeError):
        return False
    return True
