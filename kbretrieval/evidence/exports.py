"""What the TREC files beside a claim say, recomputed from their bytes (EVD-8).

A claim that exports a ranking names its run and its qrels with their digests, what they measure, and where in the
claim the same figures stand. So neither file can be changed, exchanged or left out, and no figure can differ from the
ranking that it was made of, without a digest or a number that no longer fits.

Recall@3 is found judgements over all judgements, MRR@3 one over the rank of the first, nDCG@10 has the grade as its
gain, as in `trec_eval`; each is the mean over the queries with a judgement above zero.
"""

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from kbretrieval.evidence.aggregates import decimal, fixed
from kbretrieval.evidence.canonical import parse, sha256_hex
from kbretrieval.evidence.errors import AggregateInvalid, BindingInvalid, JsonInvalid, TrecInvalid
from kbretrieval.evidence.pointers import resolve

FIELD = "trec"
ENDINGS = (".qrels", ".run")
PLACES = 6
_FIRST, _TEN = 3, 10
_RUN = re.compile(r"^(\S+) Q0 (\S+) ([1-9][0-9]{0,7}) ([1-9][0-9]{0,7}) (\S+)$", re.MULTILINE)
_QRELS = re.compile(r"^(\S+) 0 (\S+) (-?[0-9]{1,6})$", re.MULTILINE)


def measures(run: str, qrels: str) -> dict[str, str]:
    """Return `recall_at_3`, `mrr_at_3` and `ndcg_at_10` of a TREC run, six decimals each.

    A query without a line in the run counts zero. Raises `TrecInvalid` for lines of another form, ranks that do not
    count up from 1, scores that do not fall, a document twice under one query, and qrels that judge nothing relevant.

    Example:
        >>> measures("q1 Q0 b 1 2 t\\nq1 Q0 a 2 1 t\\n", "q1 0 a 1\\n")
        {'mrr_at_3': '0.500000', 'ndcg_at_10': '0.630930', 'recall_at_3': '1.000000'}
    """
    rankings, judged = _rankings(run), _judged(qrels)
    asked = {query: {name for name, grade in found.items() if grade > 0} for query, found in judged.items()}
    asked = {query: relevant for query, relevant in asked.items() if relevant}
    if not asked:
        raise TrecInvalid(f"{len(judged)} judged queries given, 1 with a relevant document needed")
    recall, reciprocal, gain = Counter[tuple[int, int]](), Counter[tuple[int, int]](), []
    for query, relevant in asked.items():
        ranking = rankings.get(query, [])
        ranks = [rank for rank, name in enumerate(ranking[:_FIRST], 1) if name in relevant]
        recall[len(ranks), len(relevant)] += 1
        reciprocal[(1, ranks[0]) if ranks else (0, 1)] += 1
        gain.append(_ndcg(ranking, judged[query]))
    return {
        "mrr_at_3": fixed(_total(reciprocal) / len(asked), PLACES),
        "ndcg_at_10": fixed(Fraction(math.fsum(gain)) / len(asked), PLACES),
        "recall_at_3": fixed(_total(recall) / len(asked), PLACES),
    }


def _total(counted: Mapping[tuple[int, int], int]) -> Fraction:
    """Return the sum of counted fractions, exactly; few of thousands differ."""
    return sum((Fraction(times * above, below) for (above, below), times in counted.items()), Fraction())


def _ndcg(ranking: Sequence[str], judged: Mapping[str, int]) -> float:
    ideal = sorted((grade for grade in judged.values() if grade > 0), reverse=True)
    return _discounted([max(0, judged.get(name, 0)) for name in ranking]) / _discounted(ideal)


def _discounted(gains: Sequence[int]) -> float:
    return math.fsum(gain / math.log2(rank + 1) for rank, gain in enumerate(gains[:_TEN], 1))


def _rankings(text: str) -> dict[str, list[str]]:
    made: dict[str, dict[str, int]] = {}
    for query, name, rank, digits, _ in _lines(text, _RUN):
        ranking, score = made.setdefault(query, {}), int(digits)
        least = next(reversed(ranking.values())) if ranking else 10**8
        if int(rank) != len(ranking) + 1 or score >= least or name in ranking:
            raise TrecInvalid(f"rank {rank} and score {score} given, rank {len(ranking) + 1} and a lower one needed")
        ranking[name] = score
    return {query: list(ranking) for query, ranking in made.items()}


def _judged(text: str) -> dict[str, dict[str, int]]:
    made: dict[str, dict[str, int]] = {}
    for query, name, grade in _lines(text, _QRELS):
        found = made.setdefault(query, {})
        if name in found:
            raise TrecInvalid(f"{len(found)} judgements of a query given, one of them twice")
        found[name] = int(grade)
    return made


def _lines(text: str, form: re.Pattern[str]) -> list[tuple[str, ...]]:
    *lines, rest = text.split("\n")
    if rest:
        raise TrecInvalid("a last line without an end given, every line needs one")
    found = form.findall(text)  # no column holds white space, so no match reaches into another line
    if len(found) != len(lines):
        number = next(number for number, line in enumerate(lines, 1) if not form.fullmatch(line))
        raise TrecInvalid(f"line {number} has another form than the {form.groups} columns needed")
    return found


def exported(run: str, qrels: str, claim: str, stands_at: Mapping[str, Sequence[str]]) -> dict[str, object]:
    """Return what a claim records of its two files; `stands_at` maps a measure to pointers into it, as `#/observed/x`.

    Example:
        >>> made = exported("q1 Q0 a 1 1 t\\n", "q1 0 a 1\\n", "ranks", {})
        >>> sorted(made), sorted(made["files"])
        (['files', 'measures', 'stands_at'], ['ranks.qrels', 'ranks.run'])
    """
    texts = {f"{claim}.qrels": qrels, f"{claim}.run": run}
    return {
        "files": {name: sha256_hex(text.encode("utf-8")) for name, text in texts.items()},
        "measures": measures(run, qrels),
        "stands_at": {name: list(places) for name, places in stands_at.items()},
    }


def export_names(claim: str) -> tuple[str, ...]:
    """Return the names of the two files of a claim.

    Example:
        >>> export_names("ranks")
        ('ranks.qrels', 'ranks.run')
    """
    return tuple(claim + ending for ending in ENDINGS)


def exports_named(files: Mapping[str, bytes]) -> frozenset[str]:
    """Return the files that a claim beside them names as its exports; the claim's own report judges them.

    Example:
        >>> exports_named({"ranks.run": b"", "ranks.json": b'{"observed": {}}'})
        frozenset()
    """
    claims = sorted({name.rpartition(".")[0] for name in files if name.endswith(ENDINGS)})
    return frozenset(
        name for claim in claims if _has_exports(files.get(f"{claim}.json", b"")) for name in export_names(claim)
    )


def _has_exports(claim: bytes) -> bool:
    try:
        value = parse(claim)
    except JsonInvalid:
        return False
    observed = value.get("observed") if isinstance(value, dict) else None
    return isinstance(observed, dict) and FIELD in observed


def export_refusals(document: dict[str, Any], files: Mapping[str, bytes]) -> list[str]:
    """Return what does not hold of the TREC files that a claim names, in words; nothing where it names none.

    `files` are those of the folder. The document follows the schema.
    """
    record = document["observed"].get(FIELD)
    if record is None:
        return []
    names = export_names(document["claim"]["id"])
    shape = isinstance(record, dict) and sorted(record) == ["files", "measures", "stands_at"]
    if not shape or not all(isinstance(part, dict) for part in record.values()) or set(record["files"]) != set(names):
        return [f"observed.{FIELD} has another shape than files {', '.join(names)}, measures and stands_at"]
    found = []
    for name in names:
        given = sha256_hex(files[name]) if name in files else None
        if given != record["files"][name]:
            found.append(f"{name}: {str(record['files'][name])[:8]}… named, {given[:8] if given else 'no file'} found")
    return found or _measure_refusals(document, record, *(files[name] for name in names))


def _measure_refusals(document: dict[str, Any], record: dict[str, Any], qrels: bytes, run: bytes) -> list[str]:
    try:
        made = measures(run.decode("utf-8"), qrels.decode("utf-8"))
    except UnicodeDecodeError:
        return ["a TREC file is not UTF-8"]
    except TrecInvalid as error:
        return [error.detail]
    if record["measures"] != made:
        shown = ", ".join(f"{name} {value}" for name, value in sorted(made.items()))
        return [f"other measures given, {shown} recomputed from the two files"]
    return [
        f"{name} {made.get(name)} recomputed, another value at {place}"
        for name, places in sorted(record["stands_at"].items())
        for place in (places if isinstance(places, list) else [places])
        if not _stands(document, place, made.get(name))
    ]


def _stands(document: dict[str, Any], place: object, wanted: str | None) -> bool:
    try:
        # As a URI fragment, `#/observed/…`: a pointer alone looks like an absolute path.
        head, _, pointer = str(place).partition("#")
        value = None if head else resolve(document, pointer)
        return isinstance(value, str) and fixed(decimal(value), PLACES) == wanted
    except (AggregateInvalid, BindingInvalid):
        return False
