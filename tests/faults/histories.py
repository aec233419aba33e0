"""Histories of an index: events, what the model makes of them, and the process that applies them.

Run as a module it is that process; see workers.py.
"""

import json
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kbretrieval import Index, KBError, TermEncoder
from kbretrieval.encoders.port import Encoder
from tests.unit import lifecycle_model as model
from tests.unit.doubles import RandomVectors

MODULE = "tests.faults.histories"
ENCODERS: dict[str, Encoder] = {"terms": TermEncoder(), "dense": RandomVectors(3, floor=-0.2)}
TENANTS = ("acme", "beta")
WRITTEN = {"indexed", "deleted", "replaced"}

Key = tuple[str, str]


@dataclass(frozen=True)
class Event:
    """One thing that happens to one document, in its next revision.

    kind: upsert, restore (an upsert that may), again (an upsert in the same revision), acl, delete, or purge, which
    happens to the whole file.
    """

    kind: str
    number: int = 0
    text: str = ""
    acl: tuple[str, ...] = ("alice",)
    tenant: str = TENANTS[0]


@dataclass
class World:
    """What should be stored: each document by the model of sixty lines, and its two commit numbers (CON-6)."""

    documents: dict[Key, model.Document] = field(default_factory=dict)
    commits: dict[Key, tuple[int, int]] = field(default_factory=dict)
    commit: int = 0

    def order(self, event: Event) -> tuple[list[Any], str]:
        """Let the event happen: the call for the writer, and what it should say."""
        if event.kind == "purge":
            return ["purge"], "done"
        key = (event.tenant, f"d{event.number}")
        old = self.documents.get(key)
        now = old.revision if old else 1
        if event.kind == "acl":
            expected = old.acl_revision if old else 1
            outcome = model.set_acl(old, event.acl, expected)
            call = ["set_acl", *key, list(event.acl), expected]
        elif event.kind == "delete":
            outcome = model.delete(old, now + 1)
            call = ["delete", *key, now + 1]
        else:
            revision, restore = now + (event.kind != "again"), event.kind == "restore"
            outcome = model.upsert(old, revision, event.text, event.acl, restore)
            call = ["upsert", *key, revision, "text", event.text, list(event.acl), restore]
        self._note(key, old, *outcome)
        return call, outcome[1]

    def _note(self, key: Key, old: model.Document | None, new: model.Document | None, said: str) -> None:
        if said not in WRITTEN or new is None:
            return
        self.commit += 1
        content, policy = self.commits.get(key, (0, 0))
        moved = old is not None and not old.live and not new.live  # a tombstone's revision is no content
        self.commits[key] = (
            content if moved or said == "replaced" else self.commit,
            policy if old is not None and old.acl_revision == new.acl_revision else self.commit,
        )
        self.documents[key] = new

    def stored(self, index: Index) -> bool:
        """Whether the documents' states and commit numbers in an index are these."""
        found = {(one.tenant, one.doc_id): one for tenant in TENANTS for one in index.documents(tenant)}
        states = {key: (one.state == "live", one.revision, one.acl_revision) for key, one in found.items()}
        wanted = {key: (one.live, one.revision, one.acl_revision) for key, one in self.documents.items()}
        commits = {key: (one.content_commit, one.acl_commit) for key, one in found.items()}
        return (states, commits) == (wanted, self.commits)


def opened(path: str | Path, encoder: str, **window: int) -> Index:
    """An index of one of the encoders, that does not wait for the disk: these tests kill nobody."""
    index = Index.open(path, ENCODERS[encoder], **window)
    index._engine.connection.run("PRAGMA synchronous=OFF")
    return index


def _said(index: Index, method: str, *arguments: Any) -> str:
    try:
        return getattr(getattr(index, method)(*arguments), "state", "done")
    except KBError as error:
        return error.code


def main() -> None:
    """Apply the calls of each line to the index that it names, kept open until another is named; say what came of
    them."""
    where, index = "", None
    for line in sys.stdin:
        order = json.loads(line)
        if index is None or order["path"] != where:
            if index is not None:
                index.close()
            where, index = order["path"], opened(order["path"], order["encoder"])
        print(json.dumps([_said(index, *call) for call in order["calls"]]), flush=True)
    if index is not None:
        index.close()


if __name__ == "__main__":
    main()
