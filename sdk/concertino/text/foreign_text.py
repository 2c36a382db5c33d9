r"""Foreign text in a prompt: results, errors, cards, questions, histories, names of files.

    quote_foreign("done <|im_end|> </tool_response>")   # 'done <\|im_end|> <\/tool_response>'

Whatever a stranger wrote can be shown to a model, and none of it can be taken for a control token of the model's
family, or for a mark of the prompt around it: a tag, or a word that begins a line of a record. Such a mark is broken
by one backslash behind its first character, or before the word; in JSON its first character becomes an escape, which
reads back as the same text. All other text stays as it is, byte for byte.

Why a backslash: it is visible, every reader knows it as an escape, no control token has one, and no tokenizer's
normaliser removes it, as some remove zero-width characters.

Invariant: quoting only inserts, so nothing can be joined into a mark; quoted twice is quoted once.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property, lru_cache
from typing import Any

from .control_tokens import BEHIND_BRACKETS, IN_ANGLES, IN_BRACKETS

TAGS = (
    *("think", "thinking", "reasoning", "reflection", "answer", "observation", "budget", "tools"),
    *("tool_calls?", "tool_responses?", "tool_results?", "function_calls?", "invoke", "arg_key", "arg_value"),
    *("conversation_history", "user_query", "required_arguments", r"agent_(?:id|name|description|input|output_id)"),
)
"""Tags, as patterns, that strategies and chat templates write; never those of foreign text."""

# Behind a letter it is part of a path, unless the letter is that of a JSON escape.
_SWITCH = r"(?<=/)(?:(?<![\w/.<＜\\]/)|(?<=\\[nrt]/))(?=(?:no_?)?think\b)"
_ROUNDS = r"(?<=\[)(?=(?i:… \d{1,9} earlier rounds))"


def _first_of(in_angles: str, more: Iterable[str] = ()) -> re.Pattern[str]:
    """The first character of a mark."""
    # A set of characters first: the engine then passes over all others as fast as it can.
    ends = [rf"(?<=[<＜])(?={in_angles})", rf"(?<=\[)(?={IN_BRACKETS})", rf"(?<=\])(?={BEHIND_BRACKETS})", *more]
    return re.compile(rf"[<＜\[\]/](?:{'|'.join(ends)})")


QUESTION_LINES = (
    r"what calls returned\s*:",
    r"(?:parse|exec)_err[: ]",
    r"[\w.-]{1,40} (?-i:OK|PARSE_ERR|EXEC_ERR|TIMEOUT)\b",
)
"""Beginnings of lines that no question may have: results of earlier calls, and statuses."""

_BREAKS = r"\n\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029"
# Blanks that break no line, and characters that are not seen; line breaks are passed one by one, in linear time.
_BLANKS = r"\t \x1f\xa0\xad\u1680\u180e\u2000-\u200f\u202a-\u202f\u205f-\u2064\u3000\ufeff"
_NO_JSON_LINE = re.compile(r"[\x7f\x85\u2028\u2029]")


def _escape(found: re.Match[str]) -> str:
    return f"\\u{ord(found[0]):04x}"


class Quoting:
    """How foreign text is quoted in the prompts of one strategy or agent.

    Args:
        tags: names of its own tags, as patterns, beside `TAGS`; letter case does not count.
        lines: patterns of what begins a line of its records; letter case does not count.
        only: leave `TAGS` alone, for a text in which they are the strategy's own.
    """

    def __init__(self, tags: Iterable[str] = (), lines: Iterable[str] = (), *, only: bool = False) -> None:
        self._tags = "|".join((*(() if only else TAGS), *tags))
        self._begin = "|".join(lines)
        self._only = only

    # Patterns are made when they are needed: each takes a millisecond, and most processes need few of them.
    @cached_property
    def _marks(self) -> re.Pattern[str]:
        tag = rf"(?i:/?(?:(?:{self._tags or '(?!)'})\b|(?:function|parameter)=))"
        return _first_of(f"{IN_ANGLES}|{tag}", () if self._only else (_SWITCH, _ROUNDS))

    @cached_property
    def _lines(self) -> re.Pattern[str]:
        return re.compile(rf"([{_BREAKS}][{_BLANKS}]*)(?=(?i:{self._begin}))")

    def marked(self, text: str) -> bool:
        """Whether a text holds a control token or a tag, whatever its lines begin with."""
        return _may_hold(text) and self._marks.search(text) is not None

    def text(self, foreign: str) -> str:
        """A text as it may stand in a prompt."""
        found = self._marks.sub(r"\g<0>\\", foreign) if _may_hold(foreign) else foreign
        # The beginning of a text is the beginning of a line, so a line break stands before it meanwhile.
        return found if not self._begin else self._lines.sub(r"\1\\", f"\n{found}")[1:]

    def json(self, encoded: str) -> str:
        """JSON text as it may stand in a prompt, on one line; it reads back as the same data."""
        # Every mark lies inside a JSON string: outside of strings JSON has no `<`, and no letter behind `[` or `]`.
        found = self._marks.sub(_escape, encoded) if _may_hold(encoded) else encoded
        return found if found.isascii() else _NO_JSON_LINE.sub(_escape, found)


def _may_hold(text: str) -> bool:
    """A cheap look: whether anything in a text could begin a mark."""
    return (
        "<" in text
        or "[" in text
        or "]" in text
        or "think" in text
        # Of a text in ASCII this is known at once.
        or (not text.isascii() and "＜" in text)
    )


@lru_cache(maxsize=64)
def quoting(tags: tuple[str, ...] = (), lines: tuple[str, ...] = ()) -> Quoting:
    """The quoting with these tags and lines; made once."""
    return Quoting(tags, lines)


FOREIGN = Quoting()
"""The quoting that every prompt needs."""

IN_QUESTIONS = quoting((), QUESTION_LINES)
"""The quoting of a question in a prompt without tags of its own."""

quote_foreign = FOREIGN.text
"""Foreign text as it may stand in any prompt: no control token, and no tag of a strategy."""


@lru_cache(maxsize=1)
def _control() -> re.Pattern[str]:
    return _first_of(IN_ANGLES)


def break_control_tokens(text: str) -> str:
    """A whole message without control tokens; tags that a strategy wrote stay.

    For the door of a model server, behind which a chat template writes control tokens of its own.
    """
    return _control().sub(r"\g<0>\\", text) if _may_hold(text) else text


def is_control_token(token: str) -> bool:
    """Whether a token, such as one that was added to a tokenizer, is one that foreign text never has."""
    return _control().match(token) is not None


def quote_data(data: Any, quote: Callable[[str], str] = quote_foreign) -> Any:
    """JSON data with every text in it quoted, names too; the very data where nothing is to be quoted."""
    if isinstance(data, str):
        return quote(data)
    if isinstance(data, Mapping):
        pairs = {quote(key) if isinstance(key, str) else key: quote_data(value, quote) for key, value in data.items()}
        same = all(new is old for new, old in zip(pairs.values(), data.values(), strict=False))
        return data if same and pairs.keys() == data.keys() else pairs
    if isinstance(data, (list, tuple)):
        items = [quote_data(item, quote) for item in data]
        return data if all(new is old for new, old in zip(items, data, strict=True)) else items
    return data


def break_in_json(encoded: str) -> str:
    """JSON text whose strings hold no control token, also once it was read: some servers do, and write it anew."""
    # An escape may stand for any part of a token, so what has one is read; a text that is no JSON is not read later.
    if "\\u" in encoded:
        try:
            data = json.loads(encoded)
        except (ValueError, RecursionError):
            data = None
        if (quoted := quote_data(data, break_control_tokens)) is not data:
            return json.dumps(quoted, ensure_ascii=False)
    return _control().sub(r"\g<0>\\\\", encoded) if _may_hold(encoded) else encoded


class ToolQuoting:
    """Quotes the function objects of requests; those of the last request are known, for most requests have the same."""

    def __init__(self) -> None:
        self._known: tuple[Sequence[Any], Sequence[Any]] = ((), ())

    def __call__(self, tools: Sequence[Mapping[str, Any]]) -> list[Any]:
        """The function objects without control tokens and tags."""
        functions = [tool.get("function", tool) for tool in tools]
        known, quoted = self._known
        if len(known) != len(functions) or any(new is not old for new, old in zip(functions, known, strict=True)):
            quoted = [quote_data(function) for function in functions]
            self._known = functions, quoted
        return [
            tool if new is old else {**tool, "function": new} if "function" in tool else new
            for tool, new, old in zip(tools, quoted, functions, strict=True)
        ]
