"""Fingerprints: whether the rows of a generation are those that were recorded, told from content alone (CTX-11)."""

import hashlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from kbretrieval import Index
from kbretrieval.context import TaskContexts
from kbretrieval.migration import migrate
from kbretrieval.store import fingerprints
from kbretrieval.store.connection import Connection
from tests.context.place import BODIES, TENANT
from tests.unit.doubles import RandomVectors, code_of, error_of, sql

ALTERED, CORRUPT = "context_generation_altered", "index_corrupt"
DENSE = RandomVectors(4)


def small(path: Path, encoder: Any = DENSE, order: tuple[str, ...] = ("refund", "leave"), size: int = 12) -> Index:
    """A dense index of two documents of several chunks."""
    index = Index.open(path, encoder, size, 4)
    index._engine.connection.run("PRAGMA synchronous=OFF")
    for doc_id in order:
        index.upsert(TENANT, doc_id, 1, "markdown", BODIES[doc_id], ["alice"])
    return index


# Everything that a fingerprint covers.
COVERED = {
    "documents": ("tenant", "doc_id", "revision", "title", "body", "headings", "live"),
    "chunks": ("doc_key", "number", "start_point", "end_point", "text", "heading", "heading_path"),
    "vectors": ("chunk_key", "truncated", "vector"),
    "contract": ("value",),
}


def flips(value: Any) -> Iterator[Any]:
    """The value with each of its bytes changed once, a number by a thousand."""
    if isinstance(value, int):
        yield value + 1000
        return
    raw = value.encode("utf-8") if isinstance(value, str) else value
    for at in range(len(raw)):
        yield raw[:at] + bytes([raw[at] ^ 1]) + raw[at + 1 :]


def changed(connection: Connection, table: str, column: str) -> Iterator[str]:
    """Change each byte of a column once, say where, let the digests agree with it, say so, and set all of it back."""
    key = "name" if table == "contract" else "rowid"
    for name, value in connection.run(f"SELECT {key}, {column} FROM {table} ORDER BY 1"):
        written = "CAST(? AS TEXT)" if isinstance(value, str) else "?"
        for other in flips(value):
            connection.run(f"UPDATE {table} SET {column} = {written} WHERE {key} = ?", (other, name))
            yield f"{name}, digests as they were"
            repair_digests(connection)
            yield f"{name}, digests repaired"
            moved = other if column == "chunk_key" else name
            connection.run(f"UPDATE {table} SET {column} = ? WHERE {key} = ?", (value, moved))
            repair_digests(connection)


def repair_digests(connection: Connection) -> None:
    """Give every row the digest of what stands in it, also where that is no valid UTF-8."""
    for table, column in (("documents", "body"), ("chunks", "text")):
        for key, text in connection.run(f"SELECT rowid, CAST({column} AS BLOB) FROM {table}"):
            sha256 = hashlib.sha256(text.decode("utf-8", "replace").encode("utf-8")).hexdigest()
            connection.run(f"UPDATE {table} SET sha256 = ? WHERE rowid = ? AND sha256 <> ?", (sha256, key, sha256))
    connection.run(
        "UPDATE vectors SET text_sha256 = c.sha256 FROM chunks c"
        " WHERE c.chunk_key = vectors.chunk_key AND c.sha256 <> vectors.text_sha256"
    )


@pytest.mark.promise("CTX-11")
@pytest.mark.parametrize(("table", "column"), [(table, name) for table, names in COVERED.items() for name in names])
def test_every_changed_byte_is_found_whatever_the_digests_beside_it_say(
    tmp_path: Path, table: str, column: str
) -> None:
    with small(tmp_path / "kb.sqlite") as index:
        tasks, connection, seen = TaskContexts(index), index._engine.connection, 0
        connection.run("PRAGMA journal_mode=MEMORY")
        made = tasks.record_generation()
        for where in changed(connection, table, column):
            # A contract with a number that is none cannot even be read.
            assert code_of(tasks.verify_generation) in ((ALTERED, CORRUPT) if table == "contract" else (ALTERED,)), (
                where
            )
            assert code_of(tasks.record_generation) in (ALTERED, CORRUPT), where
            seen += 1
        assert tasks.verify_generation() == tasks.record_generation() == made
    assert seen >= 4


def coded(connection: Connection) -> None:
    """Exchange the vectors of two chunks together with their int8 rows, and what says of which text they are."""
    rows = {}
    for table in ("vectors", "vector_codes"):
        rows[table] = connection.run(f"SELECT * FROM {table} WHERE chunk_key IN (1, 2) ORDER BY 1")
        connection.run(f"DELETE FROM {table} WHERE chunk_key IN (1, 2)")
    for table, (one, two) in rows.items():
        marks = ", ".join("?" * len(one))
        connection.run(f"INSERT INTO {table} VALUES ({marks})", (two[0], *one[1:]))
        connection.run(f"INSERT INTO {table} VALUES ({marks})", (one[0], *two[1:]))
    repair_digests(connection)


DAMAGES: dict[str, str | Callable[[Connection], object]] = {
    "another encoder": "UPDATE contract SET value = 'random-9' WHERE name = 'encoder'",
    "a chunk less": "DELETE FROM chunks WHERE chunk_key = (SELECT max(chunk_key) FROM chunks)",
    "a chunk of no document": "INSERT INTO chunks SELECT 999, 999, 0, 0, 1, text, '', '[]', '' FROM chunks LIMIT 1",
    "a vector of no chunk": "INSERT INTO vectors SELECT 999, '', 0, vector FROM vectors LIMIT 1",
    "a vector less": "DELETE FROM vectors WHERE chunk_key = 1",
    "two vectors exchanged": coded,
    "the ledger's fingerprint": "UPDATE generations SET fingerprint = substr(fingerprint, 2) || '0'",
    "the ledger's contract": "UPDATE generations SET contract = replace(contract, 'random', 'Random')",
}


@pytest.mark.promise("CTX-11")
@pytest.mark.parametrize("damage", DAMAGES)
def test_rows_that_are_missing_added_or_exchanged_are_found(tmp_path: Path, damage: str) -> None:
    with small(tmp_path / "kb.sqlite") as index:
        tasks, change = TaskContexts(index), DAMAGES[damage]
        made = tasks.record_generation()
        if callable(change):
            change(index._engine.connection)
        else:
            index._engine.connection.run(change)
        error = error_of(tasks.verify_generation)
        assert error is not None and error.code == ALTERED
        assert code_of(tasks.record_generation) == ALTERED
    assert made.documents == 2


@pytest.mark.promise("CTX-11")
def test_what_is_damaged_before_the_first_recording_does_not_become_what_is_expected(tmp_path: Path) -> None:
    for damage in ("UPDATE documents SET body = body || '。'", "UPDATE chunks SET text = '假' WHERE chunk_key = 2"):
        with small(tmp_path / f"{len(damage)}.sqlite") as index:
            index._engine.connection.run(damage)
            assert code_of(TaskContexts(index).record_generation) == CORRUPT
            assert sql(index._engine.connection._path, "SELECT * FROM generations") == []


class Named(RandomVectors):
    """The same vectors under another name."""

    def __init__(self) -> None:
        super().__init__(4)
        self.identifier = "named"


@pytest.mark.promise("CTX-11", "CTX-14")
def test_equal_content_has_one_fingerprint_whatever_its_history(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In other keys, another order of events, after migrations; one row at a time, or all at once."""
    prints = {}
    for name, order in (("one", ("refund", "leave")), ("two", ("leave", "refund"))):
        with small(tmp_path / f"{name}.sqlite", order=order) as index:
            prints[name] = TaskContexts(index).record_generation()
            for rows in (1, 2, 3):
                with monkeypatch.context() as few:
                    few.setattr(fingerprints, "ROWS_AT_ONCE", rows)
                    assert TaskContexts(index).verify_generation() == prints[name]
    for size in (20, 12):
        with monkeypatch.context() as few:
            few.setattr(fingerprints, "ROWS_AT_ONCE", 2)
            migrate(tmp_path / "two.sqlite", DENSE, size, 4)
    with Index.open(tmp_path / "two.sqlite", DENSE) as index:
        prints["moved"] = TaskContexts(index).verify_generation()
    keys = [sql(tmp_path / f"{name}.sqlite", "SELECT chunk_key FROM chunks") for name in ("one", "two")]
    assert not set(keys[0]) & set(keys[1])
    with small(tmp_path / "named.sqlite", Named()) as index:
        named = TaskContexts(index).record_generation()
    assert {(item.fingerprint, item.chunks) for item in prints.values()} == {
        (prints["one"].fingerprint, prints["one"].chunks)
    }
    assert named.chunks == prints["one"].chunks and named.fingerprint != prints["one"].fingerprint


@pytest.mark.promise("CTX-11", "CTX-14")
def test_a_fingerprint_reaches_the_last_row_of_the_last_document(tmp_path: Path) -> None:
    """More documents and more chunks of one than are read at once."""
    path = tmp_path / "kb.sqlite"
    with Index.open(path, chunk_size=16, overlap=0) as index:
        index._engine.connection.run("PRAGMA synchronous=OFF")
        for number in range(fingerprints.ROWS_AT_ONCE + 2):
            index.upsert("acme", f"d{number:03}", 1, "text", f"条目{number:03}。", ["*"])
        source = "".join(f"末条{line:04}。\n" for line in range(2 * fingerprints.ROWS_AT_ONCE))
        index.upsert("acme", "z", 1, "text", source, ["*"])
    migrate(path, chunk_size=12, overlap=4)
    with Index.open(path) as index:
        tasks = TaskContexts(index)
        made = tasks.verify_generation()
        ((chunks,),) = sql(path, "SELECT max(number) + 1 FROM chunks")
        assert min(chunks, made.documents) > fingerprints.ROWS_AT_ONCE
        assert made.chunks == chunks + made.documents - 1
        last = "(SELECT max(chunk_key) FROM chunks)"
        index._engine.connection.run(f"UPDATE chunks SET text = text || '。' WHERE chunk_key = {last}")
        assert code_of(tasks.verify_generation) == ALTERED
