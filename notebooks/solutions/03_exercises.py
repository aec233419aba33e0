"""Solutions of chapter 3."""


def line_and_column(body, at):
    """Return line and column of a code point, both from 1; LF alone ends a line."""
    return body.count("\n", 0, at) + 1, at - body.rfind("\n", 0, at)


def code_point(body, offset):
    """Return the code point that begins at a UTF-16 offset, or None inside a pair of surrogates."""
    units = 0
    for at, character in enumerate(body):
        if units >= offset:
            return at if units == offset else None
        units += 2 if ord(character) > 0xFFFF else 1
    return len(body) if units == offset else None


heading_list = ["一", "二", "六"]
