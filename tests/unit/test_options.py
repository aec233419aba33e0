"""Search options and the book's settings."""

from dataclasses import FrozenInstanceError, fields

import pytest

from kbretrieval import BOOK, Context, Index, SearchOptions
from kbretrieval.options import checked_search
from tests.unit.doubles import code_of, docs

BAD: dict[str, list[object]] = {
    "lexical": ["bm25", "", None, 1, ["fts5"], True],
    "fusion": ["RRF", None, 0],
    "rerank": ["model", None, False],
    "rrf_k": [0, -1, 1_000_001, True, 60.0, "60", None, 2**80],
    "window": [0, 1001, True, 1.0, None],
    "lexical_share": [-0.1, 1.1, float("nan"), float("inf"), True, "0.5", None, 2**80],
}


@pytest.mark.promise("RRF-3", "ERR-1")
@pytest.mark.parametrize(("name", "value"), [(name, value) for name, values in BAD.items() for value in values])
def test_a_bad_option_is_refused_when_made_and_as_a_keyword(
    index: Index, alice: Context, name: str, value: object
) -> None:
    assert code_of(SearchOptions, **{name: value}) == "invalid_search_options"
    assert code_of(index.search, "退款", alice, **{name: value}) == "invalid_search_options"


@pytest.mark.promise("RRF-3", "RRF-4", "RRK-1", "LEX-8")
def test_the_defaults_and_the_books_settings() -> None:
    defaults = SearchOptions().to_dict()
    assert defaults == {
        "lexical": "isolated",
        "fusion": "rrf",
        "rrf_k": 60,
        "window": 100,
        "rerank": "none",
        "lexical_share": 0.15,
    }
    assert BOOK.to_dict() == defaults | {"lexical": "fts5", "rerank": "title"}
    with pytest.raises(FrozenInstanceError):
        BOOK.rrf_k = 1  # type: ignore[misc]
    assert not hasattr(BOOK, "__dict__")


def test_keywords_override_single_options(index: Index, alice: Context) -> None:
    index.upsert("acme", "d", 1, "text", "退款", ["alice"])
    result = index.search("退款", alice, options=BOOK, rrf_k=7, rerank="none")
    assert (result.options.lexical, result.options.rrf_k, result.options.rerank) == ("fts5", 7, "none")
    assert result[0].fused == 2 / 8 and docs(result) == ["d"]
    assert BOOK.rrf_k == 60


@pytest.mark.promise("RRF-3", "ERR-1")
def test_unknown_keywords_and_other_objects_are_refused(index: Index, alice: Context) -> None:
    assert code_of(index.search, "退款", alice, windows=5) == "invalid_search_options"
    for value in (None, {}, "book", object(), SearchOptions):
        assert code_of(index.search, "退款", alice, 5, "hybrid", value) == "invalid_search_options"
    assert [field.name for field in fields(SearchOptions)] == list(SearchOptions().to_dict())


@pytest.mark.parametrize(
    "edge", [{"rrf_k": 1}, {"rrf_k": 10**6}, {"window": 1000}, {"lexical_share": 0}, {"lexical_share": 1.0}]
)
def test_the_edges_are_valid(edge: dict[str, int]) -> None:
    assert checked_search(100, "vector", BOOK, edge) == SearchOptions(**{**BOOK.to_dict(), **edge})
