"""The few lines that the application page opens with run as written, against a server that says what a test wants."""

from __future__ import annotations

import ast
import asyncio
import contextlib
import io
from pathlib import Path
from types import CodeType
from typing import Any

import concertino as ct
import pytest
from pydantic import BaseModel
from stand_in import StandIn

from .documents import DOCS, EXAMPLES, agrees, blocks_of
from .readers import run_file

EXAMPLE = EXAMPLES / "application" / "few_lines.py"
BLOCK = """
class Answer(BaseModel): city: str; celsius: float

leader = ct.Orchestrator("openai/gpt-5.4-mini", instructions="Answer in French.", answer_type=Answer)
run = await leader.run("How warm is it there?", pool=pool, deps=db)
run.output                                             # an Answer, validated; run.answer stays the text
more = await leader.run("And tomorrow?", pool=pool, history=run)
async for event in leader.stream(["What is this?", ct.Image("cat.png"), ct.File("report.pdf")], pool=pool):
    if isinstance(event, ct.events.TextDelta) and event.kind == "answer": print(event.text, end="")

@ct.tool(approval=True)
async def pay(ctx: ct.Context[Bank], amount: float) -> str: "Pay an amount."
"""
END = '<tool_call>{"name": "final_answer", "arguments": {}}</tool_call>'


def call(name: str, arguments: str = "{}") -> str:
    return f'<tool_call>{{"name": "{name}", "arguments": {arguments}}}</tool_call>'


ASKED = [
    call("place"),
    call("thermometer", '{"city": "Oslo"}'),
    END,
    '<answer>{"city": "Oslo", "celsius": 4.5}</answer>',
    call("thermometer", '{"city": "Oslo", "day": "tomorrow"}'),
    END,
    '<answer>{"city": "Oslo", "celsius": 2.0}</answer>',
    '<answer>{"city": "a cat, and a report", "celsius": 38.5}</answer>',
]
PAID = [
    "\n".join([call("pay", '{"amount": 30}'), call("pay", '{"amount": 300}')]),
    END,
    "<answer>30 is paid, 300 is not.</answer>",
]


class Bank:
    city = "Oslo"


def members() -> ct.Pool:
    @ct.tool
    def place(ctx: ct.Context[Bank]) -> str:
        """The city of the bank."""
        return ctx.deps.city

    @ct.tool
    def thermometer(city: str, day: str = "today") -> float:
        """The temperature in a city."""
        return {"today": 4.5, "tomorrow": 2.0}[day]

    return ct.Pool.of(place, thermometer)


def compiled(source: str) -> CodeType:
    code: CodeType = compile(source, "block", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
    return code


def test_the_lines_run_as_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "cat.png").write_bytes(b"\x89PNG\r\n\x1a\n...")
    (tmp_path / "report.pdf").write_bytes(b"%PDF-1.7 ...")
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {"ct": ct, "BaseModel": BaseModel, "pool": members(), "db": Bank(), "Bank": Bank}
    printed = io.StringIO()
    with StandIn(*ASKED) as server, contextlib.redirect_stdout(printed):
        for variable, value in server.environment.items():
            monkeypatch.setenv(variable, value)
        asyncio.run(eval(compiled(BLOCK), names))
    assert (names["run"].output, names["more"].output) == (
        names["Answer"](city="Oslo", celsius=4.5),
        names["Answer"](city="Oslo", celsius=2.0),
    )
    assert names["run"].answer == '{"city": "Oslo", "celsius": 4.5}'
    assert printed.getvalue() == '{"city": "a cat, and a report", "celsius": 38.5}'
    assert names["pay"].approval is True
    assert_asked_as_the_lines_say(server)


def assert_asked_as_the_lines_say(server: StandIn) -> None:
    first, later, last = server.requests[0], server.requests[4], server.requests[7]
    for request in server.requests:
        assert request["messages"][0]["content"].count("Answer in French.") == 1
    told = [message["content"] for message in later["messages"][1:-1]]
    assert "How warm is it there?" in told[0]
    assert '{"city": "Oslo", "celsius": 4.5}' in told[1]
    assert "And tomorrow?" in str(later["messages"][-1]["content"])
    assert "How warm" in str(first["messages"][-1]["content"])
    kinds = [part["type"] for part in last["messages"][-1]["content"]]
    assert sorted(kinds) == ["file", "image_url", "text"]


def test_the_example_holds_these_lines() -> None:
    """Each statement of the block, as `ruff format` writes it; a line that only shows a value is printed."""
    kept = {ast.dump(node) for node in ast.walk(ast.parse(EXAMPLE.read_text(encoding="utf-8")))}
    for node in ast.parse(BLOCK).body:
        said = node.value if isinstance(node, ast.Expr) else node
        assert ast.dump(said) in kept or named_pay(node), ast.unparse(node)


def test_a_tool_without_a_docstring_is_described_by_its_name() -> None:
    lines = BLOCK.partition("@ct.tool")[2].replace('"Pay an amount."', "...")
    names: dict[str, Any] = {"ct": ct, "Bank": Bank}
    exec(compiled(f"@ct.tool{lines}"), names)
    assert names["pay"].description == "pay"


def named_pay(node: ast.stmt) -> bool:
    """The tool has a body in the example, so only its head is compared."""
    written = ast.parse(EXAMPLE.read_text(encoding="utf-8"))
    heads = [each for each in ast.walk(written) if isinstance(each, ast.AsyncFunctionDef) and each.name == "pay"]
    return (
        isinstance(node, ast.AsyncFunctionDef)
        and [ast.dump(each) for each in heads[0].decorator_list] == [ast.dump(each) for each in node.decorator_list]
        and ast.dump(heads[0].args) == ast.dump(node.args)
    )


def test_the_example_prints_what_the_page_shows(tmp_path: Path) -> None:
    with StandIn(*ASKED, *PAID) as server:
        done = run_file(EXAMPLE, tmp_path, server.environment)
    assert done.returncode == 0, done.stderr
    blocks = list(blocks_of((DOCS / "how-to" / "build-an-application.md").read_text(encoding="utf-8")))
    at = next(place for place, block in enumerate(blocks) if "few_lines.py:paid" in block.raw)
    assert agrees(blocks[at + 1].raw, done.stdout), done.stdout
