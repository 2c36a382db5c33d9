"""What an execution gives back, what it may use, and that nothing of it stays."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import subprocess
import sys
from pathlib import Path
from random import Random

import pytest
from concertino_code.sandbox.base import SandboxFault, SandboxUnavailable
from concertino_code.sandbox.jailed import JailedSandbox
from concertino_code.sandbox.limits import ScriptLimits
from concertino_code.sandbox.outcome import Ending
from jail_suite import survivors
from waiting import wait_until

pytestmark = pytest.mark.alone  # it counts marked processes, and those of `test_attacks.py` bear the same mark

MARK = "import ctypes; ctypes.CDLL(None).prctl(15, b'cncSURV', 0, 0, 0)\n"
FOUR = MARK + "import os, time\nos.fork(); os.fork()\nprint('up', flush=True)\ntime.sleep(600)"


def resident(pid: int) -> int:
    """KB of resident memory."""
    match = re.search(r"VmRSS:\s+(\d+)", Path(f"/proc/{pid}/status").read_text())
    assert match is not None
    return int(match[1])


def mounts() -> int:
    return len(Path("/proc/self/mounts").read_text().splitlines())


def children(pid: int) -> str:
    return Path(f"/proc/{pid}/task/{pid}/children").read_text()


def plain_python(main: Path) -> subprocess.CompletedProcess[str]:
    # Whatever measures coverage keeps the objects of a script alive beyond its end.
    own = {name: value for name, value in os.environ.items() if not name.startswith("COVERAGE_")}
    return subprocess.run([sys.executable, "-I", str(main)], capture_output=True, text=True, check=False, env=own)


def handles(pid: int | str) -> int:
    return sum(1 for _ in Path(f"/proc/{pid}/fd").iterdir())


# -- what comes back ---------------------------------------------------------------------------------------------


async def test_output_comes_back_verbatim_and_apart(sandbox: JailedSandbox) -> None:
    done = await sandbox.run("import sys\nprint('out\\tä')\nprint('err', file=sys.stderr)")
    assert (done.ending, done.exit_code, done.stdout.text, done.stderr.text) == (Ending.OK, 0, "out\tä\n", "err\n")


@pytest.mark.parametrize(
    ("code", "ending", "exit_code"),
    [
        ("raise SystemExit(3)", Ending.EXIT, 3),
        ("1 / 0", Ending.EXIT, 1),
        ("import os; os.kill(os.getpid(), 11)", Ending.SIGNAL, -11),
        ("import os; os._exit(0)", Ending.OK, 0),
        ("while True: pass", Ending.WALL, None),
        (
            "import os\nfor _ in range(3): os.fork()\nx = bytearray(b'x') * (90 << 20)\nimport time; time.sleep(60)",
            Ending.MEMORY,
            None,
        ),
    ],
)
async def test_every_way_to_end_has_its_name(
    sandbox: JailedSandbox, code: str, ending: Ending, exit_code: int | None
) -> None:
    wall = 0.5 if ending is Ending.WALL else 20.0
    done = await sandbox.run(code, limits=ScriptLimits(wall=wall))
    assert (done.ending, done.exit_code) == (ending, exit_code), done


@pytest.mark.slow
async def test_cpu_time_of_all_threads_is_bounded(sandbox: JailedSandbox) -> None:
    code = (
        "import os, signal\nfor _ in range(3): os.fork()\nsignal.signal(signal.SIGXCPU, signal.SIG_IGN)\n"
        "while True: pass"
    )
    done = await sandbox.run(code, limits=ScriptLimits(wall=280, cpu=1))
    assert done.ending is Ending.CPU


async def test_a_limit_that_passes_while_the_jail_is_set_up_is_a_timeout_and_no_fault(sandbox: JailedSandbox) -> None:
    await sandbox.run("pass")
    for step in range(60):  # somewhere in these 20 ms, its first process is still root, and its supervisor is not
        done = await sandbox.run("import time; time.sleep(30)", limits=ScriptLimits(total=0.001 + step / 3_000))
        assert done.ending is Ending.WALL


async def test_output_of_a_timeout_is_kept(sandbox: JailedSandbox) -> None:
    done = await sandbox.run("print('first', flush=True)\nwhile True: pass", limits=ScriptLimits(wall=0.5))
    assert (done.ending, done.stdout.text) == (Ending.WALL, "first\n")


async def test_long_output_keeps_both_ends_and_the_true_count(sandbox: JailedSandbox) -> None:
    done = await sandbox.run("for i in range(100000): print(f'{i:09d}')", limits=ScriptLimits(output_kb=1, wall=30))
    assert done.ok
    assert done.stdout.total == 1_000_000
    assert done.stdout.head.startswith(b"000000000\n000000001")
    assert done.stdout.tail.endswith(b"000099999\n")
    assert len(done.stdout.head) + len(done.stdout.tail) == 1024
    assert f"[... {1_000_000 - 1024} bytes cut ...]" in done.stdout.text


async def test_a_script_may_have_some_dozen_threads(sandbox: JailedSandbox) -> None:
    code = (
        "import threading, time\ntotal = []\ndef work(): total.append(sum(bytearray(10_000))); time.sleep(0.2)\n"
        "threads = [threading.Thread(target=work) for _ in range(24)]\n"
        "for t in threads: t.start()\nfor t in threads: t.join()\nprint(len(total))"
    )
    assert (await sandbox.run(code, limits=ScriptLimits(wall=60))).stdout.text == "24\n"


async def test_a_script_reads_its_input_and_its_files(sandbox: JailedSandbox) -> None:
    code = "print(input(), open('data/in.txt').read(), open('main.py').read()[:5])"
    done = await sandbox.run(code, stdin="typed\n", files={"data/in.txt": "stored"})
    assert done.stdout.text == "typed stored print\n"


@pytest.mark.parametrize("name", ["../x", "/etc/x", "", "a/../../x", "a\0b"])
async def test_a_file_outside_the_folder_is_refused(sandbox: JailedSandbox, name: str) -> None:
    with pytest.raises(ValueError, match="file name"):
        await sandbox.run("pass", files={name: b""})


async def test_artefacts_come_back_and_nothing_else_does(sandbox: JailedSandbox) -> None:
    code = (
        "import os\nopen('a.bin', 'wb').write(bytes(range(256)))\n"
        "os.mkdir('d'); f = open('d/b.txt', 'w'); f.write('unflushed')\n"
        "os.symlink('/etc/passwd', 'link'); os.symlink('/etc', 'links'); os.mkfifo('pipe')\n"
        "open('big', 'wb').truncate(9 << 20)"
    )
    names = ["a.bin", "d/b.txt", "link", "links/passwd", "pipe", "d", "big", "none"]
    done = await sandbox.run(code, artefacts=names)
    assert done.ok, done.stderr.text
    assert done.artefacts["a.bin"].data == bytes(range(256))
    assert done.artefacts["d/b.txt"].data == b"unflushed"
    assert list(done.artefacts) == names
    for name in names[2:]:
        assert done.artefacts[name].error, name
        assert done.artefacts[name].data == b"", name


async def test_randomness_differs_unless_a_seed_is_given(sandbox: JailedSandbox) -> None:
    code = "import random, numpy\nprint(random.random(), numpy.random.rand())"
    free = [(await sandbox.run(code)).stdout.text for _ in range(2)]
    seeded = [(await sandbox.run(code, seed=7)).stdout.text for _ in range(2)]
    assert free[0] != free[1]
    assert seeded[0] == seeded[1] != ""


async def test_code_that_is_no_text_for_a_file_is_an_error_of_the_script(sandbox: JailedSandbox) -> None:
    done = await sandbox.run("print('\ud800')")
    assert done.ending is Ending.EXIT
    assert "Error" in done.stderr.text


# -- as plain Python does it ---------------------------------------------------------------------------------------

ORDINARY = [
    "print(1)",
    "1/0",
    "def f():\n    return {}['x']\nf()",
    "raise ValueError('a\\nb')",
    "import nothing_there",
    "print(",
    "x = 1\n  y = 2",
    "raise SystemExit",
    "raise SystemExit('bye')",
    "import sys; sys.exit(2)",
    "assert 1 == 2, 'no'",
    "[1, 2][5]",
    "int('x')",
    "class A: pass\nA().b",
    "def g(n):\n    return g(n + 1)\ng(0)",
    "try:\n    1/0\nexcept ZeroDivisionError as e:\n    raise RuntimeError('outer') from e",
    "try:\n    1/0\nexcept ZeroDivisionError:\n    {}['k']",
    "raise KeyboardInterrupt",
    "raise ExceptionGroup('g', [ValueError(1), TypeError(2)])",
    "import warnings; warnings.warn('careful')",
    "e = ValueError('x'); e.add_note('a note'); raise e",
    "print(__name__, __file__[-7:], __builtins__.__name__)",
    "import sys; sys.stdout.write('no newline')",
    "import threading\nthreading.Thread(target=lambda: 1/0, name='T').start()",
    "import atexit; atexit.register(print, 'at exit'); print('before')",
    "class D:\n    def __del__(self): print('gone')\nd = D()",
    "lambda: (yield)\nprint(undefined_name)",
    "from math import nothing",
    "print(*[i for i in range(3)], sep='-', end='!')",
    "exec('1/0')",
    "import sys; print(sys.argv[0][-7:], len(sys.argv))",
    "'abc'.foo(1,\n  2)",
    "async def a():\n    1/0\nimport asyncio; asyncio.run(a())",
]


@pytest.mark.parametrize("code", ORDINARY)
async def test_a_script_ends_and_prints_as_under_plain_python(
    sandbox: JailedSandbox, code: str, tmp_path: Path
) -> None:
    main = tmp_path / "main.py"
    main.write_text(code)
    plain = plain_python(main)
    done = await sandbox.run(code)
    expected = (plain.returncode, plain.stdout, plain.stderr.replace(str(main), "/box/main.py"))
    if "KeyboardInterrupt" in code:
        expected = (1, expected[1], expected[2])  # plain Python kills itself by SIGINT
    seen = (done.exit_code, done.stdout.text, re.sub(r"0x[0-9a-f]+", "0x", done.stderr.text))
    assert seen == (*expected[:2], re.sub(r"0x[0-9a-f]+", "0x", expected[2]))


async def test_nothing_of_one_script_is_seen_by_the_next(sandbox: JailedSandbox) -> None:
    leave = (
        "import builtins, json, os, sys\nbuiltins.LEFT = 1; json.LEFT = 1; sys.path.insert(0, '/left')\n"
        "for d in ('/box', '/tmp', '/dev/shm'): open(d + '/left', 'w').write('x')\nos.environ['LEFT'] = '1'"
    )
    look = (
        "import builtins, json, os, sys\n"
        "print(hasattr(builtins, 'LEFT'), hasattr(json, 'LEFT'), '/left' in sys.path, 'LEFT' in os.environ,"
        # the folder of an interpreter that lives under /tmp is no left-over
        " [[n for n in os.listdir(d) if n not in sys.prefix.split('/')] for d in ('/box', '/tmp', '/dev/shm')])"
    )
    for _ in range(20):
        first, second = await asyncio.gather(sandbox.run(leave), sandbox.run(look))
        third = await sandbox.run(look)
        assert first.ok
        clean = "False False False False [['main.py'], [], []]\n"
        assert (second.stdout.text, third.stdout.text) == (clean, clean)


# -- nothing stays -------------------------------------------------------------------------------------------------


@pytest.mark.slow
async def test_nothing_is_left_after_hundreds_of_executions(sandbox: JailedSandbox) -> None:
    await asyncio.gather(*(sandbox.run("print(1)") for _ in range(8)))
    zygote = sandbox.process_id
    assert zygote is not None
    before = handles("self"), handles(zygote), resident(zygote), mounts()
    places = Semaphore(8)

    async def one(number: int) -> None:
        async with places:
            if number % 10 == 0:
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(0.05):
                        await sandbox.run(FOUR)
            elif number % 10 == 1:
                assert (await sandbox.run(FOUR, limits=ScriptLimits(wall=0.1))).ending is Ending.WALL
            else:
                assert (await sandbox.run("print(1)")).ok

    await asyncio.gather(*(one(number) for number in range(400)))
    await wait_until(lambda: not survivors())
    await wait_until(lambda: not children(zygote))
    after = handles("self"), handles(zygote), resident(zygote), mounts()
    assert after[0] <= before[0]  # fewer where a thread of an earlier test ended meanwhile
    assert after[1] == before[1]
    assert abs(after[2] - before[2]) < 5_000
    assert after[3] == before[3]


Semaphore = asyncio.Semaphore

_CHILD = """
import asyncio, sys
from concertino_code.sandbox.jailed import JailedSandbox
async def main():
    sandbox = JailedSandbox(preload=())
    runs = [asyncio.ensure_future(sandbox.run(sys.argv[1])) for _ in range(8)]
    await sandbox.run("print(1)")
    await asyncio.sleep(1.0)
    print(sandbox.process_id, flush=True)
    await asyncio.gather(*runs)
asyncio.run(main())
"""


@pytest.mark.parametrize("victim", ["caller", "zygote"])
async def test_no_process_survives_the_death_of_caller_or_zygote(namespaces: None, victim: str) -> None:
    caller = subprocess.Popen(  # noqa: ASYNC220
        [sys.executable, "-c", _CHILD, FOUR], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    assert caller.stdout is not None
    with caller, caller.stdout:
        zygote = int(await asyncio.to_thread(caller.stdout.readline))
        await wait_until(lambda: len(survivors()) == 32)
        if victim == "zygote":
            caller.send_signal(19)  # SIGSTOP: the caller cannot help, nor start again
        os.kill(caller.pid if victim == "caller" else zygote, 9)
        await wait_until(lambda: not survivors())
        caller.kill()


async def test_a_dead_zygote_is_replaced_and_no_execution_is_lost(quick_sandbox: JailedSandbox) -> None:
    await quick_sandbox.run("print(1)")
    first = quick_sandbox.process_id
    assert first is not None
    runs = [asyncio.ensure_future(quick_sandbox.run("import time; time.sleep(0.5); print(2)")) for _ in range(6)]
    await asyncio.sleep(0.2)
    os.kill(first, 9)
    assert [(await run).stdout.text for run in runs] == ["2\n"] * 6
    assert quick_sandbox.process_id != first


async def test_a_sandbox_in_a_forked_process_is_its_own(quick_sandbox: JailedSandbox) -> None:
    await quick_sandbox.run("print(1)")
    first = quick_sandbox.process_id
    child = os.fork()
    if child == 0:
        os._exit(0 if quick_sandbox.process_id is None else 1)
    assert os.waitpid(child, 0)[1] == 0  # noqa: ASYNC222
    assert quick_sandbox.process_id == first
    assert (await quick_sandbox.run("print(2)")).ok


def test_one_sandbox_serves_several_event_loops(quick_sandbox: JailedSandbox) -> None:
    for number in range(3):
        assert asyncio.run(quick_sandbox.run(f"print({number})")).stdout.text == f"{number}\n"


async def test_a_cancelled_execution_is_gone_at_once(sandbox: JailedSandbox) -> None:
    await sandbox.run("print(1)")
    random = Random(5)
    for _ in range(40):
        running = asyncio.ensure_future(sandbox.run(FOUR))
        await asyncio.sleep(random.random() * 0.06)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
    await wait_until(lambda: not survivors())


async def test_a_closed_sandbox_refuses(namespaces: None) -> None:
    sandbox = JailedSandbox(preload=())
    await sandbox.run("print(1)")
    await sandbox.close()
    await sandbox.close()
    with pytest.raises(SandboxUnavailable, match="closed"):
        await sandbox.run("print(1)")


async def test_an_interpreter_that_is_not_there_is_named(namespaces: None) -> None:
    sandbox = JailedSandbox(python="/nowhere/python")
    with pytest.raises(SandboxUnavailable, match="/nowhere/python"):
        await sandbox.run("print(1)")
    await sandbox.close()


async def test_a_jail_that_cannot_be_set_up_is_no_fault_of_the_script(quick_sandbox: JailedSandbox) -> None:
    with pytest.raises(SandboxFault, match="No space left"):
        await quick_sandbox.run("print(1)", limits=ScriptLimits(inodes=5), files={f"f{n}": b"" for n in range(9)})


# -- one against another -------------------------------------------------------------------------------------------


async def test_a_flood_of_output_costs_the_caller_no_memory(sandbox: JailedSandbox) -> None:
    await sandbox.run("print(1)")
    before = resident(os.getpid())
    done = await sandbox.run("import os\nb = b'x' * 65536\nwhile True: os.write(1, b)", limits=ScriptLimits(wall=1))
    assert done.ending is Ending.WALL
    assert done.stdout.total > 1 << 20
    assert resident(os.getpid()) - before < 2_000


async def test_a_gigabyte_of_output_is_no_timeout(sandbox: JailedSandbox) -> None:
    code = "import os\nb = b'x' * (1 << 20)\nfor _ in range(1024): os.write(1, b)"
    done = await sandbox.run(code, limits=ScriptLimits(wall=60, cpu=60))
    assert done.ok, done
    assert done.stdout.total == 1 << 30
    assert done.stdout.cut > 0


async def test_memory_of_a_tree_is_bounded_and_the_others_are_unharmed(sandbox: JailedSandbox) -> None:
    bomb = "import os\nfor _ in range(3): os.fork()\nx = []\nwhile True: x.append(bytearray(b'x') * (4 << 20))"
    runs = [sandbox.run(bomb, limits=ScriptLimits(tree_mb=200, wall=60, cpu=60)) for _ in range(3)]
    *bombs, other = await asyncio.gather(*runs, sandbox.run("print(sum(range(10**6)))", limits=ScriptLimits(wall=60)))
    assert {done.ending for done in bombs} == {Ending.MEMORY}
    assert all(done.peak_bytes < 2 * 200 << 20 for done in bombs), [done.peak_bytes >> 20 for done in bombs]
    assert other.ok


async def test_a_fork_bomb_takes_no_process_from_another_script(sandbox: JailedSandbox) -> None:
    bomb = "import os, time\nwhile True:\n    try: os.fork()\n    except OSError: time.sleep(0.05)"
    bombs = [asyncio.ensure_future(sandbox.run(bomb, limits=ScriptLimits(wall=30, cpu=30))) for _ in range(2)]
    code = (
        "import threading\nfor _ in range(8): threading.Thread(target=int).start()\n"
        "import os\nif os.fork() == 0: os._exit(0)\nos.wait(); print('ok')"
    )
    done = await asyncio.gather(*(sandbox.run(code, limits=ScriptLimits(wall=60)) for _ in range(12)))
    for running in bombs:
        running.cancel()
    await asyncio.gather(*bombs, return_exceptions=True)
    assert [one.stdout.text for one in done] == ["ok\n"] * 12
