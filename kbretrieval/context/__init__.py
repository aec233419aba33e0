"""Task contexts: which material was a task allowed to use, and which did it really use?

`TaskContexts(index)` stands on an index, in the same file. A task is authorised (`authorize_scope`), looks around
(`search`, `read`), assembles (`assemble`), freezes (`freeze`) and delivers (`deliver`); afterwards what it used can be
read again (`replay`) and checked (`check_dependencies`). Each step asks the store again: a scope, a package and a
snapshot are vouchers, like hits.

Example:
    >>> with rehearsal() as (tasks, alice):
    ...     scope = tasks.authorize_scope(alice, task="T-7", purpose="answering", selection=Selection(["policies"]))
    ...     snapshot = tasks.freeze(scope, tasks.assemble(scope, must_read=["refund"], optional=["leave"]))
    ...     print(tasks.replay(snapshot.id, alice).valid_now, len(snapshot.items))
    True 2
"""

from kbretrieval.context.account import Account, Call
from kbretrieval.context.arms import ARMS
from kbretrieval.context.budget import Budget
from kbretrieval.context.delivery import Consumption, Receipt
from kbretrieval.context.dependencies import Dependency, Report
from kbretrieval.context.generations import Generation
from kbretrieval.context.ledger import PreferenceLedger
from kbretrieval.context.listing import Listing, Summary
from kbretrieval.context.package import Item, Omitted, Package
from kbretrieval.context.policy import Policy, PolicyVersion, Role
from kbretrieval.context.preferences import (
    Counts,
    Placed,
    PreferenceReceipt,
    Reranked,
    Signal,
    rerank_by_preference,
)
from kbretrieval.context.publication import Publication
from kbretrieval.context.questions import Answers, Asked, Question, separate_answers
from kbretrieval.context.reading import Fragment
from kbretrieval.context.rehearsal import rehearsal
from kbretrieval.context.replay import Inspected, Replay
from kbretrieval.context.scope import Binding, Bound, Refused, Scope
from kbretrieval.context.sealed import Material, Seal, SealedCase, Stretch, open_material, seal_from, seal_material
from kbretrieval.context.search import Found, Left, Row
from kbretrieval.context.selection import Piece, Selection
from kbretrieval.context.snapshots import Part, Snapshot
from kbretrieval.context.tasks import TaskContexts
from kbretrieval.context.weights import Weights, weights_of

__all__ = [
    "ARMS",
    "Account",
    "Answers",
    "Asked",
    "Binding",
    "Bound",
    "Budget",
    "Call",
    "Consumption",
    "Counts",
    "Dependency",
    "Found",
    "Fragment",
    "Generation",
    "Inspected",
    "Item",
    "Left",
    "Listing",
    "Material",
    "Omitted",
    "Package",
    "Part",
    "Piece",
    "Placed",
    "Policy",
    "PolicyVersion",
    "PreferenceLedger",
    "PreferenceReceipt",
    "Publication",
    "Question",
    "Receipt",
    "Refused",
    "Replay",
    "Report",
    "Reranked",
    "Role",
    "Row",
    "Scope",
    "Seal",
    "SealedCase",
    "Selection",
    "Signal",
    "Snapshot",
    "Stretch",
    "Summary",
    "TaskContexts",
    "Weights",
    "open_material",
    "rehearsal",
    "rerank_by_preference",
    "seal_from",
    "seal_material",
    "separate_answers",
    "weights_of",
]
