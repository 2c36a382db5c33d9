r"""The letter of a choice, A to J or as far as there are choices, out of what models really write.

Looked for, in this order: a marked answer (`\boxed{C}`, `<answer>`), "the answer is (C)" and its kin, a text that is or
begins with a letter, a last line that is one, the words of exactly one choice. A text that continues
with an invented question is cut there. The invariant: "none of the above" and silence are *unparsable*; no letter is
guessed.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence
from typing import NamedTuple

from concertino_bench.tasks.grade import Grade, TextGrader, Verdict
from concertino_bench.tasks.task import Task

from .answers import bare, marked, sentences, spoken
from .base import shown
from .exact_match import normalise

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
# Letters that are read whatever the task has: one beyond its choices is a wrong answer, not an unparsable one.
_USUAL = 10

_OPEN = (
    r"[ \t\n*_$`\"'“”‘’<\[]{0,6}(?:\\\(|\\\[)?[ \t\n*_$]{0,6}"
    r"(?:\\(?:boxed|text|mathbf|textbf|mathrm)\{){0,3}[ \t*_]{0,4}"
)
_NOUN = (
    r"(?:answer|ans|option|choice|alternative|response|letter)s?"
    r"(?:[ \t]that[ \t](?:best[ \t])?(?:fits|matches|applies|works|is[ \t](?:correct|right|best|true)))?"
)
_LABEL = r"(?i:the[ \t])?(?i:correct[ \t])?(?i:option|choice|letter|answer)[ \t]{1,3}"
# What stands between a verb and the letter in other languages.
_ARTICLE = r"(?:(?:la|le|el|die|der|het|lettre|letra|opción|opção|option|choice|вариант|选项|選項)[ \t]{0,3})?"
_SURELY = r"(?:(?:for sure|clearly|therefore|thus|hence|definitely|indeed)[ \t,:]{1,2})?"
_REASON = r"(?:because|since|as|due|for|which|and|but|or|based|according|with)\b"
_ENDED = rf"(?=[ \t)\]}}*_`\"'”’]{{0,6}}(?:[.,;:!。，；、]|\n|$|(?<=[ \t]){_REASON}))"
_NEXT = re.compile(r"\n\s{0,8}(?:Question|Q)\s{0,4}\d{0,4}\s{0,4}[:.]")
_BEHIND = re.compile(r"([^()]{1,400}?)[ \t]{0,4}\(([A-Z])\)[ \t*_.]{0,6}")
_LINE = 500
_REFUSED = re.compile(rf"\b{_NOUN} (?:is|:)[ \t*:]{{0,4}}\(?\s?(?:none|not |cannot|impossible|unknown)", re.IGNORECASE)
_OPTIONS = re.compile(r"\b(?:[Oo]ption|[Cc]hoice)s?[ \t*(]{1,4}([A-Z])\b")
_WIDE: dict[int, int | str] = {
    **{code: code - 0xFEE0 for code in range(0xFF21, 0xFF3B)},
    **dict(zip(map(ord, "（）［］【】「」"), "()[][][]", strict=True)),
}


class _Patterns(NamedTuple):
    """How a letter is said to be the answer, begins a text, or stands alone; its group is the only one that matched."""

    said: tuple[re.Pattern[str], ...]
    leads: re.Pattern[str]
    begins: re.Pattern[str]
    alone: re.Pattern[str]
    labelled: re.Pattern[str]


@functools.cache
def _patterns(count: int) -> _Patterns:
    upper = f"A-{LETTERS[count - 1]}"
    either = f"{upper}{upper.lower()}"
    # "A" and "I" are words too: before a small letter they count only if a reason follows.
    letter = (
        rf"(?:[(\[{{][ \t*]{{0,3}}([{either}])[ \t*]{{0,3}}[)\]}}]"
        # The text may end within the brackets: the reply was cut off.
        rf"|[(\[][ \t*]{{0,3}}(?-i:([{upper}]))\s{{0,8}}\Z"
        # Letters of other alphabets may follow without a blank: `Cです`.
        rf"|(?-i:([{upper}])(?![A-Za-z0-9_À-ɏЀ-ӿ]|['’]\w|\.\w)(?!(?<=[AI]) (?!{_REASON})[a-z])))"
    )
    said = (
        rf"\b{_NOUN}(?:[ \t]{{1,3}}(?:choice|option|letter))?(?:[ \t]{{1,3}}to[ \t](?:the|this)[ \t]question)?"
        r"[ \t*_}\"']{0,6}(?:\bis|\bwould be|\bmust be|\bshould be|:|=|[-–—](?=[ \t]))"
        rf"[ \t*_}}:]{{0,6}}{_SURELY}"
        rf"(?:{_LABEL})?{_OPEN}{letter}"
    )
    right = r"(?:(?:the[ \t])?(?:correct|right|best|most)|the[ \t]answer)\b"
    # "Option B is correct" has the letter before the verb.
    is_right = (
        rf"\b(?:option|choice|answer)[ \t]{{1,3}}{_OPEN}{letter}[ \t*_}})\]]{{0,6}}[ \t](?:is|would be)[ \t]{right}"
    )
    bare_right = rf"(?:^|(?<=[.,:;] ))[*_]{{0,3}}{letter}[*_]{{0,3}}[ \t](?:is|would be)[ \t]{right}"
    chosen = (
        r"(?<!not )(?<!n't )(?<!n’t )\b(?:choose|chose|pick|select|selected|go with|opt for)[ \t]{1,3}"
        rf"(?:{_LABEL})?{_OPEN}{letter}{_ENDED}"
    )
    # "So it is C", where that is the last that is said.
    it_is = (
        rf"\b(?:it|this)[ \t](?:is|has to be|must be|should be|would be)[ \t]{_OPEN}{letter}"
        r"[ \t)\]}*_.!]{0,6}\s{0,8}\Z"
    )
    selected = rf"(?<![不别])[选選](?:择|擇|项|項)?[：: ]{{0,3}}{_OPEN}{letter}{_ENDED}"
    begins = rf"\s{{0,20}}(?:\*\*)?(?:[(\[]([{upper}])[)\]]|([{upper}])(?=\s{{0,4}}(?:$|[).:,;*。、])|\s*\n))"
    alone = (
        rf"[\s*_$(\[\\{{}}]{{0,12}}(?:boxed\{{|text\{{)?(?:{_LABEL})?[(\[]{{0,2}}([{either}])"
        r"[\s*_$)\]\\}.`\"']{0,12}"
    )
    labelled = rf"\s{{0,20}}(?:\*\*)?{_LABEL}{_OPEN}{letter}{_ENDED}"
    return _Patterns(
        tuple(
            re.compile(each, re.IGNORECASE | re.MULTILINE)
            for each in (said, is_right, bare_right, chosen, selected, it_is)
        ),
        re.compile(rf"[ \t*:：]{{0,4}}{_ARTICLE}{_OPEN}{letter}", re.IGNORECASE),
        re.compile(begins),
        re.compile(alone),
        re.compile(labelled, re.IGNORECASE),
    )


class ChoiceGrader(TextGrader):
    """Right if the letter is the task's. `metadata["choices"]` says how many letters there are, and their texts."""

    name = "choice"
    kinds = ("choice",)

    def judge(self, task: Task, text: str) -> Grade:
        """Grade a text."""
        choices = _choices(task)
        expected = _expected(task, choices)
        found, how = read_letter(text, choices)
        if not found:
            return Grade(Verdict.UNPARSABLE, how, (expected,))
        if choices and LETTERS.index(found) >= len(choices):
            reason = f"{found} is none of the {len(choices)} choices, expected {expected}"
            return Grade(Verdict.WRONG, reason, (expected,), (found,))
        if found == expected:
            return Grade(Verdict.RIGHT, f"the answer is right ({how})", (expected,), (found,))
        return Grade(Verdict.WRONG, f"{found}, expected {expected} ({how})", (expected,), (found,))


def read_letter(text: str, choices: Sequence[str] = ()) -> tuple[str, str]:
    """The letter that a text chooses, and how it was found; an empty letter and why not.

    Args:
        text: everything that was said.
        choices: the texts of the choices, if it may name one by its words.
    """
    text, patterns = _own(spoken(text).translate(_WIDE)), _patterns(max(_USUAL, len(choices)))
    if not text.strip():
        return "", "the text is empty"
    for place in reversed(marked(text)):
        said = bare(place.text)
        if letter := _alone(said, patterns) or _begins(said, patterns) or _worded(said, choices):
            return letter, f"in {place.marker}"
    if letter := _said(text, patterns, choices):
        return letter, "said to be the answer"
    if letter := _begins(text, patterns):
        return letter, "at the beginning"
    last_line = text.rstrip()[-200:].rpartition("\n")[2]
    if letter := _alone(last_line, patterns):
        return letter, "on the last line"
    if letter := _worded(text, choices):
        return letter, "by its words"
    if _REFUSED.search(text):
        return "", "it says that no choice is the answer"
    return "", f"no letter is chosen: …{shown(text.rstrip()[-60:])!r}"


def _said(text: str, patterns: _Patterns, choices: Sequence[str]) -> str:
    """The letter of the last statement: models go through the choices before they decide."""
    found = [(match.start(), _letter(match)) for pattern in patterns.said for match in pattern.finditer(text)]
    for place in sentences(text):
        match = patterns.leads.match(place.text)
        letter = _letter(match) if match else _alone(place.text, patterns) or _chosen_words(place.text, choices)
        found += [(place.start, letter)] if letter else []
    return max(found)[1] if found else ""


def _chosen_words(text: str, choices: Sequence[str]) -> str:
    """The letter of a choice whose words are all that is said, maybe with its letter behind them: `Paris (B)`."""
    behind = _BEHIND.fullmatch(text)
    said = behind[1] if behind else text
    letter = _worded(said, choices) if len(text) <= _LINE else ""
    # With a letter of another choice, nothing is chosen.
    return letter if not behind or behind[2] == letter else ""


def _letter(match: re.Match[str]) -> str:
    return next(group for group in match.groups() if group).upper()


def _own(text: str) -> str:
    """The text up to the next question that a model makes up."""
    # Behind the first sign: a reply that repeats the question at its beginning is not cut to nothing.
    cut = _NEXT.search(text, len(text) - len(text.lstrip()) + 1)
    return text[: cut.start()] if cut else text


def _alone(text: str, patterns: _Patterns) -> str:
    match = patterns.alone.fullmatch(bare(text)) if len(text) <= 60 else None
    return match[1].upper() if match else ""


def _begins(text: str, patterns: _Patterns) -> str:
    if match := patterns.begins.match(text):
        return _letter(match)
    match = patterns.labelled.match(text)
    # A reply that goes through the options one by one begins with the first of them, and chooses none.
    several = {found[1] for found in _OPTIONS.finditer(text)} if match else set()
    return _letter(match) if match and len(several) < 2 else ""


def _worded(text: str, choices: Sequence[str]) -> str:
    """The letter of the only choice that the text is, or that its last line is."""
    if not choices or len(text) > 20_000:
        return ""
    for said in (bare(text), bare(text.strip().rpartition("\n")[2])):
        same = [
            letter for letter, choice in zip(LETTERS, choices, strict=False) if normalise(choice) == normalise(said)
        ]
        # Two choices may be equal after normalisation; then the words choose neither.
        if len(same) == 1 and normalise(said):
            return same[0]
    return ""


def _choices(task: Task) -> tuple[str, ...]:
    choices = task.metadata.get("choices", ())
    if isinstance(choices, str) or len(choices) > len(LETTERS):
        raise ValueError(f"{task.id}: metadata['choices'] is {choices!r}; expected up to {len(LETTERS)} texts")
    return tuple(str(choice) for choice in choices)


def _expected(task: Task, choices: tuple[str, ...]) -> str:
    answer = task.answer.strip()
    letter = answer.strip("().").upper()
    if len(letter) == 1 and letter in (LETTERS[: len(choices)] if choices else LETTERS):
        return letter
    if worded := _worded(answer, choices):
        return worded
    raise ValueError(
        f"{task.id}: the answer {answer!r} is not a letter of the {len(choices)} choices, nor the text of one"
    )
