"""The `python` tool: a script in, what it printed out, and for every ending the status that an orchestrator can act on.

    exit status 0                       OK
    another one, a signal, memory       EXEC_ERR with the codes `script_error`, `script_signal`, `memory_limit`
    wall clock, CPU time                TIMEOUT with the codes `time_limit`, `cpu_limit`, and the output so far
    the sandbox itself failed           a ProviderError: the executor retries the call, and the script is not blamed

The output is the content of the observation in every case.
"""

from __future__ import annotations

import base64
import functools
import importlib.util
import os
import platform
import re
from typing import Any

from concertino import CallFailed, Context, ErrorInfo, FailureClass, Observation, ProviderError, Status, ToolSpec, tool

from .backend import Backend, make_backend, shared_backend
from .sandbox import Ending, Sandbox, SandboxFault, SandboxUnavailable, ScriptLimits
from .sandbox.outcome import Artefact, ScriptOutcome, Stream
from .settings import CodeSettings, read_settings

_FENCED = re.compile(r"\s*```[ \t]*(?:python[0-9.]*|py)?[ \t]*\r?\n(.*?)\r?\n?```\s*", re.DOTALL | re.IGNORECASE)

SCRIPT_CODES: dict[Ending, tuple[Status, str]] = {
    Ending.EXIT: (Status.EXEC_ERR, "script_error"),
    Ending.SIGNAL: (Status.EXEC_ERR, "script_signal"),
    Ending.MEMORY: (Status.EXEC_ERR, "memory_limit"),
    Ending.WALL: (Status.TIMEOUT, "time_limit"),
    Ending.CPU: (Status.TIMEOUT, "cpu_limit"),
}
"""Status and error code of every ending but OK."""
SHOWN_STDOUT = 8_000
SHOWN_STDERR = 4_000
_SHOWN_FILE = 4_000
START_SECONDS = 20.0
"""Beside a script's own time, for a call that runs one: waiting for a place, starting the sandbox."""
_MARGIN = 0.3


def python_tool(
    sandbox: Sandbox | None = None, *, name: str = "python", settings: CodeSettings | None = None
) -> ToolSpec:
    """The tool over a sandbox.

    Args:
        sandbox: where scripts run; without one, what the settings say, chosen and tested now and started when needed.
        name: of the tool.
        settings: by default those of the environment.
    """
    settings = settings or read_settings()
    backend = make_backend(settings) if sandbox is None else Backend(sandbox)
    return _declare(backend, name, settings)


def _declare(backend: Backend, name: str, settings: CodeSettings) -> ToolSpec:
    limits = settings.limits

    async def python(code: str, artefacts: list[str] | None = None, *, ctx: Context) -> dict[str, Any]:
        """Run a Python script.

        Args:
            code: a whole script; print what you want to know.
            artefacts: names of files that the script writes and you want back.
        """
        done = await run_script(backend, unfenced(code), ctx, limits, artefacts=artefacts or ())
        return observe(done, ctx.call_id, name)

    return tool(
        name=name,
        description=_describe(backend, settings),
        timeout=limits.wall + START_SECONDS,
        concurrency=max(4, 2 * (os.cpu_count() or 1)),
        # With a network, a script may have acted outside.
        retry_safe=not settings.network,
        max_chars=32_768,
    )(python)


async def run_script(backend: Backend, code: str, ctx: Context, limits: ScriptLimits, **options: Any) -> ScriptOutcome:
    """Run a script in a call, within the call's time.

    Args:
        options: of `Sandbox.run`.

    Raises:
        ProviderError: the sandbox failed, or there is none.
        ValueError: a name of a file leaves the folder, or there is too much to send.
    """
    # The script ends before the call's deadline does, so that its output is kept.
    seconds = ctx.remaining_seconds()
    allowed = limits.with_(total=min(limits.total, max(0.01, 0.8 * seconds, seconds - _MARGIN)))
    try:
        return await backend.sandbox().run(code, limits=allowed, **options)
    except SandboxUnavailable as error:
        # Never repeated: the next call would find no sandbox either.
        raise ProviderError(f"no script was run: {error}", failure=FailureClass.CALLER) from error
    except SandboxFault as error:
        failure = FailureClass.MAYBE_EXECUTED if error.executed else FailureClass.NOT_EXECUTED
        raise ProviderError(str(error), failure=failure) from error


def observe(done: ScriptOutcome, call_id: str = "", name: str = "python") -> dict[str, Any]:
    """The content of an execution that ended well.

    Raises:
        CallFailed: it did not; holds status, code and the same content.
    """
    content = show(done)
    if done.ok:
        return content
    status, code = SCRIPT_CODES[done.ending]
    error = ErrorInfo(code, done.explain()[:180])
    raise CallFailed(Observation(call_id, name, status, content, error))


def show(done: ScriptOutcome) -> dict[str, Any]:
    """What a model reads of an execution. Holds no times, so that the same script gives the same content."""
    content: dict[str, Any] = {"stdout": _clip(done.stdout, SHOWN_STDOUT)}
    if done.stderr.total:
        content["stderr"] = _clip(done.stderr, SHOWN_STDERR)
    if done.exit_code is not None and done.exit_code != 0:
        content["exit_code"] = done.exit_code
    if done.ok and not done.stdout.total and not done.stderr.total:
        content["note"] = "the script printed nothing; print what you want to know"
    if done.artefacts:
        content["artefacts"] = {name: _show_file(file) for name, file in done.artefacts.items()}
    return content


def _clip(stream: Stream, limit: int) -> str:
    """Both ends of a stream, in at most so many characters and one line."""
    text = stream.text
    if len(text) <= limit and not stream.cut:
        return text
    head, tail = (stream.head + b"\0" * bool(stream.cut) + stream.tail).decode("utf-8", "replace"), ""
    if stream.cut:
        head, _, tail = head.partition("\0")
    whole = head + tail
    first, last = whole[: limit // 2], whole[-(limit - limit // 2) :]
    missing = stream.total - len(first.encode("utf-8", "replace")) - len(last.encode("utf-8", "replace"))
    return f"{first}\n[... {max(0, missing)} bytes cut ...]\n{last}"


def _show_file(file: Artefact) -> Any:
    if file.error:
        return {"error": file.error}
    try:
        text = file.data.decode("utf-8")
        shown = {"text": text}
    except UnicodeDecodeError:
        shown = {"base64": base64.b64encode(file.data).decode("ascii")}
    if len(next(iter(shown.values()))) > _SHOWN_FILE:
        return {"error": f"{len(file.data)} bytes are too long to show; have the script print what matters"}
    return shown


def _describe(backend: Backend, settings: CodeSettings) -> str:
    libraries = [name for name in ("numpy", "sympy") if importlib.util.find_spec(name)] if backend.local else []
    parts = [
        "Run a Python script and read what it prints.",
        f"Python {platform.python_version()}{', with ' + ' and '.join(libraries) if libraries else ''}."
        if backend.local and not settings.python
        else "",
        backend.description,
    ]
    return " ".join(filter(None, parts))


@functools.cache
def published(settings: CodeSettings) -> ToolSpec:
    """The tool of the plugin, made once per settings: its level is tested once per process."""
    return _declare(shared_backend(settings), "python", settings)


def unfenced(code: str) -> str:
    """The code without a Markdown fence around all of it."""
    fenced = _FENCED.fullmatch(code)
    return fenced[1] if fenced else code
