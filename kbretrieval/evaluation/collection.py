"""A test set's passages in a real index, and what both channels say of a query, asked through `Index.search`.

One document a passage, readable by all of one tenant. A search in each single mode gives a channel's whole window with
ranks and raw scores, from which every fusion is a pure function: nothing is scored twice.
"""

import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from tqdm import tqdm

from kbretrieval.chunking import DEFAULT_OVERLAP, DEFAULT_SIZE, MAX_WINDOW, chunks
from kbretrieval.embedded import METHODS, Embed, embedded_text
from kbretrieval.evaluation.testset import JudgedSet, Passage
from kbretrieval.evaluation.vector_cache import VectorCache
from kbretrieval.fusion import left_out_score
from kbretrieval.identity import Context
from kbretrieval.index import Index
from kbretrieval.options import MAX_LIMIT
from kbretrieval.projection import project
from kbretrieval.results import Hit

READER = Context("testset", "reader")
EVERYBODY, NOBODY = ["*"], ["nobody"]

Rows = tuple[tuple[int, float], ...]


@dataclass(frozen=True, slots=True)
class Layout:
    """How passages stand in an index: as plain text or as Markdown below their title; the window of their chunks in
    code points; and what is encoded of a chunk."""

    name: str
    format: Literal["text", "markdown"]
    window: tuple[int, int]
    embed: Embed

    def source(self, passage: Passage) -> str:
        """Return what is indexed of a passage."""
        return passage.markdown if self.format == "markdown" else passage.source

    def encoded(self, passage: Passage) -> list[str]:
        """Return the text of each of its chunks that an encoder is given."""
        cut = chunks(project(self.source(passage), self.format), *self.window)
        return [embedded_text(METHODS[self.embed], chunk.heading_path, chunk.text) for chunk in cut]


WHOLE = Layout("whole", "text", (MAX_WINDOW, 0), "chunk")
CUT = Layout("cut", "markdown", (DEFAULT_SIZE, DEFAULT_OVERLAP), "chunk")
HEADED = Layout("headed", "markdown", (DEFAULT_SIZE, DEFAULT_OVERLAP), "headed")


@dataclass(frozen=True, slots=True)
class Scored:
    """A query's candidates: (chunk key, raw score) of each channel that ran, best first; what is known of each chunk.

    `terms` counts the distinct query terms that took part. `left_out` is the most that a chunk absent from a channel's
    list can have scored there. `documents` and `overlaps` map a chunk key to its passage and to its title overlap.
    """

    terms: int
    lists: Mapping[str, Rows]
    left_out: Mapping[str, float]
    documents: Mapping[int, str]
    overlaps: Mapping[int, float]

    def rows(self, channel: str) -> Rows:
        """Return one channel's candidates; none where it did not run."""
        return self.lists.get(channel, ())

    def passages(self, keys: Iterable[int]) -> Iterator[str]:
        """Yield passages in the order of their first chunk, each once."""
        seen = set()
        for key in keys:
            document = self.documents[key]
            if document not in seen:
                seen.add(document)
                yield document


def _rows(hits: Sequence[Hit], channel: str) -> Rows:
    placed = ((hit.chunk_key, hit.channel(channel)) for hit in hits)
    return tuple((key, at.score) for key, at in placed if at is not None)


@dataclass(frozen=True, slots=True)
class Collection:
    """An index over a test set, with the encoder whose vectors are cached."""

    index: Index
    encoder: VectorCache

    def scored(self, query: str) -> Scored:
        """Return what both channels say about a query, windows of 100."""
        lexical = self.index.search(query, READER, MAX_LIMIT, "lexical", window=MAX_LIMIT)
        vector = self.index.search(query, READER, MAX_LIMIT, "vector", window=MAX_LIMIT)
        found = {"lexical": lexical, "vector": vector}
        ran = {name: result for name, result in found.items() if result.channel(name).state == "run"}
        hits, lists = [*lexical, *vector], {name: _rows(result.hits, name) for name, result in ran.items()}
        traces = {name: result.channel(name) for name, result in ran.items()}
        return Scored(
            lexical.channel("lexical").terms_used,
            lists,
            {name: left_out_score(lists[name], trace.floor, trace.beyond_window) for name, trace in traces.items()},
            {hit.chunk_key: hit.doc_id for hit in hits},
            {hit.chunk_key: hit.title_overlap for hit in hits},
        )

    @contextmanager
    def without(self, documents: Iterable[str]) -> Iterator[None]:
        """Take passages out of the reader's corpus for the time of a block, through their ACL.

        What a reader may not read moves no score, rank or statistic of the isolated channels (LEX-8): the same as an
        index that never held it.
        """
        taken = [
            (name, self.index.set_acl(READER.tenant, name, NOBODY, self._revision(name)).acl_revision)
            for name in sorted(documents)
        ]
        try:
            yield
        finally:
            for name, revision in taken:
                self.index.set_acl(READER.tenant, name, EVERYBODY, revision)

    def _revision(self, document: str) -> int:
        return self.index.status(READER.tenant, document).acl_revision or 1


@contextmanager
def collected(judged: JudgedSet, encoder: VectorCache, layout: Layout = WHOLE) -> Iterator[Collection]:
    """Give the collection of a test set: encoded (what the cache lacks) and put into an index of a temporary folder.

    Raises the errors of `Index.open` and `Index.upsert`.
    """
    encoder.warm([text for item in judged.passages for text in layout.encoded(item)], query=False, label="passages")
    encoder.warm([question.text for question in judged.questions], query=True, label="queries")
    with (
        tempfile.TemporaryDirectory() as folder,
        Index.open(Path(folder) / "testset.sqlite", encoder, *layout.window, embed=layout.embed) as index,
    ):
        for passage in tqdm(judged.passages, desc="indexing", disable=None, file=sys.stderr):
            index.upsert(READER.tenant, passage.id, 1, layout.format, layout.source(passage), EVERYBODY)
        yield Collection(index, encoder)
