"""Results for the eye: aligned where Chinese stands beside Latin, and nothing that a terminal would obey."""

import re
import unicodedata
from collections.abc import Sequence

from kbretrieval.results import Answer, ChannelTrace, DocumentStatus, Evidence, Hit, SearchResult

# Control characters (but line end and tab), and what turns the direction of writing.
_OBEYED = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
EXCERPT = 60


def safe(text: str) -> str:
    """Return text with every character that a terminal would obey written as an escape.

    Example:
        >>> safe("年假\\x1b[2J")
        '年假\\\\x1b[2J'
    """
    return _OBEYED.sub(lambda found: found[0].encode("unicode_escape").decode("ascii"), text)


def width(text: str) -> int:
    """Return how many columns a terminal needs: two for a wide character, none for a combining one.

    Example:
        >>> width("年假 5")
        6
    """
    wide = sum(unicodedata.east_asian_width(character) in "WF" for character in text)
    return len(text) + wide - sum(unicodedata.combining(character) > 0 for character in text)


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return rows below their head, each column as wide as its widest cell."""
    cells = [head, *([safe(cell).replace("\n", " ").replace("\t", " ") for cell in row] for row in rows)]
    widths = [max(width(row[column]) for row in cells) for column in range(len(head))]
    return "".join(_padded(row, widths).rstrip() + "\n" for row in cells)


def _padded(row: Sequence[str], widths: Sequence[int]) -> str:
    return "  ".join(cell + " " * (most - width(cell)) for cell, most in zip(row, widths, strict=True))


def _placed(hit: Hit, channel: str) -> str:
    placed = hit.channel(channel)
    return "-" if placed is None else f"{placed.rank} ({placed.score:.4f})"


def _excerpt(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= EXCERPT else line[: EXCERPT - 1] + "…"


def _trace(trace: ChannelTrace) -> str:
    if trace.state == "skipped":
        return f"{trace.channel}: skipped ({trace.reason})"
    cut = f"{trace.below_floor} below the floor, {trace.beyond_window} beyond the window"
    return f"{trace.channel}: {trace.method}, {trace.eligible} eligible, {trace.scored} scored, {cut}"


def hits_table(result: SearchResult) -> str:
    """Return the hits with their rank and raw score in each channel, and below them what each channel did."""
    rows = [
        (
            *(str(number), hit.doc_id, str(hit.revision), f"{hit.start}-{hit.end}"),
            *(_placed(hit, "lexical"), _placed(hit, "vector"), f"{hit.fused:.6f}", _excerpt(hit.text)),
        )
        for number, hit in enumerate(result, 1)
    ]
    head = ("#", "document", "revision", "code points", "lexical", "vector", "fused", "text")
    made = table(head, rows) if rows else "no hits\n"
    return made + "\n" + "".join(safe(_trace(trace)) + "\n" for trace in result.channels)


def _quotation(number: int, item: Evidence) -> str:
    lines = f"lines {item.line_start}-{item.line_end}, code points {item.start}-{item.end}"
    head = safe(f"[{number}] {item.doc_id}, revision {item.revision}, {lines}, granted by {item.granted_by}")
    body = "".join(f"    {line}".rstrip() + "\n" for line in safe(item.quote).split("\n"))
    return f"{head}\n{body}"


def answer_text(answer: Answer) -> str:
    """Return the quotations, each under its document, lines, coordinates and the entry that grants it."""
    if answer.state == "abstain":
        return answer.answer + "\n"
    return "\n".join(_quotation(number, item) for number, item in enumerate(answer.evidence, 1))


def documents_table(rows: Sequence[DocumentStatus]) -> str:
    """Return one line a document: state, orders, size and policy."""
    return table(
        ("document", "state", "revision", "ACL revision", "chunks", "ACL", "title"),
        [
            (item.doc_id, item.state, str(item.revision), str(item.acl_revision), str(item.chunks), *_policy(item))
            for item in rows
        ],
    )


def _policy(item: DocumentStatus) -> tuple[str, str]:
    return ", ".join(item.acl) if item.acl else "(nobody)", item.title or ""


def fields_text(value: dict[str, object]) -> str:
    """Return one line a field, the schema left out."""
    rows = [(name, _plain(item)) for name, item in value.items() if name != "schema"]
    most = max(len(name) for name, _ in rows)
    return "".join(f"{name.ljust(most)}  {item}\n" for name, item in rows)


def _plain(item: object) -> str:
    if isinstance(item, list):
        return safe(", ".join(map(str, item))) or "-"
    if isinstance(item, dict):
        return safe(", ".join(f"{name} {said}" for name, said in item.items() if said is not None)) or "-"
    return "-" if item is None else safe(str(item)).replace("\n", " ")
