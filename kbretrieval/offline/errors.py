"""One class per refusal of the offline experiment: a stable code, and the facts that led to it.

Messages name positions, counts and identifiers. They never hold the text of a document or of a query, and never a
path, so that a log line gives nothing away (OFF-3).

Example:
    >>> str(WrongDimension("documents[0].vector: 6 numbers given, 7 axes"))
    'wrong_dimension: documents[0].vector: 6 numbers given, 7 axes'
"""

from typing import ClassVar


class OfflineError(ValueError):
    """Any refusal of the offline experiment; `code` names the cause, `facts` what was found and what was expected.

    Example:
        >>> OfflineError("0 given, 1 expected").code
        'offline_error'
    """

    code: ClassVar[str] = "offline_error"

    def __init__(self, facts: str) -> None:
        super().__init__(facts)
        self.facts = facts

    def __str__(self) -> str:
        return f"{self.code}: {self.facts}"


class FixtureUnreadable(OfflineError):
    """The fixture file cannot be opened or read."""

    code = "fixture_unreadable"


class FixtureTooLarge(OfflineError):
    """The fixture file has more bytes than the parser reads."""

    code = "fixture_too_large"


class NotUtf8(OfflineError):
    """The bytes are not UTF-8."""

    code = "not_utf8"


class InvalidJson(OfflineError):
    """The text is not one JSON value."""

    code = "invalid_json"


class NestingTooDeep(OfflineError):
    """Arrays and objects are nested deeper than a fixture can need."""

    code = "nesting_too_deep"


class DuplicateKey(OfflineError):
    """An object names the same key twice (OFF-5)."""

    code = "duplicate_key"


class NonFiniteNumber(OfflineError):
    """NaN, Infinity or -Infinity, which JSON does not have (OFF-6)."""

    code = "non_finite_number"


class NumberTooLarge(OfflineError):
    """A number that no float can hold (OFF-7)."""

    code = "number_too_large"


class TopLevelFields(OfflineError):
    """The top level does not have exactly its four fields (OFF-4)."""

    code = "top_level_fields"


class UnknownField(OfflineError):
    """An object below the top level has a field that the schema does not name (OFF-8)."""

    code = "unknown_field"


class MissingField(OfflineError):
    """An object below the top level lacks a field (OFF-9)."""

    code = "missing_field"


class WrongType(OfflineError):
    """A value has another JSON type than its field; a boolean is not a number (OFF-10)."""

    code = "wrong_type"


class UnsupportedSchemaVersion(OfflineError):
    """The fixture declares a schema version that this parser does not read."""

    code = "unsupported_schema_version"


class WrongAxes(OfflineError):
    """The representation does not have exactly the seven axes (OFF-18)."""

    code = "wrong_axes"


class MislabelledRepresentation(OfflineError):
    """The representation is not labelled as hand-made unit vectors (OFF-19)."""

    code = "mislabelled_representation"


class BadIdentifier(OfflineError):
    """An identifier is empty, too long, or has a character outside `A-Z a-z 0-9 . _ -`."""

    code = "bad_identifier"


class BadText(OfflineError):
    """A text is blank, or holds a lone surrogate."""

    code = "bad_text"


class EmptyList(OfflineError):
    """A list that needs an entry has none (OFF-27)."""

    code = "empty_list"


class NotSortedUnique(OfflineError):
    """A list repeats an entry, or is not in ascending order where order is fixed (OFF-21, OFF-27)."""

    code = "not_sorted_unique"


class UnknownStatus(OfflineError):
    """A document's status is none of published, draft, archived."""

    code = "unknown_status"


class DuplicateId(OfflineError):
    """Two documents, or two queries, share an id (OFF-11)."""

    code = "duplicate_id"


class WrongDimension(OfflineError):
    """A vector has another number of components than there are axes (OFF-12)."""

    code = "wrong_dimension"


class ZeroVector(OfflineError):
    """A vector without a direction (OFF-13)."""

    code = "zero_vector"


class NotUnitLength(OfflineError):
    """A vector whose Euclidean length is not 1 (OFF-14)."""

    code = "not_unit_length"


class GradeOutOfRange(OfflineError):
    """A judgement outside the grades 1 to 3 (OFF-27)."""

    code = "grade_out_of_range"


class UnknownJudgedDocument(OfflineError):
    """A judgement names a document that the fixture does not hold (OFF-15)."""

    code = "unknown_judged_document"


class IneligibleJudgedDocument(OfflineError):
    """A judgement names a document that its query may not see (OFF-15, OFF-28)."""

    code = "ineligible_judged_document"


class UnknownForbiddenDocument(OfflineError):
    """must_not_return names a document that the fixture does not hold (OFF-16)."""

    code = "unknown_forbidden_document"


class VisibleForbiddenDocument(OfflineError):
    """must_not_return names a document that its query may see: that gate could never fire (OFF-17)."""

    code = "visible_forbidden_document"


class UnknownId(OfflineError):
    """A caller asked for a document, a query or a condition that does not exist."""

    code = "unknown_id"


class DuplicateRankedId(OfflineError):
    """A ranking holds an id twice, which would let it collect one gain twice (OFF-48)."""

    code = "duplicate_ranked_id"


class NoJudgements(OfflineError):
    """A relevance metric was asked for where nothing is judged, so that it has no denominator (OFF-49)."""

    code = "no_judgements"


class SettingOutOfRange(OfflineError):
    """A whole-number setting outside its range."""

    code = "setting_out_of_range"


class UnknownMetric(OfflineError):
    """A vector measure other than cosine, dot and euclidean (OFF-66)."""

    code = "unknown_metric"


class GateFired(OfflineError):
    """The audit holds security violations, so that nothing may be projected for the public (OFF-54)."""

    code = "gate_fired"


class UsageError(OfflineError):
    """The command line cannot be understood (OFF-61)."""

    code = "usage"


class OutputFailed(OfflineError):
    """The report could not be written to standard output (OFF-61)."""

    code = "output_failed"
