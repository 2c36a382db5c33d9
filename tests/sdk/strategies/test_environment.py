"""Environments behind a tool: any object with five methods, and no state outside of what travels."""

from typing import Any

import concertino as ct
from concertino.strategies.role_workflow import Environment, Stepped, environment_tool


class Corridor:
    """Cells in a row; the goal is the last one."""

    def __init__(self) -> None:
        self.cell, self.length = 0, 3

    def reset(self, task: str) -> str:
        self.cell, self.length = 0, len(task)
        return self._seen()

    def step(self, action: Any) -> Stepped:
        if action not in ("left", "right"):
            raise ValueError(f"there is no action {action!r}; there are left and right")
        self.cell = max(0, self.cell + (1 if action == "right" else -1))
        return Stepped(self._seen(), self.cell >= self.length, float(self.cell))

    def snapshot(self) -> Any:
        return {"cell": self.cell, "length": self.length}

    def restore(self, snapshot: Any) -> None:
        self.cell, self.length = snapshot["cell"], snapshot["length"]

    def _seen(self) -> str:
        return f"cell {self.cell} of {self.length}"


async def call(spec: ct.ToolSpec, **arguments: Any) -> ct.Observation:
    pool = ct.Pool.of(spec)
    executor = ct.Executor()
    scope = executor.open(pool, run_id="r", question="q")
    try:
        [seen] = await executor.run_plan(ct.Plan([ct.Call(spec.name, arguments)]), scope, prefix="1.")
    finally:
        await executor.aclose()
    return seen


def test_an_object_with_the_methods_is_an_environment() -> None:
    assert isinstance(Corridor(), Environment)
    assert not isinstance(object(), Environment)


async def test_a_call_without_an_action_begins_the_task() -> None:
    seen = await call(environment_tool(Corridor, "corridor"), task="ab")
    assert seen.content == {
        "observation": "cell 0 of 2",
        "done": False,
        "reward": 0.0,
        "state": {"cell": 0, "length": 2},
    }


async def test_the_state_travels_so_branches_do_not_disturb_each_other() -> None:
    spec = environment_tool(Corridor, "corridor")
    state = {"cell": 1, "length": 2}
    right = await call(spec, state=state, action="right")
    left = await call(spec, state=state, action="left")
    again = await call(spec, state=state, action="right")
    assert (right.content["done"], right.content["reward"]) == (True, 2.0)
    assert left.content["state"]["cell"] == 0
    assert again.content == right.content


async def test_an_action_that_cannot_be_read_is_an_error_of_the_call() -> None:
    seen = await call(environment_tool(Corridor, "corridor"), state={"cell": 0, "length": 2}, action="up")
    assert seen.status is ct.Status.EXEC_ERR
    assert seen.error is not None
    assert "there are left and right" in seen.error.message


def test_options_of_the_spec_are_passed_on() -> None:
    spec = environment_tool(Corridor, "corridor", "Walk.", timeout=2.0, max_chars=99)
    assert (spec.description, spec.timeout, spec.max_chars) == ("Walk.", 2.0, 99)
