"""Distinct ACLs by number: whom they admit, and that an old snapshot is not disturbed by later ones (ACL-4, VEC-8)."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbretrieval import Context, Index
from kbretrieval.snapshot.acls import SPARE, AclTable

ENTRIES = st.sampled_from(["alice", "bob", "*", "group:hr"])


@pytest.mark.promise("ACL-4")
@given(st.lists(st.lists(ENTRIES, max_size=4), max_size=12), st.sets(ENTRIES), st.integers(0, 12))
def test_an_acl_admits_whom_one_of_its_entries_names(acls: list[list[str]], mine: set[str], count: int) -> None:
    table = AclTable()
    numbers = [table.number_of(acl) for acl in acls]
    assert [numbers[i] == numbers[j] for i in range(len(acls)) for j in range(i)] == [
        set(acls[i]) == set(acls[j])
        if len(set(acls[i])) == len(acls[i]) and len(set(acls[j])) == len(acls[j])
        else sorted(acls[i]) == sorted(acls[j])
        for i in range(len(acls))
        for j in range(i)
    ]
    admitted = table.admitted(mine, count)
    assert len(admitted) == count
    for acl, number in zip(acls, numbers, strict=True):
        if number < count:
            assert admitted[number] == (not mine.isdisjoint(acl))


def test_a_crowded_table_keeps_what_is_used() -> None:
    table = AclTable()
    for number in range(2 * SPARE):
        table.number_of([f"u{number}"])
    assert not AclTable().crowded(np.zeros(0, np.int32))
    used = np.array([3, 1, 3], np.int32)
    assert table.crowded(used)
    kept, numbers = table.renumbered(used)
    assert (len(kept), numbers.tolist()) == (2, [1, 0, 1])
    assert kept.admitted(["u3"], 2).tolist() == [False, True]
    assert not kept.crowded(numbers)


@pytest.mark.promise("VEC-8", "ACL-3")
def test_a_document_whose_acl_changes_for_ever_leaves_no_trail(tmp_path: Path) -> None:
    with Index.open(tmp_path / "kb.sqlite") as index:
        index.upsert("acme", "d", 1, "text", "退款", ["alice"])
        for number in range(2 * SPARE):
            index.set_acl("acme", "d", [f"u{number}"], number + 1)
            assert len(index.search("退款", Context("acme", f"u{number}"))) == 1
            assert len(index.search("退款", Context("acme", f"u{number - 1}"))) == 0
        with index._engine.connection.read():
            snapshot = index._engine.resident.current(index._engine.connection, "acme")
        assert len(snapshot.acls) < SPARE + 2


def test_who_is_admitted_is_worked_out_once_a_context(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked, original = list[int](), AclTable.admitted
    monkeypatch.setattr(AclTable, "admitted", lambda self, mine, n: asked.append(n) or original(self, mine, n))
    with Index.open(tmp_path / "kb.sqlite") as index:
        for number in range(20):
            index.upsert("acme", f"d{number}", 1, "text", "退款", ["alice", f"u{number}"])
        for _ in range(3):
            assert len(index.search("退款", Context("acme", "alice"), 50)) == 20
            assert len(index.search("退款", Context("acme", "u3"))) == 1
    assert asked == [20, 20]
