"""Whatever a solver writes: no grader raises, every verdict has a reason, and the time grows with the length."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from typing import Any

import pytest
from concertino import Observation, Status
from concertino_bench import Grade, Grader, GraderServices, Submission, Task, Verdict
from concertino_bench.graders import (
    CallMatch,
    ChoiceGrader,
    Contains,
    EnvironmentGrader,
    ExactMatch,
    FinalState,
    JudgedState,
    LlmJudge,
    Mathematics,
    MultiAnswer,
    Numeric,
    TokenF1,
    UnitTests,
    Verbatim,
    all_graders,
)
from concertino_bench.graders.program_trial import read_programs
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from linear import assert_linear

GOLD = {"ground_truth": [{"f": {"a": [1, ""]}}], "functions": [{"name": "f", "parameters": {"properties": {"a": {}}}}]}
TASKS = {
    "exact-match": Task("t", "?", ("Paris",), "text"),
    "token-f1": Task("t", "?", ("Paris",), "text"),
    "verbatim": Task("t", "?", ('{"a": 1}',), "text"),
    "contains": Task("t", "?", ("Paris",), "text"),
    "numeric": Task("t", "?", ("5",), "number"),
    "math": Task("t", "?", ("\\frac12",), "math"),
    "choice": Task("t", "?", ("B",), "choice", metadata={"choices": ["Rome", "Paris"]}),
    "multi-answer": Task("t", "?", ("a", "b"), "answers", metadata={"ordered": False}),
    "call-match": Task("t", "?", (), "calls", metadata=GOLD),
    "unit-tests": Task("t", "?", (), "code", metadata={"tests": "pass", "entry_point": "f", "prompt": "def f():\n"}),
    "final-state": Task("t", "?", (), "state", metadata={"state": {"a": 1}}),
    "judged-state": Task("t", "?", (), "state", metadata={"state": {"a": 1}, "statements": ["The agent greeted."]}),
    "environment": Task("t", "?", (), "environment"),
    "llm-judge": Task("t", "?", ("Paris",), "text"),
}
GRADERS: dict[str, Grader] = {
    each.name: each
    for each in (
        ExactMatch(),
        TokenF1(),
        Verbatim(),
        Contains(),
        Numeric(),
        Mathematics(3.0),
        ChoiceGrader(),
        MultiAnswer(),
        CallMatch(),
        UnitTests(),
        FinalState(),
        JudgedState(),
        EnvironmentGrader(),
        LlmJudge(),
    )
}
PIECES = [
    "\\boxed{",
    "}",
    "{",
    "\\{",
    "<answer>",
    "</answer>",
    "finish[",
    "]",
    "the answer is ",
    "Answer: ",
    "#### ",
    "A: ",
    "$",
    "1,000",
    "3 or 4",
    "-",
    ".",
    "/",
    "0",
    "1e999",
    "10^{99}",
    "²",
    "٣",
    "½",
    "∞",
    "\\frac",
    "\\frac{1}{0}",
    "^",
    "_",
    "%",
    ",",
    "(B)",
    "**",
    "yes",
    "the",
    "\n",
    "\r",
    "\t",
    " ",
    "```python\n",
    "```",
    "def f(",
    "):",
    "[f(a=",
    "f(a=1)",
    "'",
    '"',
    "\\",
    '{"name": "f", "arguments": {"a": 1}}',
    "<tool_call>",
    "</think>",
    "<think>",
    "\0",
    "\ud800",
    "\ufeff",
    "é",
    "字",
    "🙂",
    "\\text{",
    "x = ",
    "\\le",
    "\\in",
    "(1, 2)",
    "\\begin{pmatrix}",
    "<<",
    ">>",
    "NaN",
    "None",
    "true",
    ": ",
    "; ",
    "<|begin_of_documents|>",
    "<|end_of_documents|>",
    "<function=f>",
    "9" * 400,
]
TEXTS = st.one_of(st.text(max_size=60), st.lists(st.sampled_from(PIECES), max_size=14).map("".join))
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)
STATES = JSON | st.dictionaries(st.sampled_from(["reached", "reward", "done", "a"]), JSON, max_size=4)
CALLS = st.lists(
    st.fixed_dictionaries({}, optional={"name": st.sampled_from(["f", "", "g"]), "arguments": JSON, "status": JSON}),
    max_size=3,
)


class Silent:
    """A bench whose sandbox says nothing and whose judge says what it was given last."""

    said: Any = None

    async def call(self, name: str, arguments: Any) -> Observation:
        return Observation("1", name, Status.OK, self.said)

    async def ask(self, role: str, request: Any) -> Any:
        from concertino import Reply

        return Reply(str(self.said), data=self.said)


def graded(name: str, submission: Submission, services: GraderServices) -> Grade:
    return asyncio.run(GRADERS[name].grade(TASKS[name], submission, services))


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in GRADERS if name != "math"])
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(text=TEXTS, calls=CALLS, state=STATES)
def test_a_grader_never_raises_whatever_it_is_given(name: str, text: str, calls: Any, state: Any) -> None:
    bench = Silent()
    bench.said = state
    seen = graded(name, Submission(text, calls, state), bench)  # type: ignore[arg-type]
    assert isinstance(seen.verdict, Verdict)
    assert seen.reason
    assert all(0 <= value <= 1 for value in seen.values.values())
    assert seen.to_json()["reason"]


@pytest.mark.slow
@settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(text=TEXTS)
def test_the_comparison_of_mathematics_never_raises(text: str) -> None:
    for said in (text, f"\\boxed{{{text}}}"):
        assert GRADERS["math"].judge(TASKS["math"], said).reason  # type: ignore[attr-defined]


@given(text=TEXTS)
def test_the_gold_itself_in_the_last_mark_is_right_whatever_stands_before(text: str) -> None:
    before = text.replace("<|begin_of_documents|>", "").replace("<think>", "").replace("<", "(")
    for name, gold in (("exact-match", "Paris"), ("numeric", "5")):
        said = Submission(f"{before}\n<answer>{gold}</answer>")
        assert graded(name, said, Silent()).verdict == "right"  # type: ignore[arg-type]


HOSTILE = [
    "\\boxed{",
    "\\boxed",
    "<answer>",
    "</answer>",
    "finish[",
    "]",
    "{",
    "}",
    "[",
    "answer is ",
    "answer: ",
    "(A)",
    "A ",
    "####",
    "A: ",
    "1,111",
    "1,",
    "9",
    "9 ",
    "1.",
    "-",
    "/",
    "$",
    "\n",
    " ",
    "\t",
    "```\n",
    "```python\n",
    "def f(",
    "f(",
    "(",
    '"',
    "'",
    "\\",
    '{"name":',
    '{"a": ',
    "<tool_call>",
    "<function=f>",
    "<<",
    "$x$",
    "\\frac{1}{2}",
    "a",
    "the ",
    "\\(",
    "<|begin_of_documents|>",
    "<information>",
    "</think>",
    "1 000 ",
    "1e9",
    "10^{999}",
    "\\text{",
    "*",
    "_",
    "; ",
    "the answer to the question ",
    "final answer is x. ",
    "f(a=1), ",
    "[f(a=",
    "Question:",
    "\nQ",
]
RARELY = ("exact-match", "numeric", "choice", "multi-answer")
TIMED = [*(pytest.param(name, marks=pytest.mark.soak) for name in RARELY), "call-match"]


@pytest.mark.slow
@pytest.mark.parametrize("name", TIMED)
def test_a_hostile_text_is_graded_in_linear_time(name: str) -> None:
    for piece in HOSTILE:
        _graded_in_linear_time(name, piece)


def _graded_in_linear_time(name: str, piece: str) -> None:
    # Long enough to tell a line from a square; 80 texts of a megabyte would take a minute.
    submission = Submission(_megabyte(piece)[:500_000])
    assert_linear(lambda: graded(name, submission, Silent()), 500_000)  # type: ignore[arg-type]


def _megabyte(piece: str) -> str:
    return (piece * (1_000_000 // len(piece) + 1))[:1_000_000]


@pytest.mark.soak
def test_a_hostile_megabyte_of_mathematics_takes_linear_time_here_and_its_limit_in_the_worker() -> None:
    """What compares is a process of its own, with five seconds; what reads is here."""
    grader: Any = GRADERS["math"]
    for piece in HOSTILE:
        text, started = _megabyte(piece), time.monotonic()
        assert_linear(lambda text=text: grader.judge(TASKS["math"], text), 1_000_000)
        assert time.monotonic() - started < 60, piece


@pytest.mark.slow
def test_programs_are_looked_for_in_linear_time() -> None:
    for piece in HOSTILE:
        text = _megabyte(piece)
        assert_linear(lambda text=text: read_programs(text, "f", "def f():\n"), 1_000_000)


def test_all_graders_have_names_kinds_and_needs_of_their_own() -> None:
    graders = all_graders()
    assert [each.name for each in graders] == [
        "exact-match",
        "token-f1",
        "verbatim",
        "contains",
        "numeric",
        "math",
        "choice",
        "multi-answer",
        "drop",
        "unit-tests",
        "input-output",
        "call-match",
        "call-match-official",
        "call-states",
        "final-state",
        "judged-state",
        "environment",
        "workflow-match",
        "llm-judge",
        "judge-simpleqa",
        "judge-hle",
        "judge-browsecomp-plus",
        "judge-frames",
    ]
    kinds = [kind for each in graders for kind in each.kinds]
    assert len(set(kinds)) == len(kinds)
    plain = {"text", "number", "plan", "math", "choice", "answers", "mention", "workflow", "spans"}
    assert {*kinds} == plain | {"code", "program", "calls", "state", "environment"}
    assert {each.name: each.needs for each in graders if each.needs} == {
        "unit-tests": ("tool:code/python",),
        "input-output": ("tool:code/python",),
        "judged-state": ("model:judge",),
        "llm-judge": ("model:judge",),
        "judge-simpleqa": ("model:judge",),
        "judge-hle": ("model:judge",),
        "judge-browsecomp-plus": ("model:judge",),
        "judge-frames": ("model:judge",),
    }


def test_importing_the_graders_imports_no_computer_algebra() -> None:
    program = (
        "import sys, concertino_bench.graders as g; g.all_graders();"
        "assert not {'sympy', 'math_verify', 'numpy'} & set(sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("kind", ["number", "math", "choice", "answers", "text"])
def test_a_task_without_an_answer_is_found_before_anything_is_graded(kind: str) -> None:
    (grader,) = [each for each in all_graders() if kind in each.kinds]
    with pytest.raises(ValueError, match="t"):
        grader.check(Task("t", "?", (), kind))
    choices = {"choices": ["1", "2"]} if kind == "choice" else {}
    grader.check(Task("t", "?", ("1",), kind, metadata=choices))
