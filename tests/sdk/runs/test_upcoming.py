"""Requests that a machine will make in any case are made at once, and recorded so that every driver agrees on them."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import concertino as ct
import pytest
from concertino.core.events import Asked, Replied
from concertino.strategies import Ask, Machine
from concertino.strategies.role_workflow import Agree, Role, RoleWorkflow
from concertino.testing import fake_tool

from tests.sdk.executor.virtual_clock import run_virtually


def answer(value: str) -> str:
    return f"<answer>{value}</answer>"


class Slow(ct.Model):
    """Needs some seconds for each text; what it says goes by its name and the turn."""

    def __init__(self, said: list[str], seconds: float) -> None:
        self.said = list(said)
        self.seconds = seconds
        self.asked: list[ct.ChatRequest] = []

    async def chat(self, request: ct.ChatRequest) -> ct.Reply:
        self.asked.append(request)
        await asyncio.sleep(self.seconds)
        if not self.said:
            raise ct.ProviderError("it has nothing more to say", failure="caller")
        return ct.Reply(self.said.pop(0))


ROLES = ("optimist", "pessimist", "realist")


def workflow(**options: Any) -> RoleWorkflow:
    roles = tuple(
        Role(name, prompt=f"You are the {name}. {{question}} {{history}}", reads="answer", policy=name)
        for name in ROLES
    )
    return RoleWorkflow(
        roles, Agree("optimist.value", "realist.value"), order="simultaneous", **{"turns": 3, **options}
    )


def pool_of(*models: ct.Model) -> ct.Pool:
    specs = [
        ct.ModelSpec(f"model-{name}", lambda model=model: model) for name, model in zip(ROLES, models, strict=True)
    ]
    roles = {name: spec.name for name, spec in zip(ROLES, specs, strict=True)}
    return ct.Pool.of(fake_tool("nothing", returns="0"), *specs, **roles, orchestrator="model-optimist")


def led(*models: ct.Model, strategy: RoleWorkflow | None = None, **options: Any) -> ct.Run:
    return run_virtually(
        ct.Orchestrator(strategy=strategy or workflow()).run("Is it so?", pool=pool_of(*models), **options)
    )


def test_simultaneous_roles_are_asked_at_once() -> None:
    run = led(Slow([answer("1"), answer("2")], 3), Slow([answer("1"), answer("1")], 2), Slow([answer("2")] * 2, 1))
    assert (run.answer, run.stop) == ("2", "answered")
    assert run.seconds == pytest.approx(6, abs=0.1)  # two turns of the slowest; 12 s one after another
    assert run.critical_path() == pytest.approx(6, abs=0.1)


def test_sequential_roles_wait_for_each_other() -> None:
    models = Slow([answer("2")], 3), Slow([answer("1")], 2), Slow([answer("2")], 1)
    run = led(
        *models, strategy=RoleWorkflow(workflow().roles, Agree("optimist.value", "realist.value"), order="sequential")
    )
    assert run.seconds == pytest.approx(6, abs=0.1)


def test_what_a_role_is_asked_is_the_same_as_one_after_another() -> None:
    models = [Slow([answer("1"), answer("2")], 1), Slow([answer("1")] * 2, 1), Slow([answer("2")] * 2, 1)]
    led(*models)
    machine = workflow().begin(ct.strategies.TaskContext("Is it so?"))
    replies = {name: iter(texts) for name, texts in zip(ROLES, (["1", "2"], ["1", "1"], ["2", "2"]), strict=True)}
    asked: dict[str, list[Any]] = {name: [] for name in ROLES}
    while isinstance(step := machine.step(), Ask):
        asked[step.role].append(list(step.messages))
        machine.on_reply(ct.Reply(answer(next(replies[step.role]))))
    for name, model in zip(ROLES, models, strict=True):
        assert [list(request.messages) for request in model.asked] == asked[name]


def test_a_role_that_is_handed_back_its_text_does_not_ask_the_others_again(tmp_path: Path) -> None:
    models = Slow(["I do not know.", answer("2")], 1), Slow([answer("1")], 3), Slow([answer("2")], 1)
    run = led(*models, trace=tmp_path)
    assert run.answer == "2"
    assert [len(model.asked) for model in models] == [2, 1, 1]
    assert run.path is not None
    assert ct.replay(ct.Trace.load(run.path)).answer == "2"


def test_every_request_has_one_number_and_a_replay_finds_the_replies_by_it(tmp_path: Path) -> None:
    run = led(
        Slow([answer("1"), answer("2")], 3), Slow([answer("3")] * 2, 1), Slow([answer("2")] * 2, 2), trace=tmp_path
    )
    asked = [(event.call_id, event.role) for event in run.events if isinstance(event, Asked)]
    assert asked == [(f"ask.{number}", ROLES[(number - 1) % 3]) for number in range(1, 7)]
    came = [event.call_id for event in run.events if isinstance(event, Replied)]
    assert came == ["ask.2", "ask.3", "ask.1", "ask.5", "ask.6", "ask.4"]
    assert run.path is not None
    done = ct.replay(ct.Trace.load(run.path))
    assert (done.answer, done.stop) == (run.answer, run.stop)


def test_a_resumed_run_asks_again_only_what_was_not_answered(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"

    async def cut() -> None:
        models = Slow([answer("2")], 9), Slow([answer("1")], 1), Slow([answer("2")], 2)
        handle = ct.Orchestrator(strategy=workflow()).start("Is it so?", pool=pool_of(*models), trace=path)
        await asyncio.sleep(4)
        await handle.cancel()

    run_virtually(cut())
    models = Slow([answer("2")], 1), Slow([], 1), Slow([], 1)
    run = run_virtually(ct.Orchestrator(strategy=workflow()).resume(path, pool=pool_of(*models)))
    assert (run.answer, run.stop) == ("2", "answered")
    assert [len(model.asked) for model in models] == [1, 0, 0]


def test_when_one_model_fails_the_others_are_stopped_and_the_run_ends_with_a_reason() -> None:
    slow = Slow([answer("2")], 60)
    run = led(Slow([], 1), slow, Slow([answer("2")], 1))
    assert (run.stop, run.answer) == ("model", None)
    assert run.seconds < 5
    assert len(slow.said) == 1


def test_a_deadline_ends_all_of_them() -> None:
    run = led(*(Slow([answer("2")], 60) for _ in ROLES), budget=ct.Budget(seconds=5))
    assert run.stop == "deadline"
    assert run.seconds == pytest.approx(5, abs=0.5)


def test_a_machine_that_knows_nothing_of_it_asks_one_by_one() -> None:
    assert RoleWorkflow().begin(ct.strategies.TaskContext("?")).prefetchable() == []
    assert Machine.prefetchable(RoleWorkflow().begin(ct.strategies.TaskContext("?"))) == ()
