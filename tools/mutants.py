"""Write the evidence on the security mutants (FLT-4): each one is put before every scene of the security suite.

Usage: python -m tools.mutants [FOLDER]

FOLDER is `build/evidence` unless it is given; what is committed stands in `evidence`.
"""

import sys
import tempfile
from pathlib import Path

import pytest

from kbretrieval.evidence.subjects import default_folder
from kbretrieval.evidence.writer import Claim
from tests.faults.breaking import Mutant, broken, failures, scene_name
from tests.faults.mutants import MUTANTS, SCENES
from tests.unit.sync_place import without_waiting_for_the_disk

SUBJECTS = (
    "breaking",
    "mutants",
    *(f"{part}_mutants" for part in ("access", "voucher", "order", "scope")),
    *(f"{part}_scenes" for part in ("security", "voucher", "order", "scope")),
)
LEAST_MUTANTS = 24


def row(build: Mutant, found: dict[str, str]) -> dict[str, object]:
    """Return what the table says of one mutant: the scene that it names, how that failed, and how many did in all."""
    scene = scene_name(build.scene)
    return {
        "name": build.name,
        "promise": build.promise,
        "changed": [change.where for change in build.changes],
        "scene": scene,
        "error": found.get(scene),
        "killed": found.get(scene) == build.error,
        "scenes_failed": len(found),
    }


def table(folder: Path) -> list[dict[str, object]]:
    """Return a row for each mutant."""
    rows = []
    for number, build in enumerate(MUTANTS):
        with broken(build):
            rows.append(row(build, failures(SCENES, folder / str(number))))
    return rows


def write_claim(folder: Path, target: Path) -> Path:
    """Run every scene on the unbroken build and on each mutant, below `folder`; return the evidence written."""
    with Claim(
        "faults-mutants",
        "每次只拿掉或削弱一处安全检查，每个变异体都被它所指的场景发现；未改动的构建通过全部场景。",
        argv=("python", "-m", "tools.mutants", "{output}"),
        promises=("FLT-4", *sorted({build.promise for build in MUTANTS})),
        parameters={"scenes": len(SCENES)},
        folder=target,
    ) as claim:
        for name in SUBJECTS:
            claim.subject(f"tests/faults/{name}.py")
        claim.equal("scenes that fail on the unbroken build", failures(SCENES, folder / "whole"), {})
        claim.rows(table(folder))
        claim.equal("mutants killed", claim.aggregate("killed", "count", where={"killed": True}), len(MUTANTS))
        claim.check("at least 24 mutants", len(MUTANTS) >= LEAST_MUTANTS)
        claim.equal("scenes that fail after the last mutant", failures(SCENES, folder / "again"), {})
        claim.limit(
            "The mutants were chosen by hand: they show that these checks are tested, not that no other is missing."
        )
        claim.limit("Where `error` is IndexCorrupt the package noticed by itself that a channel ranked too much.")
        claim.limit("A rerun by the verifier does not start this command; `make faults` does.")
    return claim.path


def main() -> int:
    """Write the claim into the folder that the command line names."""
    target = Path(sys.argv[1]) if sys.argv[1:] else default_folder()
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        without_waiting_for_the_disk(patch)
        print(write_claim(Path(folder), target).name, "written")
    return 0


if __name__ == "__main__":
    sys.exit(main())
