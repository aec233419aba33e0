"""The file of test cases from public failures: read, its expressions told from its sentences, and run line by line."""

import ast
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

# What cannot be run line by line, with the reason. Everything can.
NOT_RUN: dict[str, str] = {}


@dataclass(frozen=True)
class Replaced:
    """A piece of a case that engine.md contradicts, and what is run in its place."""

    old: str
    new: str
    reason: str


REPLACED = {
    "C075": Replaced(
        '[word + " x"]', '[word + " "]', "ID-2: a name may hold a blank inside, so the call was none that is refused"
    ),
}


@dataclass(frozen=True)
class InPlace:
    """What stands for the sentences of a case without an expression: some of ours, and the test that goes further."""

    test: str
    expressions: tuple[str, ...]


SENTENCES_ONLY = {
    "C060": InPlace(
        "tests/faults/test_kill.py::test_killed_at_any_call",
        (
            "all(d == before or (s, d) in {(e[1], e[3]) for e in ends if e[2] is None} for _, s, _, d, _ in ends)",
            "[e for e in ends if e[2] is None and e[3] == before] == []",
            "all(faults == () for *_, faults in ends)",
            "{code for hurt, _, code, _, _ in ends if hurt is full_at} == {'storage_full', None}",
            "{d for hurt, _, code, d, _ in ends if code == 'storage_full'} == {before}",
            "sum(hurt is kill_at and code == 'killed' for hurt, _, code, _, _ in ends) >= 100",
        ),
    ),
    "C061": InPlace(
        "tests/faults/test_damage.py::test_a_flipped_bit_never_becomes_a_quotation",
        (
            "len(outcomes) == 2000",
            "all(quote == truth[doc_id] for o in outcomes if isinstance(o, list) for doc_id, quote in o)",
            "all(int(doc_id[1:]) % 2 == 1 for o in outcomes if isinstance(o, list) for doc_id, _ in o)",
            "any(isinstance(o, str) for o in outcomes) and any(isinstance(o, list) and len(o) == 6 for o in outcomes)",
        ),
    ),
    "C073": InPlace(
        "tests/unit/test_bge.py::test_each_graph_gives_the_normalised_first_token",
        (
            "[set(f.inputs) for f in fed] == [set(g.declared) for g in (two, three, one)]",
            "all(str(f.inputs[n].dtype) == g.declared[n] for f, g in zip(fed, (two, three, one)) for n in g.declared)",
            "len({a.shape for f in fed for a in f.inputs.values()}) == 1 and fed[0].inputs['input_ids'].shape[0] == 1",
            "not fed[1].inputs['token_type_ids'].any() and all(f.inputs['attention_mask'].all() for f in fed[:2])",
            "all(math.isclose(math.hypot(*f.vector), 1.0, abs_tol=1e-6) for f in fed)",
        ),
    ),
    "C076": InPlace(
        "tests/unit/test_bge_index.py::test_on_one_machine_two_runs_are_equal_to_the_byte",
        (
            "runs[0] == runs[1]",
            "[hit['doc_id'] for hit in json.loads(runs[0])['hits']][0] == 'travel'",
        ),
    ),
}


@dataclass(frozen=True)
class Case:
    """One case as it stands in the file."""

    id: str
    promise: tuple[str, ...]
    setup: tuple[str, ...]
    act: tuple[str, ...]
    expect: tuple[str, ...]

    @property
    def expressions(self) -> tuple[str, ...]:
        """The lines of `expect` that are Python expressions."""
        return tuple(line for line in self.expect if _is_expression(line))

    @property
    def statements(self) -> str:
        """What is run before the first expression is looked at."""
        return "\n".join((*self.setup, *self.act))

    def names(self, kind: type[ast.expr_context]) -> set[str]:
        """The names that the case reads (`ast.Load`) or sets (`ast.Store`), expressions included."""
        trees = [ast.parse(self.statements), *(ast.parse(line, mode="eval") for line in self.expressions)]
        nodes = (node for tree in trees for node in ast.walk(tree))
        return {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, kind)}


def _is_expression(line: str) -> bool:
    try:
        ast.parse(line, mode="eval")
    except SyntaxError:
        return False
    return True


def read_cases(path: Path) -> tuple[Case, ...]:
    """Return the cases of a file in their order; () where there is no such file.

    Example:
        >>> read_cases(Path("no-such-file.json"))
        ()
    """
    if not path.is_file():
        return ()
    rows: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))
    return tuple(_case(row) for row in rows)


def _case(row: dict[str, Any]) -> Case:
    setup, act, expect = (tuple(row[part]) for part in ("setup", "act", "expect"))
    other = REPLACED.get(row["id"])
    if other is not None:
        assert "\n".join(setup).count(other.old) == 1, f"{row['id']} does not say {other.old}"
        setup = tuple(line.replace(other.old, other.new) for line in setup)
    return Case(row["id"], tuple(row["promise"]), setup, act, expect)


@dataclass(frozen=True)
class Outcome:
    """What running a case gave: how many expressions were looked at, and those that are not true."""

    evaluated: int
    untrue: tuple[str, ...]


def run_case(case: Case, names: dict[str, Any]) -> Outcome:
    """Run the lines of a case among these names, and judge its expressions; what a line raises passes through."""
    for part, lines in (("setup", case.setup), ("act", case.act)):
        exec(compile("\n".join(lines), f"<{case.id} {part}>", "exec"), names)
    judged = list(_judged(case, names))
    return Outcome(len(judged), tuple(line for line, held in judged if held is not True))


def _judged(case: Case, names: dict[str, Any]) -> Iterator[tuple[str, object]]:
    in_place = SENTENCES_ONLY.get(case.id)
    for line in (*case.expressions, *(in_place.expressions if in_place else ())):
        yield line, eval(compile(line, f"<{case.id} expect>", "eval"), names)
