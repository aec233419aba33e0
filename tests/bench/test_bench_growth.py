"""Growth is read off several sizes; what is flat and what is linear is judged by ratio."""

import json
from pathlib import Path

import pytest

from kbretrieval.bench.figures import Figures
from kbretrieval.bench.growth import growth
from kbretrieval.bench.report import claim
from kbretrieval.bench.timing import Series
from kbretrieval.evidence import verify_folder


def _dense(size: int, vector: dict[int, float]) -> Figures:
    series = [Series(f"vector, {share} % eligible", "engine", (took,)) for share, took in vector.items()]
    series += [Series(f"lexical, 8 terms, {share} % eligible", "engine", (size / 1000,)) for share in vector]
    series.append(Series("vector, 100 % eligible", "a peer", (0.001,)))
    return Figures("dense", size, tuple(series), (), (), {}, {})


def test_one_size_has_no_growth() -> None:
    assert growth([_dense(10_000, {100: 1.0})]) is None


@pytest.mark.promise("PRF-6", "PRF-7")
@pytest.mark.parametrize(("hidden", "flat"), [(1.4, True), (1.6, False)])
def test_the_same_eligible_rows_among_more_hidden_ones_take_as_long(hidden: float, flat: bool) -> None:
    made = growth([_dense(10_000, {100: 1.0, 10: 0.1}), _dense(100_000, {100: 10.0, 10: hidden})])
    assert made is not None
    assert [gate.held for gate in made.gates if gate.promise == "PRF-6"] == [flat]
    assert ("vector, 10,000 eligible", "engine, among 100,000") in {(s.what, s.way) for s in made.series}


@pytest.mark.promise("PRF-7")
@pytest.mark.parametrize(("ten_fold", "linear"), [(19.0, True), (21.0, False)])
def test_ten_times_the_eligible_rows_take_about_ten_times_as_long(ten_fold: float, linear: bool) -> None:
    made = growth([_dense(10_000, {100: 1.0}), _dense(100_000, {100: ten_fold})])
    assert made is not None
    vector = [gate for gate in made.gates if gate.promise == "PRF-7" and gate.name.startswith("vector")]
    assert [gate.held for gate in vector] == [linear]


@pytest.mark.promise("PRF-6", "PRF-7")
def test_how_times_grow_is_kept_as_evidence(tmp_path: Path) -> None:
    made = growth([_dense(10_000, {100: 1.0, 10: 0.1}), _dense(100_000, {100: 10.0, 10: 1.2})])
    assert made is not None
    sizes = ["--size", "10000", "--size", "100000", "--part", "dense"]
    path = claim(made, {"seed": 7}, tmp_path, sizes)
    kept = json.loads(path.read_text(encoding="utf-8"))
    assert path.name == "bench-growth-100000.json"
    assert kept["claim"]["promises"] == ["PRF-6", "PRF-7"]
    assert kept["invocation"]["argv"][4:10] == sizes
    assert verify_folder(tmp_path).exit_code == 0
