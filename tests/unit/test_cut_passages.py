"""`evaluate --testset … --cut`: whole passages beside cut ones, and cut ones encoded below their headings (QUA-4)."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kbretrieval import TermEncoder
from kbretrieval.cli import main
from kbretrieval.cli import quality as quality_commands
from kbretrieval.evaluation import cut_passages
from kbretrieval.evaluation.collection import CUT, HEADED, WHOLE
from kbretrieval.evaluation.cut_passages import CutReport, cut_claim, layouts_for, measured_layouts
from kbretrieval.evaluation.encoders import NamedChoice
from kbretrieval.evaluation.quality_claims import Written
from kbretrieval.evaluation.runs import CHOSEN, MEASURES, Run, settings
from kbretrieval.evaluation.testset import Passage, load_judged_set
from kbretrieval.evaluation.vector_cache import VectorCache
from kbretrieval.evidence.errors import EvidenceError
from kbretrieval.evidence.verify import verify_folder
from tests.unit.small_set import CountingEncoder, write_set

pytestmark = pytest.mark.promise("QUA-4")

LONG = Passage("p", "差旅制度", "住宿每晚限额。" * 60)


@pytest.fixture
def long_set(tmp_path: Path) -> Path:
    """A set of 12 passages of about 300 code points, each cut in two; a question is about the second half."""
    folder = write_set(tmp_path / "long", passages=12, questions=12)
    rows = [json.loads(line) for line in (folder / "corpus.jsonl").read_text(encoding="utf-8").splitlines()]
    lines = (json.dumps(row | {"text": "，" * 260 + row["text"]}, ensure_ascii=False) + "\n" for row in rows)
    (folder / "corpus.jsonl").write_text("".join(lines), encoding="utf-8", newline="\n")
    return folder


def test_layouts_of_a_passage() -> None:
    assert (WHOLE.source(LONG), CUT.source(LONG)) == (LONG.source, f"# 差旅制度\n\n{LONG.text}")
    assert WHOLE.encoded(LONG) == [LONG.source]
    cut, headed = CUT.encoded(LONG), HEADED.encoded(LONG)
    assert len(cut) == 3 and all(len(text) <= 220 for text in cut)
    assert headed == [f"差旅制度\n{text}" for text in cut]
    assert Passage("p", "", "正文。").markdown == "正文。" and Passage("p", "题", "").markdown == "# 题"
    assert layouts_for(TermEncoder()) == (WHOLE, CUT)


def test_the_commands_report_and_claim(
    long_set: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    encoder = CountingEncoder()
    monkeypatch.setattr(quality_commands, "encoder_named", lambda name: NamedChoice(name, encoder, {}))
    made, evidence = tmp_path / "r.json", tmp_path / "evidence"
    arguments = ["evaluate", "--testset", str(long_set), "--cut", "--vectors", str(tmp_path / "v.npz")]
    assert main([*arguments, "--output", str(made), "--evidence", str(evidence)]) == 0
    assert encoder.calls == 12 + 12 + 24 + 24, "passages, questions, chunks, chunks below their headings"
    report = json.loads(made.read_text(encoding="utf-8"))
    assert [(item["layout"], item["chunks"]) for item in report["layouts"]] == [
        ("whole", 12),
        ("cut", 24),
        ("headed", 24),
    ]
    assert len(report["differences"]) == 2 * 4 * len(MEASURES)
    for item in report["differences"]:
        assert item["difference"] == pytest.approx(item["measured"] - item["whole"], abs=1e-12)
        assert item["interval"][0] <= item["difference"] <= item["interval"][1]
        assert item["holds"] is (item["difference"] >= -0.005)
    assert verify_folder(evidence).exit_code == 0
    assert (evidence / "quality-long-cut-terms.json").exists()
    assert main([*arguments, "--style", "table"]) == 0
    assert capsys.readouterr().out.startswith("long: whole 12 chunks, cut 24 chunks, headed 24 chunks\nlayout")


def test_a_passage_ranks_where_its_best_chunk_does(long_set: Path) -> None:
    report = measured_layouts(load_judged_set(long_set), VectorCache(TermEncoder(), None))
    assert list(report.runs) == ["whole", "cut"]
    ranking = report.runs["cut"]["lexical"].rankings["q3"]
    assert ranking[0] == "p3" and len(set(ranking)) == len(ranking)
    assert set(report.runs["cut"]["lexical"].rankings) == {f"q{n}" for n in range(12)}


def test_cut_without_a_set_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["evaluate", "--cut"]) == 2
    assert "--testset is required with --cut" in capsys.readouterr().err


def _worse(report: CutReport, by: float) -> CutReport:
    """The same report, its cut passages with the chosen fusion worse in every question."""
    run = report.runs["cut"][CHOSEN]
    figures = report.runs["whole"][CHOSEN].figures - by
    cut: dict[str, Run] = {**report.runs["cut"], CHOSEN: replace(run, figures=np.asarray(figures))}
    return replace(report, runs={**report.runs, "cut": cut})


@pytest.mark.parametrize(("by", "written"), [(0.004, True), (0.006, False)])
def test_a_cut_that_costs_too_much_refuses_the_claim(
    long_set: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, by: float, written: bool
) -> None:
    monkeypatch.setattr(cut_passages, "reference_of", lambda judged: object())
    judged = load_judged_set(long_set)
    report: Any = _worse(measured_layouts(judged, VectorCache(CountingEncoder(), None)), by)
    where = Written("bge", tmp_path, ("python", "-m", "kbretrieval", "evaluate"))
    if written:
        assert cut_claim(report, where).exists()
        return
    with pytest.raises(EvidenceError, match="no worse"):
        cut_claim(report, where)
    assert list(tmp_path.glob("quality*")) == []


def test_the_settings_shown_are_settings() -> None:
    assert set(cut_passages.SHOWN) <= {setting.name for setting in settings(())}
