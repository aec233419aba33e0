"""A temporary index with three documents and a collection, for examples and first steps."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from kbretrieval.context.tasks import TaskContexts
from kbretrieval.identity import Context
from kbretrieval.index import Index

TEXTS = {
    "refund": ("# 退款\n\n退款期限为签收后七天，逾期不予受理。", ["alice", "bob"]),
    "leave": ("# 年假\n\n入职满一年，年假五天。", ["*"]),
    "secret": ("# 薪酬\n\n调薪方案未公布。", ["bob"]),
}


@contextmanager
def rehearsal() -> Iterator[tuple[TaskContexts, Context]]:
    """Give task contexts over a temporary index, and alice, who may read two of its three documents.

    All three are in the collection `policies` of tenant acme and released for `answering`; the folder goes at the end.

    Example:
        >>> with rehearsal() as (tasks, alice):
        ...     print(alice.tenant, alice.principal)
        acme alice
    """
    with tempfile.TemporaryDirectory() as folder, Index.open(Path(folder) / "kb.sqlite") as index:
        tasks = TaskContexts(index)
        for doc_id, (source, acl) in TEXTS.items():
            index.upsert("acme", doc_id, 1, "markdown", source, acl)
            tasks.release("acme", doc_id, ["answering"])
        tasks.put_collection("acme", "policies", list(TEXTS))
        yield tasks, Context("acme", "alice")
