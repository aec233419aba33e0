"""`Index`: the methods of the contract, each a few lines that check input and call the room that does the work."""

import os
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Any, Unpack

from kbretrieval import checking, citation, explaining, lifecycle, maintenance, repair
from kbretrieval.embedded import Embed
from kbretrieval.encoders.port import Encoder, checked_encoder
from kbretrieval.engine import Engine, Serving
from kbretrieval.errors import InvalidParameter
from kbretrieval.identity import (
    Context,
    Provenance,
    checked_acl,
    checked_acl_revision,
    checked_context,
    checked_document,
    checked_name,
    checked_provenance,
    checked_restore,
    checked_revision,
)
from kbretrieval.observers.events import CONTENT_OUTCOMES, Label, Observer
from kbretrieval.observers.watch import Observation, Unwatched, Watching, check_observer, watching
from kbretrieval.options import Mode, Overrides, SearchOptions, checked_search
from kbretrieval.projection import project
from kbretrieval.results import (
    AclResult,
    Answer,
    DeleteResult,
    DocumentStatus,
    Fault,
    Hit,
    PurgeResult,
    RepairResult,
    SearchResult,
    UpsertResult,
)
from kbretrieval.retrieval import Search, checked_query
from kbretrieval.store.connection import DEFAULT_WAIT_SECONDS
from kbretrieval.store.contract import Contract, Wanted
from kbretrieval.store.documents import Content
from kbretrieval.store.opening import checked_path, open_connection

DEFAULT_OPTIONS = SearchOptions()
MAX_WAIT_SECONDS = 3600.0


class Index:
    """A permission-aware retrieval index in one SQLite file, made by `open`; the package shows a longer example.

    May be used from several threads. Every refusal is a `KBError` with a stable code. Besides what a method names, each
    may raise `invalid_identity` (ID-2), `index_closed`, `index_forked`, `index_replaced`, `busy`, `storage_full`,
    `storage_io_error`, `index_read_only` and `index_corrupt`. One that reads or makes derived rows may raise the
    encoder's errors, and `index_projection_contract_changed_rebuild_required` after another's migration (MIG-2).

    Example:
        >>> import tempfile, pathlib
        >>> folder = tempfile.TemporaryDirectory()
        >>> with Index.open(pathlib.Path(folder.name) / "kb.sqlite") as index:
        ...     _ = index.upsert("acme", "travel", 1, "markdown", "# 差旅\\n\\n住宿每晚限额500元。", ["alice"])
        ...     alice = Context("acme", "alice")
        ...     print(index.answer(index.search("住宿限额", alice), alice).evidence[0].start)
        0
        >>> folder.cleanup()
    """

    def __init__(self, serving: Serving, watch: Watching | None = None) -> None:
        self._serving, self._watch = serving, watch or Unwatched()

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str],
        encoder: Encoder | None = None,
        chunk_size: int | None = None,
        overlap: int | None = None,
        *,
        embed: Embed | None = None,
        wait_seconds: float = DEFAULT_WAIT_SECONDS,
        observer: Observer | None = None,
        label: Label | None = None,
    ) -> "Index":
        """Open or create an index file.

        `None` means the stored value, or for a new file the default (term encoder, 220, 40 code points); only a given
        value that differs from the stored one is refused, now and after a migration (MIG-2). `embed` is `chunk`, or
        `headed`: a dense encoder is then given each chunk below its heading path (QUA-4). `wait_seconds` bounds each
        wait for another connection.
        `observer` is given an event of each search, answer and write, without text; `label(tenant, principal)` returns
        what an event may say of who asked, else nothing is said (OBS-3).
        Raises `invalid_path`, `invalid_encoder`, `encoder_unavailable`, `model_missing`, `model_hash_mismatch`,
        `invalid_chunk_window`, `invalid_parameter`, `not_an_index`, `journal_mode_unsafe` and
        `index_projection_contract_changed_rebuild_required` (CON-1…CON-4); a file that is refused stays as it was.
        """
        where = checked_path(path)
        wanted = Wanted(None if encoder is None else checked_encoder(encoder), chunk_size, overlap, embed=embed)
        wanted.check_values()
        if type(wait_seconds) not in (int, float) or not 0 <= wait_seconds <= MAX_WAIT_SECONDS:
            raise InvalidParameter(f"wait_seconds: a number from 0 to {MAX_WAIT_SECONDS:g} is required, another given")
        check_observer(observer, label)
        connection, contract = open_connection(where, wanted, wait_seconds)
        return cls(Serving(connection, wanted, contract), watching(observer, label, connection.waited_seconds))

    @property
    def _engine(self) -> Engine:
        return self._serving.engine

    def close(self) -> None:
        """Close the file; a second close is harmless, every other call is `index_closed` from then on."""
        self._engine.connection.close()
        self._engine.resident.close()

    def __enter__(self) -> "Index":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    @property
    def contract(self) -> Contract:
        """What makes derived rows comparable: encoder, window, versions (CON-1)."""
        return self._engine.contract

    @property
    def encoder(self) -> Encoder:
        """The encoder in use."""
        return self._engine.encoder

    @property
    def observation(self) -> Observation:
        """How many events the observer took, and at how many it raised; an observer's failure stops no operation."""
        return self._watch.observation()

    def upsert(
        self,
        tenant: str,
        doc_id: str,
        revision: int,
        format: str,
        source: str,
        acl: list[str],
        restore: bool = False,
        provenance: Provenance | None = None,
    ) -> UpsertResult:
        """Apply a content event, whole or not at all (UPD-1, UPD-2); counts in the result are of the stored version.

        `format` is markdown, text or json; a source has at most 4,000,000 code points and 12,000,000 UTF-8 bytes.
        `acl` counts when the document is created or restored; on a live one it is ignored (UPD-3). The same revision,
        title and projection again is `unchanged`. Raises `positive_revision_required`, `explicit_acl_list_required`,
        `explicit_restore_boolean_required`, `invalid_provenance`, the errors of `projection.project`,
        `stale_or_conflicting_revision` and `deleted_document_requires_explicit_restore`; nothing is written then.
        """
        with self._watch.write("upsert", tenant) as told:
            self._engine.connection.check_usable()
            tenant, doc_id = checked_document(tenant, doc_id)
            revision, entries = checked_revision(revision), checked_acl(acl)
            restore, provenance = checked_restore(restore), checked_provenance(provenance)
            content = Content(format, project(source, format), provenance)
            event = lifecycle.ContentEvent(tenant, doc_id, revision, content, entries, restore)
            result, step = self._serving.call(lambda engine: lifecycle.upsert(engine, event))
            told.outcome = CONTENT_OUTCOMES[step]
            return result

    def set_acl(self, tenant: str, doc_id: str, principals: list[str], expected_acl_revision: int) -> AclResult:
        """Replace a document's whole ACL by compare and swap (ACL-3).

        Raises `explicit_acl_list_required`, `positive_acl_revision_required`, `stale_acl_revision` and
        `document_not_live`. After it has returned, no later `answer` on any connection uses the older list (ACL-7).
        """
        with self._watch.write("set_acl", tenant) as told:
            self._engine.connection.check_usable()
            tenant, doc_id = checked_document(tenant, doc_id)
            entries, expected = checked_acl(principals), checked_acl_revision(expected_acl_revision)
            result = lifecycle.set_acl(self._engine, tenant, doc_id, entries, expected)
            told.outcome = result.state
            return result

    def delete(self, tenant: str, doc_id: str, revision: int) -> DeleteResult:
        """Apply a delete event; the tombstone keeps older events out for good (DEL-1…DEL-6).

        Raises `positive_revision_required`, `delete_requires_new_revision` and `stale_or_conflicting_revision`. It
        promises invisibility in the live index, not erasure; see `purge`.
        """
        with self._watch.write("delete", tenant) as told:
            self._engine.connection.check_usable()
            tenant, doc_id = checked_document(tenant, doc_id)
            result = lifecycle.delete(self._engine, tenant, doc_id, checked_revision(revision))
            told.outcome = result.state
            return result

    def search(
        self,
        query: str,
        context: Context,
        limit: int = 5,
        mode: Mode = "hybrid",
        options: SearchOptions = DEFAULT_OPTIONS,
        **overrides: Unpack[Overrides],
    ) -> SearchResult:
        """Return up to `limit` (1 to 100) hits that `context` may read now, best first, with a trace.

        `mode` is lexical, vector or hybrid; single options may be given as keywords. The query has 1 to 1,024 code
        points. Raises `trusted_context_required`, `bounded_query_required`, `invalid_search_options`. A hit is a
        voucher, not an authorisation: hand it to `answer`. Equal running time is not promised.
        """
        with self._watch.search(context) as told:
            self._engine.connection.check_usable()
            context = checked_context(context)
            query = checked_query(query)
            chosen = checked_search(limit, mode, options, dict(overrides))
            told.result = self._serving.call(lambda engine: Search(engine, query, context, limit, mode, chosen).run())
            return told.result

    def answer(self, hits: Sequence[Hit | Mapping[str, Any]], context: Context, limit: int = 2) -> Answer:
        """Return up to `limit` (1 to 10) quotations of the hits that hold now, or an abstention (CIT-1…CIT-8).

        Hits may be `Hit`s or what `Hit.to_dict` exported, at most 200. Each is checked against the store in one read
        transaction; what does not hold is left out. Raises `trusted_context_required`, `hits_list_required`,
        `too_many_hits`, `invalid_answer_limit`. A quotation is what the document says, not that it is true.
        """
        with self._watch.answer(context) as told:
            self._engine.connection.check_usable()
            context = checked_context(context)
            limit = citation.checked_answer_limit(limit)
            given = citation.checked_hits(hits)
            told.given = len(given)
            told.answer = citation.answer(self._engine.connection, given, context, limit, told.verdicts.append)
            return told.answer

    def audit(self, hits: Sequence[Hit | Mapping[str, Any]], context: Context) -> tuple[citation.Judged, ...]:
        """Maintenance view, never for end users: the verdict on each hit, in order (CIT-5). Errors as `answer`."""
        self._engine.connection.check_usable()
        context = checked_context(context)
        return citation.audit(self._engine.connection, citation.checked_hits(hits), context)

    def status(self, tenant: str, doc_id: str) -> DocumentStatus:
        """Maintenance view without a context, never for end users: one document's state, order, digests and policy."""
        self._engine.connection.check_usable()
        return maintenance.status(self._engine, *checked_document(tenant, doc_id))

    def documents(self, tenant: str) -> tuple[DocumentStatus, ...]:
        """Maintenance view without a context, never for end users: every document of a tenant, tombstones included."""
        self._engine.connection.check_usable()
        return maintenance.documents(self._engine, checked_name(tenant, "tenant"))

    def explain(
        self, document: str, context: Context, hits: Sequence[Hit | Mapping[str, Any]] = ()
    ) -> explaining.Explanation:
        """Maintenance view, never for end users: four answers about one document and the caller that `context` is.

        `document` is its name, or its file's path (`invalid_parameter` where several documents have it); `hits` are
        kept ones, to be told why they fail (OBS-5). Other errors as `answer`.
        """
        self._engine.connection.check_usable()
        context = checked_context(context)
        return explaining.explain(self._engine.connection, document, context, citation.checked_hits(hits))

    def counts(self) -> maintenance.IndexCounts:
        """Maintenance view without a context: documents and chunks of each tenant, contract, commit, size (OBS-4)."""
        self._engine.connection.check_usable()
        return maintenance.counts(self._engine)

    def check(self) -> tuple[Fault, ...]:
        """Maintenance view: verify the whole store and name each fault; an empty tuple is a sound store (OBS-2)."""
        self._engine.connection.check_usable()
        return self._serving.call(checking.check)

    def repair_derived(self) -> RepairResult:
        """Maintenance: make the derived rows of documents with a fault anew, from their bodies alone.

        A document whose body and digest disagree is left as it is. Repaired chunks get new keys: old hits are dead.
        """
        with self._watch.write("repair_derived") as told:
            self._engine.connection.check_usable()
            result = self._serving.call(repair.repair_derived)
            told.outcome = "repaired" if result.before else "unchanged"
            return result

    def purge(self) -> PurgeResult:
        """Maintenance: remove the bytes of deleted text from the file; tombstones stay (DEL-5)."""
        with self._watch.write("purge") as told:
            self._engine.connection.check_usable()
            result = maintenance.purge(self._engine)
            told.outcome = "purged"
            return result

    def lone_run(self) -> AbstractContextManager[None]:
        """Maintenance: keep other runs of many transactions out of this file; they wait, then are `busy` (SYN-7)."""
        self._engine.connection.check_usable()
        return self._engine.connection.lone_run()

    def backup(self, target: str | os.PathLike[str]) -> None:
        """Maintenance: copy the index to a new file, else `invalid_path`; restoring it undoes revocations (CON-7)."""
        self._engine.connection.check_usable()
        maintenance.backup(self._engine, checked_path(target))
