"""The FTS5 table: how terms reach it, the MATCH expression, the ranked query (LEX-3, LEX-4, LEX-6)."""

import hashlib
import json
from collections.abc import Sequence

from kbretrieval.identity import Context
from kbretrieval.store.connection import Connection
from kbretrieval.store.documents import expect
from kbretrieval.store.schema import FTS_TABLE

# FTS5 cuts a token after 32,768 bytes. A term longer than this is shortened to its head and its digest, joined by a
# character that no term holds, so that different terms stay different.
_LONGEST = 4096
_HEAD = 64
_JOINT = "\u2026"


def fts_token(term: str) -> str:
    """Return the token under which FTS5 knows a term: the term itself, unless it is longer than 4,096 code points.

    Example:
        >>> fts_token("住宿")
        '住宿'
    """
    if len(term) <= _LONGEST:
        return term
    return f"{term[:_HEAD]}{_JOINT}{hashlib.sha256(term.encode('utf-8')).hexdigest()}"


def fts_text(terms: Sequence[str]) -> str:
    """Return the text that is stored for a chunk: its tokens, separated by blanks."""
    text = " ".join(terms)
    # A text no longer than the longest token holds none that must be shortened.
    return text if len(text) <= _LONGEST else " ".join(map(fts_token, terms))


def match_expression(terms: Sequence[str]) -> str:
    """Return the MATCH expression: each term quoted, joined by OR. No input is ever FTS5 syntax.

    FTS5 reads a double-quoted string as a string, with `""` for a quote inside; the whole expression is bound as a
    parameter.

    Example:
        >>> match_expression(["退款", "near"])
        '"退款" OR "near"'
    """
    return " OR ".join('"' + fts_token(term).replace('"', '""') + '"' for term in terms)


def fts_ranked(
    connection: Connection, context: Context, terms: Sequence[str], window: int
) -> tuple[list[tuple[int, float]], int]:
    """Return the best (chunk key, raw bm25) pairs and the number of readable rows that match.

    Order: bm25 ascending, then chunk key. Tenant, live and ACL conditions stand before order and limit. The statistics
    behind bm25 are the whole table's; that leak is named in the trace.
    """
    if not terms:
        return [], 0
    rows = connection.run(
        f"""WITH readable AS MATERIALIZED (
            SELECT {FTS_TABLE}.rowid AS chunk_key, bm25({FTS_TABLE}) AS score
            FROM {FTS_TABLE}
            CROSS JOIN chunks c ON c.chunk_key = {FTS_TABLE}.rowid
            CROSS JOIN documents d ON d.doc_key = c.doc_key
            WHERE {FTS_TABLE} MATCH ? AND d.tenant = ? AND d.live = 1 AND EXISTS (
                SELECT 1 FROM acl a WHERE a.doc_key = d.doc_key AND a.entry IN (SELECT value FROM json_each(?))
            )
        )
        SELECT chunk_key, score, count(*) OVER () FROM readable ORDER BY score, chunk_key LIMIT ?""",
        (match_expression(terms), context.tenant, json.dumps(context.entries(), ensure_ascii=False), window),
    )
    for row in rows:
        expect(row, (int, float, int), "FTS5 row")
    return [(key, score) for key, score, _ in rows], rows[0][2] if rows else 0
