r"""Mathematical answers in LaTeX, compared by value with math-verify, in a process with a time limit.

The answer is the last `\boxed{}` (several in a row are one list), unless a "final answer is" stands behind it; else
what "the answer is" says; else the whole text if it is not prose; else what math-verify finds in the text's end. Plain
integers are compared here, all else in a worker process. The conventions, where the field has several:

- `10\%` is 10, and is not 0.1: the percent sign is a unit.
- a bare list `1, 2` is unordered, `(1, 2)` is ordered, `\{1, 2\}` is not; `(1, 2)` is not `\{1, 2\}`.
- `7,425,000` and `14{,}916` are one number each, `32, 349` is a list, `1000,99` and `0,5` are decimals.
- `x = 5` is 5; `7 = 11a + c` is not `11a + c`.
- an exact answer equals a decimal gold of three or more digits if it rounds to it; `0.33` is not `1/3`.

The invariant: a comparison that takes too long or breaks is *wrong* with that as its reason, and never an exception.
"""

from __future__ import annotations

import asyncio
import functools
import re
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

from concertino_bench.tasks.grade import Grade, Grader, GraderServices, Submission, Verdict
from concertino_bench.tasks.task import Task

from .answers import Marked, bare, boxes, marked, sentences, spoken
from .base import golds, shown
from .comparing import Comparer
from .numeric import plain_number

# Characters: the end of a reply without a mark, an answer that is compared, and words between boxes of one list.
_TAIL = 3000
_LONGEST = 2000
_BETWEEN = 60
# Repeats are bounded in all of these: a reply may be hostile, and unbounded ones could take quadratic time.
_MATH = re.compile(r"\$\$([^$]{1,2000})\$\$|\$([^$\n]{1,2000})\$|\\\(([^$]{1,2000}?)\\\)|\\\[([^$]{1,2000}?)\\\]")
_SENTENCE = re.compile(r"[.。](?:\s|$)|\s+I hope")
_COMMAND = re.compile(r"\\[A-Za-z]+|\b(?:percentage|percent|pct|degrees|units|and|or)\b")
_WORD = re.compile(r"[^\W_]+|[=.:]")
_JOINING = frozenset({"and", "or", "for", "part", "case", "with", "the", "a", "b", "c", "d", "i", "ii", "iii"})
_PROSE = re.compile(r"[^\W\d_]{3,}")
_PERCENT = re.compile(r"\\?%|\b(?:percentage|percent|pct)\b\.?")
_STYLE = re.compile(r"\\(?:mathrm|mathbf|textbf|mathit|operatorname)\s?\{([^{}]{0,80})\}")
_DECIMAL_COMMA = re.compile(r"-?(?:\d{4,12},\d{1,6}|0,\d{1,12})")


class ReadExpression(NamedTuple):
    """An answer as it goes into a comparison.

    Attributes:
        latex: the answer, or the text to look for it in.
        whole: it is the answer and nothing else.
    """

    latex: str
    whole: bool


class Mathematics(Grader):
    """Right if the answer has the value of a gold text.

    Args:
        seconds: of one comparison.
        workers: comparisons at once.
        ordered: bare lists are equal only in the same order.
        rounding: an exact answer equals a decimal gold that it rounds to.
    """

    name = "math"
    kinds = ("math",)

    def __init__(self, seconds: float = 5.0, *, workers: int = 2, ordered: bool = False, rounding: bool = True) -> None:
        self.ordered, self.rounding = ordered, rounding
        self._comparer = Comparer(seconds, workers)
        self._threads = ThreadPoolExecutor(workers, "math")  # of its own, so that nothing else waits for a comparison

    async def grade(self, task: Task, submission: Submission, services: GraderServices) -> Grade:
        """Grade the submission's text, in a thread, so that the event loop keeps running."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._threads, self.judge, task, submission.text)

    def check(self, task: Task) -> None:
        """See that a task has an answer that can be compared with."""
        for gold in golds(task):
            _gold(task, gold)

    def judge(self, task: Task, text: str) -> Grade:
        """Grade a text. Blocks for up to the seconds of a comparison."""
        accepted = golds(task)
        theirs = [_gold(task, gold) for gold in accepted]
        read = read_answer(text)
        if not read.latex:
            return Grade(Verdict.UNPARSABLE, "there is no answer in the text", accepted)
        # Most answers are equal texts or plain integers, which need no worker process.
        if read.whole and (quick := _quickly(theirs, read.latex)) is not None:
            return _grade(accepted, read.latex, quick, "")
        if read.whole:
            # math-verify takes `(1, 2)` for an open interval or a tuple, and calls it equal to `\{1, 2\}`.
            theirs = [gold for gold in theirs if {_kind(gold), _kind(read.latex)} != {"tuple", "set"}]
            if not theirs:
                return _grade(accepted, read.latex, False, "one is ordered and the other is not")
        ask = functools.partial(self._comparer.compare, whole=read.whole, rounding=self.rounding)
        seen = ask([_tupled(gold, self.ordered) for gold in theirs], _tupled(read.latex, self.ordered and read.whole))
        if seen.found is None and not seen.trouble:
            return Grade(Verdict.UNPARSABLE, "there is no mathematics in the text", accepted)
        found = read.latex if read.whole else seen.found or ""
        return _grade(accepted, found, seen.equal, seen.trouble)


def read_answer(text: str) -> ReadExpression:
    """The answer of a text, cleaned."""
    text = spoken(text)
    # The last mark counts: models box intermediate results and correct themselves.
    boxed = boxes(text)
    said = sentences(text)
    places = marked(text)
    if boxed or places:
        last = max(places, key=lambda place: place.start)
        later = [place for place in said if place.marker == "final answer is" and place.start > last.end]
        latex = _from_sentence(later[-1].text) if later else ""
        latex = latex or (_row(text, boxed) if last.marker == "\\boxed{}" else _inner(last.text))
        return ReadExpression(_clean(latex), True)
    for place in reversed(said):
        if latex := _from_sentence(place.text):
            return ReadExpression(_clean(latex), True)
    whole = bare(text) if len(text) <= _LONGEST else ""
    if whole and (not _PROSE.search(_COMMAND.sub(" ", whole)) or not any(mark.isspace() for mark in whole)):
        return ReadExpression(_clean(_inner(whole)), True)
    return ReadExpression(text[-_TAIL:].strip(), False)


def _row(text: str, boxed: list[Marked]) -> str:
    """The last box, with those before it that only a few words part from it: they are one list."""
    row = [boxed[-1]]
    for place in reversed(boxed[:-1]):
        between = text[place.end : row[0].start]
        if len(between) > _BETWEEN or not set(_WORD.findall(_COMMAND.sub(" ", between).lower())) <= _JOINING:
            break
        row.insert(0, place)
    if len({place.text for place in row}) == 1:
        return row[0].text
    return ", ".join(place.text for place in row)


def _from_sentence(said: str) -> str:
    """The mathematics of what stands behind "the answer is": the first formula, else a short text."""
    said = said[: 2 * _LONGEST]
    said = said[_last_is(said) :]
    before = said.find(". ")
    formula = _MATH.search(said)
    if formula and (before < 0 or formula.start() < before):
        return next(group for group in formula.groups() if group)
    said = _SENTENCE.split(said, maxsplit=1)[0].strip()
    prose = _PROSE.findall(_COMMAND.sub(" ", said))
    return bare(said) if said and len(prose) <= 3 and len(said) <= 200 else ""


def _last_is(said: str) -> int:
    """Where the value begins in "the number of points of $f$ is 19", 0 in a sentence that has no such "is"."""
    end = said.find(". ")
    at = said.rfind(" is ", 0, end if end >= 0 else len(said))
    return at + 4 if at >= 0 and re.search(r"[\d$\\]", said[at:]) else 0


def _inner(text: str) -> str:
    """The only formula of a text that is short enough to be an answer, else the text."""
    formulas = _MATH.findall(text[:_LONGEST])
    return next(filter(None, formulas[0])) if len(formulas) == 1 and _around(text) else text


def _around(text: str) -> bool:
    return not re.search(r"\d|\bor\b|\band\b|,", _MATH.sub("", text[:_LONGEST]))


def _clean(latex: str) -> str:
    """An answer without dollar signs, percent signs, styles and the marks of thousands."""
    latex = _STYLE.sub(r"\1", latex[:_LONGEST]).replace("\\$", "").replace("$", "").replace("\\\\dfrac", "\\dfrac")
    latex = _PERCENT.sub("", latex).strip().removesuffix(".").rstrip("\\ ").strip()
    if _DECIMAL_COMMA.fullmatch(latex):
        return latex.replace(",", ".")
    return latex


def _gold(task: Task, gold: str) -> str:
    read = read_answer(gold)
    if not read.latex:
        raise ValueError(f"{task.id}: the answer {gold!r} holds nothing to compare; the grader `math` needs LaTeX")
    return read.latex


def _quickly(theirs: list[str], ours: str) -> bool | None:
    """Equality of equal texts and of plain integers; None where it takes more."""
    # Equal texts are equal even where math-verify could not read them.
    if any(gold.replace(" ", "") == ours.replace(" ", "") for gold in theirs):
        return True
    # A comma with a blank behind it makes a list, which `plain_number` would read as thousands.
    values = [None if re.search(r",\s", text) else plain_number(text) for text in (ours, *theirs)]
    # Fractions go on: whether a decimal may be rounded is for the worker to say.
    if any(value is None or value.denominator != 1 for value in values):
        return None
    return values[0] in values[1:]


def _kind(latex: str) -> str:
    """Whether it is an ordered "tuple" or a "set"; empty for anything else."""
    latex = latex.replace("\\left", "").replace("\\right", "").rpartition("=")[2].strip()
    if latex.startswith("\\{") and latex.endswith("\\}"):
        return "set"
    inside = latex[1:-1]
    one = latex.startswith("(") and latex.endswith(")") and not set("()") & set(inside)
    return "tuple" if one and "," in inside else ""


def _tupled(latex: str, ordered: bool) -> str:
    """A bare list as a tuple, where its order is to count."""
    # math-verify reads a bare list as a set; only brackets make it keep the order.
    bare_list = "," in latex and latex[0] not in "([\\{" and plain_number(latex) is None
    return f"({latex})" if ordered and bare_list else latex


def _grade(accepted: tuple[str, ...], found: str, equal: bool, trouble: str) -> Grade:
    if equal:
        return Grade(Verdict.RIGHT, "the answer is right", accepted, (found,))
    more = f"; {trouble}" if trouble else ""
    return Grade(Verdict.WRONG, f"{shown(found)}, expected {shown(accepted[0])}{more}", accepted, (found,))
