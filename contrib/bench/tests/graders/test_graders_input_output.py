"""Programs that read an input and print an output: tried in the real sandbox, with programs that only want to pass."""

# Programs stand here as they are.
# ruff: noqa: E501
from __future__ import annotations

from typing import Any

import pytest
from concertino_bench import Grade, Submission, Task
from concertino_bench.graders import InputOutput

SUM = [{"input": f"{n} {n + 1}\n", "output": f"{2 * n + 1}\n"} for n in range(4)]
RIGHT = "a, b = map(int, input().split())\nprint(a + b)"


def task(tests: list[dict[str, str]], **metadata: Any) -> Task:
    return Task("t", "?", (), "program", metadata={"tests": tests, **metadata})


async def tried(program: str, bench: Any, tests: list[dict[str, str]] = SUM, **metadata: Any) -> Grade:
    return await InputOutput(seconds=2).grade(task(tests, **metadata), Submission(program), bench)


@pytest.mark.parametrize(
    ("program", "verdict", "reason"),
    [
        (RIGHT, "right", "all tests pass"),
        (f"I add them.\n```python\n{RIGHT}\n```", "right", "all tests pass"),
        ("import sys\nprint(sum(map(int, sys.stdin.read().split())))", "right", "all tests pass"),
        ("import os\nos.write(1, b'%d' % sum(map(int, os.read(0, 99).split())))", "right", "all tests pass"),
        ("print(sum(map(int, open(0).read().split())))", "right", "all tests pass"),
        ("import threading\nthreading.Thread(target=lambda: print(sum(map(int, input().split())))).start()", "right", "all"),
        (
            "import atexit, io, sys\nreal, sys.stdout = sys.stdout, io.StringIO()\n"
            "atexit.register(lambda: real.write(sys.stdout.getvalue()))\nprint(sum(map(int, input().split())))",
            "right",
            "all",
        ),
        (f"if __name__ == '__main__':\n    {RIGHT.replace(chr(10), '; ')}\n    exit(0)", "right", "all tests pass"),
        ("import sys\nsys.setrecursionlimit(10**6)\nf = lambda n: n and 1 + f(n - 1)\nf(20000)\n" + RIGHT, "right", "all"),
        ("print(1)", "wrong", "1 of 4 tests pass; test 2 of 4 fails: word 1 is '1', expected '3'"),
        ("print(5 // int(input().split()[0]))", "wrong", "test 1 of 4 fails: ZeroDivisionError"),
        ("import os\nos._exit(0)", "wrong", "0 of 4 tests pass; test 1 of 4 fails: it prints nothing"),
        ("import os\nos.abort()", "wrong", "test 1 of 4 fails: the program crashed the interpreter: signal 6"),
        (f"{RIGHT}\nprint(0)", "wrong", "it prints 2 words, expected 1"),
        ("x = bytearray(1 << 29)\n" + RIGHT, "wrong", "MemoryError"),
        ("def f(:", "unparsable", "the program is not Python: SyntaxError"),
        ("", "unparsable", "there is no program"),
    ],
)
async def test_a_program_is_right_if_every_output_is(
    program: str, verdict: str, reason: str, sandbox_bench: Any
) -> None:
    seen = await tried(program, sandbox_bench)
    assert (seen.verdict, reason in seen.reason) == (verdict, True), seen
