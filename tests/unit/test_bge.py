"""The real model: what it is fed, that a vector depends on its text alone, and what it says about itself."""

import hashlib
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from kbretrieval.encoders.bge import FLOOR, IDENTIFIER, INSTRUCTION, MAX_TOKENS, BGEEncoder, feeds
from kbretrieval.encoders.port import checked_encoder
from kbretrieval.errors import InvalidEncoder, ModelHashMismatch, ModelMissing
from kbretrieval.evaluation.encoder_speed import encoder_speed
from kbretrieval.model.files import MODEL, TOKENIZER

TEXTS = [f"第{number}条：{'出差住宿每晚限额为500元，凭发票报销。' * (number % 2 + 1)}" for number in range(63)]
TEXT = "住宿标准"


def _inputs(**types: str) -> list[Any]:
    return [SimpleNamespace(name=name, type=f"tensor({width})") for name, width in types.items()]


TWO = _inputs(input_ids="int64", attention_mask="int64")
THREE = _inputs(attention_mask="int32", token_type_ids="int32", input_ids="int32")
ONE = _inputs(input_ids="int64")
each_graph = pytest.mark.parametrize("inputs", [TWO, THREE, ONE], ids=["two", "three", "one"])
WIDTHS = {"tensor(int64)": np.int64, "tensor(int32)": np.int32}


# C073
@pytest.mark.promise("VEC-3")
@each_graph
def test_a_graph_is_fed_the_names_and_types_that_it_declares(inputs: list[Any]) -> None:
    fed = feeds(inputs, [101, 857, 102])
    assert list(fed) == [item.name for item in inputs]
    wanted = {"input_ids": [[101, 857, 102]], "attention_mask": [[1, 1, 1]], "token_type_ids": [[0, 0, 0]]}
    for item in inputs:
        assert fed[item.name].dtype == WIDTHS[item.type]
        assert fed[item.name].shape == (1, 3)
        assert fed[item.name].tolist() == wanted[item.name]


# C073
@pytest.mark.promise("VEC-3")
@pytest.mark.parametrize(
    "unknown",
    [{"position_ids": "int64"}, {"input_ids": "float"}, {"attention_mask": "float16"}, {"Input_ids": "int64"}],
)
def test_an_input_that_is_none_of_the_three_is_refused(unknown: dict[str, str]) -> None:
    ((name, width),) = unknown.items()
    with pytest.raises(InvalidEncoder, match=rf"{name} as tensor\({width}\)"):
        feeds(_inputs(**unknown), [101, 102])


class TinyGraph:
    """Stands for a session: refuses what it does not declare, and gives hidden states that depend on the tokens."""

    def __init__(self, inputs: Sequence[Any]) -> None:
        self.inputs = inputs

    def get_inputs(self) -> Sequence[Any]:
        """Return the declared inputs."""
        return self.inputs

    def run(self, outputs: object, fed: dict[str, Any]) -> list[Any]:
        """Return hidden states of shape (1, n, 512), the first token's unlike the others'."""
        assert outputs is None
        assert set(fed) == {item.name for item in self.inputs}
        for item in self.inputs:
            assert fed[item.name].dtype == WIDTHS[item.type]
        ids = fed["input_ids"]
        hidden = np.full((*ids.shape, 512), 9.0, np.float32)
        hidden[0, 0] = np.arange(512) % (3 + ids.shape[1])
        return [hidden]


# C073
@pytest.mark.model
@pytest.mark.promise("VEC-2", "VEC-3")
@each_graph
def test_each_graph_gives_the_normalised_first_token(
    model_folder: Path, monkeypatch: pytest.MonkeyPatch, inputs: list[Any]
) -> None:
    import onnxruntime

    monkeypatch.setattr(onnxruntime, "InferenceSession", lambda *_, **__: TinyGraph(inputs))
    (vector,) = BGEEncoder(model_folder, threads=1).encode([TEXT], query=False).vectors
    tokens = 6  # four characters between the two marks of the model
    expected = np.arange(512) % (3 + tokens)
    assert np.allclose(vector, expected / np.linalg.norm(expected), rtol=0, atol=1e-7)
    assert abs(float(np.linalg.norm(vector.astype(np.float64))) - 1.0) < 1e-6


@pytest.mark.model
@pytest.mark.promise("VEC-2", "MOD-3")
def test_the_encoder_describes_itself(bge: BGEEncoder) -> None:
    assert checked_encoder(bge) is bge
    assert (bge.identifier, bge.dimension, bge.floor) == (IDENTIFIER, 512, 0.40)
    said = bge.metadata()
    assert said["files_sha256"] == {MODEL.name: MODEL.sha256, TOKENIZER.name: TOKENIZER.sha256}
    assert (said["original_model"], said["export"]) == ("BAAI/bge-small-zh-v1.5", "Xenova/bge-small-zh-v1.5")
    assert said["query_instruction"] == "为这个句子生成表示以用于检索相关文章："
    assert (said["provider"], said["pooling"], said["max_tokens"]) == ("CPUExecutionProvider", "CLS", 512)
    assert set(said["runtime"]) == {"onnxruntime", "numpy", "tokenizers"}
    assert not [key for key in said if "confidence" in key or "probability" in key]


@dataclass
class Loaded:
    """What the runtimes were given, and how often a file was read."""

    models: list[bytes]
    tokenizers: list[bytes]
    reads: list[str]


@pytest.fixture
def loaded(monkeypatch: pytest.MonkeyPatch) -> Loaded:
    """Record what is loaded instead of loading it."""
    import onnxruntime
    import tokenizers

    record = Loaded([], [], [])

    class Session(TinyGraph):
        def __init__(self, model: bytes, *_: object, **__: object) -> None:
            super().__init__(TWO)
            record.models.append(model)

    class Tokenizer:
        no_padding = enable_truncation = staticmethod(lambda **_: None)

        @classmethod
        def from_str(cls, text: str) -> "Tokenizer":
            record.tokenizers.append(text.encode("utf-8"))
            return cls()

    monkeypatch.setattr(onnxruntime, "InferenceSession", Session)
    monkeypatch.setattr(tokenizers, "Tokenizer", Tokenizer)
    return record


def _copy(source: Path, target: Path, *, flip: str = "", leave_out: str = "") -> Path:
    target.mkdir()
    for name in (MODEL.name, TOKENIZER.name):
        content = bytearray((source / name).read_bytes())
        if name == flip:
            content[1000] ^= 1
        if name != leave_out:
            (target / name).write_bytes(content)
    return target


# C072
@pytest.mark.model
@pytest.mark.promise("VEC-4")
@pytest.mark.parametrize("name", [MODEL.name, TOKENIZER.name])
def test_one_flipped_bit_is_refused_before_anything_is_loaded(
    model_folder: Path, tmp_path: Path, loaded: Loaded, name: str
) -> None:
    with pytest.raises(ModelHashMismatch, match=name):
        BGEEncoder(_copy(model_folder, tmp_path / "model", flip=name))
    assert loaded == Loaded([], [], [])


@pytest.mark.model
@pytest.mark.promise("MOD-4")
@pytest.mark.parametrize("name", ["onnxruntime", "tokenizers"])
def test_an_absent_package_is_told_with_a_command_for_every_shell(
    model_folder: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ModelMissing) as refused:
        BGEEncoder(model_folder)
    assert str(refused.value).endswith(f'{name} is required; run: python -m pip install "kbretrieval[bge]"')


# C072
@pytest.mark.model
@pytest.mark.promise("VEC-4", "MOD-4")
@pytest.mark.parametrize("name", [MODEL.name, TOKENIZER.name])
def test_an_absent_file_is_told_before_anything_is_loaded(
    model_folder: Path, tmp_path: Path, loaded: Loaded, name: str
) -> None:
    with pytest.raises(ModelMissing, match=f"{name}.*run: kbretrieval model fetch"):
        BGEEncoder(_copy(model_folder, tmp_path / "model", leave_out=name))
    assert loaded == Loaded([], [], [])


# C072
@pytest.mark.model
@pytest.mark.promise("VEC-4")
def test_the_bytes_that_were_hashed_are_loaded_whatever_the_file_says_later(
    model_folder: Path, tmp_path: Path, loaded: Loaded, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = _copy(model_folder, tmp_path / "model")
    read = Path.read_bytes

    def read_and_replace(self: Path) -> bytes:
        content = read(self)
        loaded.reads.append(self.name)
        self.write_bytes(b"replaced right after the first read")
        return content

    monkeypatch.setattr(Path, "read_bytes", read_and_replace)
    BGEEncoder(folder)
    assert sorted(loaded.reads) == [MODEL.name, TOKENIZER.name]
    assert [hashlib.sha256(model).hexdigest() for model in loaded.models] == [MODEL.sha256]
    assert [hashlib.sha256(text).hexdigest() for text in loaded.tokenizers] == [TOKENIZER.sha256]


def _bits(vectors: Sequence[Any]) -> list[bytes]:
    return [np.asarray(vector, np.float32).tobytes() for vector in vectors]


@pytest.mark.model
@pytest.mark.promise("VEC-3", "VEC-2")
def test_a_vector_depends_on_its_text_alone(bge: BGEEncoder, model_folder: Path) -> None:
    texts = [*TEXTS[:30], TEXT, *TEXTS[30:]]
    (alone,) = _bits(bge.encode([TEXT], query=False).vectors)
    one_thread = _bits(BGEEncoder(model_folder, threads=1).encode(texts, query=False).vectors)
    two_threads = _bits(BGEEncoder(model_folder, threads=2).encode(texts, query=False).vectors)
    backwards = _bits(bge.encode(texts[::-1], query=False).vectors)[::-1]
    assert one_thread[30] == alone
    assert one_thread == two_threads == backwards
    assert {len(bits) for bits in one_thread} == {2048}
    norms = [float(np.linalg.norm(np.frombuffer(bits, "<f4").astype(np.float64))) for bits in one_thread]
    assert max(abs(norm - 1.0) for norm in norms) < 1e-6


@pytest.mark.model
@pytest.mark.promise("VEC-3")
def test_a_padded_batch_would_give_another_vector(
    bge: BGEEncoder, record_property: Callable[[str, object], None]
) -> None:
    # The reason for one text a run: the quantised graph takes its scales from everything in the batch.
    tokens = [bge._tokenizer.encode(text).ids for text in [TEXT, *TEXTS]]
    width = max(map(len, tokens))
    ids = np.asarray([row + [0] * (width - len(row)) for row in tokens], np.int64)
    mask = np.asarray([[1] * len(row) + [0] * (width - len(row)) for row in tokens], np.int64)
    named = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
    hidden = bge._session.run(None, {item.name: named[item.name] for item in bge._inputs})[0]
    batched = hidden[0, 0] / np.linalg.norm(hidden[0, 0])
    alone = bge.encode([TEXT], query=False).vectors[0]
    cosine, furthest = float(batched @ alone), float(np.abs(batched - alone).max())
    record_property("cosine of one text alone and among 63 others", cosine)
    record_property("largest difference of a component", furthest)
    assert furthest > 1e-4, "batches have become exact on this machine; one text a run is no longer needed here"
    assert cosine > 0.9, "the comparison itself is wrong: it must be the same text"


# C028
@pytest.mark.model
@pytest.mark.promise("VEC-2")
def test_the_instruction_stands_before_queries_only(bge: BGEEncoder) -> None:
    (query,) = _bits(bge.encode([TEXT], query=True).vectors)
    (document,) = _bits(bge.encode([TEXT], query=False).vectors)
    (prefixed,) = _bits(bge.encode([INSTRUCTION + TEXT], query=False).vectors)
    assert query == prefixed
    assert query != document


# C074
@pytest.mark.model
@pytest.mark.promise("VEC-4")
def test_texts_beyond_the_token_limit_are_named(bge: BGEEncoder) -> None:
    room = MAX_TOKENS - 2  # for the two marks of the model
    made = bge.encode(["甲" * room, "甲" * (room + 1), "乙" * 300, "甲" * 600 + "猎户座"], query=False)
    assert made.truncated == {1, 3}
    bits = _bits(made.vectors)
    assert bits[0] == bits[1] == bits[3], "what stands after the limit has no part in the vector"
    # A query has the instruction before it, which counts as well.
    assert bge.encode(["甲" * room], query=True).truncated == {0}


@pytest.mark.model
def test_related_texts_are_above_the_floor_and_the_floor_is_a_cut(bge: BGEEncoder) -> None:
    query = bge.encode(["旅馆住一夜能花多少钱"], query=True).vectors[0]
    near, far = bge.encode(["出差住宿每晚限额为500元。", "zxqv"], query=False).vectors
    assert float(query @ near) > FLOOR > float(query @ far)


@pytest.mark.alone
@pytest.mark.model
@pytest.mark.slow
@pytest.mark.promise("PRF-5")
def test_two_threads_against_one_are_reported(
    model_folder: Path, record_property: Callable[[str, object], None]
) -> None:
    speed = encoder_speed(lambda threads: BGEEncoder(model_folder, threads), TEXTS, rounds=2)
    record_property("texts", speed.texts)
    record_property("one thread, ms", round(speed.one_thread_ms, 1))
    record_property("two threads, ms", round(speed.two_threads_ms, 1))
    record_property("two threads against one", round(speed.ratio, 2))
    # No gate on a shared machine; a second thread that costs more than all of one would be a fault of ours.
    assert speed.texts == 63
    assert speed.ratio > 0.5
