"""Vectors by text hash in one file, so that a second run of an evaluation encodes nothing (VEC-6, chapter 15).

The file belongs to one encoder identifier, which names everything that a vector depends on; another encoder's is
refused. It is a NumPy archive of plain arrays (nothing in it is executed when it is read), replaced as a whole: of two
runs at once the later one's vectors stay, and the other's are encoded again one day.
"""

import hashlib
import os
import sys
import time
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

from kbretrieval.encoders.port import Encoder, Encoding, Matrix, encode_dense
from kbretrieval.encoders.quantizer import Quantizer, quantizer_of
from kbretrieval.errors import InvalidParameter, StorageIOError
from kbretrieval.store.files import replacing

FORMAT = "kbretrieval-vectors/1"
BATCH = 64
SAVE_SECONDS = 60.0  # an interrupted run loses at most this much work


def cache_folder() -> Path:
    """Return the folder for vectors: `kbretrieval/vectors` in the user's cache."""
    if sys.platform == "win32":
        cache = Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    else:
        cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return cache / "kbretrieval" / "vectors"


def default_cache(encoder: Encoder) -> Path:
    """Return the file of an encoder's vectors in `cache_folder()`, named after its identifier's digest."""
    return cache_folder() / f"{hashlib.sha256(encoder.identifier.encode('utf-8')).hexdigest()[:16]}.npz"


def text_key(text: str, query: bool) -> bytes:
    """Return the 32 bytes under which a text's vector is kept; the same text as query and as document are two.

    Example:
        >>> text_key("年假", True) == text_key("年假", False)
        False
    """
    return hashlib.sha256((b"query\0" if query else b"document\0") + text.encode("utf-8")).digest()


class VectorCache:
    """An encoder in front of which a file stands: what the file holds is not encoded again.

    It is an `Encoder` itself, with the identifier, dimension and floor of the one behind it. `path` None keeps vectors
    in memory only. Raises `invalid_parameter` for a file of another encoder or another shape.

    Example:
        >>> from kbretrieval.encoders.terms import TermEncoder
        >>> VectorCache(TermEncoder(), None).encode(["年假"], query=True).vectors[0]["年假"]
        1
    """

    def __init__(self, encoder: Encoder, path: Path | None) -> None:
        self._encoder, self._path = encoder, path
        self._vectors: dict[bytes, Matrix] = {}
        self._cut: set[bytes] = set()
        self.encoded = 0
        if path is not None and path.exists() and encoder.dimension:
            self._load(path)

    @property
    def identifier(self) -> str:
        """The encoder's identifier."""
        return self._encoder.identifier

    @property
    def dimension(self) -> int:
        """The encoder's dimension."""
        return self._encoder.dimension

    @property
    def floor(self) -> float:
        """The encoder's floor."""
        return self._encoder.floor

    @property
    def quantizer(self) -> Quantizer:
        """The encoder's quantizer: it stands in the contract, so an index is one for both."""
        return quantizer_of(self._encoder)

    def encode(self, texts: Sequence[str], *, query: bool) -> Encoding:
        """Return the vectors of texts, encoding only those that are not kept; sparse ones are never kept."""
        if not self._encoder.dimension:
            return self._encoder.encode(texts, query=query)
        keys = [text_key(text, query) for text in texts]
        missing = {key: text for key, text in zip(keys, texts, strict=True) if key not in self._vectors}
        self._add(list(missing), list(missing.values()), query)
        cut = frozenset(number for number, key in enumerate(keys) if key in self._cut)
        return Encoding([self._vectors[key] for key in keys], cut)

    def warm(self, texts: Sequence[str], *, query: bool, label: str) -> None:
        """Encode what is missing, in batches with a progress bar on a terminal, and save the file."""
        wanted = {text_key(text, query): text for text in texts} if self._encoder.dimension else {}
        missing = [(key, text) for key, text in wanted.items() if key not in self._vectors]
        saved = time.monotonic()
        with tqdm(total=len(missing), desc=label, disable=None if missing else True, file=sys.stderr) as bar:
            for begin in range(0, len(missing), BATCH):
                batch = missing[begin : begin + BATCH]
                self._add([key for key, _ in batch], [text for _, text in batch], query)
                bar.update(len(batch))
                if time.monotonic() - saved > SAVE_SECONDS:
                    self.save()
                    saved = time.monotonic()
        if missing:
            self.save()

    def _add(self, keys: Sequence[bytes], texts: Sequence[str], query: bool) -> None:
        vectors, cut = encode_dense(self._encoder, texts, query=query)
        self.encoded += len(texts)
        self._vectors.update(zip(keys, vectors, strict=True))
        self._cut.update(keys[number] for number in cut)

    def save(self) -> None:
        """Write the file, replacing it at once; `storage_io_error` where it cannot be written."""
        if self._path is None or not self._vectors:
            return
        try:
            keys = list(self._vectors)
            with replacing(self._path) as file:
                np.savez(
                    file,
                    format=np.array([FORMAT, self.identifier]),
                    keys=np.frombuffer(b"".join(keys), np.uint8).reshape(len(keys), 32),
                    cut=np.array([key in self._cut for key in keys]),
                    vectors=np.stack([self._vectors[key] for key in keys]),
                )
        except OSError as error:
            raise StorageIOError(f"the vectors cannot be written (errno {error.errno})") from None

    def _load(self, path: Path) -> None:
        try:
            with np.load(path, allow_pickle=False) as archive:
                held: dict[str, NDArray[Any]] = {name: archive[name] for name in ("format", "keys", "cut", "vectors")}
        except OSError as error:
            raise StorageIOError(f"the vectors cannot be read (errno {error.errno})") from None
        except (ValueError, KeyError, zipfile.BadZipFile, EOFError):
            raise InvalidParameter("vectors: a file written by an evaluation is required, another is there") from None
        if held["format"].shape != (2,) or held["format"][0] != FORMAT:
            raise InvalidParameter(f"vectors: {FORMAT} is required, another format is there")
        if held["format"][1] != self.identifier:
            digests = [
                hashlib.sha256(str(name).encode()).hexdigest()[:12] for name in (self.identifier, held["format"][1])
            ]
            raise InvalidParameter(f"vectors: encoder {digests[0]} given, encoder {digests[1]} stored")
        count = len(held["keys"])
        shapes = (held["keys"].shape, held["cut"].shape, held["vectors"].shape)
        if shapes != ((count, 32), (count,), (count, self.dimension)) or held["vectors"].dtype != np.float32:
            raise InvalidParameter(f"vectors: {count} rows of {self.dimension} float32 numbers are required")
        keys = [row.tobytes() for row in held["keys"]]
        self._vectors = dict(zip(keys, held["vectors"], strict=True))
        self._cut = {key for key, cut in zip(keys, held["cut"], strict=True) if cut}
