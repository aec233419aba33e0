"""The checker of histories finds each anomaly in a history of a few lines, and none in a sound one (FLT-5)."""

from dataclasses import replace
from pathlib import Path

import pytest

from tests.faults.events import Event, Final, Seen, counted, merged, shares
from tests.faults.history import anomalies

pytestmark = pytest.mark.promise("FLT-5")

ALICE, BOTH = ("alice",), ("alice", "bob")

# One document, told in order: created, replaced, its list swapped twice, deleted, restored.
CREATED = Event(0, 1, "upsert", 0, 10, "indexed", "d", 1, 1, ALICE, "sha1", 2)
REPLACED = Event(0, 2, "upsert", 20, 30, "indexed", "d", 2, 1, ("bob",), "sha2", 2)
SWAPPED = Event(0, 3, "set_acl", 40, 50, "replaced", "d", 1, 2, BOTH)
NARROWED = Event(0, 4, "set_acl", 60, 70, "replaced", "d", 2, 3, ("bob",))
DELETED = Event(0, 5, "delete", 80, 90, "deleted", "d", 3, 4)
RESTORED = Event(0, 6, "upsert", 100, 110, "indexed", "d", 4, 5, ALICE, "sha4", 1)
WRITTEN = (CREATED, REPLACED, SWAPPED, NARROWED, DELETED, RESTORED)
STORED = Final("d", True, 4, 5, ALICE, "sha4")

FIRST, SECOND = Seen("d", 1, 1, "sha1"), Seen("d", 2, 1, "sha2")
SHARED, BOBS = Seen("d", 2, 2, "sha2"), Seen("d", 2, 3, "sha2")
LAST = Seen("d", 4, 5, "sha4")


def read(begin: int, end: int, *seen: Seen, by: tuple[str, ...] = ALICE, operation: str = "answer") -> Event:
    """A search or an answer of another process."""
    outcome = "done" if operation == "search" else "extractive" if seen else "abstain"
    return Event(1, begin + 1, operation, begin, end, outcome, reader=by, seen=seen)


def kinds(*events: Event, finals: tuple[Final, ...] = (STORED,)) -> list[str]:
    """The kinds of what is found."""
    return [item.kind for item in anomalies(events, finals)]


def searched(begin: int, end: int, *seen: Seen, by: tuple[str, ...] = ALICE) -> list[str]:
    return kinds(*WRITTEN, read(begin, end, *seen, by=by, operation="search"))


def answered(begin: int, end: int, *seen: Seen, by: tuple[str, ...] = ALICE) -> list[str]:
    return kinds(*WRITTEN, read(begin, end, *seen, by=by))


def test_a_sound_history_has_no_anomaly() -> None:
    assert kinds(*WRITTEN) == []
    assert answered(12, 18, FIRST) == answered(32, 38, SECOND) == answered(112, 118, LAST) == []
    assert answered(12, 118) == [], "an abstention is never wrong"
    assert searched(12, 18, FIRST, FIRST) == searched(52, 58, SHARED, SHARED, by=("bob",)) == []
    assert searched(72, 78) == [], "the list is without her"
    assert searched(92, 98) == searched(-9, -1) == [], "deleted, or not there yet"


@pytest.mark.parametrize("seen", [FIRST, SECOND])
def test_while_a_write_is_under_way_either_state_may_be_met(seen: Seen) -> None:
    assert answered(22, 28, seen) == searched(22, 28, seen, seen) == []
    assert answered(30, 38, seen) == [], "a clock's tick may be long: only what ended before it ended"


def test_a_version_is_neither_older_nor_newer_than_the_reader() -> None:
    assert answered(31, 38, FIRST) == ["an older version"]
    assert answered(12, 18, SECOND) == ["a version before it was written"]
    assert answered(92, 98, BOBS, by=("bob",)) == ["a deleted document"]


def test_a_list_is_neither_older_nor_newer_than_the_reader() -> None:
    assert answered(51, 58, SECOND) == ["a replaced list"]
    assert answered(32, 38, SHARED) == ["a list before it was made"]
    assert answered(72, 78, BOBS) == ["a list without this reader"]
    assert answered(52, 58, Seen("d", 2, 9, "sha2")) == ["a list that nobody made"]


def test_what_was_refused_is_never_seen() -> None:
    refused = replace(REPLACED, process=2, sha256="other", outcome="stale_or_conflicting_revision")
    quoted = read(32, 38, replace(SECOND, sha256="other"))
    assert kinds(*WRITTEN, refused) == []
    assert kinds(*WRITTEN, refused, quoted) == ["a version that nobody wrote"]
    assert answered(82, 98, Seen("d", 3, 4, "")) == ["a version that nobody wrote"], "a tombstone has none"
    assert answered(12, 18, Seen("e", 1, 1, "sha1")) == ["a document that nobody wrote"]


@pytest.mark.parametrize(
    ("outcome", "operation", "given", "cause", "none"),
    [
        ("stale_acl_revision", "set_acl", 2, (62, 68), (52, 58)),
        ("document_not_live", "set_acl", 3, (82, 88), (72, 78)),
        ("stale_or_conflicting_revision", "upsert", 2, (22, 28), (12, 18)),
        ("delete_requires_new_revision", "delete", 2, (22, 28), (12, 18)),
        ("deleted_document_requires_explicit_restore", "upsert", 4, (92, 98), (72, 78)),
    ],
)
def test_a_refusal_has_its_cause(
    outcome: str, operation: str, given: int, cause: tuple[int, int], none: tuple[int, int]
) -> None:
    assert kinds(*WRITTEN, Event(2, 1, operation, *cause, outcome, "d", given)) == []
    assert kinds(*WRITTEN, Event(2, 1, operation, *none, outcome, "d", given)) == [f"{outcome} without cause"]
    assert kinds(*WRITTEN, Event(2, 1, operation, -9, -1, outcome, "d", given)) == [], "there was nothing yet"


def test_a_search_sees_whole_versions() -> None:
    assert searched(22, 28, FIRST, SECOND) == ["parts of a version"]
    assert searched(12, 18, FIRST) == ["parts of a version"]
    assert answered(12, 18, FIRST) == [], "an answer may quote a part"
    assert answered(22, 28, FIRST, SECOND) == ["parts of a version"]


def test_a_search_finds_what_is_readable_all_the_time() -> None:
    assert searched(12, 18) == ["a readable document was not found"]
    assert searched(12, 48) == ["a readable document was not found"], "in both versions, under both lists"
    assert searched(12, 68) == [], "the third list is without her"
    assert searched(72, 88) == [], "it is being deleted"


def test_what_is_seen_was_current_at_one_moment() -> None:
    other = replace(CREATED, process=2, doc_id="e", sha256="e1"), replace(REPLACED, process=2, doc_id="e", sha256="e2")
    finals = (STORED, Final("e", True, 2, 1, ALICE, "e2"))
    moved = replace(other[1], begin=32, end=36)

    def together(*seen: Seen) -> list[str]:
        return kinds(*WRITTEN, other[0], moved, read(22, 34, *seen), finals=finals)

    old, new = Seen("e", 1, 1, "e1"), Seen("e", 2, 1, "e2")
    assert together(FIRST, old) == together(SECOND, old) == together(SECOND, new) == []
    assert together(FIRST, new) == ["states of different moments"]


def test_revisions_follow_the_order_in_time() -> None:
    late = replace(CREATED, begin=35, end=38)
    assert "content revisions against the order in time" in kinds(late, *WRITTEN[1:])
    early = replace(NARROWED, begin=32, end=38)
    assert "list revisions against the order in time" in kinds(*WRITTEN[:3], early, *WRITTEN[4:])
    last = replace(CREATED, begin=135, end=138)
    readers = [read(n, n, seen, by=BOTH) for n in range(-5, 150, 5) for seen in (FIRST, SECOND, SHARED, BOBS, LAST)]
    assert "content revisions against the order in time" in kinds(last, *WRITTEN[1:], *readers), "readers or not"


def test_no_two_writes_make_one_revision() -> None:
    twin = replace(REPLACED, process=2, sha256="other")
    assert "two content changes of one revision" in kinds(*WRITTEN, twin)
    swap = replace(SWAPPED, process=2)
    assert "two list changes of one revision" in kinds(*WRITTEN, swap)


def test_a_swap_replaces_what_it_expected() -> None:
    assert kinds(*WRITTEN[:2], replace(SWAPPED, given=7), *WRITTEN[3:]) == ["a swap of another revision than expected"]
    assert kinds(*WRITTEN[:3], *WRITTEN[4:]) == ["a list revision that nobody made"], "as many swaps as revisions"


def test_no_acknowledged_write_is_lost() -> None:
    assert kinds(*WRITTEN, finals=(replace(STORED, revision=3, live=False),)) == ["lost content"]
    assert kinds(*WRITTEN, finals=(replace(STORED, sha256="sha2"),)) == ["lost content"]
    assert kinds(*WRITTEN, finals=(replace(STORED, acl_revision=4),)) == ["lost list"]
    assert kinds(*WRITTEN, finals=(replace(STORED, acl=BOTH),)) == ["lost list"]
    assert kinds(*WRITTEN, finals=()) == ["a document without its content or without its end"]


def test_nothing_unacknowledged_is_stored() -> None:
    assert kinds(*WRITTEN, finals=(replace(STORED, revision=5),)) == ["unacknowledged content"]
    assert kinds(*WRITTEN, finals=(replace(STORED, acl_revision=6),)) == ["unacknowledged list"]
    assert kinds(*WRITTEN, finals=(STORED, replace(STORED, doc_id="e"))) == ["a document that nobody wrote"]


def test_a_tombstone_that_is_moved_keeps_its_list_revision() -> None:
    moved = Event(0, 7, "delete", 92, 96, "deleted", "d", 5, 4)
    restored = replace(RESTORED, given=6)
    finals = (replace(STORED, revision=6),)
    assert kinds(*WRITTEN[:5], moved, restored, finals=finals) == []


@pytest.mark.parametrize("operation", ["upsert", "set_acl", "delete", "search", "answer"])
def test_nothing_but_the_codes_of_an_operation_is_told(operation: str) -> None:
    raw = Event(2, 1, operation, 5, 6, "OperationalError", "d", 1)
    assert kinds(*WRITTEN, raw) == [f"OperationalError from {operation}"]
    assert kinds(*WRITTEN, replace(raw, outcome="busy")) == [f"busy from {operation}"], "nobody waits that long"


def test_histories_are_merged_by_their_begin(tmp_path: Path) -> None:
    events = [*WRITTEN, read(12, 18, FIRST)]
    files = [tmp_path / "0.jsonl", tmp_path / "1.jsonl"]
    for n, file in enumerate(files):
        lines = [event.line() for event in events if event.process == n]
        file.write_text("\n".join(lines) + "\n", encoding="utf-8", newline="\n")
    assert merged(files) == sorted(events, key=lambda event: event.begin)
    assert counted(events)["upsert indexed"] == 3
    assert shares(events) == [0, 6], "a process that wrote nothing counts"
