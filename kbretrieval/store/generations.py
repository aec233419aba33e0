"""The ledger of generations: which contract served from which commit on, and what its rows were (CTX-10, CTX-13).

A line is written by the transaction that switches generations, and by each later recording; no line is ever changed.
The table is made where a file has none: files from before it lack their earlier lines and nothing else. Whether a
generation has come since the last line, from a version that kept no ledger, is told by the stamps of commits: a switch
drops all earlier ones.
"""

import json
from dataclasses import dataclass

from kbretrieval.store.commits import KEPT_COMMITS, current_commit
from kbretrieval.store.connection import Connection
from kbretrieval.store.contract import Contract, read_contract
from kbretrieval.store.documents import expect
from kbretrieval.store.fingerprints import Fingerprint
from kbretrieval.store.schema import CREATE_GENERATIONS, GENERATIONS

_COLUMNS = "number, contract, since, recorded_at, fingerprint, documents, chunks"


@dataclass(frozen=True, slots=True)
class Line:
    """What is known of a generation: its contract as canonical JSON, the commit since which it serves, its content.

    `recorded_at`: the commit whose content `made` is the fingerprint of; both None where none was recorded.
    """

    number: int
    contract: str
    since: int
    recorded_at: int | None
    made: Fingerprint | None


def contract_text(contract: Contract) -> str:
    """Return the one JSON text of a contract: sorted keys, no blanks."""
    return json.dumps(contract.to_dict(), ensure_ascii=False, sort_keys=True, separators=(",", ":"))


def ledger_lines(connection: Connection) -> list[Line]:
    """Return every line of the ledger, oldest first; none where the file has no ledger yet."""
    if not connection.run("SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = ?", (GENERATIONS,)):
        return []
    rows = connection.run(f"SELECT {_COLUMNS} FROM {GENERATIONS} ORDER BY entry")
    return [_line(expect(row, (int, str, int, int, str, int, int), "generation")) for row in rows]


def _line(row: tuple[int, str, int, int, str, int, int]) -> Line:
    number, contract, since, recorded_at, sha256, documents, chunks = row
    made = Fingerprint(sha256, documents, chunks) if sha256 else None
    return Line(number, contract, since, recorded_at if sha256 else None, made)


def serving_line(connection: Connection) -> Line:
    """Return the latest line of the generation that serves, or what such a line would say where there is none."""
    lines, (oldest,) = ledger_lines(connection), connection.run("SELECT coalesce(min(number), 0) FROM commits")[0]
    kept = max(1, current_commit(connection) - KEPT_COMMITS + 1)
    if lines and oldest <= max(lines[-1].since, kept):
        return lines[-1]
    # Stamps that age has not taken were dropped by a switch, the last one at the oldest that is left.
    since = int(oldest) if oldest > kept else 0
    return Line(lines[-1].number + 1 if lines else 1, contract_text(read_contract(connection)), since, None, None)


def record_line(connection: Connection, line: Line) -> None:
    """Write a line below all others; inside the write transaction whose content it is about."""
    connection.run(CREATE_GENERATIONS)
    made = line.made or Fingerprint("", 0, 0)
    connection.run(
        f"INSERT INTO {GENERATIONS} ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?)",
        (line.number, line.contract, line.since, line.recorded_at or 0, made.sha256, made.documents, made.chunks),
    )


def enter_generation(connection: Connection, before: Line, contract: Contract, commit: int, made: Fingerprint) -> None:
    """Write that another generation serves from this commit on; inside the transaction that switches.

    `before` is the line of the one that served until now; it is written, too, where no line told of it yet.
    """
    lines = ledger_lines(connection)
    if not lines or lines[-1].number != before.number:
        record_line(connection, before)
    record_line(connection, Line(before.number + 1, contract_text(contract), commit, commit, made))


def content_changed_since(connection: Connection, commit: int) -> int | None:
    """Return the latest commit after this one that changed, deleted or repaired a document; None where none did."""
    latest = connection.run("SELECT max(content_commit) FROM documents WHERE content_commit > ?", (commit,))[0][0]
    return None if latest is None else int(latest)
