"""What a person sees in a terminal: narrow ones, text as it is written, questions of `init`."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

if sys.platform == "win32":
    pytest.skip("terminals of POSIX", allow_module_level=True)

from pseudo_terminal import on_terminal

WRITER = '''
import asyncio
import concertino
from concertino.strategies.parallel_rounds.format import write_round


class Writer(concertino.Model):
    """Text comes in pieces where a stream is asked for; without one, the answer says so."""

    async def chat(self, request):
        return concertino.Reply(self.text(request, "alone"))

    async def stream(self, request):
        text = self.text(request, "in pieces")
        for place in range(0, len(text), 7):
            await asyncio.sleep(0.002)
            yield text[place:place + 7]
        yield concertino.Reply(text)

    def text(self, request, how):
        if len(request.messages) == 2:
            return write_round("Write it down.", [("note", {"text": "x"}), ("nothing", {})])
        if "<answer>" not in request.messages[-1].text:
            return write_round("Enough is known.", [("final_answer", {})])
        return "<answer>Twelve degrees, and rain.\\nTold " + how + ".</answer>"


@concertino.tool
def note(text: str) -> str:
    """Note a text that is long enough to fill more than a line of a narrow terminal."""
    return text


@concertino.hookimpl
def concertino_tools():
    return [note]


@concertino.hookimpl
def concertino_models():
    return [concertino.ModelSpec("voice", Writer, "Writes.", concertino.Prices(1.0, 1.0))]
'''
Terminal = Callable[..., tuple[int, list[str]]]
LEAD = ("--model", "writer/voice")


@pytest.fixture
def terminal(site: Path, install: Any) -> Terminal:
    """`terminal("run", …, columns=40)`: the command line in a terminal, with `writer` as its only plugin."""
    install("writer", WRITER)

    def run(*arguments: str, **options: Any) -> tuple[int, list[str]]:
        return on_terminal(arguments, {"PYTHONPATH": str(site), "CONCERTINO_PLUGINS": "writer"}, **options)

    return run


# -- narrow ------------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_nothing_is_wider_than_a_narrow_terminal(cli: Any, terminal: Terminal) -> None:
    code, lines = terminal("run", "Bergen", *LEAD, columns=40)
    assert code == 0
    assert max(len(line) for line in lines) <= 40, max(lines, key=len)
    for command in (
        ("traces", "list"),
        ("traces", "show"),
        ("tools",),
        ("tools", "show", "note"),
        ("models",),
        ("pool", "show"),
        ("pool", "tokens"),
        ("plugins", "--load"),
    ):
        code, lines = terminal(*command, columns=40)
        assert code == 0
        assert max(len(line) for line in lines) <= 40, (command, max(lines, key=len))
        assert len(lines) > 2, command


def test_a_narrow_table_becomes_blocks_that_begin_with_the_name(terminal: Terminal) -> None:
    code, lines = terminal("pool", "show", columns=40)
    assert code == 0
    block = lines.index("writer/note")
    assert lines[block + 1 : block + 3] == ["  kind         tool", "  seen as      note"]
    assert lines[block + 4].startswith("  description  Note a text")
    assert lines[block + 4].endswith("…")


# -- text as it is written ---------------------------------------------------------------------------------------------


def answers(lines: list[str]) -> int:
    return sum("Twelve degrees" in line for line in lines)


def test_plain_lines_show_the_answer_once_as_it_is_written(terminal: Terminal) -> None:
    code, lines = terminal("run", "Bergen", *LEAD, "--plain", columns=100)
    assert code == 0
    first = lines.index("Twelve degrees, and rain.")
    assert lines[first + 1] == "Told in pieces."
    assert lines[first + 2].endswith("end: answered")
    assert answers(lines) == 1


def test_the_live_view_shows_it_while_it_is_written_and_the_summary_in_full(terminal: Terminal) -> None:
    code, lines = terminal("run", "Bergen", *LEAD, "--live", columns=100)
    assert code == 0
    assert lines[lines.index("Twelve degrees, and rain.") + 1] == "Told in pieces."
    assert any(line.startswith("ended") for line in lines)
    assert any("Round 1" in line for line in lines)


def test_without_a_stream_the_answer_comes_at_the_end(terminal: Terminal) -> None:
    code, lines = terminal("run", "Bergen", *LEAD, "--plain", "--no-stream", columns=100)
    assert code == 0
    end = next(place for place, line in enumerate(lines) if line.endswith("end: answered"))
    assert lines.index("Told alone.") > end


def test_quiet_prints_the_answer_alone(terminal: Terminal) -> None:
    code, lines = terminal("run", "Bergen", *LEAD, "--quiet", columns=100)
    assert (code, lines) == (0, ["Twelve degrees, and rain.", "Told in pieces.", ""])


def test_json_on_a_terminal_is_json_and_asks_for_no_stream(terminal: Terminal) -> None:
    code, lines = terminal("run", "Bergen", *LEAD, "--json", columns=100)
    assert code == 0
    assert json.loads("\n".join(lines))["answer"].endswith("Told alone.")


# -- init --------------------------------------------------------------------------------------------------------------


def test_init_asks_who_leads_and_what_may_be_called(terminal: Terminal) -> None:
    code, lines = terminal("init", "new", "--no-probe", typed=["writer/voice", ""])
    assert code == 0, lines
    assert any("Which model leads? (a number, or provider/name): writer/voice" in line for line in lines)
    assert any("What may it call? (patterns, or none) [writer/*]:" in line for line in lines)
    assert 'members = ["writer/*"]' in Path("new/pool.toml").read_text(encoding="utf-8")
    assert 'orchestrator = "writer/voice"' in Path("new/pool.toml").read_text(encoding="utf-8")
