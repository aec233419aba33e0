"""The security mutants (FLT-4) of task contexts; `mutants` has the whole table."""

from tests.faults import scope_scenes as scopes
from tests.faults.breaking import Mutant, mutant

BINDINGS = "kbretrieval.context.bindings"
STANDING = "kbretrieval.context.standing:bound_finding"

SCOPES: tuple[Mutant, ...] = (
    mutant(
        "scope: a release by any tenant counts",
        "CTX-2",
        scopes.a_release_by_another_tenant_releases_nothing,
        f"{BINDINGS}:released_for",
        "WHERE tenant = ? AND",
        "WHERE (tenant = ? OR 1) AND",
    ),
    mutant(
        "scope: members of every tenant's collection of that name are bound",
        "CTX-2",
        scopes.a_collection_of_another_tenant_adds_no_member,
        f"{BINDINGS}:members_of",
        "WHERE tenant = ? AND",
        "WHERE (tenant = ? OR 1) AND",
    ),
    mutant(
        "scope: a release for any purpose counts",
        "CTX-42",
        scopes.a_release_for_another_purpose_is_none,
        f"{BINDINGS}:released_for",
        "AND purpose = ?",
        "AND (purpose = ? OR 1)",
    ),
    mutant(
        "scope: the right to a bound document is not asked for again",
        "CTX-39",
        scopes.a_revocation_ends_what_a_scope_bound,
        STANDING,
        "if not sheet.readable:",
        "if not sheet.live:",
    ),
    mutant(
        "scope: the digest of a bound document is not compared",
        "CTX-38",
        scopes.a_text_under_a_bound_revision_is_the_bound_one,
        STANDING,
        "(sheet.revision, sheet.sha256) != (bound.revision, bound.document_sha256)",
        "sheet.revision != bound.revision",
    ),
    mutant(
        "scope: the digest of a body is not computed again",
        "CTX-12",
        scopes.a_body_that_is_not_its_digest_enters_no_task,
        "kbretrieval.context.material:verified_document",
        " or digest(document.body) != document.sha256",
        "",
    ),
    mutant(
        "scope: a field policy is believed without its digest",
        "CTX-52",
        scopes.a_policy_that_is_not_its_digest_allows_no_field,
        f"{BINDINGS}:present_policy",
        "if made.sha256 != sha256:",
        "if not sha256:",
    ),
    mutant(
        "snapshot of a task: whoever knows its name may read it",
        "CTX-36",
        scopes.a_snapshot_is_its_callers_alone,
        "kbretrieval.context.snapshots:own",
        "(stored.row.tenant, stored.row.principal) != (context.tenant, context.principal)",
        "stored.row.tenant != context.tenant",
    ),
    mutant(
        "cursor: its seal is not compared",
        "CTX-27",
        scopes.a_cursor_opens_its_own_place_alone,
        "kbretrieval.context.reading:_position",
        " or found[2] != _seal(scope, doc_id, int(found[1]))",
        "",
    ),
    mutant(
        "delivery: the stored scope is not compared with the frozen one",
        "CTX-37",
        scopes.a_snapshot_of_another_scope_than_the_stored_one_is_not_sent,
        "kbretrieval.context.dependencies:_scope",
        "same = find_scope(connection, scope.id).sha256 == scope.sha256",
        "same = find_scope(connection, scope.id).sha256 != ''",
    ),
    mutant(
        "account: calls of every tenant's namesake are on it",
        "CTX-29",
        scopes.a_namesake_in_another_tenant_is_on_another_account,
        "kbretrieval.context.records:spent_by",
        "WHERE tenant = ? AND",
        "WHERE (tenant = ? OR 1) AND",
    ),
    mutant(
        "purge: fragments go with a namesake of another tenant",
        "CTX-71",
        scopes.a_purge_keeps_what_another_tenant_deleted_a_namesake_of,
        "kbretrieval.store.fragments:empty_fragments",
        "d.tenant = context_parts.tenant AND ",
        "",
    ),
)
