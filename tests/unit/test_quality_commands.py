"""`evaluate --testset` and `calibrate`: reports, evidence, TREC files; and the public sets' lexical figures."""

import json
from pathlib import Path
from typing import Any

import ir_measures
import pytest
from ir_measures import RR, R, nDCG

from kbretrieval import TermEncoder
from kbretrieval.cli import main
from kbretrieval.cli import quality as quality_commands
from kbretrieval.encoders.bge import BGEEncoder
from kbretrieval.evaluation import quality_claims, quality_report, references
from kbretrieval.evaluation.collection import READER, collected
from kbretrieval.evaluation.encoders import NamedChoice
from kbretrieval.evaluation.references import TOLERANCE, figures_of, reference_of
from kbretrieval.evaluation.runs import CHOSEN, MEASURES, run_all, settings
from kbretrieval.evaluation.testset import FILES, JudgedSet, load_judged_set
from kbretrieval.evaluation.vector_cache import VectorCache
from kbretrieval.evidence.verify import verify_folder
from kbretrieval.model.files import check_folder, model_folder
from tests.unit.small_set import CountingEncoder, write_set


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """A synthetic set of 30 passages and 24 questions."""
    return write_set(tmp_path / "small", passages=30)


def _report(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


@pytest.mark.promise("QUA-1", "QUA-5", "EVD-8")
def test_evaluate_writes_report_claim_and_trec_files(small: Path, tmp_path: Path) -> None:
    made, evidence = tmp_path / "report.json", tmp_path / "evidence"
    assert main(["evaluate", "--testset", str(small), "--output", str(made), "--evidence", str(evidence)]) == 0
    report = _report(made)
    assert [row["setting"] for row in report["settings"]] == [setting.name for setting in settings()]
    assert (report["passages"], report["questions"], report["reference"]) == (30, 24, [])
    assert {row["setting"] for row in report["title_rule"]} == {"lexical", "rrf-60", CHOSEN}
    assert verify_folder(evidence).exit_code == 0
    claim = _report(evidence / "quality-small-terms.json")
    rows = claim["deterministic"]["rows"]
    assert {row["name"]: row["sha256"] for row in rows if row["what"] == "file"} == load_judged_set(small).sha256
    assert sum(row["what"] == "question" for row in rows) == 24
    lexical = report["settings"][0]
    judged = ir_measures.calc_aggregate(
        [R @ 3, RR @ 3, nDCG @ 10],
        ir_measures.read_trec_qrels(str(evidence / "quality-small-terms.qrels")),
        ir_measures.read_trec_run(str(evidence / "quality-small-terms.run")),
    )
    for name, measure in zip(MEASURES, (R @ 3, RR @ 3, nDCG @ 10), strict=True):
        stored = float(claim["deterministic"]["aggregates"][f"lexical_{name}"]["value"])
        assert lexical[name] == pytest.approx(stored) == judged[measure]


@pytest.mark.promise("QUA-1")
def test_a_second_run_encodes_nothing(small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    encoder = CountingEncoder()
    monkeypatch.setattr(quality_commands, "encoder_named", lambda name: NamedChoice(name, encoder, {}))
    arguments = ["--testset", str(small), "--vectors", str(tmp_path / "v.npz"), "--output", str(tmp_path / "r.json")]
    assert main(["evaluate", *arguments]) == 0
    first, report = encoder.calls, _report(tmp_path / "r.json")
    assert first == 30 + 24
    assert main(["evaluate", *arguments]) == main(["calibrate", *arguments]) == 0
    assert encoder.calls == first
    assert main(["evaluate", *arguments]) == 0 and _report(tmp_path / "r.json") == report


@pytest.mark.promise("QUA-3")
def test_calibrate_writes_report_and_claim(small: Path, tmp_path: Path) -> None:
    made, evidence = tmp_path / "report.json", tmp_path / "evidence"
    arguments = ["calibrate", "--testset", str(small), "--output", str(made), "--evidence", str(evidence)]
    assert main([*arguments, "--seed", "5"]) == 0
    report = _report(made)
    assert report["questions_with_answer"] == report["questions_without_answer"] == 12
    assert len(report["signals"]) == 5 and report["tells_apart"] is True
    assert "removed from the corpus, not masked" in report["protocol"]
    assert verify_folder(evidence).exit_code == 0
    assert _report(evidence / "quality-small-calibration-terms.json")["invocation"]["argv"][-4:-2] == ["--seed", "5"]


@pytest.mark.promise("QUA-2", "QUA-3")
def test_tables_are_for_the_eye(small: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["evaluate", "--testset", str(small), "--style", "table"]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("small: 30 passages, 24 questions\nsetting") and "gain over the better channel" in shown
    assert main(["calibrate", "--testset", str(small), "--style", "table"]) == 0
    assert "small: 12 with an answer, 12 without\nrefused where" in capsys.readouterr().out


@pytest.mark.promise("QUA-1", "ERR-1")
def test_wrong_requests_are_refused(small: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["evaluate", "--testset", str(small), "--fixtures", str(small)]) == 2
    assert "one of --testset and --fixtures" in capsys.readouterr().err
    assert main(["evaluate", "--testset", str(tmp_path / "absent")]) == 2
    assert main(["calibrate", "--testset", str(tmp_path / "absent")]) == 2
    assert main(["calibrate"]) == 2


def _as_known(monkeypatch: pytest.MonkeyPatch, folder: Path, figures: tuple[float, float, float]) -> None:
    judged = load_judged_set(folder)
    digests = tuple(judged.sha256[name] for name in FILES)
    known = references.Reference(digests, {"lexical": figures}, {}, flat=False)  # type: ignore[arg-type]
    for module in (quality_report, quality_claims):
        monkeypatch.setattr(module, "reference_of", lambda other: known if other.sha256 == judged.sha256 else None)


@pytest.mark.promise("QUA-1", "EVD-7")
def test_a_figure_outside_its_tolerance_refuses_the_claim(
    small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    made, evidence = tmp_path / "r.json", tmp_path / "evidence"
    arguments = ["evaluate", "--testset", str(small), "--output", str(made), "--evidence", str(evidence)]
    assert main(arguments) == 0
    measured = tuple(_report(made)["settings"][0][name] for name in MEASURES)
    _as_known(monkeypatch, small, (measured[0], measured[1], measured[2] - 0.004))
    assert main(arguments) == 0 and (evidence / "quality-small-terms.json").exists()
    assert all(row["within_tolerance"] for row in _report(made)["reference"]) and _report(made)["reference"]
    _as_known(monkeypatch, small, (measured[0], measured[1], measured[2] - 0.006))
    capsys.readouterr()
    assert main(arguments) != 0 and "lexical ndcg_at_10" in capsys.readouterr().err
    assert not (evidence / "quality-small-terms.json").exists()


def _part(judged: JudgedSet, step: int) -> JudgedSet:
    return JudgedSet(judged.name, judged.folder, judged.passages, judged.questions[::step], judged.sha256)


@pytest.mark.slow
@pytest.mark.promise("QUA-1", "QUA-5")
@pytest.mark.parametrize("name", ["stard_small", "cmrc2018_dev"])
def test_the_lexical_figures_of_the_public_sets(shared: Path, name: str) -> None:
    judged, wanted = load_judged_set(shared / "testsets" / name), [s for s in settings() if s.mode == "lexical"]
    reference = reference_of(judged)
    assert reference is not None
    with collected(judged, VectorCache(TermEncoder(), None)) as collection:
        runs = run_all(judged, collection, wanted)
    assert runs["lexical"].mean() == pytest.approx(figures_of(reference, "lexical"), abs=TOLERANCE)
    assert runs["lexical+title"].mean()["recall_at_3"] < runs["lexical"].mean()["recall_at_3"] - 0.02


@pytest.mark.slow
@pytest.mark.model
@pytest.mark.promise("QUA-1", "QUA-2")
@pytest.mark.parametrize(("name", "step"), [("stard_small", 8), ("cmrc2018_dev", 16)])
def test_a_part_of_the_public_sets_with_the_real_model(shared: Path, name: str, step: int) -> None:
    """Every eighth question: figures of a part scatter, so they are compared within three standard errors."""
    if any(file.state != "ok" for file in check_folder(model_folder())):
        pytest.skip("the model is not there; run: kbretrieval model fetch")
    judged = load_judged_set(shared / "testsets" / name)
    part, reference = _part(judged, step), reference_of(judged)
    assert reference is not None
    encoder = VectorCache(BGEEncoder(), None)
    with collected(part, encoder) as collection:
        runs = run_all(part, collection, settings())
        hits = collection.index.search(part.questions[0].text, READER, 10, "hybrid", runs[CHOSEN].setting.options)
    assert tuple(hit.doc_id for hit in hits) == runs[CHOSEN].rankings[part.questions[0].id]
    for setting in reference.figures:
        figures, known = runs[setting].figures, reference.figures[setting]
        errors = figures.std(axis=0) / len(figures) ** 0.5
        assert (abs(figures.mean(axis=0) - known) <= 3 * errors + TOLERANCE).all(), setting
