"""Trials of streams that are cut anywhere: what a listener hears adds up to the reply, and to the run's answer.

Two kinds. *Recorded*: what a real server sent, byte by byte, is the reply to the first request of a run. *Composed*:
every reply of a run is written in the strategy's own form, cut into chunks as a server cuts it, and those into bytes
anyhow. Both go through the provider's decoder, the executor and the strategy's reader, as a socket's bytes would. Used
by the tests, and by `benchmarks/streaming.py` at full counts.
"""

from __future__ import annotations

import json
import random
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from itertools import pairwise
from typing import Any

import concertino as ct
from concertino.core.events import Replied, TextDelta
from concertino.strategies import Strategy
from concertino.strategies.agent_graph import AgentGraph
from concertino.strategies.dependency_plan import DependencyPlan
from concertino.strategies.role_workflow import Agree, Role, RoleWorkflow
from concertino.strategies.serial_calls import SerialCalls
from concertino_openai.chat.accumulator import ReplyAccumulator
from concertino_openai.chat.stream import StreamDecoder, reply_of

from .recordings import recordings
from .streams import DONE, END, STREAMS, Stream, chunk, said, usage

STRATEGIES: dict[str, Callable[[], Strategy]] = {
    "parallel-rounds": ct.ParallelRounds,
    "serial-calls": SerialCalls,
    "dependency-plan": DependencyPlan,
    "agent-graph": lambda: AgentGraph(dom="low"),
    "role-workflow": lambda: RoleWorkflow((Role("solver", "{question}"),), Agree("solver.value", "solver.value")),
}
TOLD_AT_THE_END = ("role-workflow",)
"""Strategies that know what is the answer only when a turn is over."""
_PARTS = (
    "It is 42.", " ", "\n\n", "\t", "1,5", "a < b", "</b>", "<br/>", "</answe", "<", "&amp;", "&", '"quoted"', "{", "}",
    "[", "]]>", "<![CDATA[", "\\n is no line", "\\", "|", "P(A|B)", "\\|", "\u00fc", "\U0001f600", "\u4e16\u754c",
    "e\u0301", "`code`", "```python\nprint(1)\n```", "$x^2$",
)  # fmt: skip
"""What answers are composed of: all that could be taken for a tag, an escape or an end."""
_THOUGHTS = ("", "so", 'I "think" <b>so</b>', "first {this}, then that")


@ct.tool
def double(x: int) -> int:
    """Double a number."""
    return 2 * x


@ct.tool
def search(query: str) -> str:
    """Search for a text."""
    return query


POOL = ct.Pool.of(double, search)


class Heard(ct.Model):
    """Replies that come as bytes: each of the streams in turn, cut as `cut` says."""

    def __init__(self, streams: Sequence[Stream], cut: Callable[[bytes], list[bytes]]) -> None:
        self._streams = iter(streams)
        self._cut = cut

    async def chat(self, request: ct.ChatRequest) -> ct.Reply:
        raise AssertionError("somebody listens, so a stream is asked for")

    async def stream(self, request: ct.ChatRequest) -> AsyncIterator[str | ct.Reply]:
        stream = next(self._streams)
        settings = stream.settings
        fold = ReplyAccumulator(settings.dialect, stream.tools, settings.endpoint)
        decoder = StreamDecoder(fold, settings, stream.tools)
        for piece in [*map(decoder.feed, self._cut(stream.body)), decoder.finish()]:
            if thought := fold.new_thoughts():
                yield ct.Thought(thought)
            if piece:
                yield piece
        last, reply = reply_of(fold, request, self.count_tokens, settings)
        if last:
            yield last
        yield reply


def cutter(chance: random.Random) -> Callable[[bytes], list[bytes]]:
    """Cuts bytes at random places: often few, sometimes at every byte."""

    def cut(body: bytes) -> list[bytes]:
        most = chance.choice([1, 4, 16, 64, len(body)])
        places = sorted(chance.sample(range(1, len(body)), min(chance.randint(1, most), len(body) - 1)))
        return [body[begin:end] for begin, end in pairwise([0, *places, len(body)])]

    return cut


async def _heard(leader: ct.Orchestrator) -> tuple[list[TextDelta], ct.Run]:
    found: list[TextDelta] = []
    item: Any = None
    async for item in leader.stream("What is it?", pool=POOL):
        if isinstance(item, TextDelta):
            found.append(item)
    assert isinstance(item, ct.Run)
    return found, item


def _joined(found: list[TextDelta], kind: str, call_id: str, attempt: int) -> str:
    return "".join(d.text for d in found if (d.kind, d.call_id, d.attempt) == (kind, call_id, attempt))


def _unlike_its_replies(found: list[TextDelta], run: ct.Run) -> str:
    """The first reply that is not what its pieces add up to."""
    for event in run.events:
        if isinstance(event, Replied):
            told = _joined(found, "text", event.call_id, event.observation.attempts)
            if told != event.reply.text:
                return f"{event.call_id}: told {told!r}, reply {event.reply.text!r}"
    return ""


def recorded_streams() -> list[Stream]:
    """All streams of real servers, and those of their shapes, that end with a reply."""
    found = [recording.as_stream(file) for file, recording in recordings() if recording.is_stream]
    return [stream for stream in [*found, *STREAMS] if isinstance(stream.reply(), tuple)]


async def recorded_trial(stream: Stream, seed: int) -> str:
    """What is wrong with what a listener hears of a recorded stream; empty for nothing."""
    end = Stream("end", said("<answer>end</answer>") + END + DONE)
    leader = ct.Orchestrator(Heard([stream, *[end] * 8], cutter(random.Random(seed))))
    return _unlike_its_replies(*await _heard(leader))


# -- composed ----------------------------------------------------------------------------------------------------------


def an_answer(chance: random.Random) -> str:
    """A text in which much looks like something else."""
    return "".join(chance.choice(_PARTS) for _ in range(chance.randint(1, 9))).strip() or "none"


def a_value(chance: random.Random) -> Any:
    """A value that holds such texts."""
    return {"city": an_answer(chance), "celsius": chance.choice([1, -2.5]), "more": [an_answer(chance), None, True]}


SCHEMA = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "celsius": {"type": "number"}, "more": {"type": "array"}},
    "required": ["city", "celsius", "more"],
}


def as_stream(text: str, chance: random.Random) -> Stream:
    """A text as some server sends it."""
    thought = chance.choice(_THOUGHTS)
    shape = chance.randrange(4)
    pieces = list(_chunks(text, chance))
    head = chunk({"role": "assistant", "content": ""}) if shape else b""
    thoughts = b"".join(chunk({"reasoning_content": piece}) for piece in _chunks(thought, chance)) if thought else b""
    body = head + thoughts + said(*pieces) + END + (usage() if shape != 1 else b"") + (DONE if shape != 2 else b"")
    if shape == 3:
        body = body.replace(b"\n", b"\r\n").replace(b"\r\n\r\n", b"\r\n\r\n: PROCESSING\r\n\r\n", 3)
    return Stream("composed", body)


def _chunks(text: str, chance: random.Random) -> Iterator[str]:
    most = chance.choice([1, 3, 12, 200])
    position = 0
    while position < len(text):
        size = chance.randint(1, most)
        yield text[position : position + size]
        position += size


async def composed_trial(name: str, typed: bool, seed: int) -> str:
    """What is wrong with what a listener hears of a run whose replies are composed; empty for nothing."""
    chance = random.Random(seed)
    strategy = STRATEGIES[name]()
    answer = json.dumps(a_value(chance), ensure_ascii=chance.random() < 0.5) if typed else an_answer(chance)
    try:
        texts = strategy.write_answer(answer, chance.choice(_THOUGHTS))
    except ct.UsageError:
        return ""  # an answer that this form cannot hold
    leader = ct.Orchestrator(
        Heard([as_stream(text, chance) for text in texts], cutter(chance)),
        strategy,
        answer_type=SCHEMA if typed else None,
    )
    found, run = await _heard(leader)
    if wrong := _unlike_its_replies(found, run):
        return wrong
    if run.answer is None:
        return f"no answer: {run.stop} {run.detail}; {texts!r}"
    told = [delta for delta in found if delta.kind == "answer"]
    if not told or (told[-1].call_id == "answer" and name not in TOLD_AT_THE_END):
        return f"told at the end alone: {run.answer!r}; {texts!r}"
    whole = _joined(found, "answer", told[-1].call_id, 1)
    return "" if whole == run.answer else f"told {whole!r}, answered {run.answer!r}; {texts!r}"
