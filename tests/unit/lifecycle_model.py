"""What a document may become, written a second time in as few lines as possible; it shares no code with the index."""

from dataclasses import dataclass, replace

STALE = "stale_or_conflicting_revision"


@dataclass(frozen=True)
class Document:
    """One document as the model sees it; None in its place is a document that was never heard of."""

    live: bool
    revision: int
    text: str
    acl: tuple[str, ...]
    acl_revision: int


Outcome = tuple[Document | None, str]


def upsert(
    old: Document | None, revision: int, text: str, acl: tuple[str, ...] = ("alice",), restore: bool = False
) -> Outcome:
    """A content event: the next state, and the result's state or the refusal's code."""
    if old is None:
        return Document(True, revision, text, acl, 1), "indexed"
    if revision == old.revision and old.live and text == old.text:
        return old, "unchanged"
    if revision <= old.revision:
        return old, STALE
    if old.live:
        return replace(old, revision=revision, text=text), "indexed"
    if not restore:
        return old, "deleted_document_requires_explicit_restore"
    return Document(True, revision, text, acl, old.acl_revision + 1), "indexed"


def set_acl(old: Document | None, acl: tuple[str, ...], expected: int) -> Outcome:
    """A policy event."""
    if old is None or not old.live:
        return old, "document_not_live"
    if expected != old.acl_revision:
        return old, "stale_acl_revision"
    return replace(old, acl=acl, acl_revision=old.acl_revision + 1), "replaced"


def delete(old: Document | None, revision: int) -> Outcome:
    """A delete event."""
    if old is None:
        return Document(False, revision, "", (), 1), "deleted"
    if old.live:
        if revision <= old.revision:
            return old, "delete_requires_new_revision"
        return Document(False, revision, "", (), old.acl_revision + 1), "deleted"
    if revision < old.revision:
        return old, STALE
    return replace(old, revision=revision), "unchanged" if revision == old.revision else "deleted"


def may_read(document: Document | None, principal: str, groups: tuple[str, ...]) -> bool:
    """Whether a principal of the document's own tenant may read it now."""
    if document is None or not document.live:
        return False
    return bool({principal, "*", *(f"group:{group}" for group in groups)} & set(document.acl))
