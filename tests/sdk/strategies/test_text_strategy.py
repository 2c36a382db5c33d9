"""`TextStrategy`: a few pure functions of text make a strategy; the machine is supplied."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import concertino as ct
import pytest
from concertino.strategies import Act, Ask, Done, FormatIssue, ParsedReply, TaskContext, TextStrategy
from concertino.testing import ScriptedModel


class Lines(TextStrategy):
    """`ID NAME TEXT` calls, `= TEXT` answers; `!` in front of a name is an unreadable call."""

    name = "lines"

    def system_prompt(self, context: TaskContext) -> str:
        return "\n".join(tool["function"]["name"] for tool in context.tools)

    def read(self, text: str) -> ParsedReply:
        if text.startswith("= "):
            return ParsedReply(answer=text[2:])
        words = [line.split(" ", 2) for line in text.split("\n") if line.count(" ") == 2]
        calls = [
            ct.Call(name.strip("!"), {"text": given}, call, error=("bad_line", "no") if name[0] == "!" else None)
            for call, name, given in words
        ]
        return ParsedReply(
            ct.Plan.parse(calls).calls, issues=[] if calls else [FormatIssue("no_line", "write a line", 0, 0)]
        )


def started(settings: TextStrategy | None = None, **limits: Any) -> Any:
    return (settings or Lines()).begin(TaskContext("Which?", **limits))


def ok(content: Any, number: int = 1) -> Sequence[ct.Observation]:
    return [ct.Observation(str(place), "echo", ct.Status.OK, content) for place in range(1, number + 1)]


def test_a_run_calls_reads_and_answers() -> None:
    @ct.tool
    def echo(text: str) -> str:
        """Say it again."""
        return text

    with ScriptedModel("a echo x\nb echo ${a}y", "= xy") as model:
        run = ct.Orchestrator(model, Lines()).run_sync("Which?", pool=ct.Pool.of(echo))
    assert (run.answer, run.stop) == ("xy", "answered")
    assert [seen.content for seen in run.observations] == ["x", "xy"]
    assert ct.replay(run.trace, Lines()).answer == "xy"
    assert model.requests[0].messages[0].text == "echo"
    assert '"content": "xy"' in model.requests[1].messages[3].text


def test_references_between_calls_survive_a_dump() -> None:
    machine = started()
    machine.on_reply(ct.Reply("a echo x\nb echo ${a}y"))
    restored = Lines().restore(json.loads(json.dumps(machine.dump())))
    assert restored.step().plan.edges == machine.step().plan.edges == {"b": ("a",)}
    assert restored.reading == machine.reading


def test_calls_without_ids_are_numbered_as_the_plan_numbers_them() -> None:
    class Unnumbered(Lines):
        def read(self, text: str) -> ParsedReply:
            return ParsedReply([ct.Call("echo"), ct.Call("echo")])

    machine = started(Unnumbered())
    machine.on_reply(ct.Reply("?"))
    assert [call.id for call in machine.step().plan.calls] == ["1", "2"] == [c.id for c in machine.reading.calls]


def test_calls_beyond_the_limit_are_not_run_and_say_so() -> None:
    machine = started(parallel=1)
    machine.on_reply(ct.Reply("a echo x\nb echo y"))
    assert [call.error and call.error[0] for call in machine.step().plan.calls] == [None, "too_many_calls"]
    assert started().settings.limits == (12, 8)


def test_an_unreadable_reply_is_handed_back_until_patience_is_over() -> None:
    machine = started(Lines(max_unreadable_replies=2))
    machine.on_reply(ct.Reply("well"))
    assert "write a line" in machine.step().messages[-1].text
    assert machine.step().fresh == 1
    assert machine.reading.understood is False
    machine.on_reply(ct.Reply("well"))
    assert machine.step() == Done(None, "format", "2 texts in a row could not be read")


def test_a_readable_reply_renews_the_patience() -> None:
    machine = started(Lines(max_unreadable_replies=2))
    machine.on_reply(ct.Reply("well"))
    machine.on_reply(ct.Reply("a echo x"))
    machine.observe(ok("x"))
    machine.on_reply(ct.Reply("well"))
    assert isinstance(machine.step(), Ask)


def test_a_plan_that_cannot_run_is_handed_back_with_the_reason() -> None:
    machine = started()
    machine.on_reply(ct.Reply("a echo x\na echo y"))
    assert "two calls have the id 'a'" in machine.step().messages[-1].text
    assert machine.reading.issues[-1].code == "bad_plan"
    assert machine.reading.understood is False


@pytest.mark.parametrize(("last", "answer"), [("= late", "late"), ("a echo x", None), ("well", None)])
def test_after_the_last_round_one_answer_is_asked_for(last: str, answer: str | None) -> None:
    machine = started(rounds=1)
    machine.on_reply(ct.Reply("a echo x"))
    assert isinstance(machine.step(), Act)
    machine.observe(ok("x"), {"usd": 1.0})
    asked = machine.step().messages[-1].text
    assert "No further calls are allowed" in asked
    assert "<budget>" in asked
    machine.on_reply(ct.Reply(last))
    assert machine.step() == Done(answer, "rounds")


def test_an_unreadable_call_is_observed_with_its_reason() -> None:
    machine = started()
    machine.on_reply(ct.Reply("a !echo x"))
    assert machine.step().plan.calls[0].error == ("bad_line", "no")


def test_the_end_from_outside_is_at_once() -> None:
    machine = started()
    machine.finish("deadline", "over")
    assert machine.step() == Done(None, "deadline", "over")
