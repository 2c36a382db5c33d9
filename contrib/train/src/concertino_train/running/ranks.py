"""Which of several processes this is, before any of them has said hello to the others."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, NamedTuple


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
        """Whether it is the one that writes and speaks."""
        return self.rank == 0


def this_rank() -> Rank:
    """As accelerate and torchrun tell it."""
    return Rank(int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1")))


def anywhere(accelerator: Any) -> Callable[[bool], bool]:
    """A function that says whether something is true on any rank; all ranks have to call it together."""
    if accelerator.num_processes == 1:
        return bool

    def everyone(here: bool) -> bool:
        from accelerate.utils import gather_object  # type: ignore[import-untyped]

        return any(gather_object([bool(here)]))

    return everyone
