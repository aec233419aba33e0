"""What administrators do: collections, releases and field policies, without a context and never for end users."""

from collections.abc import Sequence

from kbretrieval.context import bindings
from kbretrieval.context import generations as ledger
from kbretrieval.context.generations import Generation, Voucher
from kbretrieval.context.policy import Policy, PolicyVersion
from kbretrieval.context.selection import checked_names
from kbretrieval.context.tables import ensure_tables
from kbretrieval.errors import ContextInputInvalid
from kbretrieval.identity import MAX_DOC_ID, checked_document, checked_name
from kbretrieval.index import Index
from kbretrieval.store.connection import Connection


class Administration:
    """What a tenant's tasks may be given. Makes the tables of task contexts where the index's file has none."""

    def __init__(self, index: Index) -> None:
        if not isinstance(index, Index):
            raise ContextInputInvalid(f"index: an open Index is required, {type(index).__name__} given")
        self._index = index
        index._engine.connection.check_usable()
        ensure_tables(index._engine.connection)

    @property
    def _connection(self) -> Connection:
        connection = self._index._engine.connection
        connection.check_usable()
        return connection

    def put_collection(self, tenant: str, name: str, doc_ids: Sequence[str]) -> int:
        """Administration: replace the members of a collection by up to 2,000 names; return the store's commit.

        A name may be bound before its document exists. A task that is under way gains nothing by it (CTX-41), and loses
        what is taken out (CTX-39).

        Example:
            >>> from kbretrieval.context import rehearsal
            >>> with rehearsal() as (tasks, alice):
            ...     tasks.put_collection("acme", "policies", ["leave"]) > 0
            True
        """
        names = checked_names(doc_ids, "doc_ids", MAX_DOC_ID)
        tenant, name = checked_name(tenant, "tenant"), checked_name(name, "collection")
        return bindings.put_collection(self._connection, tenant, name, names)

    def release(self, tenant: str, doc_id: str, purposes: Sequence[str]) -> int:
        """Administration: replace the purposes for which a document may be used; return the store's commit.

        A release stays through updates, and through deleting and restoring the document: withdraw it where that is not
        meant. Who may read is the ACL's matter alone.

        Example:
            >>> from kbretrieval.context import Selection, rehearsal
            >>> with rehearsal() as (tasks, alice):
            ...     _ = tasks.release("acme", "leave", ["training"])
            ...     scope = tasks.authorize_scope(alice, "T-7", "answering", Selection(["policies"]))
            >>> [(item.code, item.doc_id) for item in scope.refused]
            [('context_not_released', 'leave'), ('context_out_of_scope', None)]
        """
        tenant, doc_id = checked_document(tenant, doc_id)
        return bindings.put_release(self._connection, tenant, doc_id, checked_names(purposes, "purposes", most=100))

    def set_policy(self, tenant: str, policy: Policy) -> PolicyVersion:
        """Administration: store the tenant's next policy version; every scope of an older one must be authorised anew.

        Example:
            >>> from kbretrieval.context import Policy, Role, rehearsal
            >>> with rehearsal() as (tasks, alice):
            ...     tasks.set_policy("acme", Policy(roles=(Role("titles", ("title",)),))).version
            1
        """
        if type(policy) is not Policy:
            raise ContextInputInvalid(f"policy: a Policy is required, {type(policy).__name__} given")
        return bindings.put_policy(self._connection, checked_name(tenant, "tenant"), policy)

    def generations(self) -> tuple[Generation, ...]:
        """Administration: return the generations of the index, oldest first, and one that is being filled (CTX-10).

        Those that an earlier version of the package switched away are not in the ledger, and not listed.

        Example:
            >>> from kbretrieval.context import rehearsal
            >>> with rehearsal() as (tasks, _):
            ...     [(item.number, item.state, item.fingerprint) for item in tasks.generations()]
            [(1, 'serving', None)]
        """
        return ledger.generations(self._connection)

    def record_generation(self) -> Generation:
        """Administration: write down the fingerprint of the rows that serve, in the ledger, and return that line.

        A migration does so itself. Reads every document and vector in one write transaction, so that writers wait, and
        searches do not. Nothing is written where it is recorded already. Raises `context_generation_altered` where the
        rows changed and no commit says why, and `index_corrupt` where a text or chunk disagrees with its document;
        `Index.check` looks at more.

        Example:
            >>> from kbretrieval.context import rehearsal
            >>> with rehearsal() as (tasks, _):
            ...     made = tasks.record_generation()
            ...     made.documents, made.chunks, made == tasks.record_generation() == tasks.verify_generation()
            (3, 3, True)
        """
        return ledger.record(self._connection)

    def check_generation(self, voucher: Voucher) -> Generation:
        """Administration: return the generation that serves, if a search result or receipt was made under it.

        Raises `context_generation_stale` where another serves by now, also one of the same contract;
        `context_generation_foreign` where it is not of this file's history; `context_generation_unfinished` where it
        is of a contract that a migration is still filling; `context_generation_altered` where the stored contract is
        not the ledger's. That the rows of a result still stand is another question, asked row by row at each step.

        Example:
            >>> from kbretrieval.context import Selection, rehearsal
            >>> with rehearsal() as (tasks, alice):
            ...     scope = tasks.authorize_scope(alice, "T-7", "answering", Selection(["policies"]))
            ...     tasks.check_generation(tasks.search(scope, "退款期限")).number
            1
        """
        return ledger.check(self._connection, voucher)

    def verify_generation(self, voucher: Voucher | None = None) -> Generation:
        """Administration: recompute the fingerprint of what serves from its content, and compare (CTX-11).

        No stored digest is believed: neither of a document nor of a chunk or a vector. Raises what `check_generation`
        raises for a voucher, `context_generation_stale` where documents changed after the recording or none was made,
        and `context_generation_altered`. Each document is read in a transaction of its own, so that others write
        meanwhile; where one of them changes a document, the answer is `context_generation_stale`. What it does not
        tell: which row is not as it was (`Index.check` does where it can), and who may read or use anything.

        Example:
            >>> from kbretrieval import KBError
            >>> from kbretrieval.context import rehearsal
            >>> with rehearsal() as (tasks, _):
            ...     try:
            ...         tasks.verify_generation()
            ...     except KBError as error:
            ...         print(error.code)
            context_generation_stale
        """
        return ledger.verify(self._connection, voucher)
