"""The writer: a claim becomes a file only after its checks were executed and held (EVD-7).

What a failed check does: it raises `CheckFailed` at once, nothing of this run is written, and an older
file of the same claim is removed from the folder together with its entry in the manifest. So a folder
never keeps a claim that the latest run contradicted. A run that ends by another exception contradicts
nothing: it writes nothing and leaves an older file as it is.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from types import TracebackType

from kbretrieval.evidence.aggregates import aggregate
from kbretrieval.evidence.canonical import (
    Value,
    canonical_bytes,
    canonical_sha256,
    described,
    normal,
    pretty_bytes,
)
from kbretrieval.evidence.environment import environment
from kbretrieval.evidence.errors import (
    CheckFailed,
    ClaimClosed,
    DuplicateCheck,
    NoCheck,
    NotPublishable,
    RowsClosed,
    SchemaInvalid,
    SubjectInvalid,
    TrecInvalid,
)
from kbretrieval.evidence.exports import FIELD, export_names, export_refusals, exported
from kbretrieval.evidence.manifest import change_folder
from kbretrieval.evidence.publishable import text_refusals, value_refusals
from kbretrieval.evidence.schema import schema_refusals
from kbretrieval.evidence.subjects import check_name, default_folder, digest, project_root
from kbretrieval.evidence.trec import qrels_text, run_text

SCHEMA = "kbretrieval-evidence/1"
UNSIGNED = "This file is not signed: it proves that its parts agree with each other, not who wrote it."


class Claim:
    """One claim under construction; `write` returns the path of `<id>.json` (EVD-1, EVD-7).

    Args: `id` in lower-case words joined by hyphens; `sentence` in the reader's language; `promises`
    as numbers of the specification; `argv` as the command that makes the claim again, either
    `("notebook", "notebooks/….ipynb")` or `("python", "-m", "kbretrieval…", …)`, in which
    `{output}` stands for the evidence folder; `packages` as distribution names whose versions matter;
    `folder` where to write (else `default_folder()`); `root` the project root that subjects are below.

    As a context manager it writes when the block ends without an exception. Not for concurrent use by
    several threads; several claims may be written to one folder at once.

    Example:
        >>> import tempfile
        >>> with Claim("sum-holds", "一加一等于二。", argv=("python", "-m", "kbretrieval"),
        ...            folder=tempfile.mkdtemp()) as claim:
        ...     claim.row(left=1, right=1, total=1 + 1)
        ...     claim.equal("total", claim.aggregate("total", "only", "total"), 2)
        >>> claim.path.name
        'sum-holds.json'
    """

    def __init__(
        self,
        id: str,
        sentence: str,
        *,
        argv: Sequence[str],
        promises: Sequence[str] = (),
        chapter: int | None = None,
        parameters: Mapping[str, object] | None = None,
        seed: int | None = None,
        packages: Iterable[str] = (),
        folder: str | Path | None = None,
        root: str | Path | None = None,
    ) -> None:
        self.id = id
        self.folder = default_folder() if folder is None else Path(folder)
        self.root = project_root() if root is None else Path(root)
        self._claim = normal({"id": id, "sentence": sentence, "chapter": chapter, "promises": promises})
        self._invocation = normal({"argv": argv, "parameters": parameters or {}, "seed": seed})
        self._packages = tuple(packages)
        self._subjects: dict[str, Value] = {}
        self._rows: list[dict[str, Value]] = []
        self._aggregates: dict[str, Value] = {}
        self._observed: dict[str, Value] = {}
        self._passed: list[Value] = []
        self._skipped: dict[str, Value] = {}
        self._limits: list[str] = [UNSIGNED]
        self._trec: dict[str, bytes] = {}
        self._closed = ""

    @property
    def path(self) -> Path:
        """The file that `write` makes."""
        return self.folder / f"{self.id}.json"

    def __enter__(self) -> "Claim":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: object, trace: TracebackType | None) -> None:
        if kind is None and self._closed != "written":
            self.write()

    def check(self, name: str, outcome: object) -> None:
        """Record the outcome of a comparison made in this run; anything but a boolean is refused.

        Raises `CheckFailed` when it is false, and then removes an older file of this claim (EVD-7).
        """
        self._new_check(name)
        held = normal(outcome)
        if not isinstance(held, bool):
            raise SchemaInvalid(f"an outcome of type {type(outcome).__name__} given, a boolean needed")
        if not held:
            self._refute(name, "false", "true")
        self._passed.append(name)

    def equal(self, name: str, got: object, expected: object) -> None:
        """Check that two values have the same canonical form: `1`, `True` and `"1"` are three values."""
        self._new_check(name)
        left, right = normal(got), normal(expected)
        if canonical_bytes(left) != canonical_bytes(right):
            self._refute(name, described(left), described(right))
        self._passed.append(name)

    def within(self, name: str, got: float, expected: float, tolerance: float) -> None:
        """Check that two numbers differ by at most `tolerance` (for raw scores, ENC tolerances)."""
        self._new_check(name)
        if not abs(got - expected) <= tolerance:
            self._refute(name, f"{float(got)!r}", f"{float(expected)!r} ± {float(tolerance)!r}")
        self._passed.append(name)

    def refused(self, name: str, error: type[Exception], call: Callable[[], object]) -> str:
        """Check that `call()` raises `error`; return its code, or its class name if it has none."""
        self._new_check(name)
        try:
            call()
        except error as refusal:
            self._passed.append(name)
            return str(getattr(refusal, "code", type(refusal).__name__))
        return self._refute(name, "no refusal", error.__name__)

    def skip(self, name: str, reason: str) -> None:
        """Record a check that could not be made; the claim then counts as incomplete (MOD-4)."""
        self._new_check(name)
        self._skipped[name] = normal({"name": name, "reason": reason})

    def row(self, **fields: object) -> None:
        """Append one deterministic row. Raises `RowsClosed` once an aggregate was computed."""
        self.rows([fields])

    def rows(self, rows: Iterable[Mapping[str, object]]) -> None:
        """Append deterministic rows, in the given order."""
        self._open()
        if self._aggregates:
            raise RowsClosed(f"a row given after {len(self._aggregates)} aggregates, rows come first")
        for row in rows:
            fields = normal(row)
            if not isinstance(fields, dict):
                raise SchemaInvalid(f"a row of type {type(row).__name__} given, an object needed")
            self._rows.append(fields)

    def aggregate(
        self,
        name: str,
        op: str,
        field: str | None = None,
        where: Mapping[str, object] | None = None,
        places: int | None = None,
    ) -> Value:
        """Compute, record and return an aggregate over the rows; ops are those of `aggregates`."""
        self._open()
        rule: dict[str, Value] = {"op": op}
        if field is not None:
            rule["field"] = field
        if where is not None:
            rule["where"] = normal(where)
        if places is not None:
            rule["places"] = places
        rule["value"] = aggregate(self._rows, rule)
        self._aggregates[name] = rule
        return rule["value"]

    def subject(self, name: str, path: str | Path | None = None) -> None:
        """Record digest and length of `name`, a POSIX path below the root; `path` is where it lies now."""
        self._open()
        check_name(name)
        found = digest(self.root / name if path is None else Path(path))
        entry = normal({"name": name, "sha256": found.sha256, "bytes": found.bytes})
        if self._subjects.setdefault(name, entry) != entry:
            raise SubjectInvalid(f"{name!a} given twice, its bytes changed in between")

    def observe(self, **fields: object) -> None:
        """Record what differs between machines and runs: times in ms, raw scores, sizes."""
        self._open()
        self._observed.update({name: normal(value) for name, value in fields.items()})

    def limit(self, text: str) -> None:
        """Record what the claim does not prove; that the file is unsigned is always there (EVD-10)."""
        self._open()
        if text not in self._limits:
            self._limits.append(text)

    def trec(
        self,
        rankings: Mapping[str, Sequence[str]],
        qrels: Mapping[str, Mapping[str, int]],
        stands_at: Mapping[str, Sequence[str]] | None = None,
    ) -> None:
        """Export the ranking as `<id>.run` and `<id>.qrels`, written together with the claim (EVD-8).

        `observed` names both files and what they measure. `stands_at` maps `recall_at_3`, `mrr_at_3` and `ndcg_at_10`
        to places of the claim where the same figures stand, as `#/observed/…`; they are compared to six decimals.
        """
        self._open()
        texts = {f"{self.id}.run": run_text(rankings), f"{self.id}.qrels": qrels_text(qrels)}
        self._trec = {name: text.encode("utf-8") for name, text in texts.items()}
        made = exported(texts[f"{self.id}.run"], texts[f"{self.id}.qrels"], self.id, stands_at or {})
        self._observed[FIELD] = normal(made)

    def write(self) -> Path:
        """Write the file and the manifest in one locked step; return the path of the file.

        Raises `NoCheck` when nothing was executed, `SchemaInvalid` when a part is missing (a claim
        needs at least one row), `TrecInvalid` when a figure is not that of the exported ranking, and
        `NotPublishable` for an absolute path or a secret.
        """
        self._open()
        if not self._passed:
            raise NoCheck(f"0 executed checks and {len(self._skipped)} skipped given, at least 1 executed needed")
        document = self._document()
        refusals = schema_refusals(document)
        if refusals:
            raise SchemaInvalid(f"{len(refusals)} refusals given, 0 allowed: {'; '.join(refusals[:3])}")
        wrong = export_refusals(document, self._trec)
        if wrong:
            raise TrecInvalid(f"{len(wrong)} refusals given, 0 allowed: {'; '.join(wrong[:3])}")
        exposed = value_refusals(document)
        exposed += [
            f"{name}: {kind}" for name, raw in self._trec.items() for kind in text_refusals(raw.decode("utf-8"))
        ]
        if exposed:
            raise NotPublishable(f"{len(exposed)} places given, 0 allowed: {'; '.join(exposed[:3])}")
        written = {self.path.name: pretty_bytes(document), **self._trec}
        change_folder(self.folder, written, tuple(name for name in self._names() if name not in written))
        self._closed = "written"
        return self.path

    def _document(self) -> dict[str, Value]:
        rows: list[Value] = list(self._rows)
        deterministic: dict[str, Value] = {"rows": rows, "aggregates": self._aggregates}
        return {
            "schema": SCHEMA,
            "claim": self._claim,
            "subjects": [self._subjects[name] for name in sorted(self._subjects)],
            "invocation": self._invocation,
            "environment": environment(self._packages),
            "deterministic": deterministic,
            "observed": self._observed,
            "tests": {
                "result": "incomplete" if self._skipped else "passed",
                "passed": self._passed,
                "failed": [],
                "skipped": list(self._skipped.values()),
            },
            "limits": list(self._limits),
            "deterministic_sha256": canonical_sha256(deterministic),
        }

    def _names(self) -> tuple[str, ...]:
        return (f"{self.id}.json", *export_names(self.id))

    def _open(self) -> None:
        if self._closed:
            raise ClaimClosed(f"a call after the claim was {self._closed}, an open claim needed")

    def _new_check(self, name: str) -> None:
        self._open()
        if name in self._passed or name in self._skipped:
            raise DuplicateCheck(f"check {name!a} given twice, one name per check needed")

    def _refute(self, name: str, got: str, expected: str) -> str:
        self._closed = "refuted"
        if any((self.folder / old).exists() for old in self._names()):
            change_folder(self.folder, {}, self._names())
        raise CheckFailed(f"{self.id}: {name}: {got} given, {expected} expected")
