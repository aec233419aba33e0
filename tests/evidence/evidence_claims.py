"""What the tests of this folder share: a filled claim, and the type of the fixture that makes one."""

from collections.abc import Callable

from kbretrieval.evidence import Claim

MakeClaim = Callable[..., Claim]


def fill(claim: Claim, ranks: tuple[int, ...] = (1, 2)) -> Claim:
    """Give a claim rows, a subject, an aggregate and one executed check."""
    claim.rows({"query": f"q{at:02}", "rank": rank, "score": 1 / (60 + rank)} for at, rank in enumerate(ranks))
    claim.subject("fixtures/corpus.json")
    claim.equal("ranks", claim.aggregate("ranks", "list", "rank"), list(ranks))
    claim.aggregate("mean_rank", "mean", "rank")
    claim.observe(wall_ms=0.25)
    return claim
