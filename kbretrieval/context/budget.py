"""How much a task may take: input in bytes and output in tokens, two accounts (CTX-21, CTX-28)."""

from dataclasses import dataclass, fields
from typing import ClassVar

from kbretrieval.errors import ContextBudgetInvalid
from kbretrieval.results import Exported

MAX_AMOUNT = 2**31 - 1


@dataclass(frozen=True, slots=True)
class Budget(Exported):
    """Limits of a task; the values here are the only default there is. Raises `context_budget_invalid`.

    input_bytes     the text of one assembled package, UTF-8
    call_bytes      one exploring read
    total_bytes     all reads and assemblies of the task together, refused and repeated ones included
    envelope_bytes  what a payload holds around the package: system text, tools, history, serialisation
    output_tokens   what deliveries of the task may ask for in all

    Example:
        >>> Budget(input_bytes=2_000).call_bytes
        16384
    """

    SCHEMA: ClassVar[str] = "kbretrieval.context.budget/1"

    input_bytes: int = 65_536
    call_bytes: int = 16_384
    total_bytes: int = 1_048_576
    envelope_bytes: int = 32_768
    output_tokens: int = 8_192

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if type(value) is not int or not 0 <= value <= MAX_AMOUNT:
                shown = value if type(value) is int and abs(value) < 10**12 else type(value).__name__
                raise ContextBudgetInvalid(
                    f"{field.name}: an integer from 0 to {MAX_AMOUNT} is required, {shown} given"
                )

    def excess(self, limits: "Budget") -> str | None:
        """Say in which amount this budget goes beyond another, with both numbers; None where it does not.

        Example:
            >>> Budget(call_bytes=9).excess(Budget(call_bytes=8))
            'call_bytes 9 given, 8 allowed'
        """
        for field in fields(self):
            mine, most = getattr(self, field.name), getattr(limits, field.name)
            if mine > most:
                return f"{field.name} {mine} given, {most} allowed"
        return None


DEFAULT_BUDGET = Budget()
