"""Every byte of everything that is stored of a snapshot: none can change without being found (CTX-32, CTX-37)."""

import hashlib
import json
from collections.abc import Iterator
from typing import Any

import pytest

from kbretrieval.context import Selection, Snapshot
from kbretrieval.store.connection import Connection
from tests.context.place import ALICE, Place
from tests.unit.doubles import code_of

DAMAGED = "context_snapshot_damaged"


def rows(connection: Connection, snapshot: Snapshot) -> Iterator[tuple[str, int]]:
    """The table and the row of everything that is stored of a snapshot, and its scope."""
    key = snapshot.id.split("-")[1]
    yield "context_snapshots", int(key)
    yield "context_scopes", int(snapshot.scope.split("-")[1])
    for (rowid,) in connection.run("SELECT rowid FROM context_parts WHERE snapshot_key = ? ORDER BY 1", (key,)):
        yield "context_parts", rowid


def columns(connection: Connection, snapshot: Snapshot) -> list[tuple[str, int, str, bytes]]:
    """Every text or blob that is stored of a snapshot: table, row, column, bytes."""
    made = []
    for table, rowid in rows(connection, snapshot):
        kinds = [row[1] for row in connection.run(f"PRAGMA table_info({table})") if row[2] in ("TEXT", "BLOB")]
        casts = ", ".join(f"CAST({name} AS BLOB)" for name in kinds)
        values = connection.run(f"SELECT {casts} FROM {table} WHERE rowid = ?", (rowid,))[0]
        made += [(table, rowid, name, value) for name, value in zip(kinds, values, strict=True)]
    return made


def write(connection: Connection, table: str, rowid: int, column: str, raw: bytes) -> None:
    connection.run(f"UPDATE {table} SET {column} = CAST(? AS TEXT) WHERE rowid = ?", (raw, rowid))


def flipped(raw: bytes) -> Iterator[bytes]:
    """The bytes with each of them changed once, one less, and one more."""
    for at in range(len(raw)):
        yield raw[:at] + bytes([raw[at] ^ 1]) + raw[at + 1 :]
    if raw:
        yield raw[:-1]
    yield raw + b"0"


def judged(place: Place, snapshot: Snapshot) -> str | None:
    """How a check of the snapshot's dependencies ends, None where everything holds."""
    made: list[Any] = []
    code = code_of(lambda: made.append(place.tasks.check_dependencies(snapshot.id)))
    return code or next(iter(made[0].codes), None)


@pytest.fixture
def frozen(place: Place) -> Snapshot:
    """A small snapshot, on a connection that need not outlive the machine."""
    place.index._engine.connection.run("PRAGMA journal_mode=MEMORY")
    scope = place.scope(selection=Selection(["policies"], documents=["leave"]))
    return place.tasks.freeze(scope, place.tasks.assemble(scope, must_read=["leave"]))


@pytest.mark.slow
@pytest.mark.promise("CTX-32", "CTX-37")
def test_every_changed_byte_of_every_stored_part_is_found(place: Place, frozen: Snapshot) -> None:
    connection, seen = place.index._engine.connection, 0
    for table, rowid, column, raw in columns(connection, frozen):
        for other in flipped(raw):
            write(connection, table, rowid, column, other)
            assert judged(place, frozen) is not None, f"{table}.{column} {rowid}"
            seen += 1
        write(connection, table, rowid, column, raw)
    assert seen > 2000
    assert judged(place, frozen) is None


def repair(connection: Connection, snapshot: Snapshot) -> None:
    """Give every part its digest and size, and the snapshot its hash."""
    key = snapshot.id.split("-")[1]
    for rowid, body in connection.run("SELECT rowid, body FROM context_parts WHERE snapshot_key = ?", (key,)):
        raw = body.encode("utf-8")
        values = (len(raw), hashlib.sha256(raw).hexdigest(), rowid)
        connection.run("UPDATE context_parts SET bytes = ?, sha256 = ? WHERE rowid = ?", values)
    parts = connection.run(
        "SELECT number, kind, doc_id, bytes, sha256 FROM context_parts WHERE snapshot_key = ? ORDER BY 1", (key,)
    )
    text = json.dumps([list(part) for part in parts], ensure_ascii=False, separators=(",", ":"))
    sha256 = hashlib.sha256(text.encode("utf-8")).hexdigest()
    connection.run("UPDATE context_snapshots SET sha256 = ? WHERE snapshot_key = ?", (sha256, key))


@pytest.mark.slow
@pytest.mark.promise("CTX-33", "CTX-37")
@pytest.mark.parametrize("kind", ["header", "scope", "sources", "fragment"])
def test_a_part_that_was_exchanged_with_all_its_digests_is_found_by_the_others(
    place: Place, frozen: Snapshot, kind: str
) -> None:
    """What the others say of it: items of fragments, the header and the stored scope of the scope, it of sources."""
    connection, seen = place.index._engine.connection, 0
    repair(connection, frozen)
    assert judged(place, frozen) is None
    of_kind = {row for (row,) in connection.run("SELECT rowid FROM context_parts WHERE kind = ?", (kind,))}
    for table, rowid, column, raw in columns(connection, frozen):
        if (table, column) != ("context_parts", "body") or rowid not in of_kind:
            continue
        for other in flipped(raw):
            write(connection, table, rowid, column, other)
            repair(connection, frozen)
            assert judged(place, frozen) is not None, f"{column} {rowid} {other!r}"
            seen += 1
        write(connection, table, rowid, column, raw)
    repair(connection, frozen)
    assert seen > 30
    assert judged(place, frozen) is None


@pytest.mark.promise("CTX-33", "CTX-37", "CTX-35")
@pytest.mark.parametrize(
    ("old", "new"),
    [("五天", "七天"), ("leave", "laeve"), ('"start":0', '"start":1'), ('"end":', '"and":')],
    ids=["fragment", "item", "interval", "key"],
)
def test_parts_that_disagree_are_damaged_in_every_phase(place: Place, frozen: Snapshot, old: str, new: str) -> None:
    """Also where every digest was made to agree."""
    connection = place.index._engine.connection
    where = "kind IN ('fragment', 'structure')"
    connection.run(f"UPDATE context_parts SET body = replace(body, ?, ?) WHERE {where}", (old, new))
    repair(connection, frozen)
    report = place.tasks.check_dependencies(frozen.id)
    assert (report.intact, report.valid, report.codes) == (False, False, (DAMAGED,))
    assert [item.kind for item in report.dependencies if item.code] == ["structure"]
    again = place.tasks.replay(frozen.id, ALICE)
    assert (again.text, again.reason, again.items) == (None, DAMAGED, ())
    assert code_of(place.tasks.inspect, frozen.id, ALICE) == DAMAGED
    assert code_of(place.tasks.deliver, frozen.id, ALICE, "x") == DAMAGED
    assert code_of(place.tasks.publish, frozen.id, ALICE, "policies", "x") == DAMAGED
    assert code_of(place.tasks.record_consumption, frozen.id, ALICE, [0]) == DAMAGED
