"""Snapshots: what they hold, one hash, replay, and every changed byte found (CTX-32…CTX-37, CTX-66, CTX-67, CTX-71)."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kbretrieval import Index
from kbretrieval.context import Budget, Item, Package, Piece, Selection, Snapshot
from kbretrieval.store.connection import Connection
from tests.context.place import ALICE, BODIES, ENDS, REFUND, Place
from tests.unit.doubles import code_of, error_of, sql

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.promise("CTX-35", "CTX-32")
def test_a_replay_gives_the_same_bytes_and_items(place: Place) -> None:
    scope = place.scope()
    package = place.package(scope)
    snapshot = place.tasks.freeze(scope, package)
    again = place.tasks.replay(snapshot.id, ALICE)
    assert (again.text, again.reason, again.valid_now, again.codes) == (package.text, None, True, ())
    assert again.items == tuple(replace(item, title=None) for item in package.items) == snapshot.items
    assert again.sha256 == snapshot.sha256


@pytest.mark.promise("CTX-32", "CTX-34")
def test_a_snapshot_holds_sources_structure_projection_and_fragments(place: Place) -> None:
    """The sources are those that the budget let in, with their real revisions; the rest of the scope is not listed."""
    place.revise("refund", 2, REFUND + "\n\n补。")
    scope = place.scope(budget=Budget(input_bytes=150))
    package = place.tasks.assemble(scope, must_read=["refund"], optional=["leave"])
    assert [item.doc_id for item in package.omitted] == ["leave"]
    snapshot = place.tasks.freeze(scope, package)
    assert snapshot.sources == tuple(bound for bound in scope.documents if bound.doc_id == "refund")
    assert [bound.revision for bound in snapshot.sources] == [2]
    assert [part.kind for part in snapshot.parts] == [
        "header",
        "scope",
        "sources",
        "structure",
        "projection",
        "fragment",
    ]
    assert snapshot.projection == place.index.contract.projection
    bodies = dict(sql(place.path, "SELECT kind, body FROM context_parts"))
    assert json.loads(bodies["projection"])["fields"] == ["title", "text"]
    assert json.loads(bodies["structure"])[0]["text_end"] == package.items[0].text_end
    assert bodies["fragment"] == package.text
    assert snapshot.task == "T-7" and snapshot.purpose == "answering" and snapshot.scope == scope.id


def _altered(package: Package) -> Iterator[tuple[str, Package]]:
    """Packages that were changed after assembly; in some the text still occurs somewhere in the material."""
    first, second = package.items
    yield "a letter", replace(package, text=package.text.replace("七天", "九天"))
    yield "an item of another document", replace(package, items=(first, replace(second, doc_id="refund")))
    yield "a shifted source", replace(package, items=(replace(first, source_start=1), second))
    yield "a shifted interval", replace(package, items=(replace(first, end=first.end - 1), second))
    yield "another title", replace(package, items=(replace(first, title="规定"), second))
    yield "an item less", replace(package, items=(first,))
    yield "another order", replace(package, items=(second, first))
    yield "another scope", replace(package, scope="scope-9")
    swapped = package.text[second.start :] + package.text[: second.start]
    yield "the fragments exchanged", replace(package, text=swapped)


@pytest.mark.promise("CTX-33")
def test_a_fragment_is_compared_with_the_material_under_its_own_key(place: Place) -> None:
    scope = place.scope()
    package = place.package(scope)
    for name, altered in _altered(package):
        assert code_of(place.tasks.freeze, scope, altered) == "context_package_altered", name
    assert code_of(place.tasks.freeze, scope, {"text": "x"}) == "context_input_invalid"
    assert sql(place.path, "SELECT count(*) FROM context_snapshots") == [(0,)]
    other = place.scope(task="T-8")
    assert code_of(place.tasks.freeze, other, package) == "context_package_altered"


@pytest.mark.promise("CTX-33")
def test_equal_text_in_two_documents_stays_bound_to_its_own(place: Place) -> None:
    place.index.upsert("acme", "twin", 1, "markdown", REFUND, ["alice"])
    place.tasks.release("acme", "twin", ["answering"])
    place.tasks.put_collection("acme", "policies", ["refund", "twin"])
    scope = place.scope()
    package = place.tasks.assemble(scope, must_read=["twin"])
    place.revise("twin", 2, "# 别的\n\n内容。")
    assert code_of(place.tasks.freeze, scope, package) == "context_revision_changed"
    as_refund = replace(package, items=(replace(package.items[0], doc_id="refund"),))
    snapshot = place.tasks.freeze(scope, as_refund)
    assert [bound.doc_id for bound in snapshot.sources] == ["refund"], "that one is bound, and its text is the same"


@pytest.mark.promise("CTX-28", "CTX-24")
def test_a_package_beyond_the_budget_is_not_frozen(place: Place) -> None:
    wide = place.scope()
    package = place.package(wide)
    scope = place.tasks.narrow(wide, budget=Budget(input_bytes=package.bytes - 1))
    mine = replace(package, scope=scope.id, scope_sha256=scope.sha256)
    error = error_of(place.tasks.freeze, scope, mine)
    assert error is not None and error.code == "context_too_large"
    assert str(package.bytes) in error.facts and str(package.bytes - 1) in error.facts


PROGRAM = """
import sys
from pathlib import Path
from kbretrieval.store.connection import Connection
from tests.context.place import opened_place
with opened_place(Path(sys.argv[1])) as place:
    print(place.snapshot().sha256)
"""


@pytest.mark.promise("CTX-32")
def test_the_hash_is_the_same_in_two_runs_and_under_another_hash_seed(place: Place, tmp_path: Path) -> None:
    seed = "2" if os.environ.get("PYTHONHASHSEED") == "1" else "1"
    run = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(tmp_path / "other.sqlite")],
        capture_output=True,
        encoding="utf-8",
        cwd=ROOT,
        env=os.environ | {"PYTHONHASHSEED": seed},
        check=True,
    )
    assert run.stdout.strip() == place.snapshot().sha256


@pytest.mark.promise("CTX-32")
def test_whatever_is_frozen_moves_the_hash(place: Place) -> None:
    def frozen(**changes: Any) -> Snapshot:
        pieces = changes.pop("pieces", ["refund"])
        scope = place.scope(**changes)
        return place.tasks.freeze(scope, place.tasks.assemble(scope, must_read=pieces))

    made = [
        frozen(),
        frozen(task="T-8"),
        frozen(budget=Budget(input_bytes=500)),
        frozen(pieces=["leave"]),
        frozen(pieces=[Piece("refund", 0, 20)]),
        frozen(selection=Selection(["policies"], role="citing")),
        frozen(selection=Selection(["policies"], documents=["refund"])),
    ]
    assert len({snapshot.sha256 for snapshot in made}) == len(made)


def _rows(snapshot: Snapshot) -> Iterator[tuple[str, str]]:
    """The table and the place of every stored row of a snapshot, and of its scope."""
    key, scope_key = snapshot.id.split("-")[1], snapshot.scope.split("-")[1]
    yield "context_snapshots", f"snapshot_key = {key}"
    yield "context_scopes", f"scope_key = {scope_key}"
    for part in snapshot.parts:
        yield "context_parts", f"snapshot_key = {key} AND number = {part.number}"


def _neighbours(value: Any) -> list[Any]:
    """Values that differ in one byte: at the beginning, in the middle, at the end; or by a thousand."""
    if isinstance(value, int):
        return [value + 1000]
    if not value:
        return [b"x"]
    raw = value.encode("utf-8")
    return [raw[:at] + bytes([raw[at] ^ 1]) + raw[at + 1 :] for at in sorted({0, len(raw) // 2, len(raw) - 1})]


def _changes(connection: Connection, snapshot: Snapshot) -> Iterator[str]:
    """Change one byte of one column, say where, and set it back."""
    for table, where in list(_rows(snapshot)):
        names = [row[1] for row in connection.run(f"PRAGMA table_info({table})")]
        ((rowid, *values),) = connection.run(f"SELECT rowid, * FROM {table} WHERE {where}")
        for name, value in zip(names, values, strict=True):
            for changed in _neighbours(value):
                written = "?" if isinstance(changed, int) else "CAST(? AS TEXT)"
                is_key = f"{name} = {rowid}" == where
                connection.run(f"UPDATE {table} SET {name} = {written} WHERE rowid = ?", (changed, rowid))
                yield f"{table}.{name} where {where}"
                back = (value, changed if is_key else rowid)
                connection.run(f"UPDATE {table} SET {name} = ? WHERE rowid = ?", back)


@pytest.mark.promise("CTX-32", "CTX-37", "CTX-35")
def test_one_changed_byte_in_any_stored_part_is_found(place: Place) -> None:
    snapshot = place.snapshot()
    seen = 0
    for where in _changes(place.index._engine.connection, snapshot):
        assert _judged(place, snapshot) is not None, where
        assert code_of(place.tasks.deliver, snapshot.id, ALICE, "x") not in (None, "context_payload_mismatch"), where
        seen += 1
    assert seen > 150
    assert _judged(place, snapshot) is None


def _judged(place: Place, snapshot: Snapshot) -> str | None:
    """Say how a check of the snapshot's dependencies ends, None where everything holds."""
    code = code_of(place.tasks.check_dependencies, snapshot.id)
    if code is not None:
        return code
    report = place.tasks.check_dependencies(snapshot.id)
    return None if report.valid else report.codes[0]


@pytest.mark.promise("CTX-37", "CTX-67")
def test_a_report_says_what_was_checked_and_what_was_locked(place: Place) -> None:
    snapshot = place.snapshot()
    report = place.tasks.check_dependencies(snapshot.id)
    kinds = [item.kind for item in report.dependencies]
    assert {"part", "structure", "scope", "policy", "source", "transaction"} == set(kinds)
    assert [item.name for item in report.dependencies if item.kind == "source"] == ["leave", "refund"]
    assert report.locked == "read transaction"
    assert kinds.count("part") == len(snapshot.parts)
    commit = report.commit
    place.index.set_acl("acme", "leave", ["bob"], 1)
    both = place.tasks.inspect(snapshot.id, ALICE)
    assert both.snapshot == snapshot
    assert (both.report.commit, both.report.codes) == (commit + 1, ("context_access_withdrawn",))
    assert (both.report.intact, both.report.readable, both.report.valid) == (True, False, False)
    assert [item.name for item in both.report.dependencies if item.code] == ["leave"]


@pytest.mark.promise("CTX-31")
def test_a_snapshot_of_another_schema_version_is_refused_by_name(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that is sound in itself, as another version of the package would have written it."""
    with monkeypatch.context() as other:
        other.setattr(Snapshot, "SCHEMA", "kbretrieval.context.snapshot/0")
        snapshot = place.snapshot()
    error = error_of(place.tasks.replay, snapshot.id, ALICE)
    assert error is not None and error.code == "context_schema_unsupported"
    assert "snapshot/1" in error.facts and "snapshot/0" in error.facts
    assert code_of(place.tasks.check_dependencies, snapshot.id) == "context_schema_unsupported"
    assert code_of(place.tasks.deliver, snapshot.id, ALICE, "x") == "context_schema_unsupported"


@pytest.mark.promise("CTX-71")
def test_a_purge_empties_the_fragments_of_deleted_documents(place: Place) -> None:
    scope = place.scope()
    package = place.package(scope)
    snapshot = place.tasks.freeze(scope, package)
    other = place.tasks.freeze(scope, place.tasks.assemble(scope, must_read=["leave"]))
    place.index.delete("acme", "refund", 2)
    assert place.tasks.replay(snapshot.id, ALICE).reason == "context_source_deleted"
    assert b"SKU-2049" in place.path.read_bytes()
    place.index.purge()
    residue = b"".join(file.read_bytes() for file in sorted(place.path.parent.iterdir()))
    assert [word for word in ("SKU-2049", "签收后", "title: 退款") if word.encode("utf-8") in residue] == []
    again = place.tasks.replay(snapshot.id, ALICE)
    assert (again.reason, again.text, again.sha256) == ("source_purged", None, snapshot.sha256)
    report = place.tasks.check_dependencies(snapshot.id)
    assert (report.intact, report.readable) == (True, False)
    assert place.tasks.inspect(snapshot.id, ALICE).snapshot == snapshot, "hash and digests stay"
    assert code_of(place.tasks.deliver, snapshot.id, ALICE, package.text) == "source_purged"
    assert "年假五天" in (place.tasks.replay(other.id, ALICE).text or "")
    place.index.upsert("acme", "refund", 3, "markdown", REFUND, ["alice"], restore=True)
    assert place.tasks.replay(snapshot.id, ALICE).reason == "source_purged", "what is gone does not come back"
    assert place.index.check() == ()


@pytest.mark.promise("CTX-71", "CTX-32")
def test_a_part_that_is_called_purged_and_holds_text_is_damaged(place: Place) -> None:
    snapshot = place.snapshot()
    sql(place.path, "UPDATE context_parts SET reason = 'source_purged' WHERE kind = 'fragment'")
    report = place.tasks.check_dependencies(snapshot.id)
    assert (report.intact, report.codes) == (False, ("context_snapshot_damaged",))
    assert place.tasks.replay(snapshot.id, ALICE).reason == "context_snapshot_damaged"
    assert code_of(place.tasks.inspect, snapshot.id, ALICE) == "context_snapshot_damaged"


@pytest.mark.promise("CTX-71")
def test_a_purge_of_an_index_without_tasks_has_nothing_to_do(tmp_path: Path) -> None:
    with Index.open(tmp_path / "kb.sqlite") as index:
        index.upsert("acme", "a", 1, "text", "甲", ["alice"])
        index.delete("acme", "a", 2)
        assert index.purge().titles_blanked == 1


@pytest.mark.promise("CTX-66", "CTX-68")
def test_listing_is_in_bounded_pages_with_a_bound_cursor(place: Place) -> None:
    scope = place.scope()
    package = place.tasks.assemble(scope, must_read=["leave"])
    made = [place.tasks.freeze(scope, package) for _ in range(23)]
    other = place.scope(purpose="training")
    place.tasks.freeze(other, place.tasks.assemble(other))
    first = place.tasks.snapshots(ALICE, "T-7", "answering")
    assert (len(first.rows), first.has_more) == (20, True)
    more = place.tasks.freeze(scope, package)
    rest = place.tasks.snapshots(ALICE, "T-7", "answering", cursor=first.next_cursor)
    assert [row.id for row in (*first.rows, *rest.rows)] == [item.id for item in (*made, more)]
    assert (rest.has_more, rest.next_cursor) == (False, None)
    assert first.rows[0].bytes == package.bytes
    assert (
        code_of(place.tasks.snapshots, ALICE, "T-8", "answering", cursor=first.next_cursor) == "context_cursor_invalid"
    )
    assert (
        code_of(place.tasks.snapshots, ALICE, "T-7", "training", cursor=first.next_cursor) == "context_cursor_invalid"
    )
    for limit in (0, 101, True):
        assert code_of(place.tasks.snapshots, ALICE, "T-7", "answering", limit=limit) == "context_input_invalid"
    shown = repr((first, rest))
    assert not any(word in shown for word in (BODIES["leave"], "年假", "leave"))


def test_an_unknown_snapshot_is_refused(place: Place) -> None:
    for name in ("snapshot-7", "snapshot-0", "scope-1", "", 7, None):
        assert code_of(place.tasks.check_dependencies, name) == "context_unknown"
        assert code_of(place.tasks.replay, name, ALICE) == "context_unknown"


@pytest.mark.promise("CTX-37")
@pytest.mark.parametrize("code", ENDS)
def test_a_report_and_a_replay_agree(place: Place, code: str) -> None:
    snapshot = place.snapshot()
    ENDS[code](place)
    report = place.tasks.check_dependencies(snapshot.id)
    again = place.tasks.replay(snapshot.id, ALICE)
    assert report.codes == again.codes == (code,)
    assert (report.intact, report.readable, report.valid) == (True, False, False)
    items: tuple[Item, ...] = again.items
    assert (again.text, items) == (None, ())
