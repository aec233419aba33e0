"""What a calibration found, as a report, a table and evidence (QUA-3)."""

from pathlib import Path
from typing import Any

from kbretrieval.encoders.port import Encoder
from kbretrieval.evaluation.calibration import RULE, SIGNALS, Calibration
from kbretrieval.evaluation.quality_claims import (
    LAST_BITS,
    MODEL_MOVES,
    MODEL_PACKAGES,
    OUTSIDE,
    PACKAGES,
    Written,
    file_rows,
    set_name,
)
from kbretrieval.evaluation.quality_report import aligned
from kbretrieval.evaluation.references import AREA_TOLERANCE, reference_of
from kbretrieval.evaluation.testset import JudgedSet
from kbretrieval.evidence import Claim

KIND = "abstention_calibration"
TELLS_APART = 0.75
PROTOCOL = (
    "for each question of a seeded random half its relevant passages are removed from the corpus, not masked; floors "
    "and the rule are found on one half of each kind and measured on the other"
)
NEAR_DUPLICATES = (
    "the signals do not tell this set's questions with and without an answer apart: when the answer is taken out, a "
    "near-duplicate passage stays and scores like it"
)
LIMITATIONS = (
    "questions of one set: a floor found here need not fit another corpus",
    "a question counts as answerable when a judged passage is there; unjudged ones may answer it too",
    "the rule's score ranks questions, it is no probability",
)


def calibration_report(judged: JudgedSet, encoder: Encoder, seed: int, found: Calibration) -> dict[str, Any]:
    """Return the calibration, ready for JSON; it says when nothing tells the two kinds apart (area below .75)."""
    best = max(item.area for item in found.separations)
    return {
        "kind": KIND,
        "testset": judged.name,
        "sha256": judged.sha256,
        "encoder": encoder.identifier,
        "protocol": PROTOCOL,
        "seed": seed,
        "questions_with_answer": int(found.answered.sum()),
        "questions_without_answer": int((~found.answered).sum()),
        "signals": [
            {"name": item.name, "area_under_curve": item.area}
            | {
                "floors": [
                    {"wanted_kept": p.wanted, "floor": p.floor, "kept": p.kept, "refused": p.refused}
                    for p in item.curve
                ]
            }
            for item in found.separations
        ],
        "rule": {"name": RULE, "weights_of_standardised_signals": found.weights},
        "tells_apart": best >= TELLS_APART,
        "limitations": [*LIMITATIONS, *([] if best >= TELLS_APART else [NEAR_DUPLICATES])],
    }


def calibration_table(report: dict[str, Any]) -> str:
    """Return the areas, and the share of unanswerable questions refused where a share of answerable ones is kept."""
    wanted = [f"{point['wanted_kept']:.0%} kept" for point in report["signals"][0]["floors"]]
    rows = [["refused where", *wanted, "area"]]
    for item in report["signals"]:
        refused = [f"{point['refused']:.3f}" for point in item["floors"]]
        rows.append([item["name"], *refused, f"{item['area_under_curve']:.4f}"])
    kinds = f"{report['questions_with_answer']} with an answer, {report['questions_without_answer']} without"
    told = "" if report["tells_apart"] else NEAR_DUPLICATES + "\n"
    return f"{report['testset']}: {kinds}\n{aligned(rows)}{told}"


def calibration_claim(judged: JudgedSet, encoder: Encoder, seed: int, found: Calibration, written: Written) -> Path:
    """Write the evidence of a calibration; returns its path. On a known set an area outside its tolerance refuses."""
    model, report = bool(encoder.dimension), calibration_report(judged, encoder, seed, found)
    with Claim(
        f"quality-{set_name(judged)}-calibration-{written.encoder}",
        "何时应当拒答：有答案与答案已被移出语料的问题，各信号与一条规则能把两者分开多少。",
        argv=written.argv,
        chapter=15,
        promises=("QUA-3",),
        parameters={"encoder": encoder.identifier, "rule": RULE},
        seed=seed,
        packages=MODEL_PACKAGES if model else PACKAGES,
        folder=written.folder,
    ) as claim:
        file_rows(claim, judged)
        claim.row(what="questions", answered=int(found.answered.sum()), fitted=int(found.fitted.sum()))
        claim.rows(_signal_rows(found, 1 if model else len(SIGNALS)))
        claim.aggregate("lexical_area", "only", "area", where={"signal": SIGNALS[0], "what": "area"})
        _checks(claim, judged, model, found)
        claim.observe(signals=report["signals"], weights=found.weights)
        for text in (OUTSIDE, MODEL_MOVES if model else LAST_BITS, *report["limitations"]):
            claim.limit(text)
    return claim.path


def _signal_rows(found: Calibration, first: int) -> list[dict[str, Any]]:
    """Return the rows of the signals that do not pass through a model: shares alone, floors are raw scores."""
    rows: list[dict[str, Any]] = []
    for item in found.separations[:first]:
        rows.append({"what": "area", "signal": item.name, "area": item.area})
        for point in item.curve:
            shares = {"wanted": point.wanted, "kept": point.kept, "refused": point.refused}
            rows.append({"what": "floor", "signal": item.name, **shares})
    return rows


def _checks(claim: Claim, judged: JudgedSet, model: bool, found: Calibration) -> None:
    claim.equal("half of the questions have lost their answer", int((~found.answered).sum()), len(found.answered) // 2)
    reference = reference_of(judged)
    if reference is None:
        return
    for name, known in reference.areas.items():
        if model or name == SIGNALS[0]:
            claim.within(f"area of {name}", found.named(name).area, known, AREA_TOLERANCE)
    best = max(item.area for item in found.separations)
    claim.equal("the two kinds can be told apart", best >= TELLS_APART, not reference.flat)
