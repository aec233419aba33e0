"""How the fields of a document become a part of the assembled text; pure (CTX-16, CTX-20)."""

from collections.abc import Sequence

SEPARATOR = "\n\n---\n\n"


def preface(fields: Sequence[str], title: str, uri: str, version: str) -> str:
    """Return what stands before the text: one line for each projected field, and a blank line where text follows.

    Example:
        >>> preface(("title", "text"), "退款", "file:///r.md", "7")
        'title: 退款\\n\\n'
        >>> preface(("title", "provenance"), "退款", "file:///r.md", "7")
        'title: 退款\\nprovenance: file:///r.md 7'
    """
    lines = []
    if "title" in fields:
        lines.append(f"title: {title}")
    if "provenance" in fields:
        lines.append(f"provenance: {uri} {version}".rstrip())
    return "\n".join(lines) + ("\n\n" if "text" in fields and lines else "")


def joined_text(parts: Sequence[str]) -> tuple[str, tuple[tuple[int, int], ...]]:
    """Return the assembled text and the interval of each part in it; a separator belongs to the part before it.

    Example:
        >>> joined_text(["甲", "乙丙"])
        ('甲\\n\\n---\\n\\n乙丙', ((0, 8), (8, 10)))
    """
    pieces = [part + SEPARATOR for part in parts[:-1]] + list(parts[-1:])
    intervals, at = [], 0
    for piece in pieces:
        intervals.append((at, at + len(piece)))
        at += len(piece)
    return "".join(pieces), tuple(intervals)
