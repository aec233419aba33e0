"""The verifier: what an evidence folder claims, checked offline with the standard library (EVD-4).

Order per file: strict parse and stored form; schema and counts; shipped subjects; aggregates from the
rows; what the TREC files beside it measure; digest of the deterministic part; manifest; nothing that must
not be published. A step that needs an earlier one is left out when that one fails; everything else is
still tried, so one run shows all. A file that no claim names cannot be checked: what it says is unknown.
"""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal, TypeAlias

from kbretrieval.evidence.aggregates import aggregate
from kbretrieval.evidence.canonical import (
    Value,
    canonical_bytes,
    canonical_sha256,
    described,
    is_stored_form,
    parse,
    sha256_hex,
)
from kbretrieval.evidence.environment import source_sha256
from kbretrieval.evidence.errors import AggregateInvalid, JsonInvalid, SubjectInvalid
from kbretrieval.evidence.exports import FIELD, export_refusals, exports_named
from kbretrieval.evidence.manifest import MANIFEST, scanned
from kbretrieval.evidence.publishable import column_refusals, text_refusals, value_refusals
from kbretrieval.evidence.schema import schema_refusals
from kbretrieval.evidence.subjects import Digest, shipped

Outcome: TypeAlias = Literal["fails", "unchecked", "note"]
SubjectLookup: TypeAlias = Callable[[str], Digest | None]


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that does not hold, could not be checked, or is only worth knowing."""

    step: str
    outcome: Outcome
    detail: str


@dataclass(frozen=True, slots=True)
class FileReport:
    """What was found about one file.

    `passed` counts the checks that the writer says it executed, `recomputed` the values that were computed here again.
    """

    name: str
    sentence: str
    passed: int
    findings: tuple[Finding, ...]
    recomputed: int = 0

    @property
    def state(self) -> str:
        """`fails`, `unchecked` or `holds`; notes do not count."""
        outcomes = {finding.outcome for finding in self.findings}
        return "fails" if "fails" in outcomes else "unchecked" if "unchecked" in outcomes else "holds"


@dataclass(frozen=True, slots=True)
class Report:
    """What was found about a folder, file by file; the manifest is one of the files."""

    files: tuple[FileReport, ...]

    @property
    def exit_code(self) -> int:
        """0 all hold, 1 something does not hold, 2 something could not be checked; 1 goes before 2."""
        states = {file.state for file in self.files}
        return 1 if "fails" in states else 2 if "unchecked" in states else 0

    def to_dict(self) -> dict[str, Any]:
        """Return the report for `--json`: exit code and, per file, state and findings."""
        files = [{"state": file.state, **asdict(file)} for file in self.files]
        return {"exit_code": self.exit_code, "files": files}


def find_root(folder: Path) -> Path:
    """Return the project root of an evidence folder: the nearest of its two parents with a
    `pyproject.toml`, else its parent.

    Example:
        >>> import tempfile
        >>> find_root(Path(tempfile.mkdtemp()) / "checkout" / "evidence").name
        'checkout'
    """
    whole = folder.resolve()
    parents = (whole.parent, whole.parent.parent)
    return next((parent for parent in parents if (parent / "pyproject.toml").is_file()), whole.parent)


def verify_folder(folder: Path, root: Path | None = None) -> Report:
    """Return the report on every file of `folder`; subjects are looked for below `root`.

    A folder that is not there or holds no claim could not be checked. Raises nothing for any content.

    Example:
        >>> verify_folder(Path("no-such-folder")).exit_code
        2
    """
    files, refused = scanned(folder)
    raw = files.pop(MANIFEST, None)
    below = find_root(folder) if root is None else root

    @cache
    def subject_of(name: str) -> Digest | None:
        return shipped(below, name)

    report = verify_files(files, raw, subject_of, source_sha256())
    others = [FileReport(name, "", 0, (Finding("files", "fails", detail),)) for name, detail in refused.items()]
    return Report((*report.files, *others))


def verify_files(
    files: Mapping[str, bytes], manifest: bytes | None, subject_of: SubjectLookup, source: str | None = None
) -> Report:
    """Return the report on files given by name, without a look at the disk.

    `subject_of` returns a subject's digest, None when it is not shipped; `source` is the present
    `source_sha256`, None to leave that note out.

    Example:
        >>> verify_files({}, b"{}\\n", lambda name: None).exit_code
        2
    """
    own, listed = check_manifest(manifest, files)
    reports, exports = [own], exports_named(files)
    for name, raw in sorted(files.items()):
        if name.endswith(".json"):
            reports.append(check_claim(name, raw, listed.get(name), subject_of, source, files))
        else:
            reports.append(_other_file(name, raw, listed.get(name), name in exports))
    return Report(tuple(reports))


def check_manifest(manifest: bytes | None, files: Mapping[str, bytes]) -> tuple[FileReport, dict[str, str]]:
    """Return the report on the manifest and its entries; hashes are compared file by file later.

    Example:
        >>> check_manifest(b"{}", {"a.run": b""})[0].findings[0].detail
        'the bytes are not the one stored form of their content'
    """
    if manifest is None:
        outcome: Outcome = "fails" if files else "unchecked"
        return FileReport(MANIFEST, "", 0, (Finding("manifest", outcome, "missing"),)), {}
    try:
        value = parse(manifest)
    except JsonInvalid as error:
        return FileReport(MANIFEST, "", 0, (Finding("parse", "fails", error.detail),)), {}
    if not isinstance(value, dict) or not all(isinstance(entry, str) for entry in value.values()):
        return FileReport(MANIFEST, "", 0, (Finding("schema", "fails", "not an object of strings"),)), {}
    listed = {name: str(entry) for name, entry in value.items()}
    findings = [Finding("manifest", "fails", f"{name} is listed and missing") for name in listed if name not in files]
    if not is_stored_form(manifest, value):
        findings.append(Finding("parse", "fails", "the bytes are not the one stored form of their content"))
    if not any(name.endswith(".json") for name in files):
        findings.append(Finding("manifest", "unchecked", "0 claims in the folder, nothing to check"))
    return FileReport(MANIFEST, "", 0, tuple(findings)), listed


def check_claim(
    name: str,
    raw: bytes,
    listed: str | None,
    subject_of: SubjectLookup,
    source: str | None = None,
    files: Mapping[str, bytes] | None = None,
) -> FileReport:
    """Return the report on one evidence file; `listed` is its SHA-256 in the manifest, `files` stand beside it.

    Example:
        >>> check_claim("a.json", b"[]", None, lambda name: None).state
        'fails'
    """
    try:
        value = parse(raw)
    except JsonInvalid as error:
        return FileReport(name, "", 0, (Finding("parse", "fails", error.detail), *_listed(raw, listed)))
    form = () if is_stored_form(raw, value) else ("the bytes are not the one stored form of their content",)
    findings = [*_failures("parse", form), *_failures("schema", schema_refusals(value))]
    exposed = _failures("publishable", value_refusals(value))
    if not isinstance(value, dict) or any(finding.step == "schema" for finding in findings):
        return FileReport(name, "", 0, (*findings, *_listed(raw, listed), *exposed))
    document: dict[str, Any] = value
    findings += _counts(name, document)
    findings += _subjects(document, subject_of)
    findings += _failures("aggregates", _aggregates(document["deterministic"]))
    findings += _failures("exports", export_refusals(document, {} if files is None else files))
    findings += _failures("digest", _digest(document))
    findings += _listed(raw, listed)
    findings += exposed
    written_by = document["environment"]["package"]["source_sha256"]
    if source is not None and source != written_by:
        detail = f"source {written_by[:8]}… wrote the file, {source[:8]}… is present"
        findings.append(Finding("source", "note", detail))
    claim, checks = document["claim"], document["tests"]["passed"]
    return FileReport(name, claim["sentence"], len(checks), tuple(findings), _recomputed(document))


def _recomputed(document: dict[str, Any]) -> int:
    export = document["observed"].get(FIELD)
    measures = export.get("measures") if isinstance(export, dict) else None
    return len(document["deterministic"]["aggregates"]) + (len(measures) if isinstance(measures, dict) else 0)


def _failures(step: str, details: tuple[str, ...] | list[str]) -> list[Finding]:
    return [Finding(step, "fails", detail) for detail in details]


def _counts(name: str, document: dict[str, Any]) -> list[Finding]:
    tests = document["tests"]
    passed, failed, skipped = len(tests["passed"]), len(tests["failed"]), len(tests["skipped"])
    expected = "failed" if failed else "incomplete" if skipped else "passed"
    findings = []
    if name != f"{document['claim']['id']}.json":
        findings.append(Finding("counts", "fails", f"{name} holds claim {document['claim']['id']}"))
    if tests["result"] != expected:
        findings.append(Finding("counts", "fails", f"result {tests['result']} given, {expected} counted"))
    if failed or not passed:
        findings.append(Finding("counts", "fails", f"{failed} failed and {passed} passed checks, 0 and 1 needed"))
    names = [*tests["passed"], *tests["failed"], *(entry["name"] for entry in tests["skipped"])]
    if len(set(names)) != len(names):
        findings.append(Finding("counts", "fails", f"{len(names)} checks given under {len(set(names))} names"))
    skips = [f"{entry['name']} was skipped: {entry['reason']}" for entry in tests["skipped"]]
    return findings + [Finding("counts", "unchecked", detail) for detail in skips]


def _subjects(document: dict[str, Any], subject_of: SubjectLookup) -> list[Finding]:
    findings = []
    for subject in document["subjects"]:
        name = subject["name"]
        try:
            found = subject_of(name)
        except SubjectInvalid as error:
            findings.append(Finding("subjects", "fails", error.detail))
            continue
        if found is None:
            findings.append(Finding("subjects", "unchecked", f"{name} is not shipped"))
        elif found != Digest(subject["sha256"], subject["bytes"]):
            detail = f"{name}: {subject['sha256'][:8]}… of {subject['bytes']} bytes given"
            findings.append(Finding("subjects", "fails", f"{detail}, {found.sha256[:8]}… of {found.bytes} found"))
    return findings


def _aggregates(deterministic: dict[str, Any]) -> list[str]:
    details = []
    for name, rule in deterministic["aggregates"].items():
        try:
            value = aggregate(deterministic["rows"], rule)
        except AggregateInvalid as error:
            details.append(f"{name}: {error.detail}")
            continue
        if canonical_bytes(value) != canonical_bytes(rule["value"]):
            details.append(f"{name}: {described(rule['value'])} given, {described(value)} recomputed")
    return details


def _digest(document: dict[str, Any]) -> list[str]:
    given, found = document["deterministic_sha256"], canonical_sha256(document["deterministic"])
    return [] if given == found else [f"deterministic_sha256 {given[:8]}… given, {found[:8]}… recomputed"]


def _listed(raw: bytes, listed: str | None) -> list[Finding]:
    found = sha256_hex(raw)
    if listed == found:
        return []
    if listed is None:
        return [Finding("manifest", "fails", "not listed in the manifest")]
    return [Finding("manifest", "fails", f"{listed[:8]}… listed, {found[:8]}… found")]


def _other_file(name: str, raw: bytes, listed: str | None, named: bool) -> FileReport:
    try:
        text = raw.decode("utf-8")
        exposed = _failures("publishable", column_refusals(text) if named else text_refusals(text))
    except UnicodeDecodeError:
        exposed = []  # the manifest covers its bytes; what they show is not looked at
    if not named:
        exposed.append(Finding("exports", "unchecked", "no claim of this folder names it"))
    return FileReport(name, "", 0, (*_listed(raw, listed), *exposed))


def claim_value(folder: Path, file: str) -> Value:
    """Return the parsed content of one evidence file. Raises `JsonInvalid` and `OSError`.

    Example:
        >>> import tempfile
        >>> folder = Path(tempfile.mkdtemp())
        >>> (folder / "a.json").write_bytes(b'{"rank": 1}')
        11
        >>> claim_value(folder, "a.json")
        {'rank': 1}
    """
    return parse((folder / file).read_bytes())
