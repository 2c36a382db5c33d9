"""What an orchestrator in rounds reads is kept short on demand: observations are cut, old rounds are told briefly."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any, Literal

import concertino as ct
import pytest
from concertino.strategies import Act
from concertino.strategies.base import history
from concertino.strategies.base.history import BRIEF, compacted, count_tokens, cut
from concertino.strategies.parallel_rounds import ParallelRounds
from concertino.strategies.parallel_rounds.format import write_round
from concertino.testing import ScriptedModel, fake_tool
from hypothesis import given
from hypothesis import strategies as st

FINAL = write_round("Done.", [("final_answer", {})])
LONG = "many words " * 2_000


def turn(number: int) -> str:
    return write_round("Look.", [("look", {"at": number}), ("look", {"at": -number})])


LOOK = fake_tool("look", returns=LONG, schema={"type": "object", "properties": {"at": {"type": "integer"}}})


class Remembering(ScriptedModel):
    """Keeps each request as it was: the conversation goes on in the same list."""

    async def chat(self, request: ct.ChatRequest) -> ct.Reply:
        return await super().chat(replace(request, messages=list(request.messages)))


def led(rounds: int, **settings: int) -> tuple[ct.Run, list[ct.ChatRequest]]:
    model = Remembering(*[turn(n) for n in range(rounds)], FINAL, "<answer>seen</answer>")
    run = ct.Orchestrator(model, ParallelRounds(**settings)).run_sync("What?", pool=ct.Pool.of(LOOK))
    assert run.answer == "seen"
    return run, model.requests


@given(st.text(max_size=3_000), st.integers(40, 400))
def test_a_cut_text_fits_and_says_how_much_is_missing(text: str, tokens: int) -> None:
    seen = cut(text, tokens)
    if count_tokens(text) <= tokens:
        assert seen == text
    else:
        head, _, rest = seen.partition(" [… ")
        missing, _, tail = rest.partition(" characters left out …] ")
        assert count_tokens(head) + count_tokens(tail) <= tokens + 1
        assert len(head) + int(missing) + len(tail) == len(text)
        assert text.startswith(head)
        assert text.endswith(tail)


def test_observations_are_cut_to_their_tokens_and_kept_whole_in_the_run() -> None:
    run, requests = led(1, observation_tokens=100)
    shown = requests[1].messages[-1].text
    assert "characters left out" in shown
    assert count_tokens(shown) < 2 * 100 + 100
    assert all(seen.content == LONG.strip() or len(seen.content) > 15_000 for seen in run.observations)


def test_old_rounds_are_told_briefly_once_the_conversation_is_too_long() -> None:
    _, plain = led(5)
    _, short = led(5, observation_tokens=1_000, history_tokens=6_000)
    sizes = [sum(count_tokens(message.text) for message in request.messages) for request in short]
    assert max(sizes) <= 6_000 + 2 * 1_100
    assert sum(count_tokens(message.text) for message in plain[-1].messages) > 25_000
    last = [message.text for message in short[-1].messages]
    assert last[:2] == [message.text for message in plain[-1].messages][:2]
    assert count_tokens(last[3]) < 4 * BRIEF
    assert [message.role for message in short[-1].messages] == [message.role for message in plain[-1].messages]
    assert all("tool_response" in text for text in last[3:12:2])


def test_a_conversation_that_fits_is_left_alone() -> None:
    messages = [ct.Message("system", "s"), ct.Message("user", "q"), ct.Message("assistant", "a")]
    assert compacted(messages, 400) == messages


def test_a_rewritten_conversation_is_asked_with_as_a_whole_so_that_a_trace_has_it() -> None:
    run, requests = led(5, observation_tokens=1_000, history_tokens=4_000)
    asked = [event for event in run.events if type(event).__name__ == "Asked"]
    known: list[ct.Message] = []
    for event, request in zip(asked, requests, strict=True):
        anew = event.messages[0].role == "system"
        known = list(event.messages) if anew else [*known, *request.messages[len(known) :]]
        assert list(request.messages[len(request.messages) - len(event.messages) :]) == list(event.messages)
        assert [message.text for message in known] == [message.text for message in request.messages]
    assert sum(event.messages[0].role == "system" for event in asked) > 1


def test_the_oldest_rounds_are_left_out_where_short_observations_are_not_enough() -> None:
    _, requests = led(60, observation_tokens=100, history_tokens=3_000, max_rounds=100)
    sizes = [history.size_of(request.messages) for request in requests]
    assert max(sizes) <= 3_000 + 400  # what came last is counted before the next request
    messages = requests[-1].messages
    question = messages[1].text
    left_out = re.search(r"\[… (\d+) earlier rounds left out …\]", question)
    assert left_out is not None
    said = sum(message.role == "assistant" for message in messages)
    assert int(left_out[1]) + said == 60 + 1
    assert question.count("left out") == 1
    assert [message.role for message in messages[2:4]] == ["assistant", "user"]
    assert messages[-2].text == FINAL


def test_with_native_calls_no_answer_of_a_call_is_left_without_its_call() -> None:
    calls = [ct.ToolCall("look", '{"at": 1}', "a"), ct.ToolCall("look", '{"at": 2}', "b")]
    replies = [ct.Reply("", tuple(calls), finish_reason="tool_calls") for _ in range(40)]
    model = Remembering(*replies, ct.Reply("Seen."))
    strategy = ParallelRounds(native=True, max_rounds=100, observation_tokens=100, history_tokens=2_000)
    run = ct.Orchestrator(model, strategy).run_sync("What?", pool=ct.Pool.of(LOOK))
    assert run.answer == "Seen."
    messages = model.requests[-1].messages
    assert "earlier rounds left out" in messages[1].text
    assert [message.role for message in messages[2:]] == ["assistant", "tool", "tool"] * ((len(messages) - 2) // 3)


def test_the_tokens_of_a_long_conversation_are_not_counted_again_in_every_round(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    counted = 0

    def count(text: str) -> int:
        nonlocal counted
        counted += 1
        return count_tokens(text)

    monkeypatch.setattr(history, "count_tokens", count)

    def counts(rounds: int) -> int:
        nonlocal counted
        counted = 0
        led(rounds, observation_tokens=100, history_tokens=4_000, max_rounds=rounds + 1)
        return counted

    short, long = counts(100), counts(400)
    assert long < 5 * short  # quadratic growth would be 16 times


def test_a_shortened_conversation_goes_on_from_a_dump_as_from_the_machine_itself() -> None:
    strategy = ParallelRounds(max_rounds=60, history_tokens=2_000)
    machine = strategy.begin(_brief())
    seen = [ct.Observation("1", "look", ct.Status.OK, "word " * 300), ct.Observation("2", "look", ct.Status.OK, "")]
    for number in range(40):
        machine.on_reply(ct.Reply(turn(number)))
        again = strategy.restore(machine.dump())
        for each in (machine, again):
            each.observe(seen)
        assert again.dump() == machine.dump()


@pytest.mark.parametrize("prompt", ["full", "brief"])
def test_thousands_of_calls_have_an_observation_each_and_the_model_is_told_of_most_of_them_in_one_line(
    prompt: Literal["full", "brief"],
) -> None:
    text = write_round("All at once.", [("look", {"at": n}) for n in range(3_000)])
    model = Remembering(text, FINAL, "<answer>seen</answer>")
    run = ct.Orchestrator(model, ParallelRounds(prompt=prompt)).run_sync("What?", pool=ct.Pool.of(LOOK))
    assert [seen.error.code if seen.error else "" for seen in run.observations] == [""] * 4 + ["too_many_calls"] * 2_996
    assert [seen.call_id for seen in run.observations] == [f"1.{n}" for n in range(1, 3_001)]
    told = model.requests[1].messages[3].text
    assert told.count("too_many_calls") == 21
    assert re.search(r"25-(1\.)?3000", told)


def test_a_few_calls_beyond_the_limit_are_told_one_by_one() -> None:
    text = write_round("All at once.", [("look", {"at": n}) for n in range(25)])
    model = Remembering(text, FINAL, "<answer>seen</answer>")
    ct.Orchestrator(model, ParallelRounds()).run_sync("What?", pool=ct.Pool.of(LOOK))
    told = model.requests[1].messages[3].text
    assert told.count("too_many_calls") == 21
    assert '"id": "1.25"' in told


@pytest.mark.parametrize(
    "settings", [{"observation_tokens": 39}, {"history_tokens": 0}, {"max_parallel": 0}, {"max_unreadable_replies": -1}]
)
def test_settings_below_what_works_are_refused(settings: dict[str, int]) -> None:
    with pytest.raises(ct.UsageError, match="expected at least"):
        ParallelRounds(**settings)


def test_the_flaws_of_a_round_are_in_the_run_and_survive_a_dump() -> None:
    untidy = 'I look. <tool_call>{"name": "look", "arguments": {"at": 1}}</tool_call>'
    model = ScriptedModel(untidy, turn(1), FINAL, "<answer>seen</answer>")
    run = ct.Orchestrator(model, ParallelRounds()).run_sync("What?", pool=ct.Pool.of(LOOK))
    assert [[issue.code for issue in round_.issues] for round_ in run.rounds] == [["no_reasoning", "stray_text"], []]
    machine = ParallelRounds().begin(_brief())
    machine.on_reply(ct.Reply(untidy))
    again = ParallelRounds().restore(machine.dump())
    before, after = machine.step(), again.step()
    assert isinstance(before, Act)
    assert isinstance(after, Act)
    assert before.issues == after.issues != ()
    assert before.plan.to_json() == after.plan.to_json()


def _brief() -> Any:
    from concertino.strategies import TaskContext

    return TaskContext("What?", ct.Pool.of(LOOK).to_openai())
