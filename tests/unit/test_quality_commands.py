"""`evaluate --testset` and `calibrate`: reports, evidence, TREC files; and the public sets' lexical figures."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import ir_measures
import numpy as np
import pytest
from ir_measures import RR, R, nDCG

from kbretrieval import TermEncoder
from kbretrieval.cli import main
from kbretrieval.cli import quality as quality_commands
from kbretrieval.encoders.bge import BGEEncoder
from kbretrieval.encoders.port import Encoding
from kbretrieval.evaluation import quality_claims, quality_report, references
from kbretrieval.evaluation.collection import READER, collected
from kbretrieval.evaluation.encoders import NamedChoice
from kbretrieval.evaluation.quality_claims import set_name
from kbretrieval.evaluation.references import TOLERANCE, figures_of, reference_of
from kbretrieval.evaluation.runs import CHOSEN, DEPTH, MEASURES, run_all, run_of, settings
from kbretrieval.evaluation.testset import FILES, JudgedSet, Passage, load_judged_set
from kbretrieval.evaluation.vector_cache import VectorCache
from kbretrieval.evidence.verify import verify_folder
from kbretrieval.projection import project
from tests.unit.small_set import CountingEncoder, write_set

SETS = ["stard_small", "cmrc2018_dev"]


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


@pytest.mark.slow
@pytest.mark.promise("QUA-1", "QUA-5")
@pytest.mark.parametrize("name", SETS)
def test_the_lexical_figures_of_the_public_sets(shared: Path, name: str) -> None:
    """All questions are asked through the index, every eighth in the evaluation's own way as well."""
    judged = load_judged_set(shared / "testsets" / name)
    reference, wanted = reference_of(judged), [setting for setting in settings() if setting.mode == "lexical"]
    assert reference is not None
    with collected(judged, VectorCache(TermEncoder(), None)) as collection:
        asked = {q.id: collection.index.search(q.text, READER, DEPTH, "lexical") for q in judged.questions}
        part = run_all(replace(judged, questions=judged.questions[::8]), collection, wanted)
    rankings = {question: tuple(hit.doc_id for hit in hits) for question, hits in asked.items()}
    measured = run_of(wanted[0], rankings, judged.measurable).mean()
    assert measured == pytest.approx(figures_of(reference, "lexical"), abs=TOLERANCE)
    assert part["lexical"].rankings == {question: rankings[question] for question in part["lexical"].rankings}
    assert part["lexical+title"].mean()["recall_at_3"] < part["lexical"].mean()["recall_at_3"] - 0.02


def committed_run(root: Path, judged: JudgedSet) -> dict[str, tuple[str, ...]]:
    """The first ten passages of every question, as they were found when the committed claim was made."""
    found: dict[str, list[str]] = {}
    for line in (root / "evidence" / f"quality-{set_name(judged)}-bge.run").read_text(encoding="utf-8").splitlines():
        question, _, passage, *_ = line.split()
        found.setdefault(question, []).append(passage)
    return {question: tuple(passages) for question, passages in found.items()}


@pytest.mark.promise("QUA-1", "QUA-2", "EVD-8")
@pytest.mark.parametrize("name", SETS)
def test_the_committed_claim_holds_the_figures_that_were_measured_outside(shared: Path, root: Path, name: str) -> None:
    """All questions, with the real model; the run beside the claim gives the chosen setting's figures again."""
    judged = load_judged_set(shared / "testsets" / name)
    reference, stem = reference_of(judged), root / "evidence" / f"quality-{set_name(judged)}-bge"
    assert reference is not None
    claim = _report(stem.with_suffix(".json"))
    files = {row["name"]: row["sha256"] for row in claim["deterministic"]["rows"] if row["what"] == "file"}
    assert files == judged.sha256
    figures = {key: {m: float(v) for m, v in row.items()} for key, row in claim["observed"]["figures"].items()}
    for setting in reference.figures:
        assert figures[setting] == pytest.approx(figures_of(reference, setting), abs=TOLERANCE), setting
    chosen = [gain for gain in claim["observed"]["gains"] if gain["setting"] == CHOSEN]
    assert [(gain["measure"], gain["holds"]) for gain in chosen] == [(measure, True) for measure in MEASURES]
    assert committed_run(root, judged).keys() == {question.id for question in judged.questions}
    qrels, run = (ir_measures.read_trec_qrels(f"{stem}.qrels"), ir_measures.read_trec_run(f"{stem}.run"))
    found = ir_measures.calc_aggregate([R @ 3, RR @ 3, nDCG @ 10], qrels, run)
    for measure, judge in zip(MEASURES, (R @ 3, RR @ 3, nDCG @ 10), strict=True):
        assert found[judge] == pytest.approx(figures[CHOSEN][measure], abs=1e-9), measure


def places_moved(known: Sequence[str], now: Sequence[str]) -> int:
    """How many places the passages of a list moved altogether; one that is gone stands behind the last."""
    place = {passage: number for number, passage in enumerate(now)}
    return sum(abs(number - place.get(passage, len(known))) for number, passage in enumerate(known))


class RealWhereItCounts:
    """The real model for every query and for the passages that are named; all others lie below its floor."""

    def __init__(self, model: BGEEncoder, passages: Iterable[Passage]) -> None:
        self._model = model
        self._named = {project(passage.source, "text").body for passage in passages}
        self.identifier, self.dimension, self.floor = model.identifier, model.dimension, model.floor
        self.quantizer = model.quantizer

    def encode(self, texts: Sequence[str], *, query: bool) -> Encoding:
        """Return the model's vector of each text that counts, for the others the one opposite to all."""
        real = [text for text in texts if query or text in self._named]
        vectors = dict(zip(real, self._model.encode(real, query=query).vectors, strict=True)) if real else {}
        return Encoding([vectors.get(text, -np.ones(self.dimension)) for text in texts])


@pytest.mark.slow
@pytest.mark.model
@pytest.mark.promise("QUA-1", "QUA-2")
@pytest.mark.parametrize(("name", "step"), [("stard_small", 128), ("cmrc2018_dev", 512)])
def test_the_real_model_ranks_as_in_the_committed_run(
    shared: Path, root: Path, bge: BGEEncoder, name: str, step: int
) -> None:
    """For most of some questions the same ten passages in the same order, but for neighbours that changed places.

    Every passage is indexed, so lexical scores are those of the whole set; but only those that the run names for these
    questions are encoded. Where the run has a passage that the vector channel's window left out, the order may differ;
    and a processor with other integer instructions moves near ties: between two such, 17 of 20 questions moved by three
    places at most, all ten passages taken together. Without the instruction before queries it is 2, with the
    instruction before passages as well 4, with the next larger lexical share 8.
    """
    judged = load_judged_set(shared / "testsets" / name)
    part = replace(judged, questions=judged.questions[::step])
    known = committed_run(root, judged)
    wanted = {passage for question in part.questions for passage in known[question.id]}
    model = RealWhereItCounts(bge, (passage for passage in part.passages if passage.id in wanted))
    with collected(part, VectorCache(model, None)) as collection:
        chosen = run_all(part, collection, [setting for setting in settings() if setting.name == CHOSEN])[CHOSEN]
        for question in part.questions:
            hits = collection.index.search(question.text, READER, 10, "hybrid", chosen.setting.options)
            assert tuple(hit.doc_id for hit in hits) == chosen.rankings[question.id]
    moved = {question.id: places_moved(known[question.id], chosen.rankings[question.id]) for question in part.questions}
    assert sum(places <= 3 for places in moved.values()) > len(moved) / 2, moved
