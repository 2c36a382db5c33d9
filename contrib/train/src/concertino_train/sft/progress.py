"""The progress of a fine-tuning, its result, and how much of the form was learnt."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

Evaluate = Callable[[int], "float | Mapping[str, float]"]
"""Measures the policy as it is after a step: a share, or figures by name."""


@dataclass(frozen=True)
class SftProgress:
    """How far it is.

    Attributes:
        step, steps: done, and in all.
        epoch: passes over the data so far.
        loss: mean of the trained tokens since the last report.
        learning_rate: now.
        grad_norm: before it was scaled down.
        accuracy: share of the trained tokens that were the most probable ones.
        tokens: read so far by this process group since it began, padding left out.
        seconds: since this process began.
    """

    step: int
    steps: int
    epoch: float
    loss: float
    learning_rate: float
    grad_norm: float
    accuracy: float
    tokens: int
    seconds: float


@dataclass(frozen=True)
class FineTuned:
    """The result.

    Attributes:
        model: folder of the weights; None where it was stopped, for what was half learnt is in its checkpoint.
        step, steps: done, and asked for; fewer where somebody asked it to stop.
        resumed: step that it resumed from, 0 for a new one.
        losses: by step.
        evaluations: by step, figures by name.
        rows: conversations that were learnt from.
        trained: tokens of one pass that have labels.
        dropped: conversations that were left out, by reason.
        longest: tokens of the longest row.
        padding: share of what was read that is padding.
        seconds: of this process.
    """

    model: Path | None
    step: int
    steps: int
    resumed: int
    losses: Mapping[int, float]
    evaluations: Mapping[int, Mapping[str, float]]
    rows: int
    trained: int
    dropped: Mapping[str, int] = field(default_factory=dict)
    longest: int = 0
    padding: float = 0.0
    seconds: float = 0.0

    def to_json(self) -> dict[str, Any]:
        """Plain JSON data."""
        return {**asdict(self), "model": str(self.model)}
