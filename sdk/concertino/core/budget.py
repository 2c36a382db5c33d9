"""Budgets: how much a run may use, as a value. The executor's ledger enforces them (`concertino.executor`)."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any, NamedTuple

from .errors import BudgetError
from .usage import is_amount

UNLIMITED = float("inf")
_WHOLE = ("rounds", "parallel", "calls", "tokens")
"""Limits that are counts, and so whole numbers."""


class Amount(NamedTuple):
    """A quantity in the four currencies that a ledger keeps."""

    calls: float = 0.0
    units: float = 0.0
    usd: float = 0.0
    tokens: float = 0.0


ZERO = Amount()


@dataclass(frozen=True, slots=True)
class Budget:
    """How much a run may use; `None` leaves a currency unlimited.

    Args:
        rounds: turns of the orchestrator that may call something.
        parallel: calls in one round.
        calls: calls of tools and agents together, sub-calls included.
        units: cost units (ParaManager).
        usd: $, for everything: tools, agents, models, the orchestrator itself.
        tokens: input and output tokens of all models together.
        seconds: wall time of the run.

    Raises:
        BudgetError: a value that is not a number >= 0, or a number of rounds or seconds that allows nothing.
    """

    rounds: int | None = None
    parallel: int | None = None
    calls: int | None = None
    units: float | None = None
    usd: float | None = None
    tokens: int | None = None
    seconds: float | None = None

    def __post_init__(self) -> None:
        for name, value in self.to_json().items():
            if not is_amount(value):
                raise BudgetError(f"budget {name}={value!r}: expected a number >= 0")
            if name in _WHOLE and value != int(value):
                raise BudgetError(f"budget {name}={value!r}: expected a whole number")
            if value == 0 and name in ("rounds", "parallel", "seconds"):
                raise BudgetError(f"budget {name}=0 allows nothing; leave it out for no limit")

    @classmethod
    def parse(cls, text: str) -> Budget:
        """Read `usd=0.5,seconds=60,calls=20`, as the command line gives it."""
        values: dict[str, Any] = {}
        known = [field.name for field in fields(cls)]
        for part in filter(None, (p.strip() for p in text.split(","))):
            name, equals, number = (piece.strip() for piece in part.partition("="))
            if name not in known or not equals:
                raise BudgetError(f"budget part {part!r}: expected NAME=NUMBER with NAME one of {', '.join(known)}")
            try:
                values[name] = int(number) if name in _WHOLE else float(number)
            except ValueError:
                raise BudgetError(f"budget {name}={number!r}: expected a number") from None
        return cls(**values)

    def to_json(self) -> dict[str, Any]:
        """The limits that are set."""
        return {name: value for name in self.__slots__ if (value := getattr(self, name)) is not None}

    def limits(self) -> Amount:
        """The four currencies, infinity where there is no limit."""
        chosen = (self.calls, self.units, self.usd, self.tokens)
        return Amount(*[UNLIMITED if value is None else float(value) for value in chosen])

    def whole(self, rounds: int) -> dict[str, float]:
        """What is left at the start of each limit that is set. `rounds` counts where the budget limits rounds."""
        amounts = {name: getattr(self, name) for name in ("calls", "units", "usd", "tokens", "seconds")}
        if self.rounds is not None:
            amounts = {"rounds": rounds, **amounts}
        whole = ("rounds",)
        return {
            name: value if name in whole else round(float(value), 4)
            for name, value in amounts.items()
            if value is not None
        }

    def with_(self, **changes: Any) -> Budget:
        """A copy with some limits changed."""
        return replace(self, **changes)
