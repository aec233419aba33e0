"""Four interpreter modes, as continuous integration runs them, and the table of bad fixtures at the real command line.

These stand apart from the `unittest` suite: the first runs that suite, the second takes a process for each row.
"""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from tests.offline.cases import command
from tests.offline.four_modes import FEWEST, MODES, Outcome, faults, run_mode
from tests.offline.malformed import TABLE

GOOD = [Outcome(mode, FEWEST, True, "0" * 64, "OK") for mode in MODES]


@pytest.mark.slow
@pytest.mark.promise("OFF-62", "OFF-63")
def test_the_suite_means_the_same_in_four_modes() -> None:
    with ThreadPoolExecutor(2) as pool:
        outcomes = list(pool.map(run_mode, MODES))
    assert not faults(outcomes), "\n".join(each.said for each in outcomes)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"passed": False}, "not all tests passed"),
        ({"tests": FEWEST - 1}, "at least 34"),
        ({"tests": FEWEST + 1}, "test counts differ"),
        ({"digest": "1" * 64}, "reports differ"),
        ({"mode": "other"}, "modes run"),
    ],
)
def test_a_mode_that_differs_is_told(fields: dict, words: str) -> None:
    assert not faults(GOOD)
    assert words in " ".join(faults([*GOOD[:3], replace(GOOD[3], **fields)]))


@pytest.mark.slow
@pytest.mark.promise("OFF-61")
def test_every_bad_fixture_is_one_line_of_the_command(tmp_path: Path) -> None:
    def refuse(row: int) -> tuple[int, bytes, list[str]]:
        path = tmp_path / f"{row}.json"
        path.write_bytes(TABLE[row].data)
        run = command(fixture=str(path), flags=("-W", "error"))
        return run.returncode, run.stdout, run.stderr.decode("ascii").splitlines()

    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(refuse, range(len(TABLE))))
    for case, (status, output, lines) in zip(TABLE, found, strict=True):
        assert (status, output, len(lines)) == (1, b"", 1), case.name
        assert lines[0].startswith(f"kbretrieval.offline: {case.code}: "), case.name
