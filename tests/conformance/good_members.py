"""Members and models that meet every requirement, and the subjects that say what their authors know of them."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from typing import Annotated, Any

import concertino as ct
from concertino.testing import ScriptedModel, make_pool
from concertino.testing.check import MemberSubject, ModelSubject
from pydantic import Field


@ct.tool(timeout=5)
async def count_letter(
    text: Annotated[str, Field(description="The text to look at.")],
    letter: Annotated[str, Field(description="One letter, upper and lower case differ.", min_length=1, max_length=1)],
    pause: Annotated[float, Field(description="Seconds to wait before counting.", ge=0, le=60)] = 0.0,
) -> int:
    """Count how often one letter occurs in a text."""
    if text == "?":
        raise ValueError("a text of one question mark cannot be counted; give the text itself")
    await asyncio.sleep(pause)
    return text.count(letter)


COUNT_LETTER: dict[str, Any] = {
    "examples": [
        ({"text": "banana", "letter": "a"}, 3),
        ({"text": "banana", "letter": "n"}, lambda found: found == 2),
    ],
    "rejected": [{"text": 3, "letter": "a"}, {"text": "banana", "letter": "an"}, {"text": "banana"}],
    "failing": [{"text": "?", "letter": "a"}],
    "slow": {"text": "banana", "letter": "a", "pause": 30},
}


@ct.agent(timeout=30, models=("worker",), cost=ct.Cost(units=1))
async def vote(
    question: Annotated[str, Field(description="The question, with all that is needed to answer it.")],
    samples: Annotated[int, Field(description="How many answers are compared.", ge=1, le=9)] = 3,
    *,
    ctx: ct.Context,
) -> str:
    """Ask a model several times and return the answer that most replies agree on."""
    replies = await ctx.gather(ctx.model("worker").chat(question) for _ in range(samples))
    texts = [reply.text.strip() for reply in replies]
    return max(texts, key=texts.count)


def voting_pool() -> ct.Pool:
    return make_pool(worker=ScriptedModel("42", strict=False))


VOTE: dict[str, Any] = {
    "examples": [({"question": "6 * 7?"}, "42")],
    "rejected": [{"question": "6 * 7?", "samples": 99}],
}


class Counting(ct.Model):
    """Counts in English; keeps to every part of a request."""

    words = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")

    def __init__(self) -> None:
        self.closed = 0

    async def chat(self, request: ct.ChatRequest) -> ct.Reply:
        if sum(len(message.text) for message in request.messages) > 100_000:
            raise ct.ProviderError("too long", failure=ct.FailureClass.CALLER)
        await asyncio.sleep(0.01)
        text = self.write()
        for stop in request.sampling.stop:
            text = text.split(stop)[0]
        tokens = re.findall(r"\S+\s*", text)
        most = request.sampling.max_tokens or 10**6
        cut, tokens = len(tokens) > most, tokens[:most]
        read = sum(self.count_tokens(message.text) for message in request.messages)
        return ct.Reply(
            "".join(tokens),
            (ct.ToolCall(request.tools[0]["function"]["name"], {"a": 2, "b": 3}),) if request.tools else (),
            ct.Usage(input_tokens=read, output_tokens=len(tokens)),
            "length" if cut else "stop",
            token_ids=tuple(range(len(tokens))) if request.sampling.logprobs else None,
            logprobs=(-0.5,) * len(tokens) if request.sampling.logprobs else None,
        )

    def write(self) -> str:
        return " ".join(self.words)

    async def stream(self, request: ct.ChatRequest) -> AsyncIterator[str | ct.Reply]:
        reply = await self.chat(request)
        for token in re.findall(r"\S+\s*", reply.text):
            yield token
        yield reply

    async def close(self) -> None:
        self.closed += 1


COUNTING = {"honours_max_tokens": True, "honours_stop": True, "native_tools": True, "logprobs": True}

GOOD_TOOL = MemberSubject(count_letter, **COUNT_LETTER)
GOOD_AGENT = MemberSubject(vote, **VOTE, make_pool=voting_pool)
GOOD_MODEL = ModelSubject("counting", Counting, **COUNTING)
