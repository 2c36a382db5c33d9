"""Whether one reply of a cheap model can be believed alone, without asking a stronger one.

A wrong solution often shows: a number of the question is never used, a written sum does not hold, the answer is not a
whole number, another cheap model says something else. A logistic regression over such signs is fitted to replies that
were graded.

    trust = ReplyTrust.fit(rows)           # rows: question, reply, correct; others, stronger, if known
    trust.save("trust.json")
    Cascade(trust="trust.json")            # asks a third member only where the first is not believed

A reply is believed from a bound on, so low that believing is expected to cost `most_loss` of all answers. What is
expected follows from chances that the weights give to replies of a fold that they did not see: counted losses of a few
dozen replies are so noisy that the best-looking bound loses several times what it promises.

Invariants: the same rows give the same weights; a reply without an answer is never believed; nothing that a reply
contains is run.
"""

from __future__ import annotations

import ast
import hashlib
import json
import math
import operator
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple, get_args

from concertino import UsageError

from concertino_bench.graders.answer_keys import Form, reply_key

FORMAT = "concertino-reply-trust/1"
SIGNS = (
    "words of the question",
    "numbers of the question",
    "sentences of the question",
    "words of the reply",
    "numbers of the reply",
    "lines of the reply",
    "numbers that the reply does not use",
    "sums that hold",
    "sums that do not hold",
    "answer is a positive whole number",
    "share of the other replies with the same answer",
)
"""What is looked at, in the order of the weights."""
LEAST_ROWS = 40
_FOLDS = 5
_RIDGE = 20.0
"""With a few hundred replies, weights that are held back less promise more than they keep."""
_NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?")
_SUM = re.compile(r"([\d(][\d\s.,$%()+*/×÷x-]{0,80}?)=\s*\$?(-?\d[\d,]*(?:\.\d+)?)")
_TOLERANCE = 0.011
"""Written sums are rounded to cents."""


class GradedReply(NamedTuple):
    """One reply whose grade is known.

    Attributes:
        question, reply: texts.
        correct: whether the reply is right.
        others: replies of other models that are asked beside it.
        stronger: whether the model that is asked instead is right; True where that is not known.
    """

    question: str
    reply: str
    correct: bool
    others: tuple[str, ...] = ()
    stronger: bool = True


@dataclass(frozen=True)
class ReplyTrust:
    """How far replies of one model to one kind of question can be believed.

    Attributes:
        weights: of each sign, after the offset; signs are centred by `means` and divided by `scales`.
        means, scales: of each sign over the known replies.
        bound: a reply is believed from this chance on; above 1 none is.
        answers: how answers are read: `number`, `text`, or `auto`.
        known: replies that it was fitted to.
        share: of the known replies, how many were believed by weights that had not seen them.
        loss: what believing these lost in fact, as a share of all answers; negative where it gained.
    """

    weights: tuple[float, ...]
    means: tuple[float, ...]
    scales: tuple[float, ...]
    bound: float
    answers: Form = "number"
    known: int = 0
    share: float = 0.0
    loss: float = 0.0

    def __post_init__(self) -> None:
        if not len(self.weights) - 1 == len(self.means) == len(self.scales) == len(SIGNS):
            raise UsageError(f"ReplyTrust: expected {len(SIGNS)} means and scales, and one weight more")
        if self.answers not in get_args(Form):
            raise UsageError(f"ReplyTrust(answers={self.answers!r}): expected {', '.join(get_args(Form))}")

    # -- making one ------------------------------------------------------------------------------------------------

    @classmethod
    def fit(cls, rows: Iterable[Mapping[str, Any]], *, answers: Form = "number", most_loss: float = 0.02) -> ReplyTrust:
        """Learn from graded replies of one model.

        Args:
            rows: plain data with `question`, `reply` and `correct`; `others`, replies of models that are asked beside
                it; and `stronger`, whether the model that would be asked instead is right.
            answers: how answers are read.
            most_loss: the share of all answers that believing is expected to cost, 0 to 1.

        Raises:
            UsageError: a row lacks what is needed, or the rows are too few or all alike; says which.
        """
        if isinstance(most_loss, bool) or not 0 <= most_loss <= 1:
            raise UsageError(f"ReplyTrust.fit(most_loss={most_loss!r}): expected a number from 0 to 1")
        known = [_graded(number, row) for number, row in enumerate(rows, 1)]
        right = sum(each.correct for each in known)
        if len(known) < LEAST_ROWS or right in (0, len(known)):
            raise UsageError(
                f"ReplyTrust.fit: {len(known)} replies, {right} of them right; expected at least {LEAST_ROWS}, right "
                "ones and wrong ones: grade more replies of this model"
            )
        read = [_signs(each.question, each.reply, each.others, answers) for each in known]
        labels = [each.correct for each in known]
        chances = _unseen_chances(read, labels)
        bound, share, loss = _bound(known, chances, [reply_key(each.reply, answers) for each in known], most_loss)
        weights, means, scales = _regression(read, labels)
        return cls(weights, means, scales, bound, answers, len(known), share, loss)

    # -- asking it -------------------------------------------------------------------------------------------------

    def chance(self, question: str, reply: str, others: Sequence[str] = ()) -> float:
        """How likely the reply is right, 0 to 1; `others` are replies of models that were asked beside it."""
        return _chance(_signs(question, reply, others, self.answers), self.weights, self.means, self.scales)

    def believes(self, question: str, reply: str, others: Sequence[str] = ()) -> bool:
        """Whether the reply can stand alone."""
        return reply_key(reply, self.answers) is not None and self.chance(question, reply, others) >= self.bound

    # -- files -----------------------------------------------------------------------------------------------------

    @cached_property
    def digest(self) -> str:
        """The same for equal weights and bounds: 16 hexadecimal digits."""
        return hashlib.sha256(json.dumps(asdict(self), sort_keys=True).encode()).hexdigest()[:16]

    def save(self, path: str | Path) -> None:
        """Write it as JSON."""
        data = {"format": FORMAT, "signs": SIGNS, **asdict(self)}
        Path(path).write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")

    @classmethod
    def load(cls, path: str | Path) -> ReplyTrust:
        """Read what `save` wrote.

        Raises:
            UsageError: the file is missing or is something else; says what to do.
        """
        step = "make one with ReplyTrust.fit(rows).save(path)"
        try:
            data = json.loads(Path(path).read_text(encoding="utf-8"))
        except FileNotFoundError:
            raise UsageError(f"reply trust {path}: file not found; {step}") from None
        except (OSError, ValueError, RecursionError) as error:
            why = getattr(error, "strerror", None) or error
            raise UsageError(f"reply trust {path}: cannot be read: {why}; {step}") from None
        found = data.get("format") if isinstance(data, dict) else None
        if found != FORMAT or data.get("signs") != list(SIGNS):
            raise UsageError(
                f"reply trust {path}: expected format {FORMAT!r} with the same signs, got {found!r}; {step}"
            )
        try:
            weights, means, scales = (tuple(map(float, data[name])) for name in ("weights", "means", "scales"))
            bound, share, loss = (float(data[name]) for name in ("bound", "share", "loss"))
            return cls(weights, means, scales, bound, data["answers"], int(data["known"]), share, loss)
        except (KeyError, TypeError, ValueError) as error:
            raise UsageError(f"reply trust {path}: {type(error).__name__}: {error}; {step}") from None


# -- signs -----------------------------------------------------------------------------------------------------------


def _signs(question: str, reply: str, others: Sequence[str], answers: Form) -> list[float]:
    """What can be seen of one reply; counts as logarithms, for ten words more mean little in a long text."""
    asked, used = _numbers(question), _numbers(reply)
    sums = written_sums(reply)
    held = sum(sums)
    answer = reply_key(reply, answers)
    equal = sum(answer is not None and reply_key(other, answers) == answer for other in others)
    counts = (
        len(question.split()),
        len(asked),
        len(re.findall(r"[.?!](?:\s|$)", question)),
        len(reply.split()),
        len(used),
        sum(bool(line.strip()) for line in reply.splitlines()),
        len(set(asked) - set(used)),
        held,
        len(sums) - held,
    )
    whole = bool(answer and answer.isdecimal() and int(answer))
    return [*(math.log1p(count) for count in counts), float(whole), equal / len(others) if others else 0.0]


def _numbers(text: str) -> list[float]:
    return [float(found.replace(",", "")) for found in _NUMBER.findall(text[:20_000]) if len(found) < 20]


def written_sums(text: str) -> list[bool]:
    """For each sum that a text writes, such as `3 * 4 = 12`, whether it holds; what cannot be read is left out."""
    found = []
    for left, right in _SUM.findall(text[:20_000]):
        value = _value(left)
        if value is not None and len(right) < 20:
            wanted = float(right.replace(",", ""))
            found.append(abs(value - wanted) <= _TOLERANCE * max(1.0, abs(wanted) / 100))
    return found


_OPERATORS: dict[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}


def _value(text: str) -> float | None:
    """The value of a written sum with at least one operation; None where it is something else."""
    plain = re.sub(r"[,$\s]", "", text).replace("×", "*").replace("x", "*").replace("÷", "/").replace("%", "/100")
    # Leading zeros, as in 007, are no numbers for the parser.
    plain = re.sub(r"(?<![\d.])0+(?=\d)", "", plain)
    try:
        tree = ast.parse(plain, mode="eval").body
        return _computed(tree) if isinstance(tree, ast.BinOp) else None
    except (SyntaxError, ValueError, ArithmeticError, RecursionError, MemoryError):
        return None


def _computed(node: ast.expr) -> float:
    """The four operations over numbers and nothing else; powers of a reply could be endless."""
    if isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        return float(node.value)
    if isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
        return _OPERATORS[type(node.op)](_computed(node.left), _computed(node.right))
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return -_computed(node.operand)
    raise ValueError(ast.dump(node))


# -- fitting ---------------------------------------------------------------------------------------------------------


def _graded(number: int, row: Mapping[str, Any]) -> GradedReply:
    question, reply, correct, stronger = (row.get(k) for k in ("question", "reply", "correct", "stronger"))
    others = row.get("others", ())
    texts = [question, reply, *(others if isinstance(others, list | tuple) else [None])]
    if not all(isinstance(each, str) for each in texts) or correct not in (0, 1) or stronger not in (None, 0, 1):
        raise UsageError(
            f"row {number}: {dict(row)!r:.160}; expected texts as 'question', 'reply' and in the list 'others', and "
            "'correct' (and 'stronger') true or false"
        )
    return GradedReply(str(question), str(reply), bool(correct), tuple(others), stronger is None or bool(stronger))


def _regression(
    read: Sequence[Sequence[float]], labels: Sequence[bool]
) -> tuple[tuple[float, ...], tuple[float, ...], tuple[float, ...]]:
    """Weights of a logistic regression with a ridge, by Newton's method; the means and scales of its signs."""
    import numpy as np

    signs, wanted = np.array(read), np.array(labels, float)
    means, scales = signs.mean(0), signs.std(0)
    # A sign that is the same everywhere says nothing; divided by 1 it stays 0.
    scales[scales < 1e-9] = 1.0
    inputs = np.hstack([np.ones((len(signs), 1)), (signs - means) / scales])
    ridge = _RIDGE * np.eye(inputs.shape[1])
    ridge[0, 0] = 0.0
    weights = np.zeros(inputs.shape[1])
    for _ in range(50):
        chances = 1 / (1 + np.exp(-inputs @ weights))
        slope = inputs.T @ (chances - wanted) + ridge @ weights
        # The small number keeps the matrix regular where all chances are near 0 or 1.
        bend = (inputs * (chances * (1 - chances) + 1e-9)[:, None]).T @ inputs + ridge
        step = np.linalg.solve(bend, slope)
        weights -= step
        if np.abs(step).max() < 1e-8:
            break
    return tuple(map(float, weights)), tuple(map(float, means)), tuple(map(float, scales))


def _chance(signs: Sequence[float], weights: Sequence[float], means: Sequence[float], scales: Sequence[float]) -> float:
    each = zip(signs, weights[1:], means, scales, strict=True)
    total = weights[0] + sum(weight * (sign - mean) / scale for sign, weight, mean, scale in each)
    return 1 / (1 + math.exp(-max(-500.0, min(500.0, total))))


def _unseen_chances(read: Sequence[Sequence[float]], labels: Sequence[bool]) -> list[float]:
    """For each reply, its chance by weights that were fitted without its fold."""
    chances = [0.0] * len(read)
    for fold in range(_FOLDS):
        kept = [place for place in range(len(read)) if place % _FOLDS != fold]
        fitted = _regression([read[place] for place in kept], [labels[place] for place in kept])
        for place in range(fold, len(read), _FOLDS):
            chances[place] = _chance(read[place], *fitted)
    return chances


def _bound(
    known: Sequence[GradedReply], chances: Sequence[float], answers: Sequence[str | None], most_loss: float
) -> tuple[float, float, float]:
    """The lowest bound whose expected loss is allowed, with the share that it believes and what that lost in fact."""
    stronger = sum(each.stronger for each in known) / len(known)
    order = [place for place in range(len(known)) if answers[place] is not None]
    order.sort(key=lambda place: -chances[place])
    best, expected, lost = (1.01, 0.0, 0.0), 0.0, 0
    for count, place in enumerate(order, 1):
        expected += stronger - chances[place]
        lost += known[place].stronger - known[place].correct
        if expected > most_loss * len(known):
            break
        best = (chances[place], count / len(known), lost / len(known))
    return best
