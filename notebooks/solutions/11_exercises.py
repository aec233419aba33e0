"""Solutions of chapter 11."""


def reply(buried, revision, restore):
    """Return what a content event is answered where a tombstone stands."""
    if revision <= buried:
        return "stale_or_conflicting_revision"
    return "indexed" if restore else "deleted_document_requires_explicit_restore"


def acl_revision_after(events):
    """Return the ACL revision after accepted events, the first of which creates the document."""
    return 1 + sum(event in ("acl", "delete", "restore") for event in events)


order = ["新建 r1", "更新 r3", "删除 r2"]
