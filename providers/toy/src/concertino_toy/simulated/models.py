"""Simulated chat models: they read the question grammar, solve what their `Skill` allows, and fail as it
says.

A reply is `<reasoning>` with one line per step (`- name = formula = numbers = value`), then `<answer>`
with one `\\boxed{}` per question. A model reads the last user message; sentences outside the grammar are
named and left out. Tokens are counted by a rule of its own: each word and each punctuation mark is one.
"""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import AsyncIterator

from concertino import ChatRequest, FailureClass, Model, ModelSpec, Prices, ProviderError, Reply, Usage

from concertino_toy.problems.grammar import GrammarError, Question, focus, read
from concertino_toy.reading import write_boxes

from .roles import Form, play, task_of, wanted_form
from .skills import OPERATIONS, CannotDo, Fault, Pace, Skill

_TOKEN = re.compile(r"\w+|[^\w\s]")
_PIECE = re.compile(r"\s*\S+\s*?|\s+\Z")
SHORTEST_SLEEP = 0.01
"""Seconds; event loops keep shorter ones badly, so a stream saves them up."""
GARBAGE = "<reasoning>the the the the </rea <answer>\\boxed{"


class SimulatedModel(Model):
    """What all models here share: latency, streaming, token counts. Subclasses write `compose`."""

    def __init__(self, name: str, pace: Pace) -> None:
        self.name, self._pace = name, pace

    async def compose(self, request: ChatRequest) -> str:
        """The whole text of the reply, or an exception.

        Raises:
            ProviderError: the simulated server fails.
        """
        raise NotImplementedError

    async def chat(self, request: ChatRequest) -> Reply:
        """Answer a request after the time that the pace asks for."""
        reply = await self._reply(request)
        await asyncio.sleep(self._pace.seconds + self._pace.per_token * reply.usage.output_tokens)
        return reply

    async def stream(self, request: ChatRequest) -> AsyncIterator[str | Reply]:
        """Yield the text word by word at the same pace, then the reply."""
        reply = await self._reply(request)
        owed = self._pace.seconds
        for piece in _PIECE.findall(reply.text):
            owed += self._pace.per_token * self.count_tokens(piece)
            if owed >= SHORTEST_SLEEP:
                await asyncio.sleep(owed)
                owed = 0.0
            yield piece
        yield reply

    def count_tokens(self, text: str) -> int:
        """Words and punctuation marks."""
        return len(_TOKEN.findall(text))

    async def _reply(self, request: ChatRequest) -> Reply:
        text, reason = await self.compose(request), "stop"
        for stop in request.sampling.stop:
            text = text.split(stop, 1)[0]
        limit = request.sampling.max_tokens
        tokens = list(_TOKEN.finditer(text))
        if limit is not None and len(tokens) > limit:
            text, reason, tokens = text[: tokens[limit - 1].end()], "length", tokens[:limit]
        read_tokens = sum(self.count_tokens(message.text) for message in request.messages)
        return Reply(text, usage=Usage(input_tokens=read_tokens, output_tokens=len(tokens)), finish_reason=reason)


class SimulatedSolver(SimulatedModel):
    """A model with a skill."""

    def __init__(self, name: str, skill: Skill) -> None:
        super().__init__(name, skill.pace)
        self._skill = skill
        self._arrivals = 0
        self._repeats: Counter[str] = Counter()

    async def compose(self, request: ChatRequest) -> str:
        """Solve the last user message, or write what a role is asked for, unless the server fails first."""
        form = wanted_form(request.messages)
        last = next((m.text for m in reversed(request.messages) if m.role == "user"), "")
        prompt = task_of(request.messages) if form else last
        # Which steps err follows from this key; every documented figure was measured with the prefix "sim/".
        key = f"sim/{self.name.rpartition('/')[2]} {request.sampling.seed} {last}"
        self._refuse_long(request)
        fault = self._skill.fault(key, self._arrivals, self._repeats[key])
        self._arrivals += 1
        if self._skill.faults:
            self._repeats[key] += 1
        if fault:
            return await self._fail(fault)
        return solve_prompt(prompt, key, self._skill, form)

    def _refuse_long(self, request: ChatRequest) -> None:
        size = sum(self.count_tokens(message.text) for message in request.messages)
        if size > self._skill.context:
            limit = self._skill.context
            message = f"{self.name} reads at most {limit} tokens and was given {size}; ask a larger model"
            raise ProviderError.from_http(413, message)

    async def _fail(self, fault: Fault) -> str:
        if fault == "throttled":
            raise ProviderError.from_http(429, f"{self.name} is busy (simulated)", retry_after=0.01)
        if fault == "hang":
            # Never answers: the caller's deadline has to end it.
            await asyncio.Event().wait()
        if fault == "crash":
            raise RuntimeError(f"{self.name}: the server's reply is no JSON (simulated)")
        if fault == "reset":
            # The connection breaks while the answer is on its way: it may have been worked out.
            await asyncio.sleep(self._pace.seconds)
            message = f"{self.name}: connection reset by peer (simulated)"
            raise ProviderError(message, failure=FailureClass.MAYBE_EXECUTED)
        return GARBAGE


def solve_prompt(prompt: str, key: str, skill: Skill, form: Form | None = None) -> str:
    """The text in which a model of some skill answers a prompt.

    Args:
        prompt: what it reads.
        key: identifies the request; the same one errs in the same way.
        skill: what it can do.
        form: what a role is asked for; None for steps and boxed answers.
    """
    try:
        question = read(focus(prompt), strict=False)
        if form:
            return play(form, question, skill, key)
        solution = skill.attempt(question, key)
    except (GrammarError, CannotDo) as error:
        return f"<reasoning>\nI cannot answer this: {error}\n</reasoning>\n<answer>\nunknown\n</answer>"
    lines = [*_remarks(question), *(f"- {step}" for step in solution.steps)]
    return "\n".join(["<reasoning>", *lines, "</reasoning>", "<answer>", *write_boxes(solution.answers), "</answer>"])


def _remarks(question: Question) -> list[str]:
    unread = [sentence for problem in question.problems for sentence in problem.unread]
    lures = [lure.text for problem in question.problems for lure in problem.lures]
    numbers = ", ".join(str(problem.number) for problem in question.problems)
    return [
        f"This is about problem {numbers}.",
        "Everything is modulo 23; what is not mentioned is 0.",
        *(f"I leave out what I cannot read: {sentence}" for sentence in unread),
        *(f"There is a note to verify: {lure}" for lure in lures),
    ]


SWIFT = Skill(
    operations=OPERATIONS - {"total"},
    steps=6,
    error_rate=0.35,
    lure_rate=1.0,
    context=600,
    pace=Pace(0.002, 0.0),
)
STEADY = Skill(steps=16, error_rate=0.2, lure_rate=0.25, context=2000, pace=Pace(0.004, 0.0))
SAGE = Skill(steps=40, error_rate=0.05, context=16_000, pace=Pace(0.008, 0.0))


def solver_specs() -> list[ModelSpec]:
    """The published solvers, from cheap to expensive."""
    return [model_spec("swift", SWIFT), model_spec("steady", STEADY), model_spec("sage", SAGE)]


_ABOUT = {
    "swift": (
        "cheap and quick; short problems only, no totals over a category, believes false notes",
        (0.05, 0.2),
    ),
    "steady": (
        "middle price; problems of up to sixteen steps, now and then believes a false note",
        (0.5, 2.0),
    ),
    "sage": ("expensive and slow; long problems, never believes a false note", (3.0, 15.0)),
}


def model_spec(name: str, skill: Skill) -> ModelSpec:
    """One of the published names with a skill of your choice."""
    strengths, (price_in, price_out) = _ABOUT[name]
    return ModelSpec(
        name,
        lambda: SimulatedSolver(f"toy/{name}", skill),
        description=f"Simulated solver of MASBENCH-style quantity questions: {strengths}.",
        prices=Prices(input=price_in, output=price_out),
        context=skill.context,
        accepts=(),
    )
