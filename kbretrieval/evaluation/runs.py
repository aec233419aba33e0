"""Settings and their runs over a test set: channels once a query, then every setting as a pure function of them."""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice

import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

from kbretrieval.evaluation.collection import Collection, Scored
from kbretrieval.evaluation.metrics import ndcg_at, recall_at, reciprocal_rank_at
from kbretrieval.evaluation.testset import JudgedQuestion, JudgedSet
from kbretrieval.fusion import Fused, convex, rrf
from kbretrieval.options import Mode, SearchOptions
from kbretrieval.rerank import rerank

DEPTH = 10
MEASURES = ("recall_at_3", "mrr_at_3", "ndcg_at_10")
CHOSEN_SHARE = 0.15
RRF_CONSTANTS = (60, 10, 1)
SHARES = (CHOSEN_SHARE, 0.2, 0.3, 0.4, 0.5)

Figures = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Setting:
    """A mode with options, under the name that reports and evidence use."""

    name: str
    mode: Mode
    options: SearchOptions


def _reranked(setting: Setting) -> Setting:
    return Setting(f"{setting.name}+title", setting.mode, replace(setting.options, rerank="title"))


def settings(shares: Sequence[float] = SHARES) -> tuple[Setting, ...]:
    """Return the settings that an evaluation measures, the title rule on and off for the last steps of QUA-5.

    Example:
        >>> [setting.name for setting in settings((0.15,))]
        ['lexical', 'vector', 'rrf-60', 'rrf-10', 'rrf-1', 'convex-0.15', 'lexical+title', 'rrf-60+title', 'convex-0.15+title']
    """  # noqa: E501
    single: list[Setting] = [
        Setting("lexical", "lexical", SearchOptions()),
        Setting("vector", "vector", SearchOptions()),
    ]
    by_rank = [Setting(f"rrf-{k}", "hybrid", SearchOptions(rrf_k=k)) for k in RRF_CONSTANTS]
    shares = tuple(dict.fromkeys((CHOSEN_SHARE, *shares)))
    by_score = [
        Setting(f"convex-{share:g}", "hybrid", SearchOptions(fusion="convex", lexical_share=share)) for share in shares
    ]
    return (*single, *by_rank, *by_score, *map(_reranked, (single[0], by_rank[0], by_score[0])))


CHOSEN = f"convex-{CHOSEN_SHARE:g}"
"""The one fusion setting of QUA-2, chosen once: convex, theoretical scale, lexical share .15 (RRF-4)."""


CHANNELS: dict[Mode, tuple[str, ...]] = {
    "lexical": ("lexical",),
    "vector": ("vector",),
    "hybrid": ("lexical", "vector"),
}


def fused(scored: Scored, setting: Setting) -> list[Fused]:
    """Return a query's candidates, fused as the setting says, before any reranking."""
    lists = [(name, scored.lists[name]) for name in CHANNELS[setting.mode] if name in scored.lists]
    options = setting.options
    if options.fusion == "convex":
        return convex(lists, options.lexical_share, scored.left_out)
    return rrf(lists, options.rrf_k)


def orders(scored: Scored, wanted: Sequence[Setting]) -> dict[str, list[Fused]]:
    """Return, by setting, the candidates in the order that `Index.search` gives them under the same mode and options.

    Settings that differ in the reranker alone share one fusion.
    """
    made: dict[tuple[Mode, SearchOptions], list[Fused]] = {}
    found = {}
    for setting in wanted:
        before = (setting.mode, replace(setting.options, rerank="none"))
        if before not in made:
            made[before] = fused(scored, setting)
        found[setting.name] = rerank(made[before], scored.overlaps, setting.options.rerank)
    return found


@dataclass(frozen=True, slots=True)
class Run:
    """One setting over all questions: the first ten passages of each, and three measures of each measurable one.

    `figures` has a row for each question with a relevant passage, in their order, and a column for each of `MEASURES`.
    """

    setting: Setting
    rankings: Mapping[str, tuple[str, ...]]
    figures: Figures

    def mean(self) -> dict[str, float]:
        """Return the mean of each measure over the measurable questions."""
        return {name: float(value) for name, value in zip(MEASURES, self.figures.mean(axis=0), strict=True)}


def measured(ranking: Sequence[str], judged: Mapping[str, int]) -> tuple[float, float, float]:
    """Return Recall@3, MRR@3 and nDCG@10 of one ranking, in the order of `MEASURES`.

    Example:
        >>> measured(["b", "a"], {"a": 1})[:2]
        (1.0, 0.5)
    """
    return recall_at(ranking, judged, 3), reciprocal_rank_at(ranking, judged, 3), ndcg_at(ranking, judged, DEPTH)


def run_of(setting: Setting, rankings: Mapping[str, tuple[str, ...]], questions: Sequence[JudgedQuestion]) -> Run:
    """Return a run with its measures."""
    rows = [measured(rankings[question.id], question.judged) for question in questions]
    return Run(setting, rankings, np.array(rows, np.float64).reshape(len(rows), len(MEASURES)))


def run_all(judged: JudgedSet, collection: Collection, wanted: Sequence[Setting]) -> dict[str, Run]:
    """Return the run of every setting by name; each question's channels are scored once."""
    rankings: dict[str, dict[str, tuple[str, ...]]] = {setting.name: {} for setting in wanted}
    for question in tqdm(judged.questions, desc="searching", disable=None, file=sys.stderr):
        scored = collection.scored(question.text)
        for name, order in orders(scored, wanted).items():
            documents = scored.passages(item.key for item in order)
            rankings[name][question.id] = tuple(islice(documents, DEPTH))
    return {setting.name: run_of(setting, rankings[setting.name], judged.measurable) for setting in wanted}
