"""`synchronise`: survey the source, make a plan, carry it out (SYN-1…SYN-9)."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from kbretrieval.errors import InvalidParameter, SourceListingIncomplete
from kbretrieval.identity import checked_name
from kbretrieval.index import Index
from kbretrieval.results import DocumentStatus
from kbretrieval.sync.encodings import Encodings
from kbretrieval.sync.examining import Unusable, examined
from kbretrieval.sync.execution import Execution, Outcome, Progress, Tick
from kbretrieval.sync.plan import Plan, Step, Survey, Wishes, make_plan
from kbretrieval.sync.policy import Policy
from kbretrieval.sync.report import SyncReport
from kbretrieval.sync.source import Listing, Source, listing_of

_UTF8 = Encodings()


def _silent(_tick: Tick) -> None:
    """Nobody watches."""


def synchronise(
    index: Index | None,
    source: Source,
    policy: Policy,
    *,
    tenant: str,
    encodings: Encodings = _UTF8,
    restore: Collection[str] = (),
    restore_all: bool = False,
    confirm_deletions: int = 0,
    dry_run: bool = False,
    progress: Progress = _silent,
) -> SyncReport:
    """Bring a tenant's documents to what a source holds and a policy says; return what was done (example: the package).

    A document belongs to the source whose connector its provenance names: others are left alone, one of no source is
    taken over by a file of its identity. A file that was moved and keeps its identity is a new revision of the same
    text, so that quotations lead to where it is now. `restore` names paths or identities that may come back from
    deletion. More than a fifth of the documents, and five or more, are deleted only up to `confirm_deletions`. With
    `dry_run` nothing is written, and `index` may be None. `progress` is called after each file read and each step
    taken.

    Files that cannot be read, decoded, parsed or stored are in the report, and the others go on (SYN-5). Raises
    `source_listing_incomplete`, `deletions_need_confirmation`, `busy` where another run holds the index, and what ends
    every step alike (the store, a missing model). A reader meanwhile sees each document's old or new state, and never
    more than both states allow (POL-3); one moment for all documents is not promised.
    """
    checked_name(tenant, "tenant")
    _check_parts(source, policy, encodings)
    asked = _Asked(source, policy, encodings, _wishes(restore, restore_all, confirm_deletions), progress)
    if dry_run:
        survey, plan = asked.planned(() if index is None else index.documents(tenant))
        return _report(tenant, survey, plan, None)
    if index is None:
        raise InvalidParameter("index: an open index is required, None given; only a dry run does without")
    with index.lone_run():
        survey, plan = asked.planned(index.documents(tenant))
        outcome = Execution(index, tenant, source, encodings).carry_out(plan, progress)
    return _report(tenant, survey, plan, outcome)


def _check_parts(source: object, policy: object, encodings: object) -> None:
    if isinstance(source, type) or not isinstance(source, Source):
        raise InvalidParameter(f"source: connector, list and read are required, {type(source).__name__} lacks one")
    checked_name(source.connector, "connector")
    if not isinstance(policy, Policy) or not isinstance(encodings, Encodings):
        given = f"{type(policy).__name__} and {type(encodings).__name__}"
        raise InvalidParameter(f"policy, encodings: Policy and Encodings are required, {given} given")


def _wishes(restore: Collection[str], restore_all: bool, confirm_deletions: int) -> Wishes:
    if type(restore_all) is not bool or type(confirm_deletions) is not int or confirm_deletions < 0:
        raise InvalidParameter("restore_all: a boolean, confirm_deletions: a number from 0 is required, another given")
    if isinstance(restore, str) or not all(isinstance(name, str) for name in restore):
        raise InvalidParameter("restore: paths are required, another value given")
    return Wishes(frozenset(restore), restore_all, confirm_deletions)


def _report(tenant: str, survey: Survey, plan: Plan, outcome: Outcome | None) -> SyncReport:
    """Return the report of what became of a plan, or of the plan itself where nothing was carried out."""
    happened = outcome or Outcome(tuple(_foreseen(step, plan.stop) for step in plan.steps), (), 0)
    return SyncReport(
        tenant=tenant,
        connector=survey.connector,
        dry_run=outcome is None,
        steps=happened.steps,
        refused=tuple(sorted([*plan.refused, *happened.refused], key=lambda item: item.path)),
        skipped=survey.skipped,
        kept=plan.kept,
        unchanged=plan.unchanged,
        others=plan.others,
        chunks=happened.chunks,
        stop=plan.stop,
    )


def _foreseen(step: Step, stop: str | None) -> Step:
    return step if stop is None or step.kind == "tighten" else replace(step, state="stopped")


def listed(source: Source) -> Listing:
    """Return the listing of a source; one that holds no file is `source_listing_incomplete` (SYN-4).

    An empty folder is what a volume that is not mounted looks like.
    """
    listing = listing_of(source)
    if not listing.items and not listing.unlisted:
        raise SourceListingIncomplete("one file or more is required, the listing is empty; nothing is deleted")
    return listing


@dataclass(frozen=True, slots=True)
class _Asked:
    """What the caller gave."""

    source: Source
    policy: Policy
    encodings: Encodings
    wishes: Wishes
    progress: Progress

    def planned(self, stored: Sequence[DocumentStatus]) -> tuple[Survey, Plan]:
        """Return what there is and what is to be done; what a plan deletes, a second listing lacks too (SYN-4)."""
        listing = listed(self.source)
        survey = self._surveyed(listing, stored)
        self._check_restore(survey)
        plan = make_plan(survey, stored, self.policy, self.wishes)
        if plan.deletes and not self._settled(listing):
            survey = replace(survey, settled=False)
            plan = make_plan(survey, stored, self.policy, self.wishes)
        return survey, plan

    def _settled(self, listing: Listing) -> bool:
        # A file that was moved while the folder was walked can be missing from every place where it was looked for.
        try:
            again = listed(self.source)
        except SourceListingIncomplete:
            return False
        return not again.unlisted and set(again.items) <= set(listing.items)

    def _surveyed(self, listing: Listing, stored: Sequence[DocumentStatus]) -> Survey:
        known = {status.doc_id: status for status in stored}
        files = []
        for number, item in enumerate(listing.items, 1):
            files.append(examined(self.source, item, self.encodings, known))
            self.progress(Tick("read", number, len(listing.items), 0, item.path))
        return Survey(self.source.connector, tuple(files), listing.skipped, listing.unlisted, settled=True)

    def _check_restore(self, survey: Survey) -> None:
        there = {file.item.path for file in survey.files}
        there |= {file.claims if isinstance(file, Unusable) else file.doc_id for file in survey.files}
        unknown = len(self.wishes.restore - there)
        if unknown:
            raise InvalidParameter(f"restore: paths of listed files are required, {unknown} given that are none")
