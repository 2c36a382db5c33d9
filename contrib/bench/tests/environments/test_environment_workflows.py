"""The shipped role workflows in whole runs: scripted models, real scripts, every environment, each way to end."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import concertino as ct
import pytest

pytest.importorskip("concertino_code", reason="scripts run in the sandbox of concertino-code")

from concertino.strategies import Act, Ask, TaskContext
from concertino.strategies.role_workflow import RoleWorkflow, environment_tool
from concertino.testing import ScriptedModel
from concertino_bench import Task
from concertino_bench.environments import DOMAINS, Turn, environment_of, oracle_of, tasks, workflow_for, world_of
from concertino_bench.environments.workflows import MEMBERS
from concertino_bench.environments.world import EnvironmentWorld
from concertino_code.sandbox import JailedSandbox
from concertino_code.sandbox.levels import choose_level_now
from concertino_code.tool import python_tool

pytestmark = pytest.mark.skipif(not choose_level_now().safe, reason=f"no sandbox here: {choose_level_now().explain()}")

PLANNED = ("plan-path", "sudoku", "sokoban")
AGREED = ("code", "maths")


@pytest.fixture(scope="module")
def python() -> Iterator[ct.ToolSpec]:
    sandbox = JailedSandbox(preload=())
    yield python_tool(sandbox)
    sandbox.close_now()


def task_of(name: str) -> Task:
    (task,) = tasks(name, 1, seed=11, **({"level": 3} if name == "code" else {}))
    return task


def fenced(code: str) -> str:
    return f"```python\n{code}\n```"


def right_action(task: Task) -> Any:
    """What a planner says who knows the way: steps as a list, a grid as rows."""
    oracle = oracle_of(task)
    if "solution" in oracle:
        size = task.metadata["instance"]["size"]
        values = [int(sign) for sign in oracle["solution"]]
        return [values[row * size : (row + 1) * size] for row in range(size)]
    return list(oracle["moves"])


def illegal_action(task: Task) -> Any:
    """Something that can be read and that the rules forbid at once."""
    environment = environment_of(task)
    if task.axis == "sudoku":
        signs = task.metadata["instance"]["puzzle"]
        place = next(i for i, sign in enumerate(signs) if sign != ".")
        return [[place // 4 + 1, place % 4 + 1, 1 + int(signs[place]) % 4]]
    for move in "UDLR":
        environment.reset()
        environment.step([move])
        if environment.last.illegal:
            return [move]
    start = right_action(task)
    for move in start:  # walk on until a wall is next to the player
        for wrong in "UDLR":
            twin = environment_of(task)
            twin.restore(environment.snapshot())
            twin.step([wrong])
            if twin.last.illegal:
                return [*environment.moves, wrong]  # type: ignore[attr-defined]
        environment.step([move])
    raise AssertionError("no illegal action beside the way")


async def run(
    task: Task, python: ct.ToolSpec, *turns: str, path: Path, **settings: Any
) -> tuple[ct.Run, EnvironmentWorld, ScriptedModel]:
    """A run of the shipped workflow, replayed afterwards from its trace."""
    world = world_of(task)
    with ScriptedModel(*turns) as model:
        pool = ct.Pool.of(python, *world.members())
        done = await ct.Orchestrator(model, workflow_for(task.axis, **settings)).run(
            task.question, pool=pool, trace=path
        )
    replayed = ct.replay(ct.Trace.load(path))
    assert (replayed.answer, replayed.stop) == (done.answer, done.stop)
    return done, world, model


def prints(value: Any) -> str:
    return fenced(f"import json\nprint(json.dumps({value!r}))")


def acts(value: Any) -> str:
    return f"So be it.\n#### {json.dumps(value)}"


# -- a planner and a programmer ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", PLANNED)
async def test_a_right_plan_reaches_the_goal_in_one_turn(name: str, python: ct.ToolSpec, tmp_path: Path) -> None:
    task = task_of(name)
    action = right_action(task)
    done, world, model = await run(task, python, prints(action), acts(action), path=tmp_path / "t.jsonl")
    state = world.state()
    assert (done.stop, state["reached"], state["steps"], state["reward"]) == ("answered", True, 1, 1.0)
    assert json.loads(done.answer or "") == action
    assert json.dumps(action) in model.requests[1].messages[-1].text  # the planner saw what the script printed


@pytest.mark.parametrize("name", PLANNED)
async def test_an_illegal_plan_is_told_to_both_and_a_right_one_follows(
    name: str, python: ct.ToolSpec, tmp_path: Path
) -> None:
    task = task_of(name)
    wrong = illegal_action(task)
    environment = environment_of(task)
    environment.step(wrong)
    assert environment.last.illegal
    rest = right_action(task)
    if name != "sudoku":
        way = environment_of(task)
        way.restore(environment.snapshot())
        made = len(environment.snapshot())
        rest = rest[made:] if rest[:made] == list(environment.snapshot()) else rest
    done, world, model = await run(
        task, python, prints(wrong), acts(wrong), prints(rest), acts(rest), path=tmp_path / "t.jsonl"
    )
    state = world.state()
    assert (done.stop, state["reached"], state["steps"], state["illegal"]) == ("answered", True, 2, 1)
    for request in model.requests[2:]:
        text = request.messages[-1].text
        assert "Turn 1" in text
        assert f"Not legal: {environment.last.illegal}" in text
        assert environment.observation in text


@pytest.mark.parametrize("name", PLANNED)
async def test_an_unreadable_action_is_told_as_an_error_of_the_environment(
    name: str, python: ct.ToolSpec, tmp_path: Path
) -> None:
    task = task_of(name)
    action = right_action(task)
    odd = ["jump"]
    done, world, model = await run(
        task, python, prints(action), acts(odd), prints(action), acts(action), path=tmp_path / "t.jsonl"
    )
    state = world.state()
    assert (done.stop, state["reached"], state["steps"], state["unreadable"]) == ("answered", True, 1, 1)
    assert "the environment did not take it" in model.requests[2].messages[-1].text
    assert "element 1 of the action" in model.requests[2].messages[-1].text


@pytest.mark.parametrize("name", PLANNED)
async def test_roles_that_never_find_a_way_stop_after_their_turns(
    name: str, python: ct.ToolSpec, tmp_path: Path
) -> None:
    task = task_of(name)
    wrong = illegal_action(task)
    environment = environment_of(task)
    turns = []
    for _ in range(3):
        turns += [prints(wrong), acts(wrong)]
        environment.step(wrong)
    done, world, _ = await run(task, python, *turns, path=tmp_path / "t.jsonl", turns=3)
    state = world.state()
    assert (done.stop, state["reached"], state["steps"]) == ("rounds", False, 3)
    assert state["snapshot"] == environment.snapshot()
    assert state["reason"]


async def test_a_script_that_finds_the_way_itself_solves_a_grid(python: ct.ToolSpec, tmp_path: Path) -> None:
    """The programmer's script is a real search over the text of the question."""
    task = task_of("plan-path")
    rows = "\n".join(task.metadata["instance"]["rows"])
    script = f"""
rows = {rows!r}.split()
cells = {{(r, c): s for r, row in enumerate(rows) for c, s in enumerate(row) if s != "#"}}
start = next(cell for cell in cells if cells[cell] == "S")
ways, waiting = {{start: []}}, [start]
for r, c in waiting:
    for move, near in zip("UDLR", ((r - 1, c), (r + 1, c), (r, c - 1), (r, c + 1))):
        if near in cells and near not in ways:
            ways[near] = ways[r, c] + [move]
            waiting.append(near)
print(next(ways[cell] for cell in cells if cells[cell] == "G"))
"""
    printed = json.dumps(list(oracle_of(task)["moves"])).replace('"', "'")

    world = world_of(task)

    def planner(request: ct.ChatRequest) -> str:
        text = request.messages[-1].text
        listed = text.split("It printed:\n")[1].split("\n")[0]
        return f"#### {listed.replace(chr(39), chr(34))}"

    with ScriptedModel(fenced(script), planner) as model:
        pool = ct.Pool.of(python, *world.members())
        await ct.Orchestrator(model, workflow_for("plan-path")).run(task.question, pool=pool)
    assert world.state()["reached"]
    reward = environment_of(task).turn_reward(Turn("", world.state()["snapshot"], printed, ran=True))
    assert (reward.of("planner"), reward.of("programmer")) == (pytest.approx(2), pytest.approx(2))


# -- roles that agree --------------------------------------------------------------------------------------------------


def as_test(case: Any) -> str:
    return f"<test>\n<input>\n{case['input']}\n</input>\n<output>\n{case['output']}\n</output>\n</test>"


async def test_a_coder_and_a_tester_who_agree_hand_in_a_right_program(python: ct.ToolSpec, tmp_path: Path) -> None:
    task = task_of("code")
    instance = task.metadata["instance"]
    tests = "\n".join(as_test(case) for case in instance["tests"][3:5])
    done, world, model = await run(task, python, fenced(instance["golden"]), tests, path=tmp_path / "t.jsonl")
    state = world.state()
    assert (done.stop, state["reached"], state["reward"], state["steps"]) == ("answered", True, 1.0, 1)
    assert done.answer == instance["golden"]
    shown = "".join(message.text for request in model.requests for message in request.messages)
    assert all(f"\n{case['input']}\n" not in shown for case in instance["tests"][1:])


async def test_a_wrong_program_meets_a_right_test_and_is_mended(python: ct.ToolSpec, tmp_path: Path) -> None:
    task = task_of("code")
    instance = task.metadata["instance"]
    test = as_test(instance["examples"][0])
    done, world, model = await run(
        task, python, fenced("print('wrong')"), test, fenced(instance["golden"]), test, path=tmp_path / "t.jsonl"
    )
    state = world.state()
    assert (done.stop, state["reached"], state["steps"], state["rewards"]) == ("answered", True, 2, [0.0, 1.0])
    again = model.requests[2].messages[-1].text
    assert "1 of 1 tests do not match" in again
    assert "passes 0 of 2 examples" in again  # what the world said of the examples is in the history
    assert "reward" not in again


async def test_a_coder_and_a_tester_who_agree_on_something_wrong_have_not_reached_the_goal(
    python: ct.ToolSpec, tmp_path: Path
) -> None:
    task = task_of("code")
    wrong = "<test>\n<input>\n1\n2\n</input>\n<output>\nwrong\n</output>\n</test>"
    done, world, _ = await run(task, python, fenced("print('wrong')"), wrong, path=tmp_path / "t.jsonl")
    assert (done.stop, world.state()["reached"]) == ("answered", False)
    assert world.state()["reason"]


async def test_a_coder_and_a_tester_who_never_agree_stop_after_their_turns(python: ct.ToolSpec, tmp_path: Path) -> None:
    task = task_of("code")
    test = as_test(task.metadata["instance"]["examples"][0])
    turns = [fenced("print('wrong')"), test] * 2
    done, world, _ = await run(task, python, *turns, path=tmp_path / "t.jsonl", turns=2)
    assert (done.stop, world.state()["reached"], world.state()["steps"]) == ("rounds", False, 2)


async def test_a_reasoner_and_a_programmer_who_agree_have_handed_in_the_answer(
    python: ct.ToolSpec, tmp_path: Path
) -> None:
    task = task_of("maths")
    instance = task.metadata["instance"]
    boxed = f"\\boxed{{{instance['answer']}}}"
    done, world, _ = await run(task, python, boxed, fenced(instance["script"]), path=tmp_path / "t.jsonl")
    state = world.state()
    assert (done.stop, done.answer, state["reached"], state["reward"]) == ("answered", instance["answer"], True, 1.0)


async def test_a_wrong_answer_meets_the_script_and_is_mended(python: ct.ToolSpec, tmp_path: Path) -> None:
    task = task_of("maths")
    instance = task.metadata["instance"]
    boxed, script = f"\\boxed{{{instance['answer']}}}", fenced(instance["script"])
    done, world, model = await run(task, python, "\\boxed{-1}", script, boxed, script, path=tmp_path / "t.jsonl")
    assert (done.stop, world.state()["reached"], world.state()["rewards"]) == ("answered", True, [0.0, 1.0])
    again = model.requests[2].messages[-1].text
    assert "They do not agree" in again
    assert "Handed in: -1" in again
    assert "wrong" not in again.split("Turn 1")[1].split("Find out")[0]  # nobody is told which of them is right


async def test_a_reasoner_and_a_programmer_who_never_agree_stop_after_their_turns(
    python: ct.ToolSpec, tmp_path: Path
) -> None:
    task = task_of("maths")
    script = fenced(task.metadata["instance"]["script"])
    done, world, _ = await run(task, python, *["\\boxed{-1}", script] * 2, path=tmp_path / "t.jsonl", turns=2)
    assert (done.stop, world.state()["reached"], world.state()["steps"]) == ("rounds", False, 2)


def partial_action(task: Task) -> Any:
    """A right beginning."""
    if task.axis != "sudoku":
        return right_action(task)[:1]
    place = task.metadata["instance"]["puzzle"].index(".")
    return [[place // 4 + 1, place % 4 + 1, int(oracle_of(task)["solution"][place])]]


# -- rewards, branches, documents --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", PLANNED)
def test_the_words_of_a_forked_machine_are_rewarded_on_the_state_that_they_were_said_in(name: str) -> None:
    task = task_of(name)
    environment = environment_of(task)
    environment.reset()
    before = environment.snapshot()
    spec = world_of(task).members()[0]
    trunk = workflow_for(name).begin(TaskContext(task.question))

    def tool(machine: Any) -> None:
        step = machine.step()
        assert isinstance(step, Act)
        seen = []
        for number, call in enumerate(step.plan.calls, 1):
            if call.name == "python":
                content: Any = {"stdout": json.dumps(right_action(task)) + "\n"}
            else:
                content = asyncio.run(spec.function(call.arguments))
            seen.append(ct.Observation(str(number), call.name, ct.Status.OK, content))
        machine.observe(seen)

    tool(trunk)
    trunk.on_reply(ct.Reply(prints(right_action(task))))
    tool(trunk)
    assert isinstance(trunk.step(), Ask)
    actions = [right_action(task), illegal_action(task), partial_action(task)]
    branches = [trunk.fork() for _ in actions]
    for branch, action in zip(branches, actions, strict=True):
        branch.on_reply(ct.Reply(acts(action)))
    for branch in reversed(branches):
        tool(branch)
    totals = []
    for branch in branches:
        turn = Turn.of_state(before, branch.turn_state(), 1)
        reward = environment.turn_reward(turn)
        assert reward.team == branch.environment.reward
        totals.append(reward.of("planner"))
    assert len(set(totals)) == 3  # K actions, K rewards, each on its own child
    assert totals[0] == max(totals)


@pytest.mark.parametrize("name", list(DOMAINS))
def test_a_shipped_workflow_is_a_document(name: str, tmp_path: Path) -> None:
    workflow = workflow_for(name, turns=2, python="code/python")
    workflow.save(tmp_path / "w.toml")
    assert RoleWorkflow.load(tmp_path / "w.toml") == workflow
    assert {MEMBERS[name], "code/python"} == set(workflow.tools)


def test_an_unknown_environment_has_no_workflow() -> None:
    with pytest.raises(ValueError, match="expected one of plan-path"):
        workflow_for("chess")


# -- any strategy ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", PLANNED)
async def test_parallel_rounds_act_in_a_world_and_see_words_alone(name: str, python: ct.ToolSpec) -> None:
    task = task_of(name)
    world = world_of(task)
    member = MEMBERS[name]
    with ScriptedModel(
        [(member, {})],
        [(member, {"action": illegal_action(task)[:1]}), (member, {"action": "???"})],
        [(member, {"action": right_action(task) if name == "sudoku" else rest_of(task)})],
        [("final_answer", {"answer": "done"})],
        strict=False,
    ) as model:
        done = await ct.Orchestrator(model).run(task.question, pool=ct.Pool.of(*world.members()))
    state = world.state()
    assert (state["reached"], state["steps"], state["unreadable"]) == (True, 2, 1)
    seen = [observation for round_ in done.rounds for observation in round_.observations]
    assert all(isinstance(each.content, str) for each in seen if each.ok and each.name == member)
    assert [each.status for each in seen if each.name == member][2] is ct.Status.EXEC_ERR


def rest_of(task: Task) -> Any:
    """A way from where the first step of an illegal action leads."""
    environment = environment_of(task)
    environment.step(illegal_action(task)[:1])
    made = environment.snapshot()
    way = right_action(task)
    return way[len(made) :] if way[: len(made)] == list(made) else way


@pytest.mark.parametrize("name", PLANNED)
async def test_the_sdks_own_tool_takes_each_of_them(name: str, python: ct.ToolSpec) -> None:
    task = task_of(name)
    spec = environment_tool(lambda: environment_of(task), MEMBERS[name])
    action = right_action(task)
    with ScriptedModel(prints(action), acts(action)) as model:
        pool = ct.Pool.of(python, spec)
        done = await ct.Orchestrator(model, workflow_for(name)).run(task.question, pool=pool)
    assert (done.stop, done.observations[-1].content["done"]) == ("answered", True)


async def test_any_strategy_runs_scripts_and_hands_in_an_answer(python: ct.ToolSpec) -> None:
    task = task_of("maths")
    world = world_of(task)
    instance = task.metadata["instance"]
    with ScriptedModel(
        [("maths", {"action": {"code": instance["script"]}})],
        [("maths", {"action": {"answer": instance["answer"]}})],
        [("final_answer", {"answer": "done"})],
        strict=False,
    ) as model:
        done = await ct.Orchestrator(model).run(task.question, pool=ct.Pool.of(python, *world.members()))
    assert world.state()["reached"]
    assert f"printed:\n{instance['answer']}" in str(done.rounds[0].observations[0].content)


async def test_nobody_is_told_hidden_results_through_a_state(python: ct.ToolSpec) -> None:
    """A caller may pass a state of its own; it sees no reward, and gains nothing."""
    task = task_of("code")
    world = world_of(task)
    forged = {"program": task.metadata["instance"]["golden"], "examples": 2}
    with ScriptedModel(
        [("code_tests", {"state": forged}), ("code_tests", {"state": forged, "action": "print(1)"})],
        [("final_answer", {"answer": "done"})],
        strict=False,
    ) as model:
        done = await ct.Orchestrator(model).run(task.question, pool=ct.Pool.of(python, *world.members()))
    first, second = done.rounds[0].observations
    assert set(first.content) == set(second.content) == {"observation", "done", "state"}
    assert not world.state()["reached"]


async def test_without_a_python_tool_a_program_is_not_judged() -> None:
    task = task_of("code")
    world = world_of(task)
    with ScriptedModel([("code_tests", {"action": "print(1)"})], "<answer>x</answer>", strict=False) as model:
        done = await ct.Orchestrator(model).run(task.question, pool=ct.Pool.of(*world.members()))
    assert done.rounds[0].observations[0].status is not ct.Status.OK
    assert "python" in done.rounds[0].observations[0].error.message
    assert world.state()["steps"] == 0
