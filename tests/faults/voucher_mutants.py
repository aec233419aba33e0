"""The security mutants (FLT-4) of vouchers and quotations; `mutants` has the whole table."""

from tests.faults import voucher_scenes as vouchers
from tests.faults.breaking import Change, Mutant, mutant

CITATION = "kbretrieval.citation"
VERDICT = f"{CITATION}:verdict"
JUDGE = f"{CITATION}:Desk.judge"

VOUCHERS: tuple[Mutant, ...] = (
    Mutant(
        "answer: a hit's tenant is not compared",
        "CIT-1",
        vouchers.a_voucher_of_another_tenant_is_worth_nothing,
        (
            Change(VERDICT, "if hit.tenant != context.tenant:", "if False:"),
            Change(JUDGE, "hit.tenant != self._context.tenant or ", ""),
        ),
    ),
    mutant(
        "answer: a document is looked up in every tenant",
        "CIT-1",
        vouchers.a_name_means_the_callers_own_document,
        "kbretrieval.store.documents:find_document",
        "tenant = ? AND",
        "(tenant = ? OR 1) AND",
    ),
    Mutant(
        "answer: a hit's principal is not compared",
        "CIT-1",
        vouchers.a_voucher_of_another_principal_is_worth_nothing,
        (
            Change(VERDICT, "if hit.principal != context.principal:", "if False:"),
            Change(JUDGE, " or hit.principal != self._context.principal", ""),
        ),
    ),
    mutant(
        "answer: the list is not asked again",
        "CIT-1",
        vouchers.a_voucher_grants_nothing,
        VERDICT,
        "if granted_by(standing.acl, context) is None:",
        "if not standing.acl:",
    ),
    mutant(
        "answer: the ACL revision is not compared",
        "CIT-1",
        vouchers.a_voucher_under_an_older_list_is_worth_nothing,
        VERDICT,
        "if hit.acl_revision != document.acl_revision:",
        "if hit.acl_revision > document.acl_revision:",
    ),
    mutant(
        "answer: the revision is not compared",
        "CIT-1",
        vouchers.a_voucher_of_another_revision_is_worth_nothing,
        VERDICT,
        "hit.revision != document.revision or ",
        "",
    ),
    mutant(
        "answer: the document's digest is not compared",
        "CIT-1",
        vouchers.a_voucher_of_another_document_digest_is_worth_nothing,
        VERDICT,
        " or hit.document_sha256 != document.sha256",
        "",
    ),
    mutant(
        "answer: the chunk's digest is not compared",
        "CIT-1",
        vouchers.a_voucher_of_another_chunk_digest_is_worth_nothing,
        VERDICT,
        "if hit.chunk_sha256 != chunk.sha256:",
        "if not hit.chunk_sha256:",
    ),
    mutant(
        "answer: the coordinates are not compared",
        "CIT-1",
        vouchers.a_voucher_of_other_coordinates_is_worth_nothing,
        VERDICT,
        " or (hit.start, hit.end) != (chunk.start, chunk.end)",
        "",
    ),
    mutant(
        "answer: a chunk may be another document's",
        "CIT-1",
        vouchers.a_voucher_for_a_chunk_of_another_document_is_worth_nothing,
        VERDICT,
        " or chunk.doc_key != document.doc_key",
        "",
    ),
    mutant(
        "answer: a tombstone is not noticed",
        "CIT-1",
        vouchers.a_voucher_of_a_deleted_document_is_worth_nothing,
        VERDICT,
        " or not standing.document.live",
        "",
    ),
    mutant(
        "hit: what equals an integer is taken for one",
        "CIT-2",
        vouchers.true_is_no_revision,
        "kbretrieval.hit_format:_is_integer",
        "type(value) is int",
        "isinstance(value, int)",
    ),
    mutant(
        "quotation: the body's digest is not computed again",
        "CIT-1",
        vouchers.a_body_that_is_not_its_digest_is_not_quoted,
        VERDICT,
        "standing.intact and ",
        "",
    ),
    mutant(
        "quotation: the slice of the body is not compared",
        "CIT-1",
        vouchers.a_chunk_that_is_not_in_its_body_is_not_quoted,
        f"{CITATION}:_agrees",
        "chunk.text == document.body[chunk.start : chunk.end] and digest(chunk.text) == chunk.sha256",
        "True",
    ),
    mutant(
        "quotation: the text's digest is not computed again",
        "CIT-1",
        vouchers.a_chunk_that_is_not_its_digest_is_not_quoted,
        f"{CITATION}:_agrees",
        " and digest(chunk.text) == chunk.sha256",
        "",
    ),
    mutant(
        "quotation: taken from the hit",
        "CIT-2",
        vouchers.nothing_descriptive_is_taken_from_a_voucher,
        JUDGE,
        "evidence_of(standing, chunk, self._context)",
        "evidence_of(standing, type(chunk)(*(hit.text if name == 'text' else getattr(chunk, name)"
        " for name in chunk.__slots__)), self._context)",
    ),
    mutant(
        "quotation: without its provenance",
        "ID-6",
        vouchers.a_quotation_says_where_it_comes_from_and_who_let_it_out,
        f"{CITATION}:evidence_of",
        "provenance=document.provenance",
        "provenance=None",
    ),
    mutant(
        "quotation: `*` is named where the reader's own name stands",
        "CIT-6",
        vouchers.a_quotation_says_where_it_comes_from_and_who_let_it_out,
        "kbretrieval.identity:granted_by",
        "if context.principal in entries:",
        "if context.principal in entries and EVERYONE not in entries:",
    ),
    mutant(
        "quotations: overlapping windows are quoted side by side",
        "CIT-3",
        vouchers.overlapping_windows_are_quoted_once,
        f"{CITATION}:_overlaps",
        "one.start < other.end and other.start < one.end",
        "one.start == other.start",
    ),
)
