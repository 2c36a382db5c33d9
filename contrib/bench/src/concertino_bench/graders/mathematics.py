r"""Mathematical answers in LaTeX, compared by value, by two judges: our own, and math-verify.

Equal texts and plain integers need no judge. All else both judge: `formula_equality` here, and math-verify in a process
with a time limit. Where one has no verdict the other's counts; where they disagree ours counts, and the reason says
that they do. The conventions, where the field has several:

- `10\%` is 10, and is not 0.1 (`percent`); units are not compared (`units`).
- a bare list `1, 2` is unordered (`ordered`), `(1, 2)` is ordered, `\{1, 2\}` is not; `(1, 2)` is not `\{1, 2\}`.
- `7,425,000` and `14{,}916` are one number each, `32, 349` is a list, `1000,99` and `0,5` are decimals.
- `x = 5` is 5; `7 = 11a + c` is not `11a + c`.
- an exact answer equals a decimal gold of three or more digits if it rounds to it (`rounding`); `0.33` is not `1/3`.
- a gold that is a letter of a choice is compared with the letter that the text chooses.

The invariant: a comparison that takes too long or breaks is *wrong* with that as its reason, and never an exception.
"""

from __future__ import annotations

import asyncio
import re
from concurrent.futures import ThreadPoolExecutor
from typing import Literal, NamedTuple

from concertino_bench.tasks.grade import Grade, Grader, GraderServices, Submission, Verdict
from concertino_bench.tasks.task import Task

from .base import golds, shown
from .choice import read_letter
from .comparing import Comparer
from .exact_match import normalise
from .formula_equality import Conventions, equal_formulas
from .formula_nodes import Unreadable
from .formula_places import ReadExpression, last_formula, read_answer
from .numeric import plain_number

Judge = Literal["both", "own", "math-verify"]
_JUDGES = ("both", "own", "math-verify")
_LETTER = re.compile(r"\(?([A-J])\)?(?:[.):]?\s+(?P<words>[A-Za-z][A-Za-z' \n-]{2,200}))?")


class _Opinion(NamedTuple):
    """What a judge says.

    Attributes:
        equal: its verdict; None where it has none.
        found: what it took for the answer.
        why: the conventions that decided, or why there is no verdict.
    """

    equal: bool | None
    found: str = ""
    why: str = ""


class Mathematics(Grader):
    """Right if the answer has the value of a gold text.

    Args:
        seconds: that math-verify may take for one comparison.
        workers: comparisons at once.
        ordered: bare lists are equal only in the same order.
        rounding: an exact answer equals a decimal gold that it rounds to.
        percent: `10\\%` is 0.1 as well as 10.
        units: an answer with another unit than the gold's is wrong.
        second_opinion: seconds that math-verify may take where our own judge has a verdict already.
        judge: who compares: "both", "own" or "math-verify". The settings percent and units are our own judge's.
    """

    name = "math"
    kinds = ("math",)

    def __init__(
        self,
        seconds: float = 3.0,
        *,
        workers: int = 2,
        ordered: bool = False,
        rounding: bool = True,
        percent: bool = False,
        units: bool = False,
        judge: Judge = "both",
        second_opinion: float = 0.15,
    ) -> None:
        if judge not in _JUDGES:
            raise ValueError(f"Mathematics(judge={judge!r}); expected one of {', '.join(_JUDGES)}")
        self.conventions = Conventions(ordered, rounding, percent, units)
        self.judges: Judge = judge
        self.second_opinion = second_opinion
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
        lettered = _lettered(accepted, text)
        if lettered is not None:
            return lettered
        theirs = [_gold(task, gold) for gold in accepted]
        read = read_answer(text)
        if not read.latex:
            return Grade(Verdict.UNPARSABLE, "there is no answer in the text", accepted)
        # Most answers are equal texts or plain integers, which need no judge.
        if read.whole and (quick := _quickly(theirs, read.latex)) is not None:
            return _grade(accepted, read.latex, quick, "")
        none = _Opinion(None)
        ours = self._own(theirs, read) if self.judges != "math-verify" else none
        other = self._math_verify(theirs, read, decided=ours.equal is not None) if self.judges != "own" else none
        return _combined(accepted, read, ours, other)

    def _own(self, theirs: list[str], read: ReadExpression) -> _Opinion:
        latex = read.latex if read.whole else last_formula(read.latex)
        if not latex:
            return _Opinion(None)
        trouble, verdict = "", None
        for gold in theirs:
            try:
                seen = equal_formulas(gold, latex, self.conventions)
            except (Unreadable, ArithmeticError, RecursionError) as error:
                trouble = f"our own judge: {error or type(error).__name__}"
                continue
            verdict = seen.equal
            if verdict:
                return _Opinion(True, latex, seen.note)
            trouble = seen.note
        return _Opinion(verdict, latex, trouble)

    def _math_verify(self, theirs: list[str], read: ReadExpression, *, decided: bool) -> _Opinion:
        ordered, rounding = self.conventions.ordered, self.conventions.rounding
        if read.whole:
            # math-verify takes `(1, 2)` for an open interval or a tuple, and calls it equal to `\{1, 2\}`.
            theirs = [gold for gold in theirs if {_bracket(gold), _bracket(read.latex)} != {"tuple", "set"}]
            if not theirs:
                return _Opinion(False, read.latex, "one is ordered and the other is not")
        found = _verifiable(read.latex, ordered and read.whole) if read.whole else read.latex
        seen = self._comparer.compare(
            [_verifiable(gold, ordered) for gold in theirs],
            found,
            whole=read.whole,
            rounding=rounding,
            seconds=self.second_opinion if decided else None,
        )
        if decided and seen.late:
            return _Opinion(None)  # a reason that depends on the speed of the machine would differ from run to run
        if seen.trouble:
            return _Opinion(None, seen.found or "", f"math-verify: {seen.trouble}")
        return _Opinion(None) if seen.found is None else _Opinion(seen.equal, seen.found, "")


def _combined(accepted: tuple[str, ...], read: ReadExpression, ours: _Opinion, other: _Opinion) -> Grade:
    if ours.equal is None and other.equal is None:
        troubles = "; ".join(filter(None, (ours.why, other.why)))
        if not troubles and not read.whole:
            return Grade(Verdict.UNPARSABLE, "there is no mathematics in the text", accepted)
        return _grade(accepted, read.latex, False, troubles or "no judge can read it")
    deciding = ours if ours.equal is not None else other
    notes = [ours.why, other.why]
    values = {}
    if ours.equal is not None and other.equal is not None:
        values["judges-agree"] = float(ours.equal == other.equal)
        if ours.equal != other.equal:
            taken = f" and takes {shown(other.found, 60)}" if not read.whole else ""
            says = "equal" if other.equal else "different"
            notes.append(f"the judges disagree: math-verify says {says}{taken}, our own decides")
    found = read.latex if read.whole else deciding.found
    return _grade(accepted, found, bool(deciding.equal), "; ".join(filter(None, notes)), values)


def _lettered(accepted: tuple[str, ...], text: str) -> Grade | None:
    """The grade of a question whose gold is a letter, maybe with the words of its choice; None for any other."""
    matches = [_LETTER.fullmatch(_bare_letter(gold)) for gold in accepted]
    if not all(matches):
        return None
    found, how = read_letter(text)
    if not found:
        said = normalise(text)
        worded = any(match and match["words"] and normalise(match["words"]) == said for match in matches)
        return Grade(Verdict.RIGHT, "the answer is right (by its words)", accepted, (text.strip(),)) if worded else None
    right = any(match and match[1] == found for match in matches)
    return _grade(accepted, found, right, how)


def _bare_letter(gold: str) -> str:
    gold = gold.strip().strip("$").strip()
    styled = re.fullmatch(r"\\(?:text|textbf|mathrm|mathbf)\s?\{([^{}]*)\}", gold)
    return (styled[1] if styled else gold).strip().removesuffix(".")


def _gold(task: Task, gold: str) -> str:
    read = read_answer(gold)
    if not read.latex:
        raise ValueError(f"{task.id}: the answer {gold!r} holds nothing to compare; the grader `math` needs LaTeX")
    return read.latex


def _quickly(theirs: list[str], ours: str) -> bool | None:
    """Equality of equal texts and of plain integers; None where it takes more."""
    # Equal texts are equal even where no judge could read them.
    if any(gold.replace(" ", "") == ours.replace(" ", "") for gold in theirs):
        return True
    # A comma with a blank behind it makes a list, which `plain_number` would read as thousands.
    values = [None if re.search(r",\s|%", text) else plain_number(text) for text in (ours, *theirs)]
    # Fractions go on: whether a decimal may be rounded is for a judge to say.
    if any(value is None or value.denominator != 1 for value in values):
        return None
    return values[0] in values[1:]


def _bracket(latex: str) -> str:
    """Whether it is an ordered "tuple" or a "set"; empty for anything else."""
    latex = latex.rpartition("=")[2].strip()
    if latex.startswith("\\{") and latex.endswith("\\}"):
        return "set"
    inside = latex[1:-1]
    one = latex.startswith("(") and latex.endswith(")") and not set("()") & set(inside)
    return "tuple" if one and "," in inside else ""


def _verifiable(latex: str, ordered: bool) -> str:
    """An answer as math-verify is given it: without percent signs; a bare list whose order counts as a tuple."""
    latex = latex.replace("%", "").strip()
    # math-verify reads a bare list as a set; only brackets make it keep the order.
    bare_list = "," in latex and latex[0] not in "([\\{" and plain_number(latex) is None
    return f"({latex})" if ordered and bare_list else latex


def _grade(
    accepted: tuple[str, ...], found: str, equal: bool, notes: str, values: dict[str, float] | None = None
) -> Grade:
    said = "the answer is right" if equal else f"{shown(found)}, expected {shown(accepted[0])}"
    reason = f"{said}; {notes}" if notes else said
    return Grade(Verdict.RIGHT if equal else Verdict.WRONG, reason, accepted, (found,), values=values or {})
