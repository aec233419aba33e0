"""Derived rows of many synthetic documents at once: the values of `upsert`, worked out column by column.

`upsert` projects, cuts and analyses one text after another, about a millisecond a chunk; a million chunks would take
a quarter of an hour. Synthetic sources (`texts.source`) are simple: one heading, lines without a blank line, and so
long that every window has exactly 220 code points; ideographs, small letters and digits, and five separators. So a
batch of windows is one matrix of code points, and posting lists and FTS5 texts come from comparing each code point
with its neighbours. The rules are those of `analysis.terms` and `chunking.windows`; tests compare the results with
theirs, and whole files with those that `upsert` wrote. A source of another form is refused.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kbretrieval.analysis import term_code
from kbretrieval.chunking import DEFAULT_OVERLAP, DEFAULT_SIZE
from kbretrieval.errors import ClaimFailed
from kbretrieval.projection import Heading, Projection, digest
from kbretrieval.store.chunk_rows import CODE, COUNT

STRIDE = DEFAULT_SIZE - DEFAULT_OVERLAP
_SEPARATOR, _IDEOGRAPH, _LETTER = 1, 2, 3  # 0: a code point that no synthetic text holds
_SEPARATORS = "# \n，。"
_LETTERS = "0123456789abcdefghijklmnopqrstuvwxyz"
_IDEOGRAPHS = slice(0x4E00, 0xA000)
_NONE = np.iinfo(np.int64).max  # sorts behind every term's code

Points = NDArray[np.uint32]
Flags = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class ChunkColumns:
    """Columns of n chunks: text, its digest, length in terms, blobs of codes and of counts, text of the FTS5 row."""

    texts: list[str]
    digests: list[str]
    lengths: list[int]
    codes: list[bytes]
    counts: list[bytes]
    terms: list[str]


@dataclass(frozen=True, slots=True)
class _Marks:
    """Where terms stand in rows of code points, each of shape (n, 220).

    `pair`: an ideograph with one behind it, a term of two; `single`: an ideograph alone; `begin` and `end`: the first
    and the last letter of a word; `letter`: any of them.
    """

    pair: Flags
    single: Flags
    begin: Flags
    end: Flags
    letter: Flags


def _kinds() -> NDArray[np.uint8]:
    kinds = np.zeros(1 << 16, np.uint8)
    kinds[_IDEOGRAPHS] = _IDEOGRAPH
    kinds[[ord(character) for character in _LETTERS]] = _LETTER
    kinds[[ord(character) for character in _SEPARATORS]] = _SEPARATOR
    return kinds


_KIND_OF = _kinds()


def projected(source: str) -> Projection:
    """Return the projection of a synthetic source: it is its own body, and its first line is its one heading.

    Example:
        >>> from kbretrieval.bench.texts import vocabulary, source
        >>> from kbretrieval.projection import project
        >>> made = source(vocabulary(7, 100), 0, 2)
        >>> projected(made) == project(made, "markdown")
        True
    """
    title = source[2 : source.index("\n")]
    sha256 = digest(source)
    return Projection(title, source, (Heading(0, 1, title),), sha256, sha256, 0)


def window_count(body: str) -> int:
    """Return the number of windows of a synthetic body; `claim_failed` where the last one is not full.

    Example:
        >>> window_count("字" * 400)
        2
    """
    count, left = divmod(len(body) - DEFAULT_OVERLAP, STRIDE)
    if left or count < 1:
        raise ClaimFailed(f"a body of whole windows is required, one of {len(body)} code points given")
    return count


def chunk_columns(bodies: Sequence[str]) -> ChunkColumns:
    """Return the columns of all chunks of some bodies, document by document.

    Raises `claim_failed` for a body that `texts.source` would not make.

    Example:
        >>> made = chunk_columns([("# 制度\\n\\n" + "年假，e0421。" * 24)[:220]])
        >>> made.lengths, made.terms[0][:11]
        ([49], '制度 年假 e0421')
    """
    spans = [(body, start * STRIDE) for body in bodies for start in range(window_count(body))]
    texts = [body[start : start + DEFAULT_SIZE] for body, start in spans]
    points = np.frombuffer("".join(texts).encode("utf-32-le"), "<u4").reshape(-1, DEFAULT_SIZE)
    marks = _marked(points)
    lengths, codes, counts = _posting_lists(_placed_codes(points, marks, texts))
    digests, terms = list(map(digest, texts)), _term_texts(points, marks)
    return ChunkColumns(texts, digests, lengths, codes, counts, terms)


def _marked(points: Points) -> _Marks:
    around = np.full((len(points), DEFAULT_SIZE + 2), _SEPARATOR, np.uint8)  # a window begins and ends runs
    if points.max() >= len(_KIND_OF):
        raise ClaimFailed("only the characters of synthetic texts are allowed, another given")
    around[:, 1:-1] = _KIND_OF[points]
    if not around.all():
        raise ClaimFailed("only the characters of synthetic texts are allowed, another given")
    ideograph, letter = around == _IDEOGRAPH, around == _LETTER
    here, before, after = ideograph[:, 1:-1], ideograph[:, :-2], ideograph[:, 2:]
    return _Marks(
        pair=here & after,
        single=here & ~before & ~after,
        begin=letter[:, 1:-1] & ~letter[:, :-2],
        end=letter[:, 1:-1] & ~letter[:, 2:],
        letter=letter[:, 1:-1],
    )


def _placed_codes(points: Points, marks: _Marks, texts: Sequence[str]) -> NDArray[np.int64]:
    """Return at the place where a term begins its code, elsewhere the largest integer, shape (n, 220).

    Terms of ideographs are packed as `analysis.term_code` packs them.
    """
    codes = np.full(points.shape, _NONE, np.int64)
    wide = points.astype(np.int64)
    pairs = wide << 21
    pairs[:, :-1] |= wide[:, 1:]
    np.copyto(codes, pairs, where=marks.pair)
    np.copyto(codes, wide, where=marks.single)
    rows, starts = np.nonzero(marks.begin)
    ends = np.nonzero(marks.end)[1] + 1
    spans = zip(rows.tolist(), starts.tolist(), ends.tolist(), strict=True)
    words = [texts[row][start:end] for row, start, end in spans]
    coded = {word: term_code(word) for word in set(words)}
    codes[rows, starts] = [coded[word] for word in words]
    return codes


def _posting_lists(codes: NDArray[np.int64]) -> tuple[list[int], list[bytes], list[bytes]]:
    """Return lengths, and blobs of distinct codes and of their counts, of rows of codes."""
    ordered = np.sort(codes, axis=1)
    held = ordered != _NONE
    lengths = np.count_nonzero(held, axis=1)
    first = held.copy()
    first[:, 1:] &= ordered[:, 1:] != ordered[:, :-1]
    sizes = np.count_nonzero(first, axis=1)
    begins = np.nonzero(first)[1]
    ends = np.empty_like(begins)
    ends[:-1] = begins[1:]
    ends[np.cumsum(sizes) - 1] = lengths
    blobs = _cut(ordered[first].astype(CODE).tobytes(), sizes * CODE.itemsize)
    return lengths.tolist(), list(blobs), list(_cut((ends - begins).astype(COUNT).tobytes(), sizes * COUNT.itemsize))


def _term_texts(points: Points, marks: _Marks) -> list[str]:
    """Return the terms of each row in order, separated by blanks."""
    # Each place writes up to three characters: itself, the second half of its pair, and the blank behind its term.
    written = np.full((*points.shape, 3), ord(" "), np.dtype("<u4"))
    written[:, :, 0] = points
    written[:, :-1, 1] = points[:, 1:]
    kept = np.empty(written.shape, np.bool_)
    kept[:, :, 2] = marks.pair | marks.single
    kept[:, :, 0] = kept[:, :, 2] | marks.letter
    kept[:, :, 1] = marks.pair
    kept[:, :, 2] |= marks.end
    sizes = np.count_nonzero(kept, axis=(1, 2))
    return [blob[:-4].decode("utf-32-le") for blob in _cut(written[kept].tobytes(), sizes * 4)]


def _cut(joined: bytes, sizes: NDArray[np.int64]) -> Iterator[bytes]:
    ends = np.cumsum(sizes).tolist()
    return (joined[start:end] for start, end in zip([0, *ends], ends, strict=False))
