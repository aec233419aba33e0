"""Refusals that depend on who asks or on what is stored (exit statuses 5 and 4)."""

from kbretrieval.errors.base import ACCESS, PARTIAL, KBError, StateConflict


class TrustedContextRequired(KBError, PermissionError):
    """No `Context`, or something that only looks like one (ACL-1)."""

    code = "trusted_context_required"
    exit_status = ACCESS


class StaleOrConflictingRevision(StateConflict):
    """An older revision, or the same one with other content (ID-5)."""

    code = "stale_or_conflicting_revision"


class StaleAclRevision(StateConflict):
    """The expected ACL revision is not the stored one (ACL-3)."""

    code = "stale_acl_revision"


class DocumentNotLive(StateConflict):
    """An ACL change for a document that is absent or deleted (ACL-3, ACL-8)."""

    code = "document_not_live"


class DeleteRequiresNewRevision(StateConflict):
    """A delete that does not raise the revision of a live document (DEL-1)."""

    code = "delete_requires_new_revision"


class DeletedDocumentRequiresExplicitRestore(StateConflict):
    """A newer content event for a deleted document without `restore=True` (DEL-3)."""

    code = "deleted_document_requires_explicit_restore"


class ContractChanged(StateConflict):
    """The stored contract differs from the given one (CON-1)."""

    code = "index_projection_contract_changed_rebuild_required"


class AccessViolation(StateConflict):
    """An evaluation returned a document that its caller may not see."""

    code = "access_violation"


class ClaimFailed(StateConflict):
    """An experiment's outcome is not the promised one; no report is written."""

    code = "claim_failed"


class DeletionsNeedConfirmation(StateConflict):
    """A run of a source would delete more than a fifth of its documents, and five or more (SYN-4)."""

    code = "deletions_need_confirmation"


class DocumentOfAnotherSource(StateConflict):
    """A file with the identity of a document that came from another source (SYN-1)."""

    code = "document_of_another_source"


class SourceChanged(StateConflict):
    """A file that is no longer what it was when the run was planned; the next run takes it up (SYN-7)."""

    code = "source_changed"


class SomeItemsRefused(KBError):
    """A run that ended with some items refused, the others done (SYN-5)."""

    code = "some_items_refused"
    exit_status = PARTIAL
