"""The ledger of preferences: who picked, rejected, consumed or adopted what, and which ranking had put it there."""

import json
from typing import ClassVar

from kbretrieval.context.authorization import stored_scope, usable
from kbretrieval.context.preferences import DOCUMENT, Kind, Placed, PreferenceReceipt, Signal
from kbretrieval.context.scope import Scope
from kbretrieval.context.standing import document_finding, refuse
from kbretrieval.context.tasks import TaskContexts
from kbretrieval.context.vouchers import checked_voucher
from kbretrieval.context.weights import weights_of
from kbretrieval.errors import ContextInputInvalid, IndexCorrupt
from kbretrieval.store.commits import current_commit
from kbretrieval.store.documents import expect


class PreferenceLedger:
    """Signals of each caller, in the index's file; lines are added and never changed.

    Whose signal it is comes from the scope as it was stored. A caller's signals move that caller's rankings alone: no
    order tells what somebody else picked.

    Example:
        >>> from kbretrieval.context import Selection, rehearsal, rerank_by_preference
        >>> with rehearsal() as (tasks, alice):
        ...     ledger = PreferenceLedger(tasks)
        ...     scope = tasks.authorize_scope(alice, "T-7", "answering", Selection(["policies"]))
        ...     shown = rerank_by_preference(tasks.search(scope, "年假退款"), ledger.signals(scope))
        ...     _ = ledger.record(scope, shown.receipt, shown.rows[1].key, "consumed")
        ...     again = rerank_by_preference(tasks.search(scope, "年假退款"), ledger.signals(scope))
        >>> [row.doc_id for row in shown.rows], again.receipt.placed[0].counts.consumed
        (['leave', 'refund'], 1)
    """

    SIGNAL: ClassVar[tuple[type, ...]] = (str, str, str, str, int, str, str)

    def __init__(self, tasks: TaskContexts) -> None:
        if not isinstance(tasks, TaskContexts):
            raise ContextInputInvalid(f"tasks: TaskContexts are required, {type(tasks).__name__} given")
        self._tasks = tasks

    def record(self, scope: Scope, receipt: PreferenceReceipt, key: str, kind: Kind) -> Signal:
        """Write what the caller of a scope did with a row that a receipt of this scope places.

        A receipt is no authorisation: the document is checked as in every phase (CTX-38), so that nothing is noted
        about what the caller may not use any more. Raises that refusal, and `context_input_invalid`.

        Example:
            >>> from kbretrieval.context import Selection, rehearsal, rerank_by_preference
            >>> with rehearsal() as (tasks, alice):
            ...     scope = tasks.authorize_scope(alice, "T-7", "answering", Selection(["policies"]))
            ...     shown = rerank_by_preference(tasks.search(scope, "退款期限"), [])
            ...     made = PreferenceLedger(tasks).record(scope, shown.receipt, shown.rows[0].key, "picked")
            >>> made.principal, made.about, made.kind, made.position
            ('alice', 'doc:refund', 'picked', 1)
        """
        placed = _placed(receipt, key)
        weights_of(receipt.version)
        connection = self._tasks._connection
        with connection.write():
            stored = stored_scope(connection, scope)
            if receipt.scope != stored.id:
                raise ContextInputInvalid("receipt: one of this scope is required, another scope's given")
            doc_id = placed.about.removeprefix(DOCUMENT)
            refuse(document_finding(stored, doc_id, usable(connection, stored, [doc_id])))
            who, ranking = (stored.tenant, stored.principal), (receipt.generation, receipt.version)
            signal = Signal(*who, placed.about, kind, placed.place, *ranking)
            connection.insert(
                "INSERT INTO context_signals (tenant, principal, about, kind, position, generation, weights_version,"
                " commit_number) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                (*who, placed.about, kind, placed.place, *ranking, current_commit(connection)),
            )
        return signal

    def signals(self, scope: Scope) -> tuple[Signal, ...]:
        """Return every signal of a scope's caller about the documents that the scope binds, oldest first.

        Example:
            >>> from kbretrieval.context import Selection, rehearsal
            >>> with rehearsal() as (tasks, alice):
            ...     scope = tasks.authorize_scope(alice, "T-7", "answering", Selection(["policies"]))
            ...     PreferenceLedger(tasks).signals(scope)
            ()
        """
        connection = self._tasks._connection
        with connection.read():
            stored = stored_scope(connection, scope)
            usable(connection, stored, ())
            rows = connection.run(
                "SELECT tenant, principal, about, kind, position, generation, weights_version FROM context_signals"
                " WHERE tenant = ? AND principal = ? AND about IN (SELECT value FROM json_each(?)) ORDER BY signal_key",
                (stored.tenant, stored.principal, json.dumps([DOCUMENT + bound.doc_id for bound in stored.documents])),
            )
        try:
            return tuple(Signal(*expect(row, self.SIGNAL, "signal")) for row in rows)
        except ContextInputInvalid:
            raise IndexCorrupt("a stored signal has a value that no signal may have") from None


def _placed(receipt: object, key: object) -> Placed:
    """Return what a receipt says of a row."""
    placed = checked_voucher(receipt, PreferenceReceipt, "receipt").placed
    found = [item for item in placed if item.key == key]
    if len(found) != 1:
        raise ContextInputInvalid(f"key: one of {len(placed)} rows of the receipt is required, another given")
    return found[0]
