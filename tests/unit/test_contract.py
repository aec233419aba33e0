"""The contract: what makes derived rows comparable is stored once, and named when it differs (CON-1)."""

from pathlib import Path
from typing import Any

import pytest

from kbretrieval import Context, Index, TermEncoder
from kbretrieval.store.contract import Contract
from tests.unit.doubles import Table, code_of, docs, error_of, sql

CHANGED = "index_projection_contract_changed_rebuild_required"


@pytest.mark.promise("CON-1")
def test_a_new_file_gets_the_defaults_and_keeps_what_it_got(tmp_path: Path) -> None:
    with Index.open(tmp_path / "a") as index:
        assert (index.contract.chunk_size, index.contract.overlap) == (220, 40)
        assert index.contract.encoder == TermEncoder().identifier
    with Index.open(tmp_path / "b", chunk_size=80, overlap=16) as index:
        assert (index.contract.chunk_size, index.contract.overlap) == (80, 16)
    for _ in range(2):
        with Index.open(tmp_path / "b") as index:
            assert (index.contract.chunk_size, index.contract.overlap) == (80, 16)
    for given in ({"chunk_size": 80}, {"overlap": 16}, {"encoder": TermEncoder()}):
        assert code_of(Index.open, tmp_path / "b", **given) is None
    with Index.open(tmp_path / "c", chunk_size=30) as index:
        assert (index.contract.chunk_size, index.contract.overlap) == (30, 0)


@pytest.mark.promise("CON-1", "ERR-1")
@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"chunk_size": 90}, "chunk_size: 80 stored, 90 given"),
        ({"overlap": 15}, "overlap: 16 stored, 15 given"),
        ({"encoder": Table("table-3")}, "encoder: table-2 stored, table-3 given"),
        ({"encoder": TermEncoder()}, "encoder: table-2 stored, terms:"),
        ({"encoder": Table("table-2", default=(1.0, 0.0, 0.0))}, "dimension: 2 stored, 3 given"),
        ({"chunk_size": 90, "overlap": 15}, "chunk_size: 80 stored, 90 given"),
    ],
)
def test_a_given_value_that_differs_is_named_with_the_stored_one(
    index_path: Path, given: dict[str, Any], named: str
) -> None:
    Index.open(index_path, encoder=Table("table-2"), chunk_size=80, overlap=16).close()
    before = index_path.read_bytes()
    refused = error_of(Index.open, index_path, **given)
    assert refused is not None
    assert str(refused).startswith(f"{CHANGED}: {named}")
    assert index_path.read_bytes() == before


@pytest.mark.promise("CON-1", "LEX-2", "CHK-6")
@pytest.mark.parametrize("name", ["analyzer", "cutter", "projection", "schema"])
def test_a_file_of_another_version_is_refused(index_path: Path, name: str) -> None:
    Index.open(index_path).close()
    sql(index_path, f"UPDATE contract SET value = 'other/9' WHERE name = '{name}'")
    before = index_path.read_bytes()
    refused = error_of(Index.open, index_path)
    assert refused is not None
    assert str(refused).startswith(f"{CHANGED}: {name}: other/9 stored, ")
    assert index_path.read_bytes() == before


@pytest.mark.promise("CON-1", "CON-2")
@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM contract WHERE name = 'overlap'",
        "INSERT INTO contract VALUES ('more', 'x')",
        "UPDATE contract SET value = 'many' WHERE name = 'chunk_size'",
        "UPDATE contract SET value = '-1' WHERE name = 'overlap'",
        "DROP TABLE contract",
    ],
)
def test_a_damaged_contract_is_no_contract(index_path: Path, statement: str) -> None:
    Index.open(index_path).close()
    sql(index_path, statement)
    assert code_of(Index.open, index_path) == "index_corrupt"


@pytest.mark.promise("CHK-1", "CON-1")
@pytest.mark.parametrize(
    ("size", "overlap"), [(0, 0), (4097, 0), (10, 10), (10, -1), (True, 0), (10.0, 0), ("10", 0), (None, 220)]
)
def test_an_impossible_window_touches_no_file(index_path: Path, size: Any, overlap: Any) -> None:
    assert code_of(Index.open, index_path, chunk_size=size, overlap=overlap) == "invalid_chunk_window"
    assert not index_path.exists()


@pytest.mark.promise("CON-1")
def test_what_is_no_encoder_touches_no_file(index_path: Path) -> None:
    wrong: list[Any] = ["terms", 5, TermEncoder, object(), Table("", default=(1.0,)), Table("x" * 1001)]
    for encoder in wrong:
        assert code_of(Index.open, index_path, encoder=encoder) == "invalid_encoder"
    assert not index_path.exists()


@pytest.mark.promise("CON-1")
def test_an_existing_file_brings_its_own_contract(index_path: Path, alice: Context) -> None:
    """Without its encoder a dense index still answers, searches by words and deletes; what needs one says so."""
    with Index.open(index_path, encoder=Table("table-2")) as index:
        index.upsert("acme", "d", 1, "markdown", "# 甲\n\n内容", ["alice"])
    with Index.open(index_path) as index:
        assert index.contract == Contract(**{**index.contract.to_dict(), "encoder": "table-2", "dimension": 2})  # type: ignore[arg-type]
        hits = index.search("内容", alice, mode="lexical")
        assert (docs(hits), index.answer(hits, alice).state) == (["d"], "extractive")
        assert code_of(index.search, "内容", alice) == "encoder_unavailable"
        assert code_of(index.upsert, "acme", "e", 1, "markdown", "# 乙\n\n别的", ["alice"]) == "encoder_unavailable"
        assert index.delete("acme", "d", 2).state == "deleted"
        assert index.check() == ()
