"""The security gate: every document of every complete window is judged again, by rules written a second time (OFF-53).

It shares nothing with `eligibility`, on purpose: a gate that calls the filter under test agrees with its mistakes.
Useful for finding a leak at any rank of any channel. Not useful as access control: it looks when all is done.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kbretrieval.offline.model import Document, Query

STAGES: Mapping[str, str] = {"bm25": "candidate_window", "dense": "candidate_window", "hybrid": "fused_window"}


@dataclass(frozen=True, slots=True)
class Violation:
    """One document that one channel should not have held: where it stood, and why it should not.

    Example:
        >>> Violation("q", "dense", "candidate_window", 4, "d", "tenant_mismatch").rank
        4
    """

    query: str
    channel: str
    stage: str
    rank: int
    document: str
    reason: str


def reasons_against(document: Document, query: Query) -> tuple[str, ...]:
    """Return why this query must not hold this document; empty if it may.

    Reasons, in this order: `tenant_mismatch`, `acl_denied`, `not_published`, `language_not_allowed`,
    `product_not_allowed`, `must_not_return`.

    Example:
        >>> memo = Document("d", "T", "x", "beta", ("guest",), "draft", "en", "app", "r1", (1.0,))
        >>> reasons_against(memo, Query("q", "x", "alpha", ("guest",), ("en",), ("app",), (1.0,), {}, ("d",)))
        ('tenant_mismatch', 'not_published', 'must_not_return')
    """
    reasons = []
    if query.tenant != document.tenant:
        reasons.append("tenant_mismatch")
    if not any(group in document.acl for group in query.subject_groups):
        reasons.append("acl_denied")
    if document.status != "published":
        reasons.append("not_published")
    if query.languages.count(document.language) == 0:
        reasons.append("language_not_allowed")
    if query.products.count(document.product) == 0:
        reasons.append("product_not_allowed")
    if document.id in query.must_not_return:
        reasons.append("must_not_return")
    return tuple(reasons)


def audit_window(
    documents: Mapping[str, Document], query: Query, channel: str, window: Sequence[str]
) -> tuple[Violation, ...]:
    """Return a violation for each reason against each id of a complete window, by rank, then in order of reasons.

    An id that the fixture does not hold is a violation too: `unknown_document`.

    Example:
        >>> anybody = Query("q", "x", "alpha", ("guest",), ("en",), ("app",), (1.0,), {}, ())
        >>> [(found.rank, found.reason) for found in audit_window({}, anybody, "bm25", ["d-99"])]
        [(1, 'unknown_document')]
    """
    stage = STAGES.get(channel, "candidate_window")
    return tuple(
        Violation(query.id, channel, stage, rank, name, reason)
        for rank, name in enumerate(window, start=1)
        for reason in (reasons_against(documents[name], query) if name in documents else ("unknown_document",))
    )
