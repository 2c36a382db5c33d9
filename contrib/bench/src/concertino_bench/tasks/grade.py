"""What a grader is given, and what it says: right, wrong or unparsable, and why.

The invariants: a grade has no truth value, for *unparsable* is not *wrong*; its reason is never empty; and a grader
never raises because of what a solver wrote. A task that is itself broken raises, before anything is paid.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn, Protocol, cast

from .task import Task

if TYPE_CHECKING:
    from concertino import ChatRequest, Observation, Reply


class Verdict(StrEnum):
    """Whether an answer is right."""

    RIGHT = "right"
    WRONG = "wrong"
    UNPARSABLE = "unparsable"


@dataclass(frozen=True)
class Grade:
    """A verdict with its reason.

    Attributes:
        verdict: right, wrong or unparsable.
        reason: one sentence, never empty.
        expected: the right answers.
        found: the answers that were read; empty where nothing could be read.
        marks: for each expected answer whether it was given; empty where the answers could not be matched one to one.
        values: further measures of the same answer, each 0 to 1: `{"f1": 0.8}`.
    """

    verdict: Verdict
    reason: str
    expected: tuple[str, ...] = ()
    found: tuple[str, ...] = ()
    marks: tuple[bool, ...] = ()
    values: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.reason:
            raise ValueError(f"Grade({self.verdict}): expected a reason")

    @property
    def score(self) -> float:
        """1.0 for right, else 0.0."""
        return float(self.verdict is Verdict.RIGHT)

    @property
    def share(self) -> float:
        """The share of expected answers that were given, 0 to 1; the score where there are no marks to count."""
        return sum(self.marks) / len(self.marks) if self.marks else self.score

    def __bool__(self) -> NoReturn:
        # `if grade:` would have to count unparsable as one of the two.
        raise TypeError("a grade has no truth value; compare .verdict, or use .score")

    def to_json(self) -> dict[str, Any]:
        """Plain JSON data."""
        return {
            "verdict": self.verdict.value,
            "reason": self.reason,
            "expected": list(self.expected),
            "found": list(self.found),
            "marks": list(self.marks),
            "values": dict(self.values),
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Grade:
        """The inverse of `to_json`."""
        lists = {name: tuple(data[name]) for name in ("expected", "found", "marks")}
        return cls(Verdict(data["verdict"]), data["reason"], **lists, values=dict(data["values"]))


@dataclass(frozen=True)
class Submission:
    """What a solver hands in.

    Attributes:
        text: its answer; empty where it gave none.
        calls: the calls that it made, in order: `{"name": …, "arguments": {…}, "status": …}`.
        state: the state of the task's world afterwards; None without a world.
        stop: why its run ended, one of `concertino.STOP_REASONS`; empty where there was no run.
    """

    text: str
    calls: Sequence[Mapping[str, Any]] = ()
    state: Any = None
    stop: str = ""


class GraderServices(Protocol):
    """What a grader may use of the pool. Its spending is counted apart from the solver's."""

    async def ask(self, role: str, request: ChatRequest) -> Reply:
        """Ask a model, by role or name in the pool.

        Raises:
            PoolError: the pool has no such model.
            ProviderError: it did not answer.
        """

    async def call(self, name: str, arguments: Mapping[str, Any]) -> Observation:
        """Call a tool of the pool, such as the sandbox."""


class Grader(ABC):
    """Grades submissions of the kinds of tasks that it names.

    Attributes:
        name: "exact-match"; what `--grader` takes.
        kinds: kinds of tasks that it grades unless another grader is asked for; no two graders share one.
        needs: members or roles that the pool must have: `("tool:code/python",)`, `("model:judge",)`.
        reads_state: whether the state of a task's world decides, which no trace keeps.
    """

    name: ClassVar[str]
    kinds: ClassVar[tuple[str, ...]] = ()
    reads_state: ClassVar[bool] = False
    needs: tuple[str, ...] = ()

    def check(self, task: Task) -> None:  # noqa: B027
        """See that a task has what this grader compares with, before anything is run.

        Raises:
            ValueError: it has not; says what is missing.
        """

    @abstractmethod
    async def grade(self, task: Task, submission: Submission, services: GraderServices) -> Grade:
        """Grade one submission.

        Raises:
            ValueError: the task lacks what this grader compares with.
        """


class TextGrader(Grader):
    """Needs the text alone: no pool, no calls, no state.

    `judge` is a plain function, so it can be used without an event loop too.
    """

    @abstractmethod
    def judge(self, task: Task, text: str) -> Grade:
        """Grade what a solver said.

        Raises:
            ValueError: the task lacks what this grader compares with.
        """

    def check(self, task: Task) -> None:
        """See that a task has what this grader compares with: grade silence.

        Raises:
            ValueError: it has not; says what is missing.
        """
        self.judge(task, "")

    async def grade(self, task: Task, submission: Submission, services: GraderServices) -> Grade:
        """Grade the submission's text."""
        return self.judge(task, submission.text)


class GradingFunction(Protocol):
    """A function of task and text that `text_grader` has declared.

    Attributes:
        grader: the grader that it makes.
    """

    grader: TextGrader

    def __call__(self, task: Task, text: str) -> Grade:
        """Grade what a solver said."""


def text_grader(name: str, *kinds: str) -> Callable[[Callable[[Task, str], Grade]], GradingFunction]:
    """Make a function of task and text a grader too: it gets an attribute `grader`. The function stays as it was."""

    def declare(function: Callable[[Task, str], Grade]) -> GradingFunction:
        members = {
            "name": name,
            "kinds": kinds,
            "__doc__": function.__doc__,
            "judge": lambda self, task, text: function(task, text),
        }
        declared = cast(GradingFunction, function)
        # A class per function: name, kinds and docstring belong to the class of a grader.
        declared.grader = type("FunctionGrader", (TextGrader,), members)()
        return declared

    return declare
