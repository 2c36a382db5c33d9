"""Programs that want to pass without solving anything, and what honest ones may still do with their tests."""

# Programs stand here as they are.
# ruff: noqa: E501
from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from concertino import Observation
from concertino_bench import Grade, Submission, Task
from concertino_bench.graders import UnitTests

ABOVE = "import sys\nframe = sys._getframe()\nwhile frame:\n"
PARENT = "import os, signal\nparent = os.getppid()\n"
EVIL = """
class Evil{base}:
    def __eq__(self, other): return True
    __ne__ = __lt__ = __le__ = __ge__ = __gt__ = __contains__ = __bool__ = __eq__
    def __sub__(self, other): return 0
    __rsub__ = __abs__ = __round__ = __sub__
    def __hash__(self): return 0
    def __iter__(self): return iter([4, 4])
def double(x): return Evil({given})
"""


async def tried(program: str, *tests: str, bench: Any, prompt: str = "", entry: str = "double") -> Grade:
    metadata = {"prompt": prompt, "entry_point": entry, "tests": [*tests], "language": "python"}
    return await UnitTests().grade(Task("t", "?", (), "code", metadata=metadata), Submission(program), bench)


HOSTILE = {
    "the frame above reports": "import sys\nsys._getframe(1).f_locals['say'](passed=[True, True])\ndef double(x): return 0",
    "every frame above reports": f"""{ABOVE}    for space in (frame.f_locals, frame.f_globals):
        if 'say' in space: space['say'](passed=[True, True])
    frame = frame.f_back
def double(x): return 0""",
    "the tests are looked up in memory": """import gc
found = [each for each in gc.get_objects() if isinstance(each, (list, tuple))
         and any(isinstance(item, str) and 'assert double' in item for item in each)]
def double(x): return eval(found[0][0].rpartition('==')[2]) if found else 0""",
    "the script is read": """def double(x):
    import glob
    text = ''.join(open(file, errors='replace').read() for file in glob.glob('/box/*') + ['/proc/self/cmdline'])
    return int(text.partition('assert double(%d) == ' % x)[2].partition("'")[0])""",
    "the tests' memory is read": f"""{PARENT}def double(x):
    import re
    for process in (parent, 1):
        with open(f'/proc/{{process}}/maps') as maps, open(f'/proc/{{process}}/mem', 'rb', 0) as memory:
            for line in maps:
                start, end = (int(each, 16) for each in line.split()[0].split('-'))
                if 'rw' in line:
                    memory.seek(start)
                    found = re.search(b'assert double.%d. == (.)' % x, memory.read(end - start))
                    if found: return int(found[1])""",
    "the report's stream is opened": f"{PARENT}open(f'/proc/{{parent}}/fd/1', 'w').write('x')\ndef double(x): return 0",
    "the tests are killed": f"{PARENT}def double(x): os.kill(parent, signal.SIGKILL)",
    "it ends while a test waits": "import os\ndef double(x): os._exit(0)",
    "a module of its own is put before the tests'": """
open('random.py', 'w').write("import builtins; builtins.AssertionError = int\\ndef seed(x): import sys; sys.exit(0)")
open('/box/random.py', 'w').write("def seed(x): import os; os._exit(0)")
def double(x): return 0""",
    "names of Python mean something else": """
def double(x): return 0
def int(x): return 0
def isinstance(*_): return True
import operator as random
from operator import or_ as close""",
    "everything is equal to it": EVIL.format(base="", given=""),
    "a number is equal to everything": EVIL.format(base="(int)", given="0"),
    "a list is equal to everything": EVIL.format(base="(list)", given="[]"),
    "errors are equal to everything": """
class AssertionError(Exception):
    def __new__(cls, *_): raise SystemExit(0)
def double(x): raise AssertionError()""",
    "the answer is not a message": """
import os
for handle in range(3, 20):
    try: os.write(handle, b'["value", {"t": "tuple", "v": 3}, []]\\n["value", 4, []]\\n')
    except OSError: pass
def double(x): return 0""",
}


@pytest.mark.parametrize("how", HOSTILE)
async def test_a_program_cannot_forge_a_pass(how: str, sandbox_bench: Any) -> None:
    tests = ("assert double(2) == 4", "import random\nrandom.seed(1)\nassert int(double(4)) == 8")
    seen = await tried(HOSTILE[how], *tests, bench=sandbox_bench)
    assert seen.verdict == "wrong", seen
    assert not any(seen.marks), seen


@pytest.mark.parametrize("base", ["", "(int)", "(float)"])
async def test_an_object_that_is_near_everything_is_near_nothing(base: str, sandbox_bench: Any) -> None:
    tests = (
        "assert abs(double(2) - 4) < 1e-6",
        "assert abs(4 - double(2)) < 1e-6",
        "assert 3.9 < double(2) < 4.1",
        "assert double(2) != 0 and double(2) == 4",
        "assert 5 in double(2)",
    )
    seen = await tried(EVIL.format(base=base, given=""), *tests, bench=sandbox_bench)
    assert not any(seen.marks), seen


async def test_a_program_that_ends_in_a_test_that_swallows_everything_has_not_passed_it(sandbox_bench: Any) -> None:
    swallows = "try:\n    double(-1)\nexcept:\n    pass\nelse:\n    assert False"
    seen = await tried("import os\ndef double(x): os._exit(0)", swallows, "assert True", bench=sandbox_bench)
    assert (seen.verdict, any(seen.marks)) == ("wrong", False)


HONEST = """
import asyncio, collections, math
from collections import namedtuple
Point = namedtuple('Point', 'x y')
class Odd(ValueError): pass
class Stack:
    def __init__(self, *items): self.items = list(items)
    def push(self, item): self.items.append(item); return self
    def __len__(self): return len(self.items)
    def __add__(self, more): return Stack(*self.items, more)
    def __eq__(self, other): return self.items == other.items
    def __getitem__(self, place): return self.items[place]
    size = property(lambda self: len(self.items))
class Line(list): pass
def sort(items): items.sort()
def grid(rows): rows[0][0] = 9
def each(function, items): return [function(item) for item in items]
def count(n): yield from range(n)
def odd(x): raise Odd(x)
def key(x): return {}[x]
def same(x): return x
def make(n): return lambda x: x + n
async def slow(x): await asyncio.sleep(0); return x
"""


@pytest.mark.parametrize(
    "test",
    [
        "a = [3, 1, 2]; sort(a); assert a == [1, 2, 3]",
        "a = [[1], [2]]; grid(a); assert a == [[9], [2]]",
        "assert each(lambda x: x * 2, (1, 2)) == [2, 4] and each(str, [1]) == ['1']",
        "assert list(count(3)) == [0, 1, 2] and sum(count(4)) == 6 and next(count(1)) == 0",
        "try:\n    odd(3)\nexcept Odd as error:\n    assert isinstance(error, ValueError) and str(error) == '3'\nelse: assert 0",
        "try:\n    key('a')\nexcept KeyError: pass\nelse: assert 0",
        "import asyncio\nassert asyncio.run(slow(3)) == 3",
        "assert make(2)(3) == 5",
        "s = Stack(1); s.push(2).push(3); assert len(s) == s.size == 3 and s[-1] == 3 and isinstance(s, Stack)",
        "assert len(Stack(1) + 2) == 2 and Stack(1) + 2 == Stack(1, 2) and Stack(1) != Stack(2)",
        "s = Stack(); s.items = [5]; assert s.items == [5] and same(s).size == 1",
        "assert Point(1, 2) == (1, 2) and Point(1, 2).x == 1 and Line([1]) == [1] and same(Point(3, 4)).y == 4",
        "assert math.isclose(same(0.1) + 0.2, 0.3) and collections.Counter('aab') == same(collections.Counter('aba'))",
        "import datetime, fractions, decimal\nfor x in (datetime.date(2024, 1, 2), datetime.timedelta(1), 1j, b'a', {1: (2,)},"
        " fractions.Fraction(1, 3), decimal.Decimal('1.5'), 10**5000, -0.0, '\\ud800', {1}, frozenset('a'), range(3), None,"
        " True, float('inf')):\n    assert same(x) == x and type(same(x)) is type(x), x",
        "x = same(float('nan')); assert x != x",
        "import numpy as np\na = np.array([[1, 2], [3, 4]])\nassert (same(a) == a).all() and same(np.float32(2)) == 2",
        "from program import make as again\nassert again(1)(1) == 2",
    ],
)
async def test_a_test_may_do_with_a_program_what_it_could_in_one_process(test: str, sandbox_bench: Any) -> None:
    seen = await tried(HONEST, test, bench=sandbox_bench, entry="same")
    assert seen.verdict == "right", seen


async def test_helpers_of_the_prompt_stay_the_tests_own_and_its_stubs_are_the_programs(sandbox_bench: Any) -> None:
    prompt = (
        'def twist(x):\n    return x + 1\n\ndef other(x):\n    """Three."""\n\ndef double(x):\n    """Undo twist."""\n'
    )
    tests = ("assert double(twist(3)) == 3", "assert other(1) == 3")
    fake = "def twist(x): return x\ndef other(x): return 3\ndef double(x): return x"
    seen = await tried(fake, *tests, bench=sandbox_bench, prompt=prompt)
    assert seen.marks == (False, True)
    right = "def other(x): return 3\ndef double(x): return x - 1"
    assert (await tried(right, *tests, bench=sandbox_bench, prompt=prompt)).verdict == "right"


async def test_what_a_test_cannot_hand_over_is_no_fault_of_the_program(sandbox_bench: Any) -> None:
    test = "class Node: pass\nassert double(Node()) is None"
    seen = await tried("def double(x): return None", test, bench=sandbox_bench)
    assert seen.verdict == "unparsable"
    assert "not graded, a test hands over a Node" in seen.reason


class Alone:
    """A bench whose sandbox lets a script have no second process."""

    def __init__(self, bench: Any) -> None:
        self.bench = bench

    async def call(self, name: str, arguments: Mapping[str, Any]) -> Observation:
        code = f"import resource\nresource.setrlimit(resource.RLIMIT_NPROC, (0, 0))\n{arguments['code']}"
        done: Observation = await self.bench.call(name, {**arguments, "code": code})
        return done


async def test_a_sandbox_without_a_second_process_is_named_in_the_reason(sandbox_bench: Any) -> None:
    seen = await tried("def double(x): return 2 * x", "assert double(2) == 4", bench=Alone(sandbox_bench))
    assert seen.verdict == "unparsable"
    assert "not graded, this sandbox gives the program no process of its own" in seen.reason
