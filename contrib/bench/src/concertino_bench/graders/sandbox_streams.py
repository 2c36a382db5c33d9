# It runs in a jail, where system calls are what counts: no pathlib.
# ruff: noqa: PTH108, PTH123, SIM115
"""The script that runs a program once per test, input in and output out. This file runs in the sandbox.

Three kinds of process: the *judge* has the tests; the *server*, a fresh interpreter, has the program and compiles it
once; each test is a *run*, a fork of the server, with its own memory, streams and limits. The invariants: of a test
only its input leaves the judge, one at a time; what comes back is only data, compared in the judge; and the report
stands behind a word that neither the server nor a run ever has. So a program can only answer. Files that a run leaves
in its folder stay for the next run: they hold nothing of the expected outputs.
"""

from __future__ import annotations

import fcntl
import json
import math
import os
import select
import sys
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    # There the text of that module stands behind this one.
    from .sandbox_hiding import hide, told

# More than any test expects; a run that prints more is stopped by the size of its file before.
_LONGEST = 1 << 26
_IMPORTS = """
from typing import *; from string import *; from re import *; from datetime import *; from collections import *
from heapq import *; from bisect import *; from copy import *; from math import *; from random import *
from itertools import *; from functools import *; from operator import *; from builtins import *
import bisect, collections, copy, datetime, decimal, fractions, functools, heapq, io, itertools, json, math, operator
import os, random, re, statistics, string, sys, time, typing
"""
"""What some benchmarks import for every program; `builtins` late, for `math.pow` must not hide Python's own."""


class Gone(Exception):
    """The server has ended, or did not speak as it should."""


class Late(Exception):
    """The server did not speak in time."""


# -- where the program is ----------------------------------------------------------------------------------------------


def serve(source: int, sink: int) -> None:
    """Compile the program, and run it once for each input that comes."""
    down, up = os.fdopen(source, "rb"), os.fdopen(sink, "wb")

    def say(data: bytes = b"", **head: Any) -> None:
        up.write(json.dumps({**head, "size": len(data)}).encode() + b"\n" + data)
        up.flush()

    job = json.loads(down.readline())
    code, trouble = compiled(job["programs"])
    say(unread=trouble)
    space = known() if job["imports"] else {}
    while code is not None and (line := down.readline()):
        given = down.read(json.loads(line))
        try:
            files = [stored(data) for data in (given, b"", b"")]
        except OSError as error:
            say(unfit="the input of a test cannot be stored in this sandbox: " + told(error))
            continue
        child = os.fork()
        if not child:
            run(code, space, job, files)
        # The exit of the run counts and not the end of its output, which a process that it left could hold open.
        ended = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        output, said = (whole(each) for each in files[1:])
        for each in files:
            os.close(each)
        say(output, ended=ended, trouble=said[-300:].decode(errors="replace"))
    os._exit(0)


def compiled(programs: list[str]) -> tuple[Any, str]:
    """The first program that can be compiled, or why the first cannot."""
    trouble = ""
    for program in programs:
        try:
            # Without `dont_inherit` this file's `from __future__` import would hold for the program too.
            return compile(program, "<program>", "exec", dont_inherit=True), ""
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            trouble = trouble or told(error)
    return None, trouble


def known() -> dict[str, Any]:
    """The names that some benchmarks import for every program."""
    space: dict[str, Any] = {}
    exec(_IMPORTS, space)
    return space


def stored(data: bytes) -> int:
    """A file without a name that holds these bytes, at its start."""
    handle = os.open(".stream", os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600)
    os.unlink(".stream")
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(handle, rest) :]
    os.lseek(handle, 0, os.SEEK_SET)
    return handle


def whole(handle: int) -> bytes:
    """All that a file holds."""
    os.lseek(handle, 0, os.SEEK_SET)
    parts = []
    while part := os.read(handle, 1 << 20):
        parts.append(part)
    return b"".join(parts)


def run(code: Any, space: dict[str, Any], job: dict[str, Any], files: list[int]) -> None:
    """Be one run of the program; never returns."""
    nowhere = os.open(os.devnull, os.O_RDWR)
    entry = job["entry"]
    # A called function prints where it likes; its result has a stream of its own.
    streams = (files[0], nowhere if entry else files[1], nowhere, files[1], files[2])
    # First all of them out of the way, for their numbers may be those that they are to have.
    for place, handle in enumerate([fcntl.fcntl(each, fcntl.F_DUPFD, 16) for each in streams]):
        os.dup2(handle, place)
    os.closerange(5, 1024)
    failed = 1
    try:
        bound(job["memory"])
        sys.stdin = open(0, encoding="utf-8", errors="replace", closefd=False)
        sys.stdout = first = open(1, "w", encoding="utf-8", errors="replace", closefd=False)
        sys.stderr = open(2, "w", errors="replace", closefd=False)
        vars(sys).update(__stdin__=sys.stdin, __stdout__=first, __stderr__=sys.stderr)
        sys.argv = ["program.py"]
        module = sys.modules["__main__"] = type(sys)("program" if entry else "__main__")
        module.__dict__.update(space)
        module.__dict__["__name__"] = "program" if entry else "__main__"
        perform(code, module.__dict__, entry)
        leave()
        first.flush()
        failed = 0
    except BaseException as error:
        os.write(4, told(error).encode(errors="replace"))
    os._exit(failed)


def bound(memory: int) -> None:
    """Let this process take so many bytes more than it has."""
    import resource

    with open("/proc/self/statm") as file:
        most = int(file.read().split()[0]) * resource.getpagesize() + memory
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    limits = [most] + [each for each in (soft, hard) if each != resource.RLIM_INFINITY]
    resource.setrlimit(resource.RLIMIT_AS, (min(limits), min(limits)))


def perform(code: Any, space: dict[str, Any], entry: str) -> None:
    """Run the program as a script, or call its function with the arguments of the input."""
    try:
        exec(code, space)
    except SystemExit:
        # `sys.exit()` is how many programs end; what counts is what they printed.
        if entry:
            raise
    if not entry:
        return
    place = space["Solution"]() if "Solution" in space and entry not in space else None
    function = getattr(place, entry, None) if place is not None else space.get(entry)
    if function is None:
        raise NameError(f"the program does not define {entry}")
    result = function(*json.loads(sys.stdin.read(), object_hook=numbered))
    line = json.dumps(result, default=listed).encode()
    while line:
        line = line[os.write(3, line) :]


def numbered(value: dict[str, Any]) -> dict[Any, Any]:
    """An object whose names are all whole numbers is a table of numbers: JSON has no other way to write one."""
    if value and all(name.lstrip("-").isdecimal() for name in value):
        return {int(name): item for name, item in value.items()}
    return value


def listed(value: Any) -> Any:
    """What stands for a value that JSON has no form for: numpy's arrays and numbers as lists and numbers."""
    if hasattr(value, "tolist"):
        return value.tolist()
    raise TypeError(f"the function gives a {type(value).__name__}, expected plain data")


def leave() -> None:
    """End as an interpreter does: threads first, then what was registered, then what is still to be written."""
    import atexit

    threading: Any = sys.modules.get("threading")
    if threading:
        threading._shutdown()
    atexit._run_exitfuncs()
    if hasattr(sys.stdout, "flush"):
        sys.stdout.flush()


# -- where the tests are -----------------------------------------------------------------------------------------------


class Server:
    """The program's process, as the judge sees it."""

    def __init__(self, source: str, job: dict[str, Any]) -> None:
        # Not at the top: the server, which has this file's text too, starts in half the time without it.
        import subprocess

        (down, self.sink), (self.source, up) = os.pipe(), os.pipe()
        # -I: no variable of the environment and no file in the folder changes what the child imports.
        command = [sys.executable, "-I", "-c", f"{source}\nserve({down}, {up})"]
        nowhere = subprocess.DEVNULL
        self.child = subprocess.Popen(command, stdin=nowhere, stdout=nowhere, stderr=nowhere, pass_fds=(down, up))
        # Without these the pipes never end when the child does.
        os.close(down)
        os.close(up)
        self.held = b""
        self.say(json.dumps(job).encode() + b"\n")

    def say(self, data: bytes) -> None:
        """Send bytes.

        Raises:
            Gone: the server has ended.
        """
        rest = memoryview(data)
        try:
            while rest:
                rest = rest[os.write(self.sink, rest) :]
        except OSError:
            raise Gone from None

    def hear(self, seconds: float) -> tuple[dict[str, Any], bytes]:
        """A message: its head and its bytes.

        Raises:
            Gone: the server has ended, or says what is no message.
            Late: it does not come in time.
        """
        until = time.monotonic() + seconds
        try:
            while b"\n" not in self.held:
                self._more(until)
            line, _, self.held = self.held.partition(b"\n")
            head = json.loads(line)
            size = int(head["size"])
            while len(self.held) < size:
                self._more(until)
        except (ValueError, TypeError, LookupError, RecursionError):
            raise Gone from None
        data, self.held = self.held[:size], self.held[size:]
        return head, data

    def _more(self, until: float) -> None:
        waiting = select.poll()
        waiting.register(self.source, select.POLLIN)
        if not waiting.poll(max(0.0, until - time.monotonic()) * 1000):
            raise Late
        part = os.read(self.source, 1 << 20)
        if not part or len(self.held) > _LONGEST:
            raise Gone
        self.held += part


def fault(output: bytes, expected: str, rule: dict[str, Any]) -> str:
    """How an output differs from what is expected; empty where it does not."""
    text = output.decode(errors="replace")
    if rule["value"]:
        return value_fault(text, expected, rule["unwrap"])
    if not rule["lines"]:
        return parts_fault(text.split(), expected.split(), "word", rule)
    found, wanted = ([line.strip() for line in each.strip().split("\n")] for each in (text, expected))
    return parts_fault(found, wanted, "line", rule)


def parts_fault(found: list[str], wanted: list[str], what: str, rule: dict[str, Any]) -> str:
    """How words or lines differ."""
    for number, (one, other) in enumerate(zip(found, wanted, strict=False), 1):
        if one != other and not alike(one, other, rule):
            return f"{what} {number} is {one[:60]!r}, expected {other[:60]!r}"
    if len(found) == len(wanted):
        return ""
    if not any(found):
        return "it prints nothing"
    return f"it prints {len(found)} {what}s, expected {len(wanted)}"


def alike(one: str, other: str, rule: dict[str, Any]) -> bool:
    """Whether two words, or two lines, mean the same."""
    if rule["fold"] and one.lower() == other.lower():
        return True
    if rule["lines"]:
        ones, others = one.split(), other.split()
        return len(ones) == len(others) and all(map(equal_numbers, ones, others))
    return near(one, other, rule["tolerance"], rule["relative"])


def equal_numbers(one: str, other: str) -> bool:
    """Whether two words are one number: 1.50 and 1.5."""
    import decimal

    try:
        return decimal.Decimal(one) == decimal.Decimal(other)
    except (decimal.InvalidOperation, ValueError):
        return False


def near(one: str, other: str, tolerance: float, relative: float) -> bool:
    """Whether two words are numbers, one of them at least no whole one, that differ by little."""
    if not tolerance and not relative:
        return False
    try:
        found, wanted = float(one), float(other)
    except ValueError:
        return False
    # `float` reads `1_0` and `inf` too.
    if "_" in one or not (math.isfinite(found) and math.isfinite(wanted)):
        return False
    if one.lstrip("+-").isdecimal() and other.lstrip("+-").isdecimal():
        return int(one) == int(other)
    return abs(found - wanted) <= tolerance + relative * abs(wanted)


def value_fault(text: str, expected: str, unwrap: bool) -> str:
    """How the result of a function differs."""
    try:
        found, wanted = json.loads(text), json.loads(expected)
    except (ValueError, RecursionError):
        return "it gives no result"
    if found == wanted or (unwrap and isinstance(wanted, list) and wanted and found == wanted[0]):
        return ""
    return f"it gives {json.dumps(found)[:60]}, expected {json.dumps(wanted)[:60]}"


def ending(code: int) -> str:
    """How a run ended, in words."""
    return f"the program crashed the interpreter: signal {-code}" if code < 0 else "the program ended early"


def judged(server: Server, test: list[str], job: dict[str, Any]) -> str:
    """What is wrong with the run of one test; empty where nothing is.

    Raises:
        Gone: the server has ended.
        Late: the run takes too long.
        OSError: the sandbox cannot run the test.
    """
    given = test[0].encode(errors="replace")
    server.say(b"%d\n" % len(given) + given)
    head, output = server.hear(job["seconds"])
    if "unfit" in head:
        raise OSError(head["unfit"])
    if head.get("ended") != 0:
        return str(head.get("trouble") or ending(int(head.get("ended") or 0)))
    return fault(output, test[1], job["rule"])


def unpacked(text: str) -> Any:
    """What was sent."""
    import base64
    import zlib

    return json.loads(zlib.decompress(base64.b85decode(text)))


def main(source: str, word: str, programs: list[str], packed: str) -> None:
    """Run the tests that there is time for, and print a report behind `word`.

    The report: `marks`, a digit for each test that was run; `trouble` of the first that failed; `over`, whether nothing
    else is to be run.
    """
    out = os.fdopen(os.dup(1), "w")
    began = time.monotonic()
    job = unpacked(packed)

    def say(**data: Any) -> None:
        out.write("\n" + word + json.dumps(data) + "\n")
        out.flush()
        os._exit(0)

    marks, trouble, over = "", "", False
    try:
        hide()
        told_it = {name: job[name] for name in ("entry", "imports", "memory")}
        server = Server(source, {"programs": programs, **told_it})
        if unread := server.hear(job["call"])[0].get("unread"):
            say(unread=unread)
        for number, test in enumerate(job["tests"]):
            # What does not fit into the time of this sandbox is run in the next one.
            if number and time.monotonic() - began + job["seconds"] > job["call"]:
                break
            wrong = judged(server, test, job)
            marks += "0" if wrong else "1"
            trouble = trouble or wrong
    except OSError as error:
        say(unfit=str(error))
    except (Gone, ValueError, TypeError):
        # Only a server that the program has taken over says what cannot be read.
        over, trouble, marks = True, trouble or "the program ended the process that runs it", marks + "0"
    except Late:
        # Nothing waits for the runs behind it: a program that hangs once mostly hangs again.
        over, trouble, marks = True, trouble or f"it takes more than {job['seconds']:g} s", marks + "0"
    say(marks=marks, trouble=trouble, over=over)
