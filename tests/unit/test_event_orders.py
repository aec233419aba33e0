"""FLT-3: every order in which a document's events can arrive, duplicates included, against the model."""

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from kbretrieval import Context, Index, lifecycle
from kbretrieval.results import DocumentStatus
from tests.unit import lifecycle_model as model
from tests.unit.doubles import code_of, docs, error_of

Event = tuple[str, int, tuple[str, ...]]


@pytest.fixture(autouse=True)
def unsynced(index: Index) -> None:
    """Thousands of commits whose outcome does not depend on the disk: they need not wait for it."""
    index._engine.connection.run("PRAGMA synchronous=OFF")


CREATE: Event = ("upsert", 1, ("alice",))
UPDATE: Event = ("upsert", 2, ("carol",))
POLICY: Event = ("acl", 1, ("bob",))
DELETE: Event = ("delete", 3, ())
RESTORE: Event = ("restore", 4, ("alice", "bob"))
EVENTS = [CREATE, UPDATE, POLICY, DELETE, RESTORE]


def text_of(revision: int) -> str:
    return f"# 文\n\n版本{revision}"


def applied(index: Index, doc_id: str, event: Event) -> str:
    """What the index answers: the result's state, or the refusal's code."""
    kind, number, acl = event
    made: list[Any] = []
    calls: dict[str, Callable[[], object]] = {
        "upsert": lambda: made.append(index.upsert("acme", doc_id, number, "markdown", text_of(number), list(acl))),
        "restore": lambda: made.append(
            index.upsert("acme", doc_id, number, "markdown", text_of(number), list(acl), restore=True)
        ),
        "acl": lambda: made.append(index.set_acl("acme", doc_id, list(acl), number)),
        "delete": lambda: made.append(index.delete("acme", doc_id, number)),
    }
    refused = error_of(calls[kind])
    return refused.code if refused else str(made[0].state)


def expected(old: model.Document | None, event: Event) -> model.Outcome:
    kind, number, acl = event
    if kind == "acl":
        return model.set_acl(old, acl, number)
    if kind == "delete":
        return model.delete(old, number)
    return model.upsert(old, number, text_of(number), acl, restore=kind == "restore")


def agrees(index: Index, doc_id: str, wanted: model.Document | None) -> DocumentStatus:
    status = index.status("acme", doc_id)
    if wanted is None:
        assert status.state == "absent"
        return status
    assert (status.state == "live", status.revision) == (wanted.live, wanted.revision)
    assert (status.acl, status.acl_revision) == (wanted.acl, wanted.acl_revision)
    return status


def play(index: Index, doc_id: str, events: Sequence[Event]) -> DocumentStatus:
    """Apply the events to index and model, compare after each one, and return where they end."""
    state: model.Document | None = None
    for event in events:
        state, outcome = expected(state, event)
        assert applied(index, doc_id, event) == outcome, (events, event)
        agrees(index, doc_id, state)
    return index.status("acme", doc_id)


@pytest.mark.slow
@pytest.mark.promise("FLT-3", "DEL-6", "ID-4", "ID-5", "DEL-3", "ACL-3")
def test_every_order_equals_the_model(index: Index) -> None:
    """120 orders of five events, and 150 of six where one of them comes twice."""
    orders = set(itertools.permutations(EVENTS))
    for twice in EVENTS:
        some = sorted(set(itertools.permutations([*EVENTS, twice])))
        orders |= set(some[:: len(some) // 30])
    assert len(orders) >= 270
    for number, order in enumerate(sorted(orders)):
        play(index, f"d{number}", order)
    assert index.check() == ()


@pytest.mark.slow
@pytest.mark.promise("FLT-3", "DEL-6")
def test_all_orders_converge_where_the_content_above_a_delete_restores(index: Index) -> None:
    """DEL-6: one final live flag, revision and digest; policy is the source's to replay."""
    sets: list[list[Event]] = [
        [CREATE, UPDATE, DELETE, DELETE],
        [CREATE, UPDATE, DELETE, RESTORE],
        [CREATE, CREATE, DELETE, RESTORE, RESTORE],
        [DELETE, RESTORE, ("delete", 5, ()), UPDATE],
    ]
    for n, events in enumerate(sets):
        ends = set()
        for number, order in enumerate(sorted(set(itertools.permutations(events)))):
            end = play(index, f"s{n}-{number}", order)
            ends.add((end.state, end.revision, end.sha256 if end.state == "live" else None))
        assert len(ends) == 1, events


@pytest.mark.promise("DEL-6")
def test_other_sets_may_end_differently_and_the_model_says_how(index: Index) -> None:
    """The promise is bounded: without `restore` a content event above a delete is lost or kept by order."""
    events: list[Event] = [CREATE, ("delete", 2, ()), ("upsert", 3, ("alice",))]
    ends = {play(index, f"o{n}", order).state for n, order in enumerate(itertools.permutations(events))}
    assert ends == {"live", "deleted"}


@pytest.mark.promise("DEL-6", "DEL-3", "ID-4")
def test_twenty_four_orders_of_a_repeated_create_an_update_and_a_delete(index: Index, alice: Context) -> None:
    """C041: all end deleted at revision 3; replays are refused and the delete's duplicate is `unchanged`."""
    steps: list[Event] = [CREATE, CREATE, ("upsert", 2, ("alice",)), DELETE]
    for n, order in enumerate(itertools.permutations(steps)):
        outcomes = [applied(index, f"c{n}", event) for event in order]
        assert set(outcomes) <= {"indexed", "unchanged", "deleted", "stale_or_conflicting_revision"}
        assert docs(index.search("版本", alice)) == []
        assert index.delete("acme", f"c{n}", 3).state == "unchanged"
        late = code_of(index.upsert, "acme", f"c{n}", 3, "markdown", "# 文", ["alice"])
        assert (late, index.status("acme", f"c{n}").revision) == ("stale_or_conflicting_revision", 3)


@pytest.mark.promise("FLT-3")
def test_a_rule_that_lets_an_old_event_through_is_noticed(index: Index, monkeypatch: pytest.MonkeyPatch) -> None:
    """A broken build: a delete of an unknown document leaves nothing. The comparison with the model must fail."""
    monkeypatch.setattr(lifecycle, "insert_tombstone", lambda *_: 0)
    with pytest.raises(AssertionError):
        play(index, "d", [DELETE, CREATE])
