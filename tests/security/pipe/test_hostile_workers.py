"""Workers that mean harm: what a tool in a process of its own writes costs the parent what was agreed, no more.

Each tool writes past concertino into the pipe of answers, as code that cannot be trusted may.
"""

from __future__ import annotations

import importlib
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import concertino as ct
import pytest
from concertino.core.bounded_pipe import BoundedLines, TooMuchOutput, run_bounded
from concertino.core.child_environment import child_environment
from concertino.executor import ChildProcess, Executor

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="workers need a POSIX system")

TOOLS = '''
"""Tools that mean harm."""

import os
import stat
import sys
import time


def answers():
    """The pipe of answers: the last one that can be written to."""
    found = None
    for number in range(3, 64):
        try:
            if stat.S_ISFIFO(os.fstat(number).st_mode) and os.get_blocking(number):
                os.write(number, b"")
                found = number
        except OSError:
            pass
    return found


def send(data: str, times: int = 1) -> None:
    pipe, left = answers(), memoryview(data.encode() * times)
    while left:
        left = left[os.write(pipe, left):]


def write(data: str) -> str:
    """Write a line of its own before the answer."""
    send(data)
    return "done"


def write_and_die(data: str) -> str:
    """Write the beginning of a line, and die."""
    send(data)
    os._exit(0)


def flood(megabytes: int) -> str:
    """Write without a line's end."""
    for _ in range(megabytes):
        send("a", 2**20)
    return "done"


def close_early() -> str:
    """Close the pipe and live on."""
    os.close(answers())
    time.sleep(60)
    return "done"


def drip(count: int) -> str:
    """Write an answer sign by sign."""
    for sign in '{"result": "' + "a" * count:
        send(sign)
    send('"}\\n')
    time.sleep(60)
    return "done"


def shout(megabytes: int) -> str:
    """Write to standard error."""
    for _ in range(megabytes):
        sys.stderr.write("e" * 2**20)
    return "done"


def text(length: int, sign: str) -> str:
    """A long text."""
    return sign * length


def numbers(count: int) -> list:
    """A long list."""
    return [0] * count


def nested(depth: int) -> list:
    """A deep list."""
    made = []
    for _ in range(depth):
        made = [made]
    return made


def not_a_number() -> float:
    """A number that is none."""
    return float("nan")


def fail(length: int) -> str:
    """A long error."""
    raise ValueError("x" * length)


def keys() -> dict:
    """The environment."""
    return dict(os.environ)
'''


@pytest.fixture
def tool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., ct.ToolSpec]:
    """A tool of that module, in a process of its own."""
    (tmp_path / "tools_that_mean_harm.py").write_text(TOOLS)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "tools_that_mean_harm", raising=False)
    module = importlib.import_module("tools_that_mean_harm")

    def made(name: str, **options: Any) -> ct.ToolSpec:
        spec: ct.ToolSpec = ct.tool(getattr(module, name))
        return spec.with_(isolation="process", timeout=60, **options)

    return made


async def outcomes(spec: ct.ToolSpec, *arguments: dict[str, Any], limit: int = 10_000) -> list[ct.Observation]:
    pool = ct.Pool.of(spec)
    async with Executor(ct.Limits(result_bytes=limit)) as executor:
        return [(await executor.run([ct.Call(spec.name, each)], pool))[0] for each in arguments]


LINES = {
    "no json": "garbage\n",
    "an empty line": "\n",
    "a list": "[1, 2]\n",
    "a number": "7\n",
    "null": "null\n",
    "no answer": '{"other": 1}\n',
    "an error that is no text": '{"error": {"a": 1}}\n',
    "a length that is no number": '{"too_large": "x"}\n',
    "a length that is true": '{"too_large": true}\n',
    "deep lists": "[" * 5_000 + "\n",
    "deep objects": '{"result":' * 5_000 + "\n",
    "two answers on a line": '{"result": 1}{"result": 2}\n',
    "a number of many digits": '{"result": ' + "9" * 5_000 + "}\n",
    "an answer that is cut": '{"result": \n',
    "binary signs": "\x00\x01\x02\x1b[31m\n",
}


@pytest.mark.parametrize("shape", LINES)
async def test_a_line_that_is_not_an_answer_ends_the_worker_and_this_call_alone(
    shape: str, tool: Callable[..., ct.ToolSpec]
) -> None:
    first, second = await outcomes(tool("write"), {"data": LINES[shape]}, {"data": ""})
    assert first.status == "EXEC_ERR"
    assert first.error is not None
    assert first.error.code == "bad_result"
    assert "gave an answer that cannot be read" in first.error.message
    assert len(first.error.message) < 500
    assert second.content == "done"


@pytest.mark.parametrize("lie", ['{"result": NaN}\n', '{"result": 1, "result": 2}\n', '{"result": 1e999}\n'])
async def test_a_forged_answer_is_this_calls_and_is_checked_like_any(
    lie: str, tool: Callable[..., ct.ToolSpec]
) -> None:
    (seen,) = await outcomes(tool("write"), {"data": lie})
    assert seen.content == 2 or (seen.error is not None and seen.error.code == "bad_result")


async def test_an_answer_that_breaks_off_is_an_error(tool: Callable[..., ct.ToolSpec]) -> None:
    (seen,) = await outcomes(tool("write_and_die"), {"data": '{"result": 1'})
    assert seen.error is not None
    assert "it died while it answered" in seen.error.message


async def test_a_pipe_that_is_closed_early_is_an_error(tool: Callable[..., ct.ToolSpec]) -> None:
    (seen,) = await outcomes(tool("close_early"), {})
    assert seen.error is not None
    assert "its process died" in seen.error.message


async def test_an_answer_sign_by_sign_is_read(tool: Callable[..., ct.ToolSpec]) -> None:
    (seen,) = await outcomes(tool("drip"), {"count": 2_000})
    assert seen.content == "a" * 2_000


async def test_more_than_is_taken_ends_the_worker_and_this_call_alone(tool: Callable[..., ct.ToolSpec]) -> None:
    flooded, next_one = await outcomes(tool("flood"), {"megabytes": 3}, {"megabytes": 0})
    assert flooded.error is not None
    assert flooded.error.code == "bad_result"
    assert flooded.error.message.endswith("returned more than 10,000 bytes of JSON; at most that many are taken")
    assert next_one.content == "done"


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("text", {"length": 10_001, "sign": "a"}),
        ("text", {"length": 5_000, "sign": "é"}),
        ("text", {"length": 2_000, "sign": "\x00"}),
        ("numbers", {"count": 5_000}),
    ],
)
async def test_a_result_that_is_too_large_is_not_sent_and_the_worker_lives_on(
    name: str, arguments: dict[str, Any], tool: Callable[..., ct.ToolSpec]
) -> None:
    (seen,) = await outcomes(tool(name), arguments)
    assert seen.error is not None
    assert seen.error.code == "bad_result"
    assert "bytes of JSON; at most 10,000 are taken" in seen.error.message


async def test_more_values_than_are_taken_are_not_read(tool: Callable[..., ct.ToolSpec]) -> None:
    (seen,) = await outcomes(tool("numbers"), {"count": 500_000}, limit=2**23)
    assert seen.error is not None
    assert seen.error.code == "bad_result"
    assert "more than 400,000 JSON values" in seen.error.message


@pytest.mark.parametrize(("name", "arguments"), [("nested", {"depth": 5_000}), ("not_a_number", {})])
async def test_what_has_no_json_form_is_an_error(
    name: str, arguments: dict[str, Any], tool: Callable[..., ct.ToolSpec]
) -> None:
    (seen,) = await outcomes(tool(name), arguments)
    assert seen.status == "EXEC_ERR"


async def test_a_long_error_is_cut(tool: Callable[..., ct.ToolSpec]) -> None:
    (seen,) = await outcomes(tool("fail"), {"length": 1_000_000})
    assert seen.error is not None
    assert "ValueError: xxx" in seen.error.message
    assert len(seen.error.message) < 11_000


async def test_endless_standard_error_is_not_kept(tool: Callable[..., ct.ToolSpec]) -> None:
    (seen,) = await outcomes(tool("shout"), {"megabytes": 20})
    assert seen.content == "done"


# -- memory ------------------------------------------------------------------------------------------------------------

MEASURE = """
import asyncio, resource, sys
import concertino as ct
from concertino.executor import Executor
import tools_that_mean_harm as harm

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024

async def main():
    spec = ct.tool(isolation="process", timeout=120)(getattr(harm, sys.argv[1]))
    quiet = ct.tool(isolation="process", timeout=120)(harm.text)
    async with Executor() as executor:
        await executor.run([ct.Call("text", {"length": 10, "sign": "a"})], ct.Pool.of(quiet))
        before = peak()
        (seen,) = await executor.run([ct.Call(spec.name, eval(sys.argv[2]))], ct.Pool.of(spec))
    print(seen.error.code if seen.error else "OK", peak() - before)

asyncio.run(main())
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "arguments", "code"),
    [
        ("flood", {"megabytes": 2_000}, "bad_result"),
        ("text", {"length": 400_000_000, "sign": "a"}, "bad_result"),
        ("shout", {"megabytes": 500}, "OK"),
    ],
)
def test_what_a_worker_writes_costs_the_parent_at_most_20_mb(
    name: str, arguments: dict[str, Any], code: str, tmp_path: Path
) -> None:
    (tmp_path / "tools_that_mean_harm.py").write_text(TOOLS)
    environment = {**child_environment(python=True), "PYTHONPATH": str(tmp_path)}
    command = [sys.executable, "-c", MEASURE, name, repr(arguments)]
    done = run_bounded(command, env=environment, most=10_000, timeout=120)
    assert done.code == 0, done.errors
    found, megabytes = done.output.split()
    assert found.decode() == code
    assert float(megabytes) <= 20


# -- the readers -------------------------------------------------------------------------------------------------------


def reader_of(script: str) -> tuple[BoundedLines, ChildProcess]:
    child = ChildProcess([sys.executable, "-I", "-c", textwrap.dedent(script)], stdout=subprocess.PIPE)
    assert child.stdout is not None
    return BoundedLines(child.stdout), child


def test_lines_are_read_one_by_one_however_they_arrive() -> None:
    lines, child = reader_of(
        r"""
        import os, time
        for piece in (b"one\ntw", b"o\n", b"\n", b"three"):
            os.write(1, piece)
            time.sleep(0.02)
        """
    )
    assert [lines.line(100) for _ in range(5)] == [b"one\n", b"two\n", b"\n", b"three", b""]
    child.close_pipes()


@pytest.mark.parametrize("line", ["a" * 101, "a" * 101 + "\\n", "a" * 5_000_000])
def test_a_line_that_is_too_long_is_refused(line: str) -> None:
    sign, count = line[0], line.count("a")
    lines, child = reader_of(
        f"import os; os.write(1, b'{sign}' * {count} + b'{'' if line.endswith('a') else line[-2:]}')"
    )
    with pytest.raises(TooMuchOutput, match="more than 100 bytes"):
        lines.line(100)
    child.kill()
    child.close_pipes()


RUNS = {
    "endless output": ("import os\nwhile True: os.write(1, b'a' * 65536)", TooMuchOutput),
    "endless lines": ("while True: print('a')", TooMuchOutput),
    "a program that does not end": ("import time; time.sleep(600)", TimeoutError),
    "a program that ignores the end": (
        "import signal, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\ntime.sleep(600)",
        TimeoutError,
    ),
}


@pytest.mark.parametrize("shape", RUNS)
def test_a_program_that_is_run_to_its_end_is_bounded(shape: str) -> None:
    script, error = RUNS[shape]
    seconds = 1.0 if error is TimeoutError else 60.0
    command = [sys.executable, "-I", "-c", script]
    with pytest.raises(error):
        run_bounded(command, env=child_environment(), most=1_000_000, timeout=seconds)


def test_of_standard_error_the_end_is_kept() -> None:
    script = "import sys; sys.stderr.write('a' * 5_000_000 + 'the end'); print('out'); sys.exit(3)"
    done = run_bounded([sys.executable, "-I", "-c", script], env=child_environment(), most=100)
    assert (done.code, done.output) == (3, b"out\n")
    assert done.errors.endswith("the end")
    assert len(done.errors) <= 8192


def test_a_grandchild_that_holds_the_pipe_does_not_hold_up_the_end() -> None:
    script = "import subprocess; print('out', flush=True); subprocess.Popen(['sleep', '30'])"
    done = run_bounded([sys.executable, "-I", "-c", script], env=child_environment(), most=100, timeout=20)
    assert done.output == b"out\n"


# -- the environment ---------------------------------------------------------------------------------------------------


async def test_a_worker_gets_no_key_but_those_that_its_tool_names(
    tool: Callable[..., ct.ToolSpec], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NAMED_API_KEY", "canary-named")
    monkeypatch.setenv("OPENAI_API_KEY", "canary-openai")
    monkeypatch.setenv("HIDDEN_AWAY", "canary-hidden")
    (none,) = await outcomes(tool("keys"), {}, limit=1_000_000)
    (named,) = await outcomes(tool("keys", env_from=("NAMED_API_KEY",)), {}, limit=1_000_000)
    assert "canary" not in str(none.content)
    assert isinstance(named.content, dict)
    assert named.content["NAMED_API_KEY"] == "canary-named"
    assert "canary-openai" not in str(named.content)


def test_names_of_variables_without_a_process_are_refused(tool: Callable[..., ct.ToolSpec]) -> None:
    with pytest.raises(ct.SpecError, match="env_from is for a process of its own"):
        tool("keys", env_from=("A",)).with_(isolation="loop")


@pytest.mark.parametrize(
    "name",
    [
        *(
            "OPENAI_API_KEY",
            "ANTHROPIC_API_KEY",
            "HF_TOKEN",
            "HUGGINGFACE_TOKEN",
            "VLLM_API_KEY",
            "AWS_SECRET_ACCESS_KEY",
        ),
        *("CONCERTINO_API_KEY", "PYTHON_SECRET", "RAY_AUTH_TOKEN", "GITHUB_TOKEN", "DATABASE_URL", "PGPASSWORD"),
        *("LC_PASSWORD", "CUDA_CREDENTIALS", "NPM_CONFIG__AUTH", "SSH_AUTH_SOCK", "KUBECONFIG", "ANYTHING_ELSE"),
    ],
)
def test_no_list_lets_a_secret_through(name: str) -> None:
    environ = {name: "canary", "PATH": "/bin"}
    assert child_environment(python=True, accelerators=True, environ=environ) == {"PATH": "/bin"}
    assert child_environment([name], environ=environ) == environ


@pytest.mark.parametrize("name", ["http_proxy", "HTTPS_PROXY", "all_proxy"])
def test_a_proxy_is_passed_on_unless_its_address_holds_a_password(name: str) -> None:
    assert child_environment(environ={name: "http://10.0.0.1:8080"}) == {name: "http://10.0.0.1:8080"}
    assert child_environment(environ={name: "http://user:canary@10.0.0.1:8080"}) == {}


@pytest.mark.parametrize("name", ["PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "TZ", "SSL_CERT_FILE", "NO_PROXY"])
def test_what_every_program_needs_is_passed_on(name: str) -> None:
    assert child_environment(environ={name: "x"}) == {name: "x"}


def test_what_only_some_need_is_passed_on_to_them() -> None:
    environ = {"PYTHONHASHSEED": "1", "CUDA_VISIBLE_DEVICES": "0", "HF_HOME": "/x"}
    assert child_environment(environ=environ) == {}
    assert child_environment(python=True, environ=environ) == {"PYTHONHASHSEED": "1"}
    assert child_environment(accelerators=True, environ=environ).keys() == {"CUDA_VISIBLE_DEVICES", "HF_HOME"}
