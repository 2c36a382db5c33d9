"""Guided decoding: members, arguments and listed choices are written as the prompt lists them, in its limit of calls;
and an answer is a number that a reply holds.

It knows the one form of turns that the tiny conductor writes. A name is chosen as a whole, because many names may begin
alike. Invariants: no listed name and no number of a reply is preferred over another, so the choice is the model's
alone; and every token may follow outside of names, argument names, listed choices, answers and the end of a full round.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from concertino import Message

from concertino_toy.reading import observed_lines

from .transformer import Floats

if TYPE_CHECKING:
    from .tokenizer import BytePairTokenizer

_LINE = re.compile(r"^([\w.-]+)\((.*?)\)(?=: |$)", re.MULTILINE)
_ARGUMENT = re.compile(r"(\w+)(\[\]|\{\})?(?:=([^,?]*))?(\??)")
_MOST = re.compile(r"\bat most (\d+) a round\b")
_MORE = re.compile(rb"(.*?</tool_call>)\s*\S", re.DOTALL)
"""A token that ends a call, and begins something else."""
_ASKED = re.compile(r"<reasoning>(?:[^<]*; )?ask((?: \d)+)")
"""A turn up to the problems that it is about to ask; the model has seen six at most, so a number is a digit."""
_ASKS, _DONE = re.compile(r"<reasoning>(?:[^<]*; )?ask\b"), re.compile(r"<reasoning>(?:[^<]*; )?done</reasoning>")
_NOTED = re.compile(r"<reasoning>(?:[^<;]*, )?\d+: ((?:(?!, )[^;<])*)$")
"""A turn up to what it notes as the answer of a problem, whole or begun."""
_BOXED = re.compile(r"\\boxed\{([^{}]*)$")
_NUMBER = re.compile(r"-?\d[\d,]*(?:\.\d+)?")
_FAILURES = tuple(f"?{times}" for times in range(1, 10))
_FINAL, _UNKNOWN = "final_answer", "unknown"
_OPEN, _CLOSE, _HEAD, _BODY = "<tool_call>", "</tool_call>", '{"name": "', ', "arguments": {'
_PAIR = re.compile(r'"(\w+)": "((?:[^"\\]|\\.)*)"(, |\}|$)')
_KEY = re.compile(r'"(\w*)$')
_NAMED = re.compile(r'"(\w+)("[: ]*)$')
_VALUE = re.compile(r'"(\w+)": "((?:[^"\\]|\\.)*)$')


@dataclass(frozen=True)
class PromptedMember:
    """One line of the prompt.

    Attributes:
        name: of the member.
        choices: of each argument, what it may be; empty where that is not listed, or only in part.
        opened: how the value of each argument begins, behind its name: `": "`.
        required: arguments that are needed.
    """

    name: str
    choices: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    opened: Mapping[str, str] = field(default_factory=dict)
    required: frozenset[str] = frozenset()


def offers_in(text: str) -> dict[str, PromptedMember]:
    """The members that a brief prompt lists, by name; `final_answer` is always there."""
    found = {_FINAL: PromptedMember(_FINAL)}
    for name, told in _LINE.findall(text):
        arguments = [_ARGUMENT.fullmatch(part) for part in told.split(", ")] if told else []
        if not all(arguments):
            continue  # a form that is not read here: the member cannot be guided
        read = [part for part in arguments if part is not None]
        choices = {part[1]: tuple(part[3].split("|")) if part[3] else () for part in read}
        whole = {key: () if "…" in values else values for key, values in choices.items()}
        opened = {part[1]: f'": {part[2][0] if part[2] else chr(34)}' for part in read}
        found[name] = PromptedMember(name, whole, opened, frozenset(part[1] for part in read if not part[4]))
    return found


def continuations(text: str, offers: Mapping[str, PromptedMember]) -> list[str]:
    """Texts one of which must follow, whole or begun; none where anything may."""
    begun = text.rfind(_OPEN)
    block = text[begun + len(_OPEN) :] if begun >= 0 else ""
    if not block.startswith(_HEAD) or _CLOSE in block:
        return []
    name, closed, rest = block[len(_HEAD) :].partition('"')
    if not closed:
        known = [each for each in offers.values() if each.name.startswith(name)]
        return [f'{each.name[len(name) :]}"{_BODY}{end}' for each in known for end in _begins(each)]
    if name not in offers:
        return []
    if _BODY.startswith(rest):
        return [f"{_BODY[len(rest) :]}{end}" for end in _begins(offers[name])]
    return _inside(rest[len(_BODY) :], offers[name]) if rest.startswith(_BODY) else []


def _begins(offer: PromptedMember) -> Iterator[str]:
    """How the arguments may begin."""
    if offer.choices:
        yield '"'
    if not offer.required:
        yield "}"


def _inside(text: str, offer: PromptedMember) -> list[str]:
    """What may follow among arguments."""
    used: list[str] = []
    while (pair := _PAIR.match(text)) and pair[3] == ", ":
        used.append(pair[1])
        text = text[pair.end() :]
    if key := _KEY.fullmatch(text):
        left = [name for name in offer.choices if name not in used and name.startswith(key[1])]
        return [name[len(key[1]) :] + offer.opened[name] for name in left]
    if (named := _NAMED.fullmatch(text)) and offer.opened.get(named[1], "").startswith(named[2]):
        return [offer.opened[named[1]][len(named[2]) :]]
    if value := _VALUE.fullmatch(text):
        known = [each for each in offer.choices.get(value[1], ()) if each.startswith(value[2])]
        return [f'{each[len(value[2]) :]}"' for each in known]
    return []


def is_full(text: str, most: int | None) -> bool:
    """Whether a turn has as many calls as a round may have, and nothing behind them."""
    return most is not None and text.count(_CLOSE) >= most and text.rstrip().endswith(_CLOSE)


class Guide:
    """The tokens that may follow in one turn.

    Args:
        messages: the conversation; the first one lists the members, and says how many calls a round may have.
        tokenizer: of the model.
    """

    def __init__(self, messages: Sequence[Message], tokenizer: BytePairTokenizer) -> None:
        prompt = messages[0].text if messages else ""
        self._offers = offers_in(prompt) if messages else {}
        self._most = int(found[1]) if (found := _MOST.search(prompt)) else None
        # The system's prompt and the question come first; of what follows, the user's side holds the replies.
        told = [line for each in messages[2:] if each.role == "user" for line in observed_lines(each.text)]
        numbers = (number.rstrip(",") for _, _, text in told for number in _NUMBER.findall(text))
        self._answers = tuple(dict.fromkeys(numbers))
        self._tokens, self._end = tokenizer.by_begin, tokenizer.end
        # A token may end one call and begin the next at once; `steered` gives its share to the one that only ends.
        plain = [each for tokens in self._tokens.values() for each in tokens]
        known = {data: number for number, data in plain}
        ended = {number: _MORE.match(data) for number, data in plain}
        self._ends = {number: known[found[1]] for number, found in ended.items() if found and found[1] in known}

    def names(self, text: str) -> list[str]:
        """The names of which one is written next; none unless a text ends where a call's name begins."""
        offers = self._offered(text)
        return list(offers) if text.endswith(_OPEN + _HEAD) and len(offers) > 1 else []

    def allowed(self, text: str) -> list[int]:
        """Tokens one of which must follow a text; none where any may."""
        if is_full(text, self._most):
            return [self._end]
        following = self._asked(text) or self._answered(text) or continuations(text, self._offered(text))
        wanted = [each.encode() for each in following]
        found: dict[int, None] = {}
        for each in wanted:
            for number, data in self._tokens.get(each[:1], ()):
                # A token may be shorter than what must follow, or reach beyond it.
                if each.startswith(data) or data.startswith(each):
                    found[number] = None
        return list(found)

    def _offered(self, text: str) -> Mapping[str, PromptedMember]:
        """Who can be called: a turn that asks calls members, and one that is done answers."""
        members = {name: offer for name, offer in self._offers.items() if name != _FINAL}
        if members and _ASKS.search(text):
            return members
        return {_FINAL: self._offers[_FINAL]} if self._offers and _DONE.search(text) else self._offers

    def _answered(self, text: str) -> list[str]:
        """How an answer that is begun may go on: as a number that a reply holds."""
        if self._answers and (noted := _NOTED.search(text)):
            known = [f"{each}{end}" for each in (*self._answers, *_FAILURES) for end in (", ", "; ")]
        elif self._answers and (noted := _BOXED.search(text)):
            known = [f"{each}}}" for each in (*self._answers, _UNKNOWN)]
        else:
            return []
        return [each[len(noted[1]) :] for each in known if each.startswith(noted[1])]

    def _asked(self, text: str) -> list[str]:
        """Who has named as many problems as a round may ask has done with naming."""
        asked = _ASKED.fullmatch(text)
        full = asked is not None and self._most is not None and len(asked[1].split()) >= self._most
        return ["</reasoning>"] if full else []

    def steered(self, text: str, logits: Floats) -> Floats:
        """Logits for a text: in the last call of a round, what would begin another one ends this one.

        A token may hold the end of a call and the beginning of the next; its share goes to the one that ends there.
        """
        # Only in the last call of a round is another one too many.
        if self._most is None or text.count(_OPEN) < self._most:
            return logits
        steered = logits.copy()
        for more, ends in self._ends.items():
            steered[ends] = np.logaddexp(steered[ends], steered[more])
            steered[more] = -np.inf
        return steered
