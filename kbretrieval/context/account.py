"""The account of a task: every call is paid before it reads, refused and repeated ones too (CTX-28…CTX-30)."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, TypeVar

from kbretrieval.context.records import Spent, calls_of, insert_call, settle_call, spent_by
from kbretrieval.context.scope import Scope
from kbretrieval.errors import BadValue, ContextBudgetExhausted, ContractChanged, KBError, StateConflict
from kbretrieval.results import Exported
from kbretrieval.store.connection import Connection

REFUSAL_BYTES = 64

Made = TypeVar("Made")


@dataclass(frozen=True, slots=True)
class Call(Exported):
    """One call of a task: what it cost, and the code of its refusal; never what was read or asked."""

    SCHEMA: ClassVar[str] = "kbretrieval.context.call/1"

    id: str
    scope: str
    phase: str
    input_bytes: int
    output_tokens: int
    code: str | None


@dataclass(frozen=True, slots=True)
class Account(Exported):
    """What a task has used and has left under the budget of one scope; the calls are those of all its scopes."""

    SCHEMA: ClassVar[str] = "kbretrieval.context.account/1"

    task: str
    input_bytes: int
    input_left: int
    output_tokens: int
    output_left: int
    calls: tuple[Call, ...]


def account_of(connection: Connection, scope: Scope) -> Account:
    """Return the account of a scope's task; inside a transaction."""
    spent = spent_by(connection, scope)
    return Account(
        task=scope.task,
        input_bytes=spent.input_bytes,
        input_left=max(0, scope.budget.total_bytes - spent.input_bytes),
        output_tokens=spent.output_tokens,
        output_left=max(0, scope.budget.output_tokens - spent.output_tokens),
        calls=tuple(Call(*row[:5], row[5] or None) for row in calls_of(connection, scope)),
    )


def input_left(connection: Connection, scope: Scope) -> int:
    """Return how many bytes the task may still read under this scope."""
    return max(0, scope.budget.total_bytes - spent_by(connection, scope).input_bytes)


def attempted(
    connection: Connection, scope: Scope, phase: str, work: Callable[[], tuple[Spent, Made]]
) -> tuple[str, Made] | KBError:
    """Run `work`, which names its price, and pay it; return the call and what was made, or the refusal.

    Inside a write transaction. A refusal costs 64 bytes and is written down by its code; it is returned and not raised,
    so that the transaction keeps it, and with it whatever `work` wrote: work that writes checks its price before.
    """
    try:
        cost, made = work()
        check_left(connection, scope, cost)
    except (StateConflict, BadValue) as error:
        insert_call(connection, scope, phase, Spent(REFUSAL_BYTES, 0), error.code)
        return error
    return insert_call(connection, scope, phase, cost), made


def check_left(connection: Connection, scope: Scope, cost: Spent) -> None:
    """Raise `context_budget_exhausted` unless the task can pay a price."""
    spent, budget = spent_by(connection, scope), scope.budget
    pairs = (
        ("bytes", cost.input_bytes, budget.total_bytes - spent.input_bytes),
        ("output tokens", cost.output_tokens, budget.output_tokens - spent.output_tokens),
    )
    for what, wanted, left in pairs:
        if wanted > max(0, left):
            raise ContextBudgetExhausted(f"{wanted} {what} wanted, {max(0, left)} left to the task")


def reserved(
    connection: Connection, scope: Scope, phase: str, work: Callable[[], tuple[Spent, Made]]
) -> tuple[str, Made]:
    """Pay for `work`, which sees metadata alone, in a write transaction of its own; raise its refusal after that."""
    with connection.write():
        outcome = attempted(connection, scope, phase, work)
    if isinstance(outcome, KBError):
        raise outcome
    return outcome


def paid(connection: Connection, call_id: str, cost: int, load: Callable[[], Made]) -> Made:
    """Load what a call has paid for; a refusal there keeps the price and writes its code (CTX-29).

    Only what meets another contract than its own, after a migration, has read nothing and is run anew: that costs what
    a refusal costs.
    """
    try:
        return load()
    except KBError as error:
        spent = REFUSAL_BYTES if isinstance(error, ContractChanged) else cost
        with connection.write():
            settle_call(connection, call_id, spent, error.code)
        raise
