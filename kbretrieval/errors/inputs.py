"""Refusals of input, before any work (exit status 2)."""

from kbretrieval.errors.base import BadValue


class InvalidIdentity(BadValue):
    """A tenant, document, principal or group name breaks ID-2."""

    code = "invalid_identity"


class PositiveRevisionRequired(BadValue):
    """A revision is not an integer from 1 to 2^63 - 1 (ID-3)."""

    code = "positive_revision_required"


class PositiveAclRevisionRequired(BadValue):
    """An ACL revision is not an integer from 1 to 2^63 - 1 (ID-3)."""

    code = "positive_acl_revision_required"


class ExplicitRestoreBooleanRequired(BadValue):
    """`restore` is not a boolean (ID-3)."""

    code = "explicit_restore_boolean_required"


class ExplicitAclListRequired(BadValue):
    """An ACL is not a list of valid entries (ACL-2)."""

    code = "explicit_acl_list_required"


class InvalidProvenance(BadValue):
    """`provenance` is not a `Provenance` of bounded strings (ID-6)."""

    code = "invalid_provenance"


class TextRequired(BadValue):
    """A source is not a string (PRJ-1)."""

    code = "text_required"


class InvalidText(BadValue):
    """A source holds a lone surrogate or NUL (PRJ-1)."""

    code = "invalid_text"


class UnsupportedFormat(BadValue):
    """A format other than markdown, text or json (PRJ-5)."""

    code = "unsupported_format"


class SourceTooLarge(BadValue):
    """A source passes a documented bound (PRJ-5)."""

    code = "source_too_large"


class InvalidJson(BadValue):
    """A JSON source breaks JSON's syntax (PRJ-4)."""

    code = "invalid_json"


class JsonTooDeep(BadValue):
    """A JSON source nests deeper than 64 (PRJ-4)."""

    code = "json_too_deep"


class UnsupportedJsonShape(BadValue):
    """A JSON source is not exactly a title and sections (PRJ-4)."""

    code = "unsupported_json_shape"


class UnsupportedJsonSection(BadValue):
    """A section is not exactly a heading and a text (PRJ-4)."""

    code = "unsupported_json_section"


class InvalidChunkWindow(BadValue):
    """Window or overlap out of range (CHK-1)."""

    code = "invalid_chunk_window"


class BoundedQueryRequired(BadValue):
    """A query is not a string of 1 to 1024 code points without lone surrogates (LEX-5)."""

    code = "bounded_query_required"


class InvalidSearchOptions(BadValue):
    """A search option, mode or limit is unknown or out of range (RRF-3)."""

    code = "invalid_search_options"


class InvalidHit(BadValue):
    """A mapping is not exactly an exported hit (CIT-2)."""

    code = "invalid_hit"


class HitsListRequired(BadValue):
    """Hits are not a sequence (CIT-8)."""

    code = "hits_list_required"


class TooManyHits(BadValue):
    """More than 200 hits in one call (CIT-8)."""

    code = "too_many_hits"


class InvalidAnswerLimit(BadValue):
    """An answer limit outside 1 to 10 (CIT-7)."""

    code = "invalid_answer_limit"


class InvalidPath(BadValue):
    """A path is not usable as a file name."""

    code = "invalid_path"


class InvalidEncoder(BadValue):
    """An object offered as encoder lacks a part of the port."""

    code = "invalid_encoder"


class InvalidParameter(BadValue):
    """A parameter of a command or of a maintenance call is out of range."""

    code = "invalid_parameter"


class InvalidCommandLine(BadValue):
    """A command line has an unknown command or option, or lacks one that is required."""

    code = "invalid_command_line"


class FixtureHashMismatch(BadValue):
    """A fixture's bytes are not those of its manifest."""

    code = "fixture_hash_mismatch"


class InvalidFixture(BadValue):
    """A fixture folder is missing a file, or a file has another shape."""

    code = "invalid_fixture"


class SourceListingIncomplete(BadValue):
    """A source could not be listed as a whole, so that nothing is known to be absent from it (SYN-4)."""

    code = "source_listing_incomplete"


class SourceUnreadable(BadValue):
    """A listed file cannot be opened or read (SYN-5)."""

    code = "source_unreadable"


class UnsupportedEncoding(BadValue):
    """Bytes in an encoding that nobody named, or that does not fit the one that was named (SYN-2)."""

    code = "unsupported_encoding"


class InvalidFrontMatter(BadValue):
    """Front matter that names an id and cannot be read, so that it is unknown whose file this is (SYN-1)."""

    code = "invalid_front_matter"


class DuplicateIdentity(BadValue):
    """Two files of one source with the same identity (SYN-1)."""

    code = "duplicate_identity"


class InvalidPolicy(BadValue):
    """An ACL file with any fault (POL-1)."""

    code = "invalid_policy"


class InvalidObservationLog(BadValue):
    """A line of a log is no event of an observer (OBS-4)."""

    code = "invalid_observation_log"
