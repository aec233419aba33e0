"""One small class per refusal of the evidence room; each carries a stable code and both facts.

The classes stand apart from `kbretrieval.errors`, because this room is also run from a bare
checkout by somebody who installed nothing (EVD-4).

Example:
    >>> raise NoCheck("0 executed checks given, at least 1 needed")
    Traceback (most recent call last):
    kbretrieval.evidence.errors.NoCheck: evidence_no_check: 0 executed checks given, at least 1 needed
"""


class EvidenceError(Exception):
    """A refusal of the evidence room; `code` is stable, `detail` gives both facts.

    Example:
        >>> EvidenceError("1 given, 2 stored").code
        'evidence_error'
    """

    code = "evidence_error"

    def __init__(self, detail: str) -> None:
        super().__init__(f"{self.code}: {detail}")
        self.detail = detail


class JsonInvalid(EvidenceError):
    """The bytes are not the strict JSON that evidence is kept in."""

    code = "evidence_json_invalid"


class ValueInvalid(EvidenceError):
    """A value has no canonical form (EVD-2)."""

    code = "evidence_value_invalid"


class SchemaInvalid(EvidenceError):
    """The document does not follow `schema.json` (EVD-3)."""

    code = "evidence_schema_invalid"


class CheckFailed(EvidenceError):
    """A comparison made in this run came out false; no file is written (EVD-7)."""

    code = "evidence_check_failed"


class NoCheck(EvidenceError):
    """A claim without one executed check is not evidence (EVD-7)."""

    code = "evidence_no_check"


class ClaimClosed(EvidenceError):
    """The claim was written or refuted already."""

    code = "evidence_claim_closed"


class DuplicateCheck(EvidenceError):
    """Two checks of one claim carry the same name, so a report could not tell them apart."""

    code = "evidence_duplicate_check"


class RowsClosed(EvidenceError):
    """A row came after an aggregate was computed over the rows."""

    code = "evidence_rows_closed"


class SubjectInvalid(EvidenceError):
    """A subject's name leaves the project, or its file cannot be read."""

    code = "evidence_subject_invalid"


class AggregateInvalid(EvidenceError):
    """An aggregate cannot be computed from the rows."""

    code = "evidence_aggregate_invalid"


class NotPublishable(EvidenceError):
    """The file would name an absolute path or a secret (EVD-4)."""

    code = "evidence_not_publishable"


class TrecInvalid(EvidenceError):
    """A ranking or a judgement has no TREC form (EVD-8)."""

    code = "evidence_trec_invalid"


class BindingInvalid(EvidenceError):
    """A marked number in prose cannot be looked up (EVD-9)."""

    code = "evidence_binding_invalid"


class RerunRefused(EvidenceError):
    """The recorded command is not one that the verifier will start (EVD-6)."""

    code = "evidence_rerun_refused"
