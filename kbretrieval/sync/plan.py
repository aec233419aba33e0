"""Listing + policy + stored state → a frozen plan, a pure function (SYN-3…SYN-8, POL-2…POL-4).

Steps stand in the order in which they are safe: rights are taken away, documents deleted, contents written, rights
given. Killed between any two of them, nobody reads what neither the old nor the new state allows.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

from kbretrieval.errors import (
    DeletedDocumentRequiresExplicitRestore,
    DocumentOfAnotherSource,
    DuplicateIdentity,
    KBError,
    SourceListingIncomplete,
)
from kbretrieval.results import DocumentStatus, Exported
from kbretrieval.sync.access import Acl, gained, halves
from kbretrieval.sync.examining import Examined, Refusal, Unusable
from kbretrieval.sync.origin import comes_from, has_moved, is_anybodys, last_place
from kbretrieval.sync.policy import Policy
from kbretrieval.sync.source import Skipped, printable

Kind = Literal["tighten", "delete", "create", "update", "restore", "loosen"]
KINDS: tuple[Kind, ...] = ("create", "update", "restore", "delete", "tighten", "loosen")
State = Literal["planned", "done", "refused", "withheld", "stopped"]

MANY = 5
SHARE = 5  # a fifth


@dataclass(frozen=True, slots=True)
class Step(Exported):
    """One change in one transaction.

    `revision` and `acl_revision` are the document's after the step, `acl` the list that it stores (None: untouched).
    `gains` and `losses` are the entries that may read because of it, or no longer.
    """

    SCHEMA: ClassVar[str] = "kbretrieval.sync-step/1"

    kind: Kind
    doc_id: str
    path: str
    revision: int
    acl_revision: int
    acl: Acl | None
    gains: Acl
    losses: Acl
    state: State = "planned"
    code: str | None = None


@dataclass(frozen=True, slots=True)
class Kept(Exported):
    """A live document whose file the listing lacks, and the code of why it is not deleted."""

    SCHEMA: ClassVar[str] = "kbretrieval.sync-kept/1"

    doc_id: str
    path: str
    code: str


@dataclass(frozen=True, slots=True)
class Survey:
    """What was found: files in the order of their paths, and whether what they lack is known to be absent."""

    connector: str
    files: tuple[Examined | Unusable, ...]
    skipped: tuple[Skipped, ...]
    unlisted: tuple[str, ...]
    settled: bool


@dataclass(frozen=True, slots=True)
class Wishes:
    """What the caller asked for beyond the ordinary: paths or identities to restore, and how many may be deleted."""

    restore: frozenset[str] = frozenset()
    restore_all: bool = False
    confirm_deletions: int = 0

    def to_restore(self, file: Examined) -> bool:
        """Return whether a deleted document is to come back from this file."""
        return self.restore_all or bool(self.restore & {file.item.path, file.doc_id})


@dataclass(frozen=True, slots=True)
class Plan:
    """Steps in their order, what was refused, what was kept; `stop` says why the run ends before its deletions."""

    steps: tuple[Step, ...]
    files: Mapping[str, Examined]
    refused: tuple[Refusal, ...]
    kept: tuple[Kept, ...]
    unchanged: int
    others: int
    stop: str | None

    @property
    def deletes(self) -> bool:
        """Whether anything is to be deleted."""
        return any(step.kind == "delete" for step in self.steps)


def make_plan(survey: Survey, stored: Sequence[DocumentStatus], policy: Policy, wishes: Wishes) -> Plan:
    """Return what a run has to do, by what is stored now."""
    known = {status.doc_id: status for status in stored}
    ours = {status.doc_id: status for status in stored if comes_from(status, survey.connector)}
    files, refused = _one_file_each(survey)
    steps: list[Step] = []
    unchanged = 0
    for file in list(files.values()):
        error = _refusal(file, known.get(file.doc_id), survey.connector, wishes)
        if error is not None:
            refused.append(_refused(file, error))
            del files[file.doc_id]
            continue
        acl = policy.acl_for(file.item.place)
        made = _steps(file, known.get(file.doc_id), acl, adopt=file.doc_id not in ours)
        unchanged += not made
        steps += made
    deleted, kept = _absent(survey, ours)
    stop = _stop(len(deleted), len(ours), wishes.confirm_deletions)
    left = set(ours) - set(files) - (set() if stop else {status.doc_id for status in deleted})
    places = {file.refusal.doc_id: file.item.place for file in survey.files if isinstance(file, Unusable)}
    for status in (ours[doc_id] for doc_id in left):
        steps += _tightened(status, places.get(status.doc_id) or last_place(status)[0], policy)
    steps += [_deletion(status) for status in deleted]
    return Plan(
        tuple(sorted(steps, key=lambda step: (_PHASES[step.kind], step.doc_id))),
        files,
        tuple(sorted([*refused, *_incomplete(survey)], key=lambda item: item.path)),
        kept,
        unchanged,
        sum(status.state == "live" for status in stored if status.doc_id not in {*ours, *files}),
        stop,
    )


_PHASES: dict[Kind, int] = {"tighten": 0, "delete": 1, "create": 2, "update": 2, "restore": 2, "loosen": 3}


def _refused(file: Examined, error: KBError) -> Refusal:
    return Refusal(printable(file.item.path), file.doc_id, error.code, error.facts)


def _one_file_each(survey: Survey) -> tuple[dict[str, Examined], list[Refusal]]:
    """Return the files by identity, and the refusals: what is unusable, and every file whose identity stands twice."""
    by_identity: dict[str, list[Examined]] = {}
    refused = []
    for file in survey.files:
        if isinstance(file, Unusable):
            refused.append(file.refusal)
        else:
            by_identity.setdefault(file.doc_id, []).append(file)
    for same in by_identity.values():
        for file in same if len(same) > 1 else ():
            other = next(item for item in same if item is not file)
            error = DuplicateIdentity(f"one file a document is required, {printable(other.item.path)} is another")
            refused.append(_refused(file, error))
    return {doc_id: same[0] for doc_id, same in sorted(by_identity.items()) if len(same) == 1}, refused


def _refusal(file: Examined, status: DocumentStatus | None, connector: str, wishes: Wishes) -> KBError | None:
    if status is None:
        return None
    if status.state == "deleted":
        if wishes.to_restore(file):
            return None
        return DeletedDocumentRequiresExplicitRestore(
            f"deleted at revision {status.revision}, a file is there; --restore with its path, or --restore-all"
        )
    if comes_from(status, connector) or is_anybodys(status):
        return None
    return DocumentOfAnotherSource(f"source {connector} given, another one stored")


def _steps(file: Examined, status: DocumentStatus | None, acl: Acl, adopt: bool) -> list[Step]:
    """Return the steps of one file whose identity is its own; none where nothing has changed (SYN-3)."""
    path = printable(file.item.path)
    if status is None:
        return [Step("create", file.doc_id, path, 1, 1, acl, acl, ())]
    revision, acl_revision = status.revision or 0, status.acl_revision or 0
    if status.state == "deleted":
        return [Step("restore", file.doc_id, path, revision + 1, acl_revision + 1, acl, acl, ())]
    made = []
    changed = adopt or has_moved(status, file) or (file.title, file.sha256) != (status.title, status.sha256)
    first, last = halves(status.acl, acl)
    if first is not None:
        acl_revision += 1
        made.append(_policy("tighten", status, path, revision, acl_revision, status.acl, first))
    if changed:
        revision += 1
        made.append(Step("update", file.doc_id, path, revision, acl_revision, None, (), ()))
    if last is not None:
        now = status.acl if first is None else first
        made.append(_policy("loosen", status, path, revision, acl_revision + 1, now, last))
    return made


def _policy(kind: Kind, status: DocumentStatus, path: str, revision: int, order: int, old: Acl, new: Acl) -> Step:
    return Step(kind, status.doc_id, path, revision, order, new, gained(old, new), gained(new, old))


def _tightened(status: DocumentStatus, path: str, policy: Policy) -> list[Step]:
    """Return the step that takes rights from a document whose text is not read: taking away must not wait for it."""
    first, _ = halves(status.acl, policy.acl_for(path))
    if first is None:
        return []
    shown, revision, order = printable(path), status.revision or 0, (status.acl_revision or 0) + 1
    return [_policy("tighten", status, shown, revision, order, status.acl, first)]


def _deletion(status: DocumentStatus) -> Step:
    revision, acl_revision = (status.revision or 0) + 1, (status.acl_revision or 0) + 1
    return Step("delete", status.doc_id, last_place(status)[0], revision, acl_revision, (), (), status.acl)


def _present(survey: Survey) -> set[str]:
    return {file.claims if isinstance(file, Unusable) else file.doc_id for file in survey.files}


def _absent(survey: Survey, ours: Mapping[str, DocumentStatus]) -> tuple[list[DocumentStatus], tuple[Kept, ...]]:
    """Return the documents whose absence is known, and those that the listing lacks without proving it (SYN-4)."""
    present = _present(survey)
    hidden = next((f.refusal.code for f in survey.files if isinstance(f, Unusable) and f.hides), None)
    deleted, kept = [], []
    for doc_id, status in sorted(ours.items()):
        if doc_id in present:
            continue
        path, movable = last_place(status)
        if survey.unlisted or not survey.settled:
            kept.append(Kept(doc_id, path, SourceListingIncomplete.code))
        elif movable and hidden is not None:
            # A file that nobody could read may name this document: it has moved, perhaps, and is not gone.
            kept.append(Kept(doc_id, path, hidden))
        else:
            deleted.append(status)
    return deleted, tuple(kept)


def _stop(deleted: int, live: int, confirmed: int) -> str | None:
    if deleted < MANY or deleted * SHARE <= live or deleted <= confirmed:
        return None
    return (
        f"{deleted} of {live} documents would be deleted, {confirmed} confirmed;"
        f" if their files are meant to be gone: --confirm-deletions {deleted}"
    )


def _incomplete(survey: Survey) -> Iterable[Refusal]:
    for path in survey.unlisted:
        error = SourceListingIncomplete("a folder that can be listed is required, this one cannot; nothing is deleted")
        yield Refusal(path, None, error.code, error.facts)
    if not survey.settled:
        error = SourceListingIncomplete("no new file may be in a second listing, one is; nothing is deleted")
        yield Refusal(".", None, error.code, error.facts)
