"""An orchestrator as a member of a pool: it leads a run inside one call, within the caller's budget and depth."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import concertino as ct
import pytest
from concertino.pool.orchestrator_agent import OrchestratorAgent
from concertino.strategies.parallel_rounds import ParallelRounds
from concertino.strategies.parallel_rounds.format import write_round
from concertino.testing import ScriptedModel, make_pool, run_call

FINAL = write_round("Done.", [("final_answer", {})])


@ct.tool
async def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@ct.tool
async def secret() -> str:
    """Tell a secret."""
    return "secret"


def adder(**options: Any) -> OrchestratorAgent:
    return ct.Orchestrator("helper").as_agent("adder", "Adds numbers with tools.", **options)


def text(*calls: tuple[str, Any]) -> str:
    return write_round("Go.", calls)


async def test_a_call_leads_a_run_of_its_own_and_gives_its_answer() -> None:
    model = ScriptedModel(text(("add", {"a": 1, "b": 2})), FINAL, "<answer>3</answer>")
    seen = await run_call(adder(), {"task": "1 + 2?"}, pool=make_pool(add, adder(), helper=model))
    assert (seen.status, seen.content) == ("OK", "3")
    assert "1 + 2?" in model.requests[0].messages[1].text
    assert seen.usage.units == 1


async def test_patterns_that_match_nothing_fail_the_call_instead_of_leading_nobody() -> None:
    agent = adder(only=("ad",))
    seen = await run_call(agent, {"task": "?"}, pool=make_pool(add, agent, helper=ScriptedModel()))
    assert seen.error is not None
    assert "adder: only=('ad',) matches no tool and no agent of the pool" in seen.error.message


async def test_it_is_offered_all_members_but_itself_or_those_of_its_patterns() -> None:
    for only, offered in (((), {"add", "secret"}), (("add",), {"add"})):
        model = ScriptedModel("<answer>3</answer>")
        agent = adder(only=only)
        await run_call(agent, {"task": "?"}, pool=make_pool(add, secret, agent, helper=model))
        prompt = model.requests[0].messages[0].text
        assert {name for name in ("add", "secret", "adder") if f'"{name}"' in prompt} == offered


async def test_a_member_that_is_not_offered_is_not_run() -> None:
    model = ScriptedModel(text(("secret", {}), ("add", {"a": 1, "b": 1})), FINAL, "<answer>2</answer>")
    agent = adder(only=["add"])
    async with ct.Executor() as executor:
        scope_events: list[Any] = []
        pool = make_pool(add, secret, agent, helper=model)
        await executor.run([ct.Call("adder", {"task": "?"})], pool, listeners=[scope_events.append])
    ended = {e.observation.call_id: e.observation for e in scope_events if hasattr(e, "observation")}
    inner = [seen for call_id, seen in ended.items() if "/" in call_id and "." in call_id.rpartition("/")[2]]
    assert [(seen.name, seen.status, seen.error.code if seen.error else "") for seen in inner] == [
        ("secret", "PARSE_ERR", "unknown_name"),
        ("add", "OK", ""),
    ]


async def test_an_orchestrator_leads_another_one() -> None:
    helper = ScriptedModel(text(("add", {"a": 20, "b": 1})), FINAL, "<answer>21</answer>")
    leader = ScriptedModel(
        text(("adder", {"task": "20 + 1?"}), ("add", {"a": 1, "b": 1})), FINAL, "<answer>42</answer>"
    )
    pool = make_pool(add, adder(), helper=helper)
    run = await ct.Orchestrator(leader).run("?", pool=pool)
    assert run.answer == "42"
    assert [seen.content for seen in run.observations] == ["21", 2]
    assert run.usage.calls == 3


async def test_orchestrators_that_call_each_other_end_at_the_depth_limit() -> None:
    twice = ParallelRounds(max_rounds=2)
    there = ct.Orchestrator("one", twice).as_agent("ping", "Plays ping.")
    back = ct.Orchestrator("two", twice).as_agent("pong", "Plays pong.")
    one = ScriptedModel(text(("pong", {"task": "pong"})), strict=False)
    two = ScriptedModel(text(("ping", {"task": "ping"})), strict=False)
    limits = ct.Limits(depth=4)
    seen = await run_call(
        there,
        {"task": "ping"},
        pool=make_pool(there, back, one=one, two=two),
        limits=limits,
        budget=ct.Budget(calls=60),
    )
    assert not seen.ok
    assert len(one.requests) + len(two.requests) < 300


@pytest.mark.parametrize("calls", [1, 2, 3])
async def test_it_spends_from_the_caller_s_budget(calls: int) -> None:
    turns = [text(("add", {"a": n, "b": n}), ("add", {"a": n, "b": 0})) for n in range(3)]
    model = ScriptedModel(*turns, FINAL, "<answer>x</answer>", strict=False)
    pool = make_pool(add, adder(), helper=model)
    seen = await run_call(adder(), {"task": "?"}, pool=pool, budget=ct.Budget(calls=calls))
    assert seen.usage.calls <= calls


async def test_without_an_answer_the_call_says_why() -> None:
    silent = ScriptedModel("no call here", strict=False)
    seen = await run_call(adder(), {"task": "?"}, pool=make_pool(add, adder(), helper=silent))
    assert seen.error is not None
    assert (seen.error.code, seen.error.message) == (
        "no_answer",
        "no answer (format): 3 texts in a row held no readable call",
    )
    broken = ScriptedModel(ct.ProviderError("key refused", failure=ct.FailureClass.AUTH))
    seen = await run_call(adder(), {"task": "?"}, pool=make_pool(add, adder(), helper=broken))
    assert seen.error is not None
    assert "key refused" in seen.error.message


def test_a_model_object_cannot_be_bound_by_a_pool() -> None:
    with pytest.raises(ct.UsageError, match="needs a role or name of the pool"):
        ct.Orchestrator(ScriptedModel()).as_agent("adder", "Adds.")


FILE = """
members = ["toy/calculate", "toy/steady"]
[roles]
helper = "toy/steady"
[orchestrators.planner]
description = "Plans and works out sums."
model = "helper"
settings = { max_rounds = 3 }
only = ["calculate"]
timeout = 60
"""


def test_a_pool_file_declares_an_orchestrator_and_saving_keeps_it(tmp_path: Path) -> None:
    file = tmp_path / "pool.toml"
    file.write_text(FILE)
    pool = ct.Pool.load(file)
    planner = pool["planner"]
    assert isinstance(planner, OrchestratorAgent)
    assert planner.strategy == ParallelRounds(max_rounds=3)
    assert (planner.leader, planner.only, planner.timeout) == ("helper", ("calculate",), 60)
    pool.save(tmp_path / "copy.toml")
    assert ct.Pool.load(tmp_path / "copy.toml") == pool
    assert ct.Pool.load(file).adjust("planner", timeout=9) != pool


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ("model = 3", "model = 3; expected a text"),
        ("stratgy = 'x'", "unknown key 'stratgy'; did you mean 'strategy'"),
        ("strategy = 'parallel-round'", "parallel-rounds"),
        ("settings = { max_round = 3 }", "unknown key 'max_round'; did you mean 'max_rounds'"),
        ("settings = { max_rounds = 0 }", "expected at least 1"),
        ("only = 'calculate'", "expected a list of patterns"),
        ("timeout = 'long'", "timeout"),
    ],
)
def test_a_wrong_declaration_is_refused_with_file_and_key(tmp_path: Path, change: str, expected: str) -> None:
    file = tmp_path / "pool.toml"
    head, _, _ = FILE.partition("model = ")
    file.write_text(f"{head}{change}\n")
    with pytest.raises(ct.PoolError) as raised:
        ct.Pool.load(file)
    assert str(raised.value).startswith(f"{file}: orchestrators: 'planner'")
    assert expected in str(raised.value)
