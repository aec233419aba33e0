"""FLT-13: an encoder that misbehaves leaves the store unchanged and ends in a typed refusal."""

import itertools
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kbretrieval import Context, Index
from kbretrieval.encoders.port import Encoding
from tests.unit.doubles import Table, code_of, docs, error_of, logical_dump

TEXT = "# 甲\n\n第一段文字。\n\n第二段文字。\n\n第三段文字。"
Made = Callable[[Sequence[str]], Any]


class Odd(Table):
    """A dense encoder that returns what a test makes of the texts, once told to."""

    def __init__(self) -> None:
        super().__init__("table-2")
        self.made: Made | None = None

    def encode(self, texts: Sequence[str], *, query: bool) -> Encoding:
        return super().encode(texts, query=query) if self.made is None else self.made(texts)


def _raises(texts: Sequence[str]) -> Encoding:
    raise RuntimeError("planted")


def _raises_midway(texts: Sequence[str]) -> Encoding:
    def vectors() -> Any:
        yield [1.0, 0.0]
        raise MemoryError("planted")

    return Encoding(vectors())


def _vectors(vector: Any) -> Made:
    """Good vectors but for the last one."""
    return lambda texts: Encoding([[1.0, 0.0]] * (len(texts) - 1) + [vector])


COUNT, OUTPUT, FAILED = "encoder_result_count_mismatch", "invalid_embedding_output", "encoder_failed"
FAULTS: dict[str, tuple[str, Made]] = {
    "too few": (COUNT, lambda texts: Encoding([[1.0, 0.0]] * (len(texts) - 1))),
    "none": (COUNT, lambda texts: Encoding([])),
    "too many": (COUNT, lambda texts: Encoding([[1.0, 0.0]] * (len(texts) + 1))),
    "without end": (COUNT, lambda texts: Encoding(itertools.repeat([1.0, 0.0]))),  # type: ignore[arg-type]
    "NaN": (OUTPUT, _vectors([float("nan"), 0.0])),
    "infinity": (OUTPUT, _vectors([float("inf"), 0.0])),
    "minus infinity": (OUTPUT, _vectors([0.0, float("-inf")])),
    "beyond float32": (OUTPUT, _vectors([1e300, 0.0])),
    "zero": (OUTPUT, _vectors([0.0, 0.0])),
    "below float32": (OUTPUT, _vectors([1e-300, 0.0])),
    "short": (OUTPUT, _vectors([1.0])),
    "long": (OUTPUT, _vectors([1.0, 0.0, 0.0])),
    "nested": (OUTPUT, _vectors([[1.0, 0.0]])),
    "a number": (OUTPUT, _vectors(1.0)),
    "a string": (OUTPUT, _vectors("ab")),
    "words": (OUTPUT, _vectors(["a", "b"])),
    "a mapping": (OUTPUT, _vectors({"a": 1})),
    "None": (OUTPUT, _vectors(None)),
    "no encoding": (OUTPUT, lambda texts: [[1.0, 0.0]] * len(texts)),
    "nothing": (OUTPUT, lambda texts: None),
    "raises": (FAILED, _raises),
    "raises midway": (FAILED, _raises_midway),
    "vectors is a number": (FAILED, lambda texts: Encoding(5)),  # type: ignore[arg-type]
}


@pytest.mark.promise("FLT-13", "VEC-5", "ERR-2")
@pytest.mark.parametrize("name", FAULTS)
def test_nothing_is_written_and_the_refusal_is_typed(index_path: Path, alice: Context, name: str) -> None:
    """In upsert (new and newer) and in search; afterwards the same calls work."""
    code, made = FAULTS[name]
    encoder = Odd()
    with Index.open(index_path, encoder=encoder, chunk_size=10, overlap=0) as index:
        index.upsert("acme", "d", 1, "markdown", "# 旧\n\n旧文字。", ["alice"])
        before, data = logical_dump(index_path), index_path.read_bytes()
        encoder.made = made
        for doc_id, revision in (("d", 2), ("new", 1)):
            refused = error_of(index.upsert, "acme", doc_id, revision, "markdown", TEXT, ["alice"])
            assert refused is not None
            assert (refused.code, refused.exit_status, refused.__cause__) == (code, 7, None)
        assert code_of(index.search, "文字", alice) == code
        assert code_of(index.search, "文字", alice, mode="lexical") is None
        assert (logical_dump(index_path), index_path.read_bytes()) == (before, data)
        encoder.made = None
        assert index.upsert("acme", "d", 2, "markdown", TEXT, ["alice"]).state == "indexed"
        assert index.check() == ()


@pytest.mark.promise("VEC-5")
@pytest.mark.parametrize(
    "vectors",
    [
        lambda n: (vector for vector in [[1.0, 0.0]] * n),
        lambda n: np.ones((n, 2)),
        lambda n: np.ones((n, 2), np.float16),
        lambda n: [(3, 4)] * n,
        lambda n: [np.array([0.6, 0.8])] * n,
    ],
)
def test_a_generator_arrays_and_integers_are_vectors(index_path: Path, alice: Context, vectors: Any) -> None:
    encoder = Odd()
    encoder.made = lambda texts: Encoding(vectors(len(texts)))
    with Index.open(index_path, encoder=encoder, chunk_size=10, overlap=0) as index:
        index.upsert("acme", "d", 1, "markdown", TEXT, ["alice"])
        assert set(docs(index.search("文字", alice, mode="vector"))) == {"d"}
        assert index.check() == ()


@pytest.mark.promise("FLT-13", "UPD-1")
def test_an_encoder_may_use_the_index_that_called_it(index_path: Path, alice: Context) -> None:
    """No lock and no transaction is held while it works; what it wrote meanwhile is seen and respected."""
    encoder = Table("table-2")
    with Index.open(index_path, encoder=encoder) as index:
        inside: list[Any] = []
        encoder.before = lambda: inside.append(index.upsert("acme", "other", 1, "markdown", "# 乙", ["alice"]))
        index.upsert("acme", "d", 1, "markdown", TEXT, ["alice"])
        encoder.before = lambda: inside.append(index.search("第一段", alice, mode="lexical"))
        index.upsert("acme", "e", 1, "markdown", TEXT + "四", ["alice"])
        encoder.before = lambda: inside.append(index.delete("acme", "other", 2))
        assert docs(index.search("乙", alice, mode="lexical", limit=9)) == ["other"]
        assert "other" not in docs(index.search("乙", alice, mode="hybrid", limit=9))
        assert [getattr(item, "state", None) for item in inside] == ["indexed", None, "deleted"]
        encoder.before = index.close
        assert code_of(index.upsert, "acme", "f", 1, "markdown", TEXT + "五", ["alice"]) == "index_closed"
    with Index.open(index_path) as index:
        assert index.check() == ()
        assert [item.doc_id for item in index.documents("acme") if item.state == "live"] == ["d", "e"]


@pytest.mark.promise("FLT-13")
def test_an_encoder_that_calls_itself_without_end_is_one_that_failed(index_path: Path) -> None:
    encoder = Odd()
    with Index.open(index_path, encoder=encoder) as index:
        encoder.made = lambda texts: encoder.encode(texts, query=False)
        assert code_of(index.upsert, "acme", "d", 1, "markdown", TEXT, ["alice"]) == "encoder_failed"
        assert index.documents("acme") == ()


@pytest.mark.promise("FLT-13")
def test_a_store_that_was_touched_is_noticed(index_path: Path) -> None:
    """The comparison can fail: the dump of a store with one changed vector is another one."""
    with Index.open(index_path, encoder=Table("table-2")) as index:
        index.upsert("acme", "d", 1, "markdown", TEXT, ["alice"])
        before = logical_dump(index_path)
        index._engine.connection.run("UPDATE vectors SET vector = x'000000000000803F'")
        assert logical_dump(index_path) != before
