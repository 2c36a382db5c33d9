"""An estimate of what a training takes: memory, tokens, arithmetic, money.

These are estimates, most of them bounds; each says what it rests on. The invariant: nothing is downloaded and no weight
is loaded; what cannot be known is None and is told as unknown, never as 0.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from concertino import Pool, ToolSpec, UsageError
from concertino.strategies import Ask
from tqdm import tqdm

from concertino_train.config.named import make_strategy
from concertino_train.factories.learners import policy_names
from concertino_train.factories.models import precision_of, trains_whole
from concertino_train.factories.pools import make_pool
from concertino_train.factories.questions import Questions, evaluation_assignments
from concertino_train.micro_batch import activation_bytes

from .gpus import matrix_rate

if TYPE_CHECKING:
    from concertino_train.config.config import TrainConfig
    from concertino_train.rollouts.assignment import Assignment

GIB = 2**30
_BYTES = {"float32": 4, "bfloat16": 2, "float16": 2}
REACHED = 0.35
"""Share of the rate of a large matrix product that training usually reaches."""
_SHOWN = 20
"""Questions that are looked at."""


@dataclass(frozen=True)
class ModelShape:
    """The size of a model.

    Attributes:
        parameters: all of them.
        layers, hidden, key_values, vocabulary: of the transformer; `key_values` is heads of keys times their width.
        context: positions.
        source: where this is known from.
    """

    parameters: int
    layers: int | None = None
    hidden: int | None = None
    key_values: int | None = None
    vocabulary: int | None = None
    context: int | None = None
    source: str = ""


@dataclass(frozen=True)
class MemoryEstimate:
    """Bytes on each process; None where unknown.

    Attributes:
        parameters: of the model, a count; `trained` of these.
        weights, gradients, optimizer: of what is loaded and trained.
        activations: of one micro-batch.
        cache: keys and values of what is sampled at once.
    """

    parameters: int | None = None
    trained: int | None = None
    weights: int | None = None
    gradients: int | None = None
    optimizer: int | None = None
    activations: int | None = None
    cache: int | None = None

    @property
    def total(self) -> int | None:
        """Sum of what is known, in bytes; None where the size of the weights is not."""
        if self.weights is None:
            return None
        updating = (self.gradients or 0) + (self.optimizer or 0)
        # Sampling and updating take turns, so only the larger of the two counts.
        return self.weights + updating + max(self.activations or 0, self.cache or 0)


@dataclass(frozen=True)
class SpendingEstimate:
    """What calls of a step take.

    Attributes:
        calls: at most; None where the strategy has no bound.
        usd: $ that these cost at most, without what agents spend on models; None where that is not known.
        usd_typical: $ if every round calls one member at the mean price.
        unpriced: models without a price.
    """

    calls: int | None = 0
    usd: float | None = 0.0
    usd_typical: float | None = 0.0
    unpriced: tuple[str, ...] = ()


@dataclass(frozen=True)
class Estimate:
    """What a training takes.

    Attributes:
        memory: on each process.
        spending: of a step's calls.
        prompt_tokens: of the first context of a rollout, on average, counted as bytes / 3; 0 where it is not known.
        rollouts: of a step.
        tokens: that a step samples, or reads to learn from, at most.
        flops: of a step at most: 2 per weight and sampled token, 6 per weight and token of a row, 2 to read it again.
        notes: what the figures rest on.
        rate: floating-point operations per second of one process; None where that is not known.
        processes: that share a step.
        measured: the rate is what a matrix product on this machine reaches; else it was given, or is not known.
        steps: of the training; 0 where the settings do not say.
    """

    memory: MemoryEstimate
    spending: SpendingEstimate
    prompt_tokens: int
    rollouts: int
    tokens: int
    flops: float | None
    notes: tuple[str, ...]
    rate: float | None = None
    processes: int = 1
    measured: bool = False
    steps: int = 0

    @property
    def seconds(self) -> float | None:
        """Of a step with all its tokens, calls not counted, if `REACHED` of the rate is reached; None if unknown."""
        if self.flops is None or self.rate is None:
            return None
        return self.flops / (REACHED * self.rate * self.processes)

    def to_json(self) -> dict[str, Any]:
        """Plain JSON data."""
        data = asdict(self)
        data["memory"]["total"] = self.memory.total
        return {**data, "seconds": self.seconds}

    def lines(self) -> Iterator[str]:
        """For people."""
        memory, spent = self.memory, self.spending
        if memory.parameters is not None:
            yield f"model        {_count(memory.parameters)} parameters, {_count(memory.trained or 0)} trained"
        parts = {name: size for name, size in asdict(memory).items() if name not in ("parameters", "trained")}
        told = ", ".join(f"{name} {size_text(size)}" for name, size in parts.items())
        yield f"memory       {size_text(memory.total)} a process: {told}"
        known = f"prompts of some {self.prompt_tokens} tokens" if self.prompt_tokens else "prompts of unknown length"
        rollouts = f"{self.rollouts} rollouts, {known}, " if self.rollouts else ""
        arithmetic = f", {self.flops / 1e12:,.2f} TFLOP" if self.flops is not None else ""
        yield f"a step       {rollouts}at most {self.tokens:,} tokens{arithmetic}"
        if self.seconds is not None and self.rate is not None:
            whole = f"; {self.steps:,} steps some {_duration(self.steps * self.seconds)}" if self.steps else ""
            known = "measured here (--tflops for another machine)" if self.measured else "as given"
            reached = f"{REACHED:.0%} of {_number(self.rate / 1e12)} TFLOP/s, {known}, on each of {self.processes}"
            yield f"             some {_duration(self.seconds)} without calls{whole}; at {reached}"
        if self.rollouts:
            calls = "no bound on calls" if spent.calls is None else f"at most {spent.calls:,} calls"
            usd = "$ unknown" if spent.usd is None else f"at most ${spent.usd:,.4f}"
            typical = "" if spent.usd_typical is None else f", some ${spent.usd_typical:,.4f} at one call a round"
            yield f"             {calls}, {usd}{typical}; by the prices of the pool, simulated ones included"
        if spent.unpriced:
            yield f"unpriced     {', '.join(spent.unpriced)}: what is spent there is not known"
        for note in self.notes:
            yield f"note         {note}"


def _duration(seconds: float) -> str:
    if seconds < 120:
        return f"{_number(seconds)} s"
    return tqdm.format_interval(seconds) if seconds < 48 * 3600 else f"{seconds / 86400:,.0f} days"


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.2g}"


def estimate(config: TrainConfig, work: str = "rl", *, measure: bool = False, rate: float | None = None) -> Estimate:
    """What a training takes.

    Args:
        config: the training.
        work: `rl`, `sft` or `eval`.
        measure: how fast this machine computes, which takes a second and needs torch.
        rate: floating-point operations per second of the device of one process, in place of what is measured.

    Raises:
        UsageError: pool or tasks cannot be made.
    """
    notes: list[str] = []
    shape = shape_of(config, notes)
    memory = _memory(config, shape, work, notes) if shape is not None else MemoryEstimate()
    # A speed is given for another machine, whose memory is not known.
    if rate is None and (short := _short_of(config, memory)) is not None:
        notes.insert(0, short)
    measured = measure and rate is None
    rate = machine_rate(config) if measured else rate
    steps = {"sft": config.trainer.sft.steps or 0, "rl": config.trainer.rl.steps}.get(work, 0)
    machine = (rate, config.trainer.processes * config.trainer.nodes, measured, steps)
    if work == "sft":
        tokens = config.trainer.sft.batch * _row_tokens(config, shape, work)
        flops = 6.0 * shape.parameters * tokens if shape is not None else None
        return Estimate(memory, SpendingEstimate(), 0, 0, tokens, flops, tuple(notes), *machine)
    asked, pool = _asked(config, work, notes)
    seen = [tokens for each in asked[:_SHOWN] if (tokens := prompt_tokens(each))]
    prompt = round(sum(seen) / len(seen)) if seen else 0
    rollouts = _rollouts(config, work, len(asked))
    tokens = rollouts * config.rollout.total_tokens
    flops = None
    if shape is not None:
        row = prompt + config.rollout.total_tokens
        update = rollouts * row * (2 + 6 * config.trainer.rl.iterations) if work == "rl" else 0
        flops = float(shape.parameters) * (2 * (tokens + rollouts * prompt) + update)
    spending = _spending(config, pool, rollouts)
    return Estimate(memory, spending, prompt, rollouts, tokens, flops, tuple(notes), *machine)


def _short_of(config: TrainConfig, memory: MemoryEstimate) -> str | None:
    """What to do where a process has less memory than the training takes; None where it has enough, or nobody knows."""
    there = _memory_here(config)
    if memory.total is None or there is None or memory.total <= there:
        return None
    ways = ["model.adapter={rank: 16}"] if config.model.adapter is None else []
    ways += ["rollout.batch", "trainer.rl.micro_batch", "trainer.gradient_checkpointing=true"]
    tried = f"try {', '.join(ways)}, a smaller model"
    return f"DOES NOT FIT on this machine, which has {size_text(there)} for a process: {tried}"


def _memory_here(config: TrainConfig) -> int | None:
    """Bytes that one process has here: of its GPU, else its share of the memory; None where nobody tells."""
    if config.trainer.device != "cpu":
        try:
            import torch
        except ImportError:
            return None
        if torch.cuda.is_available():
            return int(torch.cuda.get_device_properties(0).total_memory)
    try:
        whole = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return None
    return whole // config.trainer.processes


def machine_rate(config: TrainConfig) -> float | None:
    """Floating-point operations per second of a matrix product on the device of the training; None without torch."""
    try:
        import torch
    except ImportError:
        return None
    threads = torch.get_num_threads()
    if config.trainer.threads is not None:
        torch.set_num_threads(config.trainer.threads)
    try:
        return matrix_rate("cuda" if config.trainer.device != "cpu" and torch.cuda.is_available() else "cpu")
    finally:
        torch.set_num_threads(threads)


def _asked(config: TrainConfig, work: str, notes: list[str]) -> tuple[list[Assignment], Pool]:
    """Some questions, as far as their files are here, and the pool without variation."""
    pool = make_pool(config.pool)
    try:
        if work == "eval":
            return evaluation_assignments(config), pool
        questions = Questions(config)
        return questions.take(min(_SHOWN, len(questions.tasks))), pool
    except UsageError as error:
        selected = config.tasks.eval if work == "eval" else config.tasks.train
        paths = [each.options.get("path") for each in selected]
        if all(path is None or Path(str(path)).exists() for path in paths):
            raise  # a file that is not there yet may come; anything else is a mistake
        notes.append(f"the questions cannot be read yet, so prompts are not counted: {error}")
        return [], pool


def prompt_tokens(asked: Assignment) -> int:
    """Tokens of the first context of a rollout, at three bytes each; 0 where nothing is asked at first."""
    step = asked.first_step()
    return sum(len(message.text.encode()) for message in step.messages) // 3 if isinstance(step, Ask) else 0


def shape_of(config: TrainConfig, notes: list[str]) -> ModelShape | None:
    """The size of the model, from its description on this machine, else from its name; None where neither tells."""
    new, path = config.model.new, config.model.path
    if not path and new is not None:
        inner = new.feed_forward or 3 * new.hidden
        keys = (new.key_heads or new.heads) * (new.hidden // new.heads)
        layer = new.hidden * (2 * new.hidden + 2 * keys + 3 * inner + 2) + 2 * (new.hidden // new.heads)
        parameters = new.layers * layer + new.vocabulary * new.hidden + new.hidden
        return ModelShape(parameters, new.layers, new.hidden, keys, new.vocabulary, new.context, "model.new")
    if not path:
        raise UsageError("model: neither path nor new is given; expected a folder, or {new: {layers: 4, hidden: 128}}")
    found = _described(path)
    if found is None and (size := re.search(r"(?<![\w.])(\d+(?:\.\d+)?)([bBmM])(?![a-zA-Z])", path)):
        number = float(size[1]) * (1e9 if size[2] in "bB" else 1e6)
        notes.append(f"{path} is not on this machine: its size is read off its name, and a usual shape is assumed")
        return usual_shape(number)
    if found is None:
        notes.append(f"{path} is not on this machine, and its name tells no size")
    return found


_USUAL = {
    0.6e9: (28, 1024, 1024),
    1.7e9: (28, 2048, 1024),
    4e9: (36, 2560, 1024),
    8e9: (36, 4096, 1024),
    14e9: (40, 5120, 1024),
    32e9: (64, 5120, 1024),
    70e9: (80, 8192, 1024),
}
"""Layers, width, and heads of keys times their width of dense models with as many parameters."""


def usual_shape(parameters: float) -> ModelShape:
    """The shape that most dense models of a size have."""
    size = min(_USUAL, key=lambda each: abs(math.log(each / parameters)))
    layers, hidden, keys = _USUAL[size]
    return ModelShape(int(parameters), layers, hidden, keys, 151_936, source="its name")


def _described(path: str) -> ModelShape | None:
    try:
        from transformers import AutoConfig, AutoModelForCausalLM
    except ImportError:
        return None
    try:
        described = AutoConfig.from_pretrained(path, local_files_only=True, trust_remote_code=False)
    except (OSError, ValueError):
        return None
    import torch

    make: Any = AutoModelForCausalLM  # from_config has no annotations
    with torch.device("meta"):
        parameters = sum(each.numel() for each in make.from_config(described).parameters())
    heads = getattr(described, "num_attention_heads", 1)
    width = getattr(described, "head_dim", None) or described.hidden_size // heads
    keys = getattr(described, "num_key_value_heads", heads) * width
    return ModelShape(
        parameters,
        described.num_hidden_layers,
        described.hidden_size,
        keys,
        described.vocab_size,
        getattr(described, "max_position_embeddings", None),
        "config.json",
    )


def trainable_of(config: TrainConfig, shape: ModelShape) -> int:
    """Parameters that are trained; of an adapter on all linear layers about `2 r` per row and column."""
    adapter, policies = config.model.adapter, len(policy_names(config)) or 1
    if adapter is None:
        return shape.parameters * policies
    if shape.hidden is None or shape.layers is None:
        return round(shape.parameters * 0.01 * adapter.rank / 16) * policies
    per_layer = adapter.rank * shape.hidden * 18  # seven linear maps, of which three are some three times as wide
    return shape.layers * per_layer * policies


def _memory(config: TrainConfig, shape: ModelShape, work: str, notes: list[str]) -> MemoryEstimate:
    trained = trainable_of(config, shape) if work != "eval" else 0
    usual = 2 if config.model.adapter is not None and config.trainer.device != "cpu" else 4
    held = 4 if work != "eval" and trains_whole(config) else _BYTES.get(config.model.dtype, usual)
    computed = _BYTES.get(precision_of(config), held)
    # The reference of the KL term is a copy of what is trained, which is everything without an adapter.
    copies = 2 if work == "rl" and config.algorithm.kl and config.model.adapter is None else 1
    policies = len(policy_names(config)) if config.roles.policies == "full" else 1
    weights = shape.parameters * held * copies * policies
    notes.append("gradients and optimiser: AdamW with two moments in float32, of the trained weights")
    row = _row_tokens(config, shape, work)
    activations = _activations(config, shape, work, row, computed) if work != "eval" else 0
    cache = 0 if work == "sft" else None
    if work != "sft" and shape.layers is not None and shape.key_values is not None:
        rollouts = config.rollout.batch or max(1, _rollouts(config, work, 0) // config.trainer.processes)
        cache = 2 * shape.layers * shape.key_values * computed * rollouts * row
        notes.append(f"cache: keys and values of {rollouts} contexts of {row:,} tokens")
    updating = trained * 4, trained * 8
    if config.trainer.sharding == "full" and work != "eval":
        parts = config.trainer.processes * config.trainer.nodes
        weights, updating = weights // parts, (updating[0] // parts, updating[1] // parts)
        if cache is not None and work == "rl":
            cache += shape.parameters * computed
        notes.append(f"sharding: each of {parts} processes holds its part, and all weights while it samples")
    return MemoryEstimate(shape.parameters, trained, weights, *updating, activations, cache)


def _row_tokens(config: TrainConfig, shape: ModelShape | None, work: str) -> int:
    limits = [config.trainer.sft.max_tokens if work == "sft" else config.rollout.context_tokens]
    limits += [shape.context if shape is not None else None]
    known = [limit for limit in limits if limit is not None]
    return min(known) if known else 2 * config.rollout.total_tokens


def _activations(config: TrainConfig, shape: ModelShape, work: str, row: int, size: int) -> int | None:
    """Of one micro-batch."""
    if shape.layers is None or shape.hidden is None:
        return None
    rows = config.trainer.sft.micro_batch if work == "sft" else config.trainer.rl.micro_batch
    again = config.trainer.gradient_checkpointing
    return rows * row * activation_bytes(shape.layers, shape.hidden, size, again=again)


def _rollouts(config: TrainConfig, work: str, tasks: int) -> int:
    if work == "eval":
        return max(1, tasks or config.trainer.eval.batch) * config.trainer.eval.samples
    return config.trainer.rl.questions_per_step * config.rollout.group_size


def _spending(config: TrainConfig, pool: Pool, rollouts: int) -> SpendingEstimate:
    strategy, budget = make_strategy(config.rollout.strategy), config.rollout.budget
    unpriced = tuple(spec.name for spec in pool.models if spec.prices is None)
    rounds = _least(strategy.limits.rounds, budget.rounds)
    width = _least(strategy.limits.parallel, budget.parallel)
    tools = [spec for spec in pool.members if isinstance(spec, ToolSpec)]
    bound = None if rounds is None or width is None else rounds * width
    each = _least(bound, budget.calls)
    mean = sum(spec.cost.usd for spec in tools) / len(tools) if tools else 0.0
    agents = any(spec.kind == "agent" for spec in tools)
    typical = None if rounds is None or agents else mean * rounds * rollouts
    if each is None:
        return SpendingEstimate(None, None if budget.usd is None else budget.usd * rollouts, typical, unpriced)
    highest = each * max((spec.cost.upper_bound(spec.timeout) for spec in tools), default=0.0)
    usd = highest if budget.usd is None else min(highest, budget.usd)
    return SpendingEstimate(
        each * rollouts, None if agents and budget.usd is None else usd * rollouts, typical, unpriced
    )


def _least(*limits: int | None) -> int | None:
    return min((limit for limit in limits if limit is not None), default=None)


def _count(number: int) -> str:
    for size, word in ((1e9, "B"), (1e6, "M"), (1e3, "k")):
        if number >= size:
            return f"{number / size:.3g}{word}"
    return str(number)


def size_text(number: int | None) -> str:
    """A number of bytes, for people."""
    if number is None:
        return "unknown"
    return f"{number / GIB:,.2f} GiB" if number >= GIB / 100 else f"{number / 2**20:,.1f} MiB"
