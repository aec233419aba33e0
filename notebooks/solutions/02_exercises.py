"""Solutions of chapter 2."""


def fate(stored, event):
    """Return what a content event does to a live document: by revision first, then by title and digest."""
    if stored is None or event[0] > stored[0]:
        return "indexed"
    return "unchanged" if event == stored else "stale_or_conflicting_revision"


def resend(source):
    """Return the same document with a byte order mark before it: other bytes, the same projection."""
    return "\ufeff" + source


arrival = [0, 2, 3, 1, 4, 5]
