"""A worker that delivers a snapshot at a given moment, in the true build or in a broken one; see workers.py."""

import json
import sys
import time
from typing import Any

from kbretrieval import Context, Index, KBError
from kbretrieval.context import TaskContexts, delivery

ALICE = Context("acme", "alice")
INDEXES: dict[str, Index] = {}
PAUSE_SECONDS = 0.004


def _opened(path: str) -> Index:
    index = Index.open(path)
    index._engine.connection.run("PRAGMA synchronous=OFF")
    return index


def deliver(path: str, snapshot: str, payload: str, moment: float) -> dict[str, Any]:
    """Deliver at a moment; say the commit at which it was marked as sent, or the code of the refusal."""
    tasks = TaskContexts(INDEXES.get(path) or INDEXES.setdefault(path, _opened(path)))
    while time.time() < moment:
        pass
    try:
        return {"commit": tasks.deliver(snapshot, ALICE, payload).commit}
    except KBError as error:
        return {"code": error.code}


def _checking_outside() -> None:
    """A broken build: what is sent was checked in another transaction than the one that marks it."""

    def apart(connection: Any, snapshot_id: object, context: Context, payload: Any) -> delivery.Receipt:
        with connection.read():
            stored, scope = delivery.owned(connection, snapshot_id, context)
            envelope = delivery.checked(connection, stored, scope, context, payload)
        time.sleep(PAUSE_SECONDS)
        with connection.write():
            name, _, commit = delivery.marked(connection, stored, payload, envelope)
        return delivery.Receipt(name, "", stored.id, stored.row.sha256, payload.sha256, payload.bytes, envelope, commit)

    delivery.deliver = apart


BROKEN = {"checking-outside": _checking_outside}


def main() -> None:
    """Do what each line says and say what came of it."""
    for name in sys.argv[1:]:
        BROKEN[name]()
    for line in sys.stdin:
        print(json.dumps(deliver(**json.loads(line))), flush=True)


if __name__ == "__main__":
    main()
