"""The report of a synchronising run for the eye: what was refused, passed over or kept, and the sums."""

from collections import Counter

from kbretrieval.cli.shown import table
from kbretrieval.sync import SyncReport
from kbretrieval.sync.plan import KINDS, Step

STEPS = ("step", "state", "document", "file", "revision", "ACL revision", "gains", "loses")


def report_text(report: SyncReport) -> str:
    """Return the report as tables; the steps with who gains and who loses stand in that of a dry run (POL-4)."""
    refused = [(item.path, item.code, item.facts) for item in report.refused]
    kept = [(item.doc_id, item.path, item.code) for item in report.kept]
    tables = (
        (STEPS, [_row(step) for step in report.steps] if report.dry_run else []),
        (("refused", "code", "facts"), refused),
        (("skipped", "reason"), [(item.path, item.reason) for item in report.skipped]),
        (("kept", "file", "code"), kept),
        (("documents and files", "count"), [(name, str(count)) for name, count in _sums(report)]),
    )
    return "\n".join(table(head, rows) for head, rows in tables if rows)


def _row(step: Step) -> tuple[str, ...]:
    numbers = str(step.revision), str(step.acl_revision)
    return step.kind, step.state, step.doc_id, step.path, *numbers, _entries(step.gains), _entries(step.losses)


def _entries(entries: tuple[str, ...]) -> str:
    return ", ".join(entries) or "-"


def _sums(report: SyncReport) -> list[tuple[str, int]]:
    wanted = "planned" if report.dry_run else "done"
    done = Counter(step.kind for step in report.steps if step.state == wanted)
    left = Counter(step.state for step in report.steps)
    return [
        *((f"{kind} ({wanted})", done[kind]) for kind in KINDS),
        *(("withheld", left["withheld"]), ("stopped", left["stopped"]), ("unchanged", report.unchanged)),
        *(("refused", len(report.refused)), ("skipped", len(report.skipped)), ("kept", len(report.kept))),
        *(("of other sources", report.others), ("chunks encoded", report.chunks)),
    ]
