"""Delete and replay: three directions (kept hits, new searches, replayed events), and nothing left behind."""

import time
from pathlib import Path

import pytest

from kbretrieval import Context, Index
from kbretrieval.results import ABSTENTION
from tests.unit.doubles import MODES, Table, code_of, docs, sql

TABLES = ("chunks", "postings", "vectors", "chunks_fts", "acl")


def counts(path: Path) -> dict[str, int]:
    return {table: sql(path, f"SELECT count(*) FROM {table}")[0][0] for table in TABLES}


@pytest.mark.promise("DEL-2", "DEL-3", "DEL-4")
def test_three_directions(index: Index, alice: Context) -> None:
    """C035: kept hits give nothing, new searches have no empty places, the replayed event is refused."""
    for i in range(1, 6):
        index.upsert("acme", f"r{i}", 1, "markdown", f"# 通告\n\n停车场{i}区封闭。", ["alice"])
    kept = index.search("停车场", alice, limit=3)
    assert docs(kept) == ["r1", "r2", "r3"]
    index.delete("acme", "r1", 2)
    index.delete("acme", "r2", 2)
    for mode in MODES:
        for lexical in ("isolated", "fts5"):
            found = index.search("停车场", alice, limit=3, mode=mode, lexical=lexical)  # type: ignore[arg-type]
            assert docs(found) == ["r3", "r4", "r5"]
            assert all(hit.text for hit in found)
    assert [item.doc_id for item in index.answer(kept, alice, limit=10).evidence] == ["r3"]
    both = index.answer(list(kept)[:2], alice)
    assert (both.state, both.answer) == ("abstain", ABSTENTION)
    replay = code_of(index.upsert, "acme", "r1", 1, "markdown", "# 通告\n\n停车场1区封闭。", ["alice"])
    assert replay == "stale_or_conflicting_revision"


@pytest.mark.promise("ID-1", "ID-2", "DEL-6")
def test_identities_are_compared_as_they_are(index: Index, alice: Context) -> None:
    """C036: never as paths; deleting an unknown identity writes its own tombstone and touches nothing else."""
    index.upsert("acme", "制度/年假.md", 1, "markdown", "# 年假\n\n年假五天。", ["alice"])
    index.upsert("acme", "年假.md", 1, "markdown", "# 年假草稿\n\n年假草稿三天。", ["alice"])
    index.upsert("beta", "制度/年假.md", 1, "markdown", "# 年假\n\n年假五天。", ["alice"])
    index.delete("acme", "年假.md", 2)
    assert docs(index.search("年假", alice)) == ["制度/年假.md"]
    index.delete("acme", "./制度/年假.md", 2)
    assert docs(index.search("年假", alice)) == ["制度/年假.md"]
    late = code_of(index.upsert, "acme", "./制度/年假.md", 1, "markdown", "# 年假", ["alice"])
    assert late == "stale_or_conflicting_revision"
    index.delete("acme", "制度/年假.md", 2)
    assert docs(index.search("年假", alice)) == []
    assert docs(index.search("年假", Context("beta", "alice"))) == ["制度/年假.md"]
    assert [item.doc_id for item in index.documents("acme")] == sorted(["制度/年假.md", "年假.md", "./制度/年假.md"])


@pytest.mark.promise("DEL-2", "FLT-9")
@pytest.mark.parametrize("dense", [False, True])
def test_a_document_of_five_hundred_chunks_goes_whole(index_path: Path, alice: Context, dense: bool) -> None:
    """C037: no chunk, FTS row, posting list, vector or ACL entry stays; titles, digests and order do."""
    source = "# 台账\n\n" + "\n\n".join(f"第{i:03d}条记录：设备编号{i:03d}，当前状态为正常运行。" for i in range(500))
    encoder = Table("table-2") if dense else None
    with Index.open(index_path, encoder=encoder, chunk_size=40, overlap=0) as index:
        made = index.upsert("acme", "ledger", 1, "markdown", source, ["alice", "group:hr"])
        index.upsert("acme", "other", 1, "markdown", "# 便签\n\n设备状态另见台账。", ["alice"])
        few = index.search("设备编号", alice, limit=100, mode="lexical")
        assert (made.chunks, len(few)) == (500, 100)
        before = index.status("acme", "ledger")
        index.delete("acme", "ledger", 2)
        expected = {"chunks": 1, "postings": 1, "vectors": int(dense), "chunks_fts": 1, "acl": 1}
        assert counts(index_path) == expected
        after = index.status("acme", "ledger")
        assert (after.state, after.revision, after.acl_revision, after.acl) == ("deleted", 2, 2, ())
        assert (after.title, after.sha256) == (before.title, before.sha256)
        assert {item.doc_id for item in index.answer(few, alice, limit=10).evidence} <= {"other"}
        assert docs(index.search("设备状态", alice, limit=100, mode="lexical")) == ["other"]
        index.delete("acme", "other", 2)
        assert set(counts(index_path).values()) == {0}
        assert index.check() == ()
    with Index.open(index_path, encoder=encoder) as index:
        assert [docs(index.search("设备状态", alice, mode=mode)) for mode in MODES] == [[], [], []]  # type: ignore[arg-type]


@pytest.mark.promise("DEL-1", "DEL-3", "ID-3")
def test_only_an_explicit_restore_above_the_tombstone_brings_a_document_back(
    index_path: Path, alice: Context, bob: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    """C040: and no decision reads the wall clock, ten years ahead or back."""
    years = 10 * 365 * 86_400.0
    now = time.time
    with Index.open(index_path) as index:
        index.upsert("acme", "leave", 1, "markdown", "# 年假\n\n年假五天。", ["alice"])
        index.delete("acme", "leave", 3)
        assert index.delete("acme", "leave", 3).state == "unchanged"
    monkeypatch.setattr(time, "time", lambda: now() + years)
    with Index.open(index_path) as index:
        for revision, restore in ((1, False), (3, False), (3, True), (2, True), (4, False)):
            refused = code_of(
                index.upsert, "acme", "leave", revision, "markdown", "# 年假\n\n年假五天。", ["alice"], restore
            )
            expected = "deleted_document_requires_explicit_restore" if revision == 4 else None
            assert refused == (expected or "stale_or_conflicting_revision")
        for flag in (1, "yes", None, 0):
            refused = code_of(index.upsert, "acme", "leave", 4, "markdown", "# 年假", ["alice"], flag)
            assert refused == "explicit_restore_boolean_required"
        assert docs(index.search("年假", alice)) == []
        monkeypatch.setattr(time, "time", lambda: now() - years)
        back = index.upsert("acme", "leave", 4, "markdown", "# 年假\n\n年假十天。", ["bob"], restore=True)
        assert (back.state, back.acl_revision) == ("indexed", 3)
        assert [docs(index.search("年假", who)) for who in (alice, bob)] == [[], ["leave"]]


@pytest.mark.promise("DEL-1", "DEL-6")
def test_a_tombstone_moves_up_and_nothing_else_changes(index: Index) -> None:
    index.upsert("acme", "d", 1, "markdown", "# 甲\n\n内容", ["alice"])
    index.delete("acme", "d", 3)
    before = index.status("acme", "d").to_dict()
    moved = index.delete("acme", "d", 9)
    assert (moved.state, moved.revision, moved.acl_revision) == ("deleted", 9, 2)
    assert index.status("acme", "d").to_dict() == before | {"revision": 9}
    assert code_of(index.delete, "acme", "d", 8) == "stale_or_conflicting_revision"
    unknown = index.delete("acme", "never", 5)
    assert (unknown.state, unknown.acl_revision) == ("deleted", 1)
    assert code_of(index.upsert, "acme", "never", 5, "markdown", "# 甲", ["alice"]) == "stale_or_conflicting_revision"
    refused = code_of(index.upsert, "acme", "never", 6, "markdown", "# 甲", ["alice"])
    assert refused == "deleted_document_requires_explicit_restore"


@pytest.mark.promise("DEL-6")
def test_absence_from_a_batch_is_no_event(index: Index, alice: Context) -> None:
    """C042"""
    for i in (1, 2, 3):
        index.upsert("acme", f"m{i}", 1, "markdown", f"# 纪要\n\n第{i}次会议纪要", ["alice"])
    for i in (1, 2):
        index.upsert("acme", f"m{i}", 1, "markdown", f"# 纪要\n\n第{i}次会议纪要", ["alice"])
    hits = index.search("会议纪要", alice)
    assert sorted(docs(hits)) == ["m1", "m2", "m3"]
    index.delete("acme", "m2", 2)
    assert sorted(item.doc_id for item in index.answer(hits, alice, limit=10).evidence) == ["m1", "m3"]
