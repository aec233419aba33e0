"""A plan carried out, each step in its own transaction, by compare and swap on what the plan was made from (SYN-7).

A step that is refused takes the later steps of its document with it: a text is not written while a right that should be
gone is still there, and a right is not given to a text that was not written (POL-3).
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

from kbretrieval.errors import (
    DeletionsNeedConfirmation,
    EncoderUnavailable,
    KBError,
    ModelHashMismatch,
    ModelMissing,
    SourceChanged,
    StoreError,
)
from kbretrieval.index import Index
from kbretrieval.model.files import sha256_of
from kbretrieval.projection import digest
from kbretrieval.sync.encodings import Encodings
from kbretrieval.sync.examining import Refusal
from kbretrieval.sync.origin import provenance_of
from kbretrieval.sync.plan import Plan, Step
from kbretrieval.sync.source import Source, bytes_of

# These say nothing about one document: the next would meet them too.
_ENDING = (StoreError, ModelMissing, ModelHashMismatch, EncoderUnavailable)


@dataclass(frozen=True, slots=True)
class Tick:
    """How far a run is: `done` of `total` files read or steps taken, and chunks written so far."""

    phase: Literal["read", "write"]
    done: int
    total: int
    chunks: int
    path: str


Progress = Callable[[Tick], object]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a plan: its steps with their states, what was refused on the way, chunks written."""

    steps: tuple[Step, ...]
    refused: tuple[Refusal, ...]
    chunks: int


@dataclass(frozen=True, slots=True)
class Execution:
    """Where the steps of a plan are carried out, and from what."""

    index: Index
    tenant: str
    source: Source
    encodings: Encodings

    def carry_out(self, plan: Plan, progress: Progress) -> Outcome:
        """Return what became of every step.

        Raises `deletions_need_confirmation` after the steps that take rights away, before anything else; and the
        refusals of the store and of a missing model, wherever they come. What is done by then stays done.
        """
        steps: list[Step] = []
        refused: dict[str, Refusal] = {}
        chunks = 0
        for step in plan.steps:
            if plan.stop is not None and step.kind != "tighten":
                raise DeletionsNeedConfirmation(plan.stop)
            try:
                if step.doc_id not in refused:
                    chunks += self._carried_out(step, plan)
                steps.append(replace(step, state="withheld" if step.doc_id in refused else "done"))
            except _ENDING:
                raise
            except KBError as error:
                refused[step.doc_id] = Refusal(step.path, step.doc_id, error.code, error.facts)
                steps.append(replace(step, state="refused", code=error.code))
            progress(Tick("write", len(steps), len(plan.steps), chunks, step.path))
        return Outcome(tuple(steps), tuple(refused.values()), chunks)

    def _carried_out(self, step: Step, plan: Plan) -> int:
        """Do one step and return how many chunks it wrote."""
        if step.kind in ("tighten", "loosen"):
            self.index.set_acl(self.tenant, step.doc_id, list(step.acl or ()), step.acl_revision - 1)
            return 0
        if step.kind == "delete":
            self.index.delete(self.tenant, step.doc_id, step.revision)
            return 0
        file = plan.files[step.doc_id]
        raw = bytes_of(self.source, file.item)
        text = self.encodings.decoded(raw, file.item.path)
        if digest(text) != file.source_sha256:
            raise SourceChanged("the file that was planned for is required, it has changed since")
        result = self.index.upsert(
            self.tenant,
            step.doc_id,
            step.revision,
            file.item.format,
            text,
            list(step.acl or ()),
            restore=step.kind == "restore",
            provenance=provenance_of(file, self.source.connector, sha256_of(raw)),
        )
        return result.chunks
