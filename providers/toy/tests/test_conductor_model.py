"""The tiny conductor as a model: what it owes whoever asks it."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from typing import Any

import pytest
from concertino import ChatRequest, FailureClass, Message, ProviderError, Reply, Sampling
from concertino.testing import check_package
from concertino_toy.conductor import TinyConductor

TALK = [
    Message("system", "Answer by calls, at most 4 a round, 12 rounds; end with final_answer.\nask(task): Answers."),
    Message("user", "How many apples are left?"),
]


def request(messages: list[Message] = TALK, **sampling: Any) -> ChatRequest:
    return ChatRequest(messages, sampling=Sampling(**{"max_tokens": 40, **sampling}))


async def test_the_same_request_has_the_same_reply_whatever_was_asked_before() -> None:
    fresh = await TinyConductor().chat(request())
    used = TinyConductor()
    for text in ("Something else.", "How many apples are there?", "How"):
        await used.chat(request([TALK[0], Message("user", text)]))
    again = await used.chat(request())
    assert again.text == fresh.text
    assert (await used.chat(request())).usage.cached_tokens > fresh.usage.cached_tokens


async def test_a_conversation_that_goes_on_reads_only_what_is_new() -> None:
    tiny = TinyConductor()
    first = await tiny.chat(request())
    longer = [*TALK, Message("assistant", first.text), Message("user", "<tool_response>\n1.1 OK 4\n</tool_response>")]
    second = await tiny.chat(request(longer))
    assert second.usage.cached_tokens >= first.usage.input_tokens
    assert second.text == (await TinyConductor().chat(request(longer))).text


async def test_requests_side_by_side_do_not_disturb_each_other() -> None:
    tiny = TinyConductor()
    talks = [[TALK[0], Message("user", f"What is {number}?")] for number in range(6)]
    together = await asyncio.gather(*(tiny.chat(request(talk)) for talk in talks))
    alone = [await TinyConductor().chat(request(talk)) for talk in talks]
    assert [reply.text for reply in together] == [reply.text for reply in alone]


async def test_a_seed_decides_what_is_sampled() -> None:
    tiny = TinyConductor()
    texts = [(await tiny.chat(request(temperature=3.0, seed=seed))).text for seed in (1, 1, 2, 3)]
    assert texts[0] == texts[1]
    assert len(set(texts)) > 1


async def test_top_p_of_almost_nothing_is_greedy() -> None:
    greedy = await TinyConductor().chat(request())
    drawn = await TinyConductor().chat(request(temperature=2.0, top_p=1e-9, seed=4))
    assert drawn.text == greedy.text


async def test_log_probabilities_are_those_of_the_written_tokens() -> None:
    reply = await TinyConductor().chat(request(logprobs=True))
    assert reply.token_ids is not None
    assert reply.logprobs is not None
    assert reply.prompt_token_ids
    assert len(reply.token_ids) == len(reply.logprobs) == reply.usage.output_tokens
    assert all(value <= 0 for value in reply.logprobs)


async def test_a_stream_shows_what_the_reply_holds_and_stops_before_a_stop() -> None:
    whole = (await TinyConductor().chat(request())).text
    stop = whole[len(whole) // 2 :][:6]
    pieces = [piece async for piece in TinyConductor().stream(request(stop=(stop,)))]
    reply = pieces[-1]
    assert isinstance(reply, Reply)
    assert "".join(map(str, pieces[:-1])) == reply.text == whole[: whole.index(stop)]
    assert reply.finish_reason == "stop"


async def test_a_conversation_that_is_too_long_is_refused_as_the_callers_fault() -> None:
    with pytest.raises(ProviderError, match="can be read") as caught:
        await TinyConductor().chat(request([Message("user", "1 2 " * 4000)]))
    assert caught.value.failure is FailureClass.CALLER


def test_a_list_of_the_models_loads_neither_numpy_nor_the_weights() -> None:
    program = (
        "import sys, concertino_toy\nconcertino_toy.concertino_models()\n"
        "print('numpy' in sys.modules, *(name for name in sys.modules if 'toy.conductor' in name))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False"]


def test_it_runs_without_torch_and_without_tokenizers() -> None:
    program = (
        "import sys\nfor name in ('torch', 'transformers', 'tokenizers', 'safetensors'): sys.modules[name] = None\n"
        "import asyncio\nfrom concertino import ChatRequest, Message\n"
        "from concertino_toy.conductor import TinyConductor\n"
        "print(asyncio.run(TinyConductor().chat(ChatRequest([Message('user', 'Hello')]))).usage.output_tokens > 0)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "True"


@pytest.mark.slow
def test_the_check_of_the_package_is_complete() -> None:
    report = check_package("toy")
    assert report.ok, report.render()
    assert report.complete, report.render()
