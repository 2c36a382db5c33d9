"""For each check, members that break just its requirement: `BAD` maps the check's name to subjects and to a part of
the message that their author reads. A check that none of them fails could not fail at all.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import subprocess
import threading
import time
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Annotated, Any

import concertino as ct
from concertino.testing import ScriptedModel, blocking_tool, fake_agent, fake_tool, make_pool, stubborn_tool
from concertino.testing.check import MemberSubject
from good_members import GOOD_AGENT, GOOD_MODEL, GOOD_TOOL, Counting, count_letter, vote
from pydantic import AfterValidator, Field

ANY = [({}, lambda content: None)]
"""An example that accepts whatever comes."""
NOTHING = {"type": "object", "properties": {}, "additionalProperties": False}
END = threading.Event()
"""Set when the tests are over, so that what a bad member leaves behind comes to an end."""


def of_tool(**changes: Any) -> MemberSubject:
    return replace(GOOD_TOOL, spec=count_letter.with_(**changes))


def acting(function: Any, **options: Any) -> MemberSubject:
    """A tool without parameters that does what is to be found."""
    spec = ct.ToolSpec("acting", "Does what is to be found by a check.", NOTHING, function, **options)
    return MemberSubject(spec, examples=ANY)


def acting_slowly(function: Any) -> MemberSubject:
    return replace(acting(function), examples=(), slow={})


def only_even(value: int) -> int:
    if value % 2:
        raise ValueError("must be even")
    return value


@ct.tool
def halve(n: Annotated[int, AfterValidator(only_even), Field(description="An even number.")]) -> int:
    """Halve an even number, without a remainder."""
    return n // 2


def sees_the_sum(total: list[int]) -> Any:
    """A tool whose calls add up in a place that they share."""

    async def add() -> int:
        total[0] += 1
        await asyncio.sleep(0.01)
        seen, total[0] = total[0], 0
        return seen

    return add


def leaves(what: str) -> Any:
    async def thread() -> None:
        threading.Thread(target=END.wait, args=(20,), name="left-behind", daemon=True).start()

    async def process() -> None:
        subprocess.Popen(["sleep", "6"])  # noqa: ASYNC220

    async def task() -> None:
        async def stay() -> None:
            end = time.monotonic() + 1
            while time.monotonic() < end:
                try:
                    await asyncio.sleep(0.1)
                except asyncio.CancelledError:
                    continue

        asyncio.get_running_loop().create_task(stay(), name="left-behind")
        await asyncio.sleep(0)

    return {"thread": thread, "process": process, "task": task}[what]


def leaves_a_thread_when_cancelled() -> Any:
    async def work() -> None:
        threading.Thread(target=END.wait, args=(20,), name="left-behind", daemon=True).start()
        await asyncio.sleep(5)

    return work


def sleeps_in_a_thread() -> None:
    END.wait(20)


async def unwilling_to_stop(arguments: dict[str, Any], context: ct.Context) -> str:
    """Reads a model's reply as if it were always a number."""
    reply = await context.model("worker").chat("?")
    return reply.text.split()[1]


async def careless_about_failures(arguments: dict[str, Any], context: ct.Context) -> str:
    reply = None
    with contextlib.suppress(ct.CallFailed):
        reply = await context.model("worker").chat("?")
    return reply.text  # type: ignore[union-attr]


async def asks_for_ever(arguments: dict[str, Any], context: ct.Context) -> str:
    while True:
        with contextlib.suppress(ct.CallFailed):
            return (await context.model("worker").chat("?")).text


async def swallows_everything(arguments: dict[str, Any], context: ct.Context) -> str:
    try:
        return (await context.model("worker").chat("?")).text
    except BaseException:
        return ""


async def asks_somebody_else(arguments: dict[str, Any], context: ct.Context) -> str:
    return (await context.model("judge").chat("?")).text


def of_agent(does: Any) -> MemberSubject:
    agent = fake_agent("acting", returns=does, models=("worker",))
    pool = lambda: make_pool(worker=ScriptedModel("the answer is 42", strict=False))  # noqa: E731
    return MemberSubject(agent, examples=ANY, make_pool=pool)


def of_model(model: type[ct.Model], **features: Any) -> Any:
    return replace(GOOD_MODEL, make_model=model, **features)


def of_model_spec(**changes: Any) -> ct.ModelSpec:
    spec = ct.ModelSpec("acme/counting", Counting, "Counts in English words, quickly and cheaply.")
    return spec.with_(**changes)


class WithoutUsage(Counting):
    async def chat(self, request: ct.ChatRequest) -> ct.Reply:
        return replace(await super().chat(request), usage=ct.Usage())


class Silent(Counting):
    def write(self) -> str:
        return ""


class Texting(Counting):
    async def chat(self, request: ct.ChatRequest) -> Any:
        return "just a text"


class NeedsSystem(Counting):
    async def chat(self, request: ct.ChatRequest) -> ct.Reply:
        if any(message.role == "system" and not message.text for message in request.messages):
            raise ct.ProviderError.from_http(400, "system: must not be empty")
        return await super().chat(request)


class OnlyAscii(Counting):
    async def chat(self, request: ct.ChatRequest) -> ct.Reply:
        [message.text.encode("ascii") for message in request.messages]
        return await super().chat(request)


class CountsStrictly(Counting):
    def count_tokens(self, text: str) -> int:
        return len(text.encode())


class DropsTheLine(Counting):
    async def chat(self, request: ct.ChatRequest) -> ct.Reply:
        if len(request.messages[-1].text) > 10_000:
            raise ct.ProviderError("connection reset")
        return await super().chat(request)


class OneAtATime(Counting):
    busy = False

    async def chat(self, request: ct.ChatRequest) -> ct.Reply:
        if self.busy:
            raise RuntimeError("busy")
        self.busy = True
        try:
            return await super().chat(request)
        finally:
            self.busy = False


class BlocksTheLoop(Counting):
    async def chat(self, request: ct.ChatRequest) -> ct.Reply:
        time.sleep(0.7)  # noqa: ASYNC251
        return await super().chat(request)


class Appends(Counting):
    async def chat(self, request: ct.ChatRequest) -> ct.Reply:
        reply = await super().chat(request)
        request.messages.append(ct.Message("assistant", reply.text))  # type: ignore[attr-defined]
        return reply


class NeverStops(Counting):
    async def chat(self, request: ct.ChatRequest) -> ct.Reply:
        end = time.monotonic() + (1.5 if "Slowly" in request.messages[-1].text else 0)
        while time.monotonic() < end:
            try:
                await asyncio.sleep(0.05)
            except asyncio.CancelledError:
                continue
        return await super().chat(request)


class UnusableAfterwards(Counting):
    cancelled = False

    async def chat(self, request: ct.ChatRequest) -> ct.Reply:
        if self.cancelled:
            raise ct.ProviderError("the connection is closed")
        try:
            return await super().chat(request)
        except asyncio.CancelledError:
            self.cancelled = True
            raise


class LeavesATask(Counting):
    async def chat(self, request: ct.ChatRequest) -> ct.Reply:
        if "Slowly" in request.messages[-1].text:
            self.task = asyncio.ensure_future(asyncio.sleep(4))
        return await super().chat(request)


class CountsInCircles(Counting):
    def count_tokens(self, text: str) -> int:
        return len(text) % 97


class ClosesOnce(Counting):
    async def close(self) -> None:
        await super().close()
        if self.closed > 1:
            raise RuntimeError("already closed")


class StreamsOnlyText(Counting):
    async def stream(self, request: ct.ChatRequest) -> AsyncIterator[str | ct.Reply]:
        yield (await self.chat(request)).text


class StreamsHalf(Counting):
    async def stream(self, request: ct.ChatRequest) -> AsyncIterator[str | ct.Reply]:
        reply = await self.chat(request)
        yield reply.text[:5]
        yield reply


class IgnoresSampling(Counting):
    async def chat(self, request: ct.ChatRequest) -> ct.Reply:
        return await super().chat(replace(request, sampling=ct.Sampling(), tools=()))


class CutsSilently(Counting):
    async def chat(self, request: ct.ChatRequest) -> ct.Reply:
        return replace(await super().chat(request), finish_reason="stop")


class TooFewLogprobs(Counting):
    async def chat(self, request: ct.ChatRequest) -> ct.Reply:
        reply = await super().chat(request)
        return replace(reply, logprobs=reply.logprobs and reply.logprobs[1:])


_numbers = itertools.count()

BAD: dict[str, list[tuple[Any, str]]] = {
    "its_schema_is_admitted_and_small": [
        (of_tool(input_schema={"type": "object", "properties": {"a": {"type": "strnig"}}}), "refused"),
        (of_tool(output_schema={"type": "nonsense"}), "output_schema was refused"),
        (
            of_tool(
                input_schema={
                    "type": "object",
                    "properties": {f"p{i}": {"type": "string", "description": "word " * 20} for i in range(40)},
                }
            ),
            "tokens of the orchestrator's context",
        ),
    ],
    "its_description_says_what_it_does": [
        (of_tool(description="count letter"), "an orchestrator chooses by it"),
        (of_tool(description="Counts."), "an orchestrator chooses by it"),
        (of_model_spec(description=""), "an orchestrator chooses by it"),
    ],
    "every_parameter_is_described": [
        (
            of_tool(input_schema={"type": "object", "properties": {"text": {"type": "string"}}}),
            "no description of text",
        ),
        (
            of_tool(input_schema={"type": "object", "properties": {"userName": {"description": "The user name."}}}),
            "no description of userName",
        ),
    ],
    "an_unknown_argument_is_refused": [
        (MemberSubject(fake_tool(schema={"type": "object", "properties": {}})), "additionalProperties: false"),
    ],
    "rejected_arguments_are_refused_with_a_reason": [
        (replace(GOOD_TOOL, rejected=[{"text": "fine", "letter": "a"}]), "was run (OK)"),
        (MemberSubject(halve, rejected=[{"n": 3}]), "refused by code and not by the schema"),
    ],
    "importing_its_module_is_quick": [],
    "its_factory_makes_a_model": [
        (of_model_spec(factory=dict), "its factory gives dict"),
        (of_model_spec(factory=lambda: 1 / 0), "ZeroDivisionError"),
    ],
    "examples_give_the_expected_results": [
        (replace(GOOD_TOOL, examples=[({"text": "banana", "letter": "a"}, 4)]), "gave 3; expected 4"),
        (replace(GOOD_TOOL, examples=[({"text": "banana", "letter": "a"}, lambda n: n > 3)]), "does not accept"),
        (replace(GOOD_TOOL, examples=[({"text": "banana"}, 3)]), "ended as PARSE_ERR"),
        (acting(lambda: {1, 2}), "ended as EXEC_ERR"),
        (acting(lambda: "text", output_schema={"type": "integer"}), "breaks its own output schema"),
        (acting(lambda: 1 / 0), "ZeroDivisionError"),
    ],
    "results_are_not_cut": [(acting(lambda: "x" * 20_000), "3,616 characters more than max_chars=16,384")],
    "calls_at_once_are_independent": [
        (replace(acting(sees_the_sum([0])), examples=[({}, 1)]), "keep no state between calls"),
    ],
    "the_same_arguments_give_the_same_result": [
        (acting(lambda: next(_numbers)), "keep no state between calls, or declare")
    ],
    "a_call_does_not_block_the_event_loop": [
        (MemberSubject(blocking_tool(seconds=1.2), examples=ANY), "blocked the event loop for"),
    ],
    "its_cost_is_reported_within_its_bound": [
        (acting(lambda: ct.Result("x", usd=-0.5)), "no negative amounts"),
        (acting(lambda: ct.Result("x", usd=0.5)), "set Cost(max_usd=...)"),
        (acting(lambda: ct.Result("x", usd=0.5), cost=ct.Cost(max_usd=0.1)), "at most $ 0.1"),
    ],
    "a_failure_is_explained": [
        (MemberSubject(fake_tool(returns=1), failing=[{}]), "ended as OK; expected an EXEC_ERR"),
        (MemberSubject(fake_tool(raises=ValueError()), failing=[{}]), "'ValueError'"),
        (MemberSubject(fake_tool(raises=KeyError("x")), failing=[{}]), "KeyError"),
        (MemberSubject(fake_tool(raises=SystemExit(1)), failing=[{}]), "SystemExit"),
    ],
    "its_timeout_leaves_room": [(acting(lambda: time.sleep(0.2), timeout=0.3), "its timeout is 0.3 s")],
    "a_deadline_is_honoured": [
        (MemberSubject(stubborn_tool(seconds=1.0), slow={}), "did not stop"),
        (acting_slowly(sleeps_in_a_thread), "thread concertino:acting"),
        (MemberSubject(fake_tool(), slow={}), "give `slow` arguments that take at least a second"),
        (of_agent(swallows_everything), "let CancelledError and CallFailed pass"),
    ],
    "a_cancelled_call_leaves_nothing_behind": [
        (acting_slowly(leaves_a_thread_when_cancelled()), "thread left-behind"),
        (acting_slowly(sleeps_in_a_thread), "thread concertino:acting"),
    ],
    "a_finished_call_leaves_nothing_behind": [
        (acting(leaves("thread")), "thread left-behind"),
        (acting(leaves("process")), "process "),
        (acting(leaves("task")), "task left-behind"),
    ],
    "it_asks_only_for_roles_that_it_declares": [(of_agent(asks_somebody_else), "declares models=(worker)")],
    "a_model_that_fails_is_no_crash": [
        (of_agent(careless_about_failures), "let CallFailed pass"),
        (of_agent(asks_for_ever), "do not ask again and again"),
    ],
    "an_unexpected_reply_is_no_crash": [(of_agent(unwilling_to_stop), "check what a reply holds")],
    "a_budget_is_never_exceeded": [
        (of_agent(careless_about_failures), "answer with what there is"),
    ],
    "it_answers_with_a_reply_and_its_usage": [
        (of_model(WithoutUsage), "no usage"),
        (of_model(Silent), "with nothing"),
        (of_model(Texting), "expected a Reply"),
    ],
    "an_empty_system_message_is_no_obstacle": [(of_model(NeedsSystem), "must not be empty")],
    "unicode_is_no_obstacle": [(of_model(OnlyAscii), "UnicodeEncodeError"), (of_model(CountsStrictly), "surrogates")],
    "a_long_message_is_answered_or_refused": [(of_model(DropsTheLine), "FailureClass.CALLER")],
    "requests_at_once_are_answered": [(of_model(OneAtATime), "RuntimeError('busy')")],
    "a_request_does_not_block_the_event_loop": [(of_model(BlocksTheLoop), "blocked the event loop for")],
    "a_request_is_not_changed": [(of_model(Appends), "changed the list of messages")],
    "a_cancelled_request_leaves_nothing_behind": [
        (of_model(NeverStops), "let CancelledError pass"),
        (of_model(UnusableAfterwards), "the connection is closed"),
        (of_model(LeavesATask), "there still run: task"),
    ],
    "tokens_are_counted_monotonously": [(of_model(CountsInCircles), "a budget reserves by it")],
    "close_may_be_called_twice": [(of_model(ClosesOnce), "already closed")],
    "a_stream_ends_with_its_reply": [
        (of_model(StreamsOnlyText), "expected str, …, Reply"),
        (of_model(StreamsHalf), "do not add up"),
    ],
    "max_tokens_is_honoured": [(of_model(IgnoresSampling), "asked for 5 tokens"), (of_model(CutsSilently), "'stop'")],
    "stop_is_honoured": [(of_model(IgnoresSampling), "asked to stop before"), (of_model(Silent), "too short")],
    "offered_tools_are_called_natively": [(of_model(IgnoresSampling), "asked to call `add`")],
    "log_probabilities_belong_to_the_tokens": [
        (of_model(TooFewLogprobs), "as many of both"),
        (of_model(IgnoresSampling), "token_ids=None"),
    ],
}

assert GOOD_AGENT.spec is vote
