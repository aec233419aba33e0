"""Where every term occurs, sorted by term: collected chunk by chunk, then read term by term.

An occurrence is one 64-bit integer: 32 bits of term, 24 of the chunk's key, 8 of its place in the chunk. Integers
ascend as FTS5 orders its index: terms by their UTF-8 bytes, which for ideographs is the order of code points, then
keys, then places. A million chunks have 190 million occurrences, so they wait in files, one a range of terms, without
a name and gone when they are closed.
"""

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from types import TracebackType
from typing import IO, Self

import numpy as np
from numpy.typing import NDArray

from kbretrieval.bench.rows import ChunkColumns
from kbretrieval.errors import ClaimFailed

PLACE_BITS, KEY_BITS = 8, 24
TERM_SHIFT = np.uint64(PLACE_BITS + KEY_BITS)
_RANGES = 64
_AT_ONCE = 1 << 17  # occurrences, unless one term alone has more
_FIRST_IDEOGRAPH = 0x4E00
_POINT_BITS = 16
_PACKED_BITS = 21  # those of one code point in `analysis.term_code`

Occurring = NDArray[np.uint64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class SortedTerms:
    """All occurrences of a range of terms, ascending, and the terms themselves in UTF-8, zero padded.

    `spelled`: shape (terms, longest term in bytes); `sizes`: bytes of each.
    """

    occurring: Occurring
    spelled: NDArray[np.uint8]
    sizes: Ints


class Occurrences:
    """Occurrences of the terms of synthetic chunks; a context, because they wait in files in `folder`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._stack = ExitStack()
        self._files: list[IO[bytes]] = []
        self._bounds: Occurring = np.zeros(0, np.uint64)
        self._words: dict[int, str] = {}
        self._of_words: list[tuple[Ints, Ints]] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, at: TracebackType | None) -> None:
        self._stack.close()

    def add(self, keys: Sequence[int], columns: ChunkColumns) -> None:
        """Take the occurrences of some chunks by their ascending keys; `claim_failed` for a key of 2^24 or more."""
        if keys[-1] >> KEY_BITS:
            raise ClaimFailed(f"keys below {1 << KEY_BITS} are required, {keys[-1]} given")
        codes, lengths = columns.occurring, np.array(columns.lengths, np.int64)
        begins = np.repeat(np.cumsum(lengths) - lengths, lengths)
        where = np.repeat(np.array(keys, np.int64), lengths) << PLACE_BITS | (np.arange(len(codes)) - begins)
        alone = codes >> _PACKED_BITS == 0
        heads = np.where(alone, codes, codes >> _PACKED_BITS)
        tails = np.where(alone, 0, codes & ((1 << _PACKED_BITS) - 1))
        ideographs = (heads >= _FIRST_IDEOGRAPH) & (heads < 1 << _POINT_BITS)
        terms = (heads << _POINT_BITS | tails)[ideographs].astype(np.uint64)
        self._keep(np.sort(terms << TERM_SHIFT | where[ideographs].astype(np.uint64)))
        self._words.update(columns.words)
        self._of_words.append((codes[~ideographs], where[~ideographs]))

    def _keep(self, ordered: Occurring) -> None:
        if not self._files:
            # The first chunks show how often terms occur, so that ranges become about equally large.
            steps = np.linspace(0, len(ordered) - 1, _RANGES + 1).astype(np.int64)[1:-1]
            self._bounds = np.unique(ordered[steps] >> TERM_SHIFT << TERM_SHIFT)
            for _ in range(len(self._bounds) + 1):
                self._files.append(self._stack.enter_context(tempfile.TemporaryFile(dir=self._folder)))  # noqa: SIM115
        cuts = [0, *np.searchsorted(ordered, self._bounds).tolist(), len(ordered)]
        for file, (begin, end) in zip(self._files, pairwise(cuts), strict=True):
            file.write(ordered[begin:end].data)

    def by_term(self) -> Iterator[SortedTerms]:
        """Yield every occurrence by ranges of terms: words first, then the ideographs."""
        if self._words:
            yield self._sorted_words()
        waiting = bytearray()
        for number, file in enumerate(self._files, 1):
            file.seek(0)
            waiting += file.read()
            if len(waiting) >= _AT_ONCE * 8 or (waiting and number == len(self._files)):
                occurring = np.frombuffer(waiting, np.uint64)
                occurring.sort()
                for piece in _pieces(occurring):
                    yield SortedTerms(piece, *_spelled_ideographs(piece))
                waiting = bytearray()

    def _sorted_words(self) -> SortedTerms:
        codes = np.concatenate([codes for codes, _ in self._of_words])
        where = np.concatenate([where for _, where in self._of_words])
        in_order = np.array(sorted(self._words, key=self._words.__getitem__), np.int64)
        by_code = np.argsort(in_order)
        ranks = by_code[np.searchsorted(in_order[by_code], codes)]
        terms = [self._words[code].encode("ascii") for code in in_order.tolist()]
        spelled = np.array(terms, np.bytes_).view(np.uint8).reshape(len(terms), -1)
        occurring = ranks.astype(np.uint64) << TERM_SHIFT | where.astype(np.uint64)
        return SortedTerms(np.sort(occurring), spelled, np.array(list(map(len, terms)), np.int64))


def _pieces(occurring: Occurring) -> list[Occurring]:
    """Cut sorted occurrences, never within a term, so that what is made of a piece stays in the processor's cache."""
    terms = occurring[_AT_ONCE::_AT_ONCE] >> TERM_SHIFT << TERM_SHIFT
    cuts = np.unique(np.searchsorted(occurring, terms))
    return np.split(occurring, cuts[cuts > 0])


def _spelled_ideographs(occurring: Occurring) -> tuple[NDArray[np.uint8], Ints]:
    """Return the distinct terms of one or two ideographs in UTF-8, three bytes each, and their sizes."""
    terms = occurring >> TERM_SHIFT
    distinct = terms[np.append(True, terms[1:] != terms[:-1])].astype(np.int64)
    heads, tails = distinct >> _POINT_BITS, distinct & ((1 << _POINT_BITS) - 1)
    spelled = np.empty((len(distinct), 6), np.uint8)
    for column, points in ((0, heads), (3, tails)):
        spelled[:, column] = 0xE0 | points >> 12
        spelled[:, column + 1] = 0x80 | points >> 6 & 0x3F
        spelled[:, column + 2] = 0x80 | points & 0x3F
    spelled[tails == 0, 3:] = 0
    return spelled, np.where(tails == 0, 3, 6)
