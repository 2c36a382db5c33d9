"""The conductor under all five strategies: real runs with the published members, with and without injected failures."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Callable
from random import Random
from typing import Any

import concertino_toy
import pytest
from concertino import (
    Budget,
    Context,
    ErrorInfo,
    Message,
    Observation,
    Orchestrator,
    Pool,
    Run,
    Status,
    ToolSpec,
    agent,
)
from concertino.strategies import Strategy
from concertino.strategies.agent_graph import AgentGraph
from concertino.strategies.dependency_plan import DependencyPlan
from concertino.strategies.parallel_rounds import ParallelRounds
from concertino.strategies.role_workflow import RoleWorkflow, coder_tester, reasoner_programmer
from concertino.strategies.serial_calls import SerialCalls
from concertino_toy.problems.writer import make_question

STRATEGIES: dict[str, Callable[[], Strategy]] = {
    "parallel-rounds": ParallelRounds,
    "agent-graph": AgentGraph,
    "agent-graph, inputs alone": lambda: AgentGraph(prepend_task=False),
    "agent-graph, low": lambda: AgentGraph(dom="low"),
    "dependency-plan": lambda: DependencyPlan(tools={"solve": "toy/solve"}),
    "dependency-plan, ready": lambda: DependencyPlan(tools={"solve": "toy/solve"}, schedule="ready"),
    "serial-calls": SerialCalls,
    "serial-calls, native": lambda: SerialCalls(native=True),
    "serial-calls, by member": lambda: SerialCalls(answering="member", answer_tool="combine"),
    "serial-calls, frames": lambda: SerialCalls(form="qa", answer_tool="combine"),
    "serial-calls, train": lambda: SerialCalls(form="qa", variant="train", answer_tool="combine"),
}
QUESTIONS: dict[str, dict[str, Any]] = {
    "one": {"parts": 1, "depth": 5},
    "three": {"parts": 3, "depth": 2},
    "chained": {"parts": 3, "depth": 2, "chained": True},
    "needle": {"parts": 2, "needle": True},
    "lure": {"parts": 2, "depth": 4, "lure": True},
}
EACH = pytest.mark.parametrize("strategy", STRATEGIES.values(), ids=STRATEGIES)
needs_python = pytest.mark.skipif(
    importlib.util.find_spec("concertino_code") is None,
    reason="concertino-code, whose python tool roles use, is absent",
)


def members() -> list[Any]:
    hooks = (
        concertino_toy.concertino_tools,
        concertino_toy.concertino_agents,
        concertino_toy.concertino_models,
    )
    return [spec.with_(name=f"toy/{spec.name}") for hook in hooks for spec in hook()]


def values(run: Run) -> tuple[int, ...]:
    """The answer's numbers: in boxes, or as the one list that a plan and a role give."""
    text = str(run.answer)
    return tuple(map(int, re.findall(r"\\boxed\{(\d+)\}", text) or re.findall(r"\d+", text)))


def failing(share: float, seed: int) -> Callable[..., Observation | None]:
    """A hook that fails a share of the calls, half of them by a crash and half by a deadline."""
    chance = Random(seed)

    def before(spec: ToolSpec, arguments: dict[str, Any], call_id: str) -> Observation | None:
        drawn = chance.random()
        if drawn >= share:
            return None
        status, code = (Status.EXEC_ERR, "raised") if drawn < share / 2 else (Status.TIMEOUT, "deadline")
        return Observation(call_id, spec.name, status, error=ErrorInfo(code, "it was made to fail"))

    return before


async def conduct(question: str, strategy: Strategy, *, pool: Pool | None = None, **options: Any) -> Run:
    orchestrator = Orchestrator("toy/leader", strategy, **options)
    return await orchestrator.run(question, pool=pool or Pool(members()), budget=Budget(calls=200, seconds=60))


@EACH
@pytest.mark.parametrize("kind", QUESTIONS.values(), ids=QUESTIONS)
async def test_every_strategy_answers_every_kind_of_question(
    strategy: Callable[[], Strategy], kind: dict[str, Any]
) -> None:
    for seed in range(4):
        question, answers = make_question(Random(seed), **kind)
        run = await conduct(question, strategy())
        assert (run.stop, values(run)) == ("answered", answers), f"seed {seed}: {run.answer!r} {run.detail}"
        assert not [f for made in run.rounds for f in made.issues if not f.repaired], f"seed {seed}"


@pytest.mark.slow
@EACH
async def test_with_a_fifth_of_the_calls_failing_runs_end_and_most_are_right(strategy: Callable[[], Strategy]) -> None:
    right = ended = 0
    for seed in range(30):
        question, answers = make_question(Random(seed), parts=3, depth=2, chained=seed % 2 == 0)
        run = await conduct(question, strategy(), before=[failing(0.2, seed)])
        ended += run.ok
        right += values(run) == answers
    assert ended >= 27
    assert right >= 24


async def test_a_graph_has_two_solvers_of_different_models_for_each_problem_and_one_sink() -> None:
    question, _ = make_question(Random(1), 3, depth=2)
    run = await conduct(question, AgentGraph())
    (made,) = run.rounds
    *solvers, sink = made.plan.calls
    assert [call.name for call in solvers] == ["solve"] * 6
    assert sink.name == "combine"
    assert set(made.plan.edges[sink.id]) == {call.id for call in solvers}
    models = [call.arguments["model"] for call in solvers if isinstance(call.arguments, dict)]
    assert all(models[place] != models[place + 1] for place in (0, 2, 4))


async def test_a_second_graph_asks_for_what_is_missing_alone() -> None:
    question, answers = make_question(Random(1), 3, depth=2)

    def before(spec: ToolSpec, arguments: dict[str, Any], call_id: str) -> Observation | None:
        first = "Problem 2:" in str(arguments.get("subtask", "")).rpartition("Current sub-task")[2] and not seen[1:]
        if not first:
            return None
        seen.append(call_id) if not seen or call_id[:2] == seen[0][:2] else None
        error = ErrorInfo("raised", "it was made to fail")
        return Observation(call_id, spec.name, Status.EXEC_ERR, error=error)

    seen: list[str] = []
    run = await conduct(question, AgentGraph(), before=[before])
    assert values(run) == answers
    first, second = run.rounds
    assert len(first.plan.calls) == 7
    assert [call.name for call in second.plan.calls] == ["solve", "solve", "combine"]


async def test_low_degree_hands_the_whole_question_to_one_agent() -> None:
    question, answers = make_question(Random(1), 3, depth=2)
    run = await conduct(question, AgentGraph(dom="low"))
    assert values(run) == answers
    assert [call.name for made in run.rounds for call in made.plan.calls] == ["solve"]


async def test_a_graph_whose_width_is_refused_is_written_narrower() -> None:
    question, answers = make_question(Random(1), 3, depth=2)
    orchestrator = Orchestrator("toy/leader", AgentGraph())
    run = await orchestrator.run(question, pool=Pool(members()), budget=Budget(parallel=3))
    assert values(run) == answers
    assert len(run.rounds[-1].plan.levels()[0]) <= 3


async def test_a_pool_without_a_combiner_gets_one_agent() -> None:
    pool = Pool([member for member in members() if member.short_name != "combine"])
    for parts in (1, 3):
        question, answers = make_question(Random(1), parts, depth=2)
        run = await conduct(question, AgentGraph(), pool=pool)
        assert values(run) == answers
        assert len(run.observations) == 1


async def test_chained_problems_are_one_graph_with_references() -> None:
    question, answers = make_question(Random(2), 3, depth=2, chained=True)
    run = await conduct(question, DependencyPlan(tools={"solve": "toy/solve"}))
    assert values(run) == answers
    first = run.rounds[0]
    assert "<plan>" in first.text
    assert "- Dependencies: T1" in first.text
    assert len(first.plan.levels()) == 5


async def test_a_tag_of_a_solver_without_a_choice_takes_a_list_of_queries() -> None:
    @agent(models=("sage",))
    async def ask(subtask: str, *, ctx: Context) -> str:
        """Solve a problem."""
        return (await ctx.model("sage").chat([Message("user", subtask)])).text

    question, answers = make_question(Random(1), 3, depth=2)
    models = [member for member in members() if member.short_name in ("leader", "sage")]
    run = await conduct(
        question, DependencyPlan(tools={"ask": "ask"}), pool=Pool([ask, *models], roles={"sage": "toy/sage"})
    )
    assert values(run) == answers
    assert run.rounds[0].text.count("<ask>[") == 1


async def test_serial_turns_hold_one_call_each() -> None:
    question, _ = make_question(Random(1), 3, depth=2)
    run = await conduct(question, SerialCalls())
    assert [len(made.plan.calls) for made in run.rounds] == [1] * len(run.rounds)
    assert len(run.rounds) >= 6


async def test_a_stateless_prompt_that_comes_again_is_given_to_another_model() -> None:
    question, answers = make_question(Random(1), 1, depth=2)
    asked: list[str] = []

    def before(spec: ToolSpec, arguments: dict[str, Any], call_id: str) -> Observation | None:
        asked.append(str(arguments.get("model")))
        error = ErrorInfo("raised", "it was made to fail")
        return Observation(call_id, spec.name, Status.EXEC_ERR, error=error) if len(asked) < 3 else None

    run = await conduct(question, SerialCalls(form="qa", answer_tool="combine"), before=[before])
    assert values(run) == answers
    assert len(set(asked[:3])) == 3


@EACH
async def test_a_question_outside_the_grammar_is_answered_unknown(strategy: Callable[[], Strategy]) -> None:
    run = await conduct("Who wrote Hamlet?", strategy())
    assert not re.search(r"\d", str(run.answer))


@EACH
async def test_a_small_budget_ends_the_run_without_an_error(strategy: Callable[[], Strategy]) -> None:
    question, _ = make_question(Random(1), 3, depth=2)
    orchestrator = Orchestrator("toy/leader", strategy())
    run = await orchestrator.run(question, pool=Pool(members()), budget=Budget(calls=2))
    assert run.stop in ("answered", "budget", "rounds", "format")


def python_pool(**roles: str) -> Pool:
    return Pool.installed("toy/*", "code/python").bind(**roles)


@needs_python
@pytest.mark.parametrize("roles", [{}, {"reasoner": "toy/sage", "programmer": "toy/steady"}], ids=["alone", "cast"])
async def test_a_reasoner_and_a_programmer_agree(roles: dict[str, str]) -> None:
    for kind in ({"parts": 1, "depth": 4}, {"parts": 2, "chained": True}, {"parts": 2, "needle": True}):
        question, answers = make_question(Random(5), **kind)
        run = await conduct(question, reasoner_programmer(), pool=python_pool(**roles))
        assert (run.stop, values(run)) == ("answered", answers)


@needs_python
async def test_a_coder_writes_a_program_that_passes_the_testers_tests() -> None:
    question, answers = make_question(Random(5), 2, depth=3)
    run = await conduct(question, coder_tester(), pool=python_pool())
    assert run.stop == "answered"
    assert str(run.observations[-1].content["stdout"]).strip() == ", ".join(map(str, answers))


@needs_python
async def test_roles_speak_again_after_a_failed_script() -> None:
    question, answers = make_question(Random(5), 2, depth=3)
    calls: list[str] = []

    def before(spec: ToolSpec, arguments: dict[str, Any], call_id: str) -> Observation | None:
        calls.append(call_id)
        error = ErrorInfo("deadline", "it was made to fail")
        return Observation(call_id, spec.name, Status.TIMEOUT, error=error) if len(calls) == 1 else None

    strategy: RoleWorkflow = reasoner_programmer()
    run = await conduct(question, strategy, pool=python_pool(), before=[before])
    assert (run.stop, values(run), len(calls)) == ("answered", answers, 2)
