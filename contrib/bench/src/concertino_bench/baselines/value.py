"""A cascade by expected value: whom to ask next, and when to stop, follows from how often members are right.

How probably an answer is right that several members gave follows from Bayes' rule: members are taken to err
independently, and two that err give the same wrong answer with the probability `coincidence`. The next member is the
one whose answer is expected to be worth its price, looking up to three calls ahead; if there is none, the most probable
answer is given.

Invariant: the order of the members changes nothing but ties.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

from concertino import UsageError
from concertino.strategies import Done, Step, TaskContext

from concertino_bench.graders.answer_keys import FORMS, Form, reply_key

from .members import members_of
from .procedure import Log, Procedure, failures, with_instruction
from .voting import act

Estimate = Callable[[str, Mapping[str, str]], Mapping[str, float]]
"""From a question, and descriptions by visible name, to how often each member is expected to be right, 0 to 1."""

_PRICE = re.compile(r"\nPrice: \$(\S+) / \$(\S+) per million tokens .*$")
_USUAL_PROMPT, _USUAL_REPLY = 200, 200
_LEAST, _MOST = 0.01, 0.99
_FEW = 6
"""Members up to which a third call is looked at: it takes a tenth of a second, and with twenty it would take one."""
Seen = tuple[tuple[int, str | None], ...]
"""Places of the members that were asked, and what each answered; None where nothing could be read."""


@dataclass(frozen=True)
class ValueCascade(Procedure):
    """Members are asked one after another, as long as an answer is expected to be worth its price.

    How often members are right is taken from `shares`, else from `estimate`, else from `concertino-scorer`, which reads
    their descriptions. The price of a call is taken from `prices`, else from the description of a model that is offered
    as an agent, for 200 tokens read and 200 written.

    Args:
        members: visible names; by default every model that is offered as an agent.
        shares: how often each of `members` is right, 0 to 1.
        prices: of a call of each of `members`, in $.
        cost_weight: how much accuracy a $ is worth; 0 looks at accuracy alone.
        coincidence: the probability that two wrong answers are the same one.
        answers: how answers are compared: `number`, `text`, or `auto`.
        instruction: put below the question.
        estimate: an `Estimate`, such as `Scorer.expected`; traces do not keep it.
    """

    members: tuple[str, ...] = ()
    shares: tuple[float, ...] = ()
    prices: tuple[float, ...] = ()
    cost_weight: float = 0.0
    coincidence: float = 0.1
    answers: Form = "auto"
    instruction: str = ""
    estimate: Estimate | None = field(default=None, compare=False, repr=False)

    name = "value-cascade"
    reads_tools = True

    def __post_init__(self) -> None:
        self._one_of("answers", FORMS)
        self._names("members")
        for setting in ("shares", "prices"):
            values = tuple(getattr(self, setting))
            if values and len(values) != len(self.members):
                self._refuse(setting, f"one number for each of the {len(self.members)} members, or none")
            object.__setattr__(self, setting, values)
        if not all(0 <= share <= 1 for share in self.shares):
            self._refuse("shares", "shares from 0 to 1")
        if not 0 <= self.cost_weight < float("inf"):
            self._refuse("cost_weight", "a number, 0 or more")
        if not 0 < self.coincidence <= 1:
            self._refuse("coincidence", "a probability above 0")

    def prepare(self, brief: TaskContext) -> Log:
        """Find the members, and what is expected of each."""
        members = members_of(brief.tools, self.members, self.name)
        log = replace(super().prepare(brief), members=members)
        if not brief.tools and not self.shares:  # a replay that does not know the pool
            return log
        told = {tool["function"]["name"]: str(tool["function"].get("description", "")) for tool in brief.tools}
        cards = {member.name: told.get(member.name, "") for member in members}
        prices: tuple[float | None, ...] = self.prices or tuple(_price_in(card) for card in cards.values())
        if self.cost_weight and None in prices:
            unpriced = next(name for name, price in zip(cards, prices, strict=True) if price is None)
            raise UsageError(
                f"{self.name}: the price of {unpriced!r} is unknown; price its model with pool.price(...), or give "
                "members=... and prices=... ($ per call)"
            )
        shares = self.shares or self._estimated(brief.question, cards)
        notes = json.dumps({"shares": list(shares), "prices": [price or 0.0 for price in prices]})
        return replace(log, notes=notes)

    def decide(self, log: Log) -> Step:
        """Ask whoever is worth it, else answer."""
        judgement, seen = self._judgement(log), self._seen(log)
        place = judgement.next_after(seen)
        if place is not None:
            return act([log.members[place]], with_instruction(log.question, self.instruction), log)
        text, share = self._leading(log, judgement, seen)
        if text is None:
            stop = "model" if all(each is None for each in log.texts) else "format"
            return Done(None, stop, failures(log.results) or "no answer could be read")
        return Done(text, "answered", f"{len(seen)} asked; right with the probability {share:.2f}")

    def best(self, log: Log) -> str | None:
        """The answer that is most probably right so far."""
        return self._leading(log, self._judgement(log), self._seen(log))[0]

    def _estimated(self, question: str, cards: Mapping[str, str]) -> tuple[float, ...]:
        estimate = self.estimate or _scorer()
        bare = {name: _PRICE.sub("", card) for name, card in cards.items()}
        found = estimate(question, bare)
        return tuple(min(_MOST, max(_LEAST, float(found[name]))) for name in cards)

    def _judgement(self, log: Log) -> Judgement:
        notes: dict[str, Any] = json.loads(log.notes) if log.notes else {}
        count = len(log.members)
        shares, prices = notes.get("shares") or [0.5] * count, notes.get("prices") or [0.0] * count
        return Judgement(tuple(shares), tuple(self.cost_weight * price for price in prices), self.coincidence)

    def _seen(self, log: Log) -> Seen:
        """Who gave which result follows from the results before it, for each was asked for because of them."""
        judgement = self._judgement(log)
        seen: Seen = ()
        for text in log.texts:
            place = judgement.next_after(seen)
            assert place is not None
            seen = (*seen, (place, None if text is None else reply_key(text, self.answers)))
        return seen

    def _leading(self, log: Log, judgement: Judgement, seen: Seen) -> tuple[str | None, float]:
        key, share = judgement.leading(seen)
        if key is None:
            return None, 0.0
        return log.texts[[answer for _, answer in seen].index(key)], share


@dataclass(frozen=True)
class Judgement:
    """What is known of the members of a run.

    Attributes:
        shares: how often each is right.
        costs: of a call of each, in shares of right answers.
        coincidence: the probability that two wrong answers are the same one.
    """

    shares: tuple[float, ...]
    costs: tuple[float, ...]
    coincidence: float

    def next_after(self, seen: Seen) -> int | None:
        """Who is asked next; None where no answer is worth its price."""
        return _next_after(self, seen)

    def leading(self, seen: Seen) -> tuple[str | None, float]:
        """The answer that is most probably right, and how probable that is; of equal ones the first."""
        found = self._probable(seen)
        return max(found.items(), key=lambda item: item[1]) if found else (None, 0.0)

    def asking(self, seen: Seen, place: int, ahead: int) -> float:
        """What is expected when a member is asked, and what follows is decided as well as `ahead` calls allow."""
        share, known = self.shares[place], self._probable(seen)
        agreeing = {key: right * share + (1 - right) * (1 - share) * self.coincidence for key, right in known.items()}
        new = max(0.0, 1 - sum(agreeing.values()))
        answers: list[tuple[str, float]] = [*agreeing.items(), (f"new {len(seen)}", new)]
        return sum(chance * self._value((*seen, (place, key)), ahead) for key, chance in answers) - self.costs[place]

    def _value(self, seen: Seen, ahead: int) -> float:
        stopping = self.leading(seen)[1]
        if not ahead:
            return stopping
        return max([stopping, *(self.asking(seen, place, ahead - 1) for place in self.left(seen))])

    def left(self, seen: Seen) -> list[int]:
        """Who was not asked yet."""
        asked = {place for place, _ in seen}
        return [place for place in range(len(self.shares)) if place not in asked]

    def _probable(self, seen: Seen) -> dict[str, float]:
        """How probably each answer that was given is right; a member that gave none tells nothing."""
        keys = list(dict.fromkeys(key for _, key in seen if key is not None))
        if not keys:
            return {}
        weights = [1.0] * (len(keys) + 1)  # the last: another answer, which nobody gave
        for place, given in seen:
            if given is None:
                continue
            share = self.shares[place]
            for number, key in enumerate([*keys, None]):
                weights[number] *= share if key == given else (1 - share) * self.coincidence
        # There are 1 / coincidence wrong answers, and one that is right.
        weights[-1] *= max(0.0, 1 / self.coincidence + 1 - len(keys))
        total = sum(weights)
        return {key: weight / total for key, weight in zip(keys, weights[:-1], strict=True)}


@lru_cache(maxsize=256)  # `decide` asks for every beginning of a run again
def _next_after(judgement: Judgement, seen: Seen) -> int | None:
    ahead = 2 if len(judgement.shares) <= _FEW else 1
    found: tuple[float, int | None] = (judgement.leading(seen)[1], None) if seen else (-1.0, None)
    for place in judgement.left(seen):
        value = judgement.asking(seen, place, ahead)
        if value > found[0] + 1e-9:
            found = value, place
    return found[1]


def _price_in(card: str) -> float | None:
    """The price of a usual call, as the description of a model that is offered as an agent tells it; $."""
    told = _PRICE.search(card)
    if told is None:
        return None
    return (_USUAL_PROMPT * float(told[1]) + _USUAL_REPLY * float(told[2])) / 1e6


def _scorer() -> Estimate:
    try:
        from concertino_scorer.scorer import Scorer
    except ImportError:
        raise UsageError(
            f"{ValueCascade.name}: how often members are right is unknown; `pip install concertino-scorer` reads their "
            "descriptions, or give members=... and shares=..."
        ) from None
    expected: Estimate = Scorer.shipped().expected
    return expected
