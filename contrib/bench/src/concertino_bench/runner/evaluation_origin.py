"""How another process makes an evaluation again that cannot be written down: by the function that made it here.

Invariant: the function is found by its name, and its arguments are plain data.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Self

from concertino import Pool, UsageError

from .evaluation import Evaluation


@dataclass(frozen=True)
class EvaluationOrigin:
    """A function that makes an evaluation and its pool, and what it is given.

    Attributes:
        module, function: its name.
        arguments: its keywords, as plain JSON data.
    """

    module: str
    function: str
    arguments: Mapping[str, Any]

    @classmethod
    def of(cls, function: Callable[..., tuple[Evaluation, Pool]], **arguments: Any) -> Self:
        """The origin of what a function of a module makes."""
        return cls(function.__module__, function.__qualname__, arguments)

    def make(self) -> tuple[Evaluation, Pool]:
        """The evaluation and its pool, made here.

        Raises:
            UsageError: the function is not here, or refuses its arguments.
        """
        try:
            function = getattr(importlib.import_module(self.module), self.function)
        except (ImportError, AttributeError):
            raise UsageError(f"not here: {self.module}:{self.function}; install the same distributions") from None
        evaluation, pool = function(**self.arguments)
        return evaluation, pool

    def to_json(self) -> dict[str, Any]:
        """Plain JSON data."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """The inverse of `to_json`."""
        return cls(**data)
