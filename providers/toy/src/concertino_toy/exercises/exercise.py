"""Exercises for the conductor: a question with its answers, and a pool that answers it or fails.

A pool is one of two kinds: a solver with a choice of models, or several agents with one model each. Useless tools stand
beside them.

Invariants: an exercise follows from its number alone (and the version of Python, see `english`); its members answer by
the text of the problem, so the same calls give the same results in any process.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Any

from concertino import CallFailed, ErrorInfo, Observation, ParallelRounds, Pool, Status, ToolSpec

from . import wording
from .teacher import Assignee

Writer = Callable[[Random], str]
"""Writes the text of one problem."""
FAULTS = (
    ("raised", "RuntimeError: {word}: the server's reply is no JSON"),
    ("raised", "{other}Error: {word} {other} {number} {other}"),
    ("raised", "ConnectionResetError: the connection was lost after {number} ms"),
    ("unavailable", "{word} could not be reached (after {number} attempts)"),
    ("unavailable", "{word}: HTTP {number} from {other}:{number}"),
    ("rejected", "{word} reads at most {number} tokens and was given {number}; ask a larger model"),
    ("truncated", "the reply broke off"),
    ("throttled", "{word} allows {number} calls a minute; try again in {number} s"),
    ("quarantined", "{word} is out of use: it blocked; use another member"),
    ("failed", "it did not work"),
    ("failed", "{other} {other}: {number}"),
)
"""What may go wrong: codes and messages."""


@dataclass(frozen=True)
class Exercise:
    """One question over one pool.

    Attributes:
        question: the user's.
        answers: in order.
        pool: what may be called.
        choices: whom problems can be given to, in the order in which they are listed.
        strategy: how it is led.
    """

    question: str
    answers: tuple[str, ...]
    pool: Pool
    choices: tuple[Assignee, ...]
    strategy: ParallelRounds


def draw_exercise(
    number: int, *, seed: int = 0, fault_rate: float = 0.2, texts: Callable[[Random], Writer] = wording.problem_writer
) -> Exercise:
    """Draw an exercise."""
    # The order of the draws below is part of the data: another order gives other exercises and other figures.
    rng = Random(f"conductor {seed} {number}")
    write = texts(rng)
    count = rng.choice((1, 1, 1, 2, 2, 3, 3, 4, 4, 4, 5, 6))
    problems = [write(rng) for _ in range(count)]
    if count > 1 or rng.random() < 0.2:
        problems = [f"Problem {place}: {text}" for place, text in enumerate(problems, start=1)]
    answers = [wording.new_value(rng) for _ in problems]
    intro = [rng.choice(wording.INTROS)] if count > 1 and rng.random() < 0.5 else []
    outro = [rng.choice(wording.OUTROS)] if count > 1 and rng.random() < 0.3 else []
    answerer = _SharedAnswers(
        dict(zip(problems, answers, strict=True)), rng.random(), fault_rate, wordy=rng.random() < 0.35
    )
    solvers, choices = _choosing(rng, answerer) if rng.random() < 0.6 else _agents(rng, answerer)
    members = [*solvers, *(_tool(rng, *each) for each in rng.sample(wording.TOOLS, rng.choice((0, 0, 1, 2, 3))))]
    if len(solvers) == 1:
        rng.shuffle(members)
    strategy = ParallelRounds(
        prompt="brief",
        references=True,
        max_rounds=rng.choice((6, 8, 8, 10, 12, 12, 12)),
        max_parallel=rng.choice((2, 3, 3, 4, 4, 4, 5, 6)),
        show_budget=rng.random() < 0.2,
        observation_tokens=rng.choice((60, 80, 80, 80, 100, 160, None)),
    )
    return Exercise("\n\n".join([*intro, *problems, *outro]), tuple(answers), Pool(members), tuple(choices), strategy)


class _SharedAnswers:
    """What all members of an exercise know, how often they were asked, and whether they are long-winded."""

    def __init__(self, answers: dict[str, str], key: float, fault_rate: float, *, wordy: bool) -> None:
        self._answers, self._key, self._rate, self._wordy = answers, key, fault_rate, wordy
        self._asked: Counter[tuple[str, str]] = Counter()

    def answer(self, text: str, who: str) -> str:
        self._asked[text, who] += 1
        # The number of the attempt counts, so that a repeat may succeed.
        rng = Random(f"{self._key} {text} {who} {self._asked[text, who]}")
        if rng.random() < self._rate:
            raise _fault(rng, who)
        value = self._answers.get(text) or (next(iter(self._answers.values())) if len(self._answers) == 1 else "")
        # Seldom beside real faults: members that answer and know nothing have to be recognised as well.
        if not value or rng.random() < self._rate / 4:
            return wording.refusal_text(rng)
        return wording.reply_text(rng, value, long=self._wordy)


def _fault(rng: Random, who: str) -> CallFailed:
    who = who if rng.random() < 0.6 else f"{wording.new_word(rng)}/{who}"
    if rng.random() < 0.45:
        seconds = f"{rng.randrange(1, 60)}.{rng.randrange(100):02}"
        ends = rng.choice((f"its limit is {seconds} s", "its caller's time is over", f"its limit is {seconds} s", ""))
        words = f"no result after {seconds} s" + (f"; {ends}" if ends else "")
        told = words if rng.random() < 0.5 else f"{who}: {words}"
        return CallFailed(Observation("", "", Status.TIMEOUT, None, ErrorInfo("deadline", told, retryable=True)))
    code, words = rng.choice(FAULTS)
    while "{number}" in words or "{other}" in words:
        words = words.replace("{number}", str(rng.randrange(1, 9000)), 1)
        words = words.replace("{other}", wording.new_word(rng), 1)
    return CallFailed.because(words.format(word=who), code=code)


def _schema(properties: dict[str, Any], required: list[str]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def _choosing(rng: Random, answerer: _SharedAnswers) -> tuple[list[ToolSpec], list[Assignee]]:
    """One solver with a choice of models."""
    models = wording.model_names(rng, rng.choice((2, 3, 3, 3, 4, 5, 6)))
    text, by = rng.choice(wording.TEXT_ARGUMENTS), rng.choice(wording.MODEL_ARGUMENTS)
    name = rng.choice(wording.SOLVER_NAMES) if rng.random() < 0.5 else wording.new_word(rng)
    about = rng.choice(wording.SOLVER_WORDS).format(models=" | ".join(models))
    properties = {text: {"type": "string"}, by: {"type": "string", "enum": models}}
    required = [text] if rng.random() < 0.7 else [text, by]

    def answer(arguments: dict[str, Any]) -> str:
        return answerer.answer(arguments[text], arguments.get(by, models[0]))

    solver = ToolSpec.from_schema(name, about, _schema(properties, required), answer, retry_safe=True)
    return [solver], [Assignee(name, text, {by: model}) for model in models]


def _agents(rng: Random, answerer: _SharedAnswers) -> tuple[list[ToolSpec], list[Assignee]]:
    """Several agents, one model each."""
    prefix = "ask_" if rng.random() < 0.7 else ""
    text = rng.choice(wording.TEXT_ARGUMENTS)
    priced = rng.random() < 0.6
    drawn = wording.model_names(rng, rng.choice((1, 2, 2, 3, 3, 4, 5, 6)))
    names = list(dict.fromkeys(name.replace(".", rng.choice("-_")) for name in drawn))

    def agent(name: str) -> ToolSpec:
        about = wording.about_agent(rng, name)
        if priced:
            once, out = rng.choice(wording.PRICES).split("/")
            about += f"\nPrice: {once} / {out} per million tokens in / out."

        def answer(arguments: dict[str, Any]) -> str:
            return answerer.answer(arguments[text], name)

        schema = _schema({text: {"type": "string"}}, [text])
        return ToolSpec.from_schema(prefix + name, about, schema, answer, retry_safe=True)

    return [agent(name) for name in names], [Assignee(prefix + name, text) for name in names]


def _tool(rng: Random, name: str, about: str, arguments: tuple[tuple[str, bool], ...]) -> ToolSpec:
    """A tool that is of no use here."""
    properties = {each: {"type": "string"} for each, _ in arguments}
    required = [each for each, needed in arguments if needed]
    shown = name if rng.random() < 0.6 else f"{name}_{wording.new_word(rng, 1, 2)}"
    return ToolSpec.from_schema(shown, about, _schema(properties, required), lambda arguments: "nothing")
