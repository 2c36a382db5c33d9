"""Bombs for graders: answers, calls, states and programs that cost more than they look, or break what reads them.

Each is one attack with its outcome: the grader gives a verdict, never "right", with a short reason, for little CPU time
and memory here. What compares mathematics is a process of its own, with a limit on its time and on its memory.
"""

from __future__ import annotations

import asyncio
import json
import resource
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("concertino_bench", reason="concertino-bench is not installed")

from concertino import Observation
from concertino.testing import run_call
from concertino_bench import Grade, Submission, Task
from concertino_bench.graders import (
    CallMatch,
    ChoiceGrader,
    Contains,
    EnvironmentGrader,
    ExactMatch,
    FinalState,
    Mathematics,
    MultiAnswer,
    Numeric,
    TokenF1,
    UnitTests,
    Verbatim,
)
from concertino_bench.graders.comparing import Comparer
from concertino_bench.masbench.grader import grade as masbench

MOST_CPU = 5.0
"""Seconds of CPU time here for one bomb, with much slack: a bomb that works takes minutes, or for ever."""
MOST_MEMORY = 400 << 10
"""KB that the peak of this process may grow by."""
MOST_REASON = 1000

GOLD = {"ground_truth": [{"f": {"a": [1, ""]}}], "functions": [{"name": "f", "parameters": {"properties": {"a": {}}}}]}


def task(kind: str, *answers: str, **metadata: Any) -> Task:
    return Task("t", "?", answers, kind, metadata=metadata)


GRADERS: dict[str, tuple[Any, Task]] = {
    "exact-match": (ExactMatch(), task("text", "Paris")),
    "token-f1": (TokenF1(), task("text", "Paris")),
    "verbatim": (Verbatim(), task("text", '{"a": 2}')),
    "contains": (Contains(), task("text", "Paris")),
    "numeric": (Numeric(), task("number", "5")),
    "choice": (ChoiceGrader(), task("choice", "B", choices=["Rome", "Paris"])),
    "multi-answer": (MultiAnswer(), task("answers", "x", "y", ordered=False)),
    "call-match": (CallMatch(), task("calls", **GOLD)),
}
TEXTS = {
    "lists in lists, as deep as Python reads": "[" * 950 + "]" * 950,
    "lists in lists, deeper": "[" * 200_000,
    "objects in objects": '{"a":' * 900 + "1" + "}" * 900,
    "a hundred thousand objects that are never closed": '{"a":' * 100_000,
    "a call with lists in lists": "[f(a=" + "[" * 150 + "]" * 150 + ")]",
    "a call of deep JSON": '{"name": "f", "arguments": {"a": ' + "[" * 900 + "]" * 900 + "}}",
    "JSON text in JSON text": json.dumps({"name": "f", "arguments": '{"a": ' + "[" * 900 + "]" * 900 + "}"}),
    "a number of more digits than can be written": "f(a=0x" + "F" * 9000 + ")",
    "a list of such numbers": "[f(a=[" + "0x" + "F" * 9000 + "])]",
    "a number of five thousand digits": "<answer>[" + "9" * 5000 + "]</answer>",
    "a name of two thousand parts": ".".join("a" for _ in range(2000)) + "(a=1)",
    "signs before a number": "f(a=" + "-" * 901 + "1)",
    "a power as an exponent": "<answer>10^{999999999}</answer>",
    "an exponent without end": "<answer>1e999999999</answer>",
    "a float that is infinite": '{"name": "f", "arguments": {"a": 1e400}}',
    "a letter that becomes eighteen": "\ufdfa" * 100_000,
    "an accent on an accent": "a" + "\u0301" * 200_000,
    "boxes in boxes": "\\boxed{" * 30_000 + "}" * 30_000,
    "two hundred thousand answers": "<answer>[" + ",".join(["1"] * 200_000) + "]</answer>",
    "a megabyte of one word": "<answer>" + "a " * 500_000 + "</answer>",
    "a megabyte of quotes": '"' * 1_000_000,
    "a megabyte of backslashes": "\\" * 1_000_000,
    "a megabyte of digits": "9" * 1_000_000,
    "a megabyte of blank lines": "\n" * 1_000_000,
}


class NoServices:
    """A bench that has nothing to offer."""

    async def call(self, name: str, arguments: Mapping[str, Any]) -> Observation:
        raise AssertionError(f"{name} was called")

    async def ask(self, role: str, request: Any) -> Any:
        raise AssertionError(f"{role} was asked")


def peak() -> int:
    """KB of memory that this process has had at most."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def bounded(grader: Any, asked: Task, submission: Submission, services: Any = None) -> Grade:
    """The verdict, which must be cheap, and not "right"."""
    before, began = peak(), time.process_time()
    grade: Grade = asyncio.run(grader.grade(asked, submission, services or NoServices()))
    assert time.process_time() - began < MOST_CPU
    assert peak() - before < MOST_MEMORY
    assert grade.verdict != "right", grade.reason[:200]
    assert 0 < len(grade.reason) < MOST_REASON
    return grade


@pytest.mark.parametrize("bomb", TEXTS)
@pytest.mark.parametrize("name", GRADERS)
def test_a_text_that_is_a_bomb_has_a_cheap_verdict(name: str, bomb: str) -> None:
    grader, asked = GRADERS[name]
    bounded(grader, asked, Submission(TEXTS[bomb]))


@pytest.mark.parametrize("bomb", TEXTS)
def test_whole_numbers_are_read_from_a_bomb_at_little_cost(bomb: str) -> None:
    for text in (TEXTS[bomb], f"<answer>{TEXTS[bomb]}</answer>", f"\\boxed{{{TEXTS[bomb]}}}"):
        bounded(masbench.grader, task("masbench", "7"), Submission(text))


def deep(levels: int) -> Any:
    """Lists in lists."""
    made: Any = 1
    for _ in range(levels):
        made = [made]
    return made


VALUES = {
    "a number of five thousand digits": 10**5000,
    "lists in lists, 400 deep": deep(400),
    "lists in lists, 100,000 deep": deep(100_000),
    "a million numbers": [0] * 1_000_000,
    "text of ten megabytes": "x" * 10_000_000,
}


@pytest.mark.parametrize("bomb", VALUES)
@pytest.mark.parametrize("metadata", [{"state": {"a": 1}}, {"digest": "00"}], ids=["state", "digest"])
def test_a_final_state_that_is_a_bomb_is_not_right(bomb: str, metadata: dict[str, Any]) -> None:
    bounded(FinalState(), task("state", **metadata), Submission("x", (), {"a": VALUES[bomb]}))


@pytest.mark.parametrize("bomb", VALUES)
def test_arguments_of_a_call_that_are_a_bomb_are_not_right(bomb: str) -> None:
    calls: Sequence[dict[str, Any]] = [{"name": "f", "arguments": {"a": VALUES[bomb]}}]
    bounded(*GRADERS["call-match"], Submission("x", calls))


@pytest.mark.parametrize("bomb", VALUES)
def test_a_reward_that_is_a_bomb_is_not_right(bomb: str) -> None:
    bounded(EnvironmentGrader(), task("environment"), Submission("x", (), {"reward": VALUES[bomb]}))


MATHEMATICS = {
    "a tower of powers": "9^{9^{9^{9}}}",
    "a tower that is written with stars": "9**9**9**9",
    "a factorial of a factorial": "((100!)!)!",
    "factorials in a row": "99999999!!!!!!",
    "a binomial without end": "\\binom{10^{9}}{5 \\cdot 10^{8}}",
    "a sum without end": "\\sum_{n=1}^{10^{12}} \\frac{n!}{n^{n}}",
    "a product without end": "\\prod_{n=1}^{10^{9}} (x+n)^{n}",
    "an integral that nothing solves": "\\int_0^{1} \\sin(x^{x^{x^{x}}}) e^{\\cos(x^{x})} dx",
    "a limit of nested roots": "\\lim_{x \\to 0} \\sqrt[x]{\\sqrt[x]{\\sqrt[x]{x^{x^{x}}}}}",
    "a polynomial to a thousand": "(a+b+c+d+e+f+g)^{1000} - (g+f+e+d+c+b+a)^{1000}",
    "brackets in brackets": "(" * 900 + "x" + ")" * 900,
    "fractions in fractions": "\\frac{1}{1+" * 200 + "x" + "}" * 200,
    "roots in roots": "\\sqrt{2+" * 250 + "2" + "}" * 250,
    "a matrix of determinants": "\\det \\begin{pmatrix}"
    + " \\\\ ".join(" & ".join(f"x^{{{i * j}}}" for j in range(12)) for i in range(12))
    + "\\end{pmatrix}",
    "trigonometry to a hundred": "(\\sin(x)+\\cos(x)+\\tan(x))^{100} - (\\tan(x)+\\sin(x)+\\cos(x))^{100} + 1",
    "a thousand equations": ", ".join(f"x_{{{i}}}=x_{{{i + 1}}}^2" for i in range(90)),
    "digits to the bound": "9" * 1990,
    "an interval of towers": "[9^{9^{9^{8}}}, 9^{9^{9^{9}}}]",
    "a set of a thousand roots": "\\{" + ", ".join(f"\\sqrt{{{n}}}+\\sqrt{{{n + 1}}}" for n in range(2, 70)) + "\\}",
    "a command for code": "\\text{__import__('os').system('touch pwned')}",
}


@pytest.fixture(scope="module")
def mathematics() -> Iterator[Mathematics]:
    grader = Mathematics(2.0, workers=1)
    yield grader
    grader._comparer.close()


@pytest.mark.slow
@pytest.mark.parametrize("bomb", MATHEMATICS)
def test_mathematics_that_is_a_bomb_ends_at_the_limit_in_a_process_of_its_own(
    bomb: str, mathematics: Mathematics
) -> None:
    bounded(mathematics, task("math", "\\frac{7}{13}"), Submission(f"\\boxed{{{MATHEMATICS[bomb]}}}"))


@pytest.mark.slow
def test_the_worker_of_mathematics_has_a_bound_on_its_memory() -> None:
    comparer = Comparer(20.0, 1)
    try:
        seen = comparer.compare(["1"], "2")
        assert (seen.equal, seen.found, seen.trouble) == (False, "2", "")
        (worker,) = comparer._idle
        assert 0 < resource.prlimit(worker.process.pid, resource.RLIMIT_AS)[0] <= 1 << 30
    finally:
        comparer.close()


_FLOODS = """
import sys
print("{}", flush=True)
sys.stdin.readline()
for _ in range(300): sys.stdout.write("x" * (1 << 20))
sys.stdout.flush()
"""


def test_a_worker_that_answers_without_end_costs_little_memory_and_is_not_asked_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "worker.py"
    program.write_text(_FLOODS)
    monkeypatch.setattr("concertino_bench.graders.comparing._WORKER", program)
    comparer, before = Comparer(20.0, 1), peak()
    assert "ended" in comparer.compare(["1"], "2").trouble
    assert peak() - before < 50 << 10
    assert comparer._idle == []


PROGRAMS = {
    "a fork bomb": "import os\ndef double(x):\n    while True: os.fork()",
    "a memory bomb": "def double(x):\n    kept = []\n    while True: kept.append(bytearray(1 << 24))",
    "an output bomb": "def double(x):\n    while True: print('x' * 65536)",
    "a loop": "def double(x):\n    while True: pass",
    "a power": "def double(x): return 9 ** 9 ** 9",
    "a huge answer": "def double(x): return 'x' * (200 << 20)",
    "a deep answer": "def double(x):\n    made = []\n    for _ in range(100_000): made = [made]\n    return made",
    "a number of more digits than can be written": "def double(x): return 10 ** 100_000",
    "an answer that holds itself": "def double(x):\n    made = []\n    made.append(made)\n    return made",
    "brackets in brackets": "def double(x): return " + "(" * 50_000 + "x" + ")" * 50_000,
    "signs before a number": "def double(x): return " + "-" * 100_000 + "x",
    "constants that are folded": "def double(x): return (1 << 4_000_000) ** 4_000 * 'x'",
    "a regular expression": "import re\ndef double(x): return re.match('(a+)+$', 'a' * 60 + 'b')",
    "an answer whose repr is a loop": (
        "class A(int):\n    def __repr__(self):\n        while True: pass\n    __str__ = __format__ = __repr__\n"
        "def double(x): return A(3)"
    ),
    "a source of a megabyte": "# " + "x" * 1_000_000 + "\ndef double(x): return 3",
}


class Sandboxed:
    """A bench with the sandbox of this machine, and short limits."""

    def __init__(self, tool: Any) -> None:
        self.tool = tool

    async def call(self, name: str, arguments: Mapping[str, Any]) -> Observation:
        return await run_call(self.tool, dict(arguments))


@pytest.fixture(scope="module")
def sandboxed() -> Iterator[Sandboxed]:
    pytest.importorskip("concertino_code", reason="concertino-code is not installed")
    from concertino_code.sandbox import JailedSandbox, ScriptLimits, choose_level
    from concertino_code.settings import CodeSettings
    from concertino_code.tool import python_tool

    choice = asyncio.run(choose_level("namespaces"))
    if not choice.level:
        pytest.skip(f"no namespaces here: {choice.explain()}")
    limits = ScriptLimits(wall=2.0, cpu=2.0)
    sandbox = JailedSandbox(limits=limits, preload=())
    yield Sandboxed(python_tool(sandbox, settings=CodeSettings(limits=limits)))
    sandbox.close_now()


@pytest.mark.slow
@pytest.mark.parametrize("bomb", PROGRAMS)
def test_a_program_that_is_a_bomb_fails_its_tests_and_nothing_else(bomb: str, sandboxed: Sandboxed) -> None:
    asked = task("code", entry_point="double", prompt="", tests=["assert double(2) == 4"])
    bounded(UnitTests(), asked, Submission(PROGRAMS[bomb]), sandboxed)
