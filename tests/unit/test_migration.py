"""`migrate`: another contract in the same file; what is the same afterwards, what is not, and what it costs."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from kbretrieval import Context, Index, TermEncoder, migration
from kbretrieval.encoders.bge import BGEEncoder
from kbretrieval.encoders.port import Encoding
from kbretrieval.migration import MigrationTick, migrate
from kbretrieval.model.files import FOLDER_VARIABLE
from kbretrieval.store import chunk_rows, staging
from kbretrieval.store.connection import Connection
from kbretrieval.store.schema import FTS_REMAINS, PAST, STAGED, STAGED_CONTRACT, STAGED_DOCUMENTS
from tests.unit.doubles import RandomVectors, Table, code_of, docs, error_of, logical_dump, sql
from tests.unit.test_purge import residue

ALICE = Context("acme", "alice")
CHANGED = "index_projection_contract_changed_rebuild_required"
TERMS = TermEncoder()
STAGING = (STAGED_CONTRACT, STAGED_DOCUMENTS, *STAGED.names())
DEAD = (*STAGING, *PAST.names(), *FTS_REMAINS.values())


class Counted(RandomVectors):
    """A dense encoder that keeps every text that it was given."""

    def __init__(self) -> None:
        super().__init__(4)
        self.texts: list[str] = []

    def encode(self, texts: Sequence[str], *, query: bool) -> Encoding:
        self.texts += texts
        return super().encode(texts, query=query)


class Stopped(Exception):
    """The process that migrated is gone."""


def page(word: str, lines: int = 12) -> str:
    """A document of about 25 code points a line."""
    return f"# {word}\n\n" + "\n\n".join(f"第{n}条，{word}每晚限额{n}00元，凭票据实报销。" for n in range(lines))


def filled(path: Path, encoder: Any = None, size: int = 60, overlap: int = 10) -> Path:
    """An index with four documents of several chunks, a short one, one that is not for alice, and a deleted one."""
    with Index.open(path, encoder, size, overlap) as index:
        for word in ("住宿", "餐费", "交通", "培训"):
            index.upsert("acme", word, 1, "markdown", page(word), ["alice"])
        index.upsert("acme", "short", 1, "text", "短", ["alice"])
        index.upsert("acme", "secret", 1, "markdown", page("机密"), ["bob"])
        index.upsert("acme", "gone", 1, "markdown", page("旧闻"), ["alice"])
        index.delete("acme", "gone", 2)
    return path


def left_over(path: Path) -> list[str]:
    """Tables of a generation that does not serve."""
    return [name for (name,) in sql(path, "SELECT name FROM sqlite_schema") if name in DEAD]


def stopping(after: int) -> Callable[[MigrationTick], None]:
    """Progress that ends the migration at its n-th tick."""
    seen = [0]

    def progress(_tick: MigrationTick) -> None:
        seen[0] += 1
        if seen[0] == after:
            raise Stopped

    return progress


@pytest.fixture
def one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each document in a transaction of its own."""
    monkeypatch.setattr(migration, "CHUNKS_IN_ONE_TRANSACTION", 1)


@pytest.fixture
def half_done(index_path: Path, one_by_one: None) -> Path:
    """An index with what a migration to 30/5 left that ended after two documents."""
    filled(index_path)
    with pytest.raises(Stopped):
        migrate(index_path, chunk_size=30, overlap=5, progress=stopping(2))
    assert set(left_over(index_path)) == set(STAGING)
    return index_path


@pytest.mark.promise("MIG-1", "CHK-5")
def test_what_is_stored_once_stays_and_what_is_derived_is_new(index_path: Path) -> None:
    filled(index_path)
    once = ("SELECT * FROM documents", "SELECT * FROM acl")
    before, keys = [sql(index_path, statement) for statement in once], sql(index_path, "SELECT chunk_key FROM chunks")
    ticks: list[MigrationTick] = []
    result = migrate(index_path, chunk_size=30, overlap=5, progress=ticks.append)
    assert (result.state, result.documents, result.chunks_before) == ("migrated", 6, len(keys))
    assert (result.before.chunk_size, result.after.chunk_size, result.after.overlap) == (60, 30, 5)
    assert [sql(index_path, statement) for statement in once] == before
    assert result.chunks == len(sql(index_path, "SELECT 1 FROM chunks")) > len(keys)
    assert min(sql(index_path, "SELECT chunk_key FROM chunks")) > max(keys)
    assert ticks[-1] == MigrationTick(6, 6, result.chunks, 0)
    assert left_over(index_path) == []
    with Index.open(index_path, TERMS, 30, 5) as index:
        assert index.check() == ()
        assert set(docs(index.search("住宿限额", ALICE, 50))) == {"住宿", "餐费", "交通", "培训"}


@pytest.mark.promise("MIG-1")
def test_there_and_back_is_the_same_schema_but_for_the_names_of_indexes(index_path: Path) -> None:
    filled(index_path)
    columns = "SELECT m.name, t.name, t.type, t.pk FROM sqlite_schema m, pragma_table_info(m.name) t ORDER BY 1, t.cid"
    before = sql(index_path, columns)
    indexed = "SELECT tbl_name FROM sqlite_schema WHERE type = 'index' ORDER BY 1"
    tables = sql(index_path, indexed)
    for size in (30, 60, 30):
        migrate(index_path, chunk_size=size)
        assert (sql(index_path, columns), sql(index_path, indexed)) == (before, tables)
        with Index.open(index_path) as index:
            assert index.check() == ()


@pytest.mark.promise("MIG-1", "CHK-5")
def test_no_key_is_ever_given_again(half_done: Path) -> None:
    """Not even those of a generation that never served, whoever writes next."""
    seen = [key for name in ("chunks", STAGED.chunks) for (key,) in sql(half_done, f"SELECT chunk_key FROM {name}")]
    with Index.open(half_done) as index:
        index.upsert("acme", "new", 1, "markdown", page("新增"), ["alice"])
        fresh = "SELECT chunk_key FROM chunks JOIN documents USING (doc_key) WHERE doc_id = 'new'"
        written = [key for (key,) in sql(half_done, fresh)]
        migrate(half_done, chunk_size=40, overlap=5)
        migrated = [key for (key,) in sql(half_done, "SELECT chunk_key FROM chunks")]
        index.upsert("acme", "new", 2, "markdown", page("新增"), ["alice"])
        last = [key for (key,) in sql(half_done, fresh)]
    assert max(seen) < min(written) <= max(written) < min(migrated) <= max(migrated) < min(last)


@pytest.mark.promise("MIG-2")
def test_hits_from_before_give_no_evidence(index_path: Path) -> None:
    filled(index_path)
    with Index.open(index_path) as index:
        hits = index.search("住宿限额", ALICE)
        assert index.answer(hits, ALICE).evidence
        for size in (30, 60):  # back again, too: a chunk with the same text is another chunk
            migrate(index_path, chunk_size=size, overlap=10)
            assert index.answer(hits, ALICE).state == "abstain"
            assert {item.verdict for item in index.audit(hits, ALICE)} == {"chunk missing"}
        assert index.answer(index.search("住宿限额", ALICE), ALICE).evidence


@pytest.mark.promise("MIG-2", "VEC-8")
@pytest.mark.parametrize("searched", [True, False])
def test_an_open_index_that_named_nothing_follows(index_path: Path, searched: bool) -> None:
    filled(index_path)
    with Index.open(index_path) as index:
        if searched:
            index.search("住宿限额", ALICE)
        migrate(index_path, chunk_size=30, overlap=5)
        with Index.open(index_path) as fresh:
            for mode in ("lexical", "vector", "hybrid"):
                for lexical in ("isolated", "fts5"):
                    found, wanted = (
                        item.search("住宿限额", ALICE, 50, mode, lexical=lexical).to_dict()  # type: ignore[arg-type]
                        for item in (index, fresh)
                    )
                    assert found == wanted
        index.upsert("acme", "住宿", 2, "markdown", page("住宿", 15), ["alice"])
        assert (index.contract.chunk_size, index.check()) == (30, ())


@pytest.mark.promise("MIG-2", "CON-1", "ERR-1")
@pytest.mark.parametrize(
    ("given", "to", "named"),
    [
        ((None, 60, None), (None, 30, 5), "chunk_size: 30 stored, 60 given"),
        ((None, None, 10), (None, 60, 5), "overlap: 5 stored, 10 given"),
        ((TERMS, None, None), (Table("table-2"), None, None), f"encoder: table-2 stored, {TERMS.identifier} given"),
    ],
)
def test_an_open_index_that_named_something_else_is_refused(
    index_path: Path, given: tuple[Any, ...], to: tuple[Any, ...], named: str
) -> None:
    """Before anything is written; what needs no contract goes on, and what takes rights away is never held up."""
    filled(index_path)
    with Index.open(index_path, *given) as index:
        hits = index.search("住宿限额", ALICE)
        migrate(index_path, *to)
        before = logical_dump(index_path)
        content = ("acme", "住宿", 2, "markdown", page("新"), ["alice"])
        for call in (
            lambda: index.search("住宿", ALICE),
            lambda: index.search("住宿", ALICE, mode="lexical", lexical="fts5"),
            lambda: index.upsert(*content),
            index.check,
            index.repair_derived,
        ):
            assert str(error_of(call)).startswith(f"{CHANGED}: {named}")
        assert logical_dump(index_path) == before
        assert index.answer(hits, ALICE).state == "abstain"
        assert index.set_acl("acme", "住宿", [], 1).acl_revision == 2
        assert index.delete("acme", "餐费", 2).state == "deleted"


@pytest.mark.promise("MIG-2", "UPD-1")
def test_what_was_prepared_for_another_generation_is_not_written(index_path: Path) -> None:
    encoder = Table("table-2")
    filled(index_path, encoder)
    with Index.open(index_path, encoder) as index:
        encoder.before = lambda: migrate(index_path, Table("table-2"), chunk_size=30, overlap=5)
        assert index.upsert("acme", "new", 1, "markdown", page("新增"), ["alice"]).chunks > 8
        assert index.contract.chunk_size == 30
        assert index.check() == ()
        encoder.before = lambda: migrate(index_path, TERMS)
        refused = error_of(index.upsert, "acme", "more", 1, "markdown", page("另增"), ["alice"])
        assert str(refused).startswith(f"{CHANGED}: encoder: {TERMS.identifier} stored, table-2 given")
        assert index.status("acme", "more").state == "absent"


@pytest.mark.promise("MIG-2")
def test_a_migration_in_the_middle_of_a_search_is_a_commit_like_any_other(index_path: Path) -> None:
    """The query is encoded, then generations switch; and once more between the moments of a search."""
    encoder = Table("table-2")
    filled(index_path, encoder)
    with Index.open(index_path, encoder) as index:
        index.search("住宿", ALICE)
        encoder.before = lambda: migrate(index_path, Table("table-2"), chunk_size=30, overlap=5)
        found = index.search("住宿限额", ALICE, 50)
        assert {hit.chunk_key for hit in found} <= {key for (key,) in sql(index_path, "SELECT chunk_key FROM chunks")}
        assert max(hit.end - hit.start for hit in found) <= 30


@pytest.mark.promise("MIG-3", "ACL-4", "DEL-4")
def test_nothing_that_went_in_between_comes_back(index_path: Path) -> None:
    """There, then a right and a document go and a text is replaced, and back: the old contract, not the old state."""
    dense = RandomVectors()
    filled(index_path)
    with Index.open(index_path) as index:
        hits = index.search("每晚限额", ALICE, 50)
    assert set(docs(hits)) == {"住宿", "餐费", "交通", "培训"}
    migrate(index_path, dense, 30, 5)
    with Index.open(index_path, dense) as index:
        between = index.search("每晚限额", ALICE, 50)
        index.set_acl("acme", "住宿", ["bob"], 1)
        index.delete("acme", "餐费", 2)
        index.upsert("acme", "交通", 2, "markdown", page("出行"), ["alice"])
    assert migrate(index_path, TERMS, 60, 10).state == "migrated"
    with Index.open(index_path, TERMS, 60, 10) as index:
        assert index.check() == ()
        for mode in ("lexical", "vector", "hybrid"):
            found = index.search("每晚限额住宿餐费交通", ALICE, 100, mode)  # type: ignore[arg-type]
            assert set(docs(found)) == {"交通", "培训"}
            assert not any("交通" in hit.text for hit in found)
        for kept in (hits, between):
            assert index.answer(kept, ALICE).state == "abstain"
        assert (index.status("acme", "住宿").acl, index.status("acme", "餐费").state) == (("bob",), "deleted")
        replay = ("markdown", page("餐费"), ["alice"])
        assert code_of(index.upsert, "acme", "餐费", 1, *replay) == "stale_or_conflicting_revision"
        assert code_of(index.upsert, "acme", "餐费", 3, *replay) == "deleted_document_requires_explicit_restore"
        assert code_of(index.set_acl, "acme", "住宿", ["alice"], 1) == "stale_acl_revision"


@pytest.mark.promise("MIG-5", "PRF-10")
def test_a_text_is_encoded_once_and_not_at_all_where_its_vector_is_there(index_path: Path) -> None:
    filled(index_path)
    with Index.open(index_path) as index:
        index.upsert("acme", "copy", 1, "markdown", page("住宿"), ["alice"])
    encoder = Counted()
    first = migrate(index_path, encoder)
    texts = {text for (text,) in sql(index_path, "SELECT text FROM chunks")}
    assert sorted(encoder.texts) == sorted(texts)
    assert (first.encoded, first.chunks) == (len(texts), len(sql(index_path, "SELECT 1 FROM chunks")))
    assert first.chunks > first.encoded
    encoder.texts.clear()
    second = migrate(index_path, encoder, chunk_size=30, overlap=5)
    now = {text for (text,) in sql(index_path, "SELECT text FROM chunks")}
    assert sorted(encoder.texts) == sorted(now - texts)
    assert "短" in texts & now
    assert second.encoded == len(encoder.texts)
    encoder.texts.clear()
    with Index.open(index_path, encoder) as index:
        assert index.check() == ()


@pytest.mark.promise("MIG-5", "PRF-10")
def test_each_document_for_itself_encodes_no_text_twice(index_path: Path, one_by_one: None) -> None:
    filled(index_path)
    with Index.open(index_path) as index:
        index.upsert("acme", "copy", 1, "markdown", page("住宿"), ["alice"])
    encoder = Counted()
    result = migrate(index_path, encoder)
    assert len(encoder.texts) == len(set(encoder.texts)) == result.encoded
    assert result.reused == result.chunks - result.encoded > 0


@pytest.mark.promise("MIG-5")
def test_vectors_of_another_encoder_or_damaged_ones_are_not_reused(index_path: Path) -> None:
    filled(index_path, Table("table-2"))
    assert migrate(index_path, Table("table-3")).reused == 0
    damaged = "UPDATE vectors SET vector = zeroblob(8) WHERE chunk_key = (SELECT max(chunk_key) FROM vectors)"
    sql(index_path, damaged)
    sql(index_path, "UPDATE contract SET value = 'other/9' WHERE name = 'analyzer'")
    again = migrate(index_path, Table("table-3"))
    assert (again.encoded, again.reused) == (1, again.chunks - 1)
    with Index.open(index_path, Table("table-3")) as index:
        assert index.check() == ()


@pytest.mark.promise("MIG-1", "UPD-4")
def test_documents_that_change_meanwhile_are_done_again(index_path: Path, one_by_one: None) -> None:
    filled(index_path)
    with Index.open(index_path) as writer:
        steps = [
            lambda: writer.upsert("acme", "住宿", 2, "markdown", page("新住宿"), ["alice"]),  # done already
            lambda: writer.upsert("acme", "培训", 2, "markdown", page("新培训"), ["alice"]),  # not done yet
            lambda: writer.delete("acme", "餐费", 2),
            lambda: writer.upsert("acme", "new", 1, "markdown", page("新增"), ["alice"]),
            lambda: writer.set_acl("acme", "交通", ["bob"], 1),
        ]
        result = migrate(index_path, chunk_size=30, overlap=5, progress=lambda _: steps and steps.pop(0)())
        assert steps == []
        assert (result.documents, result.again) == (6, 1)
        assert writer.check() == ()
        found = writer.search("新住宿新培训餐费交通新增", ALICE, 100)
        assert set(docs(found)) == {"住宿", "培训", "new"}


@pytest.mark.promise("MIG-1", "CON-5")
def test_a_writer_that_never_rests_does_not_keep_it_from_ending(index_path: Path, one_by_one: None) -> None:
    """After three passes the last few documents are done while others wait."""
    filled(index_path)
    revisions = iter(range(2, 1000))
    with Index.open(index_path, wait_seconds=0) as writer:

        def rewrite(_tick: MigrationTick) -> None:
            writer.upsert("acme", "住宿", next(revisions), "markdown", page("住宿"), ["alice"])

        result = migrate(index_path, chunk_size=30, overlap=5, progress=rewrite)
        assert 2 <= result.again <= 5
        assert writer.check() == ()


@pytest.mark.promise("MIG-1", "DEL-2", "DEL-5")
def test_deleted_or_replaced_text_does_not_wait_in_the_next_generation(index_path: Path, one_by_one: None) -> None:
    filled(index_path)
    staged: list[set[str]] = []

    def words() -> set[str]:
        rows = sql(index_path, f"SELECT text FROM {STAGED.chunks}") + sql(index_path, f"SELECT terms FROM {STAGED.fts}")
        return {word for (text,) in rows for word in ("住宿", "餐费", "交通", "培训") if word in text}

    def change(tick: MigrationTick) -> None:
        if tick.done == 3 and not staged:
            staged.append(words())
            writer.delete("acme", "住宿", 2)
            writer.upsert("acme", "餐费", 2, "text", "别的", ["alice"])
            staged.append(words())
            counts = [sql(index_path, f"SELECT count(*) FROM {name}") for name in (STAGED.postings, STAGED_DOCUMENTS)]
            assert counts == [sql(index_path, f"SELECT count(*) FROM {STAGED.chunks}"), [(1,)]]

    with Index.open(index_path) as writer:
        migrate(index_path, chunk_size=30, overlap=5, progress=change)
        assert staged == [{"住宿", "餐费", "交通"}, {"交通"}]
        assert writer.check() == ()


@pytest.mark.promise("MIG-4")
def test_what_a_dead_migration_left_disturbs_nobody(half_done: Path) -> None:
    with Index.open(half_done, TERMS, 60, 10) as index:
        assert index.check() == ()
        assert set(docs(index.search("住宿限额", ALICE, 50))) == {"住宿", "餐费", "交通", "培训"}
        index.upsert("acme", "住宿", 2, "markdown", page("住宿", 15), ["alice"])
        assert index.check() == ()


@pytest.mark.promise("MIG-4", "MIG-5")
def test_the_next_run_goes_on(index_path: Path, one_by_one: None) -> None:
    filled(index_path)
    encoder = Counted()
    with pytest.raises(Stopped):
        migrate(index_path, encoder, 30, 5, progress=stopping(3))
    done, _ = list(encoder.texts), encoder.texts.clear()
    with Index.open(index_path) as index:
        index.delete("acme", "餐费", 2)  # one of those that were done
    result = migrate(index_path, encoder, 30, 5)
    assert (result.resumed, result.documents) == (2, 5)
    assert encoder.texts and not set(encoder.texts) & set(done)
    assert left_over(index_path) == []
    with Index.open(index_path, encoder) as index:
        assert index.check() == ()


@pytest.mark.promise("MIG-4")
@pytest.mark.parametrize("size", [40, 60])
def test_with_other_values_it_starts_over_or_clears_away(half_done: Path, size: int) -> None:
    """60 is what serves: then nothing is left to do but to clear away."""
    result = migrate(half_done, chunk_size=size)
    assert (result.state, result.resumed, result.chunks) == (
        "migrated" if size == 40 else "unchanged",
        0,
        len(sql(half_done, "SELECT 1 FROM chunks")),
    )
    assert left_over(half_done) == []
    with Index.open(half_done) as index:
        assert (index.contract.chunk_size, index.check()) == (size, ())


@pytest.mark.promise("MIG-4", "DEL-5")
@pytest.mark.parametrize("alive", [False, True])
def test_a_purge_leaves_no_byte_of_deleted_text_in_the_next_generation(
    index_path: Path, one_by_one: None, alive: bool
) -> None:
    """What is left of a dead migration goes; one that is under way goes on."""
    with Index.open(index_path) as index:
        index._engine.connection.run("PRAGMA secure_delete=OFF")
        secret = "# 机密标题QX\n\n" + "\n\n".join(f"代号 ZARQUON7741 甲密乙 不外传，第{n}条。" for n in range(40))
        index.upsert("acme", "secret", 1, "markdown", secret, ["alice"])
        index.upsert("acme", "stay", 1, "text", page("保留"), ["alice"])

        def change(tick: MigrationTick) -> None:
            if tick.done == 1:
                index.delete("acme", "secret", 2)
                assert residue(index_path)
                if alive:
                    index.purge()
                    assert residue(index_path) == []
                    return
                raise Stopped

        if alive:
            assert migrate(index_path, chunk_size=30, overlap=5, progress=change).documents == 1
        else:
            with pytest.raises(Stopped):
                migrate(index_path, chunk_size=30, overlap=5, progress=change)
            index.purge()
            assert left_over(index_path) == []
        assert residue(index_path) == []
        assert index.check() == ()


@pytest.mark.promise("MIG-1")
@pytest.mark.parametrize(
    "damage",
    [
        f"DELETE FROM {STAGED.chunks} WHERE chunk_key = (SELECT max(chunk_key) FROM {STAGED.chunks})",
        f"DELETE FROM {STAGED.postings} WHERE chunk_key = (SELECT max(chunk_key) FROM {STAGED.chunks})",
        f"UPDATE {STAGED.chunks} SET end_point = end_point - 1",
        f"UPDATE {STAGED_DOCUMENTS} SET sha256 = 'x' WHERE doc_key = 1",
        f"INSERT INTO {STAGED.postings} VALUES (99999, 0, x'', x'')",
        f"UPDATE {STAGED.chunks} SET number = number + 1 WHERE doc_key = 1",
    ],
)
def test_a_generation_that_is_not_whole_never_serves(index_path: Path, damage: str) -> None:
    filled(index_path)
    before = sql(index_path, "SELECT * FROM chunks")
    refused = code_of(migrate, index_path, None, 30, 5, progress=lambda _: sql(index_path, damage))
    assert refused == "index_corrupt"
    with Index.open(index_path, TERMS, 60, 10) as index:
        assert (index.check(), sql(index_path, "SELECT * FROM chunks")) == ((), before)


@pytest.mark.promise("MIG-1", "OBS-2")
def test_nothing_is_made_from_a_text_that_its_digest_does_not_vouch_for(index_path: Path) -> None:
    filled(index_path)
    sql(index_path, "UPDATE documents SET body = body || 'x' WHERE doc_id = '交通'")
    before = sql(index_path, "SELECT * FROM chunks")
    assert code_of(migrate, index_path, chunk_size=30) == "index_corrupt"
    assert sql(index_path, "SELECT * FROM chunks") == before


@pytest.mark.promise("MIG-1", "CON-1")
@pytest.mark.parametrize("name", ["analyzer", "cutter", "quantizer"])
def test_an_index_of_an_older_analyzer_or_cutter_is_brought_up(index_path: Path, name: str) -> None:
    filled(index_path, Table("table-2"))
    sql(index_path, f"UPDATE contract SET value = 'older/0' WHERE name = '{name}'")
    assert code_of(Index.open, index_path, Table("table-2")) == CHANGED
    result = migrate(index_path, Table("table-2"))
    assert (result.before.to_dict()[name], result.state, result.encoded) == ("older/0", "migrated", 0)
    with Index.open(index_path, Table("table-2")) as index:
        assert index.check() == ()


@pytest.mark.promise("CON-1")
@pytest.mark.parametrize("name", ["schema", "projection"])
def test_what_cannot_be_made_from_the_file_is_refused(index_path: Path, name: str) -> None:
    filled(index_path)
    sql(index_path, f"UPDATE contract SET value = 'older/0' WHERE name = '{name}'")
    before = logical_dump(index_path)
    assert code_of(migrate, index_path, chunk_size=30) == CHANGED
    assert logical_dump(index_path) == before


@pytest.mark.promise("MIG-1", "ERR-1")
def test_what_is_refused_before_any_work(index_path: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert code_of(migrate, index_path) == "index_missing"
    assert not index_path.exists()
    filled(index_path)
    before = logical_dump(index_path)
    assert code_of(migrate, index_path, chunk_size=0) == "invalid_chunk_window"
    assert code_of(migrate, index_path, chunk_size=10) == "invalid_chunk_window"  # the stored overlap is 10
    assert code_of(migrate, index_path, "terms") == "invalid_encoder"
    assert logical_dump(index_path) == before
    migrate(index_path, Table("table-2"))
    assert code_of(migrate, index_path, chunk_size=30) == "encoder_unavailable"
    sql(index_path, "UPDATE contract SET value = ? WHERE name = 'encoder'", BGEEncoder.identifier)
    before = logical_dump(index_path)
    monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path / "nowhere"))
    assert code_of(migrate, index_path, chunk_size=30) == "model_missing"
    assert logical_dump(index_path) == before


@pytest.mark.promise("MIG-4", "VEC-5", "ERR-2")
def test_an_encoder_that_fails_leaves_the_old_generation(index_path: Path) -> None:
    filled(index_path)
    encoder = Table("table-2")
    encoder.fail_on = "交通"
    before = sql(index_path, "SELECT * FROM chunks")
    assert code_of(migrate, index_path, encoder) == "encoder_failed"
    assert sql(index_path, "SELECT * FROM chunks") == before
    encoder.fail_on = None
    assert migrate(index_path, encoder).state == "migrated"


@pytest.mark.promise("MIG-4", "SYN-7")
def test_one_run_at_a_time(index_path: Path) -> None:
    filled(index_path)
    codes: list[str | None] = []

    def second(_tick: MigrationTick) -> None:
        codes.append(code_of(migrate, index_path, chunk_size=40, wait_seconds=0))

    assert migrate(index_path, chunk_size=30, progress=second).after.chunk_size == 30
    assert codes == ["busy"]


@pytest.mark.promise("MIG-1")
def test_an_index_without_documents(index_path: Path) -> None:
    with Index.open(index_path) as index:
        assert len(index.search("住宿", ALICE)) == 0
        assert migrate(index_path, chunk_size=80).documents == 0
        index.upsert("acme", "d", 1, "markdown", page("住宿"), ["alice"])
        assert (index.contract.chunk_size, index.contract.overlap, index.check()) == (80, 40, ())
        assert docs(index.search("住宿", ALICE))


@pytest.mark.promise("MIG-1", "DEL-5", "UPD-1")
def test_what_is_deleted_while_it_is_encoded_is_not_staged(index_path: Path, one_by_one: None) -> None:
    filled(index_path)
    encoder, staged = Table("table-2"), list[Any]()
    with Index.open(index_path) as writer:
        encoder.before = lambda: writer.delete("acme", "住宿", 2)
        see = f"SELECT doc_key FROM {STAGED_DOCUMENTS} UNION SELECT doc_key FROM {STAGED.chunks}"
        result = migrate(index_path, encoder, progress=lambda _: staged.append(sql(index_path, see)))
    assert (staged[0], result.again, result.documents) == ([], 1, 5)


@pytest.mark.promise("MIG-1", "MIG-4", "DEL-5")
def test_a_change_that_left_the_next_generation_alone_is_found_by_its_commit(
    half_done: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As an older version of this package, which knows of no next generation, would make it."""
    with Index.open(half_done) as index, monkeypatch.context() as older:
        older.setattr(chunk_rows, "is_staging", lambda connection: False)
        index.delete("acme", "住宿", 2)
        index.upsert("acme", "餐费", 2, "markdown", page("新餐费"), ["alice"])
    result = migrate(half_done, chunk_size=30, overlap=5)
    assert (result.resumed, result.documents) == (0, 5)
    with Index.open(half_done) as index:
        assert index.check() == ()
        assert set(docs(index.search("住宿限额", ALICE, 50))) == {"餐费", "交通", "培训"}


@pytest.mark.promise("MIG-1", "MIG-4")
def test_the_old_generation_goes_in_parts(index_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """So that nobody waits long for the lock; ended in the middle, the next run drops the rest."""
    filled(index_path, Table("table-2"))
    monkeypatch.setattr(staging, "ROWS_IN_ONE_TRANSACTION", 7)
    parts, whole = list[str](), staging._drop_part

    def part(connection: Connection, table: str) -> None:
        whole(connection, table)
        if parts.count(PAST.postings) == 2:
            raise Stopped
        parts.append(table)

    monkeypatch.setattr(staging, "_drop_part", part)
    with pytest.raises(Stopped):
        migrate(index_path, Table("table-2"), chunk_size=30, overlap=5)
    assert parts.count(PAST.vectors) > 3 and set(left_over(index_path)) == {PAST.postings, PAST.chunks}
    with Index.open(index_path, Table("table-2"), 30, 5) as index:
        assert index.check() == ()
        index.delete("acme", "住宿", 2)
        assert not any("住宿" in text for (text,) in sql(index_path, f"SELECT text FROM {PAST.chunks}"))
        assert sql(index_path, f"SELECT count(*) FROM {PAST.chunks}") > [(0,)]
        monkeypatch.setattr(staging, "_drop_part", whole)
        assert migrate(index_path).state == "unchanged"
        assert (left_over(index_path), index.check()) == ([], ())


@pytest.mark.promise("MIG-4", "DEL-5")
def test_a_purge_drops_what_served_before(index_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    filled(index_path)
    monkeypatch.setattr(migration, "drop_past", lambda connection: None)
    migrate(index_path, chunk_size=30, overlap=5)
    assert set(left_over(index_path)) == set(PAST.names())
    with Index.open(index_path) as index:
        index.upsert("acme", "住宿", 2, "markdown", page("新住宿"), ["alice"])
        index.purge()
        assert (left_over(index_path), index.check()) == ([], ())
