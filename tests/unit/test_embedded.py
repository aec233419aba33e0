"""What is encoded of a chunk: its text, or its text below its headings; a part of the contract (QUA-4, CON-1)."""

from pathlib import Path

import pytest

from kbretrieval import Context, Index, TermEncoder
from kbretrieval.embedded import Embed
from kbretrieval.migration import migrate
from kbretrieval.store.contract import Wanted
from tests.unit.doubles import code_of, sql
from tests.unit.test_migration import Counted

ALICE = Context("acme", "alice")
CHANGED = "index_projection_contract_changed_rebuild_required"
BODY = "# 差旅制度\n\n## 住宿\n\n" + "每晚限额500元，凭票据实报销。" * 6

pytestmark = pytest.mark.promise("QUA-4")


def made(path: Path, embed: Embed | None) -> Counted:
    """An index of one document of several chunks; returns the encoder, which keeps what it was given."""
    encoder = Counted()
    with Index.open(path, encoder, 40, 8, embed=embed) as index:
        index.upsert("acme", "travel", 1, "markdown", BODY, ["alice"])
        assert index.check() == ()
    return encoder


def chunk_rows(path: Path) -> list[tuple[object, ...]]:
    return sql(path, "SELECT * FROM chunks ORDER BY chunk_key")


def test_a_headed_chunk_is_encoded_below_its_headings_and_stored_as_it_is(tmp_path: Path) -> None:
    plain, headed = made(tmp_path / "plain.sqlite", None), made(tmp_path / "headed.sqlite", "headed")
    rows = chunk_rows(tmp_path / "plain.sqlite")
    assert chunk_rows(tmp_path / "headed.sqlite") == rows
    texts = list(dict.fromkeys(str(row[5]) for row in rows))
    assert len(texts) > 2
    assert plain.texts == texts
    assert headed.texts == [f"差旅制度\n住宿\n{text}" if n else f"差旅制度\n{text}" for n, text in enumerate(texts)]
    stored = [
        sql(tmp_path / name, "SELECT vector FROM vectors ORDER BY chunk_key")
        for name in ("plain.sqlite", "headed.sqlite")
    ]
    assert all(one != other for one, other in zip(*stored, strict=True))
    with Index.open(tmp_path / "headed.sqlite", Counted()) as index:
        hits = index.search("住宿限额", ALICE)
        assert all(item.quote in BODY for item in index.answer(hits, ALICE).evidence)


def test_equal_texts_below_other_headings_have_other_vectors(tmp_path: Path) -> None:
    encoder = Counted()
    with Index.open(tmp_path / "a.sqlite", encoder, 220, 40, embed="headed") as index:
        for name in ("住宿", "餐费"):
            index.upsert("acme", name, 1, "markdown", f"# {name}\n\n" + "。" * 216, ["alice"])
    (texts,) = sql(tmp_path / "a.sqlite", "SELECT count(DISTINCT text) FROM chunks WHERE number = 1")
    (vectors,) = sql(
        tmp_path / "a.sqlite",
        "SELECT count(DISTINCT vector) FROM vectors JOIN chunks USING (chunk_key) WHERE number = 1",
    )
    assert (texts, vectors) == ((1,), (2,))


def test_an_index_keeps_what_it_was_made_with(tmp_path: Path) -> None:
    for embed, other in (("chunk", "headed"), ("headed", "chunk")):
        path = tmp_path / f"{embed}.sqlite"
        made(path, embed)  # type: ignore[arg-type]
        assert code_of(lambda: Index.open(path, Counted(), embed=other)) == CHANGED  # type: ignore[arg-type]  # noqa: B023
        for same in (None, embed):
            with Index.open(path, Counted(), embed=same) as index:  # type: ignore[arg-type]
                assert index.contract.embedded == {"chunk": "chunk/1", "headed": "heading-path+chunk/1"}[embed]


def test_a_file_from_before_there_was_a_choice_has_plain_chunks(tmp_path: Path) -> None:
    made(tmp_path / "a.sqlite", None)
    sql(tmp_path / "a.sqlite", "DELETE FROM contract WHERE name = 'embedded'")
    with Index.open(tmp_path / "a.sqlite", Counted()) as index:
        assert index.contract.embedded == "chunk/1"
        assert index.check() == ()


def test_another_method_than_those_known_is_refused(tmp_path: Path) -> None:
    made(tmp_path / "a.sqlite", None)
    sql(tmp_path / "a.sqlite", "UPDATE contract SET value = 'other/9' WHERE name = 'embedded'")
    assert code_of(lambda: Index.open(tmp_path / "a.sqlite", Counted())) == CHANGED


@pytest.mark.parametrize("embed", ["", "title", 1, True])
def test_an_unknown_choice_touches_no_file(tmp_path: Path, embed: object) -> None:
    assert code_of(lambda: Index.open(tmp_path / "a.sqlite", Counted(), embed=embed)) == "invalid_parameter"  # type: ignore[arg-type]
    assert not (tmp_path / "a.sqlite").exists()


def test_term_counts_have_no_headed_chunks(tmp_path: Path) -> None:
    path = tmp_path / "a.sqlite"
    assert code_of(lambda: Index.open(path, TermEncoder(), embed="headed")) == "invalid_parameter"
    assert Wanted(None, None, None, embed="chunk").for_new_file().embedded == "chunk/1"


def test_check_and_repair_know_what_was_encoded(tmp_path: Path) -> None:
    path = tmp_path / "a.sqlite"
    made(path, "headed")
    sql(path, "UPDATE vectors SET text_sha256 = (SELECT sha256 FROM chunks c WHERE c.chunk_key = vectors.chunk_key)")
    with Index.open(path, encoder := Counted()) as index:
        assert {fault.code for fault in index.check()} == {"vector_text"}
        assert index.repair_derived().left == ()
        assert encoder.texts[0].startswith("差旅制度\n")


def test_a_migration_encodes_anew_and_finds_the_way_back(tmp_path: Path) -> None:
    path, fresh = tmp_path / "a.sqlite", tmp_path / "fresh.sqlite"
    texts = made(path, None).texts
    encoder = Counted()
    there = migrate(path, encoder, embed="headed")
    assert (there.state, there.encoded, there.reused) == ("migrated", len(texts), 0)
    assert encoder.texts == made(fresh, "headed").texts
    assert migrate(path, Counted()).state == "unchanged", "what is not given stays"
    assert migrate(path, Counted(), 30, 4).after.embedded == "heading-path+chunk/1"
    assert migrate(path, TermEncoder()).after.embedded == "chunk/1", "term counts have no headed chunks"
    assert code_of(lambda: migrate(path, embed="headed")) == "invalid_parameter"
