"""What a role's text says: code, tests, an answer, actions, calls, or just the text.

    text      everything after the thought
    code      the last fenced block
    tests     <test><input> … </input><output> … </output></test>, or **Test Input:** … **Test Output:** …
    answer    the last of \\boxed{…}, <answer> … </answer>, and a line `#### …`
    actions   a JSON list after the last `####`, `**Actions List**:` or `<answer>`; or the last list of the text
    calls     <tool_call> blocks, as in a serial turn

Each form has a writer whose text the reader reads back. Reading takes any text, in time linear in its length, and
never raises. Text with one plain reading is repaired, and the repair is an issue; strict reading refuses it.
"""

from __future__ import annotations

import json
import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar

from concertino.core.errors import UsageError
from concertino.core.format_issue import FormatIssue
from concertino.core.model import Reply
from concertino.strategies.serial_calls import format as serial
from concertino.text.json import ReadingError, read_json
from concertino.text.tool_calls import cut_blocks

T = TypeVar("T")
Form = Literal["text", "code", "tests", "answer", "actions", "calls"]
FORMS: tuple[Form, ...] = ("text", "code", "tests", "answer", "actions", "calls")

CODES: dict[str, str] = {
    "no_text": "The text is empty after the thought.",
    "unclosed_think": "The text ends inside `<think>`.",
    "cut_off": "The length limit ended the text inside the value.",
    "no_code": "The text has no fenced code block.",
    "empty_code": "The code block is empty.",
    "unclosed_code": "The code block is not closed; lenient readers take the rest of the text.",
    "several_codes": "There are several code blocks; lenient readers take the last.",
    "no_test": "The text has no test.",
    "unclosed_test": "A tag of a test is not closed; lenient readers read up to the next tag.",
    "no_input": "A test has no input; lenient readers take an empty one.",
    "no_output": "A test has no expected output; it is left out.",
    "too_many_tests": "There are more tests than may run; lenient readers take the first ones.",
    "no_answer": "The text has no answer in any of the forms.",
    "empty_answer": "The answer is empty.",
    "unclosed_answer": "The brace or tag of the answer is not closed.",
    "several_answers": "There are different answers; lenient readers take the last.",
    "no_actions": "The text has no list of actions.",
    "bad_actions": "The list of actions is invalid JSON.",
    "bare_actions": "The words in the list of actions lack quotes; lenient readers take them as texts.",
    "empty_actions": "The list of actions is empty.",
}
"""Every `FormatIssue.code` of this reader; texts of calls have those of `serial_calls.format.CODES` too."""

MAX_TESTS = 8
"""Tests of one text that are run."""
# Some blocks may be unreadable, so more are looked at than run; a hostile text still ends here.
_MOST_BLOCKS = 4 * MAX_TESTS

_FENCE = re.compile(r"(`{3,})[ \t]?([A-Za-z0-9_+.-]{0,20})")
_BOX_SIGN = re.compile(r"\\boxed\{|<answer>|^[ \t]{0,8}####[ \t]?", re.MULTILINE)
_BRACES = re.compile(r"\\?[{}]")
_ACTION_SIGN = re.compile(r"####|\*\*Actions List\*\*:?|<answer>")
_BRACKETS = re.compile(r"[\[\]]")
_WORD = re.compile(r"[A-Za-z0-9_.+-]{1,40}")
_QUOTED = re.compile(r'"(?:[^"\\]|\\.)*"')
_SIGNS = re.compile(r"[\[\]#<*]")
_TEST_SIGN = re.compile(r"\*\*Test (Input|Output):\*\*")


@dataclass(frozen=True, slots=True)
class RoleText:
    """What a text says.

    Attributes:
        value: plain JSON data; `None` if it could not be read. Tests are `{"input", "output"}` objects, calls are
            `{"name", "arguments"}` objects with the `error` of those that could not be read.
        said: the text after the thought.
        issues: what is wrong with the text.
    """

    value: Any
    said: str
    issues: tuple[FormatIssue, ...] = ()


@dataclass(slots=True)
class _RoleTextReader:
    """One text being read; what comes before `start` is thought."""

    text: str
    start: int
    cut_off: bool
    strict: bool
    issues: list[FormatIssue] = field(default_factory=list)

    def refuse(self, code: str, message: str, start: int | None = None, end: int | None = None) -> None:
        begin = self.start if start is None else start
        self.issues.append(FormatIssue(code, message, begin, len(self.text) if end is None else end))

    def repair(self, code: str, message: str, start: int, end: int) -> bool:
        """Note a repair; whether it may be made."""
        self.issues.append(FormatIssue(code, message, start, end, repaired=not self.strict))
        return not self.strict

    def cut(self, start: int) -> None:
        self.refuse("cut_off", "the text ended (length limit) before it was complete; write less", start)


def read_role_text(reply: Reply, form: Form, *, strict: bool = False) -> RoleText:
    """Read what a role wrote.

    Args:
        strict: refuse what lenient reading repairs.
    """
    text = reply.text
    start = 0
    for block in cut_blocks(text, ("think",)):
        # What follows an open <think> is thought: code or an answer in it was only considered.
        if block.tag == "think" and not block.closed:
            message = "the text ends inside <think>; think more briefly, then write what was asked for"
            return RoleText(None, "", (FormatIssue("unclosed_think", message, block.start, block.end),))
        if block.tag:
            start = block.end
    said = text[start:].strip()
    if form == "calls":
        return _read_calls(reply, said, strict)
    reader = _RoleTextReader(text, start, reply.finish_reason == "length", strict)
    if not said:
        reader.refuse("no_text", "the text is empty after the thought; write what was asked for")
        return RoleText(None, said, tuple(reader.issues))
    value = said if form == "text" else _READERS[form](reader)
    return RoleText(value, said, tuple(reader.issues))


def _read_calls(reply: Reply, said: str, strict: bool) -> RoleText:
    turn = serial.read_turn(reply, strict=strict)
    # A role may make several calls in its turn; only a serial orchestrator may not.
    issues = tuple(issue for issue in turn.issues if issue.code != "several_calls")
    value = [
        {"name": call.name, "arguments": call.arguments, **({"error": list(call.error)} if call.error else {})}
        for call in turn.calls
    ]
    if not value and all(issue.repaired for issue in issues):
        message = 'the text holds no call; write <tool_call>{"name": "...", "arguments": {...}}</tool_call>'
        issues = (*issues, FormatIssue("no_call", message, 0, len(reply.text)))
    return RoleText(value or None, said, issues)


def _read_code(reader: _RoleTextReader) -> str | None:
    text = reader.text
    blocks: list[tuple[int, int, int]] = []
    opened: tuple[int, int, str] | None = None
    for fence in _FENCE.finditer(text, reader.start):
        if opened is None:
            opened = fence.start(), fence.end(), fence.group(1)
        # Only a fence of the same length closes: a longer one may hold ``` in its code.
        elif fence.group(1) == opened[2]:
            blocks.append((opened[0], opened[1], fence.start()))
            opened = None
    if opened is not None:
        if reader.cut_off:
            reader.cut(opened[0])
            return None
        message = f"the code block is not closed; end it with {opened[2][:8]}"
        if not reader.repair("unclosed_code", message, opened[0], len(text)):
            return None
        blocks.append((opened[0], opened[1], len(text)))
    if not blocks:
        reader.refuse("no_code", "there is no code block; write the whole program between ```python and ```")
        return None
    start, begin, end = blocks[-1]
    if len(blocks) > 1 and not reader.repair(
        "several_codes", f"{len(blocks)} code blocks; write one block that holds the whole program", start, end
    ):
        return None
    # The line break behind the fence is the fence's; a second one is the program's.
    code = text[begin:end].removeprefix("\r").removeprefix("\n")
    if not code.strip():
        reader.refuse("empty_code", "the code block is empty; write the whole program in it", start, end)
        return None
    return code.rstrip("\n") + "\n"


def _read_tests(reader: _RoleTextReader) -> list[dict[str, str]] | None:
    tests = _tagged_tests(reader)
    if tests is None:
        tests = _headed_tests(reader)
    if not tests:
        if not reader.issues:
            expected = "<test><input>...</input><output>...</output></test>"
            reader.refuse("no_test", f"there is no test; write {expected}")
        return None
    if len(tests) > MAX_TESTS:
        message = f"{len(tests)} tests; at most {MAX_TESTS} are run"
        if not reader.repair("too_many_tests", message, reader.start, len(reader.text)):
            return None
        tests = tests[:MAX_TESTS]
    return tests


def _tagged_tests(reader: _RoleTextReader) -> list[dict[str, str]] | None:
    """Tests in tags; `None` without any."""
    text = reader.text[reader.start :]
    blocks = [block for block in cut_blocks(text, ("test",), repeating="test") if block.tag == "test"]
    if not blocks:
        return None
    tests: list[dict[str, str]] = []
    for block in blocks[:_MOST_BLOCKS]:
        start, end = reader.start + block.start, reader.start + block.end
        inside = text[block.begin : block.stop]
        parts = {part.tag: part for part in cut_blocks(inside, ("input", "output")) if part.tag in ("input", "output")}
        if reader.cut_off and not block.closed and block.end == len(text):
            reader.cut(start)
            continue
        if not (block.closed and all(part.closed for part in parts.values())):
            message = "a tag of the test is not closed; write <test><input>...</input><output>...</output></test>"
            if not reader.repair("unclosed_test", message, start, end):
                continue
        given = {tag: inside[part.begin : part.stop].strip("\r\n") for tag, part in parts.items()}
        _add_test(reader, tests, given, start, end)
    return tests


def _headed_tests(reader: _RoleTextReader) -> list[dict[str, str]]:
    """Tests under the headings of AT-GRPO's prompts."""
    tests: list[dict[str, str]] = []
    given: dict[str, str] = {}
    begun = reader.start
    signs = list(_TEST_SIGN.finditer(reader.text, reader.start))
    ends = [*(sign.start() for sign in signs[1:]), len(reader.text)][: 2 * _MOST_BLOCKS]
    for sign, end in zip(signs, ends, strict=False):
        part = sign.group(1).lower()
        # An input with no output before the next input: the incomplete test is reported, not merged into this one.
        if part == "input" and given:
            _add_test(reader, tests, given, begun, sign.start())
            given = {}
        if not given:
            begun = sign.start()
        given[part] = _unfenced(reader.text[sign.end() : end])
        if part == "output":
            _add_test(reader, tests, given, begun, end)
            given = {}
    if given:
        _add_test(reader, tests, given, begun, len(reader.text))
    return tests


def _unfenced(text: str) -> str:
    fences = _FENCE.finditer(text)
    opening = next(fences, None)
    if opening is None:
        return text.strip("\r\n ")
    closing = next((fence for fence in fences if fence.group(1) == opening.group(1)), None)
    return text[opening.end() : closing.start() if closing else len(text)].strip("\r\n")


def _add_test(
    reader: _RoleTextReader, tests: list[dict[str, str]], given: Mapping[str, str], start: int, end: int
) -> None:
    if not given.get("output", "").strip():
        reader.refuse("no_output", "a test lacks its expected output; write <output>...</output>", start, end)
        return
    if "input" not in given and not reader.repair(
        "no_input", "a test lacks its input; write <input></input> if the program reads none", start, end
    ):
        return
    tests.append({"input": given.get("input", ""), "output": given["output"]})


def _read_answer(reader: _RoleTextReader) -> str | None:
    text = reader.text
    answers: list[tuple[str, int, int]] = []
    position = reader.start
    while sign := _BOX_SIGN.search(text, position):
        stop = _end_of_answer(text, sign)
        if stop is None:
            message = f"{sign.group().strip()!r} is not closed; write the answer as \\boxed{{...}}"
            reader.cut(sign.start()) if reader.cut_off else reader.refuse("unclosed_answer", message, sign.start())
            return None
        answers.append((text[sign.end() : stop].strip(), sign.start(), stop))
        position = stop + 1
    if not answers:
        reader.refuse("no_answer", "there is no answer; write it as \\boxed{...} at the end")
        return None
    # The last one: models state intermediate results first and correct themselves later.
    last, start, end = answers[-1]
    inner = _BOX_SIGN.match(last)  # `#### \boxed{7}`
    if inner and (inside := _end_of_answer(last, inner)) is not None:
        last = last[inner.end() : inside].strip()
    if not last:
        reader.refuse("empty_answer", "the answer is empty; write it as \\boxed{...}", start, end)
        return None
    different = {answer for answer, _, _ in answers if answer} - {last}
    if different and not reader.repair(
        "several_answers", f"{len(different) + 1} answers that differ; write one, at the end", start, end
    ):
        return None
    return last


def _end_of_answer(text: str, sign: re.Match[str]) -> int | None:
    """Where the answer ends that a sign begins; `None` if it is not closed."""
    if sign.group() == "<answer>":
        end = text.find("</answer>", sign.end())
        return end if end >= 0 else None
    if not sign.group().startswith("\\"):
        end = text.find("\n", sign.end())
        return end if end >= 0 else len(text)
    depth = 1
    for brace in _BRACES.finditer(text, sign.end()):
        if brace.group() == "{":
            depth += 1
        elif brace.group() == "}":
            depth -= 1
            if depth == 0:
                return brace.start()
    return None


def _read_actions(reader: _RoleTextReader) -> list[Any] | None:
    text = reader.text
    sign = _last(_ACTION_SIGN.finditer(text, reader.start))
    begin = sign.end() if sign else reader.start
    # After a sign the list comes first; without one, a list in the middle may be an example.
    lists = _lists(text, begin)
    span = next(lists, None) if sign else _last(lists)
    if span is None:
        if reader.cut_off:
            reader.cut(begin)
        else:
            reader.refuse("no_actions", 'there is no list of actions; end with a line like #### ["U", "R"]', begin)
        return None
    start, end = span
    try:
        value = read_json(text[start:end], strict=True, expect="any").value
    except ReadingError as error:
        # `[U, R, D]` is what small models write for moves, and it has one plain meaning.
        value = _bare_words(text[start:end])
        if value is None:
            message = f'{error}; write a JSON list, like #### ["U", "R"]'
            reader.refuse("bad_actions", message, min(end, start + error.position), end)
            return None
        if value and not reader.repair("bare_actions", 'put the actions in quotes: ["U", "R"]', start, end):
            return None
    if not value:
        reader.refuse("empty_actions", "the list of actions is empty; give at least one action", start, end)
        return None
    return list(value)


def _last(found: Iterable[T]) -> T | None:
    # Keeps one match: a list of all of them would grow with a hostile text.
    last = deque(found, maxlen=1)
    return last[0] if last else None


def _lists(text: str, begin: int) -> Iterator[tuple[int, int]]:
    """The outermost bracketed lists."""
    depth, start = 0, -1
    for bracket in _BRACKETS.finditer(text, begin):
        if bracket.group() == "[":
            start = bracket.start() if depth == 0 else start
            depth += 1
        elif depth:
            depth -= 1
            if depth == 0:
                yield start, bracket.end()


def _bare_words(text: str) -> list[str] | None:
    """`[U, R, D]`, a list whose words lack quotes."""
    inside = text[1:-1].strip()
    words = [word.strip() for word in inside.split(",")] if inside else []
    return words if all(_WORD.fullmatch(word) for word in words) else None


_READERS = {"code": _read_code, "tests": _read_tests, "answer": _read_answer, "actions": _read_actions}


# -- writing -----------------------------------------------------------------------------------------------------------


def write_code(code: str) -> str:
    """A code block that holds the code, whatever fences stand in it."""
    longest = max((len(fence) for fence in re.findall("`+", code)), default=0)
    # Longer than every run of backticks in the code, which would close the block.
    fence = "`" * max(3, longest + 1)
    return f"{fence}python\n{code.rstrip(chr(10))}\n{fence}"


def write_tests(tests: Sequence[Mapping[str, str]]) -> str:
    """Tests in tags.

    Raises:
        UsageError: a test holds one of the tags.
    """
    for test in tests:
        for tag in ("test", "input", "output"):
            if any(f"<{slash}{tag}>" in test[part] for part in ("input", "output") for slash in ("", "/")):
                raise UsageError(f"a test holds <{tag}>, which the format uses itself; leave it out")
    return "\n".join(
        f"<test>\n<input>\n{test['input']}\n</input>\n<output>\n{test['output']}\n</output>\n</test>" for test in tests
    )


def write_answer(answer: str) -> str:
    """An answer in a box.

    Raises:
        UsageError: its braces do not close.
    """
    text = f"\\boxed{{{answer}}}"
    sign = _BOX_SIGN.match(text)
    assert sign is not None
    if _end_of_answer(text, sign) != len(text) - 1:
        raise UsageError(f"the answer {answer[:60]!r} has braces that do not close; it cannot stand in a box")
    return text


def write_actions(actions: Sequence[Any]) -> str:
    """A list of actions; signs of the format inside a text are written as JSON escapes."""
    text = json.dumps(list(actions), ensure_ascii=False)
    return f"#### {_QUOTED.sub(lambda quoted: _SIGNS.sub(_escaped, quoted.group()), text)}"


def _escaped(sign: re.Match[str]) -> str:
    return f"\\u{ord(sign.group()):04x}"


def write_value(form: Form, value: Any, thought: str = "") -> str:
    """A text from which a value is read in a form; a thought stands before it.

    Raises:
        UsageError: the form cannot hold the value.
    """
    writers: dict[Form, Callable[[Any], str]] = {
        "text": str,
        "code": write_code,
        "tests": write_tests,
        "answer": write_answer,
        "actions": write_actions,
    }
    if form not in writers:
        raise UsageError("a role that reads calls says nothing else; give its calls")
    try:
        written = writers[form](value)
    except (AttributeError, KeyError, TypeError) as error:
        raise UsageError(f"a role that reads {form} cannot say {str(value)[:80]!r}: it has another form") from error
    return "\n".join([*([f"<think>{thought.replace('</think', '</ think')}</think>"] if thought else []), written])
