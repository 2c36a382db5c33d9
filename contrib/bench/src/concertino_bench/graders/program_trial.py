"""A program tried in the sandbox: reading it from a text, running a script with it, reading what the script reports.

The invariants: what a solver wrote is run by the tool, never here; the report stands behind a word that is new for each
run; and a fault of the sandbox is *unparsable* with that as its reason, never the program's fault.
"""

from __future__ import annotations

import json
import re
import secrets
from pathlib import Path
from typing import Any

from concertino import Observation

from concertino_bench.tasks.grade import Grade, GraderServices, Verdict

from .answers import spoken
from .base import shown

# Characters of a program: far more than a solver writes, and few enough for the sandbox to take.
_LONGEST = 200_000
_FENCE = re.compile(r"^[ \t]{0,8}(```+|~~~+)[ \t]{0,4}([\w+.#-]{0,20})[^\n]{0,80}$", re.MULTILINE)
_START = re.compile(r"^(?:import |from |def |async def |class |@|[A-Za-z_]\w{0,60} ?=)", re.MULTILINE)
_PYTHON = frozenset({"", "python", "python3", "py", "python2"})
_OWN_FAULTS = {
    "script_error": "the program ended the script",
    "script_signal": "the program crashed the interpreter",
    "memory_limit": "the program used too much memory",
    "time_limit": "the program did not end in time",
    "cpu_limit": "the program used up its CPU time",
}
_FOLDER = Path(__file__).parent


def read_programs(text: str, entry: str = "", prompt: str = "") -> list[str]:
    """What may be the program of a text, the likeliest first; the first that can be compiled is meant.

    Args:
        text: everything that was said.
        entry: the function that is tested; of several blocks of code the last that defines it counts.
        prompt: code that the text may continue.
    """
    text = spoken(text).replace("\r\n", "\n")
    if not text.strip():
        return []
    blocks = _blocks(text)
    defines = (
        re.compile(rf"^[ \t]{{0,8}}(?:async )?(?:def|class) {re.escape(entry)}\b", re.MULTILINE) if entry else None
    )
    if blocks:
        # The last block, since models write a draft first, but not one that only shows how to call the function.
        fitting = [block for block in blocks if defines and defines.search(block)]
        text = (fitting or blocks)[-1]
    found = [text]
    if prompt and not (defines and defines.search(text)):
        # A text without the function is taken for its body, as HumanEval's completions are.
        found.insert(0, f"{prompt.rstrip()}\n{text}")
    start = _START.search(text)
    if not blocks and start and start.start():
        found.append(text[start.start() :])
    return found


def _blocks(text: str) -> list[str]:
    """The blocks of Python code between fences; one that is never closed extends to the end."""
    blocks: list[str] = []
    opened: tuple[str, str, int] | None = None
    for match in _FENCE.finditer(text):
        if opened is None:
            opened = (match[1], match[2].lower(), match.end() + 1)
        elif match[1].startswith(opened[0]) and not match[2]:
            if opened[1] in _PYTHON:
                blocks.append(text[opened[2] : match.start()])
            opened = None
    if opened and opened[1] in _PYTHON:
        blocks.append(text[opened[2] :])
    return [block for block in blocks if block.strip()]


async def run_script(
    services: GraderServices, tool: str, script: str, programs: list[str], *given: Any
) -> dict[str, Any] | Grade:
    """What a script of this folder reports of the programs, or the grade where it reports nothing that counts.

    Args:
        services: of the bench.
        tool: the sandbox.
        script: name of the file; its `main` takes its own source, the word, the programs and what is `given`.
        programs: what may be the program; the first is shown in the grade.
        given: further arguments, plain data.
    """
    if not programs:
        return Grade(Verdict.UNPARSABLE, "there is no program in the text")
    if any(len(program) > _LONGEST for program in programs):
        return Grade(Verdict.UNPARSABLE, f"the program is longer than {_LONGEST:,} characters")
    # A new word per run: a program that knew it could print a report of its own.
    word = secrets.token_hex(12)
    # The script first: it begins with what Python wants at the top of a file.
    source = "\n".join((_FOLDER / name).read_text(encoding="utf-8") for name in (script, "sandbox_hiding.py"))
    # ASCII alone, so no encoding on the way into the sandbox can change a program.
    # The script's text goes along because the child process, too, is started from it.
    call = ", ".join(ascii(part) for part in (word, programs, *given))
    try:
        seen = await services.call(tool, {"code": f"_source = {source!a}\nexec(_source)\nmain(_source, {call})\n"})
    except Exception as error:  # whatever breaks here is not a fault of the program
        return Grade(Verdict.UNPARSABLE, f"not graded, the sandbox failed: {type(error).__name__}: {shown(str(error))}")
    report = _report(seen.content, word)
    if report is None:
        return _unreported(seen, programs[0])
    if "unread" in report:
        return Grade(
            Verdict.UNPARSABLE, f"the program is not Python: {shown(str(report['unread']))}", found=(programs[0],)
        )
    if "unfit" in report:
        return Grade(Verdict.UNPARSABLE, f"not graded, {shown(str(report['unfit']), 200)}", found=(programs[0],))
    return report


def _unreported(seen: Observation, program: str) -> Grade:
    code = seen.error.code if seen.error else ""
    # The script reports whenever it ends normally, so the program must have ended it.
    if seen.ok:
        return Grade(Verdict.WRONG, "the program ended before its tests were done", found=(program,))
    if code in _OWN_FAULTS:
        why = seen.error.message if seen.error else ""
        return Grade(Verdict.WRONG, f"{_OWN_FAULTS[code]}: {shown(why)}", found=(program,))
    why = f"{code}: {seen.error.message}" if seen.error else str(seen.status)
    return Grade(Verdict.UNPARSABLE, f"not graded, the sandbox failed: {shown(why)}", found=(program,))


def _report(content: Any, word: str) -> dict[str, Any] | None:
    """What the script reported; None if it never came to it."""
    stdout = content.get("stdout", "") if isinstance(content, dict) else content
    # What stands before the word was printed by the sandbox or by tests, and is no report.
    line = stdout.rpartition(word)[2] if isinstance(stdout, str) and word in stdout else ""
    try:
        report = json.loads(line.partition("\n")[0])
    except ValueError:
        return None
    return report if isinstance(report, dict) and {"unread", "unfit", "passed", "marks"} & {*report} else None
