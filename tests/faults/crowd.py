"""A process of the crowd at one index file: it writes, searches and answers, and keeps a diary of it (FLT-5).

Run as a module; see workers.py. Broken builds last for one order, so that one process serves several tests.
"""

import json
import random
import sqlite3
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import Any, TextIO
from unittest.mock import patch

from kbretrieval import Context, Evidence, Hit, Index, KBError, citation, lifecycle
from kbretrieval.results import AclResult, Answer, DeleteResult, SearchResult, UpsertResult
from kbretrieval.store.chunk_rows import insert_chunks
from kbretrieval.store.documents import acl_of, find_document
from tests.faults import process
from tests.faults.events import Event, Seen

TENANT = "acme"
DOCUMENTS = tuple(f"d{n}" for n in range(3))
READERS = (Context(TENANT, "alice", ("team",)), Context(TENANT, "bob"))
LISTS = (["alice"], ["bob"], ["alice", "bob"], ["group:team"])
CHUNK_SIZE, OVERLAP = 48, 8
EVERY_CHUNK = 100
KEPT_SEARCHES = 4
# What a process does in its turns: one of these, each as likely as the next.
MIXES = {
    "even": ("upsert", "upsert", "upsert", "set_acl", "set_acl", "delete", "search", "answer", "ask", "ask", "ask"),
    "writing": ("upsert", "upsert", "upsert", "set_acl", "set_acl", "set_acl", "delete", "delete"),
    "reading": ("upsert", "set_acl", "set_acl", "ask", "ask", *("answer",) * 8),
}


def text(doc_id: str, *marks: int) -> str:
    """Return a source of a few chunks, each with the word that is searched for, unlike any other of other marks."""
    mark = "-".join(map(str, marks))
    return f"# 排班 {doc_id}\n\n" + "\n\n".join(f"排班 {doc_id} 第{mark}版第{n}段：当日值守表。" for n in range(5))


def _seen(items: Sequence[Hit] | Sequence[Evidence]) -> tuple[Seen, ...]:
    return tuple(Seen(one.doc_id, one.revision, one.acl_revision, one.document_sha256) for one in items)


def _facts(result: object) -> dict[str, Any]:
    """What an event tells of a result."""
    match result:
        case UpsertResult():
            chunks = {"sha256": result.sha256, "chunks": result.chunks}
            return {"outcome": result.state, "acl_revision": result.acl_revision} | chunks
        case AclResult() | DeleteResult():
            return {"outcome": result.state, "acl_revision": result.acl_revision}
        case SearchResult():
            return {"outcome": "done", "seen": _seen(result.hits)}
        case Answer():
            return {"outcome": result.state, "seen": _seen(result.evidence)}
    raise TypeError(type(result).__name__)


class Diary:
    """The history of one process, a line for each operation."""

    def __init__(self, file: TextIO, number: int) -> None:
        self._file, self._process, self._number = file, number, 0

    def note(self, operation: str, call: Callable[[], Any], **given: Any) -> Any:
        """Make the call, write down what came of it, and return its result, None where it was refused."""
        result = None
        begin = time.monotonic_ns()
        try:
            result = call()
            end, facts = time.monotonic_ns(), _facts(result)
        except KBError as error:
            end, facts = time.monotonic_ns(), {"outcome": error.code}
        except sqlite3.Error as error:
            end, facts = time.monotonic_ns(), {"outcome": type(error).__name__}
        self._number += 1
        event = Event(self._process, self._number, operation, begin, end, **given | facts)
        self._file.write(event.line() + "\n")
        return result


class Member:
    """One process of the crowd, at work."""

    def __init__(self, index: Index, diary: Diary, seed: int, turns: Sequence[str] = ()) -> None:
        self._index, self._diary, self._seed, self._turns = index, diary, seed, turns
        self._chance = random.Random(seed)
        self._kept: deque[tuple[Context, SearchResult]] = deque(maxlen=KEPT_SEARCHES)
        self._turn = 0

    def turn(self) -> None:
        """Do one operation."""
        self._turn += 1
        getattr(self, self._chance.choice(self._turns))()

    def upsert(self, doc_id: str = "", revision: int = 0) -> None:
        """Write the next revision of a document as it stands just before; another may come first."""
        doc_id = doc_id or self._chance.choice(DOCUMENTS)
        revision = revision or (self._index.status(TENANT, doc_id).revision or 0) + 1
        source, acl = text(doc_id, revision, self._seed, self._turn), self._chance.choice(LISTS)
        restore = self._chance.random() < 0.75
        call = partial(self._index.upsert, TENANT, doc_id, revision, "markdown", source, acl, restore)
        self._diary.note("upsert", call, doc_id=doc_id, given=revision, acl=tuple(acl))

    def set_acl(self) -> None:
        """Replace a list by compare and swap."""
        doc_id, acl = self._chance.choice(DOCUMENTS), self._chance.choice(LISTS)
        expected = self._index.status(TENANT, doc_id).acl_revision or 1
        call = partial(self._index.set_acl, TENANT, doc_id, acl, expected)
        self._diary.note("set_acl", call, doc_id=doc_id, given=expected, acl=tuple(acl))

    def delete(self) -> None:
        """Delete a document in its next revision."""
        doc_id = self._chance.choice(DOCUMENTS)
        revision = (self._index.status(TENANT, doc_id).revision or 0) + 1
        self._diary.note("delete", partial(self._index.delete, TENANT, doc_id, revision), doc_id=doc_id, given=revision)

    def search(self) -> None:
        """Ask for every chunk that one of the readers may read, and keep the hits."""
        reader = self._chance.choice(READERS)
        call = partial(self._index.search, "排班", reader, EVERY_CHUNK)
        found = self._diary.note("search", call, reader=_entries(reader))
        if found is not None:
            self._kept.append((reader, found))

    def answer(self) -> None:
        """Answer the latest hits, or some of a while ago."""
        if not self._kept:
            self.search()
        reader, found = self._kept[-1] if self._chance.random() < 0.5 else self._chance.choice(self._kept)
        self._diary.note("answer", partial(self._index.answer, found, reader, 10), reader=_entries(reader))

    def ask(self) -> None:
        """Search and answer at once."""
        self.search()
        self.answer()


def _entries(reader: Context) -> tuple[str, ...]:
    return (reader.principal, *(f"group:{name}" for name in reader.groups))


def found(path: str, history: str) -> None:
    """Make the documents."""
    with (
        Index.open(path, chunk_size=CHUNK_SIZE, overlap=OVERLAP) as index,
        Path(history).open("w", encoding="utf-8", newline="\n") as file,
    ):
        founder = Member(index, Diary(file, -1), -1)
        for doc_id in DOCUMENTS:
            founder.upsert(doc_id, 1)


def work(path: str, history: str, number: int, seconds: float, mix: str, broken: str) -> None:
    """Take turns of a mix for so long, in a build that may be broken."""
    with (
        BROKEN[broken](),
        Index.open(path, chunk_size=CHUNK_SIZE, overlap=OVERLAP) as index,
        Path(history).open("w", encoding="utf-8", newline="\n") as file,
    ):
        member = Member(index, Diary(file, number), number, MIXES[mix])
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            member.turn()


@contextmanager
def _answers_remembered() -> Iterator[None]:
    """A broken build: answers believe for a while what the store said of a document."""
    with patch.multiple(citation, find_document=find_document, acl_of=acl_of):
        process.BROKEN["remembering"]()
        yield


@contextmanager
def _looked_before(name: str) -> Iterator[None]:
    """A broken build: a write decides on what it read before its transaction."""
    write, read = getattr(lifecycle, name), find_document

    def early(engine: Any, *arguments: Any) -> Any:
        event = arguments[0]
        key = (event.tenant, event.doc_id) if name == "upsert" else arguments[:2]
        row = read(engine.connection, *key)
        with patch.object(lifecycle, "find_document", lambda *_: row):
            return write(engine, *arguments)

    with patch.object(lifecycle, name, early):
        yield


@contextmanager
def _chunks_afterwards() -> Iterator[None]:
    """A broken build: a document is committed before its chunks."""

    def later(connection: Any, doc_key: int, prepared: Any) -> None:
        connection.run("COMMIT")
        connection.run("BEGIN IMMEDIATE")
        insert_chunks(connection, doc_key, prepared)

    with patch.object(lifecycle, "insert_chunks", later):
        yield


BROKEN: dict[str, Callable[[], AbstractContextManager[None]]] = {
    "": nullcontext,
    "answers from what was read a while ago": _answers_remembered,
    "an upsert that looks before its transaction": lambda: _looked_before("upsert"),
    "a swap that looks before its transaction": lambda: _looked_before("set_acl"),
    "a delete that looks before its transaction": lambda: _looked_before("delete"),
    "a document that is committed before its chunks": _chunks_afterwards,
}
DEEDS: dict[str, Callable[..., object]] = {item.__name__: item for item in (process.ready, found, work)}


def main() -> None:
    """Do what each line says and say what came of it."""
    for line in sys.stdin:
        order = json.loads(line)
        print(json.dumps(DEEDS[order.pop("do")](**order)), flush=True)


if __name__ == "__main__":
    main()
