"""The question grammar of MASBENCH, as a reader: text in, `Question` out.

    The number of each X's Y equals E.    E: 7 · 7 more than B · 7 less than B · 7 times as much as B · B
                                          B: each X's Y · the sum of each …, each … and each … ·
                                             the difference of each … and each …
    The magic number for W is 1234567.
    How many Y does X have?               also: What is the value of X's Y?
    From the passage, identify …          … the number of Y that X has, … the magic number for W

[answer1], in the place of a quantity, is the one that problem 1 asks for; a text that stands alone may say

    [answer1] stands for each X's Y and equals 7.    also: equals \\boxed{7}.

Arithmetic is modulo 23, and what no sentence mentions is 0. A sentence that asks to *verify* a value is
a **lure**: its value contradicts the text and never counts. Other prose is a remark. The invariant: a
sentence that states a number is either understood or reported, never skipped in silence (`strict=False`
lists it in `Problem.unread`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from concertino_toy.reading import PROBLEM_HEADING

from .ontology import Quantity, split_possessive

MODULUS = 23


class GrammarError(ValueError):
    """A text is outside the grammar, or contradicts itself; says which sentence, and what would do."""


class Needle(NamedTuple):
    """A number hidden in the passage under a word; not modulo 23."""

    word: str

    def __str__(self) -> str:
        return f"the magic number for {self.word}"


Ask = Quantity | Needle


@dataclass(frozen=True, slots=True)
class Relation:
    """Right side of "equals", as `shift + factor * (sum or difference of terms)`; a term is a product."""

    terms: tuple[tuple[Quantity, ...], ...] = ()
    factor: int = 1
    shift: int = 0
    difference: bool = False
    total: bool = False

    @property
    def operations(self) -> frozenset[str]:
        """What it takes to work it out: a subset of `skills.OPERATIONS`."""
        body = "total" if self.total else "difference" if self.difference else "sum" if len(self.terms) > 1 else ""
        used = {body, "times" if self.factor != 1 else "", "more" if self.shift and self.terms else ""} - {""}
        return frozenset(used or {"copy"})

    @property
    def needs(self) -> tuple[Quantity, ...]:
        """The quantities it rests on, in order."""
        return tuple(dict.fromkeys(quantity for term in self.terms for quantity in term))

    def value(self, values: Mapping[Quantity, int]) -> int:
        """The number, modulo 23."""
        products = []
        for term in self.terms:
            product = 1
            for quantity in term:
                product = product * values[quantity] % MODULUS
            products.append(product)
        # Python's % gives a number from 0 for negative ones, too.
        base = products[0] - products[1] if self.difference else sum(products)
        return (self.shift + self.factor * base) % MODULUS

    def formula(self, names: Mapping[Quantity, object] | None = None) -> str:
        """As an expression, with the names of the quantities or with what `names` puts in their place."""
        if not self.terms:
            return str(self.shift)
        shown = [" * ".join(str(names[q] if names else q) for q in term) for term in self.terms]
        text = (" - " if self.difference else " + ").join(shown)
        compound = len(shown) > 1
        if self.factor != 1:
            text, compound = f"{self.factor} * ({text})" if compound else f"{self.factor} * {text}", False
        if self.shift:
            body = f"({text})" if compound else text
            text = f"{self.shift} + {body}" if self.shift > 0 else f"{body} - {-self.shift}"
        return text


class Lure(NamedTuple):
    """A false claim, placed after the fact. `about` is None where the claim itself cannot be read."""

    text: str
    about: Ask | None = None
    value: int = 0


@dataclass
class Problem:
    """One problem as read. Filled by `read`; treat it as immutable afterwards.

    Attributes:
        number: as in "Problem 2:"; 1 where the text has no headings.
        facts: what the sentences define.
        needles: hidden numbers by word.
        given: results of other problems that the text states: number → (quantity, value).
        asks: what is asked for, in order.
        lures: claims to verify; never counted.
        unread: sentences that state something the grammar does not have (only with `strict=False`).
    """

    number: int
    facts: dict[Quantity, Relation] = field(default_factory=dict)
    needles: dict[str, int] = field(default_factory=dict)
    given: dict[int, tuple[Quantity, int]] = field(default_factory=dict)
    asks: list[Ask] = field(default_factory=list)
    lures: list[Lure] = field(default_factory=list)
    unread: list[str] = field(default_factory=list)

    @property
    def results_used(self) -> tuple[int, ...]:
        """The numbers k of all [answerk] in it."""
        used = [*self.facts, *(q for relation in self.facts.values() for q in relation.needs)]
        used += [ask for ask in self.asks if isinstance(ask, Quantity)]
        return tuple(dict.fromkeys(k for k in map(result_number, used) if k is not None))


@dataclass(frozen=True)
class Question:
    """A text as read: one or more problems."""

    problems: tuple[Problem, ...]


def result_mark(number: int) -> Quantity:
    """What stands for the result of a problem: [answer2]."""
    return Quantity("", f"[answer{number}]")


def results_used(text: str) -> tuple[int, ...]:
    """The numbers of all problems whose results a text uses."""
    return tuple(dict.fromkeys(map(int, _RESULT.findall(text))))


def state_result(number: int, about: Quantity, value: str) -> str:
    """The sentence that gives the result of another problem."""
    return f"{result_mark(number)} stands for each {about} and equals {value}."


def stated_results(text: str) -> list[tuple[int, str]]:
    """The results of other problems that a text gives: number and value."""
    return [(int(number), value) for number, _, value in _GIVEN.findall(text)]


def result_number(quantity: Quantity) -> int | None:
    """k for [answerk], None for a plain quantity."""
    match = _RESULT.fullmatch(quantity.item) if not quantity.owner else None
    return int(match[1]) if match else None


_SUBTASK = re.compile(r"\bsub-?task:\s", re.I)
_RESULT = re.compile(r"\[answer(\d+)\]")
_SENTENCE = re.compile(r"(?<=[.?!])\s+|\n\s*\n|\n\s*(?=- )|<[^<>]*>|={3,}")
_STATES = re.compile(r"\d|\bequals?\b|\bnumber (?:of|for)\b|\?$", re.I)
_REMARK = re.compile(r"using the result \[answer|- ?\[(?:variable|answer)k\]", re.I)
_DEFINES = re.compile(r"the number of each (.+?) equals (.+)", re.I)
_GIVEN = re.compile(r"\[answer(\d+)\] stands for each (.+) and equals (?:\\boxed\{)?(\d+)\}?", re.I)
_NEEDLE = re.compile(r"(?:one of )?the (?:special )?magic numbers? for (.+?) is:? ?(\d+)", re.I)
_LURE = re.compile(r"\bverif(?:y|ied)\b", re.I)
_CLAIM = re.compile(r"(the (?:number of|magic number for) .+?) (?:is|equals) (\d+)$", re.I)
_HAVE = re.compile(r"how many (.+?) (?:does|do) (?:each |an? |the )?(.+?) have", re.I)
_VALUE = re.compile(r"what is (?:the value of )?(?:the number of )?(?:each )?(.+)", re.I)
_IDENTIFY = re.compile(
    r"from the passage,? identify(?: and return)? (.+?)(?:,? (?:wrapped|each wrapped|in order).*)?", re.I
)
_THAT_HAS = re.compile(r"the number of (.+?) that (.+?) (?:has|have)", re.I)
_MAGIC = re.compile(r"(?:the )?magic number for (.+)", re.I)
_SCALED = re.compile(r"(\d+) (more than|less than|fewer than|times as much as|times) (.+)", re.I)
_AND = re.compile(r",? and (?=each |\[answer)|, (?=each |\[answer)", re.I)
_AND_THE = re.compile(r",? and (?=the )|, (?=the )", re.I)


def read(text: str, *, strict: bool = True) -> Question:
    """Read a text.

    Raises:
        GrammarError: a sentence outside the grammar (with `strict`), a contradiction, or nothing asked.
    """
    # Typographic marks of pasted texts.
    text = text.replace("\u2019", "'").replace("\u00a0", " ")
    problems = [_problem(number, section, strict) for number, section in sections(text)]
    problems = [problem for problem in problems if problem.facts or problem.asks or problem.needles]
    if not any(problem.asks for problem in problems):
        raise GrammarError(
            'the text asks nothing; expected a question such as "How many Room does Riverside High have?"'
        )
    for problem in problems:
        if not problem.asks:
            raise GrammarError(f"problem {problem.number} asks nothing; end it with a question")
    numbers = [problem.number for problem in problems]
    if len(set(numbers)) < len(numbers):
        raise GrammarError(f"the problems are numbered {numbers}; give each its own number")
    return Question(tuple(problems))


def focus(text: str) -> str:
    """What a text is about: the sub-task at its end, where it has one.

    A sub-task that states and asks something stands alone. One that only names a problem of the task in front of it
    ("Problem 2: as above") is that problem, with what else the sub-task says. Any other leaves the text whole.
    """
    *before, own = _SUBTASK.split(text)
    if not before:
        return text
    try:
        if all(problem.facts or problem.needles for problem in read(own, strict=False).problems):
            return own
    # Something else is stated before it; what cannot be read alone needs the text in front.
    except GrammarError:
        pass
    named = list(PROBLEM_HEADING.finditer(own))
    problems = dict(sections(" ".join(before)))
    number = int(named[0][1]) if len(named) == 1 else 0
    if number not in problems:
        return text
    return f"Problem {number}: {problems[number]}\n\n{own[named[0].end() :]}"


def sections(text: str) -> list[tuple[int, str]]:
    """Cut a text at its "Problem n:" headings; what precedes the first belongs to every problem.

    A heading with nothing under it is part of a form to fill in, and dropped.
    """
    opening, *rest = PROBLEM_HEADING.split(text)
    found = [(int(number), body) for number, body in zip(rest[::2], rest[1::2], strict=True) if body.strip()]
    return [(number, f"{opening}\n\n{body}") for number, body in found] or [(1, opening)]


def sentences(text: str) -> Iterator[str]:
    """The sentences of a text, without their full stops and question marks kept."""
    for piece in _SENTENCE.split(text):
        sentence = " ".join(piece.split())
        if sentence:
            yield sentence


def _problem(number: int, text: str, strict: bool) -> Problem:
    problem = Problem(number)
    for sentence in sentences(text):
        # A lure is found first: it states a number like a fact, and must never count as one.
        if _LURE.search(sentence):
            problem.lures.append(_lure(sentence.rstrip(".!")))
        elif _STATES.search(sentence) and not _REMARK.match(sentence):
            try:
                _take(problem, sentence)
            except GrammarError as error:
                if strict:
                    raise GrammarError(f'problem {number}, "{sentence}": {error}') from None
                problem.unread.append(sentence)
    return problem


def _take(problem: Problem, sentence: str) -> None:
    """Add what one sentence states."""
    body = sentence.rstrip(".?! ")
    if sentence.endswith("?") or _IDENTIFY.fullmatch(body):
        problem.asks.extend(_asks(body))
    elif match := _GIVEN.fullmatch(body):
        problem.given[int(match[1])] = (_reference(match[2]), int(match[3]))
    elif match := _DEFINES.fullmatch(body):
        quantity, relation = _reference(match[1]), _relation(match[2])
        if problem.facts.setdefault(quantity, relation) != relation:
            raise GrammarError(f"it defines {quantity} a second time, and differently; keep one of the two sentences")
    elif match := _NEEDLE.fullmatch(body):
        if problem.needles.setdefault(match[1], int(match[2])) != int(match[2]):
            raise GrammarError(f"it gives {match[1]!r} a second magic number; keep one of the two sentences")
    else:
        raise GrammarError('it is outside the grammar; expected "The number of each X\'s Y equals …" or a question')


def _asks(body: str) -> list[Ask]:
    if match := _IDENTIFY.fullmatch(body):
        return [_ask(item) for item in _AND_THE.split(match[1])]
    if match := _HAVE.fullmatch(body):
        return [Quantity(match[2], match[1])]
    if match := _VALUE.fullmatch(body):
        return [_ask(match[1])]
    raise GrammarError('expected "How many Y does X have?" or "What is the value of X\'s Y?"')


def _ask(text: str) -> Ask:
    if match := _MAGIC.fullmatch(text):
        return Needle(match[1])
    if match := _THAT_HAS.fullmatch(text):
        return Quantity(match[2], match[1])
    return _reference(text)


def _lure(sentence: str) -> Lure:
    match = _CLAIM.search(sentence)
    if match is None:
        return Lure(sentence)
    try:
        return Lure(sentence, _ask(re.sub(r"^the number of each ", "", match[1], flags=re.I)), int(match[2]))
    except GrammarError:
        return Lure(sentence)


def _relation(text: str) -> Relation:
    if text.isdecimal():
        return Relation(shift=int(text) % MODULUS)
    shift, factor = 0, 1
    match = _SCALED.fullmatch(text)
    if match and "times" not in match[2].lower():
        shift, text = int(match[1]) % MODULUS * (1 if match[2].lower() == "more than" else -1), match[3]
        match = _SCALED.fullmatch(text)
    if match and "times" in match[2].lower():
        factor, text = int(match[1]) % MODULUS, match[3]
    terms, difference = _terms(text)
    return Relation(tuple((term,) for term in terms), factor, shift, difference)


def _terms(text: str) -> tuple[list[Quantity], bool]:
    lowered = text.lower()
    for opening in ("the sum of ", "the difference of "):
        if lowered.startswith(opening):
            parts = [_reference(part) for part in _AND.split(text[len(opening) :])]
            if "difference" in opening and len(parts) != 2:
                raise GrammarError(f"a difference is of two quantities, here are {len(parts)}")
            return parts, "difference" in opening
    return [_reference(text)], False


def _reference(text: str) -> Quantity:
    text = re.sub(r"^each ", "", text.strip(), flags=re.I)
    if match := _RESULT.fullmatch(text):
        return Quantity("", match[0])
    quantity = split_possessive(text)
    if quantity is None or " each " in f" {text} ":
        raise GrammarError(f'{text!r} names no quantity; expected "X\'s Y" or [answer1]')
    return quantity
