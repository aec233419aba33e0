"""`python -m kbretrieval.evidence verify DIR`: the one command for a colleague (EVD-4).

It runs from a checkout with nothing installed: `python -S -E -m kbretrieval.evidence verify evidence`.
"""

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from kbretrieval.evidence.manifest import rebuild_manifest
from kbretrieval.evidence.rerun import rerun
from kbretrieval.evidence.verify import FileReport, Finding, Report, find_root, verify_folder

_LABELS = {"holds": "ok", "fails": "FAILED", "unchecked": "NOT CHECKED", "note": "note"}


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; return 0 all hold, 1 something does not, 2 something could not be checked.

    Example:
        >>> main(["verify", "no-such-folder"])
        NOT CHECKED  MANIFEST.json
                     manifest: missing
        0 hold, 0 do not hold, 1 not checked
        2
    """
    given = _parser().parse_args(argv)
    folder = Path(given.folder)
    if given.command == "manifest":
        rebuild_manifest(folder)
        return 0
    root = Path(given.root) if given.root else find_root(folder)
    report = verify_folder(folder, root)
    if given.rerun:
        report = _with_rerun(report, folder, given.rerun, root)
    if given.json:
        print(json.dumps(report.to_dict(), ensure_ascii=True, indent=1, sort_keys=True))
    else:
        print(rendered(report))
    return report.exit_code


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m kbretrieval.evidence", description="Check evidence files offline.")
    commands = parser.add_subparsers(dest="command", required=True)
    verify = commands.add_parser("verify", help="check every file; exit 0 all hold, 1 some do not, 2 not all checked")
    verify.add_argument("folder", metavar="DIR")
    verify.add_argument("--root", help="the project root that subjects are below (default: the checkout around DIR)")
    verify.add_argument("--rerun", metavar="CLAIM", help="run this claim again, offline, and compare byte for byte")
    verify.add_argument("--json", action="store_true", help="print the report as JSON")
    manifest = commands.add_parser("manifest", help="write MANIFEST.json for what lies in the folder")
    manifest.add_argument("folder", metavar="DIR")
    return parser


def _with_rerun(report: Report, folder: Path, claim: str, root: Path) -> Report:
    name = claim if claim.endswith(".json") else f"{claim}.json"
    known = next((file for file in report.files if file.name == name), None)
    if known is None:
        missing = FileReport(name, "", 0, (Finding("rerun", "unchecked", "no such claim in the folder"),))
        return Report((*report.files, missing))
    if known.state == "fails":
        found = [Finding("rerun", "unchecked", "not run again, since the file itself does not hold")]
    else:
        found = rerun(folder, name, root) or [Finding("rerun", "note", "run again, equal byte for byte")]
    changed = replace(known, findings=(*known.findings, *found))
    return Report(tuple(changed if file is known else file for file in report.files))


def rendered(report: Report) -> str:
    """Return the table for human eyes: state, file, checks, sentence; details below; a count at the end.

    Characters that a terminal would act on are shown as escapes. Columns hold ASCII only and the
    sentence comes last, so wide characters move nothing.

    Example:
        >>> print(rendered(Report((FileReport("a.json", "每晚五百元。", 2, (), 1),))))
        ok           a.json  2 checks  1 recomputed  每晚五百元。
        1 hold, 0 do not hold, 0 not checked
    """
    width = max((len(file.name) for file in report.files if file.sentence), default=0)
    lines = []
    for file in report.files:
        told = f"{file.passed} checks  {file.recomputed} recomputed"
        tail = f"{file.name:<{width}}  {told}  {file.sentence}" if file.sentence else file.name
        lines.append(f"{_LABELS[file.state]:<11}  {tail}")
        lines += [f"{'':<13}{_lead(finding)}{finding.step}: {finding.detail}" for finding in _worth_showing(file)]
    states = [file.state for file in report.files]
    counts = (
        f"{states.count('holds')} hold, {states.count('fails')} do not hold, {states.count('unchecked')} not checked"
    )
    differing = sum(1 for file in report.files for finding in file.findings if finding.step == "source")
    if differing:
        lines.append(f"note: {differing} files were written by another source than the present one")
    return "\n".join(_printable(line) for line in [*lines, counts])


def _worth_showing(file: FileReport) -> list[Finding]:
    return [finding for finding in file.findings if finding.step != "source"]


def _lead(finding: Finding) -> str:
    return "note: " if finding.outcome == "note" else ""


def _printable(line: str) -> str:
    return "".join(mark if mark.isprintable() else ascii(mark)[1:-1] for mark in line)


if __name__ == "__main__":
    for stream in (sys.stdout, sys.stderr):
        # A console that cannot show a Chinese sentence still gets the verdict.
        stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    raise SystemExit(main())
