"""`add`, `delete`, `acl`, `status`, `documents`: the events of one document, and what is stored of it."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from kbretrieval.cli.arguments import (
    STDIN,
    Acl,
    AsJson,
    DocId,
    IndexFile,
    NewEmbed,
    Tenant,
    is_new,
    open_existing,
    read_source,
)
from kbretrieval.cli.output import as_json, say
from kbretrieval.cli.shown import documents_table, fields_text
from kbretrieval.errors import UnsupportedFormat
from kbretrieval.evaluation.encoders import EncoderName, encoder_named
from kbretrieval.identity import checked_acl, checked_document, checked_revision
from kbretrieval.index import Index
from kbretrieval.projection import project
from kbretrieval.results import Exported
from kbretrieval.sync import folder


class Format(StrEnum):
    """The formats of a source."""

    MARKDOWN = "markdown"
    TEXT = "text"
    JSON = "json"


ENDINGS = {ending: Format(name) for ending, name in folder.ENDINGS.items()}


def format_of(file: Path, given: Format | None) -> Format:
    """Return the format that was given, else the one that the file's name tells, else `unsupported_format`.

    Example:
        >>> format_of(Path("制度/年假.md"), None).value
        'markdown'
    """
    told = given or (ENDINGS.get(file.suffix.lower()) if file != STDIN else None)
    if told is None:
        raise UnsupportedFormat(f"--format or a name that ends in {', '.join(ENDINGS)} is required, neither given")
    return told


def _print(result: Exported, json_output: bool) -> None:
    say(as_json(result.to_dict()) if json_output else fields_text(result.to_dict()))


def add(
    file: Annotated[Path, typer.Argument(help="The source, UTF-8; - is stdin.")],
    index: IndexFile,
    tenant: Tenant,
    doc_id: DocId,
    revision: Annotated[int, typer.Option(help="Content order of the document, from 1; a newer text needs more.")],
    source_format: Annotated[
        Format | None, typer.Option("--format", help="Else told by the file's name: .md, .txt, .json.")
    ] = None,
    acl: Acl = None,
    restore: Annotated[bool, typer.Option("--restore", help="Bring a deleted document back, with a new ACL.")] = False,
    encoder: Annotated[EncoderName | None, typer.Option(help="For a new index; else the stored one.")] = None,
    chunk_size: Annotated[int | None, typer.Option(help="Code points of a chunk; for a new index, else 220.")] = None,
    overlap: Annotated[int | None, typer.Option(help="Code points that chunks share; for a new index.")] = None,
    embed: NewEmbed = None,
    json_output: AsJson = False,
) -> None:
    """Put one version of a document into an index; makes the index where there is none.

    The ACL counts when the document is new or restored; of a live one only `acl` changes it.

    Example: kbretrieval add travel.md --index kb.sqlite --tenant acme --doc-id travel --revision 1 --acl alice
    """
    kind, source = format_of(file, source_format), read_source(file)
    chosen = None if encoder is None else encoder_named(encoder).encoder
    if is_new(index):
        # What is refused makes no index: its contract would be there for whoever comes next.
        (
            checked_document(tenant, doc_id),
            checked_revision(revision),
            checked_acl(acl or []),
            project(source, kind.value),
        )
    with Index.open(index, chosen, chunk_size, overlap, embed=embed) as opened:
        _print(opened.upsert(tenant, doc_id, revision, kind.value, source, acl or [], restore), json_output)


def delete(
    index: IndexFile,
    tenant: Tenant,
    doc_id: DocId,
    revision: Annotated[int, typer.Option(help="A higher revision than the stored one.")],
    json_output: AsJson = False,
) -> None:
    """Delete a document: it is found and quoted no more, and a tombstone keeps older events out.

    Example: kbretrieval delete --index kb.sqlite --tenant acme --doc-id travel --revision 2
    """
    with open_existing(index) as opened:
        _print(opened.delete(tenant, doc_id, revision), json_output)


def acl(
    index: IndexFile,
    tenant: Tenant,
    doc_id: DocId,
    expected: Annotated[int, typer.Option("--expected", help="The ACL revision that you believe is stored.")],
    acl: Acl = None,
    json_output: AsJson = False,
) -> None:
    """Replace a document's whole ACL by compare and swap; refused if the stored ACL revision is another.

    Example: kbretrieval acl --index kb.sqlite --tenant acme --doc-id travel --expected 1 --acl bob --acl group:hr
    """
    with open_existing(index) as opened:
        _print(opened.set_acl(tenant, doc_id, acl or [], expected), json_output)


def status(index: IndexFile, tenant: Tenant, doc_id: DocId, json_output: AsJson = False) -> None:
    """Maintenance view, never for end users: one document's state, order, digests and policy.

    Example: kbretrieval status --index kb.sqlite --tenant acme --doc-id travel
    """
    with open_existing(index) as opened:
        _print(opened.status(tenant, doc_id), json_output)


def documents(index: IndexFile, tenant: Tenant, json_output: AsJson = False) -> None:
    """Maintenance view, never for end users: every document of a tenant, tombstones included.

    Example: kbretrieval documents --index kb.sqlite --tenant acme
    """
    with open_existing(index) as opened:
        found = opened.documents(tenant)
    say(as_json([item.to_dict() for item in found]) if json_output else documents_table(found))


def add_to(app: typer.Typer) -> None:
    """Add the commands of this module."""
    for command in (add, delete, acl, status, documents):
        app.command()(command)
