"""What a run is given beside its question: instructions, a history, dependencies, the type of its answer."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import concertino as ct
import pytest
from concertino.testing import ScriptedModel
from pydantic import BaseModel, field_validator
from typing_extensions import TypedDict

FINAL = '<reasoning>done</reasoning>\n<tool_call>{"name": "final_answer", "arguments": {}}</tool_call>'
STRATEGIES = ["parallel-rounds", "serial-calls", "dependency-plan", "agent-graph"]


class Weather(BaseModel):
    city: str
    celsius: float

    @field_validator("celsius")
    @classmethod
    def _possible(cls, value: float) -> float:
        if value < -273.15:
            raise ValueError("colder than anything can be")
        return value


@dataclass
class Bank:
    balance: float
    asked: int = 0


@ct.tool
def temperature(ctx: ct.Context[Bank], city: str) -> float:
    """Temperature of a city."""
    ctx.deps.asked += 1
    return 12.5


POOL = ct.Pool.of(temperature)
CALL = '<reasoning>look</reasoning>\n<tool_call>{"name": "temperature", "arguments": {"city": "Oslo"}}</tool_call>'


def answered(text: str) -> ScriptedModel:
    return ScriptedModel(f"<answer>{text}</answer>", strict=False)


# -- instructions ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("strategy", STRATEGIES)
async def test_instructions_stand_at_the_end_of_the_system_message_of_every_strategy(strategy: str) -> None:
    model = answered("done")
    await ct.Orchestrator(model, strategy, instructions="Answer in French.").run("q", pool=POOL)
    first = model.requests[0].messages[0]
    assert first.role == "system"
    assert first.text.endswith("# Instructions\nAnswer in French.")


async def test_a_function_makes_the_instructions_of_each_run_from_its_context() -> None:
    def told(ctx: ct.RunContext[Bank]) -> str:
        return f"The balance is {ctx.deps.balance:g}. Asked: {ctx.question}"

    model = answered("done")
    leader = ct.Orchestrator(model, instructions=told)
    run = await leader.run("how much?", pool=POOL, deps=Bank(5))
    assert model.requests[0].messages[0].text.endswith("The balance is 5. Asked: how much?")
    assert run.setup["instructions"] == "The balance is 5. Asked: how much?"
    wrong: Any = lambda ctx: 3  # noqa: E731
    with pytest.raises(ct.UsageError, match="returned 3: expected a text"):
        await ct.Orchestrator(model, instructions=wrong).run("q", pool=POOL)


async def test_each_request_extends_the_one_before_it() -> None:
    model = ScriptedModel(CALL, FINAL, "<answer>x</answer>")
    leader = ct.Orchestrator(model, instructions="Be brief.", answer_type=None)
    await leader.run("q", pool=POOL, deps=Bank(1), history=[ct.Message("user", "a"), ct.Message("assistant", "b")])
    for before, after in zip(model.requests, model.requests[1:], strict=False):
        assert list(after.messages)[: len(before.messages)] == list(before.messages)


# -- histories ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("strategy", STRATEGIES)
async def test_a_second_question_knows_the_first_its_answer_and_what_calls_returned(strategy: str) -> None:
    first = await ct.Orchestrator(ScriptedModel(CALL, FINAL, "<answer>12.5 degrees</answer>")).run(
        "How warm is it in Oslo?", pool=POOL, deps=Bank(1)
    )
    model = answered("13")
    second = await ct.Orchestrator(model, strategy).run("And tomorrow?", pool=POOL, history=first)
    asked, said, now = [message for message in model.requests[0].messages if message.role != "system"][:3]
    assert asked.text == ('How warm is it in Oslo?\n\nWhat calls returned:\n1.1 temperature {"city": "Oslo"} OK: 12.5')
    assert "12.5 degrees" in said.text
    assert said.role == "assistant"
    assert now.text.startswith("And tomorrow?")
    model = answered("14")
    await ct.Orchestrator(model).run("And then?", pool=POOL, history=second)
    texts = [message.text for message in model.requests[0].messages]
    assert "How warm" in texts[1]
    assert texts[3] == "And tomorrow?"
    assert texts[5].startswith("And then?")


async def test_arguments_of_a_native_call_stand_in_a_history_as_those_of_one_in_the_text() -> None:
    wrote = ct.Reply("", (ct.ToolCall("temperature", '{"city": "Oslo"}', "c1"),))
    leader = ct.Orchestrator(ScriptedModel(wrote, "12.5 degrees"), ct.ParallelRounds(native=True))
    first = await leader.run("How warm is it in Oslo?", pool=POOL, deps=Bank(1))
    model = answered("13")
    await ct.Orchestrator(model).run("And tomorrow?", pool=POOL, history=first)
    assert model.requests[0].messages[1].text.endswith('1.1 temperature {"city": "Oslo"} OK: 12.5')


async def test_a_list_of_messages_is_a_history_in_openais_form_too() -> None:
    model = answered("x")
    history = [
        {"role": "user", "content": [{"type": "text", "text": "one"}]},
        {"role": "assistant", "content": None, "tool_calls": [{"id": "1", "function": {"name": "f"}}]},
        {"role": "tool", "tool_call_id": "1", "content": "found"},
        {"role": "assistant", "content": "two"},
    ]
    await ct.Orchestrator(model).run("q", pool=POOL, history=history)
    told = model.requests[0].messages[1:]
    assert [message.role for message in told] == ["user", "assistant", "user"]
    assert told[0].text == "one\n\nWhat calls returned:\nfound"


@pytest.mark.parametrize(
    ("history", "said"),
    [
        ("earlier", "history='earlier': expected a Run, a Session, or a list of messages"),
        ([3], r"history\[0\]=3: expected"),
        ([{"role": "system", "content": "x"}], r"history\[0\] is a system message; give its text as instructions="),
        ([{"role": "user"}], r"history\[0\]: content=None; expected a text, or a list of parts"),
        ([{"role": "user", "content": 3}], r"history\[0\]: content=3; expected a text"),
        ([{"role": "user", "content": [{"type": "x"}]}], r"history\[0\]: content\[0\]={'type': 'x'}: expected a part"),
        ([{"role": "narrator", "content": "x"}], "has the role 'narrator'; expected 'user', 'assistant' or 'tool'"),
    ],
)
async def test_a_wrong_history_says_what_is_expected(history: Any, said: str) -> None:
    with pytest.raises(ct.UsageError, match=said):
        await ct.Orchestrator(answered("x")).run("q", pool=POOL, history=history)


async def test_a_long_history_is_cut_by_the_limit_that_the_strategy_has() -> None:
    roles: tuple[Any, ...] = ("user", "assistant")
    long = [ct.Message(role, f"{role} {n} " + "word " * 200) for n in range(10) for role in roles]
    model = answered("x")
    await ct.Orchestrator(model, ct.ParallelRounds(history_tokens=2000)).run("q", pool=POOL, history=long)
    told = [message.text for message in model.requests[0].messages[1:-1]]
    assert 0 < sum(map(len, told)) < 2000 / 2 * 3 + 200
    assert "assistant 9" in told[-1], "the newest turns stay"


# -- dependencies ------------------------------------------------------------------------------------------------------


async def test_dependencies_reach_tools_and_nothing_of_them_is_shown_or_kept(tmp_path: Path) -> None:
    bank = Bank(777_123)
    model = ScriptedModel(CALL, FINAL, "<answer>x</answer>")
    run = await ct.Orchestrator(model).run("q", pool=POOL, deps=bank, trace=tmp_path / "r.trace.jsonl")
    assert bank.asked == 1
    assert "777123" not in (tmp_path / "r.trace.jsonl").read_text()
    assert all("777123" not in message.text for request in model.requests for message in request.messages)
    assert run.ok


async def test_a_tool_that_asks_for_dependencies_of_a_run_without_any_says_what_to_give() -> None:
    run = await ct.Orchestrator(ScriptedModel(CALL, FINAL, "<answer>x</answer>")).run("q", pool=POOL)
    error = run.observations[0].error
    assert error is not None
    assert "'temperature' asks for ctx.deps, and the run has none; give run(..., deps=...)" in error.message


# -- typed answers -----------------------------------------------------------------------------------------------------


class Named(TypedDict):
    name: str


@dataclass
class Point:
    x: int
    y: int


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        (Weather, '{"city": "Oslo", "celsius": 12.5}', Weather(city="Oslo", celsius=12.5)),
        (Weather, '```json\n{"city": "Oslo", "celsius": 12,}\n```', Weather(city="Oslo", celsius=12)),
        (Point, '{"x": 1, "y": 2}', Point(1, 2)),
        (Named, '{"name": "a"}', {"name": "a"}),
        (list[int], "[1, 2]", [1, 2]),
        (Weather | Point, '{"x": 1, "y": 2}', Point(1, 2)),
        (Literal["yes", "no"], '"yes"', "yes"),
        (int, "7", 7),
        ({"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}, '{"a": 1}', {"a": 1}),
    ],
)
async def test_an_answer_becomes_a_value_of_its_type(kind: Any, text: str, value: Any) -> None:
    model = answered(text)
    run = await ct.Orchestrator(model, answer_type=kind).run("q", pool=POOL)
    assert run.output == value
    assert type(run.output) is type(value)
    assert run.answer == text
    assert len(model.requests) == 1
    assert "# Form of the final answer" in model.requests[0].messages[0].text


@pytest.mark.parametrize("strategy", STRATEGIES)
async def test_a_wrong_answer_goes_back_with_the_reason_under_every_strategy(strategy: str) -> None:
    if strategy == "agent-graph":
        from concertino.strategies.agent_graph import AgentGraph

        chosen: Any = AgentGraph(dom="low")
    else:
        chosen = strategy
    model = ScriptedModel(
        "<thinking>so</thinking><answer>It is 12.5 degrees in Oslo</answer>",
        '{"city": "Oslo"}',
        '{"city": "Oslo", "celsius": -500}',
        '{"city": "Oslo", "celsius": 12.5}',
    )
    run = await ct.Orchestrator(model, chosen, answer_type=Weather).run("q", pool=POOL)
    assert run.output == Weather(city="Oslo", celsius=12.5)
    assert run.answer == '{"city": "Oslo", "celsius": 12.5}'
    told = [request.messages[-1].text for request in model.requests[1:]]
    assert "It is 12.5 degrees in Oslo" in told[0]
    assert "'celsius'" in told[1]
    assert "colder than anything can be" in told[2]


@pytest.mark.parametrize(
    ("kind", "text", "said"),
    [
        (Weather, "[1]", "(root): expected object with 'city', 'celsius', got an array of 1 item"),
        (Weather, '{"city": "Oslo", "celsius": NaN}', "a JSON number is finite"),
        (Weather, '{"city": "\\ud800", "celsius": 1}', "half of a surrogate pair"),
        (Weather, "[" * 100_000, "objects and arrays inside one another"),
        (Weather, '{"city": 1, "celsius": "warm"}', '/celsius: expected number, got "warm"\n/city: expected string'),
        (Weather, '{"city": "Oslo", "cel', "write it again, complete"),
        (list[int], 'First I took {"draft": true}.\n[1, 2]', "text stands around the JSON value"),
        (list[int], "The numbers are [1, 2].", "found no JSON value that stands alone"),
        (Weather | Point | None, 'First {"x": 1, "y": 2}, but no: null', "text stands around the JSON value"),
        ({"type": "array", "uniqueItems": True}, json.dumps(list(range(10_001))), "send at most 10000 in one call"),
    ],
)
async def test_what_is_wrong_with_an_answer_is_told_by_place_and_a_wrong_one_never_given_out(
    kind: Any, text: str, said: str
) -> None:
    model = answered(text)
    run = await ct.Orchestrator(model, answer_type=kind).run("q", pool=POOL)
    assert (run.output, run.answer, run.stop) == (None, None, "format")
    assert said in model.requests[1].messages[-1].text


EITHER = {
    "oneOf": [{"type": "object", "required": ["x"]}, {"$ref": "#/$defs/a"}],
    "$defs": {"a": {"type": "object", "required": ["a"]}},
}


@pytest.mark.parametrize("kind", [Weather | Point, EITHER])
async def test_an_object_in_a_sentence_is_read_where_nothing_but_objects_is_wanted(kind: Any) -> None:
    model = answered('Here it is: {"x": 1, "y": 2} Anything else?')
    run = await ct.Orchestrator(model, answer_type=kind).run("q", pool=POOL)
    assert run.ok
    assert len(model.requests) == 1


OBJECT = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}


@pytest.mark.parametrize(("kind", "held"), [(OBJECT, OBJECT), ({"type": "array"}, None), ({"anyOf": [OBJECT]}, None)])
async def test_a_server_is_given_the_schema_of_an_object_with_the_request_that_asks_for_json_alone(
    kind: Any, held: Any
) -> None:
    model = answered("words")
    await ct.Orchestrator(model, answer_type=kind).run("q", pool=POOL)
    first, *more = model.requests
    assert first.schema is None
    assert [request.schema for request in more] == [held] * 3


async def test_a_server_that_refuses_the_schema_is_asked_without_it() -> None:
    asked: list[bool] = []

    class Strict(ct.Model):
        async def chat(self, request: ct.ChatRequest) -> ct.Reply:
            asked.append(request.schema is not None)
            if request.schema is not None:
                raise ct.ProviderError("400: this schema is not supported", failure=ct.FailureClass.CALLER)
            return ct.Reply(["<answer>words</answer>", "more words", '{"n": 42}'][len(asked) // 2])

    run = await ct.Orchestrator(Strict(), answer_type=OBJECT).run("q", pool=POOL)
    assert run.output == {"n": 42}, run.detail
    assert asked == [False, True, False, False], "it is refused once, and not given again"
    assert ct.replay(run.trace).answer == run.answer


async def test_a_reply_that_breaks_the_schema_of_the_server_is_corrected_and_not_taken_for_a_failure() -> None:
    model = ScriptedModel("<answer>words</answer>", '{"n": "many"}', '{"n": 42}')
    run = await ct.Orchestrator(model, answer_type=OBJECT).run("q", pool=POOL)
    assert run.output == {"n": 42}
    assert ct.replay(run.trace).answer == run.answer


async def test_an_answer_that_never_gets_its_type_is_no_answer() -> None:
    run = await ct.Orchestrator(answered("never"), answer_type=Weather).run("q", pool=POOL)
    assert (run.output, run.answer, run.stop) == (None, None, "format")
    assert "the answer is not of its type" in run.detail


async def test_a_budget_that_is_used_up_ends_the_correcting() -> None:
    model = ScriptedModel("<answer>words</answer>", strict=False)
    run = await ct.Orchestrator(model, answer_type=Weather).run("q", pool=POOL, budget=ct.Budget(tokens=1200))
    assert (run.output, run.answer, run.stop) == (None, None, "budget")
    assert len(model.requests) == 3, "the answer, and what the budget had room for"


def test_a_type_without_a_schema_is_refused_when_the_orchestrator_is_made() -> None:
    with pytest.raises(ct.UsageError, match="expected a pydantic model, a dataclass"):
        ct.Orchestrator(answered("x"), answer_type=object())
    with pytest.raises(ct.UsageError, match="its schema was refused"):
        ct.Orchestrator(answered("x"), answer_type={"type": "nonsense"})


async def test_without_a_type_the_text_is_the_output() -> None:
    run = await ct.Orchestrator(answered("text")).run("q", pool=POOL)
    assert run.output == run.answer == "text"


# -- records -----------------------------------------------------------------------------------------------------------


async def test_a_resumed_run_has_its_instructions_history_and_type_again(tmp_path: Path) -> None:
    path = tmp_path / "r.trace.jsonl"

    history = [ct.Message("user", "a"), ct.Message("assistant", "b")]
    told = iter(["first", "second"])
    leader = ct.Orchestrator(
        ScriptedModel(CALL, ct.ProviderError("down", failure=ct.FailureClass.CALLER)),
        instructions=lambda ctx: next(told),
        answer_type=Weather,
    )
    handle = leader.start("q", pool=POOL, history=history, deps=Bank(1), trace=path)
    await handle
    # As a process that was killed before the second reply leaves it.
    lines = path.read_text().splitlines()
    kept = lines[: next(n for n, line in enumerate(lines) if '"id":"ask.2"' in line)]
    path.write_text("\n".join(kept) + "\n")
    model = ScriptedModel(FINAL, "<answer>warm</answer>", '{"city": "Oslo", "celsius": 1}')
    again = ct.Orchestrator(model, instructions=lambda ctx: next(told), answer_type=Weather)
    run = await again.resume(path, pool=POOL, deps=Bank(1))
    assert run.output == Weather(city="Oslo", celsius=1)
    texts = [message.text for message in model.requests[0].messages]
    assert "# Instructions\nfirst" in texts[0]
    assert texts[1] == "a"
    assert ct.replay(run.trace).answer == run.answer


def test_run_sync_works_where_an_event_loop_runs_already() -> None:
    import asyncio

    async def cell() -> Any:
        return ct.Orchestrator(answered("yes")).run_sync("q", pool=POOL).answer

    assert asyncio.run(cell()) == "yes"


async def test_a_shared_executor_is_refused_there_with_the_line_to_write() -> None:
    async with ct.Executor() as executor:
        leader = ct.Orchestrator(answered("yes"), executor=executor)
        with pytest.raises(ct.UsageError, match=r"write `await leader.run\(...\)`"):
            leader.run_sync("q", pool=POOL)
