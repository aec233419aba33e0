"""What a run did, or would do (SYN-8, SYN-9): frozen, exportable, the same form for both."""

from dataclasses import dataclass
from typing import ClassVar

from kbretrieval.errors import DeletionsNeedConfirmation, KBError, SomeItemsRefused
from kbretrieval.results import Exported
from kbretrieval.sync.examining import Refusal
from kbretrieval.sync.plan import Kept, Step
from kbretrieval.sync.source import Skipped


@dataclass(frozen=True, slots=True)
class SyncReport(Exported):
    """The outcome of one run.

    `steps` are in the order of the run, each with its state: planned (a dry run), done, refused (with the code),
    withheld (an earlier step of its document was refused) or stopped (the run would end before it, `stop` says why).
    `refused` names every file or folder that was refused, `kept` the documents that the listing lacks without proving
    that they are gone. `unchanged` counts files with no step, `others` live documents of the tenant that came from
    elsewhere and were left alone. `chunks` counts the chunks of written contents: each one is encoded, unless a live
    chunk had its text already.
    """

    SCHEMA: ClassVar[str] = "kbretrieval.sync/1"

    tenant: str
    connector: str
    dry_run: bool
    steps: tuple[Step, ...]
    refused: tuple[Refusal, ...]
    skipped: tuple[Skipped, ...]
    kept: tuple[Kept, ...]
    unchanged: int
    others: int
    chunks: int
    stop: str | None

    def refusal(self) -> KBError | None:
        """Return what a command ends with: `deletions_need_confirmation`, `some_items_refused`, or None (SYN-5)."""
        if self.stop is not None:
            return DeletionsNeedConfirmation(self.stop)
        if self.refused:
            return SomeItemsRefused(f"no item may be refused, {len(self.refused)} were; the others are done")
        return None
