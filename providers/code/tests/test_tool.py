"""The tool through the executor: the right status and code for every ending, and the output in each."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any

import concertino_code
import pytest
from concertino import Call, Observation, ProviderSettings, Status, ToolSpec, UsageError
from concertino.executor import Executor
from concertino.testing import ToolConformance, make_pool, run_call
from concertino_code import concertino_examples
from concertino_code.backend import Backend
from concertino_code.sandbox.base import Sandbox, SandboxFault, SandboxUnavailable, Script
from concertino_code.sandbox.jailed import JailedSandbox
from concertino_code.sandbox.limits import ScriptLimits
from concertino_code.sandbox.outcome import Ending, ScriptOutcome, Stream
from concertino_code.settings import CodeSettings, read_settings
from concertino_code.tool import _declare, published, python_tool, show, unfenced


class Broken(Sandbox):
    """A sandbox that fails as often as it is told to, then works."""

    level = "broken"
    description = "A sandbox for a test."

    def __init__(self, *faults: SandboxFault) -> None:
        self.faults = list(faults)
        self.seen: list[ScriptLimits] = []
        self.limits = ScriptLimits()

    async def execute(self, script: Script) -> ScriptOutcome:
        self.seen.append(script.limits)
        if self.faults:
            raise self.faults.pop(0)
        return ScriptOutcome(Ending.OK, 0, Stream(b"done\n", b"", 5), Stream())


async def run(sandbox: Sandbox, code: str, settings: CodeSettings | None = None, **options: Any) -> Observation:
    tool = python_tool(sandbox, settings=settings or CodeSettings()).with_(**options)
    return await run_call(tool, {"code": code})


@pytest.mark.parametrize(
    ("code", "status", "error", "content"),
    [
        ("print('yes')", Status.OK, "", {"stdout": "yes\n"}),
        ("pass", Status.OK, "", {"stdout": "", "note": "the script printed nothing; print what you want to know"}),
        ("print('a')\nraise SystemExit(3)", Status.EXEC_ERR, "script_error", {"stdout": "a\n", "exit_code": 3}),
        ("import os\nos.abort()", Status.EXEC_ERR, "script_signal", {"stdout": "", "exit_code": -6}),
        ("print('b', flush=True)\nwhile True: pass", Status.TIMEOUT, "time_limit", {"stdout": "b\n"}),
    ],
)
async def test_every_ending_has_its_status_its_code_and_its_output(
    sandbox: JailedSandbox, code: str, status: Status, error: str, content: dict[str, Any]
) -> None:
    settings = CodeSettings(limits=ScriptLimits(wall=0.7 if "while" in code else 20))
    seen = await run(sandbox, code, settings)
    assert (seen.status, seen.error.code if seen.error else "", seen.content) == (status, error, content)
    assert seen.attempts == 1


async def test_an_uncaught_exception_is_the_message_and_its_traceback_the_content(sandbox: JailedSandbox) -> None:
    seen = await run(sandbox, "x = 0\nprint(1 / x)")
    assert seen.error is not None
    assert seen.error.message == "python: ZeroDivisionError: division by zero"
    assert 'File "/box/main.py", line 2' in seen.content["stderr"]


async def test_memory_beyond_the_limit_is_an_error_of_the_script(sandbox: JailedSandbox) -> None:
    code = "import os\nfor _ in range(3): os.fork()\nx = bytearray(b'x') * (90 << 20)\nimport time; time.sleep(60)"
    seen = await run(sandbox, code, CodeSettings(limits=ScriptLimits(wall=60)))
    assert seen.error is not None
    assert (seen.status, seen.error.code) == (Status.EXEC_ERR, "memory_limit")


@pytest.mark.slow
async def test_a_near_deadline_still_leaves_the_output(sandbox: JailedSandbox) -> None:
    await sandbox.run("print(1)")
    seen = await run(sandbox, "print('early', flush=True)\nwhile True: pass", timeout=2.0)
    assert (seen.status, seen.content) == (Status.TIMEOUT, {"stdout": "early\n"})
    assert seen.error is not None
    assert seen.error.code == "time_limit"


async def test_a_fault_of_the_sandbox_is_repeated_and_not_the_scripts() -> None:
    broken = Broken(SandboxFault("no jail"), SandboxFault("no jail"))
    seen = await run(broken, "print(1)")
    assert (seen.status, seen.attempts, seen.content) == (Status.OK, 3, {"stdout": "done\n"})


async def test_a_sandbox_that_stays_broken_is_unavailable() -> None:
    seen = await run(Broken(*[SandboxFault("no jail")] * 9), "print(1)")
    assert seen.error is not None
    assert (seen.error.code, seen.error.retryable, seen.content) == ("unavailable", True, None)


async def test_a_script_that_may_have_acted_outside_is_not_repeated() -> None:
    broken = Broken(SandboxFault("the connection broke", executed=True))
    seen = await run(broken, "print(1)", CodeSettings(network=True))
    assert seen.error is not None
    assert (seen.error.code, seen.attempts) == ("unknown_outcome", 1)


async def test_without_any_sandbox_every_call_says_why() -> None:
    tool = _declare(Backend(None, "namespaces: forbidden here"), "python", CodeSettings())
    assert "NOT AVAILABLE" in tool.description
    seen = await run_call(tool, {"code": "print(1)"})
    assert seen.error is not None
    assert seen.error.code == "rejected"
    assert "namespaces: forbidden here" in seen.error.message


async def test_a_missing_sandbox_is_never_tried_again() -> None:
    seen = await run(Broken(SandboxUnavailable("gone")), "print(1)")
    assert seen.attempts == 1


async def test_artefacts_are_shown_as_text_where_they_are_text(sandbox: JailedSandbox) -> None:
    tool = python_tool(sandbox, settings=CodeSettings())
    code = (
        "open('a.txt', 'w').write('hello'); open('b.bin', 'wb').write(b'\\xff\\x00'); open('c', 'w').write('x' * 9999)"
    )
    seen = await run_call(tool, {"code": code, "artefacts": ["a.txt", "b.bin", "c", "d"]})
    assert seen.content["artefacts"] == {
        "a.txt": {"text": "hello"},
        "b.bin": {"base64": "/wA="},
        "c": {"error": "9999 bytes are too long to show; have the script print what matters"},
        "d": {"error": "No such file or directory"},
    }


async def test_a_bad_artefact_name_is_explained(sandbox: JailedSandbox) -> None:
    seen = await run_call(python_tool(sandbox, settings=CodeSettings()), {"code": "pass", "artefacts": ["../x"]})
    assert seen.error is not None
    assert "relative name" in seen.error.message


async def test_calls_of_one_plan_run_side_by_side(sandbox: JailedSandbox) -> None:
    await sandbox.run("print(1)")
    tool = python_tool(sandbox, settings=CodeSettings(limits=ScriptLimits(wall=60)))
    async with Executor() as executor:
        seen = await executor.run([Call("python", {"code": f"print({n} ** 2)"}) for n in range(12)], make_pool(tool))
    assert [one.content for one in seen] == [{"stdout": f"{n * n}\n"} for n in range(12)]


def test_long_output_is_cut_in_its_middle_and_the_count_is_true() -> None:
    text = b"".join(b"%07d\n" % number for number in range(2000))
    whole = show(ScriptOutcome(Ending.OK, 0, Stream(text[:8000], text[8000:], 16000), Stream()))["stdout"]
    assert whole.startswith("0000000\n")
    assert whole.endswith("0001999\n")
    assert "[... 8000 bytes cut ...]" in whole
    cut = show(ScriptOutcome(Ending.OK, 0, Stream(text[:8000], text[8000:], 99_999), Stream()))["stdout"]
    assert f"[... {99_999 - 8000} bytes cut ...]" in cut


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("print(1)", "print(1)"),
        ("```python\nprint(1)\n```", "print(1)"),
        ("```\nprint(1)\n```\n", "print(1)"),
        ("x = '''\n```\n'''", "x = '''\n```\n'''"),
    ],
)
def test_a_fence_around_the_whole_code_is_taken_off(given: str, expected: str) -> None:
    assert unfenced(given) == expected


def test_the_description_names_the_level_and_the_limits(sandbox: JailedSandbox) -> None:
    text = python_tool(sandbox, settings=CodeSettings()).description
    assert "Sandbox level: namespaces." in text
    assert "no network" in text
    assert "10 s" in text


def test_settings_come_from_the_environment() -> None:
    settings = read_settings(
        environ={
            "CONCERTINO_CODE_LEVEL": "landlock",
            "CONCERTINO_CODE_WALL": "2.5",
            "CONCERTINO_CODE_MEMORY_MB": "256",
            "CONCERTINO_CODE_NETWORK": "1",
            "OTHER": "x",
        }
    )
    assert (settings.level, settings.limits.wall, settings.limits.memory_mb, settings.network) == (
        "landlock",
        2.5,
        256,
        True,
    )


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("LEVEL", "chroot", "expected one of auto"),
        ("WALL", "soon", "expected a number"),
        ("WALL", "-1", "number > 0"),
        ("WAL", "1", "is not a setting; did you mean CONCERTINO_CODE_WALL"),
        ("NETWORK", "maybe", "expected 1 or 0"),
    ],
)
def test_a_wrong_setting_is_named(name: str, value: str, message: str) -> None:
    with pytest.raises(Exception, match=message):
        read_settings(environ={f"CONCERTINO_CODE_{name}": value})


def test_a_table_sets_the_same_and_the_environment_wins_key_by_key(tmp_path: Path) -> None:
    table = ProviderSettings(
        {"level": "landlock", "wall": 2, "memory_mb": 256, "network": True, "bwrap": "bin/bwrap"}, folder=tmp_path
    )
    settings = read_settings(table, {"CONCERTINO_CODE_WALL": "7.5", "CONCERTINO_CODE_LEVEL": ""})
    assert (settings.level, settings.limits.wall, settings.limits.memory_mb) == ("landlock", 7.5, 256)
    assert (settings.network, settings.bwrap) == (True, str(tmp_path / "bin" / "bwrap"))
    assert read_settings(ProviderSettings(), {}) == CodeSettings()


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("wal", 3, "unknown key 'wal'; did you mean 'wall'"),
        ("level", "chroot", "level = 'chroot'; expected one of auto"),
        ("level", 3, "level = 3; expected text"),
        ("wall", "soon", "wall = 'soon'; expected a number"),
        ("wall", True, "wall = True; expected a number"),
        ("processes", 2.5, "processes = 2.5; expected a whole number"),
        ("descriptors", 2, "descriptors = 2: .*at least 8"),
        ("network", "maybe", "network = 'maybe'; expected 1 or 0"),
        ("network", 7, "network = 7; expected 1 or 0"),
        ("python", 3, "python = 3; expected a path"),
    ],
)
def test_a_wrong_key_of_the_table_is_named_with_its_place(key: str, value: object, message: str) -> None:
    with pytest.raises(UsageError, match=rf"concertino.toml, \[providers.code\]: {message}"):
        read_settings(ProviderSettings({key: value}, where="concertino.toml, [providers.code]"), {})


def test_the_hooks_take_the_table(namespaces: None, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("CONCERTINO_CODE_")]:
        monkeypatch.delenv(name)
    (tool,) = concertino_code.concertino_tools(ProviderSettings({"wall": 3}))
    assert "3 s" in tool.description
    assert concertino_code.concertino_tools(ProviderSettings({"wall": 3})) == [tool]
    (finding,) = concertino_code.concertino_doctor(ProviderSettings({"level": "docker"}))
    assert (finding.level, finding.text) == ("ok", "scripts run in docker, which was not asked")


class TestPython(ToolConformance):
    """The published tool."""

    examples = concertino_examples["python"]["examples"]
    rejected = concertino_examples["python"]["rejected"]
    failing = concertino_examples["python"]["failing"]
    slow = concertino_examples["python"]["slow"]

    @property
    def spec(self) -> ToolSpec:  # type: ignore[override]
        """Made when it is first asked for, because its sandbox is chosen then."""
        return published(read_settings())


def test_the_tool_can_be_declared_inside_an_event_loop(namespaces: None) -> None:
    async def declare() -> str:
        return python_tool(settings=CodeSettings(level="namespaces", limits=ScriptLimits(wall=3))).description

    assert "namespaces" in asyncio.run(declare())
