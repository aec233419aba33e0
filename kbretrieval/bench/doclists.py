"""Sorted occurrences → the bytes of FTS5's doclists, all terms of a range at once.

A doclist has, for each chunk, the distance of its key from the one before (the key itself at the beginning), twice the
number of bytes of its places, and the places: the first one, then distances, each plus two. A term stands before its
doclist as (bytes shared with the term before, number of further bytes, further bytes). Numbers are SQLite's varints.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kbretrieval.bench.occurrences import KEY_BITS, PLACE_BITS, Ints, SortedTerms

Bytes = NDArray[np.uint8]

_MAIN = b"0"  # every term of the index proper begins with it; other bytes are for prefix indexes


def varint(value: int) -> bytes:
    """Return a number below 2^56 as SQLite writes it: seven bits a byte, the highest first, a flag on all but the last.

    Example:
        >>> varint(5).hex(), varint(300).hex()
        ('05', '822c')
    """
    parts = [value & 0x7F]
    while value := value >> 7:
        parts.append(value & 0x7F | 0x80)
    return bytes(reversed(parts))


@dataclass(frozen=True, slots=True)
class Terms:
    """Distinct terms of a range, ascending, as FTS5 keys them; and the bytes that each shares with the one before."""

    spelled: Bytes
    sizes: Ints
    shared: Ints

    def whole(self, number: int) -> bytes:
        """Return one term."""
        return self.spelled[number, : self.sizes[number]].tobytes()


@dataclass(frozen=True, slots=True)
class Doclists:
    """Terms and doclists one after the other, as they stand in the middle of a page.

    `data` holds entries, one a chunk of a term: `at` is where each begins, and where the last one ends; `after_key`
    where the distance of its key ends; `keys` the key itself. `firsts` are the entries that begin with a term,
    `after_term` is where that ends.
    """

    data: bytes
    at: Ints
    after_key: Ints
    keys: Ints
    firsts: Ints
    after_term: Ints


def keyed_terms(given: SortedTerms, before: bytes) -> Terms:
    """Return the terms of a range; `before` is the last term of the range before, empty if there is none."""
    spelled = np.concatenate([np.full((len(given.sizes), 1), ord(_MAIN), np.uint8), given.spelled], axis=1)
    previous = np.zeros_like(spelled)
    previous[1:] = spelled[:-1]
    known = np.frombuffer(before[: previous.shape[1]], np.uint8)
    previous[0, : len(known)] = known
    same = np.logical_and.accumulate((previous == spelled) & (spelled > 0), axis=1)
    return Terms(spelled, given.sizes + 1, np.count_nonzero(same, axis=1))


def doclists(given: SortedTerms, terms: Terms) -> Doclists:
    """Return the doclists of a range of terms."""
    chunks = (given.occurring >> np.uint64(PLACE_BITS)).astype(np.int64)
    begins = np.flatnonzero(np.append(True, chunks[1:] != chunks[:-1]))
    numbers = chunks[begins] >> KEY_BITS
    keys = chunks[begins] & ((1 << KEY_BITS) - 1)
    firsts = np.flatnonzero(np.append(True, numbers[1:] != numbers[:-1]))
    steps = np.diff(keys, prepend=0)
    steps[firsts] = keys[firsts]
    # A place is below 256, a move below 224: a chunk has at most 220 terms.
    places = given.occurring.astype(np.uint8)
    moves = np.diff(places, prepend=np.uint8(0)) + np.uint8(2)
    moves[begins] = places[begins] + np.uint8(2)
    return _assembled(terms, firsts, keys, steps, moves, np.append(begins, len(places)))


def _assembled(terms: Terms, firsts: Ints, keys: Ints, steps: Ints, moves: Bytes, bounds: Ints) -> Doclists:
    """Lay entries out and write them; the places of entry n are `moves[bounds[n] : bounds[n + 1]]`."""
    moves_until = np.append(0, np.cumsum(_varint_sizes(moves), dtype=np.int64))
    lists = np.diff(moves_until[bounds])
    term_sizes = np.zeros(len(keys), np.int64)
    term_sizes[firsts] = 2 + terms.sizes - terms.shared
    step_sizes, list_sizes = _varint_sizes(steps), _varint_sizes(lists * 2)
    at = np.append(0, np.cumsum(term_sizes + step_sizes + list_sizes + lists))
    after_term = at[:-1] + term_sizes
    after_key = after_term + step_sizes
    target = np.empty(int(at[-1]), np.uint8)
    _put_terms(target, at[firsts], terms)
    _put_varints(target, after_key, steps)
    _put_varints(target, after_key + list_sizes, lists * 2)
    _put_varints(target, moves_until[1:] + np.repeat(at[1:] - moves_until[bounds[1:]], np.diff(bounds)), moves)
    return Doclists(target.tobytes(), at, after_key, keys, firsts, after_term[firsts])


def _varint_sizes(values: NDArray[Any]) -> Bytes:
    sizes = (values > 0x7F).astype(np.uint8) + np.uint8(1)
    largest, bits = int(values.max()), 14
    while largest >> bits:
        sizes += values >> bits > 0
        bits += 7
    return sizes


def _put_varints(target: Bytes, ends: Ints, values: NDArray[Any]) -> None:
    """Write varints so that each ends before its place in `ends`."""
    last = ends - 1
    target[last] = values & 0x7F
    while len(longer := np.flatnonzero(values > 0x7F)):
        last, values = last[longer] - 1, values[longer] >> 7
        target[last] = values & 0x7F | 0x80


def _put_terms(target: Bytes, at: Ints, terms: Terms) -> None:
    target[at] = terms.shared
    target[at + 1] = terms.sizes - terms.shared
    for column in range(terms.spelled.shape[1]):
        written = np.flatnonzero((column >= terms.shared) & (column < terms.sizes))
        target[at[written] + 2 + column - terms.shared[written]] = terms.spelled[written, column]
