"""What a maintainer sees: status, documents, the trace of a search, and what a backup brings back (OBS-1, CON-7)."""

import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from kbretrieval import Context, Index, Provenance
from kbretrieval.store.connection import Connection
from tests.unit.doubles import Table, code_of, docs, logical_dump

TEXT = "# 甲\n\n差旅上限五百元"


@pytest.mark.promise("CON-4", "CON-6", "ID-6")
def test_the_status_of_an_absent_a_live_and_a_deleted_document(index: Index) -> None:
    absent = index.status("acme", "d")
    assert (absent.state, absent.revision, absent.title, absent.chunks, absent.acl) == ("absent", None, None, 0, ())
    index.upsert("acme", "d", 4, "markdown", TEXT, ["bob", "alice"], provenance=Provenance(uri="u"))
    live = index.status("acme", "d")
    assert (live.state, live.revision, live.acl_revision, live.acl) == ("live", 4, 1, ("bob", "alice"))
    assert (live.title, live.format, live.chunks) == ("甲", "markdown", 1)
    index.delete("acme", "d", 5)
    dead = index.status("acme", "d")
    assert (dead.state, dead.revision, dead.acl_revision, dead.acl, dead.chunks) == ("deleted", 5, 2, (), 0)
    assert (dead.title, dead.sha256) == ("甲", live.sha256)
    assert {item.sqlite for item in (absent, live, dead)} == {sqlite3.sqlite_version}
    assert json.loads(json.dumps(live.to_dict()))["schema"] == "kbretrieval.status/1"


@pytest.mark.promise("ID-1", "DEL-5")
def test_documents_are_those_of_one_tenant_in_order_tombstones_included(index: Index) -> None:
    for tenant, doc_id in (("acme", "b"), ("beta", "a"), ("acme", "a"), ("acme", "c")):
        index.upsert(tenant, doc_id, 1, "markdown", TEXT, [])
    index.delete("acme", "c", 2)
    assert [(item.doc_id, item.state) for item in index.documents("acme")] == [
        ("a", "live"),
        ("b", "live"),
        ("c", "deleted"),
    ]
    assert index.documents("acme")[0] == index.status("acme", "a")
    assert index.documents("nobody") == ()
    wrong: list[Any] = ["", None, "*", "a\u200bb"]
    assert {code_of(index.documents, tenant) for tenant in wrong} == {"invalid_identity"}


@pytest.mark.promise("OBS-1", "RRF-3")
def test_the_trace_of_a_search_holds_no_text(index: Index, alice: Context) -> None:
    index.upsert("acme", "d", 1, "markdown", "# 标题词\n\n正文词 canary", ["alice"])
    for mode in ("lexical", "vector", "hybrid"):
        found = index.search("正文词 canary", alice, mode=mode)  # type: ignore[arg-type]
        assert len(found) == 1
        exported = found.to_dict()
        del exported["hits"]
        told = json.dumps(exported, ensure_ascii=False)
        assert not [word for word in ("正文", "canary", "标题", "acme", "alice", '"d"') if word in told]
        for trace in found.channels:
            run = trace.state == "run"
            assert (trace.reason is None) == run
            assert (trace.eligible, trace.returned) == (1, int(run))


@pytest.mark.promise("CON-7", "ACL-7", "DEL-3")
def test_a_restored_backup_revives_what_was_revoked_and_deleted(
    index: Index, tmp_path: Path, alice: Context, bob: Context
) -> None:
    """Until policies and events are replayed: the copy is whole, sound, and of its moment."""
    index.upsert("acme", "plan", 1, "markdown", TEXT, ["alice", "bob"])
    index.upsert("acme", "old", 1, "markdown", TEXT + "旧", ["alice"])
    hits = index.search("差旅", alice)
    index.backup(tmp_path / "copy.sqlite")
    assert logical_dump(tmp_path / "copy.sqlite") == logical_dump(tmp_path / "kb.sqlite")
    index.set_acl("acme", "plan", ["bob"], 1)
    index.delete("acme", "old", 2)
    assert index.answer(hits, alice).state == "abstain"
    with Index.open(tmp_path / "copy.sqlite") as restored:
        assert restored.check() == ()
        assert sorted(item.doc_id for item in restored.answer(hits, alice).evidence) == ["old", "plan"]
        restored.set_acl("acme", "plan", ["bob"], 1)
        restored.delete("acme", "old", 2)
        assert restored.answer(hits, alice).state == "abstain"
        assert docs(restored.search("差旅", bob)) == ["plan"]


@pytest.mark.promise("CON-7", "ERR-2")
def test_a_backup_never_overwrites_and_leaves_nothing_half_made(
    index: Index, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    index.upsert("acme", "d", 1, "markdown", TEXT, ["alice"])
    taken = tmp_path / "taken"
    taken.write_bytes(b"mine")
    assert code_of(index.backup, taken) == "invalid_path"
    assert taken.read_bytes() == b"mine"
    assert code_of(index.backup, tmp_path / "kb.sqlite") == "invalid_path"
    assert code_of(index.backup, tmp_path) == "invalid_path"
    assert code_of(index.backup, tmp_path / "absent" / "copy") == "storage_io_error"
    assert code_of(index.backup, tmp_path / ("x" * 5000)) == "storage_io_error"
    wrong: list[Any] = ["", None, b"copy", "a\x00"]
    assert {code_of(index.backup, path) for path in wrong} == {"invalid_path"}

    def broken(self: Connection, target: Path) -> None:
        target.write_bytes(b"half")
        raise sqlite3.OperationalError("planted")

    monkeypatch.setattr(Connection, "_copy_into", broken)
    with pytest.raises(sqlite3.OperationalError):
        index.backup(tmp_path / "copy")
    assert sorted(item.name for item in tmp_path.iterdir()) == ["kb.sqlite", "taken"]
    assert index.status("acme", "d").state == "live"


@pytest.mark.promise("CON-7")
def test_a_dense_index_is_copied_with_its_vectors(tmp_path: Path, alice: Context) -> None:
    with Index.open(tmp_path / "kb.sqlite", encoder=Table("table-2")) as index:
        index.upsert("acme", "d", 1, "markdown", TEXT, ["alice"])
        index.backup(tmp_path / "copy.sqlite")
    with Index.open(tmp_path / "copy.sqlite", encoder=Table("table-2")) as copy:
        assert docs(copy.search("别的", alice, mode="vector")) == ["d"]
        assert copy.check() == ()


@pytest.mark.promise("LEX-6", "LEX-8", "OBS-1")
def test_the_statistics_scope_is_a_named_part_of_the_trace(index: Index, alice: Context) -> None:
    index.upsert("acme", "d", 1, "markdown", TEXT, ["alice"])
    scopes = {
        lexical: index.search("差旅", alice, lexical=lexical).channel("lexical").statistics  # type: ignore[arg-type]
        for lexical in ("isolated", "fts5")
    }
    assert scopes["isolated"] == "eligible rows"
    assert scopes["fts5"] not in ("", "eligible rows")
    assert index.search("差旅", alice).channel("vector").statistics == "none"
