"""S29: a step of reinforcement learning with tool calls beside that of TRL's `GRPOTrainer` with `environment_factory`.

    python benchmarks/trl_steps.py [--json] [--quick]

Both train all weights of one model, the same for both, on the same questions, in batches of the same size, in float32
on one thread. The model says one text whatever it reads, a call of one tool, so both sample the same tokens in as many
turns. The prompt of TRL is filled up until it has as many tokens as ours. Each trains twice: with calls that end at
once, by CPU time, and with calls that wait for 50 ms, by the clock. The floor of a row is TRL in the same process: the
bar is TRL's figure where nothing waits, and half of it where calls wait. A figure is the median of the steps behind
the first two.

`generation` is everything from the questions to what was sampled; a step is from the begin of one generation to that
of the next.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import statistics
import sys
import tempfile
import time
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any
from unittest import mock

from concertino import Pool, tool
from concertino_train.config import load_config
from concertino_train.episodes import Episode
from concertino_train.practice import tasks
from concertino_train.rewards import TERMS, Term
from measure import Row, script

os.environ.update(HF_HUB_OFFLINE="1", TRL_EXPERIMENTAL_SILENCE="1", TOKENIZERS_PARALLELISM="false")

QUESTIONS, GROUP, CALLS = 2, 4, 2
"""Questions of a step, rollouts of each, and calls of each rollout."""
LAYERS, HIDDEN, HEADS, CONTEXT = 2, 96, 4, 1536
WAIT = 0.05
"""Seconds of a call that waits."""
WORDS = re.findall(r"\w+", "The place that is asked about lies far off so it has to be looked up first by a call")
SAID = f'<reasoning>{" ".join(WORDS)}</reasoning>\n<tool_call>{{"name": "look", "arguments": {{"place": "mill"}}}}'
SAID += "</tool_call>"
LEARNING_RATE = 1e-7
"""So small that the model keeps saying the same."""


class Call:
    """What a call takes, in both.

    Attributes:
        seconds: that it waits.
    """

    seconds = 0.0


async def _looked(place: str) -> str:
    if Call.seconds:
        await asyncio.sleep(Call.seconds)
    return f"{place}: 12"


@tool
async def look(place: str) -> str:
    """Look somewhere.

    Args:
        place: where.
    """
    return await _looked(place)


def pool() -> Pool:
    """The pool of the settings."""
    return Pool.of(look)


class Environment:
    """What TRL makes for each rollout."""

    def reset(self, **kwargs: Any) -> None:
        """Nothing is kept."""

    async def look(self, place: str) -> str:
        """Look somewhere.

        Args:
            place: where.
        """
        return await _looked(place)


@dataclass(frozen=True)
class Drawn(Term):
    """A number that follows from which rollout it is, so that the rewards of a group differ."""

    name = "benchmark/drawn"
    formula = source = meaning = "for a benchmark"

    @property
    def bounds(self) -> tuple[float, float]:
        """See `Term.bounds`."""
        return 0.0, 1.0

    def values(self, group: Sequence[Episode]) -> list[float]:
        """See `Term.values`."""
        return [zlib.crc32(each.id.encode()) / 2**32 for each in group]


def drawn(completions: Sequence[Any], **kwargs: Any) -> list[float]:
    """The same for TRL."""
    return [zlib.crc32(str(place).encode()) / 2**32 for place in range(len(completions))]


@dataclass
class Times:
    """Begins of generations and their lengths, by a clock, and what was sampled.

    Attributes:
        clock: CPU time of the process, or time.
        begun, sampled: when each generation began, and how long it took.
        tokens: of the prompt and of the completion of a rollout.
    """

    clock: Callable[[], float]
    begun: list[float] = field(default_factory=list)
    sampled: list[float] = field(default_factory=list)
    tokens: tuple[float, float] = (0.0, 0.0)

    def of(self, work: Callable[[], Any]) -> Any:
        """Measure one generation."""
        self.begun.append(self.clock())
        done = work()
        self.sampled.append(self.clock() - self.begun[-1])
        return done

    def weigh(self, prompts: Sequence[Sequence[int]], rest: Sequence[Sequence[int]]) -> None:
        """Count the tokens of a generation."""
        self.tokens = sum(map(len, prompts)) / len(prompts), sum(map(len, rest)) / len(rest)

    @property
    def generation(self) -> float:
        """Seconds, the median."""
        return statistics.median(self.sampled[2:])

    @property
    def step(self) -> float:
        """Seconds, the median."""
        return statistics.median(later - one for one, later in pairwise(self.begun[2:]))


def make_model(folder: Path) -> None:
    """A model that says one text behind every prompt: its output layer knows which token follows which."""
    import torch
    from concertino_train.tiny import END, new_model, new_tokenizer

    tokenizer = new_tokenizer([SAID], 1024, phrases=[f" {word}" for word in WORDS], context=CONTEXT)
    said = tokenizer.encode(SAID, add_special_tokens=False)
    assert len(set(said)) == len(said), tokenizer.convert_ids_to_tokens(said)
    model = new_model(tokenizer, layers=LAYERS, hidden=HIDDEN, heads=HEADS, context=CONTEXT, copying=False)
    model.config.tie_word_embeddings = False
    begin = tokenizer.encode("assistant\n", add_special_tokens=False)
    chain = [begin[-1], *said, tokenizer.convert_tokens_to_ids(END)]
    with torch.no_grad():
        embedded = torch.nn.functional.normalize(model.get_input_embeddings().weight, dim=1)
        # Far from what the layers add.
        model.get_input_embeddings().weight.copy_(embedded * HIDDEN**0.5 * 3)
        head = torch.zeros_like(embedded)
        for one, following in pairwise(chain):
            head[following] += 4 * embedded[one]
        model.lm_head.weight = torch.nn.Parameter(head)
    model.save_pretrained(str(folder))
    tokenizer.save_pretrained(str(folder))


def questions(steps: int) -> list[str]:
    """What is asked, in order."""
    return [each.question for each in tasks("facts", QUESTIONS * steps, split="train", level=1)]


def ours(folder: Path, home: Path, steps: int, times: Times) -> None:
    """Train with `run_rl`, which keeps its record, too."""
    from concertino_train.rl import run_rl
    from concertino_train.rl.steps import StepCollector

    settings = {
        "model": {"path": str(folder), "start": "given"},
        "pool": {"make": {"name": "trl_steps:pool"}},
        "tasks": {
            "train": [{"set": "practice/facts", "options": {"split": "train", "level": 1, "count": QUESTIONS * steps}}],
            "order": "given",
        },
        "rollout": {
            "strategy": {"name": "parallel-rounds", "prompt": "brief", "max_rounds": CALLS, "show_budget": False},
            "group_size": GROUP,
            "turn_tokens": 64,
            "total_tokens": 1000,
        },
        "reward": {"terms": {"drawn": {"term": Drawn.name}}},
        "algorithm": {"filters": {"homogeneity": None}},
        "trainer": {
            "output": str(home),
            "device": "cpu",
            "threads": 1,
            "rl": {
                "steps": steps,
                "questions_per_step": QUESTIONS,
                "learning_rate": LEARNING_RATE,
                "save_every": 10_000,
                "micro_batch": QUESTIONS * GROUP,
                "audit": "tell",
            },
        },
        "logging": {"traces": {"every": 0}, "plot_every": 0},
    }
    collect = StepCollector.__call__

    def measured(self: StepCollector, asked: Sequence[Any], generation: int) -> Any:
        batch = times.of(lambda: collect(self, asked, generation))
        times.weigh([row.prompt for row in batch.rows], [row.completion for row in batch.rows])
        return batch

    TERMS[Drawn.name] = Drawn
    with mock.patch.object(StepCollector, "__call__", measured):
        run_rl(load_config(settings, []))


def theirs(folder: Path, home: Path, steps: int, times: Times, prompt: int) -> None:
    """Train with TRL's own trainer, with prompts of as many tokens."""
    import datasets
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer
    from trl import GRPOConfig, GRPOTrainer
    from trl.chat_template_utils import qwen3_chat_template

    tokenizer: Any = AutoTokenizer.from_pretrained(str(folder))
    tokenizer.chat_template = qwen3_chat_template

    class Measured(GRPOTrainer):
        def _generate(self, prompts: list[Any]) -> Any:
            found = times.of(lambda: super(Measured, self)._generate(prompts))
            times.weigh(found[0], found[1])
            return found

    def asked(question: str, filling: int) -> list[dict[str, str]]:
        return [{"role": "system", "content": " look" * filling}, {"role": "user", "content": question}]

    texts = questions(steps)
    more: dict[str, Any] = {"tools": [Environment().look], "return_dict": False, "add_generation_prompt": True}
    bare = len(tokenizer.apply_chat_template(asked(texts[0], 0), **more))
    filling = max(0, (prompt - bare) // len(tokenizer.encode(" look")))
    arguments = GRPOConfig(
        output_dir=str(home),
        max_steps=steps,
        num_generations=GROUP,
        per_device_train_batch_size=QUESTIONS * GROUP,
        gradient_accumulation_steps=1,
        steps_per_generation=1,
        max_completion_length=1000,
        max_tool_calling_iterations=CALLS,
        learning_rate=LEARNING_RATE,
        shuffle_dataset=False,
        use_cpu=True,
        bf16=False,
        gradient_checkpointing=False,
        save_strategy="no",
        report_to="none",
        disable_tqdm=True,
        beta=0.0,
    )
    torch.set_num_threads(1)
    trainer = Measured(
        model=AutoModelForCausalLM.from_pretrained(str(folder), dtype=torch.float32),
        reward_funcs=[drawn],
        args=arguments,
        train_dataset=datasets.Dataset.from_dict({"prompt": [asked(text, filling) for text in texts]}),
        processing_class=tokenizer,
        environment_factory=Environment,
    )
    with contextlib.redirect_stdout(sys.stderr):
        trainer.train()


def rows(quick: bool) -> list[Row]:
    """The figures."""
    import logging

    logging.disable(logging.WARNING)
    steps, found = (6 if quick else 14), list[Row]()
    with tempfile.TemporaryDirectory() as temporary:
        home = Path(temporary)
        make_model(home / "model")
        for kind, wait, clock in (("calls end at once", 0.0, time.process_time), ("calls wait", WAIT, time.monotonic)):
            Call.seconds = wait
            mine, other = Times(clock), Times(clock)
            ours(home / "model", home / f"ours {kind}", steps, mine)
            sys.stderr.write(f"ours, {kind}: {mine.generation:.3f} {mine.step:.3f}\n")
            theirs(home / "model", home / f"theirs {kind}", steps, other, round(mine.tokens[0]))
            sys.stderr.write(f"TRL, {kind}: {other.generation:.3f} {other.step:.3f}\n")
            share = 2 if wait else 1
            tokens = (f"{read:.0f} + {written:.0f}" for read, written in (mine.tokens, other.tokens))
            note = "tokens of a rollout, prompt + rest: ours {}, TRL {}".format(*tokens)
            for what in ("generation", "step"):
                figure, floor = getattr(mine, what), getattr(other, what)
                unit = "s" if wait else "CPU s"
                found.append(Row("S29", f"{what}, {kind}", figure, unit, floor / share, floor, note=note))
    return found


if __name__ == "__main__":
    # The settings name this module, which is `__main__` only here.
    sys.modules["trl_steps"] = sys.modules[__name__]
    sys.exit(script(rows, __doc__))
