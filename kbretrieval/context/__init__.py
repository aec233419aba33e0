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
from kbretrieval.context.budget import Budget
from kbretrieval.context.delivery import Consumption, Receipt
from kbretrieval.context.dependencies import Dependency, Report
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
from kbretrieval.context.reading import Fragment
from kbretrieval.context.rehearsal import rehearsal
from kbretrieval.context.replay import Inspected, Replay
from kbretrieval.context.scope import Binding, Bound, Refused, Scope
from kbretrieval.context.search import Found, Left, Row
from kbretrieval.context.selection import Piece, Selection
from kbretrieval.context.snapshots import Part, Snapshot
from kbretrieval.context.tasks import TaskContexts
from kbretrieval.context.weights import Weights, weights_of

__all__ = [
    "Account",
    "Binding",
    "Bound",
    "Budget",
    "Call",
    "Consumption",
    "Counts",
    "Dependency",
    "Found",
    "Fragment",
    "Inspected",
    "Item",
    "Left",
    "Listing",
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
    "Receipt",
    "Refused",
    "Replay",
    "Report",
    "Reranked",
    "Role",
    "Row",
    "Scope",
    "Selection",
    "Signal",
    "Snapshot",
    "Summary",
    "TaskContexts",
    "Weights",
    "rehearsal",
    "rerank_by_preference",
    "weights_of",
]
