"""What a training would take on GPUs that are not here: what fits, what a step takes, what is slow, what it costs.

Each way to train (as the settings say, with activations computed again, with an adapter, …) is an estimate of its own.
The invariant: nothing is downloaded, loaded or started; a figure that cannot be known is None, never 0.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from concertino_train.config.config import TrainConfig, load_config

from .estimate import REACHED, ModelShape, estimate, shape_of, size_text
from .gpus import GPUS, Gpu

USABLE = 0.92
"""Share of a GPU's memory for weights and data; the rest is the driver's, the libraries', and gaps between blocks."""
BANDWIDTH_REACHED = 0.5
"""Share of a GPU's bandwidth that decoding usually reaches."""
SLOW = 0.6
"""Share of a step from which on a part is called slow."""
WAYS: dict[str, tuple[str, ...]] = {
    "as the settings say": (),
    "activations computed again": ("trainer.gradient_checkpointing=true",),
    "an adapter": ("model.adapter={rank: 16}",),
    "an adapter, activations again": ("model.adapter={rank: 16}", "trainer.gradient_checkpointing=true"),
    "the same, one row at a time": (
        *("model.adapter={rank: 16}", "trainer.gradient_checkpointing=true"),
        *("trainer.rl.micro_batch=1", "trainer.sft.micro_batch=1", "rollout.batch=8"),
    ),
}


@dataclass(frozen=True)
class Way:
    """One way to train.

    Attributes:
        name: what differs from the settings; `overrides` says it on a command line.
        memory: bytes on each GPU; None where unknown.
        fits: whether that is within `USABLE` of a GPU; None where unknown.
        sample_seconds, update_seconds: of a step, calls not counted; None where unknown. A step of supervised learning
            samples nothing.
        sample_rate, update_rate: tokens per second on all GPUs together.
        usd: of a step; None without a price.
    """

    name: str
    overrides: tuple[str, ...]
    memory: int | None
    fits: bool | None
    sample_seconds: float | None
    update_seconds: float | None
    sample_rate: float | None
    update_rate: float | None
    usd: float | None

    @property
    def seconds(self) -> float | None:
        """Of a step, calls not counted."""
        if self.sample_seconds is None or self.update_seconds is None:
            return None
        return self.sample_seconds + self.update_seconds


@dataclass(frozen=True)
class GpuPlan:
    """What a training would take.

    Attributes:
        count, gpu: the GPUs.
        hourly: $ of one GPU for an hour; None where not given.
        steps: of the training; 0 where the settings do not say.
        ways: those that were looked at, the closest to the settings first.
        notes: what the figures rest on, and what will be slow.
    """

    count: int
    gpu: Gpu
    hourly: float | None
    steps: int
    ways: tuple[Way, ...]
    notes: tuple[str, ...]

    @property
    def chosen(self) -> Way | None:
        """The first way that fits; None where none does, or nobody knows."""
        return next((way for way in self.ways if way.fits), None)

    def to_json(self) -> dict[str, Any]:
        """Plain JSON data."""
        ways = [{**asdict(way), "seconds": way.seconds} for way in self.ways]
        chosen = self.chosen.name if self.chosen else None
        return {**asdict(self), "ways": ways, "chosen": chosen}

    def lines(self) -> Iterator[str]:
        """For people."""
        usable = int(self.gpu.memory * USABLE)
        yield f"{self.count} x {self.gpu.name}: {size_text(usable)} usable of {size_text(self.gpu.memory)} each"
        yield f"{'':<30}  {'memory':>11}  {'fits':<4}  {'sampling':>12}  {'update':>12}  {'a step':>8}  {'$':>8}"
        for way in self.ways:
            fits = {True: "yes", False: "no", None: "?"}[way.fits]
            rates = (_rate(way.sample_rate), _rate(way.update_rate))
            costs = (_text(way.seconds, " s"), _text(way.usd, ""))
            yield (
                f"{way.name:<30}  {size_text(way.memory):>11}  {fits:<4}  {rates[0]:>12}  {rates[1]:>12}  "
                f"{costs[0]:>8}  {costs[1]:>8}"
            )
        if (chosen := self.chosen) is not None:
            if self.steps and chosen.seconds is not None:
                money = "" if chosen.usd is None else f", $ {chosen.usd * self.steps:,.0f}"
                yield f"{self.steps:,} steps take {chosen.seconds * self.steps / 3600:,.1f} h without calls{money}"
            if chosen.overrides:
                yield f"to train so, add: {' '.join(repr(each) if ' ' in each else each for each in chosen.overrides)}"
        elif any(way.fits is False for way in self.ways):
            yield "DOES NOT FIT: each GPU holds the whole model; take a larger GPU, a smaller model or shorter contexts"
        for note in self.notes:
            yield f"note: {note}"


def plan_training(
    source: str, overrides: Sequence[str], work: str, gpus: tuple[int, Gpu], hourly: float | None = None
) -> GpuPlan:
    """Look at every way to train.

    Args:
        source: a settings file, or the name of a recipe.
        overrides: `KEY=VALUE`.
        work: `rl` or `sft`.
        gpus: how many of which.
        hourly: $ of one GPU for an hour.

    Raises:
        UsageError: the settings cannot be read, or name no model.
    """
    count, gpu = gpus
    machine = [f"trainer.processes={count}"]
    if gpu.name in GPUS:
        machine += ["trainer.device=cuda", "trainer.precision=bfloat16"]
    ways: list[Way] = []
    notes: list[str] = []
    seen: list[TrainConfig] = []
    for name, changes in WAYS.items():
        more = tuple(each for each in changes if not (seen and seen[0].model.adapter and "adapter" in each))
        config = load_config(source, [*overrides, *machine, *more])
        if config in seen:  # the settings say it already
            continue
        seen.append(config)
        told: list[str] = []
        ways.append(_way(name, more, config, work, gpus, hourly, told))
        notes = notes or told
    trainer = seen[0].trainer
    steps = (trainer.sft.steps or 0) if work == "sft" else trainer.rl.steps
    found = GpuPlan(count, gpu, hourly, steps, tuple(ways), ())
    return replace(found, notes=(*notes, *_told(found, work)))


def _way(
    name: str,
    overrides: tuple[str, ...],
    config: TrainConfig,
    work: str,
    gpus: tuple[int, Gpu],
    hourly: float | None,
    notes: list[str],
) -> Way:
    count, gpu = gpus
    found = estimate(config, work, rate=gpu.rate)
    notes += found.notes
    memory = found.memory.total if found.memory.activations is not None else None
    fits = None if memory is None else memory <= gpu.memory * USABLE
    shape = shape_of(config, [])
    if shape is None:
        return Way(name, overrides, memory, fits, None, None, None, None, None)
    rate = REACHED * gpu.rate * count
    if work == "sft":
        sampling, sampled, learned = 0.0, 0, found.tokens
        update = 6.0 * shape.parameters * learned / rate
    else:
        sampled = found.tokens
        learned = found.rollouts * (found.prompt_tokens + config.rollout.total_tokens)
        sampling = _sampling_seconds(config, shape, gpus, found.rollouts, found.prompt_tokens)
        # An adapter has no gradients of the weights below it: two passes in place of three.
        passes = 2 + (4 if config.model.adapter is not None else 6) * config.trainer.rl.iterations
        update = float(passes) * shape.parameters * learned / rate
    if config.trainer.gradient_checkpointing:
        update *= 4 / 3
    usd = None if hourly is None else hourly * count * (sampling + update) / 3600
    rates = (sampled / sampling if sampling else None, learned / update if update else None)
    return Way(name, overrides, memory, fits, sampling, update, *rates, usd)


def _sampling_seconds(
    config: TrainConfig, shape: ModelShape, gpus: tuple[int, Gpu], rollouts: int, prompt: int
) -> float:
    """Of a step. Each decoding step reads all weights once, and the keys and values of every context."""
    count, gpu = gpus
    own = math.ceil(rollouts / count)
    batch = min(own, config.rollout.batch or own)
    context = prompt + config.rollout.total_tokens / 2
    cached = 2 * 2 * (shape.layers or 0) * (shape.key_values or 0) * context
    read = (2 * shape.parameters + batch * cached) / (BANDWIDTH_REACHED * gpu.bandwidth)
    computed = 2.0 * shape.parameters * batch / (REACHED * gpu.rate)
    waves = math.ceil(own / batch)
    first = 2.0 * shape.parameters * prompt * own / (REACHED * gpu.rate)
    return waves * config.rollout.total_tokens * max(read, computed) + first


def _told(plan: GpuPlan, work: str) -> Iterator[str]:
    """What the figures rest on, and what will be slow."""
    yield (
        f"{REACHED:.0%} of the dense bfloat16 rate and {BANDWIDTH_REACHED:.0%} of the bandwidth are assumed; time of "
        "calls is not counted; every rollout is taken to use all its tokens"
    )
    way = plan.chosen or plan.ways[0]
    if work == "rl" and way.seconds and way.sample_seconds is not None:
        share = way.sample_seconds / way.seconds
        if share >= SLOW:
            yield (
                f"sampling takes {share:.0%} of a step: a larger rollout.batch reads the weights less often, and "
                "rollout.backend=vllm keeps the batch full"
            )
    if plan.count > 1:
        yield f"each of the {plan.count} GPUs holds the whole model; they share the rollouts and rows of a step"
    if plan.hourly is None:
        yield "$ are unknown: give the price of one GPU for an hour, such as --hourly 3.5"


def _rate(value: float | None) -> str:
    return "unknown" if value is None else f"{value:,.0f} tok/s"


def _text(value: float | None, unit: str) -> str:
    return "unknown" if value is None else f"{value:,.0f}{unit}" if value >= 10 else f"{value:.2g}{unit}"
