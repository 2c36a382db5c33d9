"""Tools that a model wrote: what they do wrong ends in the sandbox, and in an outcome."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import concertino as ct
import pytest
from concertino_bench.toolkits import digest, replay
from concertino_bench.toolkits.replaying import replay_async
from concertino_bench.toolscale.sandboxed import (
    SandboxedToolkit,
    SandboxRunner,
    ToolCode,
    installed_runner,
    pool_runner,
)
from concertino_bench.toolscale.schemas import Schema, entries_problems, schema_problems, tools_problems
from toolscale_script import SCHEMA, TOOLS, tool

SCHEMA_READ = Schema.from_json(SCHEMA)
DATA: dict[str, Any] = {
    "members": {"m1": {"member_id": "m1", "name": "Ada"}},
    "books": {
        "b1": {"book_id": "b1", "title": "A", "lent_to": ""},
        "b2": {"book_id": "b2", "title": "B", "lent_to": "m1"},
    },
}


@pytest.fixture(scope="module")
def run() -> SandboxRunner:
    return installed_runner(seconds=10.0)


def kit(run: SandboxRunner, *bodies: tuple[str, bool, str]) -> SandboxedToolkit:
    """A toolkit of tools over one parameter, each with the body of its function."""
    tools = [
        ToolCode.from_json(tool(name, writes, "book_id", code=f"def {name}(db, book_id):\n    {body}\n"))
        for name, writes, body in bodies
    ]
    return SandboxedToolkit(DATA, tools, run, schema=SCHEMA_READ)


FAULTS = {
    "raises": (
        True,
        "db['books'][book_id]['lent_to'] = 'x'; return 1 / 0",
        "ZeroDivisionError: division by zero (line 2",
    ),
    "ends the process": (True, "db['books'].clear(); raise SystemExit(0)", "broke off"),
    "kills itself": (True, "import os, signal; os.kill(os.getpid(), signal.SIGKILL)", "broke off"),
    "breaks the schema": (True, "db['books'][book_id]['title'] = 5", "breaks the schema: /title: expected string"),
    "renames a key": (True, "db['books'][book_id]['book_id'] = 'b9'", "its book_id is 'b9', expected 'b1'"),
    "adds a table": (True, "db['spies'] = {}", "must stay what they are"),
    "replaces a table": (True, "db['books'] = []", "must stay what they are"),
    "returns no JSON": (False, "return {1, 2}", "not JSON serializable"),
    "returns NaN": (False, "return float('nan')", "not JSON compliant"),
    "writes though it reads": (False, "db['books'].pop(book_id)", "declared as reading, but it changed books/b1"),
    "returns too much": (False, "import random; return [random.random() for _ in range(9000)]", "too large"),
    "recurses": (False, "return (lambda f: f(f))(lambda f: f(f))", "RecursionError"),
    "takes memory": (False, "return len('x' * 10**10)", "MemoryError"),
}


@pytest.mark.parametrize(("writes", "body", "error"), FAULTS.values(), ids=FAULTS)
async def test_what_a_tool_does_wrong_is_its_outcome_and_leaves_the_state(
    run: SandboxRunner, writes: bool, body: str, error: str
) -> None:
    toolkit = kit(run, ("f", writes, body))
    outcome = await toolkit.use("f", {"book_id": "b1"})
    assert error in outcome.error
    assert outcome.broken
    assert toolkit.digest() == digest(DATA)


@pytest.mark.slow
async def test_a_tool_that_does_not_end_is_stopped() -> None:
    toolkit = kit(installed_runner(seconds=2.0), ("f", True, "while True: pass"))
    outcome = await toolkit.use("f", {"book_id": "b1"})
    assert "did not end" in outcome.error
    assert toolkit.digest() == digest(DATA)


async def test_a_tool_sees_nothing_of_this_machine_and_keeps_nothing_between_calls(
    run: SandboxRunner, tmp_path: Path
) -> None:
    (tmp_path / "secret").write_text("x")
    look = f"import os; return [os.path.exists({str(tmp_path / 'secret')!r}), 'HOME' in os.environ and os.getcwd()]"
    toolkit = kit(
        run,
        ("look", False, look),
        ("leave", False, "open('left', 'w').write('x'); return 1"),
        ("find", False, "import os; return os.path.exists('left')"),
    )
    assert (await toolkit.use("look", {"book_id": "b1"})).content[0] is False
    assert (await toolkit.use("leave", {"book_id": "b1"})).ok
    assert (await toolkit.use("find", {"book_id": "b1"})).content is False


async def test_what_a_tool_prints_does_not_disturb_its_result(run: SandboxRunner) -> None:
    noisy = kit(run, ("f", False, "print('--- the result of the call ---'); return [book_id]"))
    assert (await noisy.use("f", {"book_id": "b1"})).content == ["b1"]


async def test_results_changes_and_look_ups_come_back(run: SandboxRunner) -> None:
    toolkit = SandboxedToolkit(DATA, [ToolCode.from_json(each) for each in TOOLS["tools"]], run, schema=SCHEMA_READ)
    lent = await toolkit.use("lend", {"book_id": "b1", "member_id": "m1"})
    assert (lent.content, lent.written, lent.read) == ("lent until 24 June", {("books", "b1")}, {("books", "b1")})
    assert toolkit.state()["books"]["b1"]["lent_to"] == "m1"
    again = await toolkit.use("lend", {"book_id": "b1", "member_id": "m1"})
    assert (again.error, again.broken, again.read) == ("the book is lent", False, set())
    assert toolkit.fresh().digest() == digest(DATA)
    assert "'member_id'" in (await toolkit.use("lend", {"book_id": "b1"})).error


async def test_a_sandboxed_toolkit_is_replayed_by_awaiting_and_never_called(run: SandboxRunner) -> None:
    toolkit = SandboxedToolkit(DATA, [ToolCode.from_json(each) for each in TOOLS["tools"]], run)
    calls = [{"name": "give_back", "arguments": {"book_id": "b2"}}, {"name": "get_book", "arguments": {"book_id": "x"}}]
    done = await replay_async(toolkit, calls)
    assert done.operated.written == {("books", "b2")}
    assert [step.outcome.error for step in done.steps] == ["", "no such book"]
    assert done.digest == digest({**DATA, "books": {**DATA["books"], "b2": {**DATA["books"]["b2"], "lent_to": ""}}})
    with pytest.raises(TypeError, match="await toolkit"):
        replay(toolkit, calls)


async def test_an_answer_that_was_tampered_with_is_not_believed() -> None:
    async def forged(script: str) -> ct.Observation:
        return ct.Observation("1", "python", ct.Status.OK, {"stdout": "--- the result of the call ---garbage"})

    async def absent(script: str) -> ct.Observation:
        return ct.Observation("1", "python", ct.Status.EXEC_ERR, None, ct.ErrorInfo("unavailable", "no sandbox here"))

    assert "too large" in (await kit(forged, ("f", True, "pass")).use("f", {"book_id": "b1"})).error
    assert "no sandbox here" in (await kit(absent, ("f", True, "pass")).use("f", {"book_id": "b1"})).error


def test_the_runner_runs_scripts_with_the_pools_own_sandbox() -> None:
    @ct.tool
    def python(code: str) -> dict[str, str]:
        """Says what it was given."""
        return {"stdout": str("main(" in code)}

    assert asyncio.run(pool_runner(python)("main(1)")).content == {"stdout": "True"}


# -- what is refused before anything runs ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("code", "problem"),
    [
        ("import os\ndef f(db, book_id):\n    return os.listdir('/')\n", "line 1: it imports 'os'"),
        ("def f(db, book_id):\n    from subprocess import run\n", "line 2: it imports 'subprocess'"),
        ("def f(db, book_id):\n    return open('/etc/passwd').read()\n", "line 2: it uses open"),
        ("def f(db, book_id):\n    return ().__class__\n", "line 2: it uses .__class__"),
        ("def g(db, book_id):\n    return 1\n", "defines no function 'f'"),
        ("def f(db):\n    return 1\n", "takes (db); expected (db, book_id)"),
        ("def f(book_id, db):\n    return 1\n", "takes (book_id, db)"),
        ("def f(db, book_id):\nreturn 1\n", "not Python"),
        ("while True:\n    pass\n", "line 1: expected only imports"),
    ],
)
def test_code_that_cannot_be_a_tool_is_refused_with_the_line(code: str, problem: str) -> None:
    assert problem in tools_problems([tool("f", True, "book_id", code=code)])["f"]


def test_names_schemas_and_defaults_of_tools_are_checked() -> None:
    sound = "def f(db, book_id, n=1):\n    return 1\n"
    optional = {
        "type": "object",
        "properties": {"book_id": {"type": "string"}, "n": {"type": "integer"}},
        "required": ["book_id"],
    }
    assert tools_problems([{**tool("f", True, code=sound), "parameters": optional}]) == {}
    strict = sound.replace("n=1", "n")
    assert "1 of its parameters" in tools_problems([{**tool("f", True, code=strict), "parameters": optional}])["f"]
    assert "small letters" in tools_problems([tool("F-1", True, code="x = 1")])["F-1"]
    assert "two tools" in tools_problems([tool("f", True, code=sound), tool("f", True, code=sound)])["f"]
    assert "not a JSON schema" in tools_problems([{**tool("f", True, code=sound), "parameters": {"type": 7}}])["f"]


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"key": "isbn"}, "its key 'isbn' must be a required property"),
        ({"name": "Books!"}, "expected a name in small letters"),
        ({"name": "members"}, "two tables have one name"),
        ({"entry": {"type": "nonsense"}}, "not a JSON schema"),
        ({"entry": {"type": "object"}}, "of type object with properties"),
        ({"references": {"lent_to": "people"}}, "refers to 'people'"),
        ({"references": {"reader": "members"}}, "which the entry has not"),
    ],
)
def test_a_schema_that_cannot_be_used_is_refused_with_the_table(change: dict[str, Any], problem: str) -> None:
    data = json.loads(json.dumps(SCHEMA))
    assert schema_problems(data) == []
    data["tables"][1] |= change
    assert any(problem in text for text in schema_problems(data))


def test_entries_are_checked_for_form_keys_and_references() -> None:
    linked = {**SCHEMA["tables"][1], "references": {"lent_to": "members"}}
    schema = Schema.from_json({**SCHEMA, "tables": [SCHEMA["tables"][0], linked]})
    rows = [
        {"book_id": "b9", "title": "A", "lent_to": "m1"},
        {"book_id": "b9", "title": "A", "lent_to": "m1"},
        {"book_id": "b1", "title": "A", "lent_to": "m1"},
        {"book_id": "b8", "title": "A", "lent_to": "m7"},
        {"book_id": "b7", "title": 5, "lent_to": "m1"},
    ]
    found = entries_problems(schema, "books", rows, DATA)
    assert sorted(found) == [1, 2, 3, 4]
    assert "is taken" in found[1]
    assert "'m7', which is not an entry of members" in found[3]
    assert "/title: expected string" in found[4]
