"""Figures against raw samples: the ratios of benchmarks, and what README and the notebooks say in prose (EVD-9)."""

import json
import re
import statistics
from pathlib import Path

import pytest

from kbretrieval.evidence import check_text, unbound_numbers

ROOT = Path(__file__).resolve().parents[2]
EVIDENCE = ROOT / "evidence"
README = (ROOT / "README.md").read_text(encoding="utf-8")
# Versions and settings, which no run decides; every other decimal of README is compared below.
SETTINGS = {"3.11", "3.14", "0.15", "5.1", "7.4", "1.1"}
MEASURED = re.compile(
    r"盘上每块 (?P<disk>[\d.]+) kB，内存 (?P<memory>[\d.]+) GiB，打开到第一次命中约(?P<opening>半)分钟，"
    r"混合检索 (?P<least>\d+) 到 (?P<most>\d+) 毫秒（两核，`evidence/(?P<file>[\w.-]+)`）"
)
ENCODED = re.compile(r"BGE 每秒约 (?P<texts>\d+) 段（两核，`evidence/(?P<file>[\w.-]+)`）：十万块约一小时")


def observed(name: str) -> dict:
    found: dict = json.loads((EVIDENCE / name).read_bytes())["observed"]
    return found


def median(samples: dict, what: str) -> float:
    return statistics.median(float(value) for value in samples[what])


@pytest.mark.promise("EVD-1")
@pytest.mark.parametrize("size", [100_000, 1_000_000])
def test_ratios_of_the_dense_benchmark_are_those_of_its_samples(size: int) -> None:
    found = observed(f"bench-dense-{size}.json")
    samples, compared = found["samples_ms"], 0
    for name, ratio in found["ratios"].items():
        what, _, peer = name.partition(", against ")
        if not peer:
            continue
        expected = median(samples, f"{what} / {peer}") / median(samples, f"{what} / engine")
        assert float(ratio) == pytest.approx(expected, rel=1e-9), name
        compared += 1
    assert compared >= 2
    update = median(samples, "update one document until both channels find it / engine")
    rebuild = median(samples, "rebuild the snapshot / engine")
    assert float(found["ratios"]["rebuild of the snapshot against one update"]) == pytest.approx(rebuild / update)


@pytest.mark.promise("EVD-1")
def test_two_threads_against_one_is_the_ratio_of_the_samples() -> None:
    found = observed("bench-bge-300.json")
    one, two = (median(found["samples_ms"], f"encode one document / {way}") for way in ("one thread", "two threads"))
    assert float(found["ratios"]["two threads against one"]) == pytest.approx(one / two, rel=1e-9)


@pytest.mark.promise("EVD-9")
def test_what_readme_says_of_a_million_chunks_was_measured() -> None:
    said = MEASURED.search(README)
    assert said is not None
    found = observed(said["file"])
    numbers, samples = found["numbers"], found["samples_ms"]
    assert said["disk"] == f"{float(numbers['bytes a chunk on disk']) / 1000:.1f}"
    assert said["memory"] == f"{float(numbers['bytes a chunk in memory']) * 1_000_000 / 2**30:.2f}"
    assert 25_000 < median(samples, "open until the first hit / engine") < 35_000, said["opening"]
    shown = [median(samples, f"hybrid, {terms} terms, 100 % eligible / engine") for terms in (8, 32)]
    assert [int(said["least"]), int(said["most"])] == [round(value, -1) for value in shown]


@pytest.mark.promise("EVD-9")
def test_what_readme_says_of_encoding_was_measured() -> None:
    said = ENCODED.search(README)
    assert said is not None
    speed = float(observed(said["file"])["numbers"]["texts per second, all cores"])
    assert int(said["texts"]) == round(speed)
    assert 0.75 < 100_000 / speed / 3600 < 1.25, "an hour"


@pytest.mark.promise("EVD-9")
def test_no_other_decimal_of_readme_is_a_result() -> None:
    assert check_text(README, EVIDENCE) == []
    said = MEASURED.search(README)
    assert said is not None
    assert set(unbound_numbers(README)) == SETTINGS | {said["disk"], said["memory"]}


@pytest.mark.promise("EVD-9")
def test_no_decimal_in_the_prose_of_a_notebook_is_a_result() -> None:
    """Results stand in the output of a cell, which a rerun compares; prose names constants of a definition alone."""
    constants = {
        "00_guide": {"3.9", "3.11"},
        "05_lexical": {"0.5", "1.2", "0.75"},
        "17_offline": {"1.0", "0.0"},
    }
    for path in sorted((ROOT / "notebooks").glob("[0-9]*.ipynb")):
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        prose = "\n\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown")
        assert check_text(prose, EVIDENCE) == []
        assert set(unbound_numbers(prose)) <= constants.get(path.stem, set()), path.name


@pytest.mark.promise("EVD-4", "EVD-7")
def test_what_a_benchmark_calls_equal_is_counted_as_equal() -> None:
    """A count of comparisons that leaves their outcome aside would hold for rows that differ."""
    for path in sorted(EVIDENCE.glob("bench-*.json")):
        part = json.loads(path.read_bytes())["deterministic"]
        for name, rule in part["aggregates"].items():
            assert rule["where"] == {"comparison": name, "equal": True}, path.name
            assert rule["value"] == sum(row["comparison"] == name for row in part["rows"]) > 0
