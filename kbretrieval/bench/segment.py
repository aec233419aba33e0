"""An FTS5 index as one segment, written without FTS5, whose hash table would take two thirds of all filling.

FTS5 needs more than a microsecond a token, and a chunk has nearly 200. Occurrences that are sorted already need neither
a hash table nor merging. The records are those that FTS5 itself writes, by the format that stands at the head of its
source file `fts5_index.c` (version 4, that of every SQLite since 3.9.0); tests let FTS5 check them ('integrity-check')
and read every occurrence back (`fts5vocab`).

A leaf page has two 16-bit numbers (where its first key stands if that comes before any term, else 0, and where its
footer begins), terms with doclists, and in the footer the distances of its terms. Its first term stands whole, and so
does its first key. Of each page with a term, `chunks_fts_idx` holds as much of the first one as tells it from the term
before. Where a doclist fills four pages without any term or more, a record of its own lists their first keys.
"""

from collections.abc import Sequence
from struct import pack_into

import numpy as np

from kbretrieval.bench.doclists import Doclists, Terms, doclists, keyed_terms, varint
from kbretrieval.bench.occurrences import SortedTerms
from kbretrieval.bench.rows import ChunkColumns
from kbretrieval.errors import IndexCorrupt
from kbretrieval.store.connection import Connection
from kbretrieval.store.schema import FTS_TABLE

_PAGE = 4050 - 24  # FTS5's own page size, less the header and what a whole first key and first term add
_HEADER = 4
_SEGMENT = 1
_SEGMENT_SHIFT, _OF_DOCLIST = 37, 1 << 36
_AVERAGES, _STRUCTURE = 1, 10
_TERMLESS = 4
_DISTANCES = tuple(map(varint, range(_PAGE + 64)))


def may_be_written(connection: Connection) -> bool:
    """Tell whether FTS5's own tables can be written; a SQLite in its defensive mode refuses (some systems' own)."""
    try:
        connection.run(f"DELETE FROM {FTS_TABLE}_idx WHERE segid < 0")
    except IndexCorrupt:
        return False
    return True


class Segment:
    """The one segment of an index's FTS5 table, written range by range of its terms."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._before = b""
        self._pages = 0
        self._data: list[tuple[int, bytes]] = []
        self._apart: list[tuple[int, bytes, int]] = []
        self._described: tuple[int, bytes] | None = None  # the last page with a term: its number, what tells it apart
        self._going_on: list[tuple[int, int]] = []  # pages since then with their first keys
        self._termless = 0

    def write(self, given: SortedTerms) -> None:
        """Write the pages of the next terms."""
        terms = keyed_terms(given, self._before)
        lists = doclists(given, terms)
        costs = np.diff(lists.at)
        costs[lists.firsts] += 2  # a distance in the footer
        until = np.cumsum(costs)
        begin, reached = 0, 0
        while begin < len(costs):
            end = int(np.searchsorted(until, reached + _PAGE, side="right"))
            self._leaf(lists, terms, begin, end)
            begin, reached = end, int(until[end - 1])
        self._before = terms.whole(-1)
        self._flush()

    def _flush(self) -> None:
        self._connection.run_many(f"REPLACE INTO {FTS_TABLE}_data VALUES (?, ?)", self._data)
        self._connection.run_many(f"INSERT INTO {FTS_TABLE}_idx VALUES (?, ?, ?)", self._apart)
        self._data.clear()
        self._apart.clear()

    def _leaf(self, lists: Doclists, terms: Terms, begin: int, end: int) -> None:
        """Write one page of the entries from `begin` up to `end`."""
        self._pages += 1
        first, last = np.searchsorted(lists.firsts, (begin, end)).tolist()
        goes_on = first == last or int(lists.firsts[first]) > begin
        page, start, footer = bytearray(_HEADER), int(lists.at[begin]), b""
        if goes_on:
            key = int(lists.keys[begin])
            self._going_on.append((self._pages, key))
            page += varint(key)
            start = int(lists.after_key[begin])
        if first == last:
            self._termless += 1
        else:
            term = terms.whole(first)
            page += lists.data[start : lists.at[lists.firsts[first]]]
            distances = np.diff(lists.at[lists.firsts[first:last]])
            whole, start = varint(len(term)) + term, int(lists.after_term[first])
            distances[:1] += len(whole) - (start - int(lists.at[lists.firsts[first]]))
            footer = b"".join(map(_DISTANCES.__getitem__, (len(page), *distances.tolist())))
            page += whole
            self._describe((self._pages, term[: terms.shared[first] + 1] if self._pages > 1 else b""))
        page += lists.data[start : lists.at[end]]
        pack_into(">HH", page, 0, _HEADER if goes_on else 0, len(page))
        self._data.append((_SEGMENT << _SEGMENT_SHIFT | self._pages, bytes(page + footer)))

    def _describe(self, page: tuple[int, bytes] | None) -> None:
        """Note a page with a term, and write what is known of the one before."""
        if self._described is not None:
            number, apart = self._described
            listed = self._termless >= _TERMLESS
            if listed:
                keys = np.diff([key for _, key in self._going_on], prepend=0).tolist()
                record = b"\0" + varint(self._going_on[0][0]) + b"".join(map(varint, keys))
                self._data.append((_SEGMENT << _SEGMENT_SHIFT | _OF_DOCLIST | number, record))
            self._apart.append((_SEGMENT, apart, number << 1 | listed))
        self._described = page
        self._going_on.clear()
        self._termless = 0

    def finish(self, chunks: int, tokens: int) -> None:
        """Write what opens the segment: the structure, and the totals behind FTS5's averages."""
        self._describe(None)
        # As high as FTS5 would have merged it, four segments into one: later small segments are merged below it.
        level = (self._pages.bit_length() + 1) // 2
        empty = varint(0) * 2
        segment = b"".join(map(varint, (0, 1, _SEGMENT, 1, self._pages)))
        structure = bytes(4) + b"".join(map(varint, (level + 1, 1, self._pages))) + empty * level + segment
        self._data += [(_STRUCTURE, structure), (_AVERAGES, varint(chunks) + varint(tokens))]
        self._flush()


def write_contents(connection: Connection, keys: Sequence[int], columns: ChunkColumns) -> None:
    """Write the texts of FTS5 rows and their lengths in terms."""
    connection.run_many(f"INSERT INTO {FTS_TABLE}_content VALUES (?, ?)", list(zip(keys, columns.terms, strict=True)))
    connection.run_many(
        f"INSERT INTO {FTS_TABLE}_docsize VALUES (?, ?)",
        [(key, varint(length)) for key, length in zip(keys, columns.lengths, strict=True)],
    )
