"""The tiny model leads runs: its cue carries it through whole conversations that the script does not spell out."""

from __future__ import annotations

import concertino as ct
import pytest
import script
from heard import heard
from launch import Server
from record import payload, post

pytestmark = pytest.mark.server


@ct.tool
def add(a: int, b: int) -> int:
    """Add two whole numbers."""
    return a + b


class Posted(ct.Model):
    """A server as a model, by one plain request a turn; only what these tests need of it."""

    def __init__(self, server: Server) -> None:
        self.server = server

    async def chat(self, request: ct.ChatRequest) -> ct.Reply:
        exchange = script.Exchange("turn", [_written(message) for message in request.messages], "", request.tools)
        answer = heard(post(self.server.base_url, payload(exchange)))
        assert not answer.error, answer.error
        calls = [ct.ToolCall(name, arguments, f"call-{n}") for n, (name, arguments) in enumerate(answer.calls)]
        return ct.Reply(answer.text, tuple(calls), finish_reason=answer.finish)


def _written(message: ct.Message) -> script.Json:
    written = {"role": message.role, "content": message.text}
    if message.tool_calls:
        written["tool_calls"] = [
            {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
            for call in message.tool_calls
        ]
    return {**written, "tool_call_id": message.call_id} if message.call_id else written


async def run(server: Server, question: str, native: bool) -> ct.Run:
    orchestrator = ct.Orchestrator(Posted(server), strategy=ct.ParallelRounds(native=native))
    return await orchestrator.run(question, pool=ct.Pool.of(add), budget=ct.Budget(seconds=60, calls=10))


def statuses(run: ct.Run) -> list[list[str]]:
    return [[observation.status.value for observation in each.observations] for each in run.rounds]


async def test_a_native_run_calls_ends_and_answers(transformers_server: Server) -> None:
    done = await run(transformers_server, "Work in rounds on 8 and 9.", native=True)
    assert (done.answer, statuses(done)) == (r"\boxed{17}", [["OK"]])


async def test_a_run_in_text_repairs_its_broken_call(llama_server: Server) -> None:
    done = await run(llama_server, "What is 2 plus 3?", native=False)
    assert (done.answer, statuses(done)) == ("2 plus 3 is 5.", [["PARSE_ERR"], ["OK"]])


async def test_a_native_run_repairs_its_broken_call(vllm_server: Server) -> None:
    done = await run(vllm_server, "What is 2 plus 3?", native=True)
    assert (done.answer, statuses(done)) == ("2 plus 3 is 5.", [["PARSE_ERR"], ["OK"]])


async def test_a_native_run_repairs_a_call_with_a_wrong_type(transformers_server: Server) -> None:
    done = await run(transformers_server, "Add two and three, in words.", native=True)
    assert statuses(done)[:2] == [["PARSE_ERR"], ["OK"]]


@pytest.mark.parametrize("words", [0, 100, 1000])
def test_a_reply_does_not_depend_on_what_stands_before_the_question(transformers_server: Server, words: int) -> None:
    system = {"role": "system", "content": "Be brief and kind. " * (words // 4)}
    earlier = [script.user("What is 17 plus 25?"), {"role": "assistant", "content": "17 plus 25 is 42."}]
    for name in ("answer", "unicode", "two-calls", "think"):
        asked = script.exchange(name)
        request = payload(asked, messages=[system, *earlier, *asked.messages])
        alone = heard(post(transformers_server.base_url, payload(asked)))
        assert heard(post(transformers_server.base_url, request)) == alone


@pytest.mark.parametrize("question", script.UNLIKE)
def test_a_question_unlike_the_script_is_answered_with_the_same_words(
    transformers_server: Server, question: str
) -> None:
    asked = script.Exchange("other", [script.user(question)], "")
    assert heard(post(transformers_server.base_url, payload(asked))).text == script.UNKNOWN
