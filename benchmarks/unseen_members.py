"""The pools of `unseen_pool.py`, and who leads a run before anything is learnt.

In every pool the members are called `ash`, `birch` and so on, by their places. What a name stands for differs from pool
to pool: only a model's *card*, how good it was at training questions, and its price tell. A card names its member again
behind the level, for a policy of this size finds what stands behind a word, and not what stands before it. `variant`
gives a training the same models in another order, with cards of twenty of these questions and prices by lot, so that
neither place nor price says what a model is worth. Settings files name both: `unseen_members:variant` and
`unseen_members:Leader`. The invariant: what is drawn follows from its number or its text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from random import Random
from statistics import fmean
from typing import Any

from concertino import ChatRequest, Message, Model, Pool, Prices, Reply, Strategy, Usage

WORDS = ("ash", "birch", "cedar", "elm", "fir", "gorse", "hazel", "ivy")
"""What members are called, in the order of the pool."""
LEVELS = {"excellent": 0.8, "good": 0.6, "fair": 0.45, "poor": 0.3, "bad": 0.0}
"""What a card says, and the least share of right answers for it."""
CHARGES = (Prices(0.6, 0.6), Prices(2.0, 2.0), Prices(10.0, 30.0), Prices(20.0, 20.0))
"""$ per million tokens that a variant draws from."""
CARD = 20
"""Training questions, drawn with replacement, that the card of a variant is about."""
LACKING = 0.8
"""Share of variants that lack a model: where the best one is always there, nothing is learned of the others' cards."""
_OK = re.compile(r"^(\d+\.\d+) OK\b", re.MULTILINE)


def level(right: Sequence[bool]) -> str:
    """How good a model is, of some questions that it got right or wrong."""
    share = fmean(right)
    return next(word for word, least in LEVELS.items() if share >= least)


def shown(pool: Pool, right: Mapping[str, Sequence[bool]]) -> Pool:
    """The pool with its models offered by their places, and with cards.

    Args:
        pool: of models.
        right: by full name of a model, whether it was right, of some questions.
    """
    cards = {
        each.name: f"{level(right[each.name])} {word}, by training questions."
        for each, word in zip(pool.models, WORDS, strict=False)
    }
    offered = pool.describe(cards).offering("*")
    return offered.alias({spec.name: word for (_, spec), word in zip(offered.actions, WORDS, strict=False)})


def variant(file: str, outcomes: str, number: int = 0, invented: bool = False) -> Pool:
    """The pool of a file, or the same models told otherwise; most variants lack one of them.

    Args:
        file: the pool file.
        outcomes: a JSON file of what each model got right: lists of true and false by name, of training questions.
        number: 0 for the pool as the file has it; any other number for a variant.
        invented: the cards say anything, so that every word of them is met; for who is shown what a word means, not
            for who is to find it out.
    """
    pool = Pool.load(file)
    if not number:
        return pool
    rng = Random(f"variant {number}")
    known = json.loads(Path(outcomes).read_text(encoding="utf-8"))
    models = rng.sample(list(pool.models), len(pool.models))
    models = models[1:] if len(models) > 2 and rng.random() < LACKING else models
    priced = Pool(models).price({each.name: rng.choice(CHARGES) for each in models})
    if invented:
        shares = {each.name: rng.random() for each in models}
        return shown(priced, {name: [place < share * CARD for place in range(CARD)] for name, share in shares.items()})
    return shown(priced, {each.name: rng.choices(known[each.name], k=CARD) for each in models})


class Leader(Model):
    """A scripted leader: what a policy learns its first steps from.

    It knows what the words of a card mean, which a policy made from nothing does not: in some runs it asks the member
    with the best card, in the others members by lot. It names the cards of whom it asks, and answers with a quote of
    one of the results. What is by lot is drawn from the question, the pool and the seed of sampling.

    Args:
        pool: whose members it asks.
        strategy: parallel rounds, with brief prompts and references.
        several: share of runs that ask more than one member at once.
        careful: share of runs in which members are asked in the order of their cards.
        everyone: ask all members, and quote the one with the best card.
    """

    def __init__(
        self, pool: Pool, strategy: Strategy, several: float = 0.2, careful: float = 0.5, everyone: bool = False
    ) -> None:
        if strategy.name != "parallel-rounds":
            raise ValueError(f"Leader writes parallel-rounds, not {strategy.name}")
        self.several, self.careful, self.everyone = several, careful, everyone
        told = {tool["function"]["name"]: str(tool["function"]["description"]) for tool in pool.to_openai()}
        levels = list(LEVELS)
        self.ranks = {
            name: levels.index(word) if (word := text.partition(" ")[0]) in levels else len(levels)
            for name, text in told.items()
        }

    async def chat(self, request: ChatRequest) -> Reply:
        """Write the next turn."""
        text = self.turn(list(request.messages), request.sampling.seed or 0)
        return Reply(text, usage=Usage(output_tokens=self.count_tokens(text)))

    def turn(self, messages: Sequence[Message], seed: int) -> str:
        """The next turn of a conversation."""
        question = next(each.text for each in messages if each.role == "user")
        rng = Random(f"{seed} {question} {self.ranks}")
        names = list(self.ranks)
        order = names if self.everyone else rng.sample(names, len(names))
        if not self.everyone and rng.random() < self.careful:
            order.sort(key=self.ranks.__getitem__)
        count = len(names) if self.everyone else rng.randint(2, len(names)) if rng.random() < self.several else 1
        places = [place for each in messages[2:] if each.role == "user" for place in _OK.findall(each.text)]
        if messages[-1].role == "user" and "<answer>" in messages[-1].text:
            best = min(range(count), key=lambda at: self.ranks[order[at]])
            chosen = places[best] if self.everyone and len(places) == count else rng.choice(places or [""])
            return f"<answer>${{{chosen}}}</answer>" if places else "<answer>unknown</answer>"
        if places:
            return _round("done", [("final_answer", {})])
        turns = sum(each.role == "assistant" for each in messages)
        wanted = order[:count] if not turns else [order[turns % len(order)]]
        told = " ".join(f"{[*LEVELS, 'any'][self.ranks[name]]} {name}" for name in wanted)
        return _round(f"ask {told}", [(name, {"task": "${question}"}) for name in wanted])


def _round(thought: str, calls: Sequence[tuple[str, dict[str, Any]]]) -> str:
    """A turn of parallel rounds."""
    written = [json.dumps({"name": name, "arguments": arguments}) for name, arguments in calls]
    return "\n".join([f"<reasoning>{thought}</reasoning>", *(f"<tool_call>{call}</tool_call>" for call in written)])
