"""Solutions of chapter 1."""

import hashlib


def holds(quoted, body):
    """Tell whether a quotation is the slice that it claims to be, with the digest that it claims to have."""
    same = body[quoted["start"] : quoted["end"]] == quoted["quote"]
    return same and hashlib.sha256(quoted["quote"].encode("utf-8")).hexdigest() == quoted["sha256"]


verdict_list = ["chunk missing", "other tenant", "malformed", "valid"]


def spoiled(exported):
    """Return a voucher whose chunk digest is wrong and whose every other field is right."""
    return exported | {"chunk_sha256": "0" * 64}
