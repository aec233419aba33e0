"""Vectors by text hash in one file: a second run encodes nothing, another encoder's file is refused (QUA-1, VEC-6)."""

from pathlib import Path

import numpy as np
import pytest

from kbretrieval import Index, TermEncoder
from kbretrieval.encoders.quantizer import Quantizer
from kbretrieval.errors import InvalidParameter, StorageIOError
from kbretrieval.evaluation.vector_cache import VectorCache, default_cache
from tests.unit.doubles import held_open
from tests.unit.small_set import CountingEncoder

TEXTS = ["年假五天。", "差旅3号。", "年假五天。"]


@pytest.mark.promise("QUA-1")
def test_a_second_run_encodes_nothing(tmp_path: Path) -> None:
    encoder, path = CountingEncoder(), tmp_path / "deep" / "vectors.npz"
    first = VectorCache(encoder, path)
    first.warm(TEXTS, query=False, label="t")
    assert encoder.calls == first.encoded == 2
    again = VectorCache(encoder, path)
    again.warm(TEXTS, query=False, label="t")
    made = again.encode(TEXTS, query=False)
    assert encoder.calls == 2 and again.encoded == 0
    assert made.truncated == {1}
    assert [vector.tobytes() for vector in made.vectors] == [
        vector.tobytes() for vector in first.encode(TEXTS, query=False).vectors
    ]
    assert [path.name] == [file.name for file in path.parent.iterdir()], "no half-written file is left"


@pytest.mark.promise("QUA-1")
def test_a_query_and_a_document_of_the_same_text_are_two(tmp_path: Path) -> None:
    encoder = CountingEncoder()
    cache = VectorCache(encoder, tmp_path / "v.npz")
    document, query = cache.encode(["年假"], query=False), cache.encode(["年假"], query=True)
    assert encoder.calls == 2 and not np.array_equal(document.vectors[0], query.vectors[0])


@pytest.mark.promise("QUA-1")
def test_a_sparse_encoder_is_passed_through(tmp_path: Path) -> None:
    cache = VectorCache(TermEncoder(), tmp_path / "v.npz")
    cache.warm(TEXTS, query=False, label="t")
    cache.save()
    assert cache.encode(["年假"], query=True).vectors[0] == {"年假": 1}
    assert not (tmp_path / "v.npz").exists()


@pytest.mark.promise("QUA-1")
def test_another_encoder_s_file_is_refused(tmp_path: Path) -> None:
    VectorCache(CountingEncoder(), tmp_path / "v.npz").warm(TEXTS, query=False, label="t")
    with pytest.raises(InvalidParameter, match=r"encoder .* given, encoder .* stored"):
        VectorCache(CountingEncoder("counting:2"), tmp_path / "v.npz")
    assert default_cache(CountingEncoder()) != default_cache(CountingEncoder("counting:2"))


def test_an_index_made_through_the_cache_opens_with_the_encoder_itself(tmp_path: Path) -> None:
    class Coded(CountingEncoder):
        quantizer = Quantizer("counting-int8/1", np.zeros(8), np.ones(8))

    for encoder in (VectorCache(Coded(), None), Coded()):
        Index.open(tmp_path / "i.sqlite", encoder).close()


def _archive(path: Path, **arrays: object) -> None:
    held = {
        "format": np.array(["kbretrieval-vectors/1", "counting:1"]),
        "keys": np.zeros((1, 32), np.uint8),
        "cut": np.zeros(1, np.bool_),
        "vectors": np.zeros((1, 8), np.float32),
    }
    np.savez(path, **{**held, **arrays})  # type: ignore[arg-type]


@pytest.mark.promise("QUA-1")
@pytest.mark.parametrize(
    "arrays",
    [
        {"format": np.array(["kbretrieval-vectors/2", "counting:1"])},
        {"keys": np.zeros((1, 31), np.uint8)},
        {"cut": np.zeros(2, np.bool_)},
        {"vectors": np.zeros((1, 7), np.float32)},
        {"vectors": np.zeros((1, 8), np.float64)},
        {"vectors": np.array([object()])},
    ],
    ids=["format", "keys", "cut", "dimension", "type", "pickle"],
)
def test_a_file_of_another_shape_is_refused(tmp_path: Path, arrays: dict[str, object]) -> None:
    _archive(tmp_path / "v.npz", **arrays)
    with pytest.raises(InvalidParameter, match="vectors: "):
        VectorCache(CountingEncoder(), tmp_path / "v.npz")


@pytest.mark.promise("QUA-1")
def test_a_damaged_byte_is_found(tmp_path: Path) -> None:
    path = tmp_path / "v.npz"
    VectorCache(CountingEncoder(), path).warm(TEXTS, query=False, label="t")
    raw = bytearray(path.read_bytes())
    place = raw.index(b"vectors.npy") + 200
    raw[place] ^= 1
    path.write_bytes(raw)
    with pytest.raises(InvalidParameter, match="vectors: "):
        VectorCache(CountingEncoder(), path)


@pytest.mark.promise("QUA-1")
def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    cache = VectorCache(CountingEncoder(), tmp_path / "file" / "v.npz")
    with pytest.raises(StorageIOError):
        cache.warm(TEXTS, query=False, label="t")


@pytest.mark.promise("QUA-1")
def test_a_file_that_another_program_holds_open_stays_and_nothing_is_left_beside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "vectors.npz"
    VectorCache(CountingEncoder(), path).warm(TEXTS, query=False, label="t")
    before = path.read_bytes()
    monkeypatch.setattr(Path, "replace", held_open)
    with pytest.raises(StorageIOError, match="errno 13"):
        VectorCache(CountingEncoder(), path).warm(["另一篇。"], query=False, label="t")
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["vectors.npz"]
