"""What the channels need of chunks, read without their texts and column by column: posting lists and int8 rows.

Opening a large index reads every row, so nothing here runs once a row.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kbretrieval.errors import IndexCorrupt
from kbretrieval.store.chunk_rows import CODE, COUNT
from kbretrieval.store.connection import Connection

Ints = NDArray[np.int64]
Column = Sequence[Any]


@dataclass(frozen=True, slots=True)
class CodedColumns:
    """int8 rows as they are stored: codes of shape (n, dimension), norms that bound their error, shape (n,), float32.

    Where a chunk has none, or none of this shape, the row is zero; `offered` tells where one is stored, `whole` where
    it has its shape.
    """

    codes: NDArray[np.int8]
    residuals: NDArray[np.float32]
    norms: NDArray[np.float32]
    offered: NDArray[np.bool_]
    whole: NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class SearchRows:
    """The search rows of n chunks.

    chunk_keys, lengths (terms), sizes (distinct terms): shape (n,). codes (int64, ascending within a chunk) and counts
    (uint16): those of all chunks, one after the other.
    """

    chunk_keys: Ints
    lengths: Ints
    sizes: Ints
    codes: Ints
    counts: NDArray[np.uint16]
    vectors: CodedColumns


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


def search_rows(connection: Connection, keys: Sequence[int], dimension: int) -> SearchRows:
    """Return the rows of some chunks in the order of the keys, which ascend; int8 rows of `dimension` codes.

    Raises `index_corrupt` where a chunk has no posting list, or one whose blobs do not fit each other.
    """
    rows = connection.run(
        "SELECT p.chunk_key, p.length, p.codes, p.counts, v.codes, v.residual, v.norm FROM json_each(?) wanted"
        " CROSS JOIN postings p ON p.chunk_key = wanted.value"
        " LEFT JOIN vector_codes v ON v.chunk_key = p.chunk_key",
        (json.dumps(list(keys)),),
    )
    if len(rows) != len(keys):
        raise IndexCorrupt(f"{len(keys)} posting lists are expected in the store, {len(rows)} are there")
    columns: list[Column] = list(zip(*rows, strict=True)) if rows else [()] * 7
    return columns_of(columns, dimension)


def columns_of(columns: Sequence[Column], dimension: int) -> SearchRows:
    """Return search rows from seven columns of equal length.

    They are chunk keys, lengths, code blobs, count blobs, and of the int8 rows code blobs, residuals and norms, the
    last three None where there is none.
    """
    keys, lengths, codes, counts = columns[:4]
    kinds = zip((keys, lengths, codes, counts), (int, int, bytes, bytes), strict=True)
    if any(set(map(type, column)) - {kind} for column, kind in kinds):
        raise IndexCorrupt("a stored posting list has a value of another type than its column")
    code_bytes = np.fromiter(map(len, codes), np.int64, len(keys))
    count_bytes = np.fromiter(map(len, counts), np.int64, len(keys))
    if (code_bytes % CODE.itemsize).any() or (code_bytes * COUNT.itemsize != count_bytes * CODE.itemsize).any():
        raise IndexCorrupt("a posting list's blobs of codes and of counts do not fit each other")
    return SearchRows(
        chunk_keys=np.array(keys, np.int64),
        lengths=np.array(lengths, np.int64),
        sizes=code_bytes // CODE.itemsize,
        codes=np.frombuffer(b"".join(codes), CODE),
        counts=np.frombuffer(b"".join(counts), COUNT),
        vectors=_coded(columns[4:], dimension),
    )


def _coded(columns: Sequence[Column], dimension: int) -> CodedColumns:
    blobs, residuals, norms = columns
    count = len(blobs)
    offered = np.fromiter((blob is not None for blob in blobs), np.bool_, count)
    whole = offered
    if not _usual(columns, dimension):
        blank, kept = bytes(dimension), [_is_whole(row, dimension) for row in zip(*columns, strict=True)]
        blobs = [blob if fits else blank for blob, fits in zip(blobs, kept, strict=True)]
        residuals = [value if fits else 0.0 for value, fits in zip(residuals, kept, strict=True)]
        norms = [value if fits else 0.0 for value, fits in zip(norms, kept, strict=True)]
        whole = np.array(kept, np.bool_)
    return CodedColumns(
        np.frombuffer(b"".join(blobs), np.int8).reshape(count, dimension),
        np.array(residuals, np.float32),
        np.array(norms, np.float32),
        offered,
        whole,
    )


def _usual(columns: Sequence[Column], dimension: int) -> bool:
    """Tell whether every row is whole, all at once."""
    kinds = [set(map(type, column)) for column in columns]
    return kinds == [{bytes}, {float}, {float}] and set(map(len, columns[0])) == {dimension}


def _is_whole(row: tuple[object, ...], dimension: int) -> bool:
    blob, residual, norm = row
    return type(blob) is bytes and len(blob) == dimension and type(residual) is float and type(norm) is float
