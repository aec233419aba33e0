"""Generations of the index: which one serves, whether a result was made under it, and whether its rows are those.

A generation is the chunks, posting lists and vectors of one contract; a migration makes the next one beside it, and the
transaction that switches writes the ledger, too (`store/generations.py`). Content events go on inside a generation, so
there are two questions. `check_generation` asks of a voucher: was it made under the generation that serves? That costs
a few rows. `verify_generation` asks of the index: are its rows, recomputed, those whose fingerprint was recorded? That
reads everything. Neither is about a right or a release: those are asked for at each step (CTX-61).
"""

from dataclasses import dataclass
from typing import ClassVar, Literal

from kbretrieval.context.preferences import PreferenceReceipt
from kbretrieval.context.search import Found
from kbretrieval.context.vouchers import checked_voucher
from kbretrieval.errors import (
    ContextGenerationAltered,
    ContextGenerationForeign,
    ContextGenerationStale,
    ContextGenerationUnfinished,
    ContextInputInvalid,
    StateConflict,
)
from kbretrieval.projection import digest
from kbretrieval.results import Exported
from kbretrieval.store.commits import KEPT_COMMITS, Head, current_commit, descends
from kbretrieval.store.connection import Connection
from kbretrieval.store.contract import read_contract
from kbretrieval.store.fingerprints import expect_sound_text, stored_fingerprint
from kbretrieval.store.generations import (
    Line,
    content_changed_since,
    contract_text,
    ledger_lines,
    record_line,
    serving_line,
)
from kbretrieval.store.staging import staged_contract

State = Literal["past", "serving", "unfinished"]


@dataclass(frozen=True, slots=True)
class Generation(Exported):
    """One generation of an index, as its ledger knew it; a voucher like every other.

    `since`: the commit from which on it served, None while it is unfinished. `fingerprint`: the digest over revision
    identity, text, vectors and encoder of all `documents` live at commit `recorded_at`; None where none was recorded.
    """

    SCHEMA: ClassVar[str] = "kbretrieval.context.generation/1"

    number: int
    state: State
    contract_sha256: str
    since: int | None
    recorded_at: int | None
    fingerprint: str | None
    documents: int
    chunks: int


Voucher = Generation | Found | PreferenceReceipt


def _shown(line: Line, state: State) -> Generation:
    made = line.made
    counts = (made.documents, made.chunks) if made else (0, 0)
    sha256 = made.sha256 if made else None
    return Generation(line.number, state, digest(line.contract), line.since, line.recorded_at, sha256, *counts)


def _unfinished(connection: Connection, serving: Line) -> Generation | None:
    staged = staged_contract(connection)
    if staged is None:
        return None
    return Generation(serving.number + 1, "unfinished", digest(contract_text(staged)), None, None, None, 0, 0)


def _serving(connection: Connection) -> Line:
    """Return the line of the generation that serves; its contract must be the one that is stored."""
    line, stored = serving_line(connection), contract_text(read_contract(connection))
    if line.contract != stored:
        facts = f"contract {digest(line.contract)[:8]} since commit {line.since}, {digest(stored)[:8]} stored"
        raise ContextGenerationAltered(facts)
    return line


def generations(connection: Connection) -> tuple[Generation, ...]:
    """Return every generation that the ledger knows, each by its latest line, and one that is being filled."""
    with connection.read():
        serving = _serving(connection)
        staged = _unfinished(connection, serving)
        latest = {line.number: line for line in (*ledger_lines(connection), serving)}
    known = [_shown(line, "serving" if line == serving else "past") for line in latest.values()]
    return (*known, *((staged,) if staged else ()))


def check(connection: Connection, voucher: object) -> Generation:
    """Return the generation that serves if the voucher was made under it, else say by name why not (CTX-10)."""
    with connection.read():
        return _shown(_checked(connection, voucher), "serving")


def _checked(connection: Connection, voucher: object) -> Line:
    serving = _serving(connection)
    if type(voucher) is Generation:
        error = _of_line(connection, serving, checked_voucher(voucher, Generation, "voucher"))
    elif type(voucher) is Found:
        found = checked_voucher(voucher, Found, "voucher")
        error = _of_result(connection, serving, found.contract_sha256, _head(found))
    elif type(voucher) is PreferenceReceipt:
        receipt = checked_voucher(voucher, PreferenceReceipt, "voucher")
        error = _of_result(connection, serving, receipt.generation, _head(receipt))
    else:
        facts = "voucher: a Generation, a Found or a PreferenceReceipt is required"
        raise ContextInputInvalid(f"{facts}, {type(voucher).__name__} given")
    if error is not None:
        raise error
    return serving


def _head(made: Found | PreferenceReceipt) -> Head:
    """Return the commit that a result keeps."""
    try:
        return Head(made.commit, bytes.fromhex(made.stamp))
    except ValueError:
        raise ContextInputInvalid("voucher: a commit and its stamp are required, other values given") from None


def _of_line(connection: Connection, serving: Line, given: Generation) -> StateConflict | None:
    """Compare a line with the ledger: its number, contract and beginning, then what was recorded of it."""
    mine = [line for line in (*ledger_lines(connection), serving) if line.number == given.number]
    begun = {(digest(line.contract), line.since) for line in mine}
    if not any(given.contract_sha256 == sha and given.since in (None, since) for sha, since in begun):
        return _unknown(connection, serving, given.contract_sha256)
    if given.number != serving.number:
        return ContextGenerationStale(f"generation {given.number} given, {serving.number} serves")
    if given.fingerprint is None:
        return None
    recorded = [(line.recorded_at, line.made.sha256) for line in mine if line.made is not None]
    if (given.recorded_at, given.fingerprint) not in recorded:
        return ContextGenerationForeign(f"fingerprint {given.fingerprint[:8]} given, the ledger has no such line")
    if given.recorded_at != serving.recorded_at:
        facts = f"generation {serving.number} as of commit {given.recorded_at} given"
        return ContextGenerationStale(f"{facts}, recorded again at {serving.recorded_at}")
    return None


def _of_result(connection: Connection, serving: Line, contract_sha256: str, made: Head) -> StateConflict | None:
    """Compare what a result keeps, the contract and the commit with its stamp, with the ledger and the commits."""
    if contract_sha256 == digest(serving.contract) and made.number >= serving.since:
        return _of_commit(connection, made)
    later = serving.since
    for line in reversed([line for line in ledger_lines(connection) if line.number != serving.number]):
        if line.since <= made.number < later and digest(line.contract) == contract_sha256:
            return ContextGenerationStale(f"generation {line.number} given, {serving.number} serves")
        later = line.since
    return _unknown(connection, serving, contract_sha256)


def _of_commit(connection: Connection, made: Head) -> StateConflict | None:
    """Tell this file's commit from another's by its stamp; only the latest 65,536 have one."""
    now = current_commit(connection)
    if made.number <= now and descends(connection, made):
        return None
    if made.number <= now - KEPT_COMMITS:
        return ContextGenerationStale(f"commit {made.number} given, stamps from {now - KEPT_COMMITS + 1} on are kept")
    return ContextGenerationForeign(f"commit {made.number} with another stamp given, commit {now} stored")


def _unknown(connection: Connection, serving: Line, contract_sha256: str) -> StateConflict:
    staged = _unfinished(connection, serving)
    facts = f"contract {contract_sha256[:8]} given, {digest(serving.contract)[:8]} serves"
    if staged is not None and staged.contract_sha256 == contract_sha256:
        return ContextGenerationUnfinished(f"{facts}, the other is being filled")
    return ContextGenerationForeign(f"{facts}, the ledger has no such generation")


def record(connection: Connection) -> Generation:
    """Write the fingerprint of what serves, unless it is recorded already; in one write transaction."""
    with connection.write():
        line = _serving(connection)
        expect_sound_text(connection)
        made = stored_fingerprint(connection, read_contract(connection))
        if line.made is not None and content_changed_since(connection, line.recorded_at or 0) is None:
            _expect_same(line, made.sha256)
        else:
            line = Line(line.number, line.contract, line.since, current_commit(connection), made)
            record_line(connection, line)
    return _shown(line, "serving")


def verify(connection: Connection, voucher: object) -> Generation:
    """Recompute the fingerprint of what serves and compare it with the recorded one, each document by itself.

    That nothing is stale is asked before and after: then every document was read as it stood throughout.
    """
    with connection.read():
        line = _serving(connection) if voucher is None else _checked(connection, voucher)
        contract = read_contract(connection)
        _expect_fresh(connection, line)
    found = stored_fingerprint(connection, contract, within=connection.read)
    with connection.read():
        now = _serving(connection)
        if now.number != line.number:
            raise ContextGenerationStale(f"generation {line.number} was read, {now.number} serves")
        _expect_fresh(connection, line)
    _expect_same(line, found.sha256)
    return _shown(line, "serving")


def _expect_fresh(connection: Connection, line: Line) -> None:
    """Raise `context_generation_stale` unless a fingerprint is recorded and no document has changed since."""
    if line.made is None:
        facts = f"commit {current_commit(connection)} stored"
        raise ContextGenerationStale(f"no fingerprint of generation {line.number} recorded, {facts}")
    changed = content_changed_since(connection, line.recorded_at or 0)
    if changed is not None:
        raise ContextGenerationStale(f"content of commit {line.recorded_at} recorded, changed at commit {changed}")


def _expect_same(line: Line, found: str) -> None:
    recorded = line.made.sha256 if line.made else ""
    if found != recorded:
        facts = f"fingerprint {recorded[:8]} of commit {line.recorded_at} recorded, {found[:8]} found"
        raise ContextGenerationAltered(f"{facts}, no commit says why")
