"""Solutions of chapter 13."""

from kbretrieval import BOOK, Context

sentence = "replay: a refusal is required, the old event was accepted"


def everyone_sees(index, query, doc_id):
    """Return the names of those who find a document now."""
    return [
        name
        for name in ("alice", "bob", "carol")
        if doc_id in [hit.doc_id for hit in index.search(query, Context("acme", name), 10, "hybrid", BOOK)]
    ]


def tampered(raw):
    """Return the corpus with one digit changed."""
    return raw.replace(b"500", b"501", 1)
