"""What stands where a real system has something else, and what must be made anew when it is replaced.

Useful as a checklist that an exercise can be compared with. Not useful as a plan: it names no product and no date.
"""

from dataclasses import dataclass

from kbretrieval.offline.errors import UnknownId


@dataclass(frozen=True, slots=True)
class Seam:
    """One replaceable part: what is here, what takes its place, what must be pinned, what must be regenerated.

    Example:
        >>> seam("identity").regenerate
        ()
    """

    part: str
    here: str
    there: str
    pin: tuple[str, ...]
    regenerate: tuple[str, ...]


SEAMS = (
    Seam(
        "analyzer",
        "NFKC, casefold, ASCII runs, Han bigrams over a list in memory",
        "a search engine with its own analyzer and index",
        ("analyzer version", "index revision"),
        ("terms of every document", "lexical statistics", "baseline metrics"),
    ),
    Seam(
        "encoder",
        "hand-made vectors on seven axes",
        "one trained encoder for queries and documents, batched and cached",
        ("model digest", "tokenizer digest", "dimension", "normalisation", "query and passage prefixes"),
        (
            "vector of every document",
            "vector of every query",
            "cached vectors",
            "vector index",
            "exact neighbours",
            "score thresholds",
            "baseline metrics",
        ),
    ),
    Seam(
        "vector_search",
        "exact comparison with every eligible document",
        "approximate nearest neighbours with a filter",
        ("build parameters", "search parameters", "measured recall against exact search"),
        ("vector index", "exact neighbours", "baseline metrics"),
    ),
    Seam(
        "identity",
        "tenant and groups written in the fixture",
        "a trusted context that the host derives from its own sign-in",
        ("authorisation snapshot", "time until a withdrawn right takes effect"),
        (),
    ),
    Seam(
        "judgements",
        "grades written next to the queries",
        "real queries, pooled from several systems and judged blind",
        ("pool depth", "judging guide", "set version"),
        ("judgements", "forbidden lists", "baseline metrics"),
    ),
    Seam(
        "operation",
        "one process, one file, no load",
        "a service with budgets for p95, p99, cost and freshness, with recovery and a way back",
        ("latency budget", "freshness budget", "restore drill", "roll-back drill"),
        ("load measurements",),
    ),
)


def seam(part: str) -> Seam:
    """Return the seam of this name, or raise `UnknownId`.

    Example:
        >>> "vector of every query" in seam("encoder").regenerate
        True
    """
    for found in SEAMS:
        if found.part == part:
            return found
    raise UnknownId(f"seam {part!a} asked for, known are {', '.join(found.part for found in SEAMS)}")
