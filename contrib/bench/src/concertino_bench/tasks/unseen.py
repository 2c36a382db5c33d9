"""Pools that nobody has seen: names, order, wording, prices and members at random for each question.

A policy that has learned a pool by heart looks as good as one that reads descriptions, until the pool changes. The two
counterfactuals tell them apart: when the order is reversed, a choice that is read stays; when the descriptions change
holders, it follows them.

Invariant: what is drawn follows from the seed and the task alone, so all systems and samples of a task see one pool,
and an evaluation that was interrupted continues with the same pools.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from random import Random
from typing import Literal, get_args

from concertino import Cost, Pool, Prices, ToolSpec, UsageError
from concertino.members.model_agent import ModelAgent
from concertino.schema import suggestion

from .system import Counterfactual

Drawn = Literal["names", "order", "cards", "prices", "skills"]
"""What can be drawn at random."""

_DRAWN: tuple[Drawn, ...] = get_args(Drawn)
_LEAST_FACTOR, _MOST_FACTOR = 0.25, 4.0
_KEPT_SHARE = 0.6
_SYLLABLES = tuple(first + second for first in "bdfgklmnprstvz" for second in "aeiou")
_SENTENCE = re.compile(r"(?<=[.!?])\s+")
_FRAMES = (
    "{}",
    "Description: {}",
    "What it does: {}",
    "From its authors: {}",
    "{} (as published)",
    "About this member: {}",
    "In short: {}",
)
_SYNONYMS = (
    ("cheap", "inexpensive", "low-cost"),
    ("expensive", "costly", "dear"),
    ("quick", "fast", "speedy"),
    ("slow", "unhurried", "slow-moving"),
    ("reliable", "dependable", "trustworthy"),
    ("careful", "thorough", "painstaking"),
    ("answers", "replies to", "responds to"),
    ("solves", "works out", "resolves"),
    ("finds", "locates", "looks up"),
    ("question", "query", "request"),
    ("questions", "queries", "requests"),
    ("searches", "looks through", "scans"),
    ("returns", "gives back", "yields"),
    ("often", "frequently", "many times"),
    ("rarely", "seldom", "hardly ever"),
    ("good", "fine", "capable"),
    ("excellent", "outstanding", "superb"),
    ("poor", "weak", "bad"),
    ("accurate", "precise", "exact"),
    ("problem", "task", "exercise"),
    ("problems", "tasks", "exercises"),
)
_OTHERS: Mapping[str, tuple[str, ...]] = {
    word: tuple(each for each in group if each != word) for group in _SYNONYMS for word in group if " " not in word
}


def parse_drawn(text: str) -> tuple[Drawn, ...]:
    """What `--unseen names,order` names, in a fixed order.

    Raises:
        UsageError: something that cannot be drawn; names what was probably meant.
    """
    given = [part.strip() for part in text.split(",") if part.strip()]
    for each in given:
        if each not in _DRAWN:
            raise UsageError(f"unseen={each!r}: {suggestion(each, _DRAWN)}; expected some of {', '.join(_DRAWN)}")
    if not given:
        raise UsageError(f"unseen={text!r}: expected some of {', '.join(_DRAWN)}")
    return tuple(each for each in _DRAWN if each in given)


def unseen_pool(pool: Pool, drawn: Iterable[Drawn], key: object) -> Pool:
    """A pool with something drawn at random.

    `names`: tools and agents under new names; `order`: in another order; `cards`: descriptions in other words, with
    their sentences in another order; `prices`: of calls and of models, times a factor from 1/4 to 4 each; `skills`:
    each tool or agent stays with probability 0.6, two at least, so that who is best changes.

    Args:
        key: another key, another pool.
    """
    for each in drawn:
        pool = _CHANGES[each](pool, Random(f"unseen {each} {key}"))
    return pool


def changed_pool(pool: Pool, change: Counterfactual, key: object) -> tuple[Pool, dict[str, str]]:
    """A pool with its order reversed or its descriptions permuted, and whose description each member bears.

    Descriptions change holders among members with equal parameters, none keeps its own; the models behind agents that
    ask one model change theirs likewise.

    Args:
        key: another key, another permutation.
    """
    names = [spec.name for _, spec in pool.actions]
    if change == "order reversed":
        return pool.arranged(names[::-1]), dict(zip(names, names, strict=True))
    chance, owners, texts = Random(f"permuted {key}"), dict(zip(names, names, strict=True)), {}
    for group in _alike([spec for _, spec in pool.actions]):
        for holder, owner in zip(group, _derangement(group, chance), strict=True):
            owners[holder.name] = owner.name
            texts[_described(holder)] = pool[_described(owner)].description
    return pool.describe(texts), owners


def _described(spec: ToolSpec) -> str:
    """The name of the member whose description an orchestrator reads."""
    return spec.model if isinstance(spec, ModelAgent) else spec.name


def _alike(specs: Sequence[ToolSpec]) -> list[list[ToolSpec]]:
    """Members that can bear each other's descriptions: several with equal parameters."""
    groups: dict[tuple[bool, str], list[ToolSpec]] = {}
    for spec in specs:
        groups.setdefault((isinstance(spec, ModelAgent), repr(spec.input_schema)), []).append(spec)
    return [group for group in groups.values() if len(group) > 1]


def _derangement(group: Sequence[ToolSpec], chance: Random) -> list[ToolSpec]:
    """The same in an order in which none stands at its own place."""
    order = list(group)
    chance.shuffle(order)
    following = dict(zip(order, [*order[1:], order[0]], strict=True))
    return [following[spec] for spec in group]


def _names(pool: Pool, chance: Random) -> Pool:
    taken: dict[str, str] = {}
    for _, spec in pool.actions:
        while (name := "".join(chance.choices(_SYLLABLES, k=chance.randint(2, 4)))) in taken.values():
            pass
        taken[spec.name] = name
    return pool.alias(taken)


def _order(pool: Pool, chance: Random) -> Pool:
    names = [spec.name for _, spec in pool.actions]
    chance.shuffle(names)
    return pool.arranged(names)


def _cards(pool: Pool, chance: Random) -> Pool:
    described = sorted({_described(spec) for _, spec in pool.actions})
    return pool.describe({name: reworded(pool[name].description, chance) for name in described})


def reworded(text: str, chance: Random) -> str:
    """A description in other words that say the same: sentences in another order, synonyms, another frame."""
    sentences = [part for part in _SENTENCE.split(text.strip()) if part]
    chance.shuffle(sentences)

    def other(found: re.Match[str]) -> str:
        word = found[0]
        new = chance.choice((word.lower(), *_OTHERS.get(word.lower(), ())))
        return new.capitalize() if word[0].isupper() else new

    known = re.compile(rf"\b(?:{'|'.join(_OTHERS)})\b", re.IGNORECASE)
    return chance.choice(_FRAMES).format(known.sub(other, " ".join(sentences)))


def _prices(pool: Pool, chance: Random) -> Pool:
    def factor() -> float:
        return math.exp(chance.uniform(math.log(_LEAST_FACTOR), math.log(_MOST_FACTOR)))

    prices = {
        spec.name: _times(spec.prices, factor()) for spec in pool.models if spec.prices is not None and not spec.needs
    }
    pool = pool.price(prices)
    for _, spec in pool.actions:
        by, cost = factor(), spec.cost
        pool = pool.adjust(spec.name, cost=Cost(units=cost.units * by, usd=cost.usd * by))
    return pool


def _times(prices: Prices, by: float) -> Prices:
    return Prices(prices.input * by, prices.output * by)


def _skills(pool: Pool, chance: Random) -> Pool:
    names = [spec.name for _, spec in pool.actions]
    kept = {name for name in names if chance.random() < _KEPT_SHARE}
    if len(kept) < 2:
        kept = set(chance.sample(names, min(2, len(names))))
    return pool.arranged([name for name in names if name in kept])


_CHANGES: Mapping[Drawn, Callable[[Pool, Random], Pool]] = {
    "names": _names,
    "order": _order,
    "cards": _cards,
    "prices": _prices,
    "skills": _skills,
}
