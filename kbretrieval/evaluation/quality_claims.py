"""What an evaluation on a test set asserts, as evidence (QUA-1, QUA-2, QUA-5, EVD-8).

Rows hold what does not depend on the machine: lexical figures question by question, and the outcomes of comparisons.
Figures that pass through the real model are observed, and compared within a tolerance.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from kbretrieval.evaluation.comparison import SEED
from kbretrieval.evaluation.quality_report import QualityReport
from kbretrieval.evaluation.references import TOLERANCE, reference_of
from kbretrieval.evaluation.runs import CHOSEN, MEASURES, Run
from kbretrieval.evaluation.testset import FILES, JudgedSet
from kbretrieval.evidence import Claim
from kbretrieval.evidence.subjects import project_root

PACKAGES = ("numpy", "regex")
MODEL_PACKAGES = (*PACKAGES, "onnxruntime", "tokenizers")
OUTSIDE = "The test set is not part of the project: a rerun needs the same three files in the folder that argv names."
LAST_BITS = "A ranking of equal or nearly equal scores could differ where a machine's logarithm does."
MODEL_MOVES = (
    "Figures that pass through the quantised model are observed: they move a little between machines and are compared "
    "within .005."
)


def folder_argument(folder: Path) -> str:
    """Return a folder relative to the project with forward slashes, so that no path of this machine is published."""
    try:
        return Path(os.path.relpath(folder.resolve(), project_root())).as_posix()
    except ValueError:  # another drive
        return folder.name


def set_name(judged: JudgedSet) -> str:
    """Return a set's name as part of a claim's id: lower-case letters and digits joined by hyphens.

    Example:
        >>> set_name(JudgedSet("STARD_small", Path(), (), (), {}))
        'stard-small'
    """
    words = "".join(c if c.isascii() and c.isalnum() else " " for c in judged.name.lower()).split()
    return "-".join(words) or "own-set"


def file_rows(claim: Claim, judged: JudgedSet) -> None:
    """Record the digests of the three files as rows: a subject is what is shipped, and a test set is not."""
    claim.rows({"what": "file", "name": name, "sha256": judged.sha256[name]} for name in FILES)


@dataclass(frozen=True, slots=True)
class Written:
    """Where a claim goes and how it is made again."""

    encoder: str
    folder: Path
    argv: tuple[str, ...]


def quality_argv(command: str, judged: JudgedSet, encoder: str, more: Sequence[str] = ()) -> tuple[str, ...]:
    """Return the command that makes a claim about a test set again."""
    given = ("--testset", folder_argument(judged.folder), "--encoder", encoder, *more)
    return ("python", "-m", "kbretrieval", command, *given, "--evidence", "{output}")


def quality_claim(report: QualityReport, written: Written, seconds: dict[str, float]) -> Path:
    """Write the evidence of an evaluation; returns its path.

    On a known set a figure outside its tolerance, or a chosen fusion that loses, refuses the claim.
    """
    judged, model = report.judged, bool(report.encoder.dimension)
    sentence = "公开测试集上的检索质量：各通道与融合的召回率、倒数排名与 nDCG，逐项与项目外的测量对照。"
    with Claim(
        f"quality-{set_name(judged)}-{written.encoder}",
        sentence,
        argv=written.argv,
        chapter=15,
        promises=("QUA-1", "QUA-2", "QUA-5", "EVD-8"),
        parameters={"encoder": report.encoder.identifier, "window": report.window, "chosen": CHOSEN},
        seed=SEED,
        packages=MODEL_PACKAGES if model else PACKAGES,
        folder=written.folder,
    ) as claim:
        file_rows(claim, judged)
        if model:
            _outcome_rows(claim, report)
        else:
            _question_rows(claim, report)
        _checks(claim, report)
        shown = CHOSEN if model else "lexical"
        judgements = {q.id: q.judged for q in judged.questions if q.judged}
        claim.trec(report.runs[shown].rankings, judgements, {name: _places(shown, name, model) for name in MEASURES})
        claim.observe(
            figures={name: run.mean() for name, run in report.runs.items()},
            gains=[gain.to_dict() for gain in report.gains],
            seconds=seconds,
        )
        claim.limit(OUTSIDE)
        claim.limit(MODEL_MOVES if model else LAST_BITS)
    return claim.path


def _places(setting: str, measure: str, model: bool) -> list[str]:
    """Return where the claim holds a figure of the exported ranking."""
    observed = f"#/observed/figures/{setting}/{measure}"
    return [observed] if model else [observed, f"#/deterministic/aggregates/{setting}_{measure}/value"]


def _question_rows(claim: Claim, report: QualityReport) -> None:
    lexical, title = report.runs["lexical"], report.runs["lexical+title"]
    for number, question in enumerate(report.judged.measurable):
        own = dict(zip(MEASURES, lexical.figures[number].tolist(), strict=True))
        claim.row(what="question", id=question.id, **own, title_recall_at_3=float(title.figures[number, 0]))
    for measure in (*MEASURES, "title_recall_at_3"):
        claim.aggregate(
            f"lexical_{measure}" if measure in MEASURES else measure, "mean", measure, where={"what": "question"}
        )


def _outcome_rows(claim: Claim, report: QualityReport) -> None:
    claim.row(what="questions", count=len(report.judged.measurable))
    for item in report.comparisons():
        known = {"setting": item.setting, "measure": item.measure, "known": item.reference}
        claim.row(what="reference", **known, tolerance=TOLERANCE, holds=item.holds)
    for gain in report.chosen:
        claim.row(what="gain", setting=gain.setting, measure=gain.measure, over=gain.over, holds=gain.holds)
    for rule in report.title_rule():
        shown = {"setting": rule["setting"], "measure": rule["measure"]}
        claim.row(what="title_rule", **shown, loses=rule["on"] < rule["off"])
    claim.aggregate("questions", "only", "count", where={"what": "questions"})
    for what, field, there in (
        ("reference", "holds", report.comparisons()),
        ("gain", "holds", report.chosen),
        ("title_rule", "loses", report.title_rule()),
    ):
        if there:
            claim.aggregate(f"every_{what}_{field}", "all", field, where={"what": what})


def _checks(claim: Claim, report: QualityReport) -> None:
    asked = [question.id for question in report.judged.questions]
    complete = all(list(run.rankings) == asked for run in report.runs.values())
    claim.check("every setting ranked every question", complete)
    claim.check("no passage stands twice in a ranking", all(map(_each_once, report.runs.values())))
    for item in report.comparisons():
        claim.within(f"{item.setting} {item.measure}", item.measured, item.reference, TOLERANCE)
    if reference_of(report.judged) is None or not report.encoder.dimension:
        return
    for gain in report.chosen:
        claim.check(f"{gain.setting} {gain.measure} at least as good as the better channel", gain.holds)
    for rule in report.title_rule():
        name = f"{rule['setting']} {rule['measure']} lower with the title rule"
        claim.check(name, rule["on"] < rule["off"])


def _each_once(run: Run) -> bool:
    return all(len(set(ranking)) == len(ranking) for ranking in run.rankings.values())
