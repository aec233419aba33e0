"""The frozen values of the experiment: representation, documents, queries, and the fixture that holds them."""

from collections.abc import Mapping
from dataclasses import dataclass

from kbretrieval.offline.errors import UnknownId

SCHEMA_VERSION = "semantic-search-fixture-v1"
KIND = "handcrafted_unit_vectors"
AXES = ("refund", "double_charge", "upload", "network", "membership", "account", "internal_ops")
STATUSES = ("archived", "draft", "published")


@dataclass(frozen=True, slots=True)
class Representation:
    """What the vectors are: hand-made unit vectors on seven named axes, nothing trained (OFF-18, OFF-19).

    Example:
        >>> Representation("toy-topic-7d-v1").dimension
        7
    """

    name: str
    kind: str = KIND
    axes: tuple[str, ...] = AXES
    normalized: bool = True
    trained_embedding: bool = False

    @property
    def dimension(self) -> int:
        """Return the number of axes."""
        return len(self.axes)


@dataclass(frozen=True, slots=True)
class Document:
    """One document with all that decides whether a query may see it (OFF-21).

    `acl` is sorted and unique; `vector` has unit length, one component per axis.

    Example:
        >>> Document("d", "T", "x", "alpha", ("guest",), "published", "en", "app", "r1", (1.0,)).searchable
        'T\\nx'
    """

    id: str
    title: str
    text: str
    tenant: str
    acl: tuple[str, ...]
    status: str
    language: str
    product: str
    source_revision: str
    vector: tuple[float, ...]

    @property
    def searchable(self) -> str:
        """Return what BM25 reads: title, newline, text."""
        return f"{self.title}\n{self.text}"


@dataclass(frozen=True, slots=True)
class Query:
    """One query with its subject, filters, vector, judgements and forbidden documents (OFF-27).

    `tenant` and `subject_groups` are oracle input of an offline audit. A server must never believe a caller who
    declares them; it derives them from its own trusted context (OFF-29).

    Example:
        >>> Query("q", "x", "alpha", ("guest",), ("en",), ("app",), (1.0,), {"d": 3}, ()).qrels["d"]
        3
    """

    id: str
    text: str
    tenant: str
    subject_groups: tuple[str, ...]
    languages: tuple[str, ...]
    products: tuple[str, ...]
    vector: tuple[float, ...]
    qrels: Mapping[str, int]
    must_not_return: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Fixture:
    """A checked fixture; documents and queries are in ascending order of id, whatever the file said (OFF-65).

    Example:
        >>> Fixture(Representation("toy"), (), ()).document("d-1")
        Traceback (most recent call last):
        kbretrieval.offline.errors.UnknownId: unknown_id: document 'd-1' asked for, 0 documents known
    """

    representation: Representation
    documents: tuple[Document, ...]
    queries: tuple[Query, ...]

    def document(self, document_id: str) -> Document:
        """Return the document with this id, or raise `UnknownId`."""
        for document in self.documents:
            if document.id == document_id:
                return document
        raise UnknownId(f"document {document_id!a} asked for, {len(self.documents)} documents known")

    def query(self, query_id: str) -> Query:
        """Return the query with this id, or raise `UnknownId`."""
        for query in self.queries:
            if query.id == query_id:
                return query
        raise UnknownId(f"query {query_id!a} asked for, {len(self.queries)} queries known")
