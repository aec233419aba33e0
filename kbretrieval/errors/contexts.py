"""Refusals of task contexts: what a task may not use, or may use no more (exit statuses 2 and 4)."""

from kbretrieval.errors.base import BadValue, StateConflict


class ContextInputInvalid(BadValue):
    """An argument of a task context is missing, blank, or of another type or size than promised (CTX-7)."""

    code = "context_input_invalid"


class ContextBudgetInvalid(BadValue):
    """A budget with a number out of range, or above what the policy allows (CTX-2)."""

    code = "context_budget_invalid"


class ContextPolicyInvalid(BadValue):
    """A field policy that names an unknown field, or hands out text while it withholds the title (CTX-52)."""

    code = "context_policy_invalid"


class ContextCursorInvalid(BadValue):
    """A cursor of another task, scope, revision or projection, or none at all (CTX-27)."""

    code = "context_cursor_invalid"


class ContextAnswerExposed(BadValue):
    """An answer that stands in what the searching side gets, a query or the name of a question (CTX-64)."""

    code = "context_answer_exposed"


class ContextUnknown(StateConflict):
    """A scope or snapshot that does not exist, or is not this caller's: both look the same."""

    code = "context_unknown"


class ContextScopeAltered(StateConflict):
    """A scope that is not the one which was stored under its name (CTX-1)."""

    code = "context_scope_altered"


class ContextScopeNotNarrower(StateConflict):
    """A narrowed scope that would be wider somewhere (CTX-1)."""

    code = "context_scope_not_narrower"


class ContextOutOfScope(StateConflict):
    """A document that the scope does not bind, whatever the reason (CTX-3)."""

    code = "context_out_of_scope"


class ContextSourceDeleted(StateConflict):
    """A bound document that was deleted since (CTX-3)."""

    code = "context_source_deleted"


class SourcePurged(StateConflict):
    """A snapshot whose fragments were emptied because their document was deleted and purged (CTX-71)."""

    code = "source_purged"


class ContextAccessWithdrawn(StateConflict):
    """A bound document that this caller may not read any more, or a scope with a group that it has lost (CTX-3)."""

    code = "context_access_withdrawn"


class ContextAclChanged(StateConflict):
    """A bound document whose ACL was replaced since, though this caller may still read it (CTX-2)."""

    code = "context_acl_changed"


class ContextRevisionChanged(StateConflict):
    """A bound document with another revision or projection than the scope froze (CTX-40)."""

    code = "context_revision_changed"


class ContextBindingWithdrawn(StateConflict):
    """A bound document that was taken out of its collection (CTX-39)."""

    code = "context_binding_withdrawn"


class ContextBindingChanged(StateConflict):
    """A collection in which nothing was bound, and something is now (CTX-51)."""

    code = "context_binding_changed"


class ContextNotReleased(StateConflict):
    """A document that is not released for the purpose of the scope (CTX-42)."""

    code = "context_not_released"


class ContextFieldRemoved(StateConflict):
    """A call for a field that the policy does not give to the role of the scope (CTX-52)."""

    code = "context_field_removed"


class ContextPolicyReauthRequired(StateConflict):
    """A stored scope of another structure or policy version; the task must be authorised anew (CTX-43)."""

    code = "context_policy_reauth_required"


class ContextMustReadMissing(StateConflict):
    """Must-read material that cannot enter whole; `missing` lists (number, document, code) of each (CTX-17)."""

    code = "context_must_read_missing"

    def __init__(self, facts: str, missing: tuple[tuple[int, str, str], ...] = ()) -> None:
        super().__init__(facts)
        self.missing = missing


class ContextTooLarge(StateConflict):
    """Material larger than one call may take (CTX-24)."""

    code = "context_too_large"


class ContextBudgetExhausted(StateConflict):
    """A read or an output beyond what the task has left in all (CTX-28)."""

    code = "context_budget_exhausted"


class ContextPackageAltered(StateConflict):
    """A package whose text or intervals are not those of the bound material (CTX-33)."""

    code = "context_package_altered"


class ContextSnapshotDamaged(StateConflict):
    """A stored snapshot with a part that is missing or does not have its digest (CTX-32)."""

    code = "context_snapshot_damaged"


class ContextPayloadMismatch(StateConflict):
    """A payload that does not hold the snapshot's text in one piece (CTX-45)."""

    code = "context_payload_mismatch"


class ContextArmUnfilled(StateConflict):
    """An arm of a comparison with less material than the budget that all arms have to fill (CTX-64)."""

    code = "context_arm_unfilled"


class ContextSealAltered(StateConflict):
    """A seal, or material read again under it, that does not have the digest that was sealed (CTX-65)."""

    code = "context_seal_altered"


class ContextGenerationStale(StateConflict):
    """A result of a generation that serves no more, or a fingerprint of content that has changed since (CTX-10)."""

    code = "context_generation_stale"


class ContextGenerationForeign(StateConflict):
    """A result or a generation that is not of this index's own history (CTX-10)."""

    code = "context_generation_foreign"


class ContextGenerationUnfinished(StateConflict):
    """A generation that a migration is still filling; nothing was ever read from it (CTX-10)."""

    code = "context_generation_unfinished"


class ContextGenerationAltered(StateConflict):
    """Rows that do not have the fingerprint which was recorded, though no commit has changed a document (CTX-11)."""

    code = "context_generation_altered"


class ContextSchemaUnsupported(StateConflict):
    """Context tables or a snapshot of another schema version; they are never reinterpreted (CTX-31)."""

    code = "context_schema_unsupported"
