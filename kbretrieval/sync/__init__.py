"""Synchronising a folder, or another source, with an index: what changed is written, what is gone is deleted with care.

`synchronise(index, source, policy, tenant=…)` surveys the source, makes a frozen plan, and carries it out one
transaction a step. `FolderSource` is the first `Source`; `Policy` says who may read which path.

Example:
    >>> import pathlib, tempfile
    >>> from kbretrieval import Index
    >>> folder = tempfile.TemporaryDirectory()
    >>> docs = pathlib.Path(folder.name, "docs")
    >>> docs.mkdir()
    >>> _ = (docs / "leave.md").write_text("# 年假\\n\\n五天。", encoding="utf-8")
    >>> policy = Policy.from_yaml("{version: 1, default: [alice]}")
    >>> with Index.open(pathlib.Path(folder.name, "kb.sqlite")) as index:
    ...     first = synchronise(index, FolderSource(docs), policy, tenant="acme")
    ...     second = synchronise(index, FolderSource(docs), policy, tenant="acme")
    >>> [(step.kind, step.doc_id, step.gains, step.state) for step in first.steps]
    [('create', 'leave.md', ('alice',), 'done')]
    >>> second.steps, second.unchanged
    ((), 1)
    >>> folder.cleanup()
"""

from kbretrieval.sync.encodings import Encodings
from kbretrieval.sync.execution import Tick
from kbretrieval.sync.folder import FolderSource
from kbretrieval.sync.policy import Policy, Rule
from kbretrieval.sync.report import SyncReport
from kbretrieval.sync.run import synchronise
from kbretrieval.sync.source import Item, Listing, Skipped, Source

__all__ = [
    "Encodings",
    "FolderSource",
    "Item",
    "Listing",
    "Policy",
    "Rule",
    "Skipped",
    "Source",
    "SyncReport",
    "Tick",
    "synchronise",
]
