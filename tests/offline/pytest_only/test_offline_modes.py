"""Four interpreter modes, as continuous integration runs them, and the table of bad fixtures at the real command line.

These stand apart from the `unittest` suite: the first runs that suite, the second takes processes of its own.
"""

import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from tests.offline.cases import command, python
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


# What `python -m` does, once for each fixture that is named, in one process; a traceback would end it.
ONE_AFTER_THE_OTHER = """
import contextlib, io, json, runpy, sys
found = []
for path in sys.argv[1:]:
    sys.argv = ["kbretrieval.offline", "--fixture", path, "--top-k", "3"]
    output, shown, status = io.StringIO(), io.StringIO(), None
    with contextlib.redirect_stdout(output), contextlib.redirect_stderr(shown):
        try:
            runpy.run_module("kbretrieval.offline", run_name="__main__")
        except SystemExit as end:
            status = end.code
    found.append([status, output.getvalue(), shown.getvalue()])
print(json.dumps(found))
"""


@pytest.mark.slow
@pytest.mark.promise("OFF-61")
def test_every_bad_fixture_is_one_line_of_the_command(tmp_path: Path) -> None:
    """All in one process that runs the command again and again; every tenth in a process of its own as well."""
    paths = [tmp_path / f"{row}.json" for row in range(len(TABLE))]
    for path, case in zip(paths, TABLE, strict=True):
        path.write_bytes(case.data)
    all_rows = python("-c", ONE_AFTER_THE_OTHER, *map(str, paths), flags=("-S", "-E", "-W", "error"))
    assert (all_rows.returncode, all_rows.stderr) == (0, b"")
    told = [(status, output, shown) for status, output, shown in json.loads(all_rows.stdout)]
    for path, (status, output, shown) in list(zip(paths, told, strict=True))[::10]:
        alone = command(fixture=str(path), flags=("-W", "error"))
        assert (alone.returncode, alone.stdout.decode("ascii"), _lf(alone.stderr)) == (status, output, shown)
    for case, (status, output, shown) in zip(TABLE, told, strict=True):
        assert (status, output, shown.count("\n")) == (1, "", 1), case.name
        assert shown.isascii() and shown.startswith(f"kbretrieval.offline: {case.code}: "), case.name


def _lf(raw: bytes) -> str:
    return raw.decode("ascii").replace("\r\n", "\n")
