"""The tiny conductor as a model: what it owes whoever asks it."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from concertino import ChatRequest, FailureClass, Message, ProviderError, Reply, Sampling
from concertino_train.conductor.runtime import TinyConductor as Conductor

TALK = [
    Message("system", "Answer by calls, at most 4 a round, 12 rounds; end with final_answer.\nask(task): Answers."),
    Message("user", "How many apples are left?"),
]


def request(messages: list[Message] = TALK, **sampling: Any) -> ChatRequest:
    return ChatRequest(messages, sampling=Sampling(**{"max_tokens": 40, **sampling}))


async def test_the_same_request_has_the_same_reply_whatever_was_asked_before(tiny_folder: Path) -> None:
    fresh = await Conductor(tiny_folder).chat(request())
    used = Conductor(tiny_folder)
    for text in ("Something else.", "How many apples are there?", "How"):
        await used.chat(request([TALK[0], Message("user", text)]))
    again = await used.chat(request())
    assert again.text == fresh.text
    assert (await used.chat(request())).usage.cached_tokens > fresh.usage.cached_tokens


async def test_a_conversation_that_goes_on_reads_only_what_is_new(tiny_folder: Path) -> None:
    tiny = Conductor(tiny_folder)
    first = await tiny.chat(request())
    longer = [*TALK, Message("assistant", first.text), Message("user", "<tool_response>\n1.1 OK 4\n</tool_response>")]
    second = await tiny.chat(request(longer))
    assert second.usage.cached_tokens >= first.usage.input_tokens
    assert second.text == (await Conductor(tiny_folder).chat(request(longer))).text


async def test_requests_side_by_side_do_not_disturb_each_other(tiny_folder: Path) -> None:
    tiny = Conductor(tiny_folder)
    talks = [[TALK[0], Message("user", f"What is {number}?")] for number in range(6)]
    together = await asyncio.gather(*(tiny.chat(request(talk)) for talk in talks))
    alone = [await Conductor(tiny_folder).chat(request(talk)) for talk in talks]
    assert [reply.text for reply in together] == [reply.text for reply in alone]


async def test_a_seed_decides_what_is_sampled(tiny_folder: Path) -> None:
    tiny = Conductor(tiny_folder)
    texts = [(await tiny.chat(request(temperature=3.0, seed=seed))).text for seed in (1, 1, 2, 3)]
    assert texts[0] == texts[1]
    assert len(set(texts)) > 1


async def test_top_p_of_almost_nothing_is_greedy(tiny_folder: Path) -> None:
    greedy = await Conductor(tiny_folder).chat(request())
    drawn = await Conductor(tiny_folder).chat(request(temperature=2.0, top_p=1e-9, seed=4))
    assert drawn.text == greedy.text


async def test_log_probabilities_are_those_of_the_written_tokens(tiny_folder: Path) -> None:
    reply = await Conductor(tiny_folder).chat(request(logprobs=True))
    assert reply.token_ids is not None
    assert reply.logprobs is not None
    assert reply.prompt_token_ids
    assert len(reply.token_ids) == len(reply.logprobs) == reply.usage.output_tokens
    assert all(value <= 0 for value in reply.logprobs)


async def test_a_stream_shows_what_the_reply_holds_and_stops_before_a_stop(tiny_folder: Path) -> None:
    whole = (await Conductor(tiny_folder).chat(request())).text
    stop = whole[len(whole) // 2 :][:6]
    pieces = [piece async for piece in Conductor(tiny_folder).stream(request(stop=(stop,)))]
    reply = pieces[-1]
    assert isinstance(reply, Reply)
    assert "".join(map(str, pieces[:-1])) == reply.text == whole[: whole.index(stop)]
    assert reply.finish_reason == "stop"


async def test_a_conversation_that_is_too_long_is_refused_as_the_callers_fault(tiny_folder: Path) -> None:
    with pytest.raises(ProviderError, match="can be read") as caught:
        await Conductor(tiny_folder).chat(request([Message("user", "1 2 " * 4000)]))
    assert caught.value.failure is FailureClass.CALLER


def test_it_runs_without_torch_and_without_tokenizers(tiny_folder: Path) -> None:
    program = """
import asyncio, sys
from pathlib import Path
for name in ("torch", "transformers", "tokenizers", "safetensors"):
    sys.modules[name] = None
from concertino import ChatRequest, Message
from concertino_train.conductor.runtime import TinyConductor
model = TinyConductor(Path(sys.argv[1]))
print(asyncio.run(model.chat(ChatRequest([Message("user", "Hello")]))).usage.output_tokens > 0)
"""
    command = [sys.executable, "-c", program, str(tiny_folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "True"
