"""Guards: checks of what goes into a run and comes out of it.

    @ct.guard("call", only=["bank/*"])
    async def small_sums(call: ct.GuardedCall, ctx: ct.Context[Bank]) -> ct.Deny | None:
        if call.arguments["amount"] > ctx.deps.limit:
            return ct.Deny("ask the customer first")

    leader = ct.Orchestrator("openai/gpt-5.4-mini", guards=[small_sums, "acme/no-secrets"])

A guard looks at one stage of a run: the question, a call before it is made, its result, or the answer. It lets pass
(None), replaces what it sees, denies it with a reason, or ends the run.

Invariant: what a guard fails to judge does not pass. An exception or a timeout of it is a status in the trace, as of
any call, and counts as `Deny`.
"""

from __future__ import annotations

import functools
import inspect
import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from concertino.core.approval import Deny
from concertino.core.errors import SpecError

from .context import Context
from .patterns import matches
from .specs import AgentSpec, Isolation

Stage = Literal["question", "call", "result", "answer"]
"""What a guard looks at."""


@dataclass(frozen=True, slots=True)
class Replace:
    """Go on with something else.

    Attributes:
        value: instead of what the guard saw: a text for a question or an answer, arguments for a call, JSON data for a
            result.
    """

    value: Any


@dataclass(frozen=True, slots=True)
class EndRun:
    """End the run, with `stop` = `guard`; calls that run are cancelled.

    Attributes:
        reason: for people; it becomes `run.detail`.
    """

    reason: str


Verdict = Replace | Deny | EndRun | None
"""What a guard decides; None lets pass."""


@dataclass(frozen=True, slots=True)
class GuardedCall:
    """A call before it is made, and before a person is asked to approve it.

    Attributes:
        call_id: unique in its run.
        name: the member's name.
        arguments: as validated.
        description: what the model was told about the member.
    """

    call_id: str
    name: str
    arguments: dict[str, Any]
    description: str


@dataclass(frozen=True, slots=True)
class GuardedResult:
    """What a call gave, before a model or the trace sees it.

    Attributes:
        call_id: unique in its run.
        name: the member's name.
        arguments: of the call.
        status: of the call; one of the four statuses.
        content: its whole result; of a call without one, its error message.
    """

    call_id: str
    name: str
    arguments: dict[str, Any]
    status: str
    content: Any


_SUBJECTS: dict[str, Callable[..., Any]] = {
    "question": lambda text: text,
    "call": GuardedCall,
    "result": GuardedResult,
    "answer": lambda text: text,
}


@dataclass(frozen=True, eq=False)
class Guard(AgentSpec):
    """A check of one stage of a run. Its function may take a `Context`, by which it can ask models of the pool.

    Attributes:
        stage: what it looks at.
        only: names or patterns of the members whose calls it looks at; all where empty.
        beside: of a question: the model is asked meanwhile. No call is made and no answer given before the verdict.
    """

    timeout: float | None = 30.0
    stage: Stage = "question"
    only: tuple[str, ...] = ()
    beside: bool = False

    kind = "guard"

    def __post_init__(self) -> None:
        super().__post_init__()
        label = f"guard {self.name!r}"
        if self.stage not in _SUBJECTS:
            raise SpecError(f"{label}: stage={self.stage!r}; expected one of {', '.join(_SUBJECTS)}")
        if self.only and self.stage not in ("call", "result"):
            raise SpecError(f"{label}: only={self.only!r} is for guards of calls and results, not of {self.stage}s")
        if self.beside and self.stage != "question":
            raise SpecError(f"{label}: beside=True is for guards of questions, not of {self.stage}s")
        if self.isolation == "process":
            raise SpecError(f"{label}: isolation='process'; expected 'loop' or 'thread'")

    def looks_at(self, member: Any) -> bool:
        """Whether it looks at calls of a member."""
        return not self.only or any(matches(member, pattern) for pattern in self.only)


def guard(
    stage: Stage,
    *,
    name: str | None = None,
    only: Sequence[str] | str = (),
    beside: bool = False,
    timeout: float | None = 30.0,
    isolation: Isolation = "loop",
    models: Sequence[str] = (),
) -> Callable[[Callable[..., Any]], Guard]:
    """Make a guard of a function of what it looks at, and maybe of a `Context`.

    Args:
        stage: `question` and `answer` give the function a text, `call` a `GuardedCall`, `result` a `GuardedResult`.
        name: by default the function's.
        only: names or patterns of the members whose calls it looks at; all by default.
        beside: a guard of questions that runs beside the first request to the model; it cannot replace the question.
        timeout: seconds for one check.
        isolation: `thread` for asynchronous code that may block; plain functions run in threads of their own.
        models: roles that it asks for with `ctx.model(role)`.

    Raises:
        SpecError: an option cannot be; says which and why.
    """
    patterns = (only,) if isinstance(only, str) else tuple(only)

    if stage not in _SUBJECTS:
        raise SpecError(f"@guard({stage!r}): expected one of {', '.join(_SUBJECTS)}")

    def declare(function: Callable[..., Any]) -> Guard:
        if not callable(function):
            raise SpecError(f"@guard({stage!r}) takes a function: got {function!r}")
        own = str(name or getattr(function, "__name__", ""))
        context = _context_of(function, f"guard {own!r}")
        about = inspect.cleandoc(function.__doc__ or f"Guard of {stage}s.")
        return Guard(
            own,
            about,
            {"type": "object"},
            _judging(function, stage, f"guard {own!r}"),
            timeout=timeout,
            isolation=isolation,
            takes_mapping=True,
            context=context,
            retry_safe=True,
            max_chars=10_000_000,
            models=tuple(models),
            stage=stage,
            only=patterns,
            beside=beside,
        )

    return declare


def verdict_from(content: Mapping[str, Any]) -> Verdict:
    """A verdict, from the JSON form in which the trace keeps it."""
    if "replace" in content:
        return Replace(content["replace"])
    if "deny" in content:
        return Deny(content["deny"])
    return EndRun(content["end"]) if "end" in content else None


def _context_of(function: Callable[..., Any], label: str) -> str:
    """The name of the parameter that is annotated `Context`, empty without one."""
    parameters = list(inspect.signature(function).parameters)
    try:
        hints = typing.get_type_hints(function)
    except Exception:
        # A type that is only known to a type checker; the annotation's text still tells a context.
        hints = getattr(function, "__annotations__", {})
    found = [name for name in parameters if _is_context(hints.get(name))]
    if len(parameters) - len(found) != 1 or len(found) > 1:
        raise SpecError(f"{label}: its function takes {parameters}; expected what it looks at, and maybe a Context")
    return found[0] if found else ""


def _is_context(annotation: Any) -> bool:
    if isinstance(annotation, str):
        return annotation.partition("[")[0].rpartition(".")[2] == "Context"
    kind = typing.get_origin(annotation) or annotation
    return isinstance(kind, type) and issubclass(kind, Context)


def _judging(function: Callable[..., Any], stage: Stage, label: str) -> Callable[..., Any]:
    """The function as the executor calls it: from JSON data to the JSON form of a verdict."""
    subject = _SUBJECTS[stage]

    if inspect.iscoroutinefunction(function):

        @functools.wraps(function)
        async def judge(data: dict[str, Any], **context: Any) -> dict[str, Any]:
            return _as_json(await function(subject(**data), **context), stage, label)

        return judge

    @functools.wraps(function)
    def judge_in_thread(data: dict[str, Any], **context: Any) -> dict[str, Any]:
        return _as_json(function(subject(**data), **context), stage, label)

    return judge_in_thread


def _as_json(verdict: Any, stage: Stage, label: str) -> dict[str, Any]:
    if verdict is None:
        return {}
    if isinstance(verdict, Deny):
        return {"deny": verdict.reason or f"{label} denied it"}
    if isinstance(verdict, EndRun):
        return {"end": verdict.reason}
    if isinstance(verdict, Replace):
        expected: type | None = {"question": str, "answer": str, "call": dict}.get(stage)
        if expected is None or isinstance(verdict.value, expected):
            return {"replace": verdict.value}
        raise TypeError(f"{label} replaced the {stage} by {verdict.value!r}; expected a {expected.__name__}")
    raise TypeError(f"{label} returned {verdict!r}; expected None, Replace(value), Deny(reason) or EndRun(reason)")
