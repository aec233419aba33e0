"""Figures for eyes and for evidence: a table, a document with every raw sample, a claim."""

import statistics
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from kbretrieval.bench.figures import Figures
from kbretrieval.bench.timing import Series
from kbretrieval.errors import ClaimFailed
from kbretrieval.evidence import Claim, EvidenceError
from kbretrieval.evidence.environment import environment

PACKAGES = ("numpy", "regex", "markdown-it-py", "simsimd", "onnxruntime", "tokenizers", "bm25s", "faiss-cpu", "usearch")
SENTENCES = {
    "terms": "词项编码器下，引擎与朴素写法在同一批数据上给出相同的前列结果，并按同一次运行中的比值更快。",
    "bge": "真实模型下，入库的时间几乎都是编码的时间，存下的向量与单独编码逐位相同。",
    "growth": "稠密向量下，检索时间随可读的行数增长而不快于线性，向量通道不受看不见的行影响。",
    "dense": "稠密向量下，引擎的向量通道与逐行全扫描逐位相同，并与同一进程中的其他做法按比值比较。",
}
_HEAD = ("what", "way", "p50 ms", "p90 ms", "min ms", "cpu p50", "samples")


def _aligned(rows: Sequence[Sequence[str]], names: int) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(c.ljust(w) if n < names else c.rjust(w) for n, (c, w) in enumerate(zip(row, widths, strict=True)))
        for row in rows
    ]


def table(figures: Figures) -> str:
    """Return the figures as lines of text: times, single numbers, equalities, gates, absent peers.

    Example:
        >>> table(Figures("terms", 20, (), (), (), {"chunks": 20.0}, {})).splitlines()[-1]
        '20  chunks'
    """
    lines = [f"== {figures.part}, {figures.size:,} chunks"]
    if figures.series:
        body = [
            (s.what, s.way, f"{s.p50:.2f}", f"{s.p90:.2f}", f"{min(s.samples):.2f}", _spent(s), str(len(s.samples)))
            for s in figures.series
        ]
        lines += _aligned([_HEAD, *body], 2)
    lines += [f"{value:,.6g}  {name}" for name, value in figures.numbers.items()]
    lines += [f"{_held(item.held)}  {item.name} ({len(item.rows)} compared)" for item in figures.equalities]
    lines += [
        f"{_held(gate.held)}  {gate.name}: {gate.ratio:.2f} x, at least {gate.least:g} x {gate.promise}".rstrip()
        for gate in figures.gates
    ]
    lines += [f"left out  {name}: {reason}" for name, reason in figures.absent.items()]
    return "\n".join(lines)


def _spent(series: Series) -> str:
    return f"{statistics.median(series.processor):.2f}" if series.processor else "-"


def _held(outcome: bool) -> str:
    return "holds" if outcome else "FAILS"


def observations(figures: Figures) -> dict[str, Any]:
    """Return what differs between runs: every sample in ms, in the order taken, with single numbers and ratios."""
    return {
        "samples_ms": {f"{s.what} / {s.way}": list(s.samples) for s in figures.series},
        "processor_ms": {f"{s.what} / {s.way}": list(s.processor) for s in figures.series if s.processor},
        "numbers": dict(figures.numbers),
        "ratios": {gate.name: gate.ratio for gate in figures.gates},
        "absent_peers": dict(figures.absent),
    }


def document(all_figures: Iterable[Figures], parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return one JSON document of a whole run: parameters, machine, versions, and per part all samples and outcomes."""
    return {
        "parameters": dict(parameters),
        "environment": environment(PACKAGES),
        "parts": [
            {
                "part": figures.part,
                "chunks": figures.size,
                **observations(figures),
                "equalities": [
                    {"name": item.name, "held": item.held, "rows": list(map(dict, item.rows))}
                    for item in figures.equalities
                ],
                "gates": [
                    {"name": gate.name, "least": gate.least, "held": gate.held, "promise": gate.promise}
                    for gate in figures.gates
                ],
            }
            for figures in all_figures
        ],
    }


def claim(figures: Figures, parameters: Mapping[str, Any], folder: Path, argv: Sequence[str] | None = None) -> Path:
    """Write `bench-<part>-<chunks>.json` into `folder` and return its path.

    `argv` are the options that made the figures, where they are not size and part of these alone.
    Raises `claim_failed`, and writes nothing, where an equality or a gate does not hold (EVD-7).
    """
    try:
        return _written(figures, parameters, folder, argv or ["--size", str(figures.size), "--part", figures.part])
    except EvidenceError as error:
        raise ClaimFailed(error.detail) from None


def _written(figures: Figures, parameters: Mapping[str, Any], folder: Path, options: Sequence[str]) -> Path:
    given = [word for name, value in parameters.items() for word in (f"--{name}", str(value))]
    with Claim(
        f"bench-{figures.part}-{figures.size}",
        SENTENCES[figures.part],
        argv=("python", "-m", "kbretrieval", "bench", *options, *given, "--evidence", "{output}"),
        promises=sorted({gate.promise for gate in figures.gates if gate.promise}),
        parameters={"chunks": figures.size, **parameters},
        packages=PACKAGES,
        folder=folder,
    ) as made:
        for item in figures.equalities:
            made.rows({"comparison": item.name, **row} for row in item.rows)
        if not figures.equalities:  # what was measured, where nothing but times was
            made.rows({"measured": item.what, "way": item.way, "samples": len(item.samples)} for item in figures.series)
        for item in figures.equalities:
            made.aggregate(item.name, "count", where={"comparison": item.name, "equal": True})
            made.check(item.name, item.held)
        for gate in figures.gates:
            made.check(f"{gate.name}: at least {gate.least:.4g} times", gate.held)
        made.observe(**observations(figures))
        made.limit("Times are of one machine and one run; only ratios within the run and equalities are claimed.")
        made.limit("Texts and vectors are synthetic: nothing here measures relevance.")
    return made.path
