"""Run the fault and attack tests and write what came out as evidence: the gates of the page on faults, one row a test.

Usage: KBRETRIEVAL_FAULTS=full python -m tools.faults [FOLDER]

FOLDER is `build/evidence` unless it is given; what is committed stands in `evidence`. Without KBRETRIEVAL_FAULTS=full
the tests are short, and the evidence says so.
"""

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from kbretrieval.evidence.subjects import default_folder
from kbretrieval.evidence.writer import Claim

FOLDERS = ("tests/faults/", "tests/conformance/")
# Where one process is enough a gate's tests stand among the others: these alone are taken from here.
ELSEWHERE = ("tests/unit", "tests/cli")
GATES = tuple(f"FLT-{number}" for number in range(1, 16))


@dataclass(eq=False)
class Outcomes:
    """A plugin that notes of each test its promises, its outcome, what it told of itself, and how long it took."""

    promises: dict[str, tuple[str, ...]] = field(default_factory=dict)
    passed: dict[str, bool] = field(default_factory=dict)
    told: dict[str, dict[str, object]] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)

    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        """Note which promises each test carries; leave out what is neither a fault test nor a test of a gate."""
        left_out = []
        for item in items:
            marks = (mark.args for mark in item.iter_markers("promise"))
            promises = tuple(sorted({name for args in marks for name in args}))
            if item.nodeid.startswith(FOLDERS) or set(promises) & set(GATES):
                self.promises[item.nodeid] = promises
            else:
                left_out.append(item)
        items[:] = [item for item in items if item.nodeid in self.promises]
        config.hook.pytest_deselected(items=left_out)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note how each phase of a test ended; a skipped one did not pass."""
        name = report.nodeid
        self.passed[name] = self.passed.get(name, True) and report.passed
        self.seconds[name] = round(self.seconds.get(name, 0.0) + report.duration, 2)
        if report.when == "call" and report.user_properties:
            self.told[name] = dict(report.user_properties)


def write_claim(found: Outcomes, mode: str, target: Path, wanted: Sequence[str] = GATES) -> Path:
    """Return the evidence written; refused where a test did not pass, or where one of the `wanted` gates has none."""
    with Claim(
        f"faults-{mode}",
        "断电、磁盘错误、并发、损坏、乱序、攻击与模糊测试的每一道关，全部通过。",
        argv=("python", "-m", "tools.faults", "{output}"),
        promises=tuple(sorted({name for names in found.promises.values() for name in names})),
        parameters={"size": mode},
        folder=target,
    ) as claim:
        for name, promises in sorted(found.promises.items()):
            claim.row(test=name, promises=list(promises), passed=found.passed.get(name, False))
        passed = claim.aggregate("passed", "count", where={"passed": True})
        claim.equal("tests that passed", passed, len(found.promises))
        gates = {name for names in found.promises.values() for name in names if name in GATES}
        claim.equal("gates with a test", sorted(gates), sorted(wanted))
        claim.observe(told=found.told, seconds=found.seconds)
        claim.limit(
            "Kills end a process, not a machine: unsynced writes that a power loss drops or reorders are not made."
        )
        claim.limit("A rerun by the verifier does not start this command; `make faults` does.")
    return claim.path


def main() -> int:
    """Run the tests, and write the claim where all passed."""
    target = Path(sys.argv[1]) if sys.argv[1:] else default_folder()
    mode = "full" if os.environ.get("KBRETRIEVAL_FAULTS") == "full" else "short"
    found = Outcomes()
    status = int(pytest.main(["-q", *FOLDERS, *ELSEWHERE], plugins=[found]))
    if status == 0:
        print(write_claim(found, mode, target).name, "written")
    return status


if __name__ == "__main__":
    sys.exit(main())
