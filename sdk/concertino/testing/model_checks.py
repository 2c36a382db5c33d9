"""Checks of models: the contract of every `Model`, and the features that a provider declares.

Base requirements hold for every model. An optional feature is checked where the provider declares it; streaming is
declared by overriding `stream`. A check asks a few short questions; on a real server a whole suite costs about thirty
requests.
"""

from __future__ import annotations

import asyncio
import time
from itertools import pairwise
from typing import Any

from concertino.core.model import ChatRequest, Message, Model, Reply, Sampling, Thought
from concertino.core.provider_error import FailureClass, ProviderError

from .check import CheckFailed, CheckSkipped, ModelSubject
from .leftovers import LONGEST_STALL, Leftovers

_UNICODE = "Grüße, 世界! 🎻 \u202eabc\u202c é e\u0301 \x00 ﷽"
_TOOL = {
    "type": "function",
    "function": {
        "name": "add",
        "description": "Add two integers.",
        "parameters": {
            "type": "object",
            "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
            "required": ["a", "b"],
            "additionalProperties": False,
        },
    },
}
_SHORT = Sampling(max_tokens=64)
_TICK = 0.01


async def it_answers_with_a_reply_and_its_usage(subject: ModelSubject) -> None:
    """It answers with a `Reply` that says how many tokens were read and written."""
    reply = await _ask(subject, subject.prompt)
    if not reply.text and not reply.tool_calls:
        raise CheckFailed(f"it answered {subject.prompt!r} with nothing")
    usage = reply.usage
    if usage.input_tokens < 1 or usage.output_tokens < 1 or min(usage) < 0:
        raise CheckFailed(
            f"its reply reports {usage.to_json() or 'no usage'}; give Usage(input_tokens=..., output_tokens=...), "
            "budgets and prices need both"
        )


async def an_empty_system_message_is_no_obstacle(subject: ModelSubject) -> None:
    """An empty system message is answered like none."""
    await _ask(subject, Message("system", ""), Message("user", subject.prompt))


async def unicode_is_no_obstacle(subject: ModelSubject) -> None:
    """Any Unicode text can be asked, and be counted."""
    await _ask(subject, f"{_UNICODE} {subject.prompt}")
    for text in ("", _UNICODE, "\ud800"):
        if subject.make_model().count_tokens(text) < 0:
            raise CheckFailed(f"count_tokens({text!r}) is negative")


async def a_long_message_is_answered_or_refused(subject: ModelSubject) -> None:
    """A long message is answered, or refused with a `ProviderError` that says it is the caller's."""
    # 39 characters in the sentence.
    filler = "All work and no play makes a dull day. " * (subject.long_input // 39 + 1)
    try:
        await _ask(subject, f"{filler[: subject.long_input]}\n{subject.prompt}")
    except ProviderError as error:
        if error.failure is not FailureClass.CALLER:
            raise CheckFailed(
                f"it refused {subject.long_input:,} characters as {error.failure} ({error}); a message that is too "
                "long is FailureClass.CALLER, it must not be repeated"
            ) from error


async def requests_at_once_are_answered(subject: ModelSubject) -> None:
    """One model answers several requests at once."""
    model = subject.make_model()
    try:
        requests = [_request(Message("user", f"{subject.prompt} ({i})")) for i in range(subject.at_once)]
        answers = await asyncio.gather(*map(model.chat, requests), return_exceptions=True)
    finally:
        await model.close()
    wrong = [answer for answer in answers if not isinstance(answer, Reply)]
    if wrong:
        raise CheckFailed(f"{len(wrong)} of {len(answers)} requests at once gave {wrong[0]!r}; expected replies")


async def a_request_does_not_block_the_event_loop(subject: ModelSubject) -> None:
    """While it answers, the event loop is free for others."""
    model = subject.make_model()
    try:
        await model.chat(_request(Message("user", subject.prompt)))  # libraries are imported once
        worst = 0.0
        running = asyncio.ensure_future(model.chat(_request(Message("user", subject.prompt))))
        while not running.done():
            slept = time.perf_counter()
            await asyncio.sleep(_TICK)
            worst = max(worst, time.perf_counter() - slept - _TICK)
        await running
    finally:
        await model.close()
    if worst > LONGEST_STALL:
        raise CheckFailed(f"a request blocked the event loop for {worst:.2f} s; await, or work in a thread")


async def a_request_is_not_changed(subject: ModelSubject) -> None:
    """The messages and tools of a request are left as they were."""
    messages = [Message("system", "Be brief."), Message("user", subject.prompt)]
    given = ChatRequest(messages, sampling=_SHORT)
    model = subject.make_model()
    try:
        await model.chat(given)
    finally:
        await model.close()
    if [(m.role, m.text) for m in messages] != [("system", "Be brief."), ("user", subject.prompt)]:
        raise CheckFailed("it changed the list of messages that it was given; a run keeps using that list")


async def a_cancelled_request_leaves_nothing_behind(subject: ModelSubject) -> None:
    """A cancelled request ends at once, leaves nothing behind, and the model stays usable."""
    model = subject.make_model()
    try:
        await model.chat(_request(Message("user", subject.prompt)))
        # After a first request, since libraries keep the connections and threads that they open once.
        before = Leftovers()
        running = asyncio.ensure_future(model.chat(_request(Message("user", f"{subject.prompt} Slowly."))))
        # Lets the request begin: a task that is cancelled before its first step runs none of its code.
        await asyncio.sleep(0)
        running.cancel()
        done, _ = await asyncio.wait({running}, timeout=1.0)
        if not done:
            raise CheckFailed("1 s after it was cancelled, its chat still runs; let CancelledError pass")
        await before.assert_none("after a cancelled request")
        await model.chat(_request(Message("user", subject.prompt)))
    finally:
        await model.close()


async def tokens_are_counted_monotonously(subject: ModelSubject) -> None:
    """A longer text counts more tokens."""
    count = subject.make_model().count_tokens
    text = f"{subject.prompt} {_UNICODE} "
    counts = [count(text * times) for times in (0, 1, 2, 4, 8, 16)]
    if counts[0] < 0 or any(more <= fewer for fewer, more in pairwise(counts)):
        raise CheckFailed(f"count_tokens of a text 0, 1, 2, 4, 8 and 16 times is {counts}; a budget reserves by it")


async def close_may_be_called_twice(subject: ModelSubject) -> None:
    """Closing is safe before the first request, and twice."""
    model = subject.make_model()
    await model.close()
    await model.close()


async def a_stream_ends_with_its_reply(subject: ModelSubject) -> None:
    """A stream gives pieces of thoughts and text, then the whole reply."""
    model = subject.make_model()
    if type(model).stream is Model.stream:
        raise CheckSkipped("it does not override `stream`")
    pieces: list[object] = []
    try:
        pieces = [piece async for piece in model.stream(_request(Message("user", subject.prompt)))]
    finally:
        await model.close()
    last = pieces[-1] if pieces else None
    if not isinstance(last, Reply) or not all(isinstance(piece, str) for piece in pieces[:-1]):
        raise CheckFailed(f"its stream gave {[type(piece).__name__ for piece in pieces]}; expected str, …, Reply")
    if "".join(str(piece) for piece in pieces[:-1] if not isinstance(piece, Thought)) != last.text:
        raise CheckFailed("the pieces of its stream do not add up to the text of the reply")


async def max_tokens_is_honoured(subject: ModelSubject) -> None:
    """A reply has no more tokens than were asked for, and says that it was cut."""
    _declared(subject.honours_max_tokens, "honours_max_tokens")
    reply = await _ask(subject, subject.prompt, sampling=Sampling(max_tokens=5))
    if reply.usage.output_tokens > 5 or reply.finish_reason != "length":
        raise CheckFailed(
            f"asked for 5 tokens, it wrote {reply.usage.output_tokens} and finished with {reply.finish_reason!r}; "
            "expected at most 5, and 'length' (is the prompt's answer longer than that?)"
        )


async def stop_is_honoured(subject: ModelSubject) -> None:
    """A reply ends before the text that was to stop it."""
    _declared(subject.honours_stop, "honours_stop")
    # Greedy, so that both answers begin alike and the second meets the stop text.
    greedy = Sampling(temperature=0.0, max_tokens=64)
    whole = await _ask(subject, subject.prompt, sampling=greedy)
    words = whole.text.split()
    if len(words) < 3:
        raise CheckFailed(f"its answer {whole.text!r} is too short to be stopped; give a `prompt` with a longer one")
    stop = words[len(words) // 2]
    cut = await _ask(subject, subject.prompt, sampling=greedy.with_(stop=(stop,)))
    if stop in cut.text:
        raise CheckFailed(f"asked to stop before {stop!r}, it answered {cut.text!r}")


async def offered_tools_are_called_natively(subject: ModelSubject) -> None:
    """Offered a tool, it calls that tool natively."""
    _declared(subject.native_tools, "native_tools")
    reply = await _ask(subject, "Call the tool add with a=2 and b=3. Do not answer yourself.", tools=[_TOOL])
    if [call.name for call in reply.tool_calls] != ["add"]:
        raise CheckFailed(f"asked to call `add`, it answered {reply.text!r} with the calls {reply.tool_calls}")


async def log_probabilities_belong_to_the_tokens(subject: ModelSubject) -> None:
    """Asked for log-probabilities, it gives one for each sampled token."""
    _declared(subject.logprobs, "logprobs")
    reply = await _ask(subject, subject.prompt, sampling=Sampling(max_tokens=16, logprobs=True))
    ids, values = reply.token_ids, reply.logprobs
    # 1e-6: rounding may put the logarithm of a certain token a little above 0.
    if not ids or values is None or len(ids) != len(values) or max(values) > 1e-6:
        raise CheckFailed(f"token_ids={ids!r:.60}, logprobs={values!r:.60}; expected as many of both, none above 0")


MODEL_CHECKS = (
    it_answers_with_a_reply_and_its_usage,
    an_empty_system_message_is_no_obstacle,
    unicode_is_no_obstacle,
    a_long_message_is_answered_or_refused,
    requests_at_once_are_answered,
    a_request_does_not_block_the_event_loop,
    a_request_is_not_changed,
    a_cancelled_request_leaves_nothing_behind,
    tokens_are_counted_monotonously,
    close_may_be_called_twice,
    a_stream_ends_with_its_reply,
    max_tokens_is_honoured,
    stop_is_honoured,
    offered_tools_are_called_natively,
    log_probabilities_belong_to_the_tokens,
)


def _declared(feature: bool, name: str) -> None:
    if not feature:
        raise CheckSkipped(f"the feature `{name}` is not declared")


def _request(*messages: Message, sampling: Sampling = _SHORT, tools: list[dict[str, Any]] | None = None) -> ChatRequest:
    return ChatRequest(list(messages), tools or [], sampling)


async def _ask(subject: ModelSubject, *messages: str | Message, **options: Any) -> Reply:
    """Ask a fresh model, and close it."""
    model = subject.make_model()
    try:
        reply: object = await model.chat(
            _request(*(m if isinstance(m, Message) else Message("user", m) for m in messages), **options)
        )
    finally:
        await model.close()
    if not isinstance(reply, Reply):
        raise CheckFailed(f"its chat gave {type(reply).__name__}; expected a Reply")
    return reply
