"""A local model as a chat model: conformance, batches, streams, cancellation, closing."""

from __future__ import annotations

import asyncio
import gc
import subprocess
import sys
import threading
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from concertino import ChatRequest, FailureClass, Message, ProviderError, Reply, Sampling, ToolCall
from concertino.testing import ModelConformance
from concertino_local import LocalModel
from concertino_local.settings import read_settings
from local_models import ADD, ADD_TOOL, COUNT, NUMBERS, SCRIPT, UNICODE, ask, until

Open = Callable[..., LocalModel]


class TestConformance(ModelConformance):
    """All checks, with every feature declared."""

    prompt = COUNT
    at_once = 16
    honours_max_tokens = honours_stop = native_tools = logprobs = True

    @pytest.fixture(autouse=True)
    def _folder(self, scripted: Path) -> None:
        self.folder = scripted

    def make_model(self) -> LocalModel:
        return LocalModel(read_settings("conforming", {"path": str(self.folder), "threads": 1}))


def alone() -> int:
    return sum(thread.name == "concertino-local" for thread in threading.enumerate())


async def test_the_script_is_answered_word_for_word(open_model: Open, scripted: Path) -> None:
    model = open_model(scripted)
    reply = await model.chat(ask(COUNT))
    assert (reply.text, reply.finish_reason, reply.reasoning, reply.tool_calls) == (NUMBERS, "stop", "", ())
    assert (await model.chat(ask("Write signs."))).text == UNICODE
    thought = await model.chat(ask("Think."))
    assert (thought.text, thought.reasoning) == ("five", "Three and two.")
    assert 0 < thought.usage.reasoning_tokens < thought.usage.output_tokens - 2
    assert reply.usage.reasoning_tokens == 0


async def test_tool_calls_are_native_and_broken_ones_keep_their_raw_text(open_model: Open, scripted: Path) -> None:
    model = open_model(scripted)
    both = await model.chat(ask("Add twice.", tools=True))
    assert both.text == "Both at once."
    assert both.finish_reason == "tool_calls"
    assert both.tool_calls == (
        ToolCall("add", '{"a": 2, "b": 3}', "call00000"),
        ToolCall("add", '{"a":7,"b":8}', "call00001"),
    )
    broken = await model.chat(ask("Break it.", tools=True))
    assert broken.tool_calls == (ToolCall("add", '{"a": 2, "b":', "call00000"),)
    assert broken.text == ""


async def test_usage_counts_every_sampled_token_the_end_included(open_model: Open, scripted: Path) -> None:
    model = open_model(scripted)
    reply = await model.chat(ask(COUNT, logprobs=True))
    assert reply.token_ids is not None
    assert reply.usage.output_tokens == len(reply.token_ids) == model.count_tokens(NUMBERS) + 1
    assert reply.prompt_token_ids is not None
    assert reply.usage.input_tokens == len(reply.prompt_token_ids)
    plain = await model.chat(ask(COUNT))
    assert (plain.token_ids, plain.logprobs, plain.prompt_token_ids) == (None, None, None)


async def test_counting_tokens_needs_no_loaded_model_and_does_not_change_with_one(
    open_model: Open, scripted: Path
) -> None:
    model = open_model(scripted)
    texts = [NUMBERS, UNICODE, "<|im_end|> <think>", "\ud800", ""]
    before = [model.count_tokens(text) for text in texts]
    assert alone() == 0
    await model.chat(ask(COUNT))
    assert [model.count_tokens(text) for text in texts] == before
    assert before[0] == 37
    assert before[-1] == 0


async def test_sixteen_requests_at_once_get_what_each_would_get_alone(open_model: Open, scripted: Path) -> None:
    model = open_model(scripted, max_batch=5, prefix_tokens=0)
    asked = [ask(str(turns[0]["content"]), tools=tools) for turns, tools, _ in SCRIPT if len(turns) == 1] * 3
    asked = asked[:16]
    single = [await model.chat(request) for request in asked]
    before = model.stats
    together = await asyncio.gather(*map(model.chat, asked))
    told = [(r.text, r.tool_calls, r.reasoning, r.usage, r.finish_reason, r.extra["token_ids"]) for r in together]
    assert told == [(r.text, r.tool_calls, r.reasoning, r.usage, r.finish_reason, r.extra["token_ids"]) for r in single]
    assert (model.stats.steps - before.steps) * 2 < model.stats.output_tokens - before.output_tokens
    assert model.stats.finished == 32


async def test_a_request_joins_while_others_generate(open_model: Open, rambler: Path) -> None:
    model = open_model(rambler)
    long = asyncio.ensure_future(model.chat(ask("a", max_tokens=300)))
    await until(lambda: model.stats.steps >= 20)
    short = await model.chat(ask("b", max_tokens=10))
    assert not long.done()
    assert short.usage.output_tokens == 10
    assert (await long).usage.output_tokens == 300
    assert model.stats.steps < 310


async def test_a_stream_gives_the_text_as_it_is_generated(open_model: Open, scripted: Path) -> None:
    model = open_model(scripted)
    for text, tools in ((COUNT, False), ("Write signs.", False), ("Add twice.", True), ("Think.", False)):
        pieces: list[Any] = [piece async for piece in model.stream(ask(text, tools=tools))]
        streamed, plain = pieces.pop(), await model.chat(ask(text, tools=tools))
        assert "".join(pieces) == streamed.text == plain.text
        assert (streamed.tool_calls, streamed.reasoning) == (plain.tool_calls, plain.reasoning)
        assert "\ufffd" not in streamed.text
        assert len(pieces) > (20 if text == COUNT else 0)


async def test_the_first_piece_comes_long_before_the_last_token(open_model: Open, rambler: Path) -> None:
    model = open_model(rambler)
    stream = model.stream(ask("a", max_tokens=400))
    async for piece in stream:
        assert isinstance(piece, str)
        break
    assert model.stats.output_tokens < 300
    await stream.aclose()
    await settled(model)
    assert model.stats.output_tokens < 400
    assert (model.stats.cancelled, model.stats.running) == (1, 0)


async def settled(model: LocalModel) -> int:
    """Wait until nothing runs; the steps so far."""
    await until(lambda: model.stats.running == model.stats.waiting == 0)
    return model.stats.steps


async def test_a_cancelled_request_leaves_at_the_next_step_and_the_others_go_on(
    open_model: Open, rambler: Path
) -> None:
    model = open_model(rambler, prefix_tokens=0)
    undisturbed = await model.chat(ask("b", max_tokens=120))
    steps = model.stats.steps
    leaving = asyncio.ensure_future(model.chat(ask("a", max_tokens=800)))
    staying = asyncio.ensure_future(model.chat(ask("b", max_tokens=120)))
    await until(lambda: model.stats.steps >= steps + 30)
    leaving.cancel()
    with pytest.raises(asyncio.CancelledError):
        await leaving
    assert (await staying).extra["token_ids"] == undisturbed.extra["token_ids"]
    assert await settled(model) - steps < 200
    assert model.stats.cancelled == 1
    generated = model.stats.output_tokens
    await asyncio.sleep(0.1)
    assert model.stats.output_tokens == generated < 500


async def test_a_request_that_is_cancelled_while_it_waits_never_begins(open_model: Open, rambler: Path) -> None:
    model = open_model(rambler, max_batch=1)
    first = asyncio.ensure_future(model.chat(ask("a", max_tokens=100)))
    second = asyncio.ensure_future(model.chat(ask("b", max_tokens=100)))
    await until(lambda: model.stats.waiting)
    second.cancel()
    await first
    await settled(model)
    assert (model.stats.output_tokens, model.stats.cancelled) == (100, 1)


async def test_a_long_prompt_is_read_in_parts_between_the_steps_of_the_others(open_model: Open, rambler: Path) -> None:
    model = open_model(rambler, prefill_tokens=32, prefix_tokens=0)
    whole = open_model(rambler, prefill_tokens=1024, prefix_tokens=0)
    request = ask("word " * 100, max_tokens=20)
    running = asyncio.ensure_future(model.chat(ask("a", max_tokens=60)))
    await until(lambda: model.stats.steps)
    reply = await model.chat(request)
    expected = await whole.chat(request)
    assert reply.extra["token_ids"] == expected.extra["token_ids"]
    assert model.stats.prompts >= reply.usage.input_tokens // 32
    assert whole.stats.prompts == 1
    await running


async def test_the_same_beginning_is_read_once_and_changes_nothing(open_model: Open, rambler: Path) -> None:
    model, forgetful = open_model(rambler), open_model(rambler, prefix_tokens=0)
    first = ask("word " * 40, max_tokens=30, logprobs=True)
    reply = await model.chat(first)
    turns = [*first.messages, Message.of(reply), Message("user", "More.")]
    second = ChatRequest(turns, sampling=first.sampling)
    fast, slow = await model.chat(second), await forgetful.chat(second)
    assert reply.usage.cached_tokens == slow.usage.cached_tokens == 0
    assert fast.usage.cached_tokens >= reply.usage.input_tokens + 29
    assert fast.token_ids == slow.token_ids
    assert fast.logprobs == pytest.approx(slow.logprobs, abs=1e-4)


async def test_equal_prompts_that_come_together_are_read_once(open_model: Open, rambler: Path) -> None:
    model = open_model(rambler, prefix_tokens=0)
    asked = [ask("the same", max_tokens=5, temperature=1.0, seed=seed) for seed in range(6)]
    replies = await asyncio.gather(*map(model.chat, asked))
    assert len({tuple(reply.extra["token_ids"]) for reply in replies}) > 1
    assert model.stats.prompt_tokens < 2 * replies[0].usage.input_tokens


async def test_max_tokens_and_the_context_end_a_reply_as_length(open_model: Open, rambler: Path) -> None:
    model = open_model(rambler, context=64, max_tokens=12)
    default = await model.chat(ask("a"))
    assert (default.usage.output_tokens, default.finish_reason) == (12, "length")
    full = await model.chat(ask("a", max_tokens=1000))
    assert (full.usage.tokens, full.finish_reason) == (64, "length")


async def test_a_stop_text_ends_the_reply_before_it_and_its_tokens_are_counted(
    open_model: Open, scripted: Path
) -> None:
    model = open_model(scripted)
    reply = await model.chat(ask(COUNT, stop=("teen", "ten e"), logprobs=True))
    assert reply.text == "one two three four five six seven eight nine "
    assert reply.finish_reason == "stop"
    assert reply.usage.output_tokens < 37
    pieces = [piece async for piece in model.stream(ask(COUNT, stop=("ten e",)))]
    assert "".join(map(str, pieces[:-1])) == reply.text
    turns = [Message("user", COUNT), Message.of(reply), Message("user", "Go on.")]
    after = await model.chat(ChatRequest(turns, sampling=Sampling(0.0, logprobs=True)))
    assert not _holds(after.prompt_token_ids or (), reply.token_ids or ())


def _holds(ids: tuple[int, ...], part: tuple[int, ...]) -> bool:
    return any(ids[place : place + len(part)] == part for place in range(len(ids)))


async def test_a_prompt_that_is_too_long_is_the_callers_mistake(open_model: Open, scripted: Path) -> None:
    model = open_model(scripted)
    with pytest.raises(
        ProviderError, match=r"the prompt has \d+ tokens and leaves no room .* context of 1024"
    ) as caught:
        await model.chat(ask("word " * 2000))
    assert caught.value.failure is FailureClass.CALLER
    assert (await model.chat(ask(COUNT))).text == NUMBERS


async def test_closing_leaves_no_thread_and_no_network_and_fails_what_runs(
    open_model: Open, rambler: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from concertino_local import loading

    networks: list[Any] = []
    load = loading.load_network

    def watched(*args: Any) -> Any:
        network = load(*args)
        networks.append(weakref.ref(network))
        return network

    monkeypatch.setattr(loading, "load_network", watched)
    model = open_model(rambler)
    running = asyncio.ensure_future(model.chat(ask("a", max_tokens=900)))
    await until(lambda: model.stats.steps)
    assert alone() == 1
    await model.close()
    assert alone() == 0
    with pytest.raises(ProviderError, match="the model was closed"):
        await running
    del running
    gc.collect()
    assert [network() for network in networks] == [None]
    with pytest.raises(ProviderError, match="the model is closed"):
        await model.chat(ask("a"))
    await model.close()


async def test_a_model_that_is_forgotten_ends_its_thread(rambler: Path) -> None:
    model = LocalModel(read_settings("lost", {"path": str(rambler), "threads": 1}))
    await model.chat(ask("a", max_tokens=2))
    (thread,) = [thread for thread in threading.enumerate() if thread.name == "concertino-local"]
    del model
    gc.collect()
    thread.join(10)
    assert not thread.is_alive()


@pytest.mark.slow
def test_a_process_ends_though_a_model_was_not_closed(rambler: Path) -> None:
    code = (
        "import asyncio, sys\n"
        "from concertino import ChatRequest, Message, Sampling\n"
        "import concertino_local\n"
        "model = concertino_local.model('m', path=sys.argv[1], threads=1).factory()\n"
        "request = ChatRequest([Message('user', 'a')], sampling=Sampling(max_tokens=900))\n"
        "async def main():\n"
        "    task = asyncio.create_task(model.chat(request))\n"
        "    while not model.stats.steps: await asyncio.sleep(0.01)\n"
        "    print('generating', flush=True)\n"
        "asyncio.run(main())\n"
    )
    done = subprocess.run([sys.executable, "-c", code, str(rambler)], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (0, "generating\n", "")


def test_two_event_loops_may_use_a_model_at_once(rambler: Path) -> None:
    model = LocalModel(read_settings("shared", {"path": str(rambler), "threads": 1}))
    replies: list[Reply] = []

    def ask_it() -> None:
        replies.append(asyncio.run(model.chat(ask("a", max_tokens=30))))

    threads = [threading.Thread(target=ask_it) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    asyncio.run(model.close())
    assert len({tuple(reply.extra["token_ids"]) for reply in replies}) == 1
    assert len(replies) == 3


def test_importing_and_declaring_imports_no_torch(scripted: Path) -> None:
    code = (
        "import sys, concertino_local\n"
        "spec = concertino_local.model('m', path=sys.argv[1]); spec.factory()\n"
        "print([name for name in ('torch', 'transformers', 'tokenizers') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code, str(scripted)], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


async def test_threads_of_one_model_do_not_change_those_of_the_caller(open_model: Open, rambler: Path) -> None:
    import torch

    before = torch.get_num_threads()
    await open_model(rambler, threads=before + 1).chat(ask("a", max_tokens=2))
    assert torch.get_num_threads() == before


async def test_a_model_without_its_settings_tool_call_is_plain_text(open_model: Open, scripted: Path) -> None:
    model = open_model(scripted, reply_format="plain")
    reply = await model.chat(ask(ADD, tools=True))
    assert reply.tool_calls == ()
    assert reply.text.startswith("<tool_call>")
    assert (await model.chat(ask("Think."))).text.startswith("<think>")


async def test_calls_are_numbered_on_through_a_conversation(open_model: Open, scripted: Path) -> None:
    model = open_model(scripted)
    first = await model.chat(ask(ADD, tools=True))
    turns = [Message("user", ADD), Message.of(first), Message("tool", "5", call_id=first.tool_calls[0].id)]
    second = await model.chat(ChatRequest(turns, [ADD_TOOL], Sampling(temperature=0.0)))
    assert second.text == "The sum is 5."
    third = await model.chat(
        ChatRequest([*turns, Message.of(second), Message("user", ADD)], [ADD_TOOL], Sampling(temperature=0.0))
    )
    assert [call.id for call in third.tool_calls] in (["call00001"], [])
