"""What cutting costs: whole passages, passages in windows, and windows that are encoded below their headings (QUA-4).

A passage ranks where its best chunk does. Each layout is an index of its own over the same passages and questions, so
figures are paired question by question.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kbretrieval.encoders.port import Encoder
from kbretrieval.evaluation.bootstrap import Interval, intervals
from kbretrieval.evaluation.collection import CUT, HEADED, WHOLE, Layout, collected
from kbretrieval.evaluation.comparison import NO_LOSS, SEED
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
from kbretrieval.evaluation.references import reference_of
from kbretrieval.evaluation.runs import CHOSEN, MEASURES, Run, run_all, settings
from kbretrieval.evaluation.testset import JudgedSet
from kbretrieval.evaluation.vector_cache import VectorCache
from kbretrieval.evidence import Claim

KIND = "cut_passages_measurement"
SHOWN = ("lexical", "vector", "rrf-60", CHOSEN)
SENTENCE = "段落切成窗口之后，按段落计的召回率不比整段差出千分之五；把标题路径一起编码带来什么，并列给出。"
# Of a set that nobody measured outside the project nothing is asserted.
UNKNOWN_SET = "段落切成窗口之后，按段落计的召回率与整段差多少；把标题路径一起编码带来什么，并列给出。"


@dataclass(frozen=True, slots=True)
class Difference:
    """One measure of one setting with a layout, beside the same with whole passages; the interval is paired."""

    layout: str
    setting: str
    measure: str
    whole: float
    measured: float
    interval: Interval

    @property
    def holds(self) -> bool:
        """Whether the layout is worse by no more than .005."""
        return self.interval.mean >= NO_LOSS

    def to_dict(self) -> dict[str, Any]:
        """Return what a report shows of it."""
        shown = {"layout": self.layout, "setting": self.setting, "measure": self.measure}
        figures = {"whole": self.whole, "measured": self.measured, "difference": self.interval.mean}
        return {**shown, **figures, "interval": [self.interval.low, self.interval.high], "holds": self.holds}


@dataclass(frozen=True, slots=True)
class CutReport:
    """The runs of every layout by name, whole passages first."""

    judged: JudgedSet
    encoder: Encoder
    layouts: tuple[Layout, ...]
    chunks: Mapping[str, int]
    runs: Mapping[str, Mapping[str, Run]]

    def differences(self, seed: int = SEED) -> tuple[Difference, ...]:
        """Return every layout but the first against it, in each setting and measure."""
        whole, made = self.runs[self.layouts[0].name], []
        for layout in self.layouts[1:]:
            for setting, run in self.runs[layout.name].items():
                found = intervals(run.figures - whole[setting].figures, seed)
                before, now = whole[setting].mean(), run.mean()
                for measure, interval in zip(MEASURES, found, strict=True):
                    made.append(Difference(layout.name, setting, measure, before[measure], now[measure], interval))
        return tuple(made)

    def to_dict(self) -> dict[str, Any]:
        """Return the report, ready for JSON."""
        layouts = [
            {"layout": item.name, "format": item.format, "window": list(item.window), "embed": item.embed}
            | {"chunks": self.chunks[item.name]}
            for item in self.layouts
        ]
        return {
            "kind": KIND,
            "testset": self.judged.name,
            "sha256": self.judged.sha256,
            "passages": len(self.judged.passages),
            "questions": len(self.judged.measurable),
            "encoder": self.encoder.identifier,
            "layouts": layouts,
            "differences": [item.to_dict() for item in self.differences()],
        }


def layouts_for(encoder: Encoder) -> tuple[Layout, ...]:
    """Return the layouts that an encoder can have; term counts know nothing of headings."""
    return (WHOLE, CUT, HEADED) if encoder.dimension else (WHOLE, CUT)


def measured_layouts(judged: JudgedSet, encoder: VectorCache) -> CutReport:
    """Index the passages in each layout, ask every question, and return the runs."""
    wanted = [setting for setting in settings(()) if setting.name in SHOWN]
    layouts, runs, counts = layouts_for(encoder), {}, {}
    for layout in layouts:
        with collected(judged, encoder, layout) as collection:
            runs[layout.name] = run_all(judged, collection, wanted)
        counts[layout.name] = sum(len(layout.encoded(passage)) for passage in judged.passages)
    return CutReport(judged, encoder, layouts, counts, runs)


def cut_claim(report: CutReport, written: Written) -> Path:
    """Write the evidence; on a known set a cut that costs more than .005 refuses the claim."""
    judged, model = report.judged, bool(report.encoder.dimension)
    known = reference_of(judged) is not None
    differences = report.differences()
    with Claim(
        f"quality-{set_name(judged)}-cut-{written.encoder}",
        SENTENCE if known else UNKNOWN_SET,
        argv=written.argv,
        chapter=15,
        promises=("QUA-4",),
        parameters={"encoder": report.encoder.identifier, "cut": list(CUT.window), "chosen": CHOSEN},
        seed=SEED,
        packages=MODEL_PACKAGES if model else PACKAGES,
        folder=written.folder,
    ) as claim:
        file_rows(claim, judged)
        claim.rows({"what": "layout", "layout": name, "chunks": count} for name, count in report.chunks.items())
        claim.check("cutting makes more chunks", report.chunks[CUT.name] > report.chunks[WHOLE.name])
        for item in differences:
            promised = (item.layout, item.setting, item.measure) == (CUT.name, CHOSEN, MEASURES[0])
            if promised or not model:  # the others move with the machine, and may lie on either side of the bound
                named = {"layout": item.layout, "setting": item.setting, "measure": item.measure}
                claim.row(what="difference", **named, holds=item.holds)
            if promised and known:
                claim.check("cut passages no worse than whole ones by more than .005", item.holds)
        if known:
            where = {"what": "difference", "layout": CUT.name, "setting": CHOSEN, "measure": MEASURES[0]}
            claim.aggregate("cut_holds", "only", "holds", where=where)
        claim.observe(differences=[item.to_dict() for item in differences])
        claim.limit(OUTSIDE)
        claim.limit(MODEL_MOVES if model else LAST_BITS)
    return claim.path


def cut_table(report: CutReport) -> str:
    """Return the means of every layout, and the difference to whole passages with its interval, as text."""
    rows = [["layout", "setting", *MEASURES]]
    for layout in report.layouts:
        for setting, run in report.runs[layout.name].items():
            rows.append([layout.name, setting, *(f"{value:.4f}" for value in run.mean().values())])
    shown = [["layout against whole", "setting", "measure", "difference", "interval", "holds"]]
    for item in report.differences():
        span = f"{item.interval.low:+.4f}…{item.interval.high:+.4f}"
        cells = [item.layout, item.setting, item.measure, f"{item.interval.mean:+.4f}", span, str(item.holds).lower()]
        shown.append(cells)
    counted = ", ".join(f"{name} {count} chunks" for name, count in report.chunks.items())
    return f"{report.judged.name}: {counted}\n{aligned(rows)}\n{aligned(shown)}"
