"""Which of several processes this is, and what they tell each other.

`this_rank` reads the environment, so it works before the processes have found each other; the others use accelerate.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

T = TypeVar("T")


class Rank(NamedTuple):
    """This process among those of a distributed training.

    Attributes:
        rank: its number, from 0.
        ranks: how many there are.
    """

    rank: int = 0
    ranks: int = 1

    @property
    def leads(self) -> bool:
        """Whether it is the one that writes and reports."""
        return self.rank == 0


def this_rank() -> Rank:
    """As accelerate and torchrun say."""
    # Both launchers set these before a process starts, so no group has to be formed to know them.
    return Rank(int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1")))


def gathered(value: T) -> list[T]:
    """The values of all ranks; all of them have to call it together."""
    # `gather_object` joins lists, so each rank gives a list of one.
    found: list[T] = _accelerate("accelerate.utils").gather_object([value])
    return found


def wait_for_everyone() -> None:
    """Wait until all ranks are here."""
    if this_rank().ranks > 1:
        _accelerate("accelerate").PartialState().wait_for_everyone()


def anywhere(ranks: int) -> Callable[[bool], bool]:
    """A function that says whether something is true on any rank; all ranks have to call it together."""
    return bool if ranks == 1 else lambda here: any(gathered(bool(here)))


def _accelerate(module: str) -> Any:
    """A module of accelerate, which imports torch and has no type annotations."""
    return importlib.import_module(module)
