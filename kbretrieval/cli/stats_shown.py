"""Sums of a log, and counts of an index, for the eye."""

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta

from kbretrieval.cli.shown import fields_text, safe, table
from kbretrieval.maintenance import IndexCounts
from kbretrieval.observers.sums import AnswerSums, SearchSums, Sums, WriteSums

WIDEST_BAR = 30
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def bars(head: tuple[str, str], rows: Iterable[tuple[str, int]]) -> str:
    """Return a table whose last column is a bar chart; nothing for no rows. A count above zero has a bar.

    Example:
        >>> print(bars(("mode", "searches"), [("hybrid", 4), ("lexical", 2)]), end="")
        mode     searches
        hybrid   4         ██████████████████████████████
        lexical  2         ███████████████
    """
    counted = list(rows)
    most = max((count for _, count in counted), default=0)
    lines = [(name, str(count), "█" * -(-count * WIDEST_BAR // most) if most else "") for name, count in counted]
    return table((*head, ""), lines) if lines else ""


def _milliseconds(value: float | None) -> str:
    return "-" if value is None else f"{value:.1f} ms"


def _times(p50: float | None, p90: float | None) -> str:
    return f"p50 {_milliseconds(p50)}, p90 {_milliseconds(p90)}"


def _span(found: Sums) -> str:
    counted = f"{found.events} events" + (f" and {found.torn} torn lines" if found.torn else "")
    if found.first_at is None or found.last_at is None:
        return f"{counted}\n"
    first, last = (_moment(at) for at in (found.first_at, found.last_at))
    return f"{counted} from {first} to {last}\n"


def _moment(at: float) -> str:
    # Not by `fromtimestamp`: the system's own calendar ends in the year 3000 on Windows.
    return (EPOCH + timedelta(seconds=at)).strftime("%Y-%m-%dT%H:%M:%SZ")


def _searches(found: SearchSums) -> Iterator[str]:
    nothing = f"{found.zero_hits} without a hit ({found.nothing_eligible} with nothing eligible)"
    yield f"searches: {found.done} done, {nothing}; {_times(found.p50, found.p90)}\n"
    yield bars(("mode", "searches"), found.by_mode)
    yield bars(("refused", "searches"), found.refused)
    yield bars(("skipped channel", "searches"), found.skipped)


def _answers(found: AnswerSums) -> Iterator[str]:
    counted = f"{found.done} done, {found.abstained} abstained, {found.quotations} quotations"
    yield f"answers: {counted}; {_times(found.p50, found.p90)}\n"
    yield bars(("refused citations", "hits"), found.refused_citations if found.done else ())
    yield bars(("verdict", "hits"), found.verdicts)
    yield bars(("refused", "answers"), found.refused)


def _writes(found: WriteSums) -> Iterator[str]:
    waited = f"waited p90 {_milliseconds(found.waited_p90)}, most {_milliseconds(found.waited_most)}"
    yield f"writes: {found.writes}; {waited}\n"
    yield bars(("write", "times"), found.by_outcome)


def sums_text(found: Sums) -> str:
    """Return the sums of a log as tables with bars, a heading above each part."""
    parts = (_searches(found.searches), _answers(found.answers), _writes(found.writes))
    return _span(found) + "".join("\n" + "\n".join(block for block in part if block) for part in parts)


def counts_text(found: IndexCounts) -> str:
    """Return the counts of an index: one line a tenant, then the contract, the commit and the size."""
    head = ("tenant", "live", "tombstones", "chunks")
    rows = [(item.tenant, str(item.live), str(item.tombstones), str(item.chunks)) for item in found.tenants]
    whole = {"commit": found.commit, "file_bytes": found.file_bytes, "migrating": "yes" if found.migrating else "no"}
    tenants = table(head, rows) if rows else "no documents\n"
    return tenants + "\n" + safe(fields_text({**found.contract.to_dict(), **whole}))
