"""What the steps of a training took, beside what was planned for them.

Invariant: a figure is a median over steps, without the first one, which warms up.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from concertino import UsageError

from concertino_train.running.metrics import read_metrics

from .gpu_plan import Way


@dataclass(frozen=True)
class MeasuredSteps:
    """Medians over the steps of a training; None where its figures do not say.

    Attributes:
        steps: that were counted.
        seconds: of a step; sampling_seconds: of these, in the sampler; call_seconds: in calls of tools and agents.
        sampled: tokens of a step.
        sample_rate: sampled tokens per second.
    """

    steps: int
    seconds: float | None
    sampling_seconds: float | None
    call_seconds: float | None
    sampled: float | None
    sample_rate: float | None

    def to_json(self) -> dict[str, Any]:
        """Plain JSON data."""
        return asdict(self)


def read_steps(folder: Path) -> MeasuredSteps:
    """What the steps took that a training has noted in its folder.

    Raises:
        UsageError: it holds no figures of steps.
    """
    file = folder / "metrics.jsonl"
    if not file.is_file():
        raise UsageError(f"{file}: file not found; expected the output of a training, such as out/rl")
    lines = [line for line in read_metrics(file) if isinstance(line.get("seconds/rollouts"), (int, float))]
    lines = lines[1:] or lines
    if not lines:
        raise UsageError(f"{file}: no step with rollouts in it; expected the output of concertino train rl")
    names = ("seconds", "seconds/generate", "seconds/environment", "sampled", "tokens_per_second")
    return MeasuredSteps(len(lines), *(_median(lines, name) for name in names))


def _median(lines: list[dict[str, Any]], name: str) -> float | None:
    values = [line[name] for line in lines if isinstance(line.get(name), (int, float))]
    return statistics.median(values) if values else None


def compare_steps(way: Way, steps: MeasuredSteps) -> Iterator[str]:
    """Rows of a table: planned, measured, and measured over planned."""
    yield f"{f'measured, {steps.steps} steps':<30}  {'planned':>12}  {'measured':>12}  {'ratio':>6}"
    update = None
    if steps.seconds is not None and steps.sampling_seconds is not None:
        update = steps.seconds - steps.sampling_seconds - (steps.call_seconds or 0.0)
    rows = (
        ("a step without calls, s", way.seconds, _without_calls(steps)),
        ("sampling, s", way.sample_seconds, steps.sampling_seconds),
        ("sampling, tok/s", way.sample_rate, steps.sample_rate),
        ("all but sampling and calls, s", way.update_seconds, update),
    )
    for name, planned, seen in rows:
        ratio = f"{seen / planned:.2f}" if planned and seen is not None else ""
        yield f"{name:<30}  {_text(planned):>12}  {_text(seen):>12}  {ratio:>6}"
    if steps.call_seconds is not None:
        yield f"{'calls, s':<30}  {'':>12}  {_text(steps.call_seconds):>12}"


def _without_calls(steps: MeasuredSteps) -> float | None:
    return None if steps.seconds is None else steps.seconds - (steps.call_seconds or 0.0)


def _text(value: float | None) -> str:
    return "unknown" if value is None else f"{value:,.3g}"
