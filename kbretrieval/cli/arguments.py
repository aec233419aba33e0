"""What several commands share: options, text given on a command line, sources and hits read from files."""

import json
import os
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from kbretrieval.embedded import Embed
from kbretrieval.encoders.port import Encoder
from kbretrieval.errors import (
    HitsListRequired,
    IndexMissing,
    InvalidCommandLine,
    InvalidJson,
    InvalidPath,
    InvalidText,
    SourceTooLarge,
)
from kbretrieval.identity import Context
from kbretrieval.index import Index
from kbretrieval.json_source import check_depth
from kbretrieval.projection import MAX_SOURCE_BYTES
from kbretrieval.results import SearchResult
from kbretrieval.store.opening import checked_path

STDIN = Path("-")
MAX_HITS_BYTES = 64_000_000


def given_text(value: str) -> str:
    """Return an argument as UTF-8 text, whatever the locale; what is no UTF-8 is left for the engine to refuse.

    Example:
        >>> given_text("住宿限额")
        '住宿限额'
    """
    try:
        return os.fsencode(value).decode("utf-8")
    except UnicodeError:
        return value


def _text(name: str, said: str, metavar: str = "<text>") -> Any:
    return typer.Option(name, help=said, parser=given_text, metavar=metavar)


IndexFile = Annotated[Path, typer.Option("--index", help="The index file.")]
WholeFile = Annotated[Path | None, typer.Argument(help="The index file.")]
SameFile = Annotated[Path | None, typer.Option("--index", help="The same, as commands of one document name it.")]
Tenant = Annotated[str, _text("--tenant", "The tenant.")]
DocId = Annotated[str, _text("--doc-id", "The document's name in its tenant.")]
Principal = Annotated[str, _text("--as", "Who asks: a principal whose identity you have established.", "<principal>")]
Groups = Annotated[list[str] | None, _text("--group", "A group of the principal; may be given again.", "<name>")]
Acl = Annotated[
    list[str] | None,
    _text("--acl", "Who may read: a name, group:name or *; may be given again; else nobody.", "<entry>"),
]
HitsFile = Annotated[Path, typer.Argument(help="JSON of `search --json`, or a list of hits; - is stdin.")]
NewEmbed = Annotated[
    Embed | None, typer.Option(help="For a new index; headed: bge is given each chunk below its headings.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]


def context_of(tenant: str, principal: str, groups: list[str] | None) -> Context:
    """Return who asks; the command line believes whoever runs it, as trusted code does (ACL-1)."""
    return Context(tenant, principal, tuple(groups or ()))


def is_new(path: Path) -> bool:
    """Return whether nothing, or an empty file, is where an index would be made; raises `invalid_path`."""
    where = checked_path(path)
    return not os.path.exists(where) or (where.is_file() and where.stat().st_size == 0)  # noqa: PTH110 - may be too long


def one_file(file: Path | None, index: Path | None) -> Path:
    """Return the file that a command for a whole index was given, as its argument or by --index.

    Example:
        >>> one_file(None, Path("kb.sqlite")).name
        'kb.sqlite'
    """
    given = [path for path in (file, index) if path is not None]
    if len(given) != 1:
        raise InvalidCommandLine(f"one index file is required, as an argument or by --index, {len(given)} given")
    return given[0]


def open_existing(path: Path, encoder: Encoder | None = None) -> Index:
    """Open an index that is there; a mistyped name is `index_missing` and makes no file."""
    if is_new(path):
        raise IndexMissing("an index is required, no file or an empty one is there; `add` makes one")
    return Index.open(path, encoder)


def _read(path: Path, most: int) -> str:
    if path == STDIN and sys.stdin is None:
        raise InvalidPath("a readable file is required, stdin is closed")
    try:
        if path == STDIN:
            raw = sys.stdin.buffer.read(most + 1)
        else:
            with path.open("rb") as file:
                raw = file.read(most + 1)
    except (OSError, ValueError) as error:
        raise InvalidPath(f"a readable file is required (errno {getattr(error, 'errno', None)})") from None
    if len(raw) > most:
        raise SourceTooLarge(f"at most {most} bytes are allowed, more given")
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        at = error.start
    # Raised outside the handler: the decoder's error holds the bytes, and would stay reachable as context (ERR-1).
    raise InvalidText(f"UTF-8 is required, byte {at} is none")


def read_source(path: Path) -> str:
    """Return the text of a source, line ends as they are; raises `invalid_path`, `source_too_large`, `invalid_text`."""
    return _read(path, MAX_SOURCE_BYTES)


def read_hits(path: Path) -> list[Any]:
    """Return exported hits: a list, or what `search --json` printed; each one is still to be judged.

    Raises `invalid_path`, `source_too_large`, `invalid_text`, `json_too_deep`, `invalid_json`, `hits_list_required`.
    """
    value = parsed(_read(path, MAX_HITS_BYTES).removeprefix("\ufeff"))
    if isinstance(value, dict) and value.get("schema") == SearchResult.SCHEMA:
        value = value.get("hits")
    if not isinstance(value, list):
        raise HitsListRequired(f"a list of hits or a search result is required, {type(value).__name__} given")
    return value


def parsed(text: str) -> Any:
    """Return a JSON value; `invalid_json` also for a number of too many digits.

    Example:
        >>> parsed("[1]")
        [1]
    """
    check_depth(text)
    try:
        return json.loads(text)
    except ValueError as error:
        line, column = getattr(error, "lineno", 1), getattr(error, "colno", 1)
    raise InvalidJson(f"one JSON value is required, none ends well at line {line}, column {column}")
