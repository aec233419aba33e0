"""Rankings and judgements as TREC run and qrels files (EVD-8).

`trec_eval` orders by score in single precision and breaks ties by name, so the score of a line is
derived from the rank alone: the whole numbers n, n−1, …, 1. Every reader sees the ranking that we saw.
The engine's own scores stand in the rows of the claim.
"""

import re
from collections.abc import Mapping, Sequence

from kbretrieval.evidence.errors import TrecInvalid

_NAME = re.compile(r"\S+")
_DEEPEST = 2**24


def run_text(rankings: Mapping[str, Sequence[str]], tag: str = "kbretrieval") -> str:
    """Return a TREC run: `query Q0 document rank score tag`, queries sorted, ranks from 1.

    `rankings` maps a query to its documents, best first; a query without a document has no line.
    Raises `TrecInvalid` for a name that is empty or holds white space and for a document ranked twice.

    Example:
        >>> print(run_text({"q01": ["travel", "refund"]}), end="")
        q01 Q0 travel 1 2 kbretrieval
        q01 Q0 refund 2 1 kbretrieval
    """
    lines = []
    for query in sorted(rankings):
        documents = rankings[query]
        if len(set(documents)) != len(documents) or len(documents) > _DEEPEST:
            raise TrecInvalid(f"{len(documents)} ranks given for {len(set(documents))} different documents")
        for rank, document in enumerate(documents, start=1):
            score = len(documents) - rank + 1
            lines.append(f"{_name(query)} Q0 {_name(document)} {rank} {score} {_name(tag)}\n")
    return "".join(lines)


def qrels_text(judgements: Mapping[str, Mapping[str, int]]) -> str:
    """Return TREC qrels: `query 0 document relevance`, queries and documents sorted.

    Raises `TrecInvalid` like `run_text`, and for a relevance that is not a whole number.

    Example:
        >>> qrels_text({"q01": {"travel": 1}})
        'q01 0 travel 1\\n'
    """
    lines = []
    for query in sorted(judgements):
        for document, relevance in sorted(judgements[query].items()):
            if type(relevance) is not int:
                raise TrecInvalid(f"relevance of type {type(relevance).__name__} given, int needed")
            lines.append(f"{_name(query)} 0 {_name(document)} {relevance}\n")
    return "".join(lines)


def _name(name: str) -> str:
    if not _NAME.fullmatch(name):
        raise TrecInvalid(f"a name of {len(name)} code points with white space or empty given, one word needed")
    return name
