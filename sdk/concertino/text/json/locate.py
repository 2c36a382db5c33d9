"""Finding the one object in what a model wrote around it.

Around the object may stand fences, tags, prose and reasoning; objects inside `<think>` are thoughts, not
calls. Prose is trusted only as far as it is prose: its braces must balance outside the object, and the text
next to the object must not be JSON or code (`"args": {…}`, `f({…})`, `[1, {…}]`), for then the object is a
part of something larger. A brace that opens like an object is taken at its word: if it cannot be read, the
text is refused, and never searched for another object.
"""

from __future__ import annotations

import re
from typing import Any, NoReturn

from .repair import AlmostJsonReader
from .tokens import INVISIBLE

_REASONING = r"(?:think|thinking|thought|reasoning)>"
_END_OF_REASONING = re.compile("</" + _REASONING)
_REASONING_BLOCK = re.compile(f"<{_REASONING}.*?</{_REASONING}", re.DOTALL)
_MARK = re.compile("[{}]|<" + _REASONING)
_OBJECT_LIKE = re.compile(rf"""\{{[\s{INVISIBLE}]*+(?:["'“}}/#]|\\"|[^\W\d]\w*+\s*+:)""")
_ARRAY_LIKE = re.compile(r"""\[\s*+(?:\Z|[\[{\]"'“\d-]|(?:true|false|null|True|False|None)\b)""")
_TAG = re.compile(rf"</?(?!{_REASONING})[A-Za-z_][^<>{{}}\n]*>|<\|[^<>{{}}\n]*\|>|\[/?[A-Z][A-Z_]+\]")
_FENCE = re.compile(r"(?:```|~~~)[\w+-]*")
_WRAPPING = re.compile(rf"(?:[\s{INVISIBLE}]++|{_TAG.pattern}|{_FENCE.pattern})*+")
# What stands right beside an object that is a part of something larger.
# Enough to see a key or a bracket, and it bounds the searches at a long run of blanks.
_NEIGHBOUR_CHARS = 200
_PART_BEFORE = re.compile(
    r"""(?: ["'”]\s*: | [\[=] | \w\(\** | [\d"'”\]}], | <(?:param|arg)[^<>]*> )\s*\Z
    | (?<![A-Z_])\][ \t]*\Z""",
    re.VERBOSE,
)
_PART_BEHIND = re.compile(r"""[\]:] | \[(?!/?[A-Z][A-Z_]+\]) | ,\s*["'“\[{\d] | ["'“][^"'”\n]*["'”]\s*:""", re.VERBOSE)
_CODE_BEHIND = re.compile(r"\.\w|\(")


def behind_wrapping(text: str, position: int) -> int:
    """The position behind the fences, tags and blanks that stand at `position`."""
    wrapping = _WRAPPING.match(text, position)
    return wrapping.end() if wrapping else position


def looks_like_array(text: str, position: int) -> bool:
    """Whether an array, not a bracketed remark, opens at `position`."""
    return _ARRAY_LIKE.match(text, position) is not None


def read_only_object(reader: AlmostJsonReader, expect: str = "object") -> dict[str, Any]:
    """Read the one object of the text outside reasoning; note what stands around it as repairs.

    `expect` is what the caller would have taken, for the wording of a refusal.
    """
    text = reader.text
    begin = _after_reasoning(text)
    found: tuple[dict[str, Any], int, int] | None = None
    depth, position, first_brace = 0, begin, -1
    while mark := _MARK.search(text, position):
        start, position = mark.start(), mark.end()
        if mark.group() == "}":
            depth -= 1
            if depth < 0:
                reader.refuse("found } without its {; write one complete JSON object.", start)
        elif mark.group() != "{":
            position = _behind_reasoning(reader, start)
        elif not _OBJECT_LIKE.match(text, start):
            first_brace = start if first_brace < 0 else first_brace
            depth += 1
        elif depth:
            reader.refuse("found an object inside other braces; write one JSON object.", start)
        elif found:
            reader.refuse("found a second object; write exactly one.", start, "several-objects")
        else:
            value, position = reader.value(start)
            found = (value, start, position)
    if found is None:
        _refuse_without_object(reader, begin, first_brace, expect)
    if depth:
        reader.refuse("found { without its }; write one complete JSON object.", first_brace)
    value, start, end = found
    _check_neighbours(reader, start, end)
    note_surroundings(reader, text[:start], text[end:])
    return value


def note_surroundings(reader: AlmostJsonReader, before: str, behind: str) -> None:
    """Name what was left out on both sides of the value."""
    rest = f"{before}\n{behind}"
    if _END_OF_REASONING.search(rest):
        reader.repairs.add("think-block")
        rest = _REASONING_BLOCK.sub("", rest)
        rest = rest[_after_reasoning(rest) :]
    rest, fences = _FENCE.subn("", rest)
    rest, tags = _TAG.subn("", rest)
    if fences:
        reader.repairs.add("code-fence")
    if tags:
        reader.repairs.add("tag")
    rest = rest.strip()
    if rest.strip(INVISIBLE + " \t\r\n"):
        reader.repairs.add("prose")
    elif rest.strip(" \t\r\n"):
        reader.repairs.add("invisible-characters")


def _after_reasoning(text: str) -> int:
    """Where reading begins: behind a `</think>` whose opening stood in the prompt, or at 0."""
    end = _END_OF_REASONING.search(text)
    # An object that comes first may hold `</think>` in one of its texts.
    if end is None or text.startswith("{", behind_wrapping(text, 0)):
        return 0
    mark = re.search("<" + _REASONING, text)
    return 0 if mark and mark.start() < end.start() else end.end()


def _behind_reasoning(reader: AlmostJsonReader, start: int) -> int:
    end = _END_OF_REASONING.search(reader.text, start)
    if end is None:
        reader.refuse_end("reasoning", start)
    return end.end()


def _check_neighbours(reader: AlmostJsonReader, start: int, end: int) -> None:
    text = reader.text
    before = text[max(0, start - _NEIGHBOUR_CHARS) : start]
    behind = text[end : end + _NEIGHBOUR_CHARS].lstrip()
    if _PART_BEFORE.search(before):
        reader.refuse("this object is part of something larger; write the one object alone.", start)
    if _PART_BEHIND.match(behind) or _CODE_BEHIND.match(text, end):
        reader.refuse("what follows belongs to this object; write the one object alone.", end)
    # Inside Python's or a shell's quotes each backslash may have been doubled or not.
    if text[start - 1 : start] in ("'", '"') and "\\" in text[start:end]:
        problem = "backslashes in a quoted object could mean two things; write the object without the quotes."
        reader.refuse(problem, start, "ambiguous-escape")


def _refuse_without_object(reader: AlmostJsonReader, begin: int, first_brace: int, expect: str) -> NoReturn:
    # Read for its error: it says exactly where the thing that looked like an object goes wrong.
    if first_brace >= 0:
        reader.value(first_brace)
    if expect == "any":
        reader.refuse("found no JSON value that stands alone; write the value and nothing else.", begin)
    reader.refuse('found no JSON object; write one, such as {"name": "value"}.', begin)
