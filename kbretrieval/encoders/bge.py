"""The dense encoder: BAAI/bge-small-zh-v1.5 as a community-quantised ONNX file, on the CPU (VEC-2…VEC-4).

First-token (CLS) pooling, L2, 512 dimensions, at most 512 tokens; the instruction stands before queries and never
before documents. The quantised file computes activation scales over whole batches, so texts are run one by one,
without padding: a vector depends on its text alone. Several runs in parallel on one session are bit-equal to one.
"""

import json
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from kbretrieval.encoders.port import Encoding
from kbretrieval.encoders.quantizer import Quantizer
from kbretrieval.errors import InvalidEncoder, ModelMissing
from kbretrieval.model.files import (
    EXPORT,
    EXPORT_REVISION,
    MODEL,
    ORIGINAL,
    ORIGINAL_REVISION,
    TOKENIZER,
    model_folder,
    read_pinned,
)

INSTRUCTION = "为这个句子生成表示以用于检索相关文章："
DIMENSION = 512
MAX_TOKENS = 512
FLOOR = 0.40
PROVIDER = "CPUExecutionProvider"
# Double quotes work in every shell, the one of Windows included; bare brackets do not.
INSTALL = 'python -m pip install "kbretrieval[bge]"'
SCALE_FILE = Path(__file__).with_name("bge_scale.json")
IDENTIFIER = (
    f"bge:{ORIGINAL}@{ORIGINAL_REVISION};export={EXPORT}@{EXPORT_REVISION};model={MODEL.sha256};"
    f"tokenizer={TOKENIZER.sha256};pooling=cls;norm=l2;tokens={MAX_TOKENS};one-per-run;instruction=queries"
)
_INTEGERS = {"tensor(int64)": np.int64, "tensor(int32)": np.int32}


class GraphInput(Protocol):
    """What a graph says about one of its inputs."""

    @property
    def name(self) -> str: ...

    @property
    def type(self) -> str: ...


def feeds(inputs: Sequence[GraphInput], token_ids: Sequence[int]) -> dict[str, NDArray[Any]]:
    """Return exactly the inputs that a graph names, by name, in the integer types that it names, shape (1, n).

    token_type_ids are zero and attention_mask is one: one text a run, no padding. Raises `invalid_encoder` for an
    input that is none of the three.
    """
    values = {
        "input_ids": list(token_ids),
        "attention_mask": [1] * len(token_ids),
        "token_type_ids": [0] * len(token_ids),
    }
    made = {}
    for item in inputs:
        if item.name not in values or item.type not in _INTEGERS:
            raise InvalidEncoder(f"the graph asks for {item.name} as {item.type}, three integer inputs are known")
        made[item.name] = np.asarray([values[item.name]], _INTEGERS[item.type])
    return made


@cache
def bge_quantizer() -> Quantizer:
    """Return the constants of this encoder's int8 rows, shipped with the code."""
    value = json.loads(SCALE_FILE.read_text(encoding="utf-8"))
    return Quantizer(value["name"], np.asarray(value["mean"]), np.asarray(value["scale"]))


class BGEEncoder:
    """Encodes texts with the real model; needs the extra `[bge]` and the two files of `kbretrieval model fetch`.

    `folder` defaults to `kbretrieval.model.files.model_folder()`, `threads` to the number of cores. Raises
    `model_missing` and `model_hash_mismatch` before anything is loaded. Between machines the vectors move by rounding
    (up to about .02 in a score); a score is no probability.
    """

    identifier = IDENTIFIER
    dimension = DIMENSION
    floor = FLOOR

    def __init__(self, folder: Path | str | None = None, threads: int | None = None) -> None:
        where = model_folder() if folder is None else Path(folder)
        model, tokenizer = read_pinned(where, MODEL), read_pinned(where, TOKENIZER)
        try:
            import onnxruntime
            import tokenizers
        except ImportError as error:
            raise ModelMissing(f"the package {error.name} is required; run: {INSTALL}") from None
        self._threads = threads or os.cpu_count() or 1
        self._tokenizer = tokenizers.Tokenizer.from_str(tokenizer.decode("utf-8"))
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(max_length=MAX_TOKENS)
        settings = onnxruntime.SessionOptions()
        settings.intra_op_num_threads = settings.inter_op_num_threads = 1
        settings.log_severity_level = 3
        self._session = onnxruntime.InferenceSession(model, settings, providers=[PROVIDER])
        self._inputs = self._session.get_inputs()

    @property
    def quantizer(self) -> Quantizer:
        """The constants of this encoder's int8 rows."""
        return bge_quantizer()

    def encode(self, texts: Sequence[str], *, query: bool) -> Encoding:
        """Return one unit vector of 512 float32 numbers a text, and which texts were cut at 512 tokens."""
        prefix = INSTRUCTION if query else ""
        if len(texts) == 1 or self._threads == 1:
            made = [self._one(prefix + text) for text in texts]
        else:
            with ThreadPoolExecutor(self._threads) as pool:
                made = list(pool.map(lambda text: self._one(prefix + text), texts))
        cut = frozenset(number for number, (_, truncated) in enumerate(made) if truncated)
        return Encoding([vector for vector, _ in made], cut)

    def _one(self, text: str) -> tuple[NDArray[np.float32], bool]:
        tokens = self._tokenizer.encode(text)
        hidden = self._session.run(None, feeds(self._inputs, tokens.ids))[0]
        first = hidden[0, 0].astype(np.float64)
        norm = float(np.sqrt(np.sum(first * first)))
        return (first / norm if norm else first).astype(np.float32), bool(tokens.overflowing)

    def metadata(self) -> dict[str, Any]:
        """Return what a report says about the model: origin, export, digests, treatment, runtime versions."""
        from importlib.metadata import version

        return {
            "original_model": ORIGINAL,
            "original_revision": ORIGINAL_REVISION,
            "export": EXPORT,
            "export_revision": EXPORT_REVISION,
            "files_sha256": {file.name: file.sha256 for file in (MODEL, TOKENIZER)},
            "pooling": "CLS",
            "normalization": "L2",
            "max_tokens": MAX_TOKENS,
            "query_instruction": INSTRUCTION,
            "runtime": {name: version(name) for name in ("onnxruntime", "numpy", "tokenizers")},
            "provider": PROVIDER,
            "dimension": DIMENSION,
        }


class StoredBGE:
    """Stands for the BGE encoder of an existing index: the model is loaded when something must be encoded."""

    identifier = IDENTIFIER
    dimension = DIMENSION
    floor = FLOOR

    def __init__(self) -> None:
        self._loaded: BGEEncoder | None = None

    @property
    def quantizer(self) -> Quantizer:
        """The constants of this encoder's int8 rows."""
        return bge_quantizer()

    def encode(self, texts: Sequence[str], *, query: bool) -> Encoding:
        """Encode with the real model; `model_missing` where it is not there."""
        if self._loaded is None:
            self._loaded = BGEEncoder()
        return self._loaded.encode(texts, query=query)
