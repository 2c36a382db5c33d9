"""AgentGraph: the machine alone, then whole runs over a pool with a scripted model."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import concertino as ct
import pytest
from concertino.strategies import Act, Ask, Done, Machine, TaskContext
from concertino.strategies.agent_graph import AgentGraph
from concertino.testing import ScriptedModel

from .graph_texts import DIAMOND, LOW, TOOLS, TWO, agent, edges, graph
from .machine_checks import check_every_point, cut_after

BROKEN = graph(agent("A", "x"), agent("B", "${A}"), agent("C", "${A}"), edges("A>B", "A>C"))


def begin(context: TaskContext | None = None, **options: Any) -> Machine:
    return AgentGraph(**options).begin(context or TaskContext("Q?", TOOLS))


def told(machine: Machine, text: str, **more: Any) -> Machine:
    machine.on_reply(ct.Reply(text, **more))
    return machine


def act(machine: Machine) -> Act:
    step = machine.step()
    assert isinstance(step, Act), step
    return step


def ask(machine: Machine) -> Ask:
    step = machine.step()
    assert isinstance(step, Ask), step
    return step


def seen(call_id: str, content: Any = "out", failed: str = "") -> ct.Observation:
    if failed:
        return ct.Observation(call_id, "cot", ct.Status.EXEC_ERR, None, ct.ErrorInfo("raised", failed))
    return ct.Observation(call_id, "cot", ct.Status.OK, content)


# -- the machine -------------------------------------------------------------------------------------------------------


def test_the_model_is_shown_the_format_and_the_arguments_of_every_agent() -> None:
    step = ask(begin())
    assert [message.role for message in step.messages] == ["system", "user"]
    system = step.messages[0].text
    assert "debate: The debate.\n  <roles> (array, at least 2)\n  <agent_input> (text, optional)" in system
    assert "Exactly one agent has no outgoing edge" in system
    assert "At most one agent." in ask(begin(dom="low")).messages[0].text
    assert step.messages[1].text == "Q?"


def test_asking_for_a_step_twice_changes_nothing() -> None:
    machine = begin()
    assert machine.step() == machine.step()
    told(machine, TWO)
    assert machine.step() == machine.step()


def test_a_graph_is_one_plan_and_the_output_of_its_sink_is_the_answer() -> None:
    machine = told(begin(), TWO)
    assert act(machine).plan.edges == {"B": ("A",)}
    machine.observe([seen("1.A", "12"), seen("1.B", "It is 12.")])
    assert machine.step() == Done("It is 12.", "answered")


def test_an_output_that_is_data_is_written_as_json() -> None:
    machine = told(begin(dom="low"), LOW)
    machine.observe([seen("1.out", {"sum": 12})])
    assert machine.step() == Done('{"sum": 12}', "answered")


def test_a_direct_answer_ends_the_run_without_a_plan() -> None:
    assert told(begin(dom="low"), "<thinking>t</thinking><answer>4</answer>").step() == Done("4", "answered")


def test_a_text_without_tags_is_never_taken_as_an_answer() -> None:
    machine = told(begin(dom="low", max_unreadable_replies=1), "It is 4.")
    step = machine.step()
    assert isinstance(step, Done)
    assert (step.answer, step.stop) == (None, "format")


def test_with_patience_of_one_a_fault_ends_the_run_and_says_which() -> None:
    step = told(begin(max_unreadable_replies=1), BROKEN).step()
    assert isinstance(step, Done)
    assert (step.answer, step.stop) == (None, "format")
    assert "several_sinks (line 4)" in step.detail


def test_with_more_patience_the_faults_are_handed_back_with_code_line_and_words() -> None:
    machine = told(begin(max_unreadable_replies=2), BROKEN)
    said = ask(machine).messages[-1].text
    assert said.startswith("PARSE_ERR: nothing was run.")
    assert "- several_sinks (line 4): 2 agents have no outgoing edge (B, C)" in said
    assert ask(machine).fresh == 1
    assert isinstance(told(machine, BROKEN).step(), Done)


def test_a_text_that_the_length_limit_ended_is_not_run() -> None:
    machine = told(begin(), TWO, finish_reason="length")
    assert "cut_off" in ask(machine).messages[-1].text


def test_a_failed_sink_is_handed_back_with_what_every_agent_returned() -> None:
    machine = told(begin(max_unreadable_replies=2), TWO)
    machine.observe([seen("1.A", "12"), seen("1.B", failed="no such thing")], {"usd": 1.0})
    said = ask(machine).messages[-1].text
    assert "(B) did not succeed" in said
    assert '"content": "12"' in said
    assert "no such thing" in said
    assert '<budget>{"usd": 1.0}</budget>' in said
    told(machine, TWO)
    assert act(machine).round == 2
    machine.observe([seen("2.A"), seen("2.B", failed="again")])
    assert machine.step() == Done(None, "rounds", "agent 'B', which gives the answer, ended EXEC_ERR: again")


def test_an_agent_beside_the_way_to_the_answer_may_not_exist_so_any_failure_reaches_the_sink() -> None:
    """Every agent leads to the sink, so a run never pays for what its answer does not use."""
    plan = act(told(begin(), DIAMOND)).plan
    needed, waiting = set[str](), ["D"]
    while waiting:
        needed.add(waiting[-1])
        waiting += plan.edges.get(waiting.pop(), ())
    assert needed == {"A", "B", "C", "D"}


def test_the_brief_limits_how_many_agents_run_at_once_and_how_often() -> None:
    machine = told(begin(TaskContext("Q?", TOOLS, rounds=1, parallel=1)), DIAMOND)
    assert "2 agents would run at the same time, and 1 may" in ask(machine).messages[-1].text
    told(machine, TWO)
    machine.observe([seen("1.A"), seen("1.B", failed="no")])
    assert isinstance(machine.step(), Done)


def test_an_answer_that_the_executor_cut_says_so() -> None:
    machine = told(begin(dom="low"), LOW)
    machine.observe([ct.Observation("1.out", "cot", ct.Status.OK, "long …", truncated=9)])
    assert machine.step() == Done("long …", "answered", "9 characters of it were cut: raise max_chars of 'cot'")


def test_it_can_be_ended_from_outside_at_any_point() -> None:
    machine = told(begin(), TWO)
    machine.finish("deadline", "its 3 s are over")
    assert machine.step() == Done(None, "deadline", "its 3 s are over")


def test_a_fork_and_its_origin_share_nothing() -> None:
    machine = told(begin(), TWO)
    twin = machine.fork()
    machine.observe([seen("1.A"), seen("1.B", "left")])
    twin.observe([seen("1.A"), seen("1.B", failed="right")])
    assert machine.step() == Done("left", "answered")
    assert "right" in ask(twin).messages[-1].text


def test_a_machine_written_down_or_forked_at_any_point_goes_on_the_same_way() -> None:
    script: list[Any] = [
        ct.Reply("hm"),
        ct.Reply(TWO),
        [seen("1.A"), seen("1.B", failed="no")],
        ct.Reply(BROKEN),
        ct.Reply(DIAMOND.replace("a</agent_input>", "costs $${x}</agent_input>")),
        [seen(f"2.{name}") for name in "ABCD"],
    ]
    check_every_point(AgentGraph(max_unreadable_replies=9), TaskContext("What is ${A}?", TOOLS), script)


def test_settings_survive_a_round_trip() -> None:
    strategy = AgentGraph(dom="low", max_unreadable_replies=1, prepend_task=False, renamed={"a": "b"})
    assert AgentGraph.from_json(json.loads(json.dumps(strategy.to_json()))) == strategy
    assert ct.strategies.strategy_by_name("agent-graph") is AgentGraph


@pytest.mark.parametrize(
    "options", [{"dom": "medium"}, {"max_unreadable_replies": 0}, {"max_agents": 0}, {"renamed": "roles"}]
)
def test_settings_that_allow_nothing_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ct.UsageError, match=f"AgentGraph\\({next(iter(options))}="):
        AgentGraph(**options)


# -- whole runs --------------------------------------------------------------------------------------------------------


@ct.agent
async def cot(subtask: str) -> str:
    """Think step by step."""
    return f"<{subtask.rpartition(': ')[2]}>"


@ct.agent
async def debate(subtask: str, roles: list[str]) -> str:
    """Let roles argue."""
    return f"{len(roles)} say {subtask.rpartition(': ')[2]}"


POOL = ct.Pool.of(cot, debate)


async def run_of(*turns: str, pool: ct.Pool = POOL, **options: Any) -> ct.Run:
    with ScriptedModel(*turns) as model:
        return await ct.Orchestrator(model, AgentGraph(**options)).run("Q?", pool=pool)


async def test_a_run_passes_outputs_along_the_edges_and_answers_with_the_sink() -> None:
    run = await run_of(DIAMOND)
    assert (run.answer, run.stop) == ("<d <b <a>> <c <a>>>", "answered")
    assert len(run.rounds) == 1


async def test_an_output_that_looks_like_a_reference_stays_text() -> None:
    @ct.agent
    async def sly(subtask: str) -> str:
        """Write a reference."""
        return "${B} </agent> $${A}"

    text = graph(agent("A", "x", "sly"), agent("B", "y"), agent("C", "${A} and ${B}"), edges("A>C", "B>C"))
    assert (await run_of(text, pool=ct.Pool.of(sly, cot))).answer == "<${B} </agent> $${A} and <y>>"


async def test_a_fault_that_the_model_repairs_costs_no_call() -> None:
    run = await run_of(BROKEN, DIAMOND)
    assert run.answer == "<d <b <a>> <c <a>>>"
    assert len(run.observations) == 4


async def test_arguments_are_checked_before_anything_runs_and_by_the_executor_once_the_outputs_are_in() -> None:
    def roles(text: str) -> str:
        return agent("B", "sum ${A}", "debate").replace("</req", f"<roles>{text}</roles></req")

    role = {"type": "array", "minItems": 2, "items": {"type": "string", "maxLength": 5}}
    schema = {"type": "object", "properties": {"subtask": {"type": "string"}, "roles": role}, "required": ["roles"]}
    pool = ct.Pool.of(cot, debate.with_(input_schema=schema))
    first = graph(agent("A", "x"), roles('["one"]'), edges("A>B"))
    second = graph(agent("A", "long"), roles('["one", "${A}"]'), edges("A>B"))
    third = graph(agent("A", "x"), roles('["one", "${A}"]'), edges("A>B"))
    with ScriptedModel(first, second, third) as model:
        run = await ct.Orchestrator(model, AgentGraph()).run("Q?", pool=pool)
    assert "invalid_arguments (line 3): agent 'debate': /roles: expected" in model.requests[1].messages[3].text
    assert [round_.number for round_ in run.rounds] == [1, 2]
    refused = run.rounds[0].observations[1]
    assert (refused.status, refused.error and refused.error.code) == (ct.Status.PARSE_ERR, "invalid_arguments")
    assert run.answer == "2 say sum <x>"


async def test_an_agent_starts_as_soon_as_its_inputs_are_there_and_waits_for_nobody_else() -> None:
    """A -> C -> D, while B only ends after D has begun: with any barrier between levels nothing would ever end."""
    d_began = asyncio.Event()
    log: list[str] = []

    @ct.agent(timeout=30)
    async def work(subtask: str) -> str:
        """Work."""
        name = subtask.rpartition(": ")[2][0]
        log.append(f"{name} began")
        if name == "D":
            d_began.set()
        if name == "B":
            await d_began.wait()
        log.append(f"{name} ended")
        return name

    text = graph(
        agent("A", "A", "work"),
        agent("B", "B", "work"),
        agent("C", "C ${A}", "work"),
        agent("D", "D ${C}", "work"),
        agent("E", "E ${B} ${D}", "work"),
        edges("A>C", "C>D", "B>E", "D>E"),
    )
    run = await run_of(text, pool=ct.Pool.of(work))
    assert run.answer == "E"
    assert log.index("D began") < log.index("B ended") < log.index("E began")


async def test_agents_that_wait_for_nothing_run_at_the_same_time() -> None:
    meeting = asyncio.Barrier(8)

    @ct.agent(timeout=30)
    async def meet(subtask: str) -> str:
        """Wait for all others."""
        await meeting.wait()
        return "met"

    names = [f"A{n}" for n in range(8)]
    parts = [*[agent(name, "x", "meet") for name in names], agent("Z", " ".join(f"${{{name}}}" for name in names))]
    run = await run_of(graph(*parts, edges(*[f"{name}>Z" for name in names])), pool=ct.Pool.of(meet, cot))
    assert run.answer == "<" + " ".join(["met"] * 8) + ">"


async def test_a_trace_replays_to_the_same_end_without_any_model(tmp_path: Path) -> None:
    with ScriptedModel(BROKEN, TWO) as model:
        run = await ct.Orchestrator(model, AgentGraph()).run("Q?", pool=POOL, trace=tmp_path)
    trace = ct.Trace.load(str(run.path))
    assert ct.replay(trace) == Done(run.answer, run.stop)
    assert [tool["function"]["name"] for tool in trace.setup["tools"]] == ["cot", "debate"]


@pytest.mark.parametrize(("kind", "count"), [("reply", 1), ("plan", 1), ("result", 1), ("result", 3), ("reply", 2)])
async def test_a_run_interrupted_anywhere_ends_as_if_it_had_not_been(kind: str, count: int, tmp_path: Path) -> None:
    pool = ct.Pool.of(cot.with_(retry_safe=True), debate)
    spec: Callable[..., ct.ModelSpec] = lambda *turns: ct.ModelSpec("m/lead", lambda: ScriptedModel(*turns))  # noqa: E731
    run = await ct.Orchestrator(spec(BROKEN, DIAMOND), AgentGraph()).run("Q?", pool=pool, trace=tmp_path)
    path = cut_after(Path(str(run.path)), kind, count)
    left = (BROKEN, DIAMOND)[len(ct.Trace.load(path).replies()) :]
    resumed = await ct.Orchestrator(spec(*left), AgentGraph()).resume(path, pool=pool)
    assert (resumed.answer, resumed.stop) == (run.answer, "answered")
    assert [each.content for each in resumed.observations] == [each.content for each in run.observations]
