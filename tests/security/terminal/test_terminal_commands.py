"""Each command that shows a stranger's text, in a real terminal, with a plugin, a trace and files of a stranger."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from terminal_attacks import EVERYTHING, harm

if sys.platform == "win32":
    pytest.skip("terminals of POSIX", allow_module_level=True)

from pseudo_terminal import written_to_terminal

pytestmark = pytest.mark.slow

ARGUMENT = EVERYTHING.replace("\0", "").replace("\ud800", "")
"""What an argument of a program can hold of it."""
SUPPORT = Path(__file__).parents[2] / "support"

PLUGIN = """
import click
import concertino
from concertino.strategies.parallel_rounds.format import write_round
from terminal_attacks import EVERYTHING


@concertino.tool(description=EVERYTHING)
def speak(text: str) -> str:
    return EVERYTHING


@concertino.tool(description=EVERYTHING)
def structured(text: str) -> dict:
    return {EVERYTHING: [EVERYTHING]}


@concertino.tool(description=EVERYTHING)
def fail() -> str:
    raise ValueError(EVERYTHING)


@concertino.tool(description=EVERYTHING)
def listen() -> str:
    print(EVERYTHING)
    return "heard"


class Lead(concertino.Model):
    def text(self, request):
        calls = [("speak", {"text": EVERYTHING}), ("fail", {}), (EVERYTHING, {"a": EVERYTHING})]
        if len(request.messages) == 2:
            return write_round(EVERYTHING.replace("<", ""), calls)
        if "<answer>" not in request.messages[-1].text:
            return write_round("Enough.", [("final_answer", {})])
        return "<answer>" + EVERYTHING + "</answer>"

    async def chat(self, request):
        return concertino.Reply(self.text(request))

    async def stream(self, request):
        text = self.text(request)
        for place in range(0, len(text), 5):
            yield text[place:place + 5]
        yield concertino.Reply(text)


@click.command("shout", help=EVERYTHING, short_help="\\x1b[31mred\\x1b[2K")
def shout():
    click.echo(EVERYTHING)


@concertino.hookimpl
def concertino_tools():
    return [speak, structured, fail, listen]


@concertino.hookimpl
def concertino_models():
    return [concertino.ModelSpec("lead", Lead, EVERYTHING)]


@concertino.hookimpl
def concertino_cli():
    return [shout]
"""
BROKEN = "from terminal_attacks import EVERYTHING\nraise ImportError(EVERYTHING)\n"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A working folder with the plugins, the trace, the session and the files of a stranger."""
    base = tmp_path_factory.mktemp("stranger")
    site, here = base / "site", base / "here"
    for name, source in (("evil", PLUGIN), ("broken", BROKEN)):
        info = site / f"acme_{name}-1.0.dist-info"
        info.mkdir(parents=True)
        (site / f"acme_{name}.py").write_text(source, encoding="utf-8")
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: acme-{name}\nVersion: 1.0\n")
        commands = "[concertino.commands]\nshout = acme_evil\n" if name == "evil" else ""
        (info / "entry_points.txt").write_text(f"[concertino]\n{name} = acme_{name}\n{commands}")
    here.mkdir()
    (here / "bad.toml").write_bytes(b'members = ["\xe2\x80\xae/x"]\nroles = {"a\xe2\x80\x8bb" = "evil/lead"}\n')
    (here / "evil\x1b]0;owned\x07.trace.jsonl").write_text("no trace", encoding="utf-8")
    return base


@pytest.fixture(scope="module")
def trace(folder: Path) -> Path:
    """A trace and a session, written by a run whose model and tools are a stranger's."""
    code, _ = on_terminal(folder, "run", ARGUMENT, "--model", "evil/lead", "--session", "talk")
    assert code == 0
    (path,) = (file for file in (folder / "here/runs").glob("*.trace.jsonl"))
    return path


def on_terminal(folder: Path, *arguments: str, typed: Sequence[str] = (), **environment: str) -> tuple[int, str]:
    """What a command writes to a terminal, byte by byte."""
    paths = [str(folder / "site"), str(SUPPORT), os.environ.get("PYTHONPATH", "")]
    given = {
        "PYTHONPATH": os.pathsep.join(filter(None, paths)),
        "CONCERTINO_PLUGINS": "evil,broken",
        "CONCERTINO_TRACES": str(folder / "here/runs"),
        "XDG_CACHE_HOME": str(folder / "cache"),
        "HOME": str(folder),
        **environment,
    }
    program = (
        sys.executable,
        "-c",
        f"import os, sys; os.chdir({str(folder / 'here')!r}); from concertino.cli import main; main()",
    )
    text = [argument.encode("utf-8", "surrogatepass").decode("utf-8", "surrogateescape") for argument in arguments]
    code, written = written_to_terminal(text, given, columns=100, typed=typed, program=program)
    return code, written.decode("utf-8", "surrogateescape")


COMMANDS = {
    "tools": ["tools"],
    "tools_as_json": ["tools", "--json"],
    "a_tool": ["tools", "show", "evil/speak"],
    "a_tool_as_json": ["tools", "show", "evil/speak", "--json"],
    "models": ["models"],
    "a_model": ["models", "show", "evil/lead"],
    "pool": ["pool", "show"],
    "pool_as_json": ["pool", "show", "--json"],
    "pool_search": ["pool", "find", "speak"],
    "a_pool_file": ["pool", "show", "--pool", "bad.toml"],
    "plugins": ["plugins", "--load"],
    "plugins_as_json": ["plugins", "--load", "--json"],
    "doctor": ["doctor"],
    "doctor_as_json": ["doctor", "--json"],
    "call": ["call", "evil/speak", '{"text": "x"}'],
    "call_as_json": ["call", "evil/speak", '{"text": "x"}', "--json"],
    "call_with_json_result": ["call", "evil/structured", '{"text": "x"}'],
    "call_that_fails": ["call", "evil/fail"],
    "call_of_no_member": ["call", ARGUMENT],
    "help": ["--help"],
    "no_such_command": [ARGUMENT],
    "no_such_option": ["tools", "--" + ARGUMENT],
    "an_argument_that_is_no_text": ["tools", "show", "a\ud800\x1b]0;owned\x07"],
    "traceback": ["tools", "show", ARGUMENT, "--debug"],
    "run_live": ["run", "x", "--model", "evil/lead", "--no-trace", "--live"],
    "run_plain": ["run", "x", "--model", "evil/lead", "--no-trace", "--plain"],
    "run_quiet": ["run", "x", "--model", "evil/lead", "--no-trace", "--quiet"],
    "run_as_json": ["run", "x", "--model", "evil/lead", "--no-trace", "--json"],
    "run_events": ["run", "x", "--model", "evil/lead", "--no-trace", "--events"],
    "run_logged": ["run", "x", "--model", "evil/lead", "--no-trace", "--log-level", "debug"],
}
OF_TRACES = {
    "traces": ["traces", "list"],
    "traces_as_json": ["traces", "list", "--json"],
    "trace": ["traces", "show", "last"],
    "trace_as_json": ["traces", "show", "last", "--json"],
    "followed_live": ["traces", "follow", "last", "--live"],
    "followed": ["traces", "follow", "last", "--plain"],
    "followed_events": ["traces", "follow", "last", "--events"],
    "replayed": ["traces", "replay", "last"],
    "replayed_as_json": ["traces", "replay", "last", "--json"],
    "exported": ["traces", "export", "last"],
    "exported_lines": ["traces", "export", "last", "--format", "jsonl"],
    "a_file_with_a_hostile_name": ["traces", "show", "evil\x1b]0;owned\x07.trace.jsonl"],
    "a_folder_of_traces": ["traces", "list", "--folder", "."],
    "sessions": ["sessions", "list"],
    "sessions_as_json": ["sessions", "list", "--json"],
    "a_session": ["sessions", "show", "talk"],
    "a_session_as_json": ["sessions", "show", "talk", "--json"],
}


@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS.keys())
def test_a_command_writes_nothing_that_a_terminal_obeys(folder: Path, command: list[str]) -> None:
    code, written = on_terminal(folder, *command)
    assert written.strip()
    assert "unexpected" not in written
    assert harm(written, live=_moves(command)) == [], code


@pytest.mark.parametrize("command", [["call", "evil/listen"], ["shout"], ["shout", "--help"]], ids=" ".join)
def test_what_a_plugin_prints_itself_is_no_more_than_colours_and_moves(folder: Path, command: list[str]) -> None:
    _, written = on_terminal(folder, *command)
    assert "owned" in written
    assert harm(re.sub(r"\x1b\[[0-9;]*[ABCDEFGHJKfm]|[\r\b]", "", written.replace("\r\n", "\n"))) == []


@pytest.mark.parametrize("command", OF_TRACES.values(), ids=OF_TRACES.keys())
def test_a_trace_of_a_stranger_is_shown_and_not_obeyed(folder: Path, trace: Path, command: list[str]) -> None:
    assert trace.is_file()
    code, written = on_terminal(folder, *command)
    assert written.strip()
    assert "unexpected" not in written
    assert harm(written, live=_moves(command)) == [], code


def test_an_exported_trace_in_a_terminal_is_json_of_the_same_value(folder: Path, trace: Path) -> None:
    _, written = on_terminal(folder, "traces", "export", trace.name)
    records = json.loads(written.replace("\r\n", "\n"))["records"]
    assert any("\x1b]0;owned\x07" in str(record.get("answer")) for record in records)


def _moves(command: list[str]) -> bool:
    """Whether a command writes over its own lines."""
    return "--live" in command
