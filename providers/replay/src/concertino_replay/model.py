"""A model that answers from a recording.

It reads the last user message, finds the recorded question in it, and gives what the real model answered, with the
tokens that were counted then. Of several recorded samples the seed chooses one; without a seed it is the first, or with
`draw` the one that the request's idempotency key chooses: random, but the same when the request is repeated.

Invariant: it never makes up an answer. A question that is not recorded is an error that says which one is near.
"""

from __future__ import annotations

import asyncio
import re
import zlib
from collections.abc import AsyncIterator

from concertino import ChatRequest, FailureClass, Model, ProviderError, Reply, Usage

from .recording import RecordedAnswer, Recording

_PIECE = re.compile(r"\s*\S+\s*?|\s+\Z")
_SHORTEST_SLEEP = 0.01
"""Seconds; a stream adds shorter ones up, because event loops sleep them inexactly."""
_SHOWN = 36


class ReplayModel(Model):
    """One recorded model.

    Args:
        recording: shared with the others of the file.
        model: its name in the recording.
        latency: what recorded seconds are multiplied with; 0 answers at once.
        draw: requests without a seed get any of the samples, not always the first.
    """

    def __init__(self, recording: Recording, model: str, *, latency: float = 0.0, draw: bool = False) -> None:
        self._recording = recording
        self._answers = recording.answers[model]
        self._latency = latency
        self._draw = draw

    async def chat(self, request: ChatRequest) -> Reply:
        """Give the recorded answer to the last user message.

        Raises:
            ProviderError: the message holds no question that was recorded for this model, or several (CALLER).
        """
        answer = self._chosen(request)
        await asyncio.sleep(self._seconds(answer))
        return self._reply(answer, request)

    async def stream(self, request: ChatRequest) -> AsyncIterator[str | Reply]:
        """Yield the text word by word, over the recorded time, then the reply."""
        answer = self._chosen(request)
        reply = self._reply(answer, request)
        pieces = _PIECE.findall(reply.text)
        owed, each = 0.0, self._seconds(answer) / max(1, len(pieces))
        for piece in pieces:
            owed += each
            if owed >= _SHORTEST_SLEEP:
                await asyncio.sleep(owed)
                owed = 0.0
            yield piece
        yield reply

    def _seconds(self, answer: RecordedAnswer) -> float:
        return self._latency * (answer.seconds or 0.0)

    def sample_question(self) -> str:
        """A recorded question whose answer has a dozen words; the longest answer's if none has."""
        known = [(self._recording.questions[key], given[0]) for key, given in self._answers.items()]
        asked = [(question, answer) for question, answer in known if question.text and not answer.several_turns]
        chosen = asked or [(question, answer) for question, answer in known if question.text] or known
        best = max(chosen, key=lambda pair: min(12, len(pair[1].text.split())))
        return best[0].text or f"id: {best[0].id}"

    # -- finding the answer ----------------------------------------------------------------------------------------

    def _chosen(self, request: ChatRequest) -> RecordedAnswer:
        samples = self._answers[self._question(request)]
        seed, key = request.sampling.seed, request.idempotency_key
        if seed is None:
            # Not `hash`, which differs from process to process.
            seed = zlib.crc32(key.encode("utf-8", "surrogatepass")) if self._draw else 0
        return samples[seed % len(samples)]

    def _question(self, request: ChatRequest) -> str:
        message = next((m.text for m in reversed(request.messages) if m.role == "user"), "")
        found = self._recording.index.find(message)
        if len(found) == 1 and found[0] in self._answers:
            return found[0]
        raise ProviderError(self._refusal(message, found), failure=FailureClass.CALLER)

    def _refusal(self, message: str, found: list[str]) -> str:
        """Why a message has no answer, and what to do; short, since an observation shows 200 characters of it."""
        if len(found) > 1:
            named = " and ".join(map(repr, found[:3]))
            step = f"ask one at a time, or name one by a line 'id: {found[0]}'"
            return f"the message holds {len(found)} recorded questions, {named}; {step}"
        if found:
            others = sum(found[0] in answers for answers in self._recording.answers.values())
            return f"question {found[0]!r} is recorded of {others} other models and not of this one; ask one of those"
        near = self._recording.index.nearest(message)
        told = f"no answer is recorded to {_short(message)!r}"
        if near is None or near.share < 0.1:
            count = len(self._recording.questions)
            return f"{told}, and none of the {count} questions is like it; ask a recorded one word for word"
        question = _short(self._recording.questions[near.id].text)
        like = f"the nearest question is {near.id!r} ({near.share:.0%} of the words), {question!r}"
        return f"{told}; {like}; ask it word for word, or by a line 'id: {near.id}'"

    # -- the reply -------------------------------------------------------------------------------------------------

    def _reply(self, answer: RecordedAnswer, request: ChatRequest) -> Reply:
        usage = self._usage(answer, request)
        text, reason, written = answer.text, answer.finish_reason, usage.output_tokens
        for stop in filter(None, request.sampling.stop):
            text = text.split(stop, 1)[0]
        if len(text) < len(answer.text):
            # Rounded up, since a text that is not empty has a token.
            written = -(-written * len(text) // len(answer.text))
        limit = request.sampling.max_tokens
        # Cut by the share of characters: no token boundaries were recorded, nor tokens of the last of several turns.
        if limit is not None and written > limit and not answer.several_turns:
            text, reason, written = text[: len(text) * limit // written], "length", limit
        return Reply(text, usage=usage._replace(output_tokens=written), finish_reason=reason)

    def _usage(self, answer: RecordedAnswer, request: ChatRequest) -> Usage:
        """What was recorded; what was not is counted here, and the reply says so."""
        read, written = answer.input_tokens, answer.output_tokens
        estimated = int(read is None or written is None)
        if read is None:
            read = sum(self.count_tokens(message.text) for message in request.messages)
        if written is None:
            written = self.count_tokens(answer.text)
        return Usage(input_tokens=read, output_tokens=written, usd=answer.usd or 0.0, estimated=estimated)


def _short(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"
