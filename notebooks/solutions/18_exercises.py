"""Solutions of chapter 18."""

import hashlib
import json

MOVED_ON = {"context_revision_changed", "context_acl_changed", "context_binding_changed"}


def inventory_hash(listed):
    """Return the hash of a snapshot from its parts, in whatever order they are given."""
    text = json.dumps([list(part) for part in sorted(listed)], ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(text.encode("utf-8")).hexdigest()


def answers(codes):
    """Return whether it may be read as history, and whether it holds for new work."""
    return set(codes) <= MOVED_ON, not codes


wanted = [("travel", 22, 31), ("parking", 22, 30)]
