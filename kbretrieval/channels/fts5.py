"""The book's baseline: a real FTS5 table, ranked by SQLite's bm25(), smaller is better (LEX-3).

Rows are filtered before they are ranked, but the statistics behind bm25() are the whole table's: an unseen document can
move a score and even an order. The trace says so.
"""

from kbretrieval.channels.ranking import QueryTerms, Ranked, ran, skipped
from kbretrieval.identity import Context
from kbretrieval.store.connection import Connection
from kbretrieval.store.fts import fts_ranked

METHOD = "sqlite-fts5-bm25/1"
STATISTICS = "whole table, all tenants"


def rank_fts5(connection: Connection, context: Context, eligible: int, terms: QueryTerms, window: int) -> Ranked:
    """Return the best `window` readable rows; inside a read transaction. Raw values are kept as they are."""
    if not terms.used:
        return skipped("lexical", METHOD, STATISTICS, "no_terms", terms, eligible)
    rows, matching = fts_ranked(connection, context, terms.used, window)
    return ran(
        "lexical",
        METHOD,
        STATISTICS,
        terms,
        rows,
        floor=None,
        eligible=eligible,
        scored=matching,
        candidates=matching,
    )
