"""`migrate`: another contract for the documents of an index, in the same file (chapter 16, MIG-1…MIG-5).

Documents, ACLs, revisions and tombstones exist once and are not touched. Chunks, terms and vectors are made anew in
tables beside the serving ones, a few documents a transaction, while readers and writers go on; one last transaction
compares what was made with every live document and lets it serve. So there is no older state that could come back.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import ClassVar, Literal

from kbretrieval.chunking import Chunk, chunks
from kbretrieval.derived import Blobs, prepared_chunks
from kbretrieval.embedded import HEADED, Embed
from kbretrieval.encoders.bge import BGEEncoder, StoredBGE
from kbretrieval.encoders.port import Encoder, checked_encoder
from kbretrieval.encoders.quantizer import quantizer_of
from kbretrieval.encoders.stored import NamedEncoder, encoder_for
from kbretrieval.errors import EncoderUnavailable, IndexCorrupt, IndexMissing
from kbretrieval.projection import digest
from kbretrieval.results import Exported
from kbretrieval.store.chunk_rows import PreparedChunk
from kbretrieval.store.connection import DEFAULT_WAIT_SECONDS, Connection
from kbretrieval.store.contract import Contract, Wanted, expect_contract, read_contract
from kbretrieval.store.documents import DocumentRow, document_by_key
from kbretrieval.store.opening import checked_path, open_connection
from kbretrieval.store.schema import STAGED
from kbretrieval.store.staging import (
    begin_staging,
    chunk_total,
    delete_outdated,
    drop_past,
    give_up_staging,
    goes_on,
    live_documents,
    stage_document,
    staged_contract,
    staged_documents,
    switch,
    unstaged_keys,
)
from kbretrieval.store.vector_rows import known_vectors

CHUNKS_IN_ONE_TRANSACTION = 256
PATIENT_PASSES = 3
FEW_DOCUMENTS = 8

Batch = list[tuple[DocumentRow, Sequence[Chunk]]]


@dataclass(frozen=True, slots=True)
class MigrationTick:
    """How far a migration is: documents done of those that live, chunks written and texts encoded by this run."""

    done: int
    total: int
    chunks: int
    encoded: int


@dataclass(frozen=True, slots=True)
class MigrationResult(Exported):
    """What a migration did.

    state: `migrated`, or `unchanged` where the index has the wanted contract. documents, chunks: of the generation that
    serves now. resumed: documents that an earlier run, which did not end, had done already. again: how often a document
    was done in vain, because it changed before the switch. encoded: texts given to the encoder; reused: vectors that
    were there already, in the old generation or in this one.
    """

    SCHEMA: ClassVar[str] = "kbretrieval.migration/1"

    state: Literal["migrated", "unchanged"]
    before: Contract
    after: Contract
    documents: int
    chunks_before: int
    chunks: int
    resumed: int
    again: int
    encoded: int
    reused: int


Progress = Callable[[MigrationTick], object]


def _silent(_tick: MigrationTick) -> None:
    """Nobody watches."""


def migrate(
    path: str | os.PathLike[str],
    encoder: Encoder | None = None,
    chunk_size: int | None = None,
    overlap: int | None = None,
    *,
    embed: Embed | None = None,
    progress: Progress = _silent,
    wait_seconds: float = DEFAULT_WAIT_SECONDS,
) -> MigrationResult:
    """Bring an index file to another contract and return what was done; `None` means the stored value.

    `embed`: see `Index.open`. Others go on meanwhile, each call in one generation as a whole (MIG-2); hits from before
    the switch are dead then. An index that is open elsewhere follows; one that was opened with what is no longer stored
    is refused searches and content events. Ended at any point, the next call with the same values goes on, one with
    others starts over (MIG-4). Other runs of many transactions are kept out. `purge` gives the old pages back.

    Raises `index_missing`, `invalid_chunk_window`, `model_missing` and `encoder_unavailable` before any work,
    `index_corrupt` where a text and its digest disagree, the encoder's refusals, `busy`, and store errors. The old
    generation then serves as before.

    Example:
        >>> import tempfile, pathlib
        >>> from kbretrieval import Index
        >>> folder = tempfile.TemporaryDirectory()
        >>> path = pathlib.Path(folder.name) / "kb.sqlite"
        >>> with Index.open(path) as index:
        ...     _ = index.upsert("acme", "travel", 1, "text", "差旅：住宿每晚限额500元。", ["alice"])
        >>> migrate(path, chunk_size=10, overlap=2).chunks
        2
        >>> folder.cleanup()
    """
    wanted = Wanted(None if encoder is None else checked_encoder(encoder), chunk_size, overlap, anew=True, embed=embed)
    wanted.check_values()
    with _opened(checked_path(path), wait_seconds) as connection, connection.lone_run():
        return _migrated(connection, wanted, progress)


@contextmanager
def _opened(path: Path, wait_seconds: float) -> Iterator[Connection]:
    if not os.path.isfile(path) or path.stat().st_size == 0:  # noqa: PTH113 - Path.is_file raises for a long name
        raise IndexMissing("an index is required, no file or an empty one is there")
    connection, _ = open_connection(path, Wanted(None, None, None, anew=True), wait_seconds)
    try:
        yield connection
    finally:
        connection.close()


def _migrated(connection: Connection, wanted: Wanted, progress: Progress) -> MigrationResult:
    with connection.read():
        stored = read_contract(connection)  # not as it was at opening: another migration may have come before this one
    target = _target(wanted, stored)
    if target == stored:
        return _unchanged(connection, stored)
    encoder = wanted.encoder or _loaded(stored)
    result = _Filling(connection, stored, target, encoder, progress).run()
    drop_past(connection)
    return result


def _target(wanted: Wanted, stored: Contract) -> Contract:
    """Return what is given, else what is stored, under the versions of this package; raises `invalid_chunk_window`."""
    encoder = wanted.encoder or encoder_for(stored.encoder, stored.dimension)
    size = stored.chunk_size if wanted.chunk_size is None else wanted.chunk_size
    overlap = stored.overlap if wanted.overlap is None else wanted.overlap
    embed = wanted.embed or ("headed" if stored.embedded == HEADED and encoder.dimension else "chunk")
    made = Wanted(encoder, size, overlap, embed=embed).for_new_file()
    # The constants of an encoder that is known by its name alone are known by theirs.
    return replace(made, quantizer=stored.quantizer) if isinstance(encoder, NamedEncoder) else made


def _loaded(stored: Contract) -> Encoder:
    encoder = encoder_for(stored.encoder, stored.dimension)
    if isinstance(encoder, NamedEncoder):
        raise EncoderUnavailable(f"{stored.encoder} stored, no encoder given; pass it")
    return BGEEncoder() if isinstance(encoder, StoredBGE) else encoder


def _unchanged(connection: Connection, stored: Contract) -> MigrationResult:
    with connection.write():
        give_up_staging(connection)
        documents, count = live_documents(connection), chunk_total(connection)
    drop_past(connection)
    return MigrationResult("unchanged", stored, stored, documents, count, count, 0, 0, 0, 0)


class _Filling:
    """One migration: passes over the documents that are not done, until none is left at the moment of the switch."""

    def __init__(
        self, connection: Connection, stored: Contract, target: Contract, encoder: Encoder, progress: Progress
    ) -> None:
        self._connection, self._stored, self._target, self._progress = connection, stored, target, progress
        self._encoder, self._quantizer = encoder, quantizer_of(encoder)
        self._held = False  # the write lock, from the last few documents to the switch
        self._done: set[int] = set()
        self._resumed = self._again = self._chunks = self._encoded = self._reused = self._total = 0

    def run(self) -> MigrationResult:
        """Fill the next generation and let it serve."""
        connection, passes = self._connection, 0
        self._begin()
        while True:
            with connection.read():
                keys = unstaged_keys(connection)
            self._fill(keys)
            passes += 1
            with connection.write():
                delete_outdated(connection)
                late = unstaged_keys(connection)
                if passes >= PATIENT_PASSES and len(late) <= FEW_DOCUMENTS:
                    # Somebody writes all the time. Nobody can now: the last few are done while others wait.
                    self._held = True
                    self._fill(late)
                if self._held or not late:
                    return self._switched()

    def _reading(self) -> AbstractContextManager[None]:
        return nullcontext() if self._held else self._connection.read()

    def _writing(self) -> AbstractContextManager[None]:
        return nullcontext() if self._held else self._connection.write()

    def _begin(self) -> None:
        connection = self._connection
        with connection.write():
            if not goes_on(connection, self._target):
                give_up_staging(connection)
        drop_past(connection)
        with connection.write():
            if staged_contract(connection) is None:
                begin_staging(connection, self._target)
            delete_outdated(connection)
            self._resumed, self._total = staged_documents(connection), live_documents(connection)

    def _fill(self, keys: Sequence[int]) -> None:
        for batch in self._batches(keys):
            self._stage(batch)
            if not self._held:  # whoever is told must not be kept waiting by what it tells
                done = min(self._resumed + len(self._done), self._total)
                self._progress(MigrationTick(done, self._total, self._chunks, self._encoded))

    def _stage(self, batch: Batch) -> None:
        prepared = self._prepared([chunk for _, cut in batch for chunk in cut])
        with self._writing():
            for document, cut in batch:
                rows = list(islice(prepared, len(cut)))
                whole = stage_document(self._connection, document, rows)
                self._again += not whole or document.doc_key in self._done
                if whole:
                    self._done.add(document.doc_key)
                    self._chunks += len(rows)

    def _batches(self, keys: Sequence[int]) -> Iterator[Batch]:
        batch: Batch = []
        for key in keys:
            with self._reading():
                document = document_by_key(self._connection, key)
            if document is not None and document.live:
                batch.append((document, self._cut(document)))
            if sum(len(cut) for _, cut in batch) >= CHUNKS_IN_ONE_TRANSACTION:
                yield batch
                batch = []
        if batch:
            yield batch

    def _cut(self, document: DocumentRow) -> Sequence[Chunk]:
        if digest(document.body) != document.sha256:
            raise IndexCorrupt(
                f"documents that their digests vouch for are required, document {document.doc_key} has another text"
            )
        return chunks(document.projection(), self._target.chunk_size, self._target.overlap)

    def _prepared(self, cut: Sequence[Chunk]) -> Iterator[PreparedChunk]:
        def known(digests: Sequence[str]) -> Blobs:
            with self._reading():
                found = known_vectors(self._connection, digests, self._target.dimension, STAGED)
                if (self._stored.encoder, self._stored.dimension) == (self._target.encoder, self._target.dimension):
                    found = known_vectors(self._connection, digests, self._target.dimension) | found
            self._reused += len(found)
            return found

        made, encoded = prepared_chunks(cut, self._encoder, self._quantizer, known, self._target.embedded)
        self._encoded += encoded
        return iter(made)

    def _switched(self) -> MigrationResult:
        """Switch, inside the transaction that found no document left, and return what was done."""
        connection = self._connection
        expect_contract(connection, self._stored)
        before = chunk_total(connection)
        switch(connection, self._target)
        return MigrationResult(
            state="migrated",
            before=self._stored,
            after=self._target,
            documents=live_documents(connection),
            chunks_before=before,
            chunks=chunk_total(connection),
            resumed=self._resumed,
            again=self._again,
            encoded=self._encoded,
            reused=self._reused,
        )
