"""The script that runs programs on inputs in a sandbox, and what it prints, read.

Invariants: no expected result stands in the script, so a program cannot look its results up; each run has a time limit
of its own, and its line is printed at once, so a run that hangs costs itself only; after two such runs the rest of that
program counts as late and is not run. Reading what a script printed never raises; a run without a line counts as cut
off.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

SECONDS = 1.0
"""For one run."""

_SCRIPT = r"""
import hashlib, io, json, signal, sys

PROGRAMS, INPUTS, SHOWN, ENTRY, SECONDS = json.loads({data!r})
OUT, DUMPS, DIGEST = sys.stdout, json.dumps, hashlib.sha256


class Late(BaseException):
    pass


def late(*_):
    raise Late()


def normal(text):
    return "\n".join(line.rstrip() for line in text.strip().splitlines())


def run(code, given):
    space = {{"__name__": "program" if ENTRY else "__main__"}}
    sys.stdin = io.TextIOWrapper(io.BytesIO(b"" if ENTRY else (given + "\n").encode()), encoding="utf-8")
    held = io.BytesIO()
    sys.stdout = out = io.TextIOWrapper(held, encoding="utf-8", errors="replace")
    value = None
    try:
        exec(code, space)
        if ENTRY:
            value = DUMPS(space[ENTRY](*json.loads(DUMPS(given))), sort_keys=True)
    except SystemExit as error:
        if error.code not in (None, 0):
            raise
    finally:
        try:
            out.flush()
        finally:
            sys.stdout = OUT
    return value if ENTRY else normal(held.getvalue().decode("utf-8", "replace"))


signal.signal(signal.SIGALRM, late)
for p, program in enumerate(PROGRAMS):
    hung = 0
    try:
        code, broken = compile(program, "program.py", "exec"), ""
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        code, broken = None, type(error).__name__ + ": " + str(error)
    for i, given in enumerate(INPUTS):
        status, text = "syntax", broken
        if hung == 2:
            status, text = "late", "two runs before gave no result in time"
        elif code is not None:
            signal.setitimer(signal.ITIMER_REAL, SECONDS)
            try:
                status, text = "ok", run(code, given)
            except Late:
                hung += 1
                status, text = "late", "no result in " + str(SECONDS) + " s"
            except BaseException as error:
                status = "import" if isinstance(error, ImportError) else "error"
                text = type(error).__name__ + ": " + str(error)
            finally:
                signal.setitimer(signal.ITIMER_REAL, 0)
        if not isinstance(text, str):
            status, text = "error", "no result"
        digest = DIGEST(text.encode("utf-8", "replace")).hexdigest()[:12] if status == "ok" else ""
        OUT.write("\n" + DUMPS([p, i, status, digest, text[:200] if i < SHOWN and p == 0 else ""]) + "\n")
        OUT.flush()
"""


class ProgramRun(NamedTuple):
    """One run of a program on an input.

    Attributes:
        status: `ok`, `syntax`, `import`, `error`, `late` or `cut` (the script ended before it).
        digest: of the result, empty if there is none.
        text: the result or the error, shortened, where it was to be shown.
    """

    status: str
    digest: str = ""
    text: str = ""


def write_script(programs: Sequence[str], inputs: Sequence[Any], *, shown: int = 0, entry: str = "") -> str:
    """A script that runs every program on every input.

    Args:
        programs: Python programs.
        inputs: texts for the standard input; with an entry point, lists of arguments.
        shown: how many results of the first program are printed in words, not as digests alone.
        entry: a function to call; without one, programs read and print.
    """
    data = json.dumps([list(programs), list(inputs), shown, entry, SECONDS])
    return _SCRIPT.format(data=data)


def read_runs(stdout: str, programs: int, inputs: int) -> list[list[ProgramRun]]:
    """The result of each program on each input."""
    # A script that was stopped has printed no line for what it did not reach.
    runs = [[ProgramRun("cut") for _ in range(inputs)] for _ in range(programs)]
    for line in stdout.splitlines():
        try:
            p, i, status, digest, text = json.loads(line)
            if isinstance(p, int) and isinstance(i, int) and 0 <= p < programs and 0 <= i < inputs:
                runs[p][i] = ProgramRun(str(status), str(digest), str(text))
        # The output is that of programs too, which may print anything.
        except (ValueError, TypeError, RecursionError):
            continue
    return runs


def inputs_of(tests: Sequence[Mapping[str, Any]]) -> list[Any]:
    """The inputs of tests: standard inputs, or lists of arguments."""
    return [test["args"] if "args" in test else test["input"] for test in tests]


def digest_of(test: Mapping[str, Any]) -> str:
    """The digest of the result that a test expects."""
    # As the script writes results: a dict's order of keys is no difference.
    text = json.dumps(test["value"], sort_keys=True) if "value" in test else _normal(str(test["output"]))
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:12]


def _normal(text: str) -> str:
    return "\n".join(line.rstrip() for line in text.strip().splitlines())
