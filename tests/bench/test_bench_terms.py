"""The engine beside the plain way: equal answers, and evidence only of what held."""

from pathlib import Path

import pytest

from kbretrieval import fusion
from kbretrieval.bench import baseline
from kbretrieval.bench.figures import Equality, Figures, Gate
from kbretrieval.bench.report import claim, document, table
from kbretrieval.bench.timing import Series, in_turns
from kbretrieval.cli.entry import main
from kbretrieval.errors import ClaimFailed
from kbretrieval.evidence import verify_folder

PARAMETERS = {"seed": 7, "queries": 2, "rounds": 1}
SMALL = ["bench", "--size", "200", "--part", "terms", "--queries", "1", "--rounds", "1"]


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Figures:
    """The figures of 400 chunks."""
    return baseline.measure(tmp_path_factory.mktemp("small"), 400, 7, 2, 1)


def test_the_plain_way_gives_the_engines_ranking(small: Figures) -> None:
    assert [item.held for item in small.equalities] == [True, True]
    assert {row["share"] for item in small.equalities for row in item.rows} == {100, 10}
    assert all(row["found"] > 0 for item in small.equalities for row in item.rows)


def test_every_sample_is_kept(small: Figures) -> None:
    made = document([small], PARAMETERS)["parts"][0]["samples_ms"]
    assert len(made["index one document / engine"]) == 20
    assert len(made["hybrid, 8 terms / plain way (isolated)"]) == 2
    assert "hybrid, 32 terms" in table(small)


def test_another_ranking_is_seen_and_no_evidence_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fusion, "rrf_value", lambda ranks, k: sum(1.0 / (k + 1 + rank) for rank in ranks))
    broken = baseline.measure(tmp_path, 100, 7, 1, 1)
    assert [item.held for item in broken.equalities] == [False, False]
    with pytest.raises(ClaimFailed, match="false given, true expected"):
        claim(broken, PARAMETERS, tmp_path / "evidence")
    assert not (tmp_path / "evidence" / "bench-terms-100.json").exists()


def _figures(gate: float) -> Figures:
    series = (Series("search", "a", (1.0, 2.0)), Series("search", "b", (30.0, 20.0)))
    same = Equality("same", ({"query": 0, "equal": True},), True)
    return Figures("terms", 20, series, (same,), (Gate("search", gate, 10.0, "PRF-1"),), {"n": 1.5}, {"x": "absent"})


@pytest.mark.promise("EVD-7")
def test_a_gate_that_fails_is_no_evidence(tmp_path: Path) -> None:
    path = claim(_figures(10.0), PARAMETERS, tmp_path)
    assert path.name == "bench-terms-20.json"
    assert verify_folder(tmp_path).exit_code == 0
    with pytest.raises(ClaimFailed):
        claim(_figures(9.9), PARAMETERS, tmp_path)
    assert not path.exists()


def test_the_ways_take_turns() -> None:
    seen: list[str] = []
    made = in_turns("x", {"a": lambda _: seen.append("a"), "b": lambda _: seen.append("b")}, [1, 2], 2)
    assert "".join(seen) == "aaabbbbbbaaa"  # an untimed call, then every input
    assert [(len(series.samples), len(series.processor)) for series in made] == [(4, 4), (4, 4)]


def test_an_equality_over_nothing_is_refused() -> None:
    with pytest.raises(ClaimFailed, match="0 were made"):
        Equality("same", (), True)


def test_one_command_prints_the_table_and_writes_evidence_that_verifies(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(baseline, "LEAST_AGAINST_PLAIN", 0.0)  # two hundred chunks say nothing about a ratio
    evidence = ["--evidence", str(tmp_path / "evidence"), "--output", str(tmp_path / "all" / "samples.json")]
    assert main([*SMALL, *evidence]) == 0
    assert "holds  hybrid with isolated" in capsys.readouterr().out
    assert (tmp_path / "all" / "samples.json").is_file()
    assert verify_folder(tmp_path / "evidence").exit_code == 0


def test_a_gate_that_fails_is_an_exit_status(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(baseline, "LEAST_AGAINST_PLAIN", 1e9)
    assert main(SMALL) == ClaimFailed.exit_status != 0
    assert "FAILS  hybrid, 8 terms" in capsys.readouterr().out


def test_a_chart_is_drawn(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="the chart needs matplotlib: pip install kbretrieval[book]")
    from kbretrieval.bench.chart import draw

    draw([_figures(1.0)], tmp_path / "chart.png")
    assert (tmp_path / "chart.png").read_bytes().startswith(b"\x89PNG")
