"""The rows that one caller may read, and what each channel wants to know of them, worked out once (ACL, PRF-6).

A view belongs to one snapshot and one set of ACLs; it is kept with the snapshot, so that the next search by somebody
with the same rights finds it ready. Its work and its size follow the eligible rows, not those that are hidden.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from kbretrieval.encoders.quantizer import CodedRows, Codes
from kbretrieval.snapshot.segment import Ints, Segment

Mask = NDArray[np.bool_]
Floats = NDArray[np.float64]

BLOCK_ROWS = 8_192
KEPT_COPY_BYTES = 16 * 2**20


@dataclass(frozen=True, slots=True)
class Part:
    """Some eligible rows with a vector, `begin` to `end` in the view's order; few enough for a cache.

    stretch: the codes of all rows from the first to the last of them, or a copy of just theirs. places: where they are
    in the stretch, None where they are all of it.
    """

    begin: int
    end: int
    stretch: Codes
    places: Ints | None

    @property
    def scattered(self) -> bool:
        """Tell whether less than half of the stretch is wanted: then a copy costs less than passing over it."""
        return 2 * (self.end - self.begin) < len(self.stretch)

    def codes(self) -> Codes:
        """Return the codes to multiply: those of the stretch, or a copy of the wanted ones if they are scattered."""
        return self.stretch[self.places] if self.scattered else self.stretch

    def wanted(self, values: Floats) -> Floats:
        """Return the wanted rows' values out of one a row of `codes()`."""
        return values if self.places is None or self.scattered else values[self.places]


@dataclass(frozen=True, slots=True)
class CodedView:
    """The eligible rows that have a vector, ascending, with the norms of their int8 rows and the largest; in parts."""

    rows: Ints
    residuals: NDArray[np.float32]
    norms: NDArray[np.float32]
    parts: tuple[Part, ...]
    widest_residual: np.float32
    widest_norm: np.float32


@dataclass(frozen=True, slots=True)
class Eligible:
    """The rows that one context may read, as a mask over all rows and ascending.

    relative_lengths: of every row, its length divided by the mean length of the eligible ones; shape of the mask.
    damaged: how many of the eligible rows have a vector that cannot be used.
    """

    mask: Mask
    rows: Ints
    relative_lengths: Floats
    damaged: int
    segments: tuple[Segment, ...] = field(repr=False)
    _coded: list[CodedView] = field(default_factory=list, compare=False, repr=False)

    @property
    def count(self) -> int:
        """Their number."""
        return len(self.rows)

    def coded(self) -> CodedView:
        """Return what the dense channel scans; made by the first search that needs it."""
        if not self._coded:
            self._coded.append(_coded_view(self.rows, self.segments))
        return self._coded[0]


def view_of(mask: Mask, segments: Sequence[Segment]) -> Eligible:
    """Return the rows that a mask over all rows allows; lengths are relative to their mean (1 where all are empty)."""
    rows = np.flatnonzero(mask)
    lengths = np.concatenate([np.zeros(0, np.int64), *(segment.lengths for segment in segments)])
    damaged = np.concatenate([np.zeros(0, np.bool_), *(segment.damaged for segment in segments)])
    total = int(lengths[rows].sum())
    relative = lengths / (total / len(rows) if total else 1.0)
    return Eligible(mask, rows, relative, int(np.count_nonzero(damaged[rows])), tuple(segments))


def _coded_view(rows: Ints, segments: Sequence[Segment]) -> CodedView:
    held: list[Ints] = [np.zeros(0, np.int64)]
    residuals, norms = [np.zeros(0, np.float32)], [np.zeros(0, np.float32)]
    parts: list[Part] = []
    base = begin = copied = 0
    for segment in segments:
        first, last = np.searchsorted(rows, (base, base + len(segment)))
        here = rows[first:last] - base
        here = here[segment.has_vector[here]]
        for part in _parts(here, segment.vectors, begin):
            copied += (part.end - part.begin) * part.stretch.shape[1] * part.scattered
            keep = part.scattered and copied <= KEPT_COPY_BYTES
            parts.append(Part(part.begin, part.end, part.codes(), None) if keep else part)
        held.append(here + base)
        residuals.append(segment.vectors.residuals[here])
        norms.append(segment.vectors.norms[here])
        begin += len(here)
        base += len(segment)
    residual, norm = np.concatenate(residuals), np.concatenate(norms)
    widest = residual.max(initial=np.float32(0)), norm.max(initial=np.float32(0))
    return CodedView(np.concatenate(held), residual, norm, tuple(parts), *widest)


def _parts(here: Ints, vectors: CodedRows, begin: int) -> Iterator[Part]:
    for at in range(0, len(here), BLOCK_ROWS):
        places = here[at : at + BLOCK_ROWS]
        first, last = int(places[0]), int(places[-1]) + 1
        whole = last - first == len(places)
        yield Part(begin + at, begin + at + len(places), vectors.codes[first:last], None if whole else places - first)
