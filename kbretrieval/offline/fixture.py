"""From bytes to a `Fixture`, or to one refusal: fields, types, vectors, identities, then what refers to what.

Order of the checks: JSON, top level, schema version, representation, documents, queries, judgements, forbidden lists.
"""

from collections.abc import Mapping
from os import PathLike
from types import MappingProxyType

from kbretrieval.offline import fields
from kbretrieval.offline.eligibility import failed_conditions
from kbretrieval.offline.errors import (
    DuplicateId,
    GradeOutOfRange,
    IneligibleJudgedDocument,
    MislabelledRepresentation,
    TopLevelFields,
    UnknownForbiddenDocument,
    UnknownJudgedDocument,
    UnknownStatus,
    UnsupportedSchemaVersion,
    VisibleForbiddenDocument,
    WrongAxes,
    WrongDimension,
)
from kbretrieval.offline.model import AXES, KIND, SCHEMA_VERSION, STATUSES, Document, Fixture, Query, Representation
from kbretrieval.offline.strict_json import parse_strict, quoted, read_fixture_bytes

_TOP = ("schema_version", "representation", "documents", "queries")
_REPRESENTATION = ("name", "kind", "dimension", "axes", "normalized", "trained_embedding")
_DOCUMENT = (
    *("id", "title", "text", "tenant", "acl"),
    *("status", "language", "product", "source_revision", "vector"),
)
_QUERY = ("id", "text", "tenant", "subject_groups", "filters", "vector", "qrels", "must_not_return")
_FILTERS = ("languages", "products")
MAX_GRADE = 3


def load_fixture(path: str | PathLike[str]) -> Fixture:
    """Return the checked fixture that a file holds.

    Raises a class of `kbretrieval.offline.errors` for everything that is wrong with it (OFF-4 to OFF-19).

    Example:
        >>> load_fixture("no/such/fixture.json")
        Traceback (most recent call last):
        kbretrieval.offline.errors.FixtureUnreadable: fixture_unreadable: FileNotFoundError, a readable file expected
    """
    return parse_fixture(read_fixture_bytes(path))


def parse_fixture(data: bytes) -> Fixture:
    """Return the checked fixture that UTF-8 JSON bytes spell; errors as for `load_fixture`.

    Example:
        >>> parse_fixture(b"[]")
        Traceback (most recent call last):
        kbretrieval.offline.errors.WrongType: wrong_type: top level: array given, object expected
    """
    return fixture_from_value(parse_strict(data))


def fixture_from_value(value: object) -> Fixture:
    """Return the checked fixture for a parsed JSON value, such as one that an exercise has extended.

    Raises as `load_fixture` does. Not promised: that duplicate keys are seen; only the bytes still show them.

    Example:
        >>> fixture_from_value({"documents": []})
        Traceback (most recent call last):
        kbretrieval.offline.errors.TopLevelFields: top_level_fields: missing schema_version, 1 of 4 fields given
    """
    top = _top_level(value)
    version = fields.string(top["schema_version"], "schema_version")
    if version != SCHEMA_VERSION:
        raise UnsupportedSchemaVersion(f"{quoted(version)} given, {SCHEMA_VERSION} expected")
    representation = _representation(top["representation"])
    documents = tuple(
        _document(entry, f"documents[{position}]", representation.dimension)
        for position, entry in enumerate(fields.array(top["documents"], "documents", empty=False))
    )
    _refuse_repeated([document.id for document in documents], "documents")
    queries = tuple(
        _query(entry, f"queries[{position}]", representation.dimension)
        for position, entry in enumerate(fields.array(top["queries"], "queries", empty=False))
    )
    _refuse_repeated([query.id for query in queries], "queries")
    by_id = {document.id: document for document in documents}
    for query in queries:
        _check_judgements(query, by_id)
        _check_forbidden(query, by_id)
    return Fixture(
        representation,
        tuple(sorted(documents, key=lambda document: document.id)),
        tuple(sorted(queries, key=lambda query: query.id)),
    )


def _top_level(value: object) -> dict[str, object]:
    top = fields.members(value, "top level")
    unknown = sorted(set(top) - set(_TOP))
    if unknown:
        raise TopLevelFields(f"unknown {quoted(unknown[0])}, only {', '.join(_TOP)} expected")
    missing = [name for name in _TOP if name not in top]
    if missing:
        raise TopLevelFields(f"missing {missing[0]}, {len(top)} of {len(_TOP)} fields given")
    return top


def _representation(value: object) -> Representation:
    where = "representation"
    found = fields.exact_members(value, where, _REPRESENTATION)
    name = fields.identifier(found["name"], f"{where}.name")
    kind = fields.string(found["kind"], f"{where}.kind")
    normalized = fields.boolean(found["normalized"], f"{where}.normalized")
    trained = fields.boolean(found["trained_embedding"], f"{where}.trained_embedding")
    dimension = fields.integer(found["dimension"], f"{where}.dimension")
    entries = fields.array(found["axes"], f"{where}.axes")
    axes = tuple(fields.identifier(entry, f"{where}.axes[{position}]") for position, entry in enumerate(entries))
    if kind != KIND:
        raise MislabelledRepresentation(f"{where}.kind: {quoted(kind)} given, {KIND} expected")
    if not normalized:
        raise MislabelledRepresentation(f"{where}.normalized: false given, true expected")
    if trained:
        raise MislabelledRepresentation(f"{where}.trained_embedding: true given, false expected")
    if axes != AXES:
        raise WrongAxes(f"{where}.axes: {len(axes)} given, exactly {', '.join(AXES)} expected")
    if dimension != len(AXES):
        raise WrongDimension(f"{where}.dimension: {dimension} given, {len(AXES)} axes")
    return Representation(name)


def _document(value: object, where: str, dimension: int) -> Document:
    found = fields.exact_members(value, where, _DOCUMENT)
    status = fields.string(found["status"], f"{where}.status")
    if status not in STATUSES:
        raise UnknownStatus(f"{where}.status: {quoted(status)} given, one of {', '.join(STATUSES)} expected")
    return Document(
        id=fields.identifier(found["id"], f"{where}.id"),
        title=fields.text(found["title"], f"{where}.title"),
        text=fields.text(found["text"], f"{where}.text"),
        tenant=fields.identifier(found["tenant"], f"{where}.tenant"),
        acl=fields.identifiers(found["acl"], f"{where}.acl"),
        status=status,
        language=fields.identifier(found["language"], f"{where}.language"),
        product=fields.identifier(found["product"], f"{where}.product"),
        source_revision=fields.identifier(found["source_revision"], f"{where}.source_revision"),
        vector=fields.unit_vector(found["vector"], f"{where}.vector", dimension),
    )


def _query(value: object, where: str, dimension: int) -> Query:
    found = fields.exact_members(value, where, _QUERY)
    filters = fields.exact_members(found["filters"], f"{where}.filters", _FILTERS)
    return Query(
        id=fields.identifier(found["id"], f"{where}.id"),
        text=fields.text(found["text"], f"{where}.text"),
        tenant=fields.identifier(found["tenant"], f"{where}.tenant"),
        subject_groups=fields.identifiers(found["subject_groups"], f"{where}.subject_groups", ordered=False),
        languages=fields.identifiers(filters["languages"], f"{where}.filters.languages", empty=False),
        products=fields.identifiers(filters["products"], f"{where}.filters.products", empty=False),
        vector=fields.unit_vector(found["vector"], f"{where}.vector", dimension),
        qrels=_qrels(found["qrels"], f"{where}.qrels"),
        must_not_return=fields.identifiers(found["must_not_return"], f"{where}.must_not_return", ordered=False),
    )


def _qrels(value: object, where: str) -> Mapping[str, int]:
    grades: dict[str, int] = {}
    for key, entry in sorted(fields.members(value, where).items()):
        document_id = fields.identifier(key, f"{where} key")
        grade = fields.integer(entry, f"{where}.{document_id}")
        if not 1 <= grade <= MAX_GRADE:
            raise GradeOutOfRange(f"{where}.{document_id}: {grade} given, 1 to {MAX_GRADE} expected")
        grades[document_id] = grade
    return MappingProxyType(grades)


def _refuse_repeated(ids: list[str], where: str) -> None:
    twice = fields.repeated(ids)
    if twice is not None:
        raise DuplicateId(f"{where}: {twice} given {ids.count(twice)} times, 1 expected")


def _check_judgements(query: Query, documents: Mapping[str, Document]) -> None:
    for document_id in query.qrels:
        if document_id not in documents:
            raise UnknownJudgedDocument(f"{query.id}: {document_id} judged, {len(documents)} other documents known")
        failed = failed_conditions(documents[document_id], query)
        if failed:
            raise IneligibleJudgedDocument(f"{query.id}: {document_id} judged, but it fails {', '.join(failed)}")


def _check_forbidden(query: Query, documents: Mapping[str, Document]) -> None:
    for document_id in query.must_not_return:
        if document_id not in documents:
            raise UnknownForbiddenDocument(
                f"{query.id}: {document_id} forbidden, {len(documents)} other documents known"
            )
        if not failed_conditions(documents[document_id], query):
            raise VisibleForbiddenDocument(f"{query.id}: {document_id} forbidden, but it passes all five conditions")
