"""What served before a migration goes in parts, FTS5's table included, so that nobody waits long for the lock."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from kbretrieval import Context, Index
from kbretrieval.migration import migrate
from kbretrieval.store import staging
from kbretrieval.store.connection import PAUSE_SECONDS, Connection
from kbretrieval.store.schema import FTS_REMAINS, PAST
from tests.unit.doubles import docs, sql
from tests.unit.test_migration import Stopped, filled, left_over

ROWS = 7
ALICE = Context("acme", "alice")
TERMS_LEFT = f"SELECT c0 FROM {FTS_REMAINS['content']}"


def tables(path: Path) -> dict[str, int]:
    """Rows of every table of the past generation, FTS5's own ones included."""
    names = (name for (name,) in sql(path, "SELECT name FROM sqlite_schema WHERE type = 'table'"))
    return {name: sql(path, f"SELECT count(*) FROM {name}")[0][0] for name in names if name.startswith("past_")}


@pytest.fixture
def parts(index_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[dict[str, int]]]:
    """What was left after each part of a migration's drop, by table."""
    filled(index_path)
    seen = list[dict[str, int]]()
    monkeypatch.setattr(staging, "ROWS_IN_ONE_TRANSACTION", ROWS)
    original = Connection.write

    @contextmanager
    def watched(self: Connection) -> Iterator[None]:
        with original(self):
            yield
        seen.append(tables(index_path))

    with monkeypatch.context() as here:
        here.setattr(Connection, "write", watched)
        migrate(index_path, chunk_size=30, overlap=5)
    yield [left for left in seen if left]


@pytest.mark.promise("MIG-1", "MIG-4")
def test_no_transaction_of_a_drop_takes_more_than_a_part(parts: list[dict[str, int]], index_path: Path) -> None:
    """But for tables that are small in any index: FTS5's configuration, and its list of pages."""
    small = {f"{PAST.fts}_config", FTS_REMAINS["idx"]}
    whole = {PAST.fts: FTS_REMAINS["content"]} | {f"{PAST.fts}_{part}": name for part, name in FTS_REMAINS.items()}
    for before, after in zip(parts, [*parts[1:], dict[str, int]()], strict=True):
        left = {name: after.get(name, after.get(whole.get(name, ""), 0)) for name in before if name not in small}
        gone = {name: before[name] - rows for name, rows in left.items() if before[name] != rows}
        assert len(gone) <= 1 and sum(gone.values()) <= ROWS, gone
    assert parts[0][PAST.fts] > 3 * ROWS
    assert left_over(index_path) == [] and tables(index_path) == {}


@pytest.fixture
def half_dropped(index_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An index whose migration ended when its former FTS5 table was a plain one, and its first rows were gone."""
    filled(index_path)
    whole = staging._drop_part

    def part(connection: Connection, table: str) -> None:
        whole(connection, table)
        if table == FTS_REMAINS["data"]:
            raise Stopped

    with monkeypatch.context() as here:
        here.setattr(staging, "_drop_part", part)
        with pytest.raises(Stopped):
            migrate(index_path, chunk_size=30, overlap=5)
    return index_path


@pytest.mark.promise("MIG-4", "DEL-2", "OBS-2")
def test_what_is_left_of_an_fts5_table_is_sound_and_keeps_no_deleted_text(half_dropped: Path) -> None:
    assert PAST.fts not in left_over(half_dropped)
    with Index.open(half_dropped) as index:
        assert index.check() == ()
        assert any("住宿" in text for (text,) in sql(half_dropped, TERMS_LEFT))
        index.delete("acme", "住宿", 2)
        assert not any("住宿" in text for (text,) in sql(half_dropped, TERMS_LEFT))
        assert any("餐费" in text for (text,) in sql(half_dropped, TERMS_LEFT))


@pytest.mark.promise("MIG-3", "MIG-4")
def test_the_next_migration_drops_the_rest_and_goes_back(half_dropped: Path) -> None:
    assert migrate(half_dropped, chunk_size=60, overlap=10).state == "migrated"
    assert tables(half_dropped) == {}
    with Index.open(half_dropped) as index:
        assert index.check() == ()
        assert set(docs(index.search("每晚限额", ALICE, 100))) == {"住宿", "餐费", "交通", "培训"}


@pytest.mark.promise("MIG-1", "CON-5")
def test_whoever_waits_gets_in_between_two_parts(index_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A pause longer than a waiting connection's: without one, a run of short transactions keeps the lock for long."""
    filled(index_path)
    monkeypatch.setattr(staging, "ROWS_IN_ONE_TRANSACTION", ROWS)
    waited, parts, whole = list[bool](), list[str](), staging._drop_part
    monkeypatch.setattr(staging, "_drop_part", lambda here, table: (parts.append(table), whole(here, table)))

    def give_way(self: Connection) -> None:
        with Index.open(index_path, wait_seconds=0) as other:
            acl_revision = other.set_acl("acme", "short", ["alice"], len(waited) + 1).acl_revision
        waited.append(acl_revision == len(waited) + 2)

    monkeypatch.setattr(Connection, "give_way", give_way)
    migrate(index_path, chunk_size=30, overlap=5)
    assert len(waited) == len(parts) > 20 and all(waited)


@pytest.mark.promise("CON-5")
def test_giving_way_takes_longer_than_a_waiting_connection_pauses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pauses = list[float]()
    monkeypatch.setattr("kbretrieval.store.connection.time.sleep", pauses.append)
    connection = Connection(tmp_path / "a.sqlite")
    connection.give_way()
    connection.close()
    assert min(pauses) > max(PAUSE_SECONDS)
