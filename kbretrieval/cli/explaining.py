"""`explain`: four questions about one document and one principal."""

from pathlib import Path
from typing import Annotated

import typer

from kbretrieval.cli.arguments import (
    AsJson,
    Groups,
    IndexFile,
    Principal,
    Tenant,
    context_of,
    given_text,
    open_existing,
    read_hits,
)
from kbretrieval.cli.explained import explanation_text
from kbretrieval.cli.output import as_json, say


def explain(
    document: Annotated[
        str, typer.Argument(help="The document's name, or the path of its file.", parser=given_text, metavar="DOCUMENT")
    ],
    index: IndexFile,
    tenant: Tenant,
    principal: Principal,
    group: Groups = None,
    hits: Annotated[
        Path | None, typer.Option(help="Kept hits, to be told why they fail: JSON of `search --json`; - is stdin.")
    ] = None,
    json_output: AsJson = False,
) -> None:
    """Maintenance view, never for end users: version, rights, coordinates of a document, and why old citations fail.

    Answers from data: which projection version is stored; may this principal read it, by which ACL entry, since which
    ACL revision; how a quotation is found again (digests, provenance, chunk table); what a citation must carry now.

    Example: kbretrieval explain docs/travel.md --index kb.sqlite --tenant acme --as alice --hits hits.json
    """
    context = context_of(tenant, principal, group)
    kept = [] if hits is None else read_hits(hits)
    with open_existing(index) as opened:
        found = opened.explain(document, context, kept)
    say(as_json(found.to_dict()) if json_output else explanation_text(found))


def add_to(app: typer.Typer) -> None:
    """Add the command of this module."""
    app.command()(explain)
