"""`TaskContexts`: the methods of a task, each a few lines that check input and call the room that does the work."""

from collections.abc import Sequence

from kbretrieval.context import assembly, delivery, freezing, listing, publication, reading
from kbretrieval.context import replay as replaying
from kbretrieval.context import search as searching
from kbretrieval.context.account import Account, account_of
from kbretrieval.context.administration import Administration
from kbretrieval.context.authorization import Request, authorize, fetched_scope, narrowed, stored_scope
from kbretrieval.context.budget import DEFAULT_BUDGET, Budget
from kbretrieval.context.delivery import Consumption, Receipt
from kbretrieval.context.dependencies import Report
from kbretrieval.context.listing import DEFAULT_ROWS, Listing
from kbretrieval.context.package import Package
from kbretrieval.context.publication import Publication
from kbretrieval.context.reading import Fragment
from kbretrieval.context.replay import Inspected, Replay
from kbretrieval.context.scope import Scope
from kbretrieval.context.search import Found, Row
from kbretrieval.context.selection import Piece, Selection, checked_names, checked_pieces
from kbretrieval.context.snapshots import Snapshot
from kbretrieval.errors import ContextInputInvalid
from kbretrieval.identity import MAX_DOC_ID, Context, checked_context, checked_name
from kbretrieval.options import Mode


class TaskContexts(Administration):
    """Task contexts over an open index: who used which material for what, checked again at each step.

    Every refusal is a `KBError` with a stable code, and so
    is `context_schema_unsupported` for a file whose tables are of another version. What it promises: the CTX promises
    that docs/promises.md lists with a test. What it does not: that whoever holds a `Scope` is the task it names.

    Example:
        >>> from kbretrieval.context import Budget, Selection, rehearsal
        >>> with rehearsal() as (tasks, alice):
        ...     scope = tasks.authorize_scope(alice, task="T-7", purpose="answering", selection=Selection(["policies"]))
        ...     found = tasks.search(scope, "退款期限")
        ...     package = tasks.assemble(scope, must_read=[found.rows[0]], optional=["leave"])
        ...     snapshot = tasks.freeze(scope, package)
        ...     same = tasks.replay(snapshot.id, alice).text == package.text
        ...     receipt = tasks.deliver(snapshot.id, alice, "请只依据材料回答：" + package.text)
        >>> same, [item.doc_id for item in package.items], receipt.envelope_bytes
        (True, ['refund', 'leave'], 27)
    """

    def authorize_scope(
        self,
        context: Context,
        task: str,
        purpose: str,
        selection: Selection,
        budget: Budget = DEFAULT_BUDGET,
        *,
        as_of: int | None = None,
    ) -> Scope:
        """Freeze what a task may read: the selected documents that this context may read now, for this purpose.

        `as_of` is a commit of the store; None is the present one. What changed after it, is not released, or may not
        be read is listed in `refused` with a code (CTX-2, CTX-3). Raises `trusted_context_required`,
        `context_input_invalid`, `context_budget_invalid` and `context_too_large` beyond 2,000 documents.

        Example:
            >>> from kbretrieval.context import Selection, rehearsal
            >>> with rehearsal() as (tasks, alice):
            ...     scope = tasks.authorize_scope(alice, "T-7", "answering", Selection(["policies"]))
            >>> [bound.doc_id for bound in scope.documents], scope.refused[0].code
            (['leave', 'refund'], 'context_out_of_scope')
        """
        context = checked_context(context)
        task, purpose = checked_name(task, "task"), checked_name(purpose, "purpose")
        if type(selection) is not Selection or type(budget) is not Budget:
            raise ContextInputInvalid("a Selection and a Budget are required, others given")
        if as_of is not None and (type(as_of) is not int or not 0 <= as_of < 2**63):
            raise ContextInputInvalid("as_of: a commit number or None is required, another value given")
        return authorize(self._connection, Request(context, task, purpose, selection, budget, as_of))

    def narrow(self, scope: Scope, documents: Sequence[str] | None = None, budget: Budget | None = None) -> Scope:
        """Return a scope with fewer documents or a smaller budget; there is no call that returns a wider one (CTX-1).

        Example:
            >>> from kbretrieval.context import Selection, rehearsal
            >>> with rehearsal() as (tasks, alice):
            ...     scope = tasks.authorize_scope(alice, "T-7", "answering", Selection(["policies"]))
            ...     [bound.doc_id for bound in tasks.narrow(scope, documents=["leave"]).documents]
            ['leave']
        """
        names = None if documents is None else checked_names(documents, "documents", MAX_DOC_ID)
        if budget is not None and type(budget) is not Budget:
            raise ContextInputInvalid(f"budget: a Budget is required, {type(budget).__name__} given")
        return narrowed(self._connection, scope, names, budget)

    def scope(self, scope_id: str, context: Context) -> Scope:
        """Return a stored scope of this caller, for example after a restart.

        Raises `context_unknown`, and `context_access_withdrawn` where the scope froze a group that this context lacks.

        Example:
            >>> from kbretrieval.context import Selection, rehearsal
            >>> with rehearsal() as (tasks, alice):
            ...     scope = tasks.authorize_scope(alice, "T-7", "answering", Selection(["policies"]))
            ...     tasks.scope(scope.id, alice) == scope
            True
        """
        return fetched_scope(self._connection, scope_id, checked_context(context))

    def search(self, scope: Scope, query: str, limit: int = 10, mode: Mode = "hybrid") -> Found:
        """Return up to `limit` (1 to 50) candidates among the documents of a scope, and what was left out and why.

        Raises `context_input_invalid` for a blank query, `bounded_query_required`, and what makes the scope unusable.

        Example:
            >>> from kbretrieval.context import Selection, rehearsal
            >>> with rehearsal() as (tasks, alice):
            ...     scope = tasks.authorize_scope(alice, "T-7", "answering", Selection(["policies"]))
            ...     found = tasks.search(scope, "退款期限")
            >>> found.rows[0].doc_id, found.rows[0].title, found.empty_reason
            ('refund', '退款', None)
        """
        asked = searching.checked_request(query, limit, mode)
        return self._index._serving.call(lambda engine: searching.search(engine, scope, asked, limit, mode))

    def read(
        self, scope: Scope, doc_id: str, start: int = 0, end: int | None = None, cursor: str | None = None
    ) -> Fragment:
        """Return the stretch `[start, end)` of a bound document, code points of its projection.

        With an end: all of it, or `context_too_large`. Without: as much as one call may take, and a cursor for the
        rest; a cursor takes the place of `start` and `end` and works for this task, scope and revision alone.

        Example:
            >>> from kbretrieval.context import Selection, rehearsal
            >>> with rehearsal() as (tasks, alice):
            ...     scope = tasks.authorize_scope(alice, "T-7", "answering", Selection(["policies"]))
            ...     tasks.read(scope, "refund", 0, 4).text
            '# 退款'
        """
        if cursor is not None and (not isinstance(cursor, str) or start != 0 or end is not None):
            raise ContextInputInvalid("cursor: a string without start and end is required, another combination given")
        return reading.read(self._connection, scope, Piece(doc_id, start, end), cursor)

    def assemble(
        self, scope: Scope, must_read: Sequence[str | Piece | Row] = (), optional: Sequence[str | Piece | Row] = ()
    ) -> Package:
        """Assemble material: names of documents (all of each), pieces, or rows of a search; at most 200 of each kind.

        Must-read material enters whole, or the call fails with `context_must_read_missing`, whose `missing` lists
        (number, document, code). Optional material enters in order as far as it fits; the rest is in `omitted`.

        Example:
            >>> from kbretrieval.context import Selection, rehearsal
            >>> with rehearsal() as (tasks, alice):
            ...     scope = tasks.authorize_scope(alice, "T-7", "answering", Selection(["policies"]))
            ...     package = tasks.assemble(scope, must_read=["refund"], optional=["secret"])
            >>> [(item.doc_id, item.start, item.end) for item in package.items], package.omitted[0].code
            ([('refund', 0, 35)], 'context_out_of_scope')
        """
        must, may = checked_pieces(must_read, "must_read"), checked_pieces(optional, "optional")
        return assembly.assemble(self._connection, scope, must, may)

    def freeze(self, scope: Scope, package: Package) -> Snapshot:
        """Store a package as an immutable snapshot with one hash over all its parts (CTX-32).

        Every fragment is made anew from its own document and compared; raises `context_package_altered`.

        Example:
            >>> from kbretrieval.context import Selection, rehearsal
            >>> with rehearsal() as (tasks, alice):
            ...     scope = tasks.authorize_scope(alice, "T-7", "answering", Selection(["policies"]))
            ...     snapshot = tasks.freeze(scope, tasks.assemble(scope, must_read=["leave"]))
            >>> [bound.doc_id for bound in snapshot.sources], len(snapshot.sha256)
            (['leave'], 64)
        """
        return freezing.freeze(self._connection, scope, package)

    def replay(self, snapshot_id: str, context: Context) -> Replay:
        """Return the same bytes that were frozen, or the reason why not; and whether they hold for new work (CTX-36).

        Example:
            >>> from kbretrieval.context import Selection, rehearsal
            >>> with rehearsal() as (tasks, alice):
            ...     scope = tasks.authorize_scope(alice, "T-7", "answering", Selection(["policies"]))
            ...     snapshot = tasks.freeze(scope, tasks.assemble(scope, must_read=["leave"]))
            ...     _ = tasks.put_collection("acme", "policies", ["refund"])
            ...     tasks.replay(snapshot.id, alice).reason
            'context_binding_withdrawn'
        """
        return replaying.replay(self._connection, snapshot_id, checked_context(context))

    def check_dependencies(self, snapshot_id: str) -> Report:
        """Return what a snapshot depends on and what of it holds now; no text, so no context is asked for (CTX-37).

        Example:
            >>> from kbretrieval.context import Selection, rehearsal
            >>> with rehearsal() as (tasks, alice):
            ...     scope = tasks.authorize_scope(alice, "T-7", "answering", Selection(["policies"]))
            ...     snapshot = tasks.freeze(scope, tasks.assemble(scope, must_read=["leave"]))
            ...     report = tasks.check_dependencies(snapshot.id)
            >>> report.intact, report.readable, report.valid, report.codes
            (True, True, True, ())
        """
        return replaying.check(self._connection, snapshot_id)

    def inspect(self, snapshot_id: str, context: Context) -> Inspected:
        """Return a snapshot and the present state of its dependencies in one call (CTX-67).

        Example:
            >>> from kbretrieval.context import Selection, rehearsal
            >>> with rehearsal() as (tasks, alice):
            ...     scope = tasks.authorize_scope(alice, "T-7", "answering", Selection(["policies"]))
            ...     snapshot = tasks.freeze(scope, tasks.assemble(scope, must_read=["leave"]))
            ...     tasks.inspect(snapshot.id, alice).snapshot == snapshot
            True
        """
        return replaying.inspect(self._connection, snapshot_id, checked_context(context))

    def deliver(self, snapshot_id: str, context: Context, payload: str, output_tokens: int = 0) -> Receipt:
        """Check a payload and mark it as sent, in one transaction (CTX-45); the caller sends it after that.

        `payload` holds the snapshot's text in one piece, plain or as in a JSON string; what stands around it is the
        envelope. `output_tokens` is what it asks for, counted over the task. Raises the first dependency that does not
        hold, `context_payload_mismatch`, `context_too_large`, `context_budget_exhausted`.

        Example:
            >>> from kbretrieval.context import Selection, rehearsal
            >>> with rehearsal() as (tasks, alice):
            ...     scope = tasks.authorize_scope(alice, "T-7", "answering", Selection(["policies"]))
            ...     package = tasks.assemble(scope, must_read=["leave"])
            ...     tasks.deliver(tasks.freeze(scope, package).id, alice, package.text, output_tokens=200).id
            'delivery-1'
        """
        checked = delivery.checked_payload(payload, output_tokens)
        return delivery.deliver(self._connection, snapshot_id, checked_context(context), checked)

    def record_consumption(self, snapshot_id: str, context: Context, fragments: Sequence[int]) -> Consumption:
        """Write down which items of a snapshot were really used, apart from whether it could be delivered now (CTX-50).

        Example:
            >>> from kbretrieval.context import Selection, rehearsal
            >>> with rehearsal() as (tasks, alice):
            ...     scope = tasks.authorize_scope(alice, "T-7", "answering", Selection(["policies"]))
            ...     snapshot = tasks.freeze(scope, tasks.assemble(scope, must_read=["leave"]))
            ...     tasks.record_consumption(snapshot.id, alice, [0]).deliverable
            True
        """
        return delivery.consume(self._connection, snapshot_id, checked_context(context), fragments)

    def publish(self, snapshot_id: str, context: Context, collection: str, text: str) -> Publication:
        """Write that a text was published for a collection of the scope, while all of its basis holds (CTX-48).

        A stale basis writes nothing and is refused with its code. The text is kept by its digest alone.

        Example:
            >>> from kbretrieval.context import Selection, rehearsal
            >>> with rehearsal() as (tasks, alice):
            ...     scope = tasks.authorize_scope(alice, "T-7", "answering", Selection(["policies"]))
            ...     snapshot = tasks.freeze(scope, tasks.assemble(scope, must_read=["leave"]))
            ...     tasks.publish(snapshot.id, alice, "policies", "年假五天。").id
            'publication-1'
        """
        collection, made = checked_name(collection, "collection"), publication.checked_text(text)
        return publication.publish(self._connection, snapshot_id, checked_context(context), collection, made)

    def snapshots(
        self, context: Context, task: str, purpose: str, limit: int = DEFAULT_ROWS, cursor: str | None = None
    ) -> Listing:
        """Return a page of the snapshots that this caller froze for a task and purpose, at most 100 (CTX-66).

        Example:
            >>> from kbretrieval.context import rehearsal
            >>> with rehearsal() as (tasks, alice):
            ...     tasks.snapshots(alice, "T-7", "answering").rows
            ()
        """
        context = checked_context(context)
        task, purpose = checked_name(task, "task"), checked_name(purpose, "purpose")
        return listing.snapshots(self._connection, context, task, purpose, limit, cursor)

    def account(self, scope: Scope) -> Account:
        """Return what a scope's task has used and has left, call by call; it survives a restart (CTX-29).

        Example:
            >>> from kbretrieval.context import Selection, rehearsal
            >>> with rehearsal() as (tasks, alice):
            ...     scope = tasks.authorize_scope(alice, "T-7", "answering", Selection(["policies"]))
            ...     _ = tasks.read(scope, "refund", 0, 4)
            ...     [(call.phase, call.input_bytes, call.code) for call in tasks.account(scope).calls]
            [('read', 8, None)]
        """
        connection = self._connection
        with connection.read():
            return account_of(connection, stored_scope(connection, scope))
