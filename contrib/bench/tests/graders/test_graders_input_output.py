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
        (
            "import threading\nthreading.Thread(target=lambda: print(sum(map(int, input().split())))).start()",
            "right",
            "all",
        ),
        (
            "import atexit, io, sys\nreal, sys.stdout = sys.stdout, io.StringIO()\n"
            "atexit.register(lambda: real.write(sys.stdout.getvalue()))\nprint(sum(map(int, input().split())))",
            "right",
            "all",
        ),
        (f"if __name__ == '__main__':\n    {RIGHT.replace(chr(10), '; ')}\n    exit(0)", "right", "all tests pass"),
        (
            "import sys\nsys.setrecursionlimit(10**6)\nf = lambda n: n and 1 + f(n - 1)\nf(20000)\n" + RIGHT,
            "right",
            "all",
        ),
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


REPORT = '{"marks": "1111", "trouble": "", "over": true, "passed": [true, true, true, true]}'
PARENTS = (
    "import os\nparent = os.getppid()\ngrand = int(open(f'/proc/{parent}/stat').read().rpartition(')')[2].split()[1])\n"
)
HOSTILE = {
    "it ends at once": "raise SystemExit(0)",
    "it ends without an interpreter's end": "import os\nos._exit(0)",
    "it prints a report": f"print({REPORT!r})",
    "it writes a report to every stream": f"import os\nfor place in range(64):\n    try: os.write(place, b'\\n' + {REPORT!r}.encode() + b'\\n')\n    except OSError: pass",
    "it writes messages of the server": """import os
for place in range(64):
    try: os.write(place, b'{"ended": 0, "trouble": "", "size": 2}\\n1\\n' * 4)
    except OSError: pass""",
    "it reads files": """import glob
text = ''.join(open(file, errors='replace').read() for file in glob.glob('/box/*') + glob.glob('/tmp/*') + ['/proc/self/cmdline'])
print(text[-50:] if 'tests' in text else '')""",
    "it looks through memory": """import gc
given = input()
for each in gc.get_objects():
    if isinstance(each, (list, tuple)) and len(each) == 2 and each[0] == given + '\\n': print(each[1])""",
    "it looks through the stack": """import sys
frame = sys._getframe()
while frame:
    for space in (frame.f_locals, frame.f_globals):
        for name in ('tests', 'test', 'marks'):
            if name in space: print(space[name])
    frame = frame.f_back""",
    "it reads the memory of the processes above": PARENTS
    + """import re
given = input()
for process in (parent, grand, 1):
    try:
        with open(f'/proc/{process}/maps') as maps, open(f'/proc/{process}/mem', 'rb', 0) as memory:
            for line in maps:
                start, end = (int(each, 16) for each in line.split()[0].split('-'))
                if 'rw' in line:
                    memory.seek(start)
                    found = re.search(rb'"%s\\\\n", "(\\d+)' % given.encode(), memory.read(end - start))
                    if found: print(found[1].decode()); raise SystemExit
    except OSError: pass""",
    "it opens the streams above": PARENTS
    + f"for process in (parent, grand):\n    for place in range(9):\n        try: open(f'/proc/{{process}}/fd/{{place}}', 'w').write({REPORT!r})\n        except OSError: pass",
    "it kills what runs it": f"{PARENTS}import signal\nos.kill(parent, signal.SIGKILL)",
    "it kills the judge": f"{PARENTS}import signal\nos.kill(grand, signal.SIGKILL)",
    "it leaves a module for the judge": "for folder in ('.', '/box', '/tmp'):\n    for name in ('json', 'decimal', 'zlib', 'base64'):\n        try: open(f'{folder}/{name}.py', 'w').write('import os; os._exit(0)')\n        except OSError: pass",
    "it is equal to everything": "class Same(str):\n    __eq__ = lambda *_: True\n    __hash__ = str.__hash__\nprint(Same('x'))",
    "it leaves a process behind": "import os, time\nif os.fork() == 0:\n    time.sleep(1)\nos._exit(0)",
    "it prints without end": "print('1 ' * (1 << 26))",
}


@pytest.mark.parametrize("how", HOSTILE)
async def test_a_program_that_does_not_solve_its_task_passes_no_test(how: str, sandbox_bench: Any) -> None:
    seen = await tried(HOSTILE[how], sandbox_bench, SUM[1:])
    assert (seen.verdict, any(seen.marks)) == ("wrong", False), seen


@pytest.mark.slow
@pytest.mark.parametrize(
    "program", ["while True: pass", "import time\ntime.sleep(60)", "input()\ninput()\nwhile True: pass"]
)
async def test_a_program_that_does_not_end_is_stopped_at_its_limit(program: str, sandbox_bench: Any) -> None:
    guarded = f"first = open(0).read()\nif first[0] == '0':\n    print(1)\nelse:\n    {program.replace(chr(10), chr(10) + '    ')}"
    seen = await tried(guarded, sandbox_bench, seconds=0.5)
    assert (seen.verdict, seen.marks) == ("wrong", (True, False, False, False))
    assert "test 2 of 4 fails" in seen.reason


@pytest.mark.slow
async def test_tests_that_one_sandbox_has_no_time_for_are_run_in_the_next(sandbox_bench: Any) -> None:
    calls: list[object] = []

    class Counted:
        async def call(self, name: str, arguments: Any) -> Any:
            calls.append(name)
            return await sandbox_bench.call(name, arguments)

        async def ask(self, role: str, request: Any) -> Any:
            raise AssertionError(role)

    grader = InputOutput(seconds=0.8, call_seconds=1.0)
    seen = await grader.grade(task(SUM), Submission("import time\ntime.sleep(0.3)\n" + RIGHT), Counted())
    assert (seen.verdict, seen.marks) == ("right", (True,) * 4)
    assert 1 < len(calls) <= 4


def out(output: str, given: str = "") -> list[dict[str, str]]:
    return [{"input": given, "output": output}]


@pytest.mark.parametrize(
    ("printed", "expected", "rules", "right"),
    [
        ("1  2\\n3", "1 2 3", {}, True),
        ("1 2", "1 2 3", {}, False),
        ("yes", "YES", {}, False),
        ("yes", "YES", {"ignore_case": True}, True),
        ("0.50", "0.5", {}, False),
        ("0.50", "0.5", {"compare": "lines"}, True),
        ("1 2\\n", "1 2", {"compare": "lines"}, True),
        ("1\\n2", "1 2", {"compare": "lines"}, False),
        ("a  b", "a b", {"compare": "lines"}, False),
        ("0.333", "0.33333", {"tolerance": 1e-5}, False),
        ("0.333331", "0.33333", {"tolerance": 1e-5}, True),
        ("1000001.5", "1000000", {"relative_tolerance": 1e-5}, True),
        ("1000001", "1000000", {"relative_tolerance": 1e-5}, False),
        ("nan", "1", {"tolerance": 1e-5}, False),
        ("inf", "1e400", {"tolerance": 1e-5}, False),
        ("1_0", "10", {"tolerance": 1e-5}, False),
        ("x", "1", {"tolerance": 1e-5}, False),
        ("", "", {}, True),
        ("é", "é", {}, True),
    ],
)
async def test_outputs_are_compared_by_the_rule_of_the_task(
    printed: str, expected: str, rules: dict[str, Any], right: bool, sandbox_bench: Any
) -> None:
    seen = await tried(f"print('{printed}')", sandbox_bench, out(expected), **rules)
    assert seen.verdict == ("right" if right else "wrong"), seen


@pytest.mark.parametrize(
    ("program", "right"),
    [
        ("def pair(a, b): return [a, b]", True),
        ("class Solution:\n    def pair(self, a, b): return a, b", True),
        ("class Solution:\n    def pair(self, a: List[int], b: Optional[int]) -> List[int]: return [a, b]", True),
        ("import numpy\ndef pair(a, b): return numpy.array([a, b])", True),
        ("def pair(a, b):\n    print('noise')\n    return [a, b]", True),
        ("def pair(a, b): return [b, a]", False),
        ("def pair(a, b): return {a, b}", False),
        ("def other(a, b): return [a, b]", False),
        ("def pair(a, b): raise SystemExit(0)", False),
        ("print('[1, 2]')\nraise SystemExit(0)", False),
        ("class Same(list):\n    __eq__ = lambda *_: True\ndef pair(a, b): return Same()", False),
    ],
)
async def test_a_function_is_called_with_the_arguments_and_its_result_is_compared(
    program: str, right: bool, sandbox_bench: Any
) -> None:
    tests = [{"input": "[1, 2]", "output": "[1, 2]"}, {"input": "[3, 4]", "output": "[3, 4]"}]
    seen = await tried(program, sandbox_bench, tests, entry_point="pair", imports=True)
    assert seen.verdict == ("right" if right else "wrong"), seen
    assert any(seen.marks) == right


async def test_objects_with_numbers_as_names_are_tables_of_numbers_and_lists_are_unwrapped(sandbox_bench: Any) -> None:
    tests = [{"input": '[{"1": 5}]', "output": "[5]"}]
    seen = await tried("def get(table): return table[1]", sandbox_bench, tests, entry_point="get", unwrap=True)
    assert seen.verdict == "right"
    seen = await tried("def get(table): return table[1]", sandbox_bench, tests, entry_point="get")
    assert seen.verdict == "wrong"


@pytest.mark.parametrize(
    ("metadata", "said"),
    [
        ({"tests": []}, "expected a list of"),
        ({"tests": [{"input": 1, "output": ""}]}, "expected a list of"),
        ({"tests": SUM, "language": "cpp"}, "runs Python only"),
        ({"tests": SUM, "compare": "bytes"}, "expected 'words' or 'lines'"),
        ({"tests": SUM, "seconds": -1}, "expected a number above 0"),
        ({"tests": SUM, "tolerance": True}, "expected a number above 0"),
    ],
)
def test_a_task_that_cannot_be_graded_is_refused_before_anything_is_run(metadata: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        InputOutput().check(Task("t", "?", (), "program", metadata=metadata))
