"""One small class per refusal (ERR-1).

Every error that leaves the package is a `KBError`. Its `code` is stable and lower case, its message begins with the
code and then gives both facts ("ACL revision 1 given, 2 stored"). A message never holds document text, query text or
a secret. The class attribute `exit_status` is what the command line returns; `code_table()` lists all of them.

| exit status | meaning |
|---|---|
| 2 | the input was refused before any work |
| 3 | a run ended with some items refused, the others done |
| 4 | the stored state does not allow it (stale, conflicting, deleted) |
| 5 | no trusted context |
| 6 | the store (busy, full, damaged, closed, not ours) |
| 7 | the encoder or its model |

Example:
    >>> str(StaleAclRevision("ACL revision 1 given, 2 stored"))
    'stale_acl_revision: ACL revision 1 given, 2 stored'
"""

from collections.abc import Iterator
from dataclasses import dataclass

from kbretrieval.errors.base import (
    BadValue,
    EncoderError,
    KBError,
    StateConflict,
    StoreError,
)
from kbretrieval.errors.contexts import (
    ContextAccessWithdrawn,
    ContextAclChanged,
    ContextAnswerExposed,
    ContextArmUnfilled,
    ContextBindingChanged,
    ContextBindingWithdrawn,
    ContextBudgetExhausted,
    ContextBudgetInvalid,
    ContextCursorInvalid,
    ContextFieldRemoved,
    ContextGenerationAltered,
    ContextGenerationForeign,
    ContextGenerationStale,
    ContextGenerationUnfinished,
    ContextInputInvalid,
    ContextMustReadMissing,
    ContextNotReleased,
    ContextOutOfScope,
    ContextPackageAltered,
    ContextPayloadMismatch,
    ContextPolicyInvalid,
    ContextPolicyReauthRequired,
    ContextRevisionChanged,
    ContextSchemaUnsupported,
    ContextScopeAltered,
    ContextScopeNotNarrower,
    ContextSealAltered,
    ContextSnapshotDamaged,
    ContextSourceDeleted,
    ContextTooLarge,
    ContextUnknown,
    SourcePurged,
)
from kbretrieval.errors.inputs import (
    BoundedQueryRequired,
    DuplicateIdentity,
    ExplicitAclListRequired,
    ExplicitRestoreBooleanRequired,
    FixtureHashMismatch,
    HitsListRequired,
    InvalidAnswerLimit,
    InvalidChunkWindow,
    InvalidCommandLine,
    InvalidEncoder,
    InvalidFixture,
    InvalidFrontMatter,
    InvalidHit,
    InvalidIdentity,
    InvalidJson,
    InvalidObservationLog,
    InvalidParameter,
    InvalidPath,
    InvalidPolicy,
    InvalidProvenance,
    InvalidSearchOptions,
    InvalidText,
    JsonTooDeep,
    PositiveAclRevisionRequired,
    PositiveRevisionRequired,
    SourceListingIncomplete,
    SourceTooLarge,
    SourceUnreadable,
    TextRequired,
    TooManyHits,
    UnsupportedEncoding,
    UnsupportedFormat,
    UnsupportedJsonSection,
    UnsupportedJsonShape,
)
from kbretrieval.errors.states import (
    AccessViolation,
    ClaimFailed,
    ContractChanged,
    DeletedDocumentRequiresExplicitRestore,
    DeleteRequiresNewRevision,
    DeletionsNeedConfirmation,
    DocumentNotLive,
    DocumentOfAnotherSource,
    SomeItemsRefused,
    SourceChanged,
    StaleAclRevision,
    StaleOrConflictingRevision,
    TrustedContextRequired,
)
from kbretrieval.errors.stores import (
    Busy,
    EncoderFailed,
    EncoderResultCountMismatch,
    EncoderUnavailable,
    IndexClosed,
    IndexCorrupt,
    IndexForked,
    IndexMissing,
    IndexReadOnly,
    IndexReplaced,
    InvalidEmbeddingOutput,
    JournalModeUnsafe,
    ModelHashMismatch,
    ModelMissing,
    NotAnIndex,
    StorageFull,
    StorageIOError,
)

__all__ = [
    "AccessViolation",
    "BadValue",
    "BoundedQueryRequired",
    "Busy",
    "ClaimFailed",
    "CodeRow",
    "ContextAccessWithdrawn",
    "ContextAclChanged",
    "ContextAnswerExposed",
    "ContextArmUnfilled",
    "ContextBindingChanged",
    "ContextBindingWithdrawn",
    "ContextBudgetExhausted",
    "ContextBudgetInvalid",
    "ContextCursorInvalid",
    "ContextFieldRemoved",
    "ContextGenerationAltered",
    "ContextGenerationForeign",
    "ContextGenerationStale",
    "ContextGenerationUnfinished",
    "ContextInputInvalid",
    "ContextMustReadMissing",
    "ContextNotReleased",
    "ContextOutOfScope",
    "ContextPackageAltered",
    "ContextPayloadMismatch",
    "ContextPolicyInvalid",
    "ContextPolicyReauthRequired",
    "ContextRevisionChanged",
    "ContextSchemaUnsupported",
    "ContextScopeAltered",
    "ContextScopeNotNarrower",
    "ContextSealAltered",
    "ContextSnapshotDamaged",
    "ContextSourceDeleted",
    "ContextTooLarge",
    "ContextUnknown",
    "ContractChanged",
    "DeleteRequiresNewRevision",
    "DeletedDocumentRequiresExplicitRestore",
    "DeletionsNeedConfirmation",
    "DocumentNotLive",
    "DocumentOfAnotherSource",
    "DuplicateIdentity",
    "EncoderError",
    "EncoderFailed",
    "EncoderResultCountMismatch",
    "EncoderUnavailable",
    "ExplicitAclListRequired",
    "ExplicitRestoreBooleanRequired",
    "FixtureHashMismatch",
    "HitsListRequired",
    "IndexClosed",
    "IndexCorrupt",
    "IndexForked",
    "IndexMissing",
    "IndexReadOnly",
    "IndexReplaced",
    "InvalidAnswerLimit",
    "InvalidChunkWindow",
    "InvalidCommandLine",
    "InvalidEmbeddingOutput",
    "InvalidEncoder",
    "InvalidFixture",
    "InvalidFrontMatter",
    "InvalidHit",
    "InvalidIdentity",
    "InvalidJson",
    "InvalidObservationLog",
    "InvalidParameter",
    "InvalidPath",
    "InvalidPolicy",
    "InvalidProvenance",
    "InvalidSearchOptions",
    "InvalidText",
    "JournalModeUnsafe",
    "JsonTooDeep",
    "KBError",
    "ModelHashMismatch",
    "ModelMissing",
    "NotAnIndex",
    "PositiveAclRevisionRequired",
    "PositiveRevisionRequired",
    "SomeItemsRefused",
    "SourceChanged",
    "SourceListingIncomplete",
    "SourcePurged",
    "SourceTooLarge",
    "SourceUnreadable",
    "StaleAclRevision",
    "StaleOrConflictingRevision",
    "StateConflict",
    "StorageFull",
    "StorageIOError",
    "StoreError",
    "TextRequired",
    "TooManyHits",
    "TrustedContextRequired",
    "UnsupportedEncoding",
    "UnsupportedFormat",
    "UnsupportedJsonSection",
    "UnsupportedJsonShape",
    "code_table",
]


@dataclass(frozen=True, slots=True)
class CodeRow:
    """One line of the table code → class → exit status."""

    code: str
    name: str
    exit_status: int
    meaning: str


def _leaves(root: type[KBError]) -> Iterator[type[KBError]]:
    # A caller's or a test's own subclass is none of the package's refusals.
    children = [child for child in root.__subclasses__() if child.__module__.startswith(__name__)]
    if not children:
        yield root
    for child in children:
        yield from _leaves(child)


def code_table() -> tuple[CodeRow, ...]:
    """Return every refusal of the package, sorted by code; generated from the classes themselves.

    Example:
        >>> [row.exit_status for row in code_table() if row.code == "busy"]
        [6]
    """
    rows = {
        leaf.code: CodeRow(leaf.code, leaf.__name__, leaf.exit_status, (leaf.__doc__ or ""))
        for leaf in _leaves(KBError)
    }
    return tuple(rows[code] for code in sorted(rows))
