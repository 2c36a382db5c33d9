"""Hooks around calls: a cache, an approval, a redaction, a description; and durability against a power cut."""

import asyncio
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import concertino as ct
import pytest
from concertino.core.settings import Settings
from concertino.plugins import PluginManager
from concertino.traces import JournalSink

from .conftest import FINAL, Texts, add, round_of

Led = Callable[..., ct.Orchestrator]
ANSWER = "<answer>1</answer>"
ADD = round_of(("add", {"a": 1, "b": 2}))


def plugin(name: str, **hooks: Callable[..., Any]) -> types.ModuleType:
    """A module as a distribution's entry point would name it."""
    module = types.ModuleType(name)
    for hook, function in hooks.items():
        function.__name__ = hook
        setattr(module, hook, ct.hookimpl(function))
    return module


def installed(*modules: types.ModuleType, always: tuple[str, ...] = ()) -> ct.Pool:
    manager = PluginManager(Settings(always=always), installed=False)
    manager.register(plugin("sums", concertino_tools=lambda: [add]), "sums")
    for module in modules:
        manager.register(module, module.__name__)
    return ct.Pool.installed(manager=manager)


async def test_a_before_hook_can_answer_a_call_without_running_it(led_by: Led) -> None:
    def answer(spec: ct.ToolSpec, arguments: dict[str, Any]) -> ct.Observation | None:
        if arguments == {"a": 1, "b": 2}:
            return ct.Observation("", spec.name, ct.Status.OK, "from the cache")
        return None

    pool = installed(plugin("cache", concertino_before_call=answer))
    both = round_of(("add", {"a": 1, "b": 2}), ("add", {"a": 5, "b": 2}))
    run = await led_by(both, FINAL, ANSWER).run("q", pool=pool)
    assert [(seen.content, seen.replayed) for seen in run.observations] == [("from the cache", True), (7, False)]
    assert run.observations[0].call_id == "1.1"
    assert run.usage.calls == 1


async def test_a_before_hook_may_be_asynchronous_and_refuse(led_by: Led) -> None:
    async def approve(call_id: str) -> None:
        await asyncio.sleep(0)
        raise PermissionError(f"nobody approved {call_id}")

    run = await led_by(ADD, FINAL, ANSWER).run("q", pool=installed(plugin("approval", concertino_before_call=approve)))
    [seen] = run.observations
    assert seen.error is not None
    assert (seen.status, seen.error.code) == (ct.Status.EXEC_ERR, "denied")
    assert "nobody approved 1.1" in seen.error.message
    assert run.usage.calls == 0


async def test_an_after_hook_redacts_before_anything_is_shown_or_written(led_by: Led, tmp_path: Path) -> None:
    def redact(observation: ct.Observation) -> ct.Observation:
        observation.content = "[redacted]"
        return observation

    pool = installed(plugin("redaction", concertino_after_call=redact))
    run = await led_by(ADD, FINAL, ANSWER).run("q", pool=pool, trace=tmp_path)
    assert run.observations[0].content == "[redacted]"
    results = [record for record in ct.Trace.load(str(run.path)).records if record["t"] == "result"]
    assert [record["content"] for record in results] == ["[redacted]"]


async def test_a_hook_that_raises_fails_its_call_and_names_its_plugin(led_by: Led) -> None:
    def broken(spec: ct.ToolSpec) -> None:
        raise RuntimeError("oops")

    run = await led_by(ADD, FINAL, ANSWER).run("q", pool=installed(plugin("broken", concertino_before_call=broken)))
    [seen] = run.observations
    assert seen.status is ct.Status.EXEC_ERR
    assert seen.error is not None
    assert "broken" in seen.error.message
    assert "oops" in seen.error.message


async def test_an_after_hook_that_raises_is_noted_and_the_result_stays(led_by: Led) -> None:
    def broken(observation: ct.Observation) -> None:
        raise RuntimeError("oops")

    run = await led_by(ADD, FINAL, ANSWER).run("q", pool=installed(plugin("broken", concertino_after_call=broken)))
    assert run.observations[0].content == 3
    assert "oops" in run.observations[0].note


async def test_a_describe_hook_rewrites_what_the_orchestrator_reads() -> None:
    def describe(spec: ct.ToolSpec) -> str | None:
        return "Adds, exactly." if spec.short_name == "add" else None

    pool = installed(plugin("words", concertino_describe=describe))
    model = Texts(FINAL, ANSWER)
    await ct.Orchestrator(ct.ModelSpec("m/lead", lambda: model)).run("q", pool=pool)
    assert "Adds, exactly." in model.requests[0].messages[0].text


async def test_a_plugin_with_hooks_only_works_on_a_narrowed_pool_when_it_is_always_loaded(led_by: Led) -> None:
    def refuse() -> None:
        raise PermissionError("no")

    pool = installed(plugin("approval", concertino_before_call=refuse), always=("approval",)).only("sums/add")
    run = await led_by(ADD, FINAL, ANSWER).run("q", pool=pool)
    assert run.observations[0].error is not None
    assert run.observations[0].error.code == "denied"


async def test_an_always_loaded_plugin_that_is_missing_is_an_error_and_never_skipped(led_by: Led) -> None:
    pool = installed(always=("approvall",))
    with pytest.raises(ct.PoolError, match="approvall"):
        await led_by(ADD, FINAL, ANSWER).run("q", pool=pool)


async def test_with_power_durability_a_call_and_its_caller_wait_for_the_disk(
    pool: ct.Pool, led_by: Led, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    happened: list[str] = []
    real_append, real_flush = JournalSink.append, JournalSink.flush

    def append(self: JournalSink, event: Any) -> None:
        happened.append(event.to_json()["t"])
        real_append(self, event)

    async def flush(self: JournalSink) -> None:
        await real_flush(self)
        happened.append("flush")

    @ct.tool
    async def note() -> str:
        """Note that it ran."""
        happened.append("ran")
        return ""

    monkeypatch.setattr(JournalSink, "append", append)
    monkeypatch.setattr(JournalSink, "flush", flush)
    turns = round_of(("note", {})), FINAL, ANSWER
    await led_by(*turns).run("q", pool=pool.adding(note), trace=tmp_path, durability="power")
    around = happened[happened.index("intent") : happened.index("intent") + 5]
    assert around == ["intent", "flush", "ran", "result", "flush"]


async def test_an_orchestrators_own_hooks_may_take_fewer_arguments(pool: ct.Pool, led_by: Led) -> None:
    seen: list[str] = []
    run = await led_by(ADD, FINAL, ANSWER, before=[lambda call_id: seen.append(call_id)]).run("q", pool=pool)
    assert (seen, run.observations[0].content) == (["1.1"], 3)


async def test_a_before_hook_that_returns_something_else_fails_the_call(pool: ct.Pool, led_by: Led) -> None:
    run = await led_by(ADD, FINAL, ANSWER, before=[lambda: 7]).run("q", pool=pool)
    error = run.observations[0].error
    assert error is not None
    assert "returned int; expected an Observation or None" in error.message
