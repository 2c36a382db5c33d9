"""The members of the practice pool: tools that know one topic (cheap, sure or quick), and one that guesses on all.

They are ordinary tools: typed, priced, run by the executor. What goes wrong is drawn from the question, the member and
how often it failed before in the run, so a rollout is the same in any process, and a repeat may succeed. Invariant:
a member keeps no state, so one pool serves any number of runs at once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, Literal

from concertino import CallFailed, Context, Cost, ErrorInfo, Observation, Pool, Status, ToolSpec, UsageError

from concertino_toy.reading import write_boxes

from .facts import fact, rumour
from .questions import about
from .words import NAMES, TOPICS, TWIN, draw

Mix = Literal["mixed", "mono"]


@dataclass(frozen=True)
class Manner:
    """How a member works.

    Attributes:
        name: "cheap", "sure", "quick" or "any".
        words: what its description says of it, behind what it knows.
        signs: words by which an expert knows the manner, in whatever words the description is.
        units: cost units of a call.
        usd: $ of a call.
        seconds: of a call, before the pool's `latency`.
        fails: share of calls that fail, 0 to 1.
        errs: share of answers that are wrong and do not say so, 0 to 1.
    """

    name: str
    words: str
    units: float
    usd: float
    seconds: float
    fails: float
    errs: float = 0.0
    signs: tuple[str, ...] = ()


MANNERS: dict[str, Manner] = {
    manner.name: manner
    for manner in (
        Manner("cheap", "cheap, may fail", 1, 0.001, 0.5, 0.45, signs=("may fail",)),
        Manner("sure", "dear, reliable", 5, 0.02, 1.0, 0.03, signs=("reliable", "dependable", "trustworthy")),
        Manner("quick", "quick, patchy", 3, 0.008, 0.1, 0.2, signs=("patchy",)),
        Manner("any", "poor guesses", 1, 0.001, 0.5, 0.1, 0.6, signs=("guesses",)),
    )
}
"""By name. `any` is the manner of the member that knows every topic."""


@dataclass(frozen=True)
class Faults:
    """What goes wrong, and how often.

    Attributes:
        scale: what the shares of `MANNERS` are multiplied with; 0 for no faults.
        stubborn: share of failing calls that fail again when repeated, 0 to 1.
        late: share of failures that are a TIMEOUT, 0 to 1; the others are an EXEC_ERR.
        seed: another seed, other faults.
    """

    scale: float = 1.0
    stubborn: float = 0.4
    late: float = 0.4
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("stubborn", "late"):
            if not 0 <= getattr(self, name) <= 1:
                raise UsageError(f"Faults({name}={getattr(self, name)!r}): expected a share from 0 to 1")
        if self.scale < 0:
            raise UsageError(f"Faults(scale={self.scale!r}): expected 0 or more")

    def strikes(self, manner: Manner, question: str, key: str, failed: int) -> bool:
        """Whether a call fails.

        Args:
            manner: of the member.
            question: of the run.
            key: of the member, whatever it is called.
            failed: how often it failed before in this run.
        """
        # The member's key and not its name: renaming members must not change what goes wrong.
        if draw("fault", self.seed, question, key) >= manner.fails * self.scale:
            return False
        return failed == 0 or draw("stubborn", self.seed, question, key) < self.stubborn

    def is_late(self, question: str, key: str) -> bool:
        """Whether a failure is a TIMEOUT."""
        return draw("late", self.seed, question, key) < self.late

    def misleads(self, manner: Manner, question: str, key: str) -> bool:
        """Whether an answer is wrong."""
        return draw("errs", self.seed, question, key) < manner.errs * self.scale


def practice_pool(
    mix: Mix = "mixed",
    *,
    names_seed: int = 0,
    topics: Sequence[str] = TOPICS[:4],
    manners: Sequence[str] = ("cheap", "sure"),
    faults: Faults | Mapping[str, Any] | None = None,
    latency: float = 0.0,
    twin: bool = True,
    combiner: bool = False,
) -> Pool:
    """The pool in which orchestration is practised.

    Args:
        mix: "mixed": for each topic a member of each manner, and one member for all topics; "mono": for each topic one
            member, all of the first manner.
        names_seed: another seed gives the same members other names and another order; 0 is the order of the list.
        topics: the topics that have members.
        manners: of `MANNERS`, for each topic.
        faults: what goes wrong, or the fields of it, as a settings file has them; by default the shares of `MANNERS`.
        latency: factor for the seconds of `MANNERS`; 0 answers immediately.
        twin: also a member that knows the twins of places, sure.
        combiner: also a member that joins results to an answer, for strategies whose answer is a member's.

    Raises:
        UsageError: an unknown mix, topic or manner, or more members than names.
    """
    _check("mix", [mix], ["mixed", "mono"])
    _check("topics", topics, TOPICS)
    _check("manners", manners, [name for name in MANNERS if name != "any"])
    chosen = manners[:1] if mix == "mono" else manners
    wanted = [(topic, MANNERS[manner]) for topic in topics for manner in chosen]
    wanted += [("", MANNERS["any"])] * (mix == "mixed") + [(TWIN, MANNERS["sure"])] * twin
    names = list(NAMES)
    if names_seed:
        rng = Random(f"names {names_seed}")
        rng.shuffle(names)
        # Another order, too, so that a place in the list says nothing of a member.
        rng.shuffle(wanted)
    if len(wanted) > len(names):
        raise UsageError(f"{len(wanted)} members, but only {len(names)} names; give fewer topics or manners")
    plan = faults if isinstance(faults, Faults) else Faults(**(faults or {}))
    members = [_member(name, *each, plan, latency) for name, each in zip(names, wanted, strict=False)]
    return Pool([*members, *([_combiner()] if combiner else [])])


def _check(what: str, given: Sequence[str], known: Sequence[str]) -> None:
    unknown = [each for each in given if each not in known]
    if unknown or not given:
        raise UsageError(f"practice_pool({what}={unknown or given!r}): expected some of {', '.join(known)}")


def _member(name: str, topic: str, manner: Manner, faults: Faults, latency: float) -> ToolSpec:
    """A tool that answers about one topic, or with an empty one about all."""
    key = f"{topic} {manner.name}"

    async def answer(ask: str, *, ctx: Context) -> str:
        if latency:
            await asyncio.sleep(manner.seconds * latency)
        asked, place = about(ask, topic)
        if not asked or not place:
            raise CallFailed.because("no place is named" if asked else "no topic is named", code="unclear")
        # Read from the run and kept nowhere, so one pool serves any number of runs.
        failed = sum(seen.name == name and not seen.ok for seen in ctx.history)
        if faults.strikes(manner, ctx.question, key, failed):
            raise _failure(late=faults.is_late(ctx.question, key))
        tell = rumour if faults.misleads(manner, ctx.question, f"{key} {asked}") else fact
        return tell(asked, place)

    return ToolSpec(
        name,
        f"{(topic or 'any topic').capitalize()}, {manner.words}",
        {
            "type": "object",
            "properties": {"ask": {"type": "string", "description": "what is asked, or the place"}},
            "required": ["ask"],
            "additionalProperties": False,
        },
        answer,
        cost=Cost(units=manner.units, usd=manner.usd),
        retry_safe=True,
        context="ctx",
    )


def _failure(*, late: bool) -> CallFailed:
    if late:
        error = ErrorInfo("deadline", "no answer in time", retryable=True)
        return CallFailed(Observation("", "", Status.TIMEOUT, None, error))
    return CallFailed.because("it did not work", code="unavailable", retryable=True)


def _combiner() -> ToolSpec:
    """A tool that makes an answer of results."""

    def gather(ask: str) -> str:
        found = about_numbers(ask)
        if not found:
            raise CallFailed.because("no number is named", code="unclear")
        return " ".join(write_boxes(found))

    schema: dict[str, Any] = {"type": "object", "properties": {"ask": {"type": "string"}}, "required": ["ask"]}
    return ToolSpec("gather", "joins results to the answer", schema, gather, retry_safe=True)


def about_numbers(text: str) -> list[str]:
    """The numbers behind the last "sub-task:" of a text, in order."""
    own = text.rpartition("sub-task:")[2]
    return [word for word in own.replace(",", " ").split() if word.isdecimal()]
