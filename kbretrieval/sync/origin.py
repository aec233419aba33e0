"""Where a document came from, in its provenance and back: the place of its file, and who named it (SYN-1, SYN-4)."""

from kbretrieval.identity import MAX_PROVENANCE, Provenance
from kbretrieval.results import DocumentStatus
from kbretrieval.sync.examining import Examined
from kbretrieval.sync.source import printable


def provenance_of(file: Examined, connector: str, raw_sha256: str) -> Provenance:
    """Return the provenance of a file: where its bytes are, followed by `#` and the identity if that is another."""
    return Provenance(uri=_uri(file), connector=connector, version=f"sha256:{raw_sha256}")


def _uri(file: Examined) -> str:
    place = file.item.place
    return place if place == file.doc_id else f"{printable(place)}#{file.doc_id}"[-MAX_PROVENANCE:]


def has_moved(status: DocumentStatus, file: Examined) -> bool:
    """Return whether a document's bytes were last read at another place than where its file is now.

    A quotation leads to the place that stands in the provenance of its revision (ID-6), so a file that was renamed and
    keeps its identity is a new revision of the same text.
    """
    return status.provenance is None or status.provenance.uri != _uri(file)


def comes_from(status: DocumentStatus, connector: str) -> bool:
    """Return whether a document is live and came from the source of this name."""
    return status.state == "live" and status.provenance is not None and status.provenance.connector == connector


def is_anybodys(status: DocumentStatus) -> bool:
    """Return whether no source is named for a document, so that a file of the same identity takes it over."""
    return status.provenance is None or status.provenance.connector is None


def last_place(status: DocumentStatus) -> tuple[str, bool]:
    """Return where a document's bytes were last read, and whether its file may as well stand elsewhere by now."""
    uri = (status.provenance.uri if status.provenance is not None else None) or status.doc_id
    return (uri, False) if uri == status.doc_id else (uri.removesuffix(f"#{status.doc_id}"), True)
