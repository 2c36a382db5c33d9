"""What all simulated programs share: a first state, answers, and what is read from the published programs.

The invariant: the configuration that a program is made from is never changed by its calls.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any, ClassVar

from .published import NOTHING, Published

State = dict[str, Any]


class Machine:
    """One simulated program. Its functions are its methods `on_<name>`, in small letters: `startEngine` is
    `on_start_engine`.

    Args:
        config: what of its state differs from `first`.
        published: what is read from the published programs.
    """

    first: ClassVar[Mapping[str, Any]] = {}

    def __init__(self, config: Mapping[str, Any], published: Published = NOTHING) -> None:
        given = {key: copy.deepcopy(value) for key, value in config.items() if key in self.first}
        self.kept: State = {**copy.deepcopy(dict(self.first)), **given}
        self.published = published

    def state(self) -> State:
        """What counts of its state."""
        return self.kept

    def longer(self, name: str, *, otherwise: Any) -> Any:
        """The published constant that makes an answer long; `otherwise` where answers are short."""
        return self.published.constant(name) if self.published.long else otherwise


def error(text: str) -> State:
    """The answer to a call that is refused."""
    return {"error": text}
