"""Strategies: the paradigms. Each is a reader and a writer around the one plan and the one executor.

_machine          the contract: Ask, Act, Done; Machine, Strategy
_parallel_rounds  ParaManager: rounds of parallel calls
_round_format     its text, read and written
_round_prompts    what the model is shown
"""

from concertino._errors import UsageError

from ._machine import Act, Ask, Brief, Done, Machine, Step, Strategy
from ._parallel_rounds import ParallelRounds

BUILT_IN: dict[str, type[Strategy]] = {ParallelRounds.name: ParallelRounds}
"""Strategies that come with the SDK, by name."""


def strategy_by_name(name: str, more: dict[str, type[Strategy]] | None = None) -> type[Strategy]:
    """A strategy class by its name; `more` are those of plugins.

    Raises:
        UsageError: no strategy of that name; names near ones.
    """
    known = {**BUILT_IN, **(more or {})}
    if name in known:
        return known[name]
    raise UsageError(f"there is no strategy {name!r}; there are {', '.join(sorted(known))}")


__all__ = [
    "BUILT_IN",
    "Act",
    "Ask",
    "Brief",
    "Done",
    "Machine",
    "ParallelRounds",
    "Step",
    "Strategy",
    "strategy_by_name",
]  # fmt: skip
