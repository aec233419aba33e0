"""Derived rows are made anew from the documents alone; what a document cannot vouch for is left (OBS-2, DEL-5)."""

from pathlib import Path

import pytest

from kbretrieval import Context
from tests.unit.doubles import MODES, docs, quotes, sql
from tests.unit.test_check import BAD, PLANTED, damaged, opened

__all__ = ["damaged"]

BEYOND = {"document_text", "tombstone_not_empty"}
ALICE = Context("acme", "alice")


@pytest.mark.promise("OBS-2")
@pytest.mark.parametrize("name", PLANTED)
def test_each_derived_fault_is_mended_and_each_other_one_left(name: str, damaged: Path) -> None:
    statement, expected = PLANTED[name]
    codes = {code for code, _ in expected}
    sql(damaged, statement)
    with opened(damaged) as index:
        before = index.status("acme", "bad")
        made = index.repair_derived()
        assert {(fault.code, fault.doc_id) for fault in made.before} == expected
        assert {fault.code for fault in made.left} == codes & BEYOND
        assert index.check() == made.left
        after = index.status("acme", "bad")
        assert (after.revision, after.acl_revision, after.acl) == (before.revision, before.acl_revision, before.acl)
        if not codes & BEYOND:
            found = {mode: docs(index.search("报销条目甲", ALICE, mode=mode)) for mode in MODES}
            assert all("bad" in documents for documents in found.values())
            assert BAD in quotes(index.answer(index.search("报销条目甲", ALICE), ALICE, 10))


def test_old_hits_of_a_repaired_document_are_dead(damaged: Path) -> None:
    with opened(damaged) as index:
        kept = [hit for hit in index.search("报销", ALICE, 10) if hit.doc_id == "bad"]
        sql(damaged, PLANTED["postings"][0])
        assert index.repair_derived().documents == 1
        assert {item.verdict for item in index.audit(kept, ALICE)} == {"chunk missing"}


def test_a_sound_store_is_not_touched(damaged: Path) -> None:
    with opened(damaged) as index:
        content = damaged.read_bytes()
        made = index.repair_derived()
        assert (made.documents, made.before, made.left) == (0, (), ())
        assert damaged.read_bytes() == content
