"""Names of a case that are about the embedding model: copies of its files, and graphs of our own in its place."""

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray

from kbretrieval.encoders.bge import DIMENSION, BGEEncoder
from kbretrieval.model.files import FILES, model_folder


def copied_model(target: Path, leave_out: str = "") -> str:
    """Copy the model's files to a new folder, but for one."""
    target.mkdir()
    for file in FILES:
        if file.name != leave_out:
            shutil.copyfile(model_folder() / file.name, target / file.name)
    return str(target)


def flip_byte(folder: str, name: str, at: int) -> None:
    """Turn over the bits of one byte of a file."""
    path = Path(folder) / name
    content = bytearray(path.read_bytes())
    content[at] ^= 0xFF
    path.write_bytes(content)


class TinyGraph:
    """Stands for a session: declares inputs, keeps what it is fed, and gives hidden states of the model's width."""

    def __init__(self, inputs: Mapping[str, str]) -> None:
        self.declared = dict(inputs)
        self.fed: dict[str, NDArray[Any]] = {}

    def get_inputs(self) -> Sequence[Any]:
        """Return the inputs in the order in which they were declared."""
        return [SimpleNamespace(name=name, type=f"tensor({width})") for name, width in self.declared.items()]

    def run(self, outputs: object, fed: dict[str, NDArray[Any]]) -> list[NDArray[np.float32]]:
        """Return hidden states of shape (1, n, 512)."""
        self.fed = fed
        return [np.ones((*fed["input_ids"].shape, DIMENSION), np.float32)]


@dataclass(frozen=True)
class Fed:
    """What a graph was fed for one text, and the vector that came of it."""

    inputs: dict[str, NDArray[Any]]
    vector: list[float]


def encode_with(graph: TinyGraph, text: str) -> Fed:
    """Encode one text by the package's encoder with a graph in place of the model's."""
    with patch("onnxruntime.InferenceSession", lambda *_, **__: graph):
        encoder = BGEEncoder(threads=1)
    (vector,) = encoder.encode([text], query=False).vectors
    return Fed(graph.fed, [float(number) for number in vector])
