"""What a worker process does: open in a race, write as fast as it can, answer hits. Run as a module; see workers.py."""

import json
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from kbretrieval import Context, Hit, Index, KBError, citation
from kbretrieval.store.connection import Connection

ALICE = Context("acme", "alice")
INDEXES: dict[str, Index] = {}
KEPT: dict[str, list[Hit]] = {}


def _code(call: Callable[[], object]) -> str | None:
    try:
        call()
    except KBError as error:
        return error.code
    return None


def _at(moment: float) -> None:
    while time.time() < moment:
        pass


def race(path: str, size: int, moment: float) -> str | None:
    """Open a new file with a window of one's own, at the same moment as another process."""
    _at(moment)
    return _code(lambda: Index.open(path, chunk_size=size, overlap=16).close())


def ready() -> bool:
    """Say that the process runs and has imported everything."""
    return True


def swap(path: str, times: int) -> dict[str, Any]:
    """Try to replace the ACL of one shared document by compare and swap; count what was acknowledged."""
    done, errors = 0, set()
    with Index.open(path) as index:
        for _ in range(times):
            seen = index.status("acme", "c").acl_revision or 0
            code = _code(lambda seen=seen: index.set_acl("acme", "c", ["alice"], seen))  # type: ignore[misc]
            done += code is None
            errors |= {code} - {None}
    return {"done": done, "errors": sorted(errors)}


def write(path: str, doc_id: str, commits: int) -> int:
    """Replace the ACL of one's own document until the store has had so many commits; count one's own."""
    done = 0
    with Index.open(path) as index:
        while (index.status("acme", doc_id).acl_commit or 0) < commits:
            index.set_acl("acme", doc_id, ["alice"], done + 1)
            done += 1
    return done


def look(path: str, query: str) -> list[str]:
    """Search as alice on a connection that stays open, keep the hits, and return their documents."""
    index = INDEXES.get(path) or INDEXES.setdefault(path, Index.open(path))
    KEPT[path] = list(index.search(query, ALICE))
    return [hit.doc_id for hit in KEPT[path]]


def answer(path: str) -> list[str]:
    """Answer the hits that were kept, and return the documents quoted."""
    return [item.doc_id for item in INDEXES[path].answer(KEPT[path], ALICE).evidence]


def _without_transaction() -> None:
    """A broken build: opening compares and creates, each statement by itself."""

    @contextmanager
    def write(self: Connection) -> Iterator[None]:
        yield

    Connection.write = write  # type: ignore[method-assign]


def _remembering() -> None:
    """A broken build: what the store says of a document is believed for a while."""
    known: dict[tuple[str, str], tuple[float, Any]] = {}
    read = citation.find_document
    acl_of, acls = citation.acl_of, dict[int, Any]()

    def find(connection: Connection, tenant: str, doc_id: str) -> Any:
        moment, row = known.get((tenant, doc_id), (0.0, None))
        if time.monotonic() - moment > 0.05:
            row = read(connection, tenant, doc_id)
            known[tenant, doc_id] = time.monotonic(), row
            acls[row.doc_key] = acl_of(connection, row.doc_key)
        return row

    citation.find_document = find
    citation.acl_of = lambda connection, doc_key: acls[doc_key]


def _drivers_waiting() -> None:
    """A broken build: SQLite's own busy handler waits, with its ever longer pauses."""
    original = Connection.__init__

    def opened(self: Connection, *arguments: Any, **named: Any) -> None:
        original(self, *arguments, **named)
        self.run("PRAGMA busy_timeout=60000")

    Connection.__init__ = opened  # type: ignore[method-assign]


DEEDS: dict[str, Callable[..., object]] = {item.__name__: item for item in (ready, race, swap, write, look, answer)}
BROKEN = {"without-transaction": _without_transaction, "remembering": _remembering, "drivers-waiting": _drivers_waiting}


def main() -> None:
    """Do what each line says and say what came of it."""
    for name in sys.argv[1:]:
        BROKEN[name]()
    for line in sys.stdin:
        order = json.loads(line)
        print(json.dumps(DEEDS[order.pop("do")](**order)), flush=True)


if __name__ == "__main__":
    main()
