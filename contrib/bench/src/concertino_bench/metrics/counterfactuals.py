"""Whether a system's choice follows what is written of the members.

Of two runs of one task, one over the pool as it is and one over a changed pool: do both call the same member first?
With the order reversed a choice that is read stays. With the descriptions permuted it goes to the member with
the description that was chosen before.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from concertino_bench.tasks.item import Item
from concertino_bench.tasks.system import COUNTERFACTUALS, Counterfactual


class Followed(NamedTuple):
    """How often a system's first choice was the same.

    Attributes:
        system: its name.
        change: of the pool.
        same: items whose first call chose the same description as without the change.
        items: that had a first call both times.
    """

    system: str
    change: Counterfactual
    same: int
    items: int

    def line(self) -> str:
        """For people."""
        said = "stays the same" if self.change == "order reversed" else "follows the description"
        return f"{self.system}: {self.change}, the first choice {said} in {self.same} of {self.items}"


def followed(items: Sequence[Item]) -> Iterator[Followed]:
    """For each system that was run with a change too: how often its choice followed."""
    first = {item.key: item.first for item in items if item.first}
    for system in dict.fromkeys(item.key.system for item in items):
        for change in COUNTERFACTUALS:
            changed = {key: chosen for key, chosen in first.items() if key.system == f"{system}, {change}"}
            pairs = [(chosen, first.get(key._replace(system=system))) for key, chosen in changed.items()]
            both = [(chosen, plain) for chosen, plain in pairs if plain]
            if both:
                yield Followed(system, change, sum(one == other for one, other in both), len(both))
