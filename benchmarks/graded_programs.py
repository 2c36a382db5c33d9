"""S25: programs graded by what they print: 1,000 programs with 20 tests each, whose verdicts are known.

    python benchmarks/graded_programs.py [--json] [--quick]

Eight tasks in turn; three of four programs solve theirs. The others are wrong in one of ten ways: another output, a
crash, an early end, no end, too much memory, a forged report, the grader's files read, its memory read, no output,
and code that is not Python. All go through the executor and the strongest sandbox that this machine grants.
`--quick` takes a tenth of the programs.
"""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections import Counter
from collections.abc import Callable
from random import Random
from typing import NamedTuple

from concertino import Executor, Pool
from concertino_bench import Submission, Task
from concertino_bench.graders import InputOutput
from concertino_bench.runner.services import PoolServices
from measure import Row, script

PROGRAMS, TESTS = 1_000, 20
SECONDS = 2.0
"""Of each run: what most contests allow."""


class Family(NamedTuple):
    """A task: how an input is drawn, what its output is, and a program that solves it."""

    draw: Callable[[Random], str]
    solve: Callable[[str], str]
    program: str


def numbers(random: Random) -> str:
    """A line with a count, and a line of so many numbers."""
    drawn = [random.randint(-1000, 1000) for _ in range(random.randint(1, 200))]
    return f"{len(drawn)}\n{' '.join(map(str, drawn))}\n"


def words(random: Random) -> str:
    """A line of words."""
    return " ".join("".join(random.choices("abcde", k=random.randint(1, 6))) for _ in range(50)) + "\n"


def line_of(text: str) -> list[int]:
    """The numbers of the second line."""
    return [int(word) for word in text.split()[1:]]


READ = "n = int(input())\na = list(map(int, input().split()))\n"
FAMILIES = (
    Family(numbers, lambda text: str(sum(line_of(text))), READ + "print(sum(a))"),
    Family(numbers, lambda text: " ".join(map(str, sorted(line_of(text)))), READ + "print(*sorted(a))"),
    Family(
        numbers,
        lambda text: str(sum(line_of(text)) / len(line_of(text))),
        READ + "print(f'{sum(a) / n:.9f}')",
    ),
    Family(
        numbers,
        lambda text: "\n".join(map(str, reversed(line_of(text)))),
        "import sys\nfor word in reversed(sys.stdin.read().split()[1:]):\n    print(word)",
    ),
    Family(
        words,
        lambda text: "\n".join(f"{word} {count}" for word, count in sorted(Counter(text.split()).items())),
        "from collections import Counter\nfor word, count in sorted(Counter(input().split()).items()):\n"
        "    print(word, count)",
    ),
    Family(words, lambda text: str(len(set(text.split()))), "print(len(set(input().split())))"),
    Family(
        lambda random: f"{random.randint(2, 20_000)}\n",
        lambda text: str(sum(all(each % by for by in range(2, int(each**0.5) + 1)) for each in range(2, int(text)))),
        "n = int(input())\nsieve = [True] * max(n, 2)\nsieve[:2] = [False] * 2\n"
        "for i in range(2, int(n ** 0.5) + 1):\n    if sieve[i]:\n"
        "        for j in range(i * i, n, i): sieve[j] = False\nprint(sum(sieve[:n]))",
    ),
    Family(
        lambda random: f"{random.randint(1, 10**9)} {random.randint(1, 10**9)}\n",
        lambda text: str(pow(*map(int, text.split()), 1_000_000_007)),
        "a, b = map(int, input().split())\nprint(pow(a, b, 10**9 + 7))",
    ),
)
WRONG = {
    "another output": "print(input().split()[0], 'x')",
    "a crash": "print(1 // 0)",
    "an early end": "import os\nos._exit(0)",
    "no end": "while True: pass",
    "too much memory": "x = bytearray(1 << 30)",
    "a forged report": 'print(\'{"marks": "11111111111111111111", "trouble": "", "over": true}\')',
    "the grader's files": (
        "import glob\nfor name in glob.glob('/box/*') + glob.glob('/tmp/*'):\n"
        "    try: print(open(name, errors='replace').read())\n    except OSError: pass"
    ),
    "the grader's memory": (
        "import os\ngiven = input()\nstat = open(f'/proc/{os.getppid()}/stat').read()\n"
        "pid = int(stat.rpartition(')')[2].split()[1])\n"
        "print(given.encode() in open(f'/proc/{pid}/mem', 'rb').read(1 << 20))"
    ),
    "no output": "input()",
    "not Python": "print(",
}


def drawn(count: int) -> list[tuple[Task, str, str]]:
    """Tasks, a program for each, and what is known about it: "right", or how it is wrong."""
    random, found, ways = Random(7), [], list(WRONG)
    for number in range(count):
        family = FAMILIES[number % len(FAMILIES)]
        given = [family.draw(random) for _ in range(TESTS)]
        tests = [{"input": text, "output": family.solve(text)} for text in given]
        metadata = {"tests": tests, "seconds": SECONDS, "tolerance": 1e-6}
        way = ways[number // 4 % len(ways)] if number % 4 == 3 else "right"
        program = WRONG.get(way, family.program)
        found.append((Task(f"p/{number}", "?", (), "program", metadata=metadata), program, way))
    # So that the slow ones do not all come at once.
    random.shuffle(found)
    return found


async def graded(cases: list[tuple[Task, str, str]]) -> tuple[float, list[str]]:
    """The seconds of all grades, and what was graded otherwise than it is known."""
    grader, pool = InputOutput(), Pool.installed("code/python")
    gate = asyncio.Semaphore(2 * (os.cpu_count() or 1))
    odd: list[str] = []

    async def one(executor: Executor, task: Task, program: str, way: str) -> None:
        async with gate, PoolServices(executor, pool, task.id) as services:
            grade = await grader.grade(task, Submission(program), services)
        wanted = {"right": "right", "not Python": "unparsable"}.get(way, "wrong")
        if grade.verdict != wanted or (way != "right" and any(grade.marks)):
            odd.append(f"{way}: {grade.verdict}, {grade.reason}")

    async with Executor() as executor:
        async with PoolServices(executor, pool, "warm") as services:
            await grader.grade(cases[0][0], Submission(cases[0][1]), services)
        began = time.perf_counter()
        await asyncio.gather(*(one(executor, *case) for case in cases))
        return time.perf_counter() - began, odd


def rows(quick: bool) -> list[Row]:
    """Time, and how many verdicts are not the known ones."""
    count = PROGRAMS // (10 if quick else 1)
    cases = drawn(count)
    seconds, odd = asyncio.run(graded(cases))
    wrong = sum(way != "right" for _, _, way in cases)
    return [
        Row("S25", f"{count:,} programs x {TESTS} tests", seconds, "s", 240.0 * count / PROGRAMS),
        Row("S25", f"the same, {wrong:,} of them wrong: another verdict", len(odd), "", 0.0, note="; ".join(odd[:3])),
    ]


if __name__ == "__main__":
    sys.exit(script(rows, __doc__))
