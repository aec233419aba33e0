"""The part of the small security suite on vouchers: what a kept or forged one is worth, and what is quoted."""

from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

from kbretrieval import Context, Provenance
from tests.faults.security_scenes import ALICE, BOB, FILE, QUERY, STRANGER, TEXT, opened, put, quoted, verdicts, voucher
from tests.unit.doubles import sql


def forged(folder: Path, reader: Context = ALICE, **claims: Any) -> None:
    """A voucher that is good but for these claims, in the hands of `reader`, is worth nothing."""
    with opened(folder) as index:
        put(index, "d", ["alice"])
        hit = voucher(index)
        assert quoted(index, [hit]) == ["d"]
        assert quoted(index, [replace(hit, **claims)], reader) == []


def a_voucher_of_another_tenant_is_worth_nothing(folder: Path) -> None:
    """Neither with the tenant that it was made for, nor with the caller's own written over it."""
    with opened(folder) as index:
        put(index, "d", ["alice"])
        put(index, "d", ["alice"], tenant="beta")
        hit = voucher(index)
        assert verdicts(index, [hit], STRANGER) == ["other tenant"]
        own = voucher(index, reader=STRANGER)
        assert quoted(index, [replace(own, tenant="acme")], STRANGER) == []


def a_name_means_the_callers_own_document(folder: Path) -> None:
    forged(folder, STRANGER, tenant="beta")


def a_voucher_of_another_principal_is_worth_nothing(folder: Path) -> None:
    with opened(folder) as index:
        put(index, "d", ["alice", "bob"])
        assert quoted(index, [voucher(index)], BOB) == []


def a_voucher_grants_nothing(folder: Path) -> None:
    forged(folder, BOB, principal="bob")


def a_voucher_under_an_older_list_is_worth_nothing(folder: Path) -> None:
    with opened(folder) as index:
        put(index, "d", ["alice"])
        hit = voucher(index)
        index.set_acl("acme", "d", ["alice", "bob"], 1)
        assert quoted(index, [hit]) == []
        assert quoted(index, [voucher(index)]) == ["d"]


def a_voucher_of_another_revision_is_worth_nothing(folder: Path) -> None:
    forged(folder, revision=2)


def a_voucher_of_another_document_digest_is_worth_nothing(folder: Path) -> None:
    forged(folder, document_sha256="0" * 64)


def a_voucher_of_another_chunk_digest_is_worth_nothing(folder: Path) -> None:
    forged(folder, chunk_sha256="0" * 64)


def a_voucher_of_other_coordinates_is_worth_nothing(folder: Path) -> None:
    forged(folder, start=1)


def a_voucher_for_a_chunk_of_another_document_is_worth_nothing(folder: Path) -> None:
    """With the same text in both, nothing but the chunk's own document tells."""
    with opened(folder) as index:
        put(index, "d", ["alice"])
        put(index, "hidden", ["bob"])
        key = voucher(index, "hidden", BOB).chunk_key
        assert quoted(index, [replace(voucher(index), chunk_key=key)]) == []


def true_is_no_revision(folder: Path) -> None:
    forged(folder, revision=True)


def a_voucher_of_a_deleted_document_is_worth_nothing(folder: Path) -> None:
    """Also where the rows behind it were left in place."""
    with opened(folder) as index:
        put(index, "d", ["alice"])
        hit = voucher(index)
        sql(folder / FILE, "UPDATE documents SET live = 0")
        assert quoted(index, [hit]) == []


# Whether the quotation is the stored text


def spoilt(folder: Path, statement: str, *values: Any, **claims: Any) -> None:
    """After the store was changed by hand the voucher is worth nothing, though its claims were adapted."""
    with opened(folder, chunk_size=12, overlap=0) as index:
        put(index, "d", ["alice"])
        hit = min(index.search(QUERY, ALICE), key=lambda hit: hit.start)
        assert (hit.start, quoted(index, [hit])) == (0, ["d"])
        sql(folder / FILE, statement, *values)
        assert quoted(index, [replace(hit, **claims)]) == []


def a_body_that_is_not_its_digest_is_not_quoted(folder: Path) -> None:
    """The change lies outside the quoted window."""
    spoilt(folder, "UPDATE documents SET body = replace(body, '五', '九')")


def a_chunk_that_is_not_in_its_body_is_not_quoted(folder: Path) -> None:
    made = "4d6e3a0b" * 8
    spoilt(folder, "UPDATE chunks SET text = replace(text, '住', '往'), sha256 = ?", made, chunk_sha256=made)


def a_chunk_that_is_not_its_digest_is_not_quoted(folder: Path) -> None:
    made = "4d6e3a0b" * 8
    spoilt(folder, "UPDATE chunks SET sha256 = ?", made, chunk_sha256=made)


def nothing_descriptive_is_taken_from_a_voucher(folder: Path) -> None:
    with opened(folder) as index:
        put(index, "d", ["alice"])
        lying = replace(voucher(index), text="住宿不限额", title="假", heading="假")
        (evidence,) = index.answer([lying], ALICE).evidence
        assert (evidence.quote, evidence.title, evidence.heading) == (TEXT, "差旅", "差旅")


def a_quotation_says_where_it_comes_from_and_who_let_it_out(folder: Path) -> None:
    source = Provenance("file:///差旅.md", "folder", None, "7")
    with opened(folder) as index:
        put(index, "d", ["*", "alice"], provenance=source)
        (evidence,) = index.answer([voucher(index)], ALICE).evidence
        assert (evidence.provenance, evidence.granted_by) == (source, "alice")


def overlapping_windows_are_quoted_once(folder: Path) -> None:
    with opened(folder, chunk_size=20, overlap=10) as index:
        put(index, "d", ["alice"], "住宿限额" * 9)
        found = index.answer(index.search(QUERY, ALICE, limit=100), ALICE, limit=10).evidence
        ordered = sorted((item.start, item.end) for item in found)
        assert len(ordered) > 1
        assert all(one[1] <= other[0] for one, other in pairwise(ordered))
