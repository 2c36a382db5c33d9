"""A canary in every key, header, variable and secret setting of every provider appears nowhere that somebody may look.

The servers give back what they were sent, in every part of an answer. A setting that may hold a secret, or a reader of
the environment, that is not in the lists below fails the last tests: put it there, and give it a canary.
"""

from __future__ import annotations

import json
import logging
import re
import sys
import traceback
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import concertino as ct
import concertino_anthropic
import concertino_mcp
import concertino_openai
import pytest
from click.testing import CliRunner
from concertino.cli.failures import report
from concertino.cli.traces import traces
from concertino.testing import Recorder, ScriptedModel
from concertino_anthropic.options import OPTIONS as ANTHROPIC_OPTIONS
from concertino_mcp.settings import KEYS as MCP_KEYS
from concertino_openai.client import Embedder, list_models
from concertino_openai.options import OPTIONS as OPENAI_OPTIONS
from concertino_search.tools.web import web_search_tool
from concertino_vllm.settings import VllmSettings
from reflecting_server import reflecting
from tree import ROOT

CANARY = "canary-7Qx42-Yb93-kkpw"
OTHER = "second-8Wz51-Tc04-mmhr"
CALL = '<tool_call>{"name": "look", "arguments": {}}</tool_call>'
FINAL = '<tool_call>{"name": "final_answer", "arguments": {}}</tool_call>'
ANSWER = "<answer>done</answer>"


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with reflecting() as url:
        yield url


@pytest.fixture(autouse=True)
def canaries(monkeypatch: pytest.MonkeyPatch) -> None:
    # Names that say nothing, so that only reading them can make them known.
    monkeypatch.setenv("PLAIN_ONE", CANARY)
    monkeypatch.setenv("PLAIN_TWO", OTHER)


class Watch:
    """Collects what can be seen of a run."""

    def __init__(self, folder: Path, caplog: pytest.LogCaptureFixture) -> None:
        self.folder, self.caplog = folder, caplog
        self.told: list[Any] = []
        self.texts: dict[str, str] = {}

    async def run(self, leader: Any, *members: Any, stream: bool = True) -> ct.Run:
        recording = Recorder(self.folder / "recorded.jsonl", "record")
        orchestrator = ct.Orchestrator(leader, **recording.hooks)
        pool = ct.Pool(members)
        handle = orchestrator.start("?", pool=pool, trace=self.folder, on_event=self.told.append, stream_text=stream)
        run = await handle
        self.texts["run"] = repr(run) + str(run.answer) + run.detail + run._repr_html_() + pool._repr_html_()
        for command in (["export"], ["show"], ["show", "--json"]):
            done = CliRunner().invoke(traces, [command[0], str(run.trace.path), *command[1:]])
            self.texts[" ".join(command)] = done.output
        self.texts["cards"] = json.dumps(pool.functions)
        return run

    def failed(self, error: Exception) -> None:
        """What is shown of an error that ends a command, or a program."""
        self.texts["error"] = str(error) + repr(error) + "".join(traceback.format_exception(error))
        report(error, ["--debug"])

    def check(self, printed: str) -> None:
        seen = {**self.texts, "events": repr(self.told), "printed": printed}
        seen["log"] = self.caplog.text + repr([vars(record) for record in self.caplog.records])
        seen["stream"] = "".join(event.text for event in self.told if isinstance(event, ct.events.TextDelta))
        seen |= {file.name: file.read_text() for file in self.folder.rglob("*") if file.is_file()}
        for place, text in seen.items():
            for canary in (CANARY, OTHER):
                assert canary not in text, f"{place}: {text[max(0, text.find(canary) - 300) :][:600]}"
                assert canary[:15] not in text, place


Attack = Callable[[str, Watch], Awaitable[None]]


def openai(way: str, **options: Any) -> Attack:
    async def run(url: str, watch: Watch) -> None:
        headers = {"X-Tenant": OTHER}
        model = concertino_openai.model(
            "openai/m", base_url=f"{url}/{way}/v1", key_env="PLAIN_ONE", headers=headers, server="vllm", **options
        )
        await watch.run("openai/m", model)

    return run


def anthropic(way: str, **options: Any) -> Attack:
    async def run(url: str, watch: Watch) -> None:
        model = concertino_anthropic.model(
            "claude-haiku-4-5",
            base_url=f"{url}/{way}",
            key_env="PLAIN_ONE",
            headers={"X-Tenant": OTHER},
            stream=False,
            **options,
        )
        await watch.run(model.name, model, stream=False)

    return run


def direct(work: Callable[[str], Awaitable[Any]]) -> Attack:
    async def run(url: str, watch: Watch) -> None:
        try:
            watch.texts["result"] = ct.without_secrets(str(await work(url)))
        except ct.ConcertinoError as error:
            watch.failed(error)
        except ct.ProviderError as error:
            watch.failed(error)

    return run


async def _vectors(url: str) -> Any:
    embedder = Embedder(model="m", base_url=f"{url}/e400/v1", key_env="PLAIN_ONE")
    try:
        return await embedder.embed(["a"])
    finally:
        await embedder.close()


def search(backend: str, way: str, variable: str) -> Attack:
    async def run(url: str, watch: Watch) -> None:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv(variable, CANARY)
            tool = web_search_tool(backend, url=f"{url}/{way}/search").with_(name="look")
            call = CALL.replace("{}", '{"queries": ["a"]}')
            await watch.run(ScriptedModel(call, FINAL, ANSWER), tool)

    return run


def mcp(way: str, **keys: Any) -> Attack:
    async def run(url: str, watch: Watch) -> None:
        try:
            declared = {"url": f"{url}/{way}/mcp", "headers_env": {"Authorization": "PLAIN_ONE"}, **keys}
            declared["headers"] = {"X-Tenant": "${PLAIN_TWO}"}
            members = await concertino_mcp.server_async(f"m{way}", prefix="", **declared)
            watch.texts["members"] = repr(members)
            await watch.run(ScriptedModel(CALL, FINAL, ANSWER), *members)
        except ct.ConcertinoError as error:
            watch.failed(error)

    return run


STDIO = """
import json, os, sys
seen = json.dumps(dict(os.environ))
lines = []
for pid in filter(str.isdigit, os.listdir("/proc")):
    try:
        lines.append(open(f"/proc/{pid}/cmdline").read())
    except OSError:
        pass
print("environment", seen, file=sys.stderr, flush=True)
for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    method, result = message["method"], {}
    if method == "initialize":
        result = {"protocolVersion": "2025-03-26", "capabilities": {"tools": {}}}
        result["serverInfo"] = {"name": "s", "version": "1"}
    elif method == "tools/list":
        result = {"tools": [{"name": "look", "description": "Sees " + seen, "inputSchema": {"type": "object"}}]}
    elif method == "tools/call" and WAY == "dies":
        print(seen, file=sys.stderr, flush=True)
        sys.exit(3)
    elif method == "tools/call":
        text = seen if WAY == "environment" else json.dumps(lines)
        result = {"content": [{"type": "text", "text": text}]}
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
"""


def stdio(way: str) -> Attack:
    async def run(url: str, watch: Watch) -> None:
        script = watch.folder.parent / f"{watch.folder.name}.py"
        script.write_text(f"WAY = {way!r}\n{STDIO}")
        try:
            members = await concertino_mcp.server_async(
                f"s{way}",
                command=[sys.executable, str(script)],
                env_from=["PLAIN_ONE"],
                env={"MY_TOKEN": OTHER},
                prefix="",
            )
            await watch.run(ScriptedModel(CALL, FINAL, ANSWER), *members)
        except ct.ConcertinoError as error:
            watch.failed(error)

    return run


@ct.tool(isolation="process")
def look() -> dict[str, str]:
    """Tell the environment."""
    import os

    return dict(os.environ)


async def worker(url: str, watch: Watch) -> None:
    """A worker process gives its environment; the keys were read before."""
    for name in ("PLAIN_ONE", "PLAIN_TWO"):
        ct.read_secret(name)
    await watch.run(ScriptedModel(CALL, FINAL, ANSWER), look)


async def thread(url: str, watch: Watch) -> None:
    """A plain function gives the environment, of which nobody has read the variable."""
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("PLAIN_TWO")
        patch.delenv("PLAIN_ONE")
        patch.setenv("SOME_API_KEY", CANARY)
        patch.setenv("ALL_PROXY", f"http://user:{OTHER}@127.0.0.1:9")
        await watch.run(ScriptedModel(CALL, FINAL, ANSWER), look.with_(isolation="thread"))


async def vllm(url: str, watch: Watch) -> None:
    """The command line and the settings of a server that is started here."""
    third = "a-third-canary-7d41"
    settings = VllmSettings(model="m", key_env="PLAIN_ONE", env=(("HF_TOKEN", OTHER),), env_from=("ONLY_HERE",))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ONLY_HERE", third)
        environment = settings.environment(Path("/bin/true"), watch.folder)
    assert (environment["VLLM_API_KEY"], environment["ONLY_HERE"]) == (CANARY, third)
    watch.texts["arguments"] = repr(settings.arguments(8000)) if hasattr(settings, "arguments") else ""
    watch.texts["hidden"] = ct.without_secrets(repr(settings) + json.dumps(environment))
    assert third not in watch.texts["hidden"]


async def _locals(url: str, watch: Watch) -> None:
    """A traceback with the local variables of our own code."""
    client = concertino_openai.keys.ApiKey("PLAIN_ONE", "Authorization")
    anthropic_key = concertino_anthropic.keys.look_up("PLAIN_TWO")
    headers = client.headers()
    try:
        raise ValueError(len(headers) + len(anthropic_key))
    except ValueError as error:
        shown = traceback.TracebackException.from_exception(error, capture_locals=True)
        watch.texts["traceback"] = "".join(shown.format())


WAYS = ("content", "call", "thought", "e400", "e401", "e403", "e404", "e422", "page", "broken", "strange", "moved")
ATTACKS: dict[str, Attack] = {
    **{f"openai: {way}": openai(way) for way in WAYS},
    **{f"openai, one piece: {way}": openai(way, stream=False) for way in ("content", "call", "thought", "broken")},
    **{
        f"anthropic: {way}": anthropic(way)
        for way in ("content", "e400", "e401", "e404", "page", "broken", "strange", "moved")
    },
    "openai: list of models": direct(lambda url: list_models(base_url=f"{url}/e401/v1", key_env="PLAIN_ONE")),
    "openai: list in an unknown form": direct(
        lambda url: list_models(base_url=f"{url}/strange/v1", key_env="PLAIN_ONE")
    ),
    "openai: vectors": direct(_vectors),
    **{
        f"search, {name}: {way}": search(name, way, variable)
        for name, variable in (("tavily", "TAVILY_API_KEY"), ("serper", "SERPER_API_KEY"), ("brave", "BRAVE_API_KEY"))
        for way in ("content", "e401", "broken")
    },
    **{f"mcp over HTTP: {way}": mcp(way) for way in ("content", "data", "failed", "error", "e401", "e500")},
    **{f"mcp over stdio: {way}": stdio(way) for way in ("environment", "processes", "dies")},
    "a worker process": worker,
    "a thread": thread,
    "vllm": vllm,
    "locals of a traceback": _locals,
}


@pytest.mark.parametrize("attack", ATTACKS)
async def test_the_canary_is_seen_nowhere(
    attack: str, server: str, tmp_path: Path, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    watch = Watch(folder, caplog)
    with caplog.at_level(logging.DEBUG):
        await ATTACKS[attack](server, watch)
    assert watch.texts, "the attack showed nothing, so it attacked nothing"
    watch.check("".join(capsys.readouterr()))


# -- nothing new goes past the lists -----------------------------------------------------------------------------------

SECRET_SETTINGS = {
    "openai": {"key_env", "key_header", "headers", "base_url", "proxy"},
    "anthropic": {"key_env", "headers", "base_url"},
    "mcp": {"env", "env_from", "headers", "headers_env", "url"},
    "vllm": {"key_env", "env", "env_from", "attach"},
}
"""Settings that hold or name a secret, each with a canary above; addresses with a password are refused or kept."""
_MAY_BE = re.compile(r"key|token|secret|passw|header|env|proxy|url|attach|credential|auth", re.IGNORECASE)
_ARE_NOT = {"max_tokens_field", "token_ids", "max_tokens"}


@pytest.mark.parametrize(
    ("provider", "names"),
    [
        ("openai", OPENAI_OPTIONS),
        ("anthropic", ANTHROPIC_OPTIONS),
        ("mcp", MCP_KEYS),
        ("vllm", VllmSettings.__dataclass_fields__),
    ],
)
def test_every_setting_that_may_hold_a_secret_is_in_the_list(provider: str, names: Any) -> None:
    found = {name for name in names if _MAY_BE.search(name)} - _ARE_NOT
    assert found == SECRET_SETTINGS[provider]


_NAMES = "names alone: whether a variable is set, or the name of a cache, a terminal or a shell"
_SETTINGS = "settings of concertino and of providers that are no secrets: folders, addresses, numbers"
_DOOR = "the door: what it reads is known from then on"
_CHILD = "the environment of a child process; what it gives back passes the door"
READERS = {
    "sdk/concertino/core/known_secrets.py": _DOOR,
    "sdk/concertino/core/child_environment.py": _CHILD,
    "sdk/concertino/core/settings.py": _SETTINGS,
    "sdk/concertino/core/trust.py": _SETTINGS,
    "sdk/concertino/traces/sealing.py": _DOOR,
    "sdk/concertino/executor/isolation/child_process.py": _CHILD,
    "sdk/concertino/executor/isolation/processes.py": _CHILD,
    **dict.fromkeys(
        (
            f"sdk/concertino/cli/{name}.py"
            for name in [
                "doctor_security",
                "drive",
                "group",
                "leaders",
                "log",
                "output",
                "round_lines",
                "seen",
                "shells",
                "terminal",
            ]
        ),
        _NAMES,
    ),
    "sdk/concertino/cli/surroundings.py": _NAMES,
    "providers/anthropic/src/concertino_anthropic/declaration.py": _NAMES,
    "providers/anthropic/src/concertino_anthropic/options.py": _SETTINGS,
    "providers/code/src/concertino_code/jail/worker.py": _CHILD,
    "providers/code/src/concertino_code/sandbox/docker.py": _SETTINGS,
    "providers/code/src/concertino_code/sandbox/runner.py": _CHILD,
    "providers/code/src/concertino_code/sandbox/selftest.py": _CHILD,
    "providers/code/src/concertino_code/settings.py": _SETTINGS,
    "providers/mcp/src/concertino_mcp/registry/inputs.py": _NAMES,
    "providers/mcp/src/concertino_mcp/transport/stdio.py": _NAMES,
    "providers/openai/src/concertino_openai/declaration.py": _NAMES,
    "providers/openai/src/concertino_openai/options.py": _SETTINGS,
    "providers/openai/src/concertino_openai/prices.py": _SETTINGS,
    "providers/search/src/concertino_search/index/cache.py": _SETTINGS,
    "providers/search/src/concertino_search/settings.py": _SETTINGS,
    "providers/search/src/concertino_search/tools/pages.py": _SETTINGS,
    "providers/search/src/concertino_search/web/backends.py": _NAMES,
    "providers/vllm/src/concertino_vllm/executable.py": _SETTINGS,
    "providers/vllm/src/concertino_vllm/gpu_choice.py": _NAMES,
    "providers/vllm/src/concertino_vllm/policy/weights.py": _SETTINGS,
    "providers/vllm/src/concertino_vllm/settings.py": _CHILD,
    "contrib/otel/src/concertino_otel/options.py": _SETTINGS,
    "contrib/otel/src/concertino_otel/spans.py": _SETTINGS,
    "contrib/ray/src/concertino_ray/cluster.py": _CHILD,
    "contrib/ray/src/concertino_ray/ray_worker.py": _CHILD,
    "contrib/serve/src/concertino_serve/worker_group.py": _CHILD,
    "contrib/train/src/concertino_train/factories/models.py": _SETTINGS,
    "contrib/train/src/concertino_train/running/quiet.py": _SETTINGS,
    "contrib/train/src/concertino_train/running/ranks.py": _SETTINGS,
    "contrib/train/src/concertino_train/studies/runs.py": _CHILD,
}
"""Files that read the environment, and why no secret passes the door by."""


def test_every_reader_of_the_environment_is_in_the_list() -> None:
    folders = [ROOT / "sdk", *(ROOT / "providers").glob("*/src"), *(ROOT / "contrib").glob("*/src")]
    found = {
        str(file.relative_to(ROOT))
        for folder in folders
        for file in folder.rglob("*.py")
        if re.search(r"\bos\.environ\b|\bgetenv\(|\bfrom os import .*environ", file.read_text())
    }
    assert found - READERS.keys() == set()
