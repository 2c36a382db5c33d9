"""Programs: tried in the real sandbox, and what comes of a sandbox that fails."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from concertino import ErrorInfo, Observation, Status
from concertino_bench import Submission, Task
from concertino_bench.graders import UnitTests
from concertino_bench.graders.program_trial import read_programs

PROMPT = 'from typing import List\n\ndef double(x: int) -> int:\n    """Twice x."""\n'
TASK = Task(
    "t",
    "?",
    (),
    "code",
    metadata={
        "prompt": PROMPT,
        "entry_point": "double",
        "tests": ["assert double(2) == 4", "assert double(0) == 0"],
        "language": "python",
    },
)
RIGHT = "def double(x):\n    return 2 * x"


@pytest.mark.parametrize(
    ("text", "verdict", "reason"),
    [
        (RIGHT, "right", "all tests pass"),
        (f"Sure:\n```python\n{RIGHT}\n```\nUse it well.", "right", "all tests pass"),
        ("    return x + x\n", "right", "all tests pass"),
        (f"Here you are:\n\n{RIGHT}", "right", "all tests pass"),
        (f"```\n{RIGHT}", "right", "all tests pass"),
        (f"{RIGHT}\nif __name__ == '__main__':\n    print(double(int(input())))", "right", "all tests pass"),
        ("def double(x: List) -> List:\n    return 2 * x", "right", "all tests pass"),
        (f"print('x' * 300_000)\n{RIGHT}", "right", "all tests pass"),
        ("def double(x):\n    return 4", "wrong", "1 of 2 tests pass; test 2 fails: AssertionError"),
        ("def triple(x):\n    return 3 * x", "wrong", "0 of 2 tests pass"),
        ("import os\nos._exit(0)", "wrong", "the program ended before its tests were done"),
        ("raise SystemExit(0)", "wrong", "the program fails when it is loaded: SystemExit"),
        (f"{RIGHT}\nimport sys\nsys.modules['os'].abort()", "wrong", "the program crashed the interpreter"),
        ("def double(x) return", "unparsable", "the program is not Python: SyntaxError"),
        ("I am sorry, I cannot.", "unparsable", "the program is not Python"),
        ("x = '\ud800'\n" + RIGHT, "unparsable", "the program is not Python: UnicodeEncodeError"),
        ("\0", "unparsable", "the program is not Python"),
        ("", "unparsable", "there is no program"),
        ("x = 1\n" * 50_000, "unparsable", "longer than 200,000 characters"),
    ],
)
async def test_a_program_is_right_only_if_every_test_passes(
    text: str, verdict: str, reason: str, sandbox_bench: Any
) -> None:
    seen = await UnitTests().grade(TASK, Submission(text), sandbox_bench)
    assert (seen.verdict, reason in seen.reason) == (verdict, True), seen


@pytest.mark.slow
async def test_a_program_that_does_not_end_is_wrong(sandbox_bench: Any) -> None:
    seen = await UnitTests().grade(TASK, Submission("while True: pass"), sandbox_bench)
    assert seen.verdict == "wrong"
    assert "did not end in time" in seen.reason or "CPU time" in seen.reason


async def test_the_share_of_tests_that_pass_is_told(sandbox_bench: Any) -> None:
    seen = await UnitTests().grade(TASK, Submission("def double(x):\n    return 4"), sandbox_bench)
    assert (seen.marks, seen.share, dict(seen.values)) == ((True, False), 0.5, {"passed": 0.5})


async def test_what_a_program_prints_is_not_believed(sandbox_bench: Any) -> None:
    fake = "import os, sys\nos.write(1, b'{\"passed\": [true, true]}\\n')\nos._exit(0)\n" + RIGHT
    assert (await UnitTests().grade(TASK, Submission(fake), sandbox_bench)).verdict == "wrong"


class FailingBench:
    """A bench whose sandbox fails."""

    def __init__(self, outcome: Observation | Exception) -> None:
        self.outcome = outcome

    async def call(self, name: str, arguments: Mapping[str, Any]) -> Observation:
        if isinstance(self.outcome, Exception):
            raise self.outcome
        return self.outcome


@pytest.mark.parametrize(
    "outcome",
    [
        RuntimeError("the machine is on fire"),
        *(
            Observation("1", "code/python", status, None, ErrorInfo(code, "it is not there"))
            for status, code in (
                (Status.EXEC_ERR, "unavailable"),
                (Status.PARSE_ERR, "unknown_name"),
                (Status.TIMEOUT, "queue_deadline"),
                (Status.EXEC_ERR, "budget_exhausted"),
                (Status.EXEC_ERR, "cancelled"),
                (Status.TIMEOUT, "deadline"),
            )
        ),
    ],
)
async def test_a_fault_of_the_sandbox_is_never_the_programs(outcome: Observation | Exception) -> None:
    seen = await UnitTests().grade(TASK, Submission(RIGHT), FailingBench(outcome))  # type: ignore[arg-type]
    assert seen.verdict == "unparsable"
    assert seen.reason.startswith("not graded, the sandbox failed: ")


def test_the_block_that_defines_the_function_is_the_program() -> None:
    text = f"```python\n{RIGHT}\n```\nFor example:\n```python\nprint(double(4))\n```\n```console\n$ x\n```"
    assert read_programs(text, "double", PROMPT) == [f"{RIGHT}\n"]
    assert read_programs("```python\nprint(1)\n```", "double", "")[0] == "print(1)\n"


async def test_a_task_that_cannot_be_tried_is_refused(no_bench: Any) -> None:
    for metadata, why in (({}, "expected a script"), ({"tests": "x", "language": "java"}, "runs Python only")):
        with pytest.raises(ValueError, match=why):
            await UnitTests().grade(Task("t", "?", (), "code", metadata=metadata), Submission("x"), no_bench)
        with pytest.raises(ValueError, match=why):
            UnitTests().check(Task("t", "?", (), "code", metadata=metadata))


def test_another_sandbox_is_another_need() -> None:
    assert (UnitTests().needs, UnitTests("mine/python").needs) == (("tool:code/python",), ("tool:mine/python",))
