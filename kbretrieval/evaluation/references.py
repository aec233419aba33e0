"""Figures of public test sets that were measured outside the project, for QUA-1 and QUA-3, and how close is close."""

from dataclasses import dataclass

from kbretrieval.evaluation.runs import MEASURES
from kbretrieval.evaluation.testset import FILES, JudgedSet

TOLERANCE = 0.005
AREA_TOLERANCE = 0.03


@dataclass(frozen=True, slots=True)
class Reference:
    """A known set: digests of its three files, and per setting Recall@3, MRR@3 and nDCG@10 with the real model.

    `areas` are the areas under the curve by signal; a set whose near-duplicates nothing here can tell apart has `flat`.
    """

    sha256: tuple[str, str, str]
    figures: dict[str, tuple[float, float, float]]
    areas: dict[str, float]
    flat: bool


REFERENCES = (
    Reference(
        (
            "f8853082c8fc2b39bde4b242392ddb77b9d96e36ebecec74474381a4f38588ee",
            "0e2db661bf2c8daff7ff0003b6b91097283409298b071ed84ff8c2f928eeceef",
            "d06131d2201a70d28a85ebd946c273c62a07936d189110df3023380bf9ccacc6",
        ),
        {
            "lexical": (0.4724, 0.5006, 0.5144),
            "vector": (0.5043, 0.5294, 0.5494),
            "rrf-60": (0.5189, 0.5481, 0.5631),
            "convex-0.15": (0.532, 0.562, 0.572),
        },
        {"lexical_per_term": 0.58},
        flat=True,
    ),
    Reference(
        (
            "50fc5c47ac13a77c1583278d5fb93b833eaca747a9a95589df90c72959a372bc",
            "577bcb35b36ed125307ec32dbda98162b63d4b32d6062ecdc075d763c9274ae2",
            "d1d1f99d3e0e3e1baf2fc5eb6628a47a164ae18348e2dfd703d080b3ced4d0c5",
        ),
        {
            "lexical": (0.9941, 0.9788, 0.9844),
            "vector": (0.9593, 0.9416, 0.9537),
            "rrf-60": (0.9829, 0.9697, 0.9774),
            "convex-0.15": (0.997, 0.990, 0.993),
        },
        {"lexical_per_term": 0.96, "logistic-four-signals/1": 0.98},
        flat=False,
    ),
)


def reference_of(judged: JudgedSet) -> Reference | None:
    """Return the known figures of a set whose three files are byte for byte the known ones, else None."""
    digests = tuple(judged.sha256[name] for name in FILES)
    return next((item for item in REFERENCES if item.sha256 == digests), None)


def figures_of(reference: Reference, setting: str) -> dict[str, float]:
    """Return a setting's known figures by measure."""
    return dict(zip(MEASURES, reference.figures[setting], strict=True))
