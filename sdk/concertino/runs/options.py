"""What an orchestrator is made with, checked and read: the type of its answer, its own hooks, its guards.

Invariant: a wrong option is refused when the orchestrator is made, not when it runs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, get_args

from concertino.core.errors import UsageError
from concertino.core.model import Sampling
from concertino.executor import Duplicates, Executor

if TYPE_CHECKING:
    from concertino.members.guards import Guard

    from .answer_type import AnswerType


def _functions(value: Any) -> bool:
    return isinstance(value, Sequence) and all(map(callable, value))


def _text_or_function(value: Any) -> bool:
    return isinstance(value, str) or callable(value)


def _word(value: Any) -> bool:
    return isinstance(value, str) and value in get_args(Duplicates)


_KINDS: dict[str, tuple[Callable[[Any], bool], str]] = {
    "executor": (lambda value: isinstance(value, Executor), "an Executor, such as Executor(Limits(calls=8))"),
    "sampling": (lambda value: isinstance(value, Sampling), "a Sampling, such as Sampling(temperature=0)"),
    "duplicates": (_word, f"one of {', '.join(map(repr, get_args(Duplicates)))}"),
    "before": (_functions, "a list of functions"),
    "after": (_functions, "a list of functions"),
    "approve": (callable, "a function of an ApprovalRequest"),
    "instructions": (_text_or_function, "a text, or a function of the run's context that returns one"),
    "arrange": (callable, "a function of a question and a pool, such as Shortlist('scorer/best')"),
}
"""What fits as an option that is given, and how an error calls it."""


def check_options(**options: object) -> None:
    """Refuse an option of another type.

    Raises:
        UsageError: says which, what it was, and what is expected.
    """
    for name, value in options.items():
        fits, expected = _KINDS[name]
        if value is not None and not fits(value):
            raise UsageError(f"{name}={value!r}: expected {expected}")


def answer_type_of(kind: Any) -> AnswerType | None:
    """The type of an answer; None for a text.

    Raises:
        UsageError: no JSON schema can be made of it.
    """
    if kind is None or kind is str:
        return None
    from .answer_type import AnswerType

    return AnswerType(kind)


def own_hooks(name: str, functions: Sequence[Callable[..., Any]]) -> list[Callable[..., Any]]:
    """Hooks of an orchestrator may take fewer arguments than the specification, as those of plugins may."""
    if not functions:
        return []
    from concertino.plugins.hooks import Hook

    return [Hook("the orchestrator", name, function, "") for function in functions]


def guards_of(given: Sequence[Guard | str]) -> tuple[Guard, ...]:
    """Guards, those of plugins by their names.

    Raises:
        UsageError: something else, two of one name, or a name that no plugin publishes.
    """
    if not given:
        return ()
    from concertino.members.guards import Guard

    if isinstance(given, (str, Guard)):
        given = [given]
    found: list[Guard] = []
    for each in given:
        if isinstance(each, str):
            from concertino.plugins.manager import default_manager

            found.append(default_manager().guard(each))
        elif isinstance(each, Guard):
            found.append(each)
        else:
            raise UsageError(f"guards: {each!r} is a {type(each).__name__}; make a guard with @concertino.guard(stage)")
    names = [each.name for each in found]
    if twice := next((name for name in names if names.count(name) > 1), ""):
        raise UsageError(f"guards: two are called {twice!r}; give one of them another name=")
    return tuple(found)
