"""Children are started in known places only, and each start names the child's environment."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from concertino.core.child_environment import only_child_environment
from concertino.executor import ChildProcess

ROOT = Path(__file__).resolve().parents[3]
STARTS = {
    *("Popen", "run", "call", "check_call", "check_output", "getoutput", "getstatusoutput"),
    *("create_subprocess_exec", "create_subprocess_shell", "subprocess_exec", "subprocess_shell"),
    *("system", "popen", "fork", "forkpty", "posix_spawn", "posix_spawnp", "startfile"),
    *("execv", "execve", "execvp", "execvpe", "execl", "execle", "execlp", "execlpe"),
    *("spawnl", "spawnle", "spawnlp", "spawnv", "spawnve", "spawnvp", "spawnvpe"),
    *("Process", "ProcessPoolExecutor", "get_context", "Pool", "edit", "launch"),
}
MODULES = {"subprocess", "os", "asyncio", "multiprocessing", "concurrent", "click", "pty"}
_IMPORT = re.compile(rf"(?m)^\s*(?:from|import) (?:{'|'.join(sorted(MODULES))})\b")
ALLOWED = {
    # Starts that name an environment, which the second test checks.
    "sdk/concertino/core/bounded_pipe.py": "programs that are run to their end",
    "sdk/concertino/executor/isolation/child_process.py": "all that lives on",
    "sdk/concertino/executor/isolation/guard.py": "the guard's own child, in the guard's environment",
    "providers/code/src/concertino_code/sandbox/jailed.py": "the sandbox, in an environment of its own",
    "contrib/serve/src/concertino_serve/worker_group.py": "the server's workers: the same program, with all its keys",
    # Inside of a sandbox or container, whose environment is its own.
    "providers/code/src/concertino_code/sandbox/runner.py": "in a container",
    "providers/code/src/concertino_code/jail/bare.py": "in the sandbox",
    "providers/code/src/concertino_code/jail/bubblewrap.py": "in the sandbox",
    "providers/code/src/concertino_code/jail/namespaces.py": "in the sandbox",
    "providers/code/src/concertino_code/jail/zygote.py": "in the sandbox",
    "contrib/bench/src/concertino_bench/graders/sandbox_program.py": "in the sandbox",
    "contrib/bench/src/concertino_bench/graders/sandbox_streams.py": "in the sandbox",
    # Of multiprocessing, within `only_child_environment`.
    "contrib/train/src/concertino_train/conductor/__main__.py": "practice runs",
    "contrib/train/src/concertino_train/conductor/training.py": "ranks of a training",
}
OWN_ENVIRONMENT = tuple(
    path for path, why in ALLOWED.items() if not why.startswith(("in the sandbox", "practice", "ranks"))
)


def sources() -> Iterator[Path]:
    yield from ROOT.glob("sdk/concertino/**/*.py")
    for members in ("providers", "contrib"):
        yield from ROOT.glob(f"{members}/*/src/**/*.py")


def starts(tree: ast.AST) -> Iterator[tuple[str, ast.Call]]:
    """Calls that start a process, by the name that they are called by."""
    own: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] in MODULES:
            own |= {each.asname or each.name: each.name for each in node.names}
        elif isinstance(node, ast.Import):
            own |= {
                (each.asname or each.name).partition(".")[0]: ""
                for each in node.names
                if each.name.partition(".")[0] in MODULES
            }
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        called = node.func
        if isinstance(called, ast.Name) and own.get(called.id) in STARTS:
            yield own[called.id], node
        elif isinstance(called, ast.Attribute) and called.attr in STARTS:
            base = called.value
            while isinstance(base, ast.Attribute):
                base = base.value
            if isinstance(base, ast.Name) and own.get(base.id) == "" and (base.id, called.attr) != ("asyncio", "run"):
                yield called.attr, node


@cache
def found() -> dict[str, list[tuple[str, ast.Call]]]:
    texts = {str(path.relative_to(ROOT)): path.read_text("utf-8") for path in sources()}
    # Parsed only where one of the modules is imported: there are many files.
    parsed = {path: [*starts(ast.parse(text))] for path, text in texts.items() if _IMPORT.search(text)}
    return {path: calls for path, calls in parsed.items() if calls}


def test_no_other_place_starts_a_child() -> None:
    assert found().keys() == ALLOWED.keys(), "start it with ChildProcess or run_bounded of concertino.executor"


@pytest.mark.parametrize("path", OWN_ENVIRONMENT)
def test_each_start_names_the_environment(path: str) -> None:
    for name, call in found()[path]:
        if name == "Popen":
            assert "env" in [keyword.arg for keyword in call.keywords], f"{path}:{call.lineno}"


@pytest.mark.parametrize(
    "text",
    [
        "import subprocess\nsubprocess.run(['x'])",
        "import subprocess as s\ns.Popen(['x'])",
        "from subprocess import check_output as c\nc(['x'])",
        "import os\nos.system('x')",
        "import asyncio\nasyncio.create_subprocess_exec('x')",
        "import asyncio.subprocess\nasyncio.subprocess.create_subprocess_shell('x')",
        "import multiprocessing as m\nm.get_context('spawn')",
        "from concurrent.futures import ProcessPoolExecutor\nProcessPoolExecutor()",
        "import click\nclick.edit('x')",
    ],
)
def test_such_a_start_is_found(text: str) -> None:
    assert [*starts(ast.parse(text))]


def environment_of(pid: int) -> bytes:
    return Path(f"/proc/{pid}/environ").read_bytes()


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_neither_a_child_nor_its_guard_has_a_key_where_no_environment_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "canary-openai")
    child = ChildProcess(["sleep", "30"])
    try:
        assert b"PATH=" in environment_of(child.pid)
        assert b"canary" not in environment_of(child.pid) + environment_of(child.guard_pid)
    finally:
        child.kill()
        child.wait(30)


def test_children_of_multiprocessing_get_no_key_and_the_parent_keeps_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "canary-openai")
    before = dict(os.environ)
    with only_child_environment():
        seen = subprocess.run(["env"], capture_output=True, check=True).stdout
    assert b"canary" not in seen
    assert b"PATH=" in seen
    assert dict(os.environ) == before
