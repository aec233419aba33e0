"""The part of the small security suite on the order of events, and on what stays behind."""

from pathlib import Path

from kbretrieval import KBError
from tests.faults.security_scenes import BOB, FILE, OTHER, TEXT, eligible, opened, put, quoted, voucher
from tests.unit.doubles import Table, code_of, error_of, sql

STALE = "stale_or_conflicting_revision"


def an_older_revision_changes_nothing(folder: Path) -> None:
    with opened(folder) as index:
        put(index, "d", ["alice"], revision=5)
        assert code_of(put, index, "d", ["alice"], OTHER, 4) == STALE
        assert index.status("acme", "d").revision == 5


def one_revision_has_one_content(folder: Path) -> None:
    with opened(folder) as index:
        put(index, "d", ["alice"])
        assert code_of(put, index, "d", ["alice"], OTHER) == STALE


def a_deleted_document_returns_by_an_explicit_restore_alone(folder: Path) -> None:
    with opened(folder) as index:
        put(index, "d", ["alice"])
        index.delete("acme", "d", 2)
        assert code_of(put, index, "d", ["alice"], TEXT, 3) == "deleted_document_requires_explicit_restore"
        assert code_of(put, index, "d", ["alice"], TEXT, 3, restore="no") == "explicit_restore_boolean_required"
        put(index, "d", ["alice"], TEXT, 3, restore=True)
        assert quoted(index, [voucher(index)]) == ["d"]


def a_tombstone_remembers_its_revision(folder: Path) -> None:
    with opened(folder) as index:
        put(index, "d", ["alice"])
        index.delete("acme", "d", 2)
        assert code_of(put, index, "d", ["alice"]) == STALE
        index.delete("acme", "d", 5)
        assert code_of(put, index, "d", ["alice"], TEXT, 4, restore=True) == STALE


def a_deletion_that_came_first_is_remembered(folder: Path) -> None:
    with opened(folder) as index:
        index.delete("acme", "d", 5)
        assert code_of(put, index, "d", ["alice"], TEXT, 4) == STALE


def an_older_deletion_deletes_nothing(folder: Path) -> None:
    with opened(folder) as index:
        put(index, "d", ["alice"], revision=5)
        assert code_of(index.delete, "acme", "d", 5) == "delete_requires_new_revision"
        assert quoted(index, [voucher(index)]) == ["d"]


def a_list_is_replaced_by_who_knows_it(folder: Path) -> None:
    with opened(folder) as index:
        put(index, "d", ["alice"])
        index.set_acl("acme", "d", [], 1)
        assert code_of(index.set_acl, "acme", "d", ["alice"], 1) == "stale_acl_revision"
        assert index.status("acme", "d").acl == ()


def a_deleted_document_has_no_list(folder: Path) -> None:
    with opened(folder) as index:
        put(index, "d", ["alice"])
        index.delete("acme", "d", 2)
        status = index.status("acme", "d")
        assert (status.acl, status.acl_revision) == ((), 2)
        assert code_of(index.set_acl, "acme", "d", ["bob"], 2) == "document_not_live"


def new_content_grants_nothing_again(folder: Path) -> None:
    with opened(folder) as index:
        put(index, "d", ["alice", "bob"])
        index.set_acl("acme", "d", ["alice"], 1)
        put(index, "d", ["alice", "bob"], OTHER, 2)
        assert (eligible(index, BOB), index.status("acme", "d").acl) == ({0}, ("alice",))


# What stays behind


def nothing_derived_outlives_its_text(folder: Path) -> None:
    tables = ("chunks", "postings", "vectors", "vector_codes", "chunks_fts")
    with opened(folder, encoder=Table("table-2")) as index:
        put(index, "d", ["alice"])
        put(index, "d", ["alice"], OTHER, 2)
        assert [sql(folder / FILE, f"SELECT count(*) FROM {table}")[0][0] for table in tables] == [1] * 5
        index.delete("acme", "d", 3)
        assert [sql(folder / FILE, f"SELECT count(*) FROM {table}")[0][0] for table in tables] == [0] * 5
        assert sql(folder / FILE, "SELECT body, headings FROM documents") == [("", "[]")]


def the_key_of_a_chunk_is_never_given_again(folder: Path) -> None:
    with opened(folder) as index:
        put(index, "d", ["alice"])
        old = voucher(index).chunk_key
        index.delete("acme", "d", 2)
        put(index, "e", ["alice"])
        assert voucher(index, "e").chunk_key > old


def a_change_that_fails_halfway_changes_nothing(folder: Path) -> None:
    full = "CREATE TRIGGER full BEFORE INSERT ON chunks BEGIN SELECT RAISE(ABORT, 'full'); END"
    with opened(folder) as index:
        put(index, "d", ["alice"])
        hit = voucher(index)
        sql(folder / FILE, full)
        assert isinstance(error_of(put, index, "d", ["alice"], OTHER, 2), KBError)
        assert index.status("acme", "d").revision == 1
        assert quoted(index, [hit]) == ["d"]
