"""What an orchestrator in rounds reads is kept short on demand: observations are cut, old rounds are told briefly."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import concertino as ct
import pytest
from concertino.strategies import Act
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
