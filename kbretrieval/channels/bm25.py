"""BM25 over exactly the rows that the caller may read (LEX-8): no unseen document moves a score, a rank or a count.

score(row) = sum over query terms, in query order, of
    idf * tf * (k1 + 1) / (tf + k1 * (1 - b + b * length / mean_length)),
    idf = ln(1 + (N - df + 0.5) / (df + 0.5)),   k1 = 1.2, b = 0.75,
with N, df and mean_length over the eligible rows alone (Robertson and Zaragoza 2009, with the +1 that keeps idf
positive). Each row's sum is taken in the order of the query's terms, so equal texts score equal bits wherever they
stand. A term that is one Han character stands for every bigram that holds it (LEX-9): counts summed, rows united.
"""

import math

import numpy as np

from kbretrieval.analysis import is_single_ideograph, term_code
from kbretrieval.channels.postings import eligible_postings
from kbretrieval.channels.ranking import QueryTerms, Ranked, Scores, best, ran, skipped
from kbretrieval.snapshot.eligible import Eligible
from kbretrieval.snapshot.segment import Postings, Segment
from kbretrieval.snapshot.snapshot import Snapshot

K1 = 1.2
B = 0.75
METHOD = "bm25-isolated/1"
STATISTICS = "eligible rows"


def inverse_document_frequency(total: int, holding: int) -> float:
    """Return ln(1 + (N - df + 0.5) / (df + 0.5)), always above zero.

    Example:
        >>> round(inverse_document_frequency(4, 3), 6)
        0.356675
    """
    return math.log(1.0 + (total - holding + 0.5) / (holding + 0.5))


def term_postings(segment: Segment, term: str) -> Postings:
    """Return the posting list of a query term in one segment."""
    code = term_code(term)
    if not is_single_ideograph(term):
        return segment.postings(code)
    return segment.united([int(held) for held in segment.codes_holding(term)])


def bm25_scores(snapshot: Snapshot, eligible: Eligible, terms: QueryTerms) -> Scores:
    """Return the score of every row of a snapshot, 0.0 where it is not eligible or holds no term."""
    scores = np.zeros(len(snapshot.alive), np.float64)
    for term in terms.used:
        parts = eligible_postings(snapshot, eligible, term, term_postings)
        weight = inverse_document_frequency(eligible.count, sum(len(part.rows) for part in parts)) * (K1 + 1.0)
        for part in parts:
            divisor = part.counts + K1 * (1.0 - B + B * part.of(eligible.relative_lengths).take(part.rows))
            part.of(scores)[part.rows] += weight * part.counts / divisor
    return scores


def rank_bm25(snapshot: Snapshot, eligible: Eligible, terms: QueryTerms, window: int) -> Ranked:
    """Return the best `window` eligible rows; higher is better, only rows that hold a term are scored."""
    if not terms.used:
        return skipped("lexical", METHOD, STATISTICS, "no_terms", terms, eligible.count)
    scores = bm25_scores(snapshot, eligible, terms)
    held = np.flatnonzero(scores > 0)  # every contribution is above zero
    return ran(
        "lexical",
        METHOD,
        STATISTICS,
        terms,
        best(snapshot.column("chunk_keys")[held], scores[held], window),
        floor=None,
        eligible=eligible.count,
        scored=len(held),
        candidates=len(held),
    )
