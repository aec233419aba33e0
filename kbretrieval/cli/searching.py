"""`search`, `answer`, `audit`: hits, quotations that were just checked, and verdicts on kept hits."""

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Literal

import typer

from kbretrieval.cli.arguments import (
    AsJson,
    Groups,
    HitsFile,
    IndexFile,
    Principal,
    Tenant,
    context_of,
    given_text,
    open_existing,
    read_hits,
)
from kbretrieval.cli.output import as_json, say
from kbretrieval.cli.shown import answer_text, hits_table, table
from kbretrieval.errors import InvalidParameter
from kbretrieval.options import Mode as ModeName
from kbretrieval.options import SearchOptions
from kbretrieval.sync.defaults import search_options

QUERY = typer.Argument(help="The query, 1 to 1,024 code points.", parser=given_text)
Mode = Annotated[ModeName, typer.Option(help="Which channels.")]
Lexical = Annotated[
    Literal["isolated", "fts5"], typer.Option(help="isolated: BM25 over the caller's own rows. fts5: the book's.")
]


def search(
    query: Annotated[str, QUERY],
    index: IndexFile,
    tenant: Tenant,
    principal: Principal,
    group: Groups = None,
    mode: Mode = "hybrid",
    limit: Annotated[int, typer.Option(help="Hits, 1 to 100.")] = 5,
    lexical: Lexical = "isolated",
    fusion: Annotated[
        Literal["rrf", "convex"] | None,
        typer.Option(help="How the channels become one list; else convex for an index of the real model, else rrf."),
    ] = None,
    rrf_k: Annotated[int, typer.Option(help="The constant of RRF.")] = 60,
    lexical_share: Annotated[float, typer.Option(help="Weight of the lexical channel in convex, 0 to 1.")] = 0.15,
    window: Annotated[int, typer.Option(help="Candidates kept of each channel.")] = 100,
    rerank: Annotated[Literal["none", "title"], typer.Option(help="title: the book's rule.")] = "none",
    json_output: AsJson = False,
) -> None:
    """Search as somebody: hits with their rank and score in each channel. A hit is a voucher, not an authorisation.

    Example: kbretrieval search 住宿限额 --index kb.sqlite --tenant acme --as alice --group hr --limit 3
    """
    context = context_of(tenant, principal, group)
    with open_existing(index) as opened:
        chosen = fusion or search_options(opened.contract).fusion
        options = SearchOptions(lexical, chosen, rrf_k, window, rerank, lexical_share)
        result = opened.search(query, context, limit, mode, options)
    say(as_json(result.to_dict()) if json_output else hits_table(result))


def answer(
    index: IndexFile,
    tenant: Tenant,
    principal: Principal,
    query: Annotated[str | None, QUERY] = None,
    group: Groups = None,
    hits: Annotated[
        Path | None, typer.Option(help="Answer from kept hits instead: JSON of `search --json`; - is stdin.")
    ] = None,
    mode: Mode = "hybrid",
    lexical: Lexical = "isolated",
    limit: Annotated[int, typer.Option(help="Quotations, 1 to 10.")] = 2,
    json_output: AsJson = False,
) -> None:
    """Quote what holds now, with document, lines, code points and the ACL entry that grants it; or abstain.

    Every hit is checked against the store again, those of --hits too. An abstention is an answer: exit status 0.

    Example: kbretrieval answer 住宿限额 --index kb.sqlite --tenant acme --as alice
    """
    context = context_of(tenant, principal, group)
    if (query is None) == (hits is None):
        raise InvalidParameter(f"one of query and --hits is required, {0 if query is None else 2} given")
    kept = None if hits is None else read_hits(hits)
    with open_existing(index) as opened:
        options = replace(search_options(opened.contract), lexical=lexical)
        found = opened.search(query or "", context, mode=mode, options=options) if kept is None else kept
        result = opened.answer(found, context, limit)
    say(as_json(result.to_dict()) if json_output else answer_text(result))


def audit(
    hits: HitsFile,
    index: IndexFile,
    tenant: Tenant,
    principal: Principal,
    group: Groups = None,
    json_output: AsJson = False,
) -> None:
    """Maintenance view, never for end users: the verdict on each kept hit, the first thing that is wrong with it.

    Example: kbretrieval audit hits.json --index kb.sqlite --tenant acme --as alice
    """
    context, kept = context_of(tenant, principal, group), read_hits(hits)
    with open_existing(index) as opened:
        judged = opened.audit(kept, context)
    if json_output:
        say(as_json([item.to_dict() for item in judged]))
        return
    rows = [(str(item.position), item.verdict, item.doc_id or "-", str(item.chunk_key or "-")) for item in judged]
    say(table(("position", "verdict", "document", "chunk key"), rows))


def add_to(app: typer.Typer) -> None:
    """Add the commands of this module."""
    for command in (search, answer, audit):
        app.command()(command)
