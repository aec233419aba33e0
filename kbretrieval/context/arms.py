"""The arms of a comparison: equal budgets of source text, counted in code points and filled to the last one; pure."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

from kbretrieval.context.selection import Piece
from kbretrieval.errors import ContextArmUnfilled, ContextInputInvalid

ArmName = Literal["full_text", "index", "both"]

ARMS: tuple[ArmName, ...] = ("full_text", "index", "both")
MAX_POINTS = 1_000_000


def checked_points(points: object) -> int:
    """Return a budget of code points, from 2, so that both halves of the arm `both` have something."""
    if type(points) is not int or not 2 <= points <= MAX_POINTS:
        raise ContextInputInvalid(f"points: an integer from 2 to {MAX_POINTS} is required, another value given")
    return points


def arms_of(full: Sequence[Piece], found: Sequence[Piece], points: int) -> Mapping[ArmName, tuple[Piece, ...]]:
    """Return the pieces of each arm: exactly `points` code points of distinct source text.

    full    the documents from their beginnings, in a fixed order
    found   stretches that a search found, best first

    `both` takes half from the search (the smaller half of an odd number) and the rest from the full text, what it has
    already left out. Raises `context_arm_unfilled`.

    Example:
        >>> made = arms_of([Piece("leave", 0, 90)], [Piece("refund", 8, 40), Piece("leave", 0, 30)], 60)
        >>> [[(piece.doc_id, piece.start, piece.end) for piece in made[name]] for name in ARMS]
        [[('leave', 0, 60)], [('refund', 8, 40), ('leave', 0, 28)], [('refund', 8, 38), ('leave', 0, 30)]]
    """
    half = filled("both", found, points // 2)
    return {
        "full_text": filled("full_text", full, points),
        "index": filled("index", found, points),
        "both": half + filled("both", full, points - points // 2, taken=half),
    }


def filled(arm: ArmName, pieces: Sequence[Piece], points: int, taken: Sequence[Piece] = ()) -> tuple[Piece, ...]:
    """Return the first `points` code points of some pieces with ends, none of them twice and none that was taken.

    The last piece is cut where the budget ends, be it inside a word. Raises `context_arm_unfilled`.

    Example:
        >>> [(piece.start, piece.end) for piece in filled("index", [Piece("a", 4, 9), Piece("a", 2, 12)], 8)]
        [(4, 9), (2, 4), (9, 10)]
    """
    made: list[Piece] = []
    left = points
    for piece in pieces:
        for start, end in tuple(_gaps(piece, (*taken, *made))):
            if left:
                made.append(Piece(piece.doc_id, start, min(end, start + left)))
                left -= min(end - start, left)
    if left:
        raise ContextArmUnfilled(f"{arm}: {points} code points are required, {points - left} found")
    return tuple(made)


def _gaps(piece: Piece, taken: Sequence[Piece]) -> Iterator[tuple[int, int]]:
    """Yield the stretches of a piece that no taken piece covers."""
    end = piece.end or 0
    held = sorted((item.start, item.end or 0) for item in taken if item.doc_id == piece.doc_id)
    at = piece.start
    for start, stop in (*held, (end, end)):
        if at < min(start, end):
            yield at, min(start, end)
        at = max(at, stop)
