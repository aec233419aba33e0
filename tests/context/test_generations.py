"""Generations: which one serves, and what was made under it (CTX-10, CTX-13)."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kbretrieval import Index, migration
from kbretrieval.context import Found, PreferenceLedger, TaskContexts, rerank_by_preference
from kbretrieval.migration import MigrationTick, migrate
from kbretrieval.store import fingerprints
from tests.context.place import TENANT, Place, opened_place
from tests.unit.doubles import code_of, error_of, sql

STALE, FOREIGN = "context_generation_stale", "context_generation_foreign"
UNFINISHED = "context_generation_unfinished"
LEDGER = "SELECT number, since, recorded_at, fingerprint FROM generations ORDER BY entry"


class Stopped(Exception):
    """A migration ends here."""


def found_in(place: Place) -> Found:
    """A search result of this moment."""
    return place.tasks.search(place.scope(), "退款期限")


def stop(_tick: MigrationTick) -> None:
    """Progress that ends a migration at its first tick."""
    raise Stopped


@pytest.mark.promise("CTX-10")
def test_a_result_of_an_earlier_generation_is_stale_also_when_its_contract_comes_back(place: Place) -> None:
    """The digest of the contract is the old one again; the receipt keeps what it says, and is told apart."""
    preferences, scope = PreferenceLedger(place.tasks), place.scope()
    old = place.tasks.search(scope, "退款期限")
    receipt = rerank_by_preference(old, []).receipt
    preferences.record(scope, receipt, old.rows[0].key, "picked")
    first = place.tasks.check_generation(old)
    kept, signals = repr((old, receipt)), sql(place.path, "SELECT * FROM context_signals")
    assert first == place.tasks.check_generation(receipt) == place.tasks.check_generation(first)
    for number, size in ((2, 16), (3, 220)):
        migrate(place.path, chunk_size=size, overlap=4 if size == 16 else 40)
        for voucher in (old, receipt, first):
            error = error_of(place.tasks.check_generation, voucher)
            assert error is not None and error.code == STALE
            assert "generation 1 given" in error.facts and f"{number} serves" in error.facts
            assert code_of(place.tasks.verify_generation, voucher) == STALE
    new = found_in(place)
    assert new.contract_sha256 == old.contract_sha256 == receipt.generation
    assert (repr((old, receipt)), sql(place.path, "SELECT * FROM context_signals")) == (kept, signals)
    assert [item.generation for item in preferences.signals(scope)] == [receipt.generation]
    assert place.tasks.check_generation(new).number == place.tasks.verify_generation(new).number == 3
    assert [(item.number, item.state) for item in place.tasks.generations()] == [
        (1, "past"),
        (2, "past"),
        (3, "serving"),
    ]


@pytest.mark.promise("CTX-10")
def test_what_comes_from_another_index_is_foreign(place: Place, tmp_path: Path) -> None:
    """One of the same contract and as many commits, and one that went on from a backup of this very file."""
    mine = found_in(place)
    with opened_place(tmp_path / "other.sqlite") as other:
        other.revise("leave", 2, "# 年假\n\n入职满三年，年假七天。")
        place.revise("leave", 2, "# 年假\n\n入职满两年，年假六天。")
        theirs = found_in(other)
        assert (theirs.contract_sha256, theirs.commit) == (mine.contract_sha256, mine.commit + 1)
        assert code_of(place.tasks.check_generation, theirs) == FOREIGN
        assert code_of(place.tasks.check_generation, rerank_by_preference(theirs, []).receipt) == FOREIGN
        recorded, own = other.tasks.record_generation(), place.tasks.record_generation()
        assert (recorded.number, recorded.since, recorded.recorded_at) == (own.number, own.since, own.recorded_at)
        assert code_of(place.tasks.verify_generation, recorded) == FOREIGN
    assert place.tasks.check_generation(mine).number == 1
    backup = tmp_path / "backup.sqlite"
    place.index.backup(backup)
    place.revise("leave", 3, "# 年假\n\n另定。")
    later = found_in(place)
    with Index.open(backup) as restored:
        assert code_of(TaskContexts(restored).check_generation, later) == FOREIGN, "a commit that never was in it"
        assert TaskContexts(restored).check_generation(mine).number == 1


@pytest.mark.promise("CTX-10")
@pytest.mark.parametrize(
    "change", [{"contract_sha256": "0" * 64}, {"stamp": "00" * 16}, {"commit": 10**6}], ids=["contract", "stamp", "far"]
)
def test_a_result_that_this_index_never_gave_is_foreign(place: Place, change: dict[str, Any]) -> None:
    assert code_of(place.tasks.check_generation, replace(found_in(place), **change)) == FOREIGN


@pytest.mark.promise("CTX-10")
def test_a_generation_that_is_still_filled_is_refused_as_unfinished(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(migration, "CHUNKS_IN_ONE_TRANSACTION", 1)
    old = found_in(place)
    with pytest.raises(Stopped):
        migrate(place.path, chunk_size=16, overlap=4, progress=stop)
    serving, filled = place.tasks.generations()
    assert (serving.state, filled.number, filled.state, filled.since) == ("serving", 2, "unfinished", None)
    for voucher in (filled, replace(found_in(place), contract_sha256=filled.contract_sha256)):
        error = error_of(place.tasks.check_generation, voucher)
        assert error is not None and error.code == UNFINISHED
        assert filled.contract_sha256[:8] in error.facts and serving.contract_sha256[:8] in error.facts
        assert code_of(place.tasks.verify_generation, voucher) == UNFINISHED
    assert place.tasks.check_generation(old).number == 1, "what serves goes on"
    migrate(place.path, chunk_size=16, overlap=4)
    assert place.tasks.check_generation(filled).number == 2
    assert code_of(place.tasks.check_generation, old) == STALE


@pytest.mark.promise("CTX-10")
def test_a_generation_that_was_given_up_is_not_of_this_history(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(migration, "CHUNKS_IN_ONE_TRANSACTION", 1)
    with pytest.raises(Stopped):
        migrate(place.path, chunk_size=16, overlap=4, progress=stop)
    given_up = place.tasks.generations()[1]
    migrate(place.path, chunk_size=30, overlap=4)
    assert place.tasks.generations()[1].number == given_up.number
    assert code_of(place.tasks.check_generation, given_up) == FOREIGN


def _revise(path: Path) -> None:
    with Index.open(path, wait_seconds=0) as other:
        other.upsert(TENANT, "leave", 2, "markdown", "# 年假\n\n年假六天。", [])


def _revoke(path: Path) -> None:
    with Index.open(path, wait_seconds=0) as other:
        other.set_acl(TENANT, "leave", ["bob"], 1)


def _migrate(path: Path) -> None:
    migrate(path, chunk_size=16, overlap=4)


@pytest.mark.promise("CTX-10", "CTX-11", "CTX-46")
@pytest.mark.parametrize(("change", "code"), [(_revise, STALE), (_revoke, None), (_migrate, STALE)])
def test_others_write_while_what_serves_is_verified(
    place: Place, monkeypatch: pytest.MonkeyPatch, change: Callable[[Path], None], code: str | None
) -> None:
    """They need not wait; what changes a document or the generation in between makes the answer stale."""
    place.tasks.record_generation()
    prints, seen = fingerprints._prints, []

    def interrupted(*given: Any) -> Iterator[str]:
        for made in prints(*given):
            if not seen:
                change(place.path)
            seen.append(made)
            yield made

    monkeypatch.setattr(fingerprints, "_prints", interrupted)
    assert code_of(place.tasks.verify_generation) == code
    assert len(seen) == 4


@pytest.mark.promise("CTX-10", "CTX-61")
def test_a_fingerprint_is_stale_when_content_changes_and_not_with_rights(place: Place) -> None:
    error = error_of(place.tasks.verify_generation)
    assert error is not None and error.code == STALE and "generation 1" in error.facts
    first = place.tasks.record_generation()
    place.index.set_acl(TENANT, "leave", ["bob"], 1)
    place.tasks.release(TENANT, "leave", [])
    place.tasks.put_collection(TENANT, "policies", [])
    assert place.tasks.verify_generation() == place.tasks.verify_generation(first) == first
    assert place.tasks.record_generation() == first
    assert len(sql(place.path, LEDGER)) == 1
    changes: list[Callable[[], object]] = [
        lambda: place.revise("leave", 2, "# 年假\n\n年假六天。"),
        lambda: place.index.delete(TENANT, "travel", 2),
    ]
    for number, change in enumerate(changes, 1):
        change()
        commit = place.tasks.generations()[0].recorded_at
        error = error_of(place.tasks.verify_generation)
        assert error is not None and error.code == STALE
        assert f"commit {commit} recorded" in error.facts
        assert place.tasks.check_generation(first if number == 1 else place.tasks.generations()[0]).number == 1
        assert place.tasks.record_generation() == place.tasks.verify_generation()
        assert code_of(place.tasks.check_generation, first) == STALE, "the line of then is not the line of now"
    lines = sql(place.path, LEDGER)
    assert len({line[3] for line in lines}) == len(lines) == 3
    assert lines[0] == (1, 0, first.recorded_at, first.fingerprint), "and it stands as it was written"
