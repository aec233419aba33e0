"""How times grow, read off a run of several sizes (PRF-6, PRF-7); nothing is measured here.

PRF-6 looks at one number of eligible rows among ever more hidden ones. The vector channel scores eligible rows alone
and must stay flat. The lexical channel skips the postings of hidden rows, which takes time: a timing channel, not a
score channel. PRF-7 looks at ever more eligible rows.
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise

from kbretrieval.bench.figures import Figures, Gate
from kbretrieval.bench.filling import SHARES
from kbretrieval.bench.timing import Series

PART = "growth"
FLAT = 1.5
FLAT_ROWS = 10_000
LINEAR_SLACK = 2.0
CHANNELS = ("lexical, 8 terms", "vector")


def _engine(figures: Figures, channel: str, share: int) -> Iterator[Series]:
    return (s for s in figures.series if s.way == "engine" and s.what == f"{channel}, {share} % eligible")


def _seen(sizes: Sequence[Figures], channel: str) -> dict[tuple[int, int], Series]:
    """Return (eligible, all) → series of the engine."""
    return {
        (figures.size * share // 100, figures.size): series
        for figures in sizes
        for share in SHARES
        for series in _engine(figures, channel, share)
    }


def growth(all_figures: Sequence[Figures]) -> Figures | None:
    """Return the engine's times by eligible and hidden rows, with the gates of PRF-6 and PRF-7; None for one size.

    Linear or better means: ten times the eligible rows take at most twenty times as long.
    """
    sizes = [figures for figures in all_figures if figures.part == "dense"]
    if len(sizes) < 2:
        return None
    series: list[Series] = []
    gates: list[Gate] = []
    for channel in CHANNELS:
        seen = _seen(sizes, channel)
        for (eligible, size), made in sorted(seen.items()):
            series.append(
                Series(f"{channel}, {eligible:,} eligible", f"engine, among {size:,}", made.samples, made.processor)
            )
        gates += _gates(channel, seen)
    return Figures(PART, max(figures.size for figures in sizes), tuple(series), (), tuple(gates), {}, {})


def _gates(channel: str, seen: dict[tuple[int, int], Series]) -> Iterator[Gate]:
    whole = sorted(size for eligible, size in seen if eligible == size)
    for small, large in pairwise(whole):
        per_row = (seen[small, small].p50 / small) / (seen[large, large].p50 / large)
        yield Gate(f"{channel}, a row among {large:,} against one among {small:,}", per_row, 1 / LINEAR_SLACK, "PRF-7")
    if channel != "vector":
        return
    # PRF-6 names ten thousand rows. Codes of many more scattered ones are copied for each query, not kept.
    for eligible in sorted({eligible for eligible, size in seen if eligible == size} & {FLAT_ROWS}):
        medians = [series.p50 for (rows, _), series in seen.items() if rows == eligible]
        if len(medians) > 1:
            yield Gate(f"{channel}, {eligible:,} eligible, flat", min(medians) / max(medians), 1 / FLAT, "PRF-6")
