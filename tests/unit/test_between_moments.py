"""Between two short transactions of one call: a search begins anew, and a repair leaves newer rows alone."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from kbretrieval import Context, Index, TermEncoder, repair, retrieval
from kbretrieval.snapshot.resident import Shelf
from tests.unit.doubles import RandomVectors, docs, quotes, sql

ALICE = Context("acme", "alice")


def once(change: Callable[[], object]) -> Callable[[], None]:
    left = [change]

    def call() -> None:
        if left:
            left.pop()()

    return call


def after_ranking(monkeypatch: pytest.MonkeyPatch, change: Callable[[], None]) -> None:
    plain = retrieval.select_dense

    def late(*args: Any) -> Any:
        made = plain(*args)
        change()
        return made

    monkeypatch.setattr(retrieval, "select_dense", late)


def after_the_shelf_was_filled(monkeypatch: pytest.MonkeyPatch, change: Callable[[], None]) -> None:
    def lost(shelf: Shelf, keys: Sequence[int]) -> None:
        """As if other searches had pushed the vectors out."""
        change()

    monkeypatch.setattr(Shelf, "get", lost)


@pytest.mark.promise("VEC-8", "CON-6")
@pytest.mark.parametrize("moment", [after_ranking, after_the_shelf_was_filled])
def test_a_document_that_goes_before_its_vector_is_read_is_no_damage(
    moment: Callable[..., None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, encoder = tmp_path / "kb.sqlite", RandomVectors(8)
    with Index.open(path, encoder=encoder) as index, Index.open(path, encoder=encoder) as other:
        for name in ("kept", "gone"):
            index.upsert("acme", name, 1, "text", f"{name} aa bb", ["alice"])
        moment(monkeypatch, once(lambda: other.delete("acme", "gone", 2)))
        assert docs(index.search("aa bb", ALICE, 10, "vector")) == ["kept"]


@pytest.mark.promise("OBS-2", "UPD-1")
def test_a_revision_that_comes_during_a_repair_keeps_its_own_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "kb.sqlite"
    with Index.open(path) as index, Index.open(path) as other:
        index.upsert("acme", "d", 1, "text", "报销条目甲", ["alice"])
        sql(path, "DELETE FROM postings")
        plain = repair.prepare
        newer = once(lambda: other.upsert("acme", "d", 2, "text", "报销条目乙，另有一句", ["alice"]))

        def slow(*args: Any) -> Any:
            made = plain(*args)
            newer()
            return made

        monkeypatch.setattr(repair, "prepare", slow)
        made = index.repair_derived()
        assert (made.documents, made.left) == (0, ())
        assert quotes(index.answer(index.search("报销", ALICE, 10), ALICE, 10)) == ["报销条目乙，另有一句"]


@pytest.mark.promise("OBS-2")
def test_a_text_that_is_damaged_during_a_repair_vouches_for_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "kb.sqlite"
    with Index.open(path) as index:
        index.upsert("acme", "d", 1, "text", "报销条目甲", ["alice"])
        sql(path, "DELETE FROM postings")
        plain = repair.check
        damage = once(lambda: sql(path, "UPDATE documents SET body = '报销条目乙'"))

        def seen_before(*args: Any) -> Any:
            found = plain(*args)
            damage()
            return found

        monkeypatch.setattr(repair, "check", seen_before)
        made = index.repair_derived()
        assert made.documents == 0
        assert {fault.code for fault in made.left} == {"document_text", "postings"}
        assert sql(path, "SELECT text FROM chunks") == [("报销条目甲",)]


@pytest.mark.promise("VEC-1")
def test_a_score_that_is_the_floor_itself_is_kept(tmp_path: Path) -> None:
    counted = " ".join(["aa", *["bb"] * 19, *["cc"] * 6, "dd", "ee"])  # squares: 1 + 361 + 36 + 1 + 1 = 400
    with Index.open(tmp_path / "kb.sqlite") as index:
        index.upsert("acme", "d", 1, "text", counted, ["alice"])
        found = index.search("aa", ALICE, 10, "vector")
    assert [hit.channels[0].score for hit in found] == [TermEncoder().floor] == [1 / 20]
