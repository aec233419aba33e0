"""The file of an open index is moved, removed, or replaced by another, as a restore with `mv` does (ACL-7, CON-7)."""

import os
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from kbretrieval import Context, Index
from kbretrieval.errors import IndexReplaced
from kbretrieval.store.files import identity
from tests.unit.doubles import code_of, docs, error_of

ALICE, BOB = Context("acme", "alice"), Context("acme", "bob")

pytestmark = pytest.mark.skipif(os.name != "posix", reason="Windows replaces no file that is open")


def code_of_each(index: Index, path: Path) -> set[str | None]:
    """The codes of every way in: reading, writing, maintenance."""
    calls = (
        lambda: index.search("退款", ALICE),
        lambda: index.answer([], ALICE),
        lambda: index.upsert("acme", "new", 1, "text", "退款", ["alice"]),
        lambda: index.set_acl("acme", "refund", ["*"], 1),
        lambda: index.delete("acme", "refund", 2),
        lambda: index.documents("acme"),
        index.check,
        index.purge,
        lambda: index.backup(path.with_name("late")),
    )
    return {code_of(call) for call in calls}


@pytest.fixture
def copy(index: Index, index_path: Path) -> Path:
    """A backup of an index with one document for alice."""
    index.upsert("acme", "refund", 1, "text", "退款两周", ["alice"])
    index.backup(index_path.with_name("copy"))
    return index_path.with_name("copy")


@pytest.mark.promise("ACL-7", "CON-7", "ERR-2")
def test_no_right_that_was_taken_in_the_new_file_is_still_given_in_the_old(
    index: Index, index_path: Path, copy: Path
) -> None:
    """SQLite would go on reading the old file, which nobody can write any more."""
    hits = index.search("退款", ALICE)
    assert index.answer(hits, ALICE).state == "extractive"
    copy.replace(index_path)
    with Index.open(index_path) as restored:
        restored.set_acl("acme", "refund", ["bob"], 1)
        assert code_of(index.answer, hits, ALICE) == code_of(index.search, "退款", ALICE) == "index_replaced"
        assert code_of_each(index, index_path) == {"index_replaced"}
        assert docs(restored.search("退款", BOB)) == ["refund"] and restored.check() == ()
    assert not index_path.with_name("late").exists()


@pytest.mark.promise("ERR-1", "ERR-2")
def test_a_file_that_is_gone_takes_no_event_and_comes_back(index: Index, index_path: Path, copy: Path) -> None:
    """What was written to a file without a name would be lost when the last connection closes."""
    away = index_path.rename(index_path.with_name("away"))
    error = error_of(index.search, "退款", ALICE)
    assert type(error) is IndexReplaced and "no file is in its place" in str(error)
    assert code_of_each(index, index_path) == {"index_replaced"}
    away.rename(index_path)
    assert docs(index.search("退款", ALICE)) == ["refund"]
    assert index.upsert("acme", "refund", 2, "text", "退款一周", ["alice"]).state == "indexed"


@pytest.mark.promise("ACL-7")
def test_a_link_that_leads_to_another_file_now_is_another_file(index: Index, index_path: Path, copy: Path) -> None:
    link = index_path.with_name("link")
    link.symlink_to(index_path)
    with Index.open(link) as linked:
        assert docs(linked.search("退款", ALICE)) == ["refund"]
        link.unlink()
        link.symlink_to(copy)
        assert code_of(linked.search, "退款", ALICE) == "index_replaced"


@pytest.mark.promise("ACL-7")
def test_a_file_that_opening_itself_replaces_is_the_new_one(
    index: Index, index_path: Path, copy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As an overlay does: a file of a lower layer that is opened to write is copied, and has another number then."""
    opened, original = list[str](), sqlite3.connect

    def connect(path: Path, **named: Any) -> sqlite3.Connection:
        if "timeout" in named:  # another one only looks at the header
            if not opened:
                copy.replace(index_path)
            opened.append(str(path))
        return original(path, **named)

    monkeypatch.setattr("kbretrieval.store.connection.sqlite3.connect", connect)
    with Index.open(index_path) as other:
        assert len(opened) == 2 and docs(other.search("退款", ALICE)) == ["refund"]


def test_a_name_that_can_be_none_is_no_file() -> None:
    assert identity(Path("a\0b")) is None
