"""Projection → chunks with coordinates (chapter 4).

A window of `size` code points walks over the projection. Where it does not reach the end it stops after the last
blank line in its second half, else at `size`; the next one starts `overlap` code points before that end. Neither end
falls inside an extended grapheme cluster (CHK-1…CHK-7). Linear in the length of the text.
"""

import re
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache

import regex

from kbretrieval.errors import InvalidChunkWindow, SourceTooLarge
from kbretrieval.projection import Heading, Projection, digest

CUTTER_VERSION = "window-grapheme/1"
MAX_WINDOW = 4096
MAX_CHUNKS = 200_000
DEFAULT_SIZE = 220
DEFAULT_OVERLAP = 40
BLANK_LINE = "\n\n"

# Between two of these there is always a cluster boundary: line feed, printable ASCII, Han and CJK punctuation.
_SIMPLE = r"[\n\x20-\x7E\u3001-\u3029\u4E00-\u9FFF\uFF01-\uFF60]"
_COMPLEX = _SIMPLE.replace("[", "[^", 1)
_COMPLEX_RUN = re.compile(f"{_COMPLEX}+(?:{_SIMPLE}{_COMPLEX}+)*")
# Flags are matched in pairs by hand: at each regional indicator \X looks back over the whole run of them (quadratic).
_CLUSTER = regex.compile(
    r"\p{GCB=Prepend}*+\p{GCB=Regional_Indicator}{2}[\p{GCB=Extend}\p{GCB=ZWJ}\p{GCB=SpacingMark}]*+|\X"
)

# The first code point that a version of Unicode assigned as a letter: tells which tables `regex` carries.
_FIRST_LETTERS = (("17.0", 0x323B0), ("16.0", 0x105C0), ("15.1", 0x2EBF0), ("15.0", 0x31350), ("14.0", 0x1DF00))


@cache
def unicode_version() -> str:
    """Return the version of Unicode whose tables the cutter and the analyzer use, as `major.minor`.

    Example:
        >>> float(unicode_version()) >= 14
        True
    """
    for version, point in _FIRST_LETTERS:
        if regex.fullmatch(r"\p{L}", chr(point)):
            return version
    return "13.0"


@dataclass(frozen=True, slots=True)
class Chunk:
    """A window of a projection: `text == body[start:end]`, code points; `sha256` of the text's UTF-8 bytes.

    `heading` is the one in force at the first code point, or the first one inside the window; `heading_path` are the
    headings above it, outermost first, itself last.
    """

    number: int
    start: int
    end: int
    text: str
    heading: str
    heading_path: tuple[str, ...]
    sha256: str


def checked_window(size: object, overlap: object) -> tuple[int, int]:
    """Return size and overlap in code points: 1 to 4096, and 0 to size - 1 (CHK-1), else `invalid_chunk_window`."""
    if type(size) is not int or type(overlap) is not int:
        raise InvalidChunkWindow(f"two integers are required, {type(size).__name__} and {type(overlap).__name__} given")
    if not 1 <= size <= MAX_WINDOW or not 0 <= overlap < size:
        # Python refuses to write out an integer of thousands of digits.
        given = f"{size} and {overlap}" if max(abs(size), abs(overlap)) < 10**12 else "others"
        raise InvalidChunkWindow(f"size 1 to {MAX_WINDOW} and overlap below size are required, {given} given")
    return size, overlap


class Clusters:
    """The grapheme clusters of a text that are longer than one code point, for asking where a cut may fall.

    Example:
        >>> Clusters("甲👍🏽").back(2)
        1
    """

    __slots__ = ("_ends", "_starts")

    def __init__(self, text: str) -> None:
        self._starts: list[int] = []
        self._ends: list[int] = []
        for run in _COMPLEX_RUN.finditer(text):
            # A simple character on either side may belong to a cluster that begins or ends in the run.
            for cluster in _CLUSTER.finditer(text, max(0, run.start() - 1), min(len(text), run.end() + 1)):
                if cluster.end() - cluster.start() > 1:
                    self._starts.append(cluster.start())
                    self._ends.append(cluster.end())

    def _around(self, position: int) -> tuple[int, int]:
        at = bisect_right(self._starts, position) - 1
        if at >= 0 and self._starts[at] < position < self._ends[at]:
            return self._starts[at], self._ends[at]
        return position, position

    def back(self, position: int) -> int:
        """Return the nearest boundary at or before `position`."""
        return self._around(position)[0]

    def forward(self, position: int) -> int:
        """Return the nearest boundary at or after `position`."""
        return self._around(position)[1]


def windows(body: str, size: int, overlap: int) -> list[tuple[int, int]]:
    """Return the windows `[start, end)` over a body, in code points.

    Every code point is covered and the last window ends at `len(body)`; an empty body has none (CHK-2, CHK-3, CHK-6).
    A cluster longer than `size` is cut at `size`. Raises `invalid_chunk_window`, and `source_too_large` before any
    cutting if more than 200,000 windows would be needed at least.

    Example:
        >>> windows("甲" * 10, 4, 1)
        [(0, 4), (3, 7), (6, 10)]
    """
    size, overlap = checked_window(size, overlap)
    length = len(body)
    least = -(-(length - overlap) // (size - overlap))
    if least > MAX_CHUNKS:
        raise SourceTooLarge(f"at most {MAX_CHUNKS} chunks are allowed, at least {least} would be needed")
    clusters = Clusters(body)
    made: list[tuple[int, int]] = []
    start = 0
    while start < length:
        end = _end(body, start, size, clusters)
        made.append((start, end))
        if len(made) > MAX_CHUNKS:
            raise SourceTooLarge(f"at most {MAX_CHUNKS} chunks are allowed, more would be needed")
        if end == length:
            break
        start = _next_start(start, end, overlap, clusters)
    return made


def _end(body: str, start: int, size: int, clusters: Clusters) -> int:
    limit = start + size
    if limit >= len(body):
        return len(body)
    blank = body.rfind(BLANK_LINE, start + size // 2, limit)
    wanted = limit if blank < 0 else blank + len(BLANK_LINE)
    boundary = clusters.back(wanted)
    return boundary if boundary > start else limit


def _next_start(start: int, end: int, overlap: int, clusters: Clusters) -> int:
    wanted = max(start + 1, end - overlap)
    boundary = clusters.back(wanted)
    return boundary if boundary > start else min(clusters.forward(wanted), end)


def heading_paths(starts_ends: Iterable[tuple[int, int]], headings: Sequence[Heading]) -> list[tuple[str, ...]]:
    """Return for each window the path of headings in force at its start, or of the first heading inside it.

    Example:
        >>> heading_paths([(0, 9), (9, 20)], [Heading(0, 1, "制度"), Heading(5, 2, "住宿")])
        [('制度',), ('制度', '住宿')]
    """
    paths: list[tuple[str, ...]] = []
    open_headings: list[Heading] = []
    at = 0
    for start, end in starts_ends:
        while at < len(headings) and headings[at].start <= start:
            open_headings = _opened(open_headings, headings[at])
            at += 1
        shown = open_headings
        if not shown and at < len(headings) and headings[at].start < end:
            shown = [headings[at]]
        paths.append(tuple(heading.text for heading in shown))
    return paths


def _opened(path: list[Heading], heading: Heading) -> list[Heading]:
    return [above for above in path if above.level < heading.level] + [heading]


def chunks(projection: Projection, size: int = DEFAULT_SIZE, overlap: int = DEFAULT_OVERLAP) -> tuple[Chunk, ...]:
    """Return the chunks of a projection (CHK-4).

    Example:
        >>> from kbretrieval.projection import project
        >>> [(c.start, c.end, c.heading) for c in chunks(project("# 制度\\n\\n" + "说明" * 8, "markdown"), 12, 2)]
        [(0, 12, '制度'), (10, 22, '制度')]
    """
    cut = windows(projection.body, size, overlap)
    paths = heading_paths(cut, projection.headings)
    made = []
    for number, ((start, end), path) in enumerate(zip(cut, paths, strict=True)):
        text = projection.body[start:end]
        made.append(Chunk(number, start, end, text, path[-1] if path else "", path, digest(text)))
    return tuple(made)
