"""The book's fixtures, or a reader's own: documents, queries with judgements, and the manifest that binds them.

The loader compares both files with their SHA-256 in `manifest.json` and refuses one changed byte.
"""

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kbretrieval.errors import FixtureHashMismatch, InvalidFixture
from kbretrieval.identity import Context, granted_by
from kbretrieval.index import Index

CORPUS, QUERIES, MANIFEST = "corpus.json", "queries.json", "manifest.json"
BOOK_WINDOW = (80, 16)
BOOK_CONTEXT = Context("acme", "alice")

_DOCUMENT_KEYS = {"tenant", "doc_id", "revision", "format", "acl", "source"}
_QUERY_KEYS = {"id", "query", "relevant"}


@dataclass(frozen=True, slots=True)
class SourceDocument:
    """One document as a connector would deliver it."""

    tenant: str
    doc_id: str
    revision: int
    format: str
    acl: tuple[str, ...]
    source: str

    def readable_by(self, context: Context) -> bool:
        """Tell from the fixture alone whether a context may read it: the oracle for access violations."""
        return self.tenant == context.tenant and granted_by(self.acl, context) is not None


@dataclass(frozen=True, slots=True)
class Question:
    """A query with the documents that answer it in the evaluation's context; none for a negative."""

    id: str
    query: str
    relevant: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Corpus:
    """A loaded fixture folder; `sha256` maps a file's name to its digest."""

    version: str
    documents: tuple[SourceDocument, ...]
    questions: tuple[Question, ...]
    sha256: dict[str, str]

    def document(self, tenant: str, doc_id: str) -> SourceDocument:
        """Return one document, or raise `invalid_fixture`."""
        for document in self.documents:
            if (document.tenant, document.doc_id) == (tenant, doc_id):
                return document
        raise InvalidFixture(f"{len(self.documents)} documents are there, the wanted one is not")

    def fill(self, index: Index) -> None:
        """Put every document into an index."""
        for document in self.documents:
            index.upsert(
                document.tenant,
                document.doc_id,
                document.revision,
                document.format,
                document.source,
                list(document.acl),
            )


def fixtures_folder() -> Path:
    """Return the folder of the book's fixtures: package data in a wheel, `fixtures/` in a checkout."""
    package = Path(__file__).resolve().parent.parent
    packed = package / "_fixtures"
    return packed if packed.is_dir() else package.parent / "fixtures"


def _read(folder: Path, name: str) -> bytes:
    try:
        return (folder / name).read_bytes()
    except OSError as error:
        raise InvalidFixture(f"{name} is required, it cannot be read (errno {error.errno})") from None


def _parsed(raw: bytes, name: str) -> Any:
    try:
        return json.loads(raw.decode("utf-8"))
    except (ValueError, RecursionError):
        raise InvalidFixture(f"{name}: UTF-8 JSON is required, something else is there") from None


def _records(value: object, keys: set[str], name: str) -> list[dict[str, Any]]:
    if not isinstance(value, list) or not all(isinstance(item, dict) and set(item) == keys for item in value):
        raise InvalidFixture(f"{name}: a list of objects with exactly {len(keys)} known keys is required")
    return value


def load_corpus(folder: Path | None = None) -> Corpus:
    """Return the fixtures of a folder, by default the book's.

    Raises `fixture_hash_mismatch` if a file's bytes are not those of the manifest, and `invalid_fixture`.

    Example:
        >>> book = load_corpus()
        >>> len(book.documents), len(book.questions)
        (8, 13)
    """
    folder = folder or fixtures_folder()
    manifest = _parsed(_read(folder, MANIFEST), MANIFEST)
    if not isinstance(manifest, dict) or not isinstance(manifest.get("sha256"), dict):
        raise InvalidFixture(f"{MANIFEST}: an object with sha256 is required, something else is there")
    raw = {name: _read(folder, name) for name in (CORPUS, QUERIES)}
    for name, content in raw.items():
        found, wanted = hashlib.sha256(content).hexdigest(), manifest["sha256"].get(name)
        if found != wanted:
            raise FixtureHashMismatch(f"{name}: {str(wanted)[:12]} in the manifest, {found[:12]} in the file")
    documents = _records(_parsed(raw[CORPUS], CORPUS), _DOCUMENT_KEYS, CORPUS)
    questions = _records(_parsed(raw[QUERIES], QUERIES), _QUERY_KEYS, QUERIES)
    try:
        return Corpus(
            str(manifest.get("version", "")),
            tuple(SourceDocument(**{**item, "acl": tuple(item["acl"])}) for item in documents),
            tuple(Question(item["id"], item["query"], tuple(item["relevant"])) for item in questions),
            {name: hashlib.sha256(content).hexdigest() for name, content in raw.items()},
        )
    except TypeError:
        raise InvalidFixture("acl and relevant must be lists, another type is there") from None


def write_manifest(folder: Path, version: str = "reader-fixture-v1") -> dict[str, Any]:
    """Write `manifest.json` for a reader's own corpus and queries, and return what was written.

    Both files are parsed first, so that no manifest vouches for something that cannot be loaded.
    """
    raw = {name: _read(folder, name) for name in (CORPUS, QUERIES)}
    documents = _records(_parsed(raw[CORPUS], CORPUS), _DOCUMENT_KEYS, CORPUS)
    questions = _records(_parsed(raw[QUERIES], QUERIES), _QUERY_KEYS, QUERIES)
    positive = sum(1 for item in questions if item["relevant"])
    manifest = {
        "version": version,
        "kind": "made by a reader of the book",
        "documents": len(documents),
        "queries": len(questions),
        "positive_queries": positive,
        "negative_queries": len(questions) - positive,
        "sha256": {name: hashlib.sha256(content).hexdigest() for name, content in raw.items()},
    }
    text = json.dumps(manifest, ensure_ascii=False, indent=2) + "\n"
    (folder / MANIFEST).write_text(text, encoding="utf-8", newline="\n")
    return manifest
