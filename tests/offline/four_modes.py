"""Run tests and command in four interpreter modes and compare: `python -m tests.offline.four_modes`.

It exits with 0 only if all tests pass in every mode, as many in each, at least 34, and the command's output is the
same to the byte (OFF-62, OFF-63). Standard library only; site packages are switched off.
"""

import hashlib
import re
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
MODES = {"plain": (), "-O": ("-O",), "-W error": ("-W", "error"), "-O -W error": ("-O", "-W", "error")}
FEWEST = 34
TESTS = ("-m", "unittest", "discover", "-s", "tests/offline", "-t", ".")
COMMAND = (
    *("-m", "kbretrieval.offline", "--fixture", "fixtures/offline/semantic-search-fixture.json"),
    *("--top-k", "3", "--rank-window", "5", "--rrf-constant", "60"),
)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one mode gave: tests run, whether all passed, digest of the report, and what was said about failures."""

    mode: str
    tests: int
    passed: bool
    digest: str
    said: str


def start(flags: Iterable[str], arguments: Iterable[str]) -> subprocess.Popen[bytes]:
    """Start this interpreter in one mode, without site packages and without cache files."""
    program = [sys.executable, "-B", "-S", "-E", *flags, *arguments]
    return subprocess.Popen(program, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=ROOT)


def run_mode(mode: str) -> Outcome:
    """Run tests and command in one mode."""
    tests, command = start(MODES[mode], TESTS), start(MODES[mode], COMMAND)
    report, complaint = command.communicate()
    said = tests.communicate()[1].decode("utf-8", "replace")
    ran = re.search(r"^Ran (\d+) tests? in ", said, re.MULTILINE)
    last = said.strip().splitlines()[-1:]
    passed = (tests.returncode, command.returncode, complaint, last) == (0, 0, b"", ["OK"])
    return Outcome(mode, int(ran[1]) if ran else 0, passed, hashlib.sha256(report).hexdigest(), said)


def faults(outcomes: Iterable[Outcome]) -> list[str]:
    """What is wrong with the outcomes of all modes, one sentence each; a skipped test counts as not passed."""
    found = list(outcomes)
    wrong = [f"{each.mode}: not all tests passed" for each in found if not each.passed]
    wrong += [f"{each.mode}: {each.tests} tests, at least {FEWEST} expected" for each in found if each.tests < FEWEST]
    if len({each.tests for each in found}) != 1:
        wrong.append(f"test counts differ: {', '.join(str(each.tests) for each in found)}")
    if len({each.digest for each in found}) != 1:
        wrong.append(f"reports differ: {', '.join(each.digest[:12] for each in found)}")
    if [each.mode for each in found] != list(MODES):
        wrong.append(f"{len(found)} modes run, {len(MODES)} expected")
    return wrong


def main() -> int:
    """Print one line per mode, then what is wrong; return 0 or 1."""
    outcomes = [run_mode(mode) for mode in MODES]
    for each in outcomes:
        print(f"{each.mode:12} {each.tests} tests {'OK' if each.passed else 'FAILED'} report {each.digest[:12]}")
        if not each.passed:
            print(each.said)
    wrong = faults(outcomes)
    print("\n".join(wrong) if wrong else "four modes, one result")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
