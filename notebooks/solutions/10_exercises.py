"""Solutions of chapter 10."""

from collections import defaultdict


def reply(stored, event):
    """Return what an index answers to a content event for a live document."""
    if stored is None or event[0] > stored[0]:
        return "indexed"
    return "unchanged" if event == stored else "stale_or_conflicting_revision"


def torn(hits):
    """Tell whether hits show two versions of one document."""
    versions = defaultdict(set)
    for hit in hits:
        versions[hit.tenant, hit.doc_id].add((hit.revision, hit.document_sha256))
    return any(len(seen) > 1 for seen in versions.values())


order = [3, 1, 4, 2]
