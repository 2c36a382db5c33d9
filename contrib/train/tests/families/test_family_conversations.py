"""Ten families of models: what is sampled is what is trained, with tools, thoughts, repairs and cut replies."""

from __future__ import annotations

import json
import os
import random
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import concertino as ct
import pytest
from concertino import Message, UsageError
from concertino.strategies import Ask
from concertino.strategies.parallel_rounds import ParallelRounds
from concertino.strategies.serial_calls import SerialCalls
from concertino.testing import make_pool
from concertino_bench import Task

os.environ.setdefault("HF_HUB_OFFLINE", "1")
torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from concertino_local.codec import ChatCodec, Codec, Ids  # noqa: E402
from concertino_train.policies import Policy, Prompt, Sample, TransformersPolicy  # noqa: E402
from concertino_train.rollouts import Assignment, Rollout, RolloutEngine, TokenLimits  # noqa: E402
from concertino_train.rollouts.sequences import rows_of_sequences  # noqa: E402
from concertino_train.trainer.tensors import loss_mask, row_tensors  # noqa: E402
from model_families import FAMILIES, Family, published  # noqa: E402

CONVERSATIONS = int(os.environ.get("CONCERTINO_FAMILY_CONVERSATIONS", "210"))
"""For each family, in the soak: 2,100 together."""


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


NAMES = [each.name for each in FAMILIES]
WORDS = (
    "north",
    "Müller",
    "</s>",
    "<|end|>",
    "<|user|>",
    "7,5",
    "日本",
    '"quoted"',
    "a\nb",
    "[/INST]",
    "<end_of_turn>",
)


@ct.tool
def look(place: str, depth: int = 1) -> dict[str, Any]:
    """Look somewhere."""
    if depth > 2:
        raise ValueError("too deep")
    return {"place": place, "found": "<|im_end|>[/INST]</s><end_of_turn><|return|>"}


POOL = make_pool(look)
STRATEGIES = (
    ParallelRounds(prompt="brief", max_unreadable_replies=9, max_rounds=4),
    SerialCalls(max_unreadable_replies=9, max_rounds=4),
    SerialCalls(native=True, max_unreadable_replies=9, max_rounds=4),
)


class Mixed(Policy):
    """Half of its turns are said by a script, spelled in tokens that encoding may not choose; a model samples others.

    What it has said is kept, with what it was asked.
    """

    def __init__(self, model: Any, codec: Codec) -> None:
        self.codec = codec
        self.said: list[tuple[Prompt, Sample]] = []
        self._sampling = TransformersPolicy(model, codec, temperature=1.5)

    def generate(self, prompts: Sequence[Prompt]) -> list[Sample]:
        draws = [random.Random(f"{prompt.seed} {len(prompt.ids)}") for prompt in prompts]
        sampled = [place for place, draw in enumerate(draws) if draw.random() < 0.3]
        short = [replace(prompts[place], most=min(prompts[place].most, 8)) for place in sampled]
        found = dict(zip(sampled, self._sampling.generate(short), strict=True))
        said = [found.get(place) or self._scripted(draws[place], prompt) for place, prompt in enumerate(prompts)]
        self.said += zip(prompts, said, strict=True)
        return said

    def _scripted(self, draw: random.Random, prompt: Prompt) -> Sample:
        ids = respelled(self.codec, self.codec.turn(message(draw)), draw)
        cut = ids[: min(prompt.most, len(ids) if draw.random() < 0.8 else draw.randrange(1, len(ids)))]
        return Sample(cut, (-0.1,) * len(cut), "stop" if self.codec.ended(cut) else "length")


def message(draw: random.Random) -> Message:
    """A turn: a thought in its place or in the text, then a call that is sound, wrong or broken, or an answer."""
    word, thought = draw.choice(WORDS), draw.choice(WORDS)
    call = json.dumps({"name": draw.choice(("look", "look", "lok")), "arguments": {"place": word, "depth": 1}})
    kind = draw.choice(("call", "call", "deep", "broken", "final", "answer", "text"))
    body = {
        "call": f"<tool_call>{call}</tool_call>",
        "deep": f"<tool_call>{call.replace('1}', '9}')}</tool_call>",
        "broken": f"<tool_call>{call[:-4]}</tool_call>",
        "final": '<tool_call>{"name": "final_answer", "arguments": {}}</tool_call>',
        "answer": f"<answer>{word}</answer>",
        "text": word,
    }[kind]
    tag = draw.choice(("reasoning", "think", ""))
    text = f"<{tag}>{thought.replace('<', '')}</{tag}>\n{body}" if tag else body
    return Message("assistant", text, reasoning="" if tag else draw.choice(("", thought)))


def respelled(codec: Any, ids: Ids, draw: random.Random) -> Ids:
    """The same text in other tokens here and there."""
    found: list[int] = []
    for token in ids:
        text = codec.decode([token])
        letters = [i for letter in text for i in codec.vocabulary.encode(letter)]
        other = token not in codec.vocabulary.special and draw.random() < 0.3 and codec.decode(letters) == text
        found += letters if other else [token]
    return tuple(found)


def roll(family: Family, count: int) -> tuple[Mixed, list[Rollout]]:
    """Conversations of a family, of all strategies."""
    first = [Assignment(Task("t", "Where?", ("8",), "text"), POOL, each).first_step() for each in STRATEGIES]
    codec = family.codec([message.text for step in first if isinstance(step, Ask) for message in step.messages])
    policy = Mixed(family.model(codec.tokenizer), codec)
    # A template that shows no tools is asked in text.
    able = [each for each in STRATEGIES if not (codec.problem and getattr(each, "native", False))]
    words = [WORDS[number % len(WORDS)] for number in range(count)]
    tasks = [Task(f"t/{number}", f"Where is {word}?", ("8",), "text") for number, word in enumerate(words)]
    asked = [Assignment(task, POOL, able[number % len(able)]) for number, task in enumerate(tasks)]
    engine = RolloutEngine(policy, limits=TokenLimits(turn=120, total=2500, context=4000))
    try:
        return policy, engine.run_sync(asked, group_size=1, seed=3)
    finally:
        engine.close()


def check(family: Family, count: int) -> Counter[str]:
    """That sampled ids are the trained ones in all conversations; gives what there was in them."""
    policy, rollouts = roll(family, count)
    codec, seen = policy.codec, Counter[str](conversations=len(rollouts))
    asked = {(prompt.ids, sample.ids) for prompt, sample in policy.said}
    trained: list[Ids] = []
    for rollout in rollouts:
        seen["repairs"] += sum(one.status.value == "PARSE_ERR" for r in rollout.run.rounds for one in r.observations)
        seen["results"] += sum(one.status.value == "OK" for r in rollout.run.rounds for one in r.observations)
        for line in rollout.sequences:
            for turn, following in zip(line.turns, [*line.turns[1:], None], strict=True):
                ids = tuple(line.ids[turn.start : turn.end])
                assert (tuple(line.ids[: turn.start]), ids) in asked
                seen["cut"] += turn.finish == "length"
                seen["thoughts"] += bool(codec.read(ids).reasoning) or "think>" in codec.decode(ids)
                if following is not None and ids:  # what comes next stands behind one end of this turn
                    ended = codec.ended(ids)
                    assert ended or line.ids[turn.end] == codec.end_ids[0]
        for row in rows_of_sequences(rollout.sequences, rollout.group, 0):
            tensors = row_tensors([row], [1.0], codec.pad_id, "cpu")
            ids = tuple(tensors["completion_ids"][loss_mask(tensors).bool()].tolist())
            trained.append(ids)
            seen["rows"] += 1
    sampled = [sample.ids for _, sample in policy.said if sample.ids]
    assert sum(map(len, trained)) == sum(map(len, sampled))
    assert Counter(i for ids in trained for i in ids) == Counter(i for ids in sampled for i in ids)
    return seen


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES, ids=NAMES)
def test_what_is_sampled_is_what_is_trained(family: Family) -> None:
    seen = check(family, 12)
    assert min(seen[name] for name in ("results", "repairs", "thoughts", "cut")) > 0, seen


@pytest.mark.soak
@pytest.mark.parametrize("family", FAMILIES, ids=NAMES)
def test_what_is_sampled_is_what_is_trained_in_thousands_of_conversations(family: Family) -> None:
    assert check(family, CONVERSATIONS)["conversations"] == CONVERSATIONS


# -- templates ---------------------------------------------------------------------------------------------------------


def trainable(tokenizer: Any) -> tuple[str, ChatCodec]:
    """With its own template, or with those that the refusal names."""
    try:
        return "own", ChatCodec.load(tokenizer)
    except UsageError as error:
        named = [name for name in ("training", "family", "chatml") if f"template={name!r}" in str(error)]
        return " ".join(named), [ChatCodec.load(tokenizer, name) for name in named or ["family"]][-1]


@pytest.mark.parametrize("family", FAMILIES, ids=NAMES)
def test_a_template_is_taken_or_the_refusal_names_one_that_is(family: Family) -> None:
    ours = "chatml" if "<|im_end|>" in family.marks else "family"
    assert trainable(family.tokenizer())[0] == (ours if family.template else "own")
    assert ChatCodec.load(family.tokenizer(None), "family").problem == ""


@pytest.mark.parametrize(
    ("family", "name"),
    [(each, name) for each in FAMILIES for name in each.published],
    ids=[name for each in FAMILIES for name in each.published],
)
def test_a_published_template_is_taken_or_the_refusal_names_one_that_is(family: Family, name: str) -> None:
    texts = published([name])
    if not texts:
        pytest.skip(f"the published template {name!r} is not on this machine")
    named, codec = trainable(family.tokenizer(texts[name]))
    assert named
    talk = [
        Message("system", "Be brief."),
        Message("user", "Far?"),
        Message("assistant", "Ten."),
        Message("user", "B?"),
    ]
    ids = (*codec.prompt(talk[:2]), *codec.turn(talk[2]), *codec.onward(talk[3:], True))
    assert ids == codec.prompt(talk)


# -- numbers -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("family", FAMILIES, ids=NAMES)
def test_a_batch_is_sampled_with_the_numbers_of_a_forward_pass(family: Family) -> None:
    codec = family.codec()
    model = family.model(codec.tokenizer)
    draw = random.Random(5)
    prompts = [
        Prompt(tuple(draw.randrange(200) for _ in range(length)), 12, seed=place)
        for place, length in enumerate((3, 9, 9, 80, 81))
    ]
    for prompt, sample in zip(prompts, TransformersPolicy(model, codec).generate(prompts), strict=True):
        with torch.no_grad():
            logits = model(input_ids=torch.tensor([[*prompt.ids, *sample.ids]])).logits[0].float()
        places = torch.arange(len(prompt.ids) - 1, len(prompt.ids) + len(sample.ids) - 1)
        numbers = logits.log_softmax(-1)[places, torch.tensor(sample.ids)]
        assert (numbers - torch.tensor(sample.logprobs)).abs().max() < 1e-4
