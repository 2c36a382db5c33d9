"""Brief prompts: a line for each member, a line for each observation, and the rest of a run as with the full prompt."""

from __future__ import annotations

import json
import re
from typing import Any

import concertino as ct
import pytest
from concertino.strategies import Ask, Machine, Strategy, TaskContext
from concertino.strategies.agent_graph import AgentGraph
from concertino.strategies.base.brief_prompt import member_list
from concertino.strategies.base.history import BRIEF, count_tokens
from concertino.strategies.base.members import Offers
from concertino.strategies.base.observations import render_line, render_round
from concertino.strategies.dependency_plan import DependencyPlan
from concertino.strategies.dependency_plan.prompts import render_observations
from concertino.strategies.parallel_rounds import ParallelRounds
from concertino.strategies.parallel_rounds.format import write_round
from concertino.strategies.serial_calls import SerialCalls, write_choice
from concertino.strategies.serial_calls.choices import ModelChoice
from concertino.strategies.serial_calls.format import write_turn
from concertino.testing import ScriptedModel
from hypothesis import given
from hypothesis import strategies as st

from .graph_texts import COT, DEBATE, TEXT, TWO, tool
from .graph_texts import SEARCH as LOOK_UP
from .machine_checks import check_every_point

SEARCH = tool("search", {"query": TEXT}, "query")
FINAL = ct.Reply(write_round("Done.", [("final_answer", {})]))
ANSWER = ct.Reply("<answer>1</answer>")


def described(description: str, properties: dict[str, Any] | None = None, *required: str) -> str:
    made = tool("f", properties or {}, *required)
    made["function"]["description"] = description
    return member_list(Offers([made]).values())


# -- the members -------------------------------------------------------------------------------------------------------


def test_a_member_is_a_line_with_its_arguments() -> None:
    properties = {
        "query": TEXT,
        "kind": {"enum": ["web", "news"]},
        "ids": {"type": "array", "items": {"type": "integer"}},
        "extra": {"type": "object"},
        "top": {"anyOf": [{"enum": [1, 2]}, {"type": "null"}]},
        "roles": {"type": "array", "items": {"enum": ["judge", "expert"]}},
    }
    assert described("Finds it.", properties, "query", "kind") == (
        "f(query, kind=web|news, ids[]?, extra{}?, top?, roles[]=judge|expert?): Finds it."
    )


@pytest.mark.parametrize(
    ("description", "shown"),
    [
        ("Finds texts. Give it a query.", "f(): Finds texts."),
        ("Finds e.g. texts of\n  any kind", "f(): Finds e.g. texts of any kind"),
        ("Takes e.g. Latin! Then ends.", "f(): Takes e.g. Latin!"),
        ("Costs 0.5 units. It is slow.", "f(): Costs 0.5 units."),
        ("", "f()"),
        (
            "Good at maths. Slow.\nPrice: $0.1 / $0.4 per million tokens read / written.",
            "f(): Good at maths. $0.1/$0.4 per M",
        ),
        ("Price: $1 / $2 per million tokens read / written.", "f(): $1/$2 per M"),
    ],
)
def test_of_a_description_the_first_sentence_and_the_price_are_shown(description: str, shown: str) -> None:
    assert described(description) == shown


def test_the_price_of_a_model_that_is_offered_as_an_agent_is_shown() -> None:
    model = ct.ModelSpec("m/big", ScriptedModel, description="Knows much. Is slow.", prices=ct.Prices(1.25, 10))
    [shown] = ct.Pool.of(model).offering("m/big").to_openai()
    assert member_list(Offers([shown]).values()).endswith("(task): Knows much. $1.25/$10 per M")


def test_many_choices_are_cut() -> None:
    line = described("", {"model": {"enum": [f"model-{number}" for number in range(99)]}}, "model")
    assert line.startswith("f(model=model-0|model-1|")
    assert line.endswith("|…)")
    assert len(line) < 150


def test_serial_calls_show_the_models_behind_aliases_with_what_they_cost() -> None:
    choices = [ModelChoice("s-1", "Fast.", ct.Prices(0.1, 0.4), 3), ModelChoice("s-2", "Good.")]
    offered = tool("search", {"model": write_choice("Who searches.", choices)}, "model")
    prose = tool("ask", {"model": {"type": "string", "description": "Who. Choices: ['m-1', 'm-2']."}}, "model")
    step = SerialCalls(prompt="brief").begin(TaskContext("Q?", [offered, prose])).step()
    assert isinstance(step, Ask)
    lines = step.messages[0].text.split("\n")
    assert lines[1:3] == ["search(model=s-1($0.1/$0.4 3s)|s-2): The search.", "ask(model=m-1|m-2): The ask."]


def test_an_agent_of_a_graph_is_shown_with_the_input_that_its_format_writes() -> None:
    step = AgentGraph(prompt="brief").begin(TaskContext("Q?", [LOOK_UP, DEBATE])).step()
    assert isinstance(step, Ask)
    assert step.messages[0].text.split("\n")[1:] == [
        "look_up(agent_input): The look_up.",
        "debate(roles[], agent_input?): The debate.",
    ]


@given(st.text(), st.text())
def test_a_member_takes_one_line_whatever_its_texts_are(description: str, choice: str) -> None:
    assert len(described(description, {"kind": {"enum": [choice]}}).split("\n")) == 1


# -- the observations --------------------------------------------------------------------------------------------------


def ok(content: Any, call_id: str = "1.1") -> ct.Observation:
    return ct.Observation(call_id, "search", ct.Status.OK, content)


def ended(status: str, code: str, message: str, content: Any = None) -> ct.Observation:
    return ct.Observation("1.2", "search", ct.Status(status), content, ct.ErrorInfo(code, message, near=("x",)))


@pytest.mark.parametrize(
    ("observation", "line"),
    [
        (ok(14), "1 OK 14"),
        (ok("14 apples"), "1 OK 14 apples"),
        (ok({"n": ["é"]}), '1 OK {"n": ["é"]}'),
        (ok(None), "1 OK"),
        (ok(""), '1 OK ""'),
        (ok("two\nlines"), '1 OK "two\\nlines"'),
        (ok('"quoted"'), '1 OK "\\"quoted\\""'),
        (ok("a < b"), "1 OK a < b"),
        (ok("a\u2028b"), '1 OK "a\\u2028b"'),
        (ended("EXEC_ERR", "raised", "it\n broke"), "1 EXEC_ERR raised: it broke"),
        (ended("TIMEOUT", "deadline", "its 3 s are over", "half"), "1 TIMEOUT deadline: its 3 s are over so far: half"),
    ],
)
def test_an_observation_is_a_line_with_place_status_and_content_or_cause(
    observation: ct.Observation, line: str
) -> None:
    assert render_line(observation, "1") == line


FRAMES = ("tool_response", "tool_call", "budget", "observation", "answer", "plan", "graph", "think", "reflection")
hostile = st.text() | st.lists(
    st.sampled_from(["<", "</", ">", "\n", "\r", "\u2028", "2 OK 7", " ", '"', "\\", *FRAMES, *map(str.upper, FRAMES)]),
    max_size=8,
).map("".join)


@given(hostile, hostile, hostile)
def test_no_result_can_forge_the_frame_or_another_line(content: str, message: str, code: str) -> None:
    pair = [ok(content), ended("TIMEOUT", code, message, {"so": content})]
    shown = render_round(pair, ["1", "2"], {"units": 1}, prompt="brief")
    first, one, two, last, budget = shown.splitlines()
    assert (first, last, budget) == ("<tool_response>", "</tool_response>", '<budget>{"units": 1}</budget>')
    assert one.startswith("1 OK ")
    assert two.startswith("2 TIMEOUT ")
    assert not re.search("</?(tool_response|tool_call|budget)\\b", one + two)
    told = one.removeprefix("1 OK ")
    assert (json.loads(told) if told.startswith('"') else told) == content
    planned = render_observations(pair, ["1", "2"], None, "brief").splitlines()
    assert len(planned) == 4
    assert not re.search(f"</?({'|'.join(FRAMES)})\\b", planned[1] + planned[2], re.IGNORECASE)


@given(st.text(min_size=200), st.integers(40, 60))
def test_a_long_content_is_cut_and_stays_one_line(content: str, tokens: int) -> None:
    line = render_line(ok(content), "1", tokens)
    assert len(line.splitlines()) == 1
    assert render_line(ok(content), "1") == line or "characters left out" in line


# -- runs --------------------------------------------------------------------------------------------------------------


def calls(*queries: str) -> ct.Reply:
    return ct.Reply(write_round("Look.", [("search", {"query": query}) for query in queries]))


def asked(machine: Machine) -> str:
    step = machine.step()
    assert isinstance(step, Ask)
    return step.messages[-1].text


def told(strategy: Strategy, *script: Any, tools: Any = (SEARCH,)) -> Machine:
    machine = strategy.begin(TaskContext("Q?", list(tools), remaining={"units": 3}))
    for item in script:
        machine.observe(item, {"units": 2}) if isinstance(item, list) else machine.on_reply(item)
    return machine


BRIEFLY = ParallelRounds(prompt="brief")
PAIR = [ok("one"), ended("EXEC_ERR", "raised", "it broke")]


def test_a_round_comes_back_in_one_block_and_the_answer_is_asked_for_in_one_line() -> None:
    machine = told(BRIEFLY, calls("a", "b"), PAIR)
    assert asked(machine) == (
        '<tool_response>\n1 OK one\n2 EXEC_ERR raised: it broke\n</tool_response>\n<budget>{"units": 2}</budget>'
    )
    machine.on_reply(FINAL)
    assert asked(machine) == "Write the <answer>, each value in \\boxed{}."


def test_with_quotes_the_lines_show_how_a_result_is_quoted() -> None:
    strategy = ParallelRounds(prompt="brief", references=True, show_budget=False)
    machine = told(strategy, calls("a"), [ok(1)], calls("a", "b"), PAIR)
    assert asked(machine).split("\n")[1:3] == ["2.1 OK one", "2.2 EXEC_ERR raised: it broke"]


def test_native_calls_are_answered_in_brief() -> None:
    native = ct.Reply("", (ct.ToolCall("search", '{"query": "a"}', "n1"), ct.ToolCall("search", "{}", "n2")))
    machine = told(ParallelRounds(prompt="brief", native=True), native, PAIR)
    step = machine.step()
    assert isinstance(step, Ask)
    assert [message.text for message in step.messages[-3:-1]] == ["1 OK one", "2 EXEC_ERR raised: it broke"]
    assert [shown["function"]["name"] for shown in step.tools] == ["search", "final_answer"]
    machine.on_reply(ct.Reply("", (ct.ToolCall("final_answer", "{}", "n3"),)))
    step = machine.step()
    assert isinstance(step, Ask)
    assert step.messages[-2].text == "OK"
    serial = told(SerialCalls(prompt="brief", native=True), native, PAIR).step()
    assert isinstance(serial, Ask)
    assert serial.messages[-2].text == "2 EXEC_ERR raised: it broke"


def test_a_chat_shows_a_result_in_brief_and_asks_for_the_answer_in_one_line() -> None:
    script = [ct.Reply(write_turn("", "search", {"query": "a"})), [ok("one")]]
    machine = told(SerialCalls(prompt="brief", max_rounds=1), *script)
    step = machine.step()
    assert isinstance(step, Ask)
    assert step.messages[-2].text.startswith("<tool_response>\n1 OK one\n</tool_response>")
    assert step.messages[-1].text == "No turns are left: write the <answer>, each value in \\boxed{}."


def test_a_plan_s_results_come_back_as_short_lines() -> None:
    machine = told(DependencyPlan(prompt="brief", max_rounds=1), ct.Reply("<search>a | b</search>"), PAIR)
    lines = asked(machine).split("\n")
    assert lines[0] == "<observation>"
    assert [line.split(" ", 1)[1] for line in lines[1:3]] == ["OK one", "EXEC_ERR raised: it broke"]
    assert lines[-1] == "No more calls: write the <answer>."


def test_what_failed_of_a_graph_is_told_in_short_lines() -> None:
    machine = told(AgentGraph(prompt="brief"), ct.Reply(TWO), PAIR, tools=[COT])
    assert asked(machine) == (
        '<tool_response>\nA OK one\nB EXEC_ERR raised: it broke\n</tool_response>\n<budget>{"units": 2}</budget>\n'
        "B failed: write another graph, or the <answer>."
    )


def test_old_rounds_are_told_briefly_line_by_line() -> None:
    long = "many words, " * 500 + "and so on"
    script = [item for _ in range(4) for item in (calls("a", "b"), [ok(long), ok(long)])]
    machine = told(ParallelRounds(prompt="brief", history_tokens=9_000), *script)
    step = machine.step()
    assert isinstance(step, Ask)
    old, new = step.messages[3].text.split("\n"), step.messages[-1].text.split("\n")
    for number, line in enumerate(old[1:3], 1):
        assert line.startswith(f"{number} OK many words, many")
        assert count_tokens(line) <= BRIEF
    assert new[1] == f"1 OK {long}"


SCRIPTS: dict[str, tuple[Strategy, Any, list[Any]]] = {
    "rounds": (BRIEFLY, SEARCH, [calls("a", "b"), PAIR, ct.Reply("hm"), FINAL, ANSWER]),
    "short rounds": (
        ParallelRounds(prompt="brief", history_tokens=400),
        SEARCH,
        [*[calls("a"), [ok("w " * 900)]] * 4, FINAL, ANSWER],
    ),
    "turns": (
        SerialCalls(prompt="brief"),
        SEARCH,
        [
            ct.Reply(write_turn("", "search", {"query": "a"})),
            [ok("one")],
            ct.Reply(write_turn("", "answer", {"text": "1"})),
        ],
    ),
    "plan": (DependencyPlan(prompt="brief"), SEARCH, [ct.Reply("<search>a | b</search>"), PAIR, ANSWER]),
    "graph": (AgentGraph(prompt="brief"), COT, [ct.Reply(TWO), PAIR, ct.Reply(TWO), [ok("one"), ok("1")]]),
}


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_copy_made_at_any_point_goes_on_the_same_way(name: str) -> None:
    strategy, offered, script = SCRIPTS[name]
    check_every_point(strategy, TaskContext("Q?", [offered], remaining={"units": 3}), script)


@pytest.mark.parametrize("kind", [ParallelRounds, SerialCalls, DependencyPlan, AgentGraph])
def test_the_setting_is_written_down_and_a_wrong_one_is_refused(kind: Any) -> None:
    strategy = kind(prompt="brief")
    assert strategy.to_json()["prompt"] == "brief"
    assert kind.from_json(json.loads(json.dumps(strategy.to_json()))) == strategy
    assert kind().to_json()["prompt"] == "full"
    with pytest.raises(ct.UsageError, match=rf"{kind.__name__}\(prompt='short'\): expected 'full' or 'brief'"):
        kind(prompt="short")


def test_the_released_form_has_no_brief_prompt() -> None:
    with pytest.raises(ct.UsageError, match=r"SerialCalls\(form='qa', prompt='brief'\)"):
        SerialCalls(form="qa", prompt="brief")


def test_a_strategy_has_the_calls_and_the_answer_that_it_has_with_the_full_prompt() -> None:
    found = []
    for strategy in (ParallelRounds(), BRIEFLY):
        with ScriptedModel(calls("a", "b").text, FINAL.text, ANSWER.text) as model:
            run = ct.Orchestrator(model, strategy).run_sync("Q?", pool=ct.Pool.of(search))
        found.append((run.answer, run.stop, [each.content for each in run.observations]))
    assert found[0] == found[1] == ("1", "answered", ["a", "b"])


@ct.tool
async def search(query: str) -> str:
    """Say it back."""
    return query
