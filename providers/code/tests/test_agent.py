"""The agent writes, runs and repairs, through the pool and its budget."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from concertino import AgentSpec, Budget, Model, Status, ToolSpec
from concertino.testing import AgentConformance, ScriptedModel, fake_tool, make_pool, run_call
from concertino_code.agent import ATTEMPTS, code_reasoner, extract_code
from concertino_code.sandbox.jailed import JailedSandbox
from concertino_code.settings import CodeSettings, read_settings
from concertino_code.tool import published, python_tool

RIGHT = "<reasoning>Add them.</reasoning>\n<code>\nprint('total', sum(range(11)))\n</code>"
WRONG = "<reasoning>Quickly.</reasoning><code>print(totl)</code>"


@pytest.fixture
def python(sandbox: JailedSandbox) -> ToolSpec:
    return python_tool(sandbox, settings=CodeSettings())


async def test_a_script_is_written_run_and_shown_whole(python: ToolSpec) -> None:
    pool = make_pool(code_reasoner, python, coder=ScriptedModel(RIGHT))
    seen = await run_call(code_reasoner, {"subtask": "Add 0 to 10."}, pool=pool)
    assert seen.content == (
        "<reasoning>\nAdd them.\n</reasoning>\n<code>\nprint('total', sum(range(11)))\n</code>\n"
        "<execution_result>\ntotal 55\n</execution_result>"
    )
    assert seen.usage.calls == 2  # the agent and its tool


async def test_a_mistake_is_shown_to_the_model_and_repaired(python: ToolSpec) -> None:
    model = ScriptedModel(WRONG, RIGHT)
    seen = await run_call(code_reasoner, {"subtask": "Add."}, pool=make_pool(code_reasoner, python, coder=model))
    assert seen.status is Status.OK
    shown = str(model.requests[1].messages[-1].text)
    assert "NameError: name 'totl' is not defined" in shown
    assert "EXEC_ERR" in shown


async def test_a_reply_without_a_script_is_asked_again(python: ToolSpec) -> None:
    model = ScriptedModel("It is 55.", RIGHT)
    assert (await run_call(code_reasoner, {"subtask": "Add."}, pool=make_pool(code_reasoner, python, coder=model))).ok


async def test_a_script_that_is_never_repaired_is_an_error_with_the_last_attempt(python: ToolSpec) -> None:
    model = ScriptedModel(*[WRONG] * ATTEMPTS)
    seen = await run_call(code_reasoner, {"subtask": "Add."}, pool=make_pool(code_reasoner, python, coder=model))
    assert seen.error is not None
    assert (seen.status, seen.error.code) == (Status.EXEC_ERR, "script_error")
    assert "print(totl)" in seen.content
    assert "NameError" in seen.content


async def test_a_model_that_writes_no_script_is_said_to() -> None:
    model = ScriptedModel(*["no"] * ATTEMPTS)
    seen = await run_call(code_reasoner, {"subtask": "Add."}, pool=make_pool(code_reasoner, coder=model))
    assert seen.error is not None
    assert "wrote no script in 3 replies" in seen.error.message


async def test_no_repair_is_paid_for_what_no_script_can_mend() -> None:
    model = ScriptedModel(RIGHT)
    seen = await run_call(code_reasoner, {"subtask": "Add."}, pool=make_pool(code_reasoner, coder=model))
    assert seen.error is not None
    assert seen.error.code == "unknown_name"


async def test_the_question_of_the_run_is_the_task_where_none_is_given(python: ToolSpec) -> None:
    model = ScriptedModel(RIGHT)
    pool = make_pool(code_reasoner, python, coder=model)
    assert (await run_call(code_reasoner, {}, pool=pool, question="Add 0 to 10.")).ok
    assert model.requests[0].messages[-1].text == "Add 0 to 10."


async def test_another_model_can_be_named(python: ToolSpec) -> None:
    pool = make_pool(code_reasoner, python, coder=ScriptedModel(), other=ScriptedModel(RIGHT))
    seen = await run_call(code_reasoner, {"subtask": "Add.", "model_id": "model-other"}, pool=pool)
    assert seen.ok


async def test_a_model_that_the_pool_lacks_is_refused_and_no_other_one_asked(python: ToolSpec) -> None:
    model = ScriptedModel()
    pool = make_pool(code_reasoner, python, coder=model)
    seen = await run_call(code_reasoner, {"subtask": "Add.", "model_id": "nobody"}, pool=pool)
    assert seen.error is not None
    assert "no model 'nobody'; there are coder, model-coder" in seen.error.message
    assert model.requests == []


async def test_the_budget_binds_the_agents_own_calls(python: ToolSpec) -> None:
    pool = make_pool(code_reasoner, python, coder=ScriptedModel(RIGHT))
    seen = await run_call(code_reasoner, {"subtask": "Add."}, pool=pool, budget=Budget(calls=1))
    assert seen.error is not None
    assert seen.error.code == "budget_exhausted"


async def test_the_code_reaches_the_tool_unchanged() -> None:
    tool = fake_tool("python", returns={"stdout": "x\n"})
    reply = "<think><code>no</code></think><code>\nif True:\n    print('<b>')\n</code>"
    await run_call(code_reasoner, {"subtask": "x"}, pool=make_pool(code_reasoner, tool, coder=ScriptedModel(reply)))
    assert tool.calls == [{"code": "if True:\n    print('<b>')"}]


@pytest.mark.parametrize(
    ("reply", "code"),
    [
        ("<code>print(1)</code>", "print(1)"),
        ("<code>\n```python\nprint(1)\n```\n</code>", "print(1)"),
        ("```py\nprint(1)\n```", "print(1)"),
        ("<code>a</code> better: <code>b</code>", "b"),
        ("<CODE>print(1)", "print(1)"),
        ("print(1)", ""),
        ("<code>  </code>", ""),
    ],
)
def test_the_script_is_found_in_what_models_write(reply: str, code: str) -> None:
    assert extract_code(reply) == code


class TestCodeReasoner(AgentConformance):
    """The published agent."""

    spec: AgentSpec = code_reasoner
    examples = [({"subtask": "Add 0 to 10."}, lambda text: "total 55" in text)]  # noqa: RUF012
    rejected = [{"subtask": 3}, {"task": "Add."}]  # noqa: RUF012

    @property
    def members(self) -> list[Any]:  # type: ignore[override]
        """Its tool, made when it is first asked for."""
        return [published(read_settings())]

    def make_models(self) -> Mapping[str, Model]:
        return {"coder": ScriptedModel(*[RIGHT] * 8, strict=False)}
