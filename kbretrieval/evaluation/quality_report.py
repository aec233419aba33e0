"""What an evaluation on a test set found, as a report and as a table for the eye (QUA-1, QUA-2, QUA-5)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kbretrieval.encoders.port import Encoder
from kbretrieval.evaluation.comparison import Gain
from kbretrieval.evaluation.references import TOLERANCE, figures_of, reference_of
from kbretrieval.evaluation.runs import CHOSEN, MEASURES, Run
from kbretrieval.evaluation.testset import JudgedSet

KIND = "public_test_set_measurement"
COMPOSITION = "one document a passage: title, line feed, text; format text"
LIMITATIONS = (
    "one chunk a passage where the window holds it; a reader's own documents are cut",
    "judgements are those of the set: a passage that nobody judged counts as irrelevant",
    "intervals speak of questions like these, not of another corpus",
    "similarity is not a calibrated relevance probability",
)


@dataclass(frozen=True, slots=True)
class Comparison:
    """One figure beside the known one."""

    setting: str
    measure: str
    measured: float
    reference: float

    @property
    def holds(self) -> bool:
        """Whether they differ by at most .005 (QUA-1)."""
        return abs(self.measured - self.reference) <= TOLERANCE


@dataclass(frozen=True, slots=True)
class QualityReport:
    """All runs over one test set with one encoder, the gains of the hybrid settings, and how they compare."""

    judged: JudgedSet
    encoder: Encoder
    window: tuple[int, int]
    runs: Mapping[str, Run]
    gains: tuple[Gain, ...]

    @property
    def chosen(self) -> tuple[Gain, ...]:
        """The gains of the one setting of QUA-2."""
        return tuple(gain for gain in self.gains if gain.setting == CHOSEN)

    @property
    def fusion_holds(self) -> bool:
        """Whether the chosen setting is at least as good as the better channel in all three measures."""
        return bool(self.chosen) and all(gain.holds for gain in self.chosen)

    def comparisons(self) -> tuple[Comparison, ...]:
        """Return what is known of this set beside what was measured; nothing for an unknown set.

        With another encoder than the real model, only the lexical figures can be compared.
        """
        reference = reference_of(self.judged)
        if reference is None:
            return ()
        names = [name for name in reference.figures if self.encoder.dimension or name == "lexical"]
        return tuple(
            Comparison(name, measure, self.runs[name].mean()[measure], known)
            for name in names
            for measure, known in figures_of(reference, name).items()
        )

    def title_rule(self) -> tuple[dict[str, Any], ...]:
        """Return each setting that was measured with the title rule on and off, by measure (QUA-5)."""
        return tuple(
            {"setting": name, "measure": measure, "off": off, "on": self.runs[f"{name}+title"].mean()[measure]}
            for name in self.runs
            if f"{name}+title" in self.runs
            for measure, off in self.runs[name].mean().items()
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the report, ready for JSON."""
        judged = self.judged
        return {
            "kind": KIND,
            "testset": judged.name,
            "sha256": judged.sha256,
            "passages": len(judged.passages),
            "questions": len(judged.questions),
            "questions_without_judgement": len(judged.questions) - len(judged.measurable),
            "composition": COMPOSITION,
            "window": list(self.window),
            "encoder": self.encoder.identifier,
            "settings": [
                {"setting": run.setting.name, "mode": run.setting.mode}
                | {"options": run.setting.options.to_dict()}
                | run.mean()
                for run in self.runs.values()
            ],
            "gains": [gain.to_dict() for gain in self.gains],
            "chosen_fusion": {"setting": CHOSEN, "holds": self.fusion_holds},
            "title_rule": list(self.title_rule()),
            "reference": [
                {"setting": c.setting, "measure": c.measure, "measured": c.measured, "known": c.reference}
                | {"within_tolerance": c.holds}
                for c in self.comparisons()
            ],
            "limitations": list(LIMITATIONS),
        }


def aligned(rows: Sequence[Sequence[str]]) -> str:
    """Return rows as aligned columns, the first to the left, the others to the right.

    Example:
        >>> print(aligned([["a", "1"], ["bb", "10"]]), end="")
        a    1
        bb  10
    """
    widths = [max(len(cell) for cell in column) for column in zip(*rows, strict=True)]
    lines = []
    for row in rows:
        cells = [row[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True))]
        lines.append("  ".join(cells).rstrip() + "\n")
    return "".join(lines)


def _gain_cells(gain: Gain) -> list[str]:
    span = f"{gain.interval.low:+.4f}…{gain.interval.high:+.4f}"
    return [gain.setting, gain.measure, f"{gain.mean_gain:+.4f}", span, str(gain.holds).lower()]


def quality_table(report: QualityReport) -> str:
    """Return the means of every setting and the chosen setting's gains as text."""
    rows = [["setting", *MEASURES]]
    rows += [[name, *(f"{value:.4f}" for value in run.mean().values())] for name, run in report.runs.items()]
    gained = [["gain over the better channel", "measure", "over halves", "interval", "holds"]]
    gained += [_gain_cells(gain) for gain in report.gains if not gain.setting.endswith("+title")]
    head = f"{report.judged.name}: {len(report.judged.passages)} passages, {len(report.judged.questions)} questions\n"
    return head + aligned(rows) + "\n" + aligned(gained)
