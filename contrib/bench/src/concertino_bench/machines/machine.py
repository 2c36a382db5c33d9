"""What all simulated programs share: a first state, and answers.

The invariant: the configuration that a program is made from is never changed by its calls.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any, ClassVar

State = dict[str, Any]


class Machine:
    """One simulated program. Its functions are its methods `on_<name>`, in small letters: `startEngine` is
    `on_start_engine`.

    Args:
        config: what of its state differs from `first`.
    """

    first: ClassVar[Mapping[str, Any]] = {}

    def __init__(self, config: Mapping[str, Any]) -> None:
        given = {key: copy.deepcopy(value) for key, value in config.items() if key in self.first}
        self.kept: State = {**copy.deepcopy(dict(self.first)), **given}

    def state(self) -> State:
        """What counts of its state."""
        return self.kept


def error(text: str) -> State:
    """The answer to a call that is refused."""
    return {"error": text}
