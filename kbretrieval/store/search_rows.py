"""What the channels need of a chunk, read without its text: posting list and int8 vector row."""

import json
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kbretrieval.errors import IndexCorrupt
from kbretrieval.store.chunk_rows import CODE, COUNT
from kbretrieval.store.connection import Connection, Row
from kbretrieval.store.documents import expect

Ints = NDArray[np.int64]


class SearchRow(NamedTuple):
    """One chunk's length in terms, its term codes and counts as blobs, and its vector codes with their two norms.

    `vector` is None without a vector, and empty where what is stored is no int8 row.
    """

    chunk_key: int
    length: int
    codes: bytes
    counts: bytes
    vector: bytes | None
    residual: float
    norm: float


def search_keys(connection: Connection, tenant: str, since: int) -> tuple[Ints, Ints]:
    """Return (chunk keys, document keys) of live documents whose content is younger than commit `since`, by key.

    Answered by indexes alone; no text, no blob.
    """
    rows = connection.run(
        "SELECT c.chunk_key, c.doc_key FROM documents d CROSS JOIN chunks c ON c.doc_key = d.doc_key"
        " WHERE d.tenant = ? AND d.live = 1 AND d.content_commit > ? AND max(d.content_commit, d.acl_commit) > ?",
        (tenant, since, since),
    )
    found = np.array(rows, np.int64).reshape(len(rows), 2)
    ordered = found[np.argsort(found[:, 0])]
    return ordered[:, 0].copy(), ordered[:, 1].copy()


def search_rows(connection: Connection, keys: Sequence[int]) -> list[SearchRow]:
    """Return the rows of some chunks in the order of the keys, which ascend.

    Raises `index_corrupt` where one has no posting list, or one whose blobs do not fit each other.
    """
    rows = connection.run(
        "SELECT p.chunk_key, p.length, p.codes, p.counts, v.codes, v.residual, v.norm FROM json_each(?) wanted"
        " CROSS JOIN postings p ON p.chunk_key = wanted.value"
        " LEFT JOIN vector_codes v ON v.chunk_key = p.chunk_key",
        (json.dumps(list(keys)),),
    )
    if len(rows) != len(keys):
        raise IndexCorrupt(f"{len(keys)} posting lists are expected in the store, {len(rows)} are there")
    if {tuple(map(type, row)) for row in rows} <= _USUAL:  # all at once: opening a large index reads every row
        made = [SearchRow._make(row if row[4] is not None else (*row[:5], 0.0, 0.0)) for row in rows]
    else:
        made = [_odd_row(row) for row in rows]
    if any(
        len(row.codes) % CODE.itemsize or len(row.codes) * COUNT.itemsize != len(row.counts) * CODE.itemsize
        for row in made
    ):
        raise IndexCorrupt("a posting list's blobs of codes and of counts do not fit each other")
    return made


_NO_VECTOR = (type(None), type(None), type(None))
_USUAL = frozenset({(int, int, bytes, bytes, bytes, float, float), (int, int, bytes, bytes, *_NO_VECTOR)})


def _odd_row(row: Row) -> SearchRow:
    key, length, codes, counts = expect(row[:4], (int, int, bytes, bytes), "posting list")
    vector, residual, norm = row[4:]
    if vector is None:
        return SearchRow(key, length, codes, counts, None, 0.0, 0.0)
    if not isinstance(vector, bytes) or type(residual) is not float or type(norm) is not float:
        return SearchRow(key, length, codes, counts, b"", 0.0, 0.0)
    return SearchRow(key, length, codes, counts, vector, residual, norm)
