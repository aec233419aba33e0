"""What the tests of synchronising share: a source that is a dictionary, a policy in one line, a world to run in."""

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path, PurePath
from typing import Any

import pytest

from kbretrieval import Context, Index, KBError
from kbretrieval.results import DocumentStatus
from kbretrieval.store.connection import Connection
from kbretrieval.sync import Item, Listing, Policy, Rule, Source, SyncReport, synchronise
from kbretrieval.sync.folder import ENDINGS
from kbretrieval.sync.patterns import PathPattern
from tests.unit.doubles import logical_dump

TENANT = "acme"


@dataclass
class Shelf:
    """A source in memory: texts, bytes, or the refusals that reading them raises, by path."""

    files: dict[str, str | bytes | KBError]
    connector: str = "folder"
    unlisted: tuple[str, ...] = ()
    reads: list[str] = field(default_factory=list)

    def list(self) -> Listing:
        items = (Item(path, path, path, ENDINGS[PurePath(path).suffix]) for path in sorted(self.files))
        return Listing(tuple(items), unlisted=self.unlisted)

    def read(self, item: Item) -> bytes:
        self.reads.append(item.path)
        held = self.files[item.path]
        if isinstance(held, KBError):
            raise held
        return held if isinstance(held, bytes) else held.encode("utf-8")


def policy(default: tuple[str, ...] = ("*",), **rules: tuple[str, ...]) -> Policy:
    """A policy of one rule a file: `policy((), a=("alice",))` is for a.md."""
    return Policy(tuple(Rule(PathPattern(f"/{name}.*"), allow) for name, allow in rules.items()), default)


EVERYONE = policy()


@dataclass
class World:
    """An index file and what is synchronised with it."""

    path: Path
    index: Index | None = None

    def open(self) -> AbstractContextManager[Index]:
        """The index of this world: the open one, or its file for one call."""
        return Index.open(self.path) if self.index is None else nullcontext(self.index)

    def run(self, source: Source | Mapping[str, Any], rules: Policy = EVERYONE, **options: Any) -> SyncReport:
        """Synchronise with a source, or with files by path."""
        given = source if isinstance(source, Source) else Shelf(dict(source))
        with self.open() as index:
            return synchronise(index, given, rules, tenant=TENANT, **options)

    def documents(self) -> dict[str, DocumentStatus]:
        """Every document by its identity."""
        with self.open() as index:
            return {status.doc_id: status for status in index.documents(TENANT)}

    def orders(self) -> dict[str, tuple[str, int | None, int | None]]:
        """State, revision and ACL revision of every document."""
        return {name: (item.state, item.revision, item.acl_revision) for name, item in self.documents().items()}

    def found(self, query: str, principal: str = "alice") -> set[str]:
        """The documents that a reader finds, as quoted from the store."""
        with self.open() as index:
            reader = Context(TENANT, principal)
            return {hit.doc_id for hit in index.search(query, reader, limit=100, mode="lexical")}

    def dump(self) -> str:
        """Everything that the file says."""
        return logical_dump(self.path)


def without_waiting_for_the_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave out every fsync: it matters for a power failure alone, and is most of the time of a small commit."""
    original = Connection.__init__

    def opened(self: Connection, *arguments: Any, **named: Any) -> None:
        original(self, *arguments, **named)
        self.run("PRAGMA synchronous=OFF")

    monkeypatch.setattr(Connection, "__init__", opened)


def kinds(report: SyncReport, state: str | None = None) -> list[tuple[str, str]]:
    """The steps of a run in their order, of one state if one is named."""
    return [(step.kind, step.doc_id) for step in report.steps if state in (None, step.state)]


def codes(report: SyncReport) -> dict[str, str]:
    """What was refused: path and code."""
    return {item.path: item.code for item in report.refused}
