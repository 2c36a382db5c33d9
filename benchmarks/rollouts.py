"""S15: rollouts for training, against TRL's own tool loop on the same model and the same questions.

    python benchmarks/rollouts.py [--json] [--quick]

A small transformer has learnt eight conversations by heart: a question, two calls at once, their results, and one of
four answers. 64 rollouts (eight questions, eight each) are sampled at temperature 1, as in training: those of a group
differ. `RolloutEngine` and the tool loop of TRL's `GRPOTrainer` take turns in one process, with the same tokenizer,
template, weights and tools. Without latency the figure is sampled tokens per second. With calls of 0.2 s it is the
seconds that a round of calls takes: the limit is 0.2 s, and the bar 0.5 s. TRL calls one rollout's tools after the
other's.
"""

from __future__ import annotations

import asyncio
import contextlib
import io
import os
import statistics
import sys
import tempfile
import time
import warnings
from collections.abc import Sequence
from typing import Any

os.environ.update(HF_HUB_OFFLINE="1", HF_HUB_DISABLE_TELEMETRY="1", TRL_EXPERIMENTAL_SILENCE="1")

import torch
from concertino import Call, Message, Observation, Plan, Pool, Reply, Strategy, tool
from concertino.strategies import Act, Ask, Done, Machine, TaskContext
from concertino_bench import Task
from concertino_local.codec import ChatCodec
from concertino_train.policies import TransformersPolicy
from concertino_train.rollouts import Assignment, RolloutEngine, TokenLimits
from concertino_train.rollouts.timings import Timings
from concertino_train.tiny import new_model, new_tokenizer
from measure import Row, script

QUESTIONS, EACH = 8, 8
ROLLOUTS = QUESTIONS * EACH
TOOLS_TAKE = [0.0]
"""Seconds that a call takes."""
RESPONSE = {
    "defaults": {"role": "assistant"},
    "start_anchor": "<|im_start|>assistant\n",
    "fields": {
        "tool_calls": {
            "open": "<tool_call>", "close_pattern": r"</tool_call>\s*", "repeats": True, "content": "json",
            "transform": {"type": "function", "function": "{content}"},
        },
        "content": {"close_pattern": r"<\|im_end\|>\s*", "content": "text"},
    },
}  # fmt: skip
"""How TRL reads a text of the model."""


async def price(item: str) -> str:
    """The price of an item.

    Args:
        item: what it is.
    """
    if TOOLS_TAKE[0]:
        await asyncio.sleep(TOOLS_TAKE[0])
    return str(20 + sum(item.encode()) % 70)


MEMBER = tool(price)


class Talk(Machine):
    """A conversation with native calls, message by message as TRL's loop has it."""

    def __init__(self, question: str) -> None:
        self.messages = [Message("user", question)]
        self.plan: Plan | None = None
        self.answer: str | None = None

    def step(self) -> Ask | Act | Done:
        """See `Machine`."""
        if self.answer is not None:
            return Done(self.answer, "answered")
        if self.plan is not None:
            return Act(self.plan, len(self.messages) // 2)
        return Ask("orchestrator", self.messages, 1, TOOLS)

    def on_reply(self, reply: Reply) -> None:
        """See `Machine`."""
        self.messages.append(Message.of(reply))
        calls = [Call(each.name, each.arguments, id=str(n)) for n, each in enumerate(reply.tool_calls)]
        self.plan, self.answer = (Plan.parallel(calls), None) if calls else (None, reply.text)

    def observe(self, observations: Sequence[Observation], remaining: Any = None) -> None:
        """See `Machine`."""
        self.messages += [Message("tool", str(seen.content)) for seen in observations]
        self.plan = None

    def finish(self, stop: str, detail: str = "") -> None:
        """See `Machine`."""
        self.answer = ""

    def dump(self) -> dict[str, Any]:
        """See `Machine`."""
        return {"messages": [message.to_json() for message in self.messages]}


class Talking(Strategy):
    """Begins a `Talk`."""

    name = "talking"

    def begin(self, brief: TaskContext) -> Talk:
        """See `Strategy`."""
        return Talk(brief.question)

    def restore(self, dumped: Any) -> Talk:
        """See `Strategy`."""
        raise NotImplementedError

    def to_json(self) -> dict[str, Any]:
        """See `Strategy`."""
        return {"name": self.name}


TOOLS: list[Any] = []


ANSWERS = (
    "They cost {} and {}, which is what I was told.",
    "One is {}, the other one {}.",
    "{} for the first, and {} for the second of them, if the list is right.",
    "I found {} and {}.",
)


def conversations(answer: str = ANSWERS[0]) -> list[list[dict[str, Any]]]:
    """What the model learns by heart, with one of the answers."""
    made = []
    for number in range(QUESTIONS):
        items = [f"{word}{number}" for word in ("fig", "plum")]
        calls = [{"type": "function", "function": {"name": "price", "arguments": {"item": item}}} for item in items]
        found = [asyncio.run(price(item)) for item in items]
        made.append(
            [
                {"role": "user", "content": f"What do {items[0]} and {items[1]} cost?"},
                {"role": "assistant", "content": "", "tool_calls": calls},
                *({"role": "tool", "name": "price", "content": text} for text in found),
                {"role": "assistant", "content": answer.format(*found)},
            ]
        )
    return made


def learnt() -> tuple[Any, ChatCodec]:
    """A model that has learnt the conversations by heart, and its codec."""
    told = [each for answer in ANSWERS for each in conversations(answer)]
    tokenizer = new_tokenizer([str(each) for each in told] * 10, 700, phrases=[])
    codec = ChatCodec.load(tokenizer, "chatml")
    tokenizer = codec.tokenizer
    tokenizer.response_template = RESPONSE
    TOOLS[:] = _functions()
    model = new_model(tokenizer, layers=4, hidden=128, heads=4)
    rows = [
        torch.tensor(
            tokenizer.apply_chat_template(
                each, tools=TOOLS, chat_template=codec.template, tokenize=True, return_dict=False
            )
        )
        for each in told
    ]
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
    pad = torch.nn.utils.rnn.pad_sequence
    ids, labels = pad(rows, batch_first=True), pad(rows, batch_first=True, padding_value=-100)
    dice = torch.Generator().manual_seed(0)
    for _ in range(480):
        chosen = torch.randperm(len(ids), generator=dice)[:QUESTIONS]
        loss = model(input_ids=ids[chosen], labels=labels[chosen]).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    return model.eval(), codec


def _functions() -> list[Any]:
    from transformers.utils import get_json_schema

    return [get_json_schema(price)]


class Ours:
    """The engine."""

    def __init__(self, model: Any, codec: ChatCodec) -> None:
        self.policy = TransformersPolicy(model, codec, temperature=1.0)
        self.engine = RolloutEngine(self.policy, limits=TokenLimits(turn=80, total=400))
        pool = Pool.of(MEMBER)
        tasks = [Task(f"t/{n}", each[0]["content"], ("-",), "text") for n, each in enumerate(conversations())]
        self.assignments = [Assignment(task, pool, Talking()) for task in tasks]
        self.text: list[str] = []

    def __call__(self) -> tuple[float, int]:
        """Seconds, and tokens sampled."""
        began = time.perf_counter()
        rollouts = self.engine.run_sync(self.assignments, group_size=EACH)
        taken = time.perf_counter() - began
        self.text = [str(rollout.run.answer) for rollout in rollouts]
        return taken, sum(rollout.sampled for rollout in rollouts)


class Theirs:
    """TRL's loop."""

    def __init__(self, model: Any, codec: ChatCodec) -> None:
        from datasets import Dataset
        from trl import GRPOConfig, GRPOTrainer

        folder = tempfile.mkdtemp()
        config = GRPOConfig(
            folder, num_generations=EACH, per_device_train_batch_size=ROLLOUTS, max_completion_length=400,
            temperature=1.0, bf16=False, use_cpu=True, gradient_checkpointing=False, report_to=[],
            disable_tqdm=True, max_tool_calling_iterations=4, max_steps=1,
        )  # fmt: skip
        self.prompts = [[each[0]] for each in conversations() for _ in range(EACH)]
        rows = [{"prompt": prompt} for prompt in self.prompts]
        with warnings.catch_warnings(), contextlib.redirect_stderr(io.StringIO()):
            warnings.simplefilter("ignore")
            self.trainer = GRPOTrainer(
                model, reward_funcs=lambda completions, **_: [0.0] * len(completions), args=config,
                train_dataset=Dataset.from_list(rows), processing_class=codec.tokenizer, tools=[price],
            )  # fmt: skip
        self.text: list[str] = []

    def __call__(self) -> tuple[float, int]:
        """Seconds, and tokens sampled."""
        self.trainer.model.eval()
        self.trainer._sync_tool_dicts = [{} for _ in self.prompts]
        self.trainer._async_tool_dicts = [{"price": price} for _ in self.prompts]
        began = time.perf_counter()
        with torch.no_grad(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = self.trainer._generate(self.prompts)
        taken = time.perf_counter() - began
        mask, completions = found[2], found[3]
        self.text = [each[-1]["content"] for each in completions]
        return taken, sum(sum(row) for row in mask)


def rows(quick: bool) -> list[Row]:
    """All figures."""
    model, codec = learnt()
    torch.set_num_threads(1)  # for both
    ours, theirs = Ours(model, codec), Theirs(model, codec)
    speeds: dict[Any, list[float]] = {ours: [], theirs: []}
    sampled: dict[Any, int] = {}
    for number in range(2 if quick else 3):
        if number == 1:
            ours.engine.timings = Timings()
        for system in (ours, theirs):
            taken, sampled[system] = system()
            if number:
                speeds[system].append(sampled[system] / taken)
    for system in (ours, theirs):
        groups = [set(system.text[start : start + EACH]) for start in range(0, ROLLOUTS, EACH)]
        assert statistics.mean(map(len, groups)) > 2, f"the rollouts of a group are alike: {groups[0]}"
        assert sum("cost" in t or "found" in t or "other" in t or "list" in t for t in system.text) > 0.7 * ROLLOUTS, (
            system.text[:4]
        )
    own, floor = statistics.median(speeds[ours]), statistics.median(speeds[theirs])
    share = 100 * ours.engine.timings.own / ours.engine.timings.total
    ours.engine.timings = Timings()
    TOOLS_TAKE[0] = 0.2
    ours()
    waited = ours.engine.timings.environment
    others, _ = theirs()
    TOOLS_TAKE[0] = 0.0
    ours.engine.close()
    return [
        Row("S15", "rollouts: sampled tokens", own, "tok/s", None, floor, min(speeds[ours]), max(speeds[ours])),
        Row("S15", "... TRL's tool loop by the engine, at most", floor / own, "x", 1.0),
        Row("S15", f"{ROLLOUTS} rollouts x 2 calls of 0.2 s: waiting for them", waited, "s", 0.5),
        Row("S15", "... TRL's tool loop, whole", others, "s"),
        Row("S15", "the engine's own share of the time", share, "%", 10.0),
    ]  # fmt: skip


if __name__ == "__main__":
    sys.exit(script(rows, __doc__))
