"""RoleWorkflow as a state machine, and its three workflows in real runs with scripts that are really run."""

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import concertino as ct
import pytest
from concertino.strategies import Act, Ask, Done, Machine, TaskContext, strategy_by_name
from concertino.strategies.role_workflow import (
    Agree,
    PassTests,
    ReachGoal,
    Role,
    RoleWorkflow,
    Stepped,
    coder_tester,
    environment_tool,
    planner_programmer,
    prompts,
    reasoner_programmer,
)
from concertino.strategies.role_workflow.format import write_actions, write_answer, write_code, write_tests
from concertino.strategies.serial_calls.format import write_turn
from concertino.testing import ScriptedModel
from hypothesis import given, settings
from hypothesis import strategies as st
from linear import assert_linear

FULL = bool(os.environ.get("CONCERTINO_FUZZ"))
SNAPSHOTS = Path(__file__).parent / "prompts"
Item = ct.Reply | list[ct.Observation]

DOUBLE = write_code("print(2 * int(input()))")
TRIPLE = write_code("print(3 * int(input()))")
TEST = write_tests([{"input": "4", "output": "8"}])
TWO_TESTS = write_tests([{"input": "4", "output": "8"}, {"input": "0", "output": "0"}])


def says(text: str, **more: Any) -> ct.Reply:
    return ct.Reply(text, **more)


def ran(stdout: str, call_id: str = "1") -> ct.Observation:
    return ct.Observation(call_id, "python", ct.Status.OK, {"stdout": stdout})


def crashed(call_id: str = "1") -> ct.Observation:
    content = {"stdout": "", "stderr": "Traceback\nNameError: x"}
    error = ct.ErrorInfo("script_error", "the script ended with 1")
    return ct.Observation(call_id, "python", ct.Status.EXEC_ERR, content, error)


def world(cell: int, done: bool = False) -> ct.Observation:
    content = {"observation": f"cell {cell}", "done": done, "reward": float(cell), "state": {"cell": cell}}
    return ct.Observation("1", "maze", ct.Status.OK, content)


def ask(machine: Machine) -> Ask:
    step = machine.step()
    assert isinstance(step, Ask), step
    return step


def act(machine: Machine) -> Act:
    step = machine.step()
    assert isinstance(step, Act), step
    return step


def done(machine: Machine) -> Done:
    step = machine.step()
    assert isinstance(step, Done), step
    return step


def shown(step: Any) -> Any:
    return (step.round, step.plan.to_json()) if isinstance(step, Act) else step


def feed(machine: Machine, *items: Item) -> Machine:
    for item in items:
        machine.observe(item) if isinstance(item, list) else machine.on_reply(item)
    return machine


def begin(workflow: RoleWorkflow, **brief: Any) -> Machine:
    return workflow.begin(TaskContext("Double it.", **brief))


# -- prompts -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["CODER_TESTER", "REASONER_PROGRAMMER", "PLANNER_PROGRAMMER"])
def test_the_prompts_of_the_shipped_roles_are_the_snapshots(name: str) -> None:
    roles: tuple[Role, ...] = getattr(prompts, name)
    text = "\n\n".join(f"=== {r.name}\n{r.system}\n--- first\n{r.prompt}\n--- again\n{r.again}" for r in roles)
    snapshot = SNAPSHOTS / f"roles-{name.lower().replace('_', '-')}.txt"
    assert text + "\n" == snapshot.read_text(encoding="utf-8")


# -- coder and tester --------------------------------------------------------------------------------------------------


def test_roles_are_asked_in_order_by_their_own_names() -> None:
    machine = begin(coder_tester())
    assert (ask(machine).role, ask(machine).fresh, len(ask(machine).messages)) == ("coder", 2, 2)
    assert "Double it." in ask(machine).messages[1].text
    feed(machine, says(DOUBLE))
    assert ask(machine).role == "tester"


def test_the_program_runs_on_every_test_in_one_plan() -> None:
    machine = feed(begin(coder_tester()), says(DOUBLE), says(TWO_TESTS))
    step = act(machine)
    assert [call.name for call in step.plan.calls] == ["python", "python"]
    assert "io.BytesIO(b'4\\n')" in step.plan.calls[0].arguments["code"]  # type: ignore[index]
    feed(machine, [ran("8\n"), ran("0\n", "2")])
    assert done(machine) == Done("print(2 * int(input()))\n", "answered")


def test_what_did_not_match_is_told_to_both_in_the_next_turn() -> None:
    machine = feed(begin(coder_tester()), says(TRIPLE), says(TWO_TESTS), [ran("12\n"), ran("0\n", "2")])
    for role in ("coder", "tester"):
        text = ask(machine).messages[-1].text
        assert ask(machine).role == role
        assert "1 of 2 tests do not match" in text
        assert "input:\n4\nexpected output:\n8\nthe program gave:\n12" in text
        assert "print(3 * int(input()))" in text
        feed(machine, says(DOUBLE if role == "coder" else TEST))
    feed(machine, [ran("8")])
    assert done(machine).stop == "answered"


def test_a_crash_is_told_with_its_end() -> None:
    machine = feed(begin(coder_tester()), says(TRIPLE), says(TEST), [crashed()])
    assert "EXEC_ERR script_error: the script ended with 1\nTraceback\nNameError: x" in ask(machine).messages[-1].text


def test_a_test_that_expects_the_words_of_a_failure_is_not_passed_by_it() -> None:
    words = "EXEC_ERR script_error: the script ended with 1\nTraceback\nNameError: x"
    expecting = write_tests([{"input": "4", "output": words}])
    machine = feed(begin(coder_tester()), says(TRIPLE), says(expecting), [crashed()])
    assert "1 of 1 tests do not match" in ask(machine).messages[-1].text


def test_roles_that_never_agree_end_with_the_last_word_and_what_is_open() -> None:
    machine = begin(coder_tester(turns=2))
    for _ in range(2):
        feed(machine, says(TRIPLE), says(TEST), [ran("12")])
    assert done(machine).answer == "print(3 * int(input()))\n"
    assert done(machine).stop == "rounds"
    assert done(machine).detail.startswith("after 2 turns: 1 of 1 tests do not match.")


def test_a_text_that_cannot_be_read_is_handed_back_to_its_role() -> None:
    machine = feed(begin(coder_tester(max_unreadable_replies=2)), says("print(1)"))
    step = ask(machine)
    assert (step.role, step.fresh) == ("coder", 1)
    assert "there is no code block; write the whole program between" in step.messages[-1].text
    feed(machine, says(DOUBLE))
    assert ask(machine).role == "tester"
    assert len(ask(machine).messages) == 2


def test_after_its_patience_the_turn_goes_on_and_the_history_says_so() -> None:
    machine = feed(begin(coder_tester(max_unreadable_replies=1)), says("hm"), says(TEST))
    assert ask(machine).role == "coder"
    text = ask(machine).messages[-1].text
    assert "coder could not be read: there is no code block" in text
    assert "coder gave nothing that could be read, so nothing was tried" in text


def test_a_run_in_which_nothing_could_be_read_ends_with_format() -> None:
    machine = begin(coder_tester(max_unreadable_replies=1, turns=2))
    feed(machine, *[says("<think>hm")] * 4)
    assert (done(machine).answer, done(machine).stop) == (None, "format")


def test_strict_workflows_refuse_what_lenient_ones_repair() -> None:
    unclosed = DOUBLE.removesuffix("\n```")
    assert ask(feed(begin(coder_tester()), says(unclosed))).role == "tester"
    machine = feed(begin(coder_tester(strict=True)), says(unclosed))
    assert "is not closed; end it with ```" in ask(machine).messages[-1].text


def test_a_program_cannot_get_out_of_the_script_around_it() -> None:
    code = "x = '''\"\"\"'; import os\nprint(input() + '\\n')\n"
    script = prompts.script_with_input(code, "a'b\"c\\")
    text = "print(repr(input()), __name__)\n'''\"\"\"'''\n"
    compile(script, "x", "exec")
    wrapped = [sys.executable, "-c", prompts.script_with_input(text, "a'b\"c\\")]
    ran_ = subprocess.run(wrapped, capture_output=True, text=True, check=True)
    assert ran_.stdout == "'a\\'b\"c\\\\' __main__\n"


# -- orders and conditions ---------------------------------------------------------------------------------------------

PAIR = (
    Role("one", "{question} other: {two.value}", reads="answer", policy="left"),
    Role("two", "{question} other: {one.value}", reads="answer", policy="right", sampling=ct.Sampling(temperature=0.1)),
)


def pair(**options: Any) -> RoleWorkflow:
    return RoleWorkflow(PAIR, Agree("one.value", "two.value"), **options)


def test_a_policy_and_a_sampling_of_its_own_are_asked_for() -> None:
    machine = begin(pair())
    assert (ask(machine).role, ask(machine).sampling) == ("left", None)
    feed(machine, says(write_answer("7")))
    assert (ask(machine).role, ask(machine).sampling) == ("right", ct.Sampling(temperature=0.1))


def test_sequential_roles_see_what_was_said_in_the_same_turn() -> None:
    machine = feed(begin(pair()), says(write_answer("7")))
    assert ask(machine).messages[0].text == "Double it. other: 7"


def test_simultaneous_roles_see_only_earlier_turns() -> None:
    machine = feed(begin(pair(order="simultaneous")), says(write_answer("7")))
    assert ask(machine).messages[0].text == "Double it. other: "
    feed(machine, says(write_answer("8")))
    assert ask(machine).messages[0].text == "Double it. other: 8"
    feed(machine, says(write_answer("9")))
    assert ask(machine).messages[0].text == "Double it. other: 7"


def test_roles_agree_by_value_and_not_by_letters() -> None:
    machine = feed(begin(pair()), says(write_answer("1/2")), says(write_answer("0.50")))
    assert done(machine) == Done("1/2", "answered")


def test_a_role_that_is_passed_over_keeps_its_last_word() -> None:
    roles = (PAIR[0], replace(PAIR[1], skip=("later",)))
    machine = feed(begin(RoleWorkflow(roles, Agree("one.value", "two.value"))), says("\\boxed{1}"), says("\\boxed{2}"))
    assert ask(machine).role == "left"
    feed(machine, says("\\boxed{2}"))
    assert done(machine) == Done("2", "answered")


@pytest.mark.parametrize(
    ("skip", "observation", "asked"),
    [
        ("ok:tool", ran("1"), False),
        ("ok:tool", crashed(), True),
        ("failed:tool", crashed(), False),
        ("failed:tool", ran("1"), True),
        ("unread:tool", ran("1"), True),
        ("first", ran("1"), False),
        ("later", ran("1"), True),
    ],
)
def test_a_condition_decides_about_a_role(skip: str, observation: ct.Observation, asked: bool) -> None:
    roles = (Role("tool", "go", reads="code", tools=("python",)), Role("judge", "look", reads="answer", skip=(skip,)))
    workflow = RoleWorkflow(roles, Agree("tool.result", "judge.value"), turns=2)
    machine = feed(begin(workflow), says(DOUBLE), [observation])
    assert (ask(machine).role == "judge") is asked


def test_a_workflow_in_which_nobody_speaks_any_more_ends() -> None:
    roles = tuple(replace(role, skip=("later",)) for role in PAIR)
    machine = begin(RoleWorkflow(roles, Agree("one.value", "two.value"), turns=1000))
    feed(machine, says("\\boxed{1}"), says("\\boxed{2}"))
    assert done(machine).detail == "no role speaks in turn 2: all are passed over, so nothing can change"


def test_tools_of_simultaneous_roles_run_in_one_plan() -> None:
    workflow = reasoner_programmer(order="simultaneous")
    roles = (*workflow.roles, replace(workflow.roles[1], name="second"))
    machine = begin(RoleWorkflow(roles, workflow.until, order="simultaneous"))
    feed(machine, says(write_answer("8")), says(DOUBLE), says(TRIPLE))
    assert [call.name for call in act(machine).plan.calls] == ["python", "python"]
    feed(machine, [ran("8\n"), ran("12\n", "2")])
    assert done(machine) == Done("8", "answered")


def test_a_role_may_call_its_own_tools_and_no_others() -> None:
    tool = {"type": "function", "function": {"name": "search", "description": "d", "parameters": {"type": "object"}}}
    roles = (
        Role("finder", "{tools}\n{question}", reads="calls", tools=("search",)),
        Role("writer", "{finder.result}", reads="answer"),
    )
    machine = begin(RoleWorkflow(roles, Agree("writer.value", "finder.result")), tools=[tool])
    assert json.dumps(tool) in ask(machine).messages[0].text
    feed(machine, says(write_turn("", "search", {"q": "x"}) + write_turn("", "serch", {})))
    errors = [call.error for call in act(machine).plan.calls]
    assert errors == [None, ("unknown_name", "finder may not call 'serch'; did you mean 'search'?")]


def test_at_most_so_many_calls_run_at_once_as_the_budget_allows() -> None:
    machine = feed(begin(coder_tester(), parallel=1), says(DOUBLE), says(TWO_TESTS))
    assert (len(act(machine).plan.calls), act(machine).round) == (1, 1)
    feed(machine, [ran("8")])
    assert (len(act(machine).plan.calls), act(machine).round) == (1, 2)
    feed(machine, [ran("0")])
    assert done(machine).stop == "answered"


def test_the_budget_of_rounds_ends_a_workflow() -> None:
    machine = feed(begin(coder_tester(), rounds=1), says(TRIPLE), says(TEST), [ran("12")], says(DOUBLE), says(TEST))
    assert done(machine) == Done(
        "print(2 * int(input()))\n", "rounds", "1 plans were run, as many as the budget allows"
    )


# -- reasoner, planner -------------------------------------------------------------------------------------------------


def test_a_reasoner_and_a_programmer_agree_on_the_answer() -> None:
    machine = feed(begin(reasoner_programmer()), says(write_answer("16")), says(DOUBLE), [ran("8\n")])
    text = ask(machine).messages[-1].text
    assert "the word of reasoner is 16; the result of programmer is 8. They do not agree." in text
    feed(machine, says(write_answer("8")), says(DOUBLE), [ran("8\n")])
    assert done(machine) == Done("8", "answered")


def test_a_script_that_failed_agrees_with_nobody() -> None:
    machine = feed(begin(reasoner_programmer()), says(write_answer("8")), says(DOUBLE), [crashed()])
    assert "the result of programmer is missing" in ask(machine).messages[-1].text


def test_an_environment_acts_on_the_plan_and_its_state_is_the_machines() -> None:
    machine = begin(planner_programmer("maze"))
    assert act(machine).plan.calls[0].arguments == {"task": "Double it."}
    feed(machine, [world(0)])
    assert "cell 0" in ask(machine).messages[-1].text
    feed(machine, says(DOUBLE), [ran('["R"]')])
    assert '["R"]' in ask(machine).messages[-1].text
    feed(machine, says(write_actions(["R"])))
    assert act(machine).plan.calls[0].arguments == {"state": {"cell": 0}, "action": ["R"]}
    feed(machine, [world(1)])
    feed(machine, says(DOUBLE), [ran('["R"]')], says(write_actions(["R", "R"])))
    assert act(machine).plan.calls[0].arguments == {"state": {"cell": 1}, "action": ["R", "R"]}
    feed(machine, [world(3, True)])
    assert done(machine) == Done('["R", "R", "R"]', "answered")


def test_an_action_is_never_taken_twice_because_its_role_was_passed_over() -> None:
    workflow = planner_programmer("maze")
    roles = (workflow.roles[0], replace(workflow.roles[1], skip=("later",)))
    machine = feed(begin(replace(workflow, roles=roles)), [world(0)], says(DOUBLE), [ran("x")])
    feed(machine, says("#### [1]"), [world(1)])
    feed(machine, says(DOUBLE), [ran("x")])
    assert "planner gave nothing that could be read" in ask(machine).messages[-1].text
    assert machine.actions == [1]  # type: ignore[attr-defined]


def test_an_action_that_the_environment_refuses_leaves_its_state() -> None:
    machine = feed(begin(planner_programmer("maze")), [world(0)], says(DOUBLE), [crashed()], says(write_actions(["X"])))
    feed(machine, [crashed()])
    assert "the environment did not take it: EXEC_ERR" in ask(machine).messages[-1].text
    assert machine.environment.state == {"cell": 0}  # type: ignore[attr-defined]


def test_an_environment_that_does_not_begin_ends_the_run() -> None:
    machine = feed(begin(planner_programmer("maze")), [crashed()])
    assert done(machine).stop == "crashed"
    assert "the environment did not begin" in done(machine).detail


@pytest.mark.parametrize("names", [["pithon"], ["python"]])
def test_a_pool_without_a_tool_of_the_workflow_is_refused(names: list[str]) -> None:
    tools = [{"type": "function", "function": {"name": name}} for name in names]
    with pytest.raises(ct.UsageError, match=r"the workflow calls '(python|maze)', which the pool does not have"):
        begin(planner_programmer("maze"), tools=tools)


def test_each_branch_is_rewarded_for_its_own_action() -> None:
    maze = environment_tool(Corridor, "maze")
    machine = feed(begin(planner_programmer("maze")), [world(0)], says(DOUBLE), [ran("x")])
    rewards = []
    for actions in (["R"], ["R", "R"], ["R", "R", "R"], ["L"]):
        branch = feed(machine.fork(), says(write_actions(actions)))
        content = maze.function({"state": 0, "action": act(branch).plan.calls[0].arguments["action"]})  # type: ignore[index]
        feed(branch, [ct.Observation("1", "maze", ct.Status.OK, content)])
        rewards.append((branch.environment.state, branch.environment.reward))  # type: ignore[attr-defined]
    assert rewards == [(1, 0.0), (2, 0.0), (3, 1.0), (-1, 0.0)]
    assert machine.environment.state == {"cell": 0}  # type: ignore[attr-defined]


@pytest.mark.slow
@pytest.mark.parametrize("piece", ["```", "<think>", "<test>", "\\boxed{", "{coder.value}"])
def test_a_megabyte_of_hostile_text_is_told_in_linear_time(piece: str) -> None:
    def told() -> Machine:
        machine = begin(coder_tester(max_unreadable_replies=1))
        feed(machine, says(piece * (1_000_000 // len(piece))), says(piece * (1_000_000 // len(piece))))
        machine.step()
        return machine

    assert_linear(told, 2_000_000)
    assert len(json.dumps(told().dump())) < 2_000_000


# -- copies ------------------------------------------------------------------------------------------------------------

SCRIPTS: dict[str, tuple[RoleWorkflow, list[Item]]] = {
    "tests": (
        coder_tester(),
        [says(TRIPLE), says("hm"), says(TWO_TESTS), [ran("12"), ran("0", "2")], says(DOUBLE), says(TEST), [ran("8")]],
    ),
    "agree": (
        reasoner_programmer(order="simultaneous"),
        [says(write_answer("9")), says(DOUBLE), [ran("8")], says(write_answer("8")), says(DOUBLE), [ran("8")]],
    ),
    "goal": (
        planner_programmer("maze"),
        [
            [world(0)],
            says(DOUBLE),
            [ran("x")],
            says(write_actions(["R"])),
            [world(1)],
            says(DOUBLE),
            [crashed()],
            says(write_actions(["R"])),
            [world(2, True)],
        ],
    ),
}


@pytest.mark.parametrize("place", range(9))
@pytest.mark.parametrize("name", SCRIPTS)
def test_a_machine_written_down_or_copied_at_any_point_goes_on_the_same_way(name: str, place: int) -> None:
    workflow, script = SCRIPTS[name]
    place = min(place, len(script))
    straight, interrupted = (feed(begin(workflow), *script[:place]) for _ in range(2))
    twin = interrupted.fork()
    restored = RoleWorkflow().restore(json.loads(json.dumps(interrupted.dump())))
    for item in script[place:]:
        assert shown(straight.step()) == shown(straight.step()) == shown(twin.step()) == shown(restored.step())
        for machine in (straight, twin, restored):
            feed(machine, item)
    assert restored.dump() == straight.dump() == twin.dump()
    assert done(straight).stop == "answered"


def test_what_happens_to_a_fork_never_shows_in_its_origin() -> None:
    workflow, script = SCRIPTS["goal"]
    machine = feed(begin(workflow), *script[:4])
    before = json.dumps(machine.dump())
    feed(machine.fork(), *script[4:])
    assert json.dumps(machine.dump()) == before


@pytest.mark.parametrize("place", range(9))
@pytest.mark.parametrize("name", SCRIPTS)
def test_it_can_be_ended_from_outside_at_any_point(name: str, place: int) -> None:
    workflow, script = SCRIPTS[name]
    machine = feed(begin(workflow), *script[:place])
    machine.finish("deadline", "late")
    assert done(machine).stop in ("deadline", "answered")


pieces = st.sampled_from(
    [DOUBLE, TRIPLE, TEST, write_answer("7"), write_actions(["R"]), "<think>", "```", "####", "hm"]
)


@settings(max_examples=3_000 if FULL else 100, deadline=None)
@given(
    st.sampled_from(list(SCRIPTS)),
    st.sampled_from(["sequential", "simultaneous"]),
    st.booleans(),
    st.lists(st.lists(pieces | st.text(max_size=5), max_size=2).map("".join), min_size=14, max_size=14),
    st.data(),
)
def test_whatever_is_said_the_machine_ends_cleanly(
    name: str, order: Any, strict: bool, texts: list[str], data: st.DataObject
) -> None:
    machine = begin(replace(SCRIPTS[name][0], order=order, strict=strict, turns=2, max_unreadable_replies=2))
    outcomes = st.sampled_from([ran("8"), ran("7"), crashed(), world(1), world(2, True)])
    for text in texts:
        step = machine.step()
        while isinstance(step, Act):
            machine.observe([data.draw(outcomes) for _ in step.plan.calls])
            step = machine.step()
        if isinstance(step, Ask):
            machine.on_reply(says(text))
    json.dumps(machine.dump())
    machine.finish("deadline")
    assert done(machine).stop in ct.STOP_REASONS


# -- runs --------------------------------------------------------------------------------------------------------------


@ct.tool(isolation="thread")
def python(code: str) -> dict[str, str]:
    """Run a Python script (of this test, so without a sandbox)."""
    ended = subprocess.run([sys.executable, "-I", "-c", code], capture_output=True, text=True, timeout=20, check=False)
    if ended.returncode:
        raise RuntimeError(ended.stderr.strip().splitlines()[-1])
    return {"stdout": ended.stdout}


class Corridor:
    """Cells in a row; the goal is the third one."""

    cell = 0

    def reset(self, task: str) -> str:
        return f"{task} You are in cell {self.cell} of 3."

    def step(self, action: Any) -> Stepped:
        self.cell += sum({"R": 1, "L": -1}[word] for word in action)
        return Stepped(f"You are in cell {self.cell} of 3.", self.cell == 3, float(self.cell == 3))

    def snapshot(self) -> Any:
        return self.cell

    def restore(self, snapshot: Any) -> None:
        self.cell = snapshot


def model(name: str, *turns: Any) -> tuple[ct.ModelSpec, ScriptedModel]:
    scripted = ScriptedModel(*turns)
    return ct.ModelSpec(name, lambda: scripted), scripted


async def run_with(strategy: RoleWorkflow, pool: ct.Pool, path: Path, model_: Any = "orchestrator") -> ct.Run:
    run = await ct.Orchestrator(model_, strategy).run("Double it.", pool=pool, trace=path)
    replayed = ct.replay(ct.Trace.load(path))
    assert (replayed.answer, replayed.stop) == (run.answer, run.stop)
    return run


async def test_a_coder_and_a_tester_with_a_model_each_come_to_a_program_that_passes(tmp_path: Path) -> None:
    coder, coding = model("lab/coder", TRIPLE, DOUBLE)
    tester, testing = model("lab/tester", TWO_TESTS, TWO_TESTS)
    pool = ct.Pool.of(python, coder, tester, coder="lab/coder", tester="lab/tester", orchestrator="lab/coder")
    run = await run_with(coder_tester(), pool, tmp_path / "run.jsonl")
    assert (run.answer, run.stop) == ("print(2 * int(input()))\n", "answered")
    assert len(run.observations) == 4
    coding.assert_done()
    testing.assert_done()
    assert "the program gave:\n12" in coding.requests[1].messages[-1].text


async def test_roles_that_the_pool_does_not_bind_share_the_orchestrators_model(tmp_path: Path) -> None:
    with ScriptedModel(write_answer("9"), write_code("print(3 * 3)")) as shared:
        run = await run_with(reasoner_programmer(), ct.Pool.of(python), tmp_path / "run.jsonl", shared)
    assert (run.answer, run.stop) == ("9", "answered")


async def test_a_planner_and_a_programmer_reach_the_goal_in_an_environment(tmp_path: Path) -> None:
    pool = ct.Pool.of(python, environment_tool(Corridor, "maze"))
    script = write_code("import json\nprint(json.dumps(['R'] * 2))")
    with ScriptedModel(script, write_actions(["R", "R"]), script, "#### [R]") as shared:
        run = await run_with(planner_programmer("maze"), pool, tmp_path / "run.jsonl", shared)
    assert (run.answer, run.stop) == ('["R", "R", "R"]', "answered")
    assert "You are in cell 2 of 3." in shared.requests[2].messages[-1].text


async def test_a_workflow_goes_on_after_a_crash_without_repeating_a_call(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    pool = ct.Pool.of(python)
    first = ScriptedModel(TRIPLE, TEST, RuntimeError("gone"), strict=False)
    broken = await ct.Orchestrator(ct.ModelSpec("lab/m", lambda: first), coder_tester()).run(
        "Double it.", pool=pool, trace=path
    )
    assert broken.stop == "model"
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    kept = next(i for i, line in enumerate(lines) if '"t":"result"' in line) + 1
    path.write_text("".join(lines[:kept]), encoding="utf-8")
    second = ScriptedModel(DOUBLE, TEST)
    run = await ct.Orchestrator(ct.ModelSpec("lab/m", lambda: second), coder_tester()).resume(path, pool=pool)
    assert (run.answer, run.stop) == ("print(2 * int(input()))\n", "answered")
    assert sum(seen.replayed for seen in run.observations) <= 1


async def test_a_workflow_from_a_document_runs(tmp_path: Path) -> None:
    coder_tester(turns=1).save(tmp_path / "w.toml")
    with ScriptedModel(DOUBLE, TEST) as shared:
        run = await run_with(RoleWorkflow.load(tmp_path / "w.toml"), ct.Pool.of(python), tmp_path / "run.jsonl", shared)
    assert run.stop == "answered"


def test_it_is_found_by_its_name_and_begins_as_coder_and_tester() -> None:
    assert strategy_by_name("role-workflow") is RoleWorkflow
    assert RoleWorkflow() == coder_tester()
    assert isinstance(RoleWorkflow().until, PassTests)
    assert planner_programmer("maze").until == ReachGoal("planner", "maze")


def test_a_turn_with_a_call_that_the_role_may_not_make_is_not_written() -> None:
    with pytest.raises(ct.UsageError, match="role 'coder' has no tools"):
        coder_tester().write_turn([ct.Call("python", {"code": "1"})], part="coder")
    workflow = reasoner_programmer(tool="sandbox/python")
    with pytest.raises(ct.UsageError, match="role 'programmer' may not call 'search'; it may call sandbox/python"):
        workflow.write_turn([ct.Call("search", {"code": "1"})], part="programmer")
    assert "print(1)" in workflow.write_turn([ct.Call("python", {"code": "print(1)"})], part="programmer")
