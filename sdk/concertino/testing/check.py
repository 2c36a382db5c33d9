"""A check: one requirement of conformance, as a plain function of a subject.

The function's name is the requirement in short, the first line of its docstring is the requirement as a sentence. It
returns when the subject meets it, raises `CheckFailed` with what was seen and what to do, `CheckSkipped` with why it
does not apply, or `CheckMissing` with what its author would have to give. `perform` runs one and gives a `CheckRow`;
the pytest classes, `check_package` and the command line share it.

Invariant: a check calls members with nothing but the examples, refusals and slow calls that the subject itself gives;
a strategy is driven without members and models.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Literal, TypeAlias

from concertino.core.errors import UsageError
from concertino.core.model import Model
from concertino.core.plan import Call
from concertino.members.specs import ModelSpec, ToolSpec
from concertino.pool.pool import Pool
from concertino.strategies.base.machine import Strategy

Outcome = Literal["ok", "failed", "missing", "skipped"]


class CheckFailed(AssertionError):
    """The subject does not meet the requirement; the text says what was seen and what to do."""


class CheckSkipped(Exception):
    """The requirement is not checked; the text says why it does not apply."""


class CheckMissing(CheckSkipped):
    """The requirement cannot be checked without something that only the author can give; the text says what."""


@dataclass(frozen=True)
class MemberSubject:
    """A tool or agent with what its author knows about it.

    Attributes:
        spec: the tool or agent.
        examples: pairs of arguments and the expected result: a value to be equal to, or a function of the result.
        rejected: arguments that the input schema refuses.
        failing: arguments that the schema takes and the call cannot work with.
        slow: arguments of a call that takes at least a second, if there are any; an agent that asks models needs
            none, for it is given models that never answer.
        nondeterministic: why the same arguments may give different results; empty if they may not.
        make_pool: makes what an agent may call and ask, once for each call.
        question: the run's question, for members that read it.
        without: why there are no `examples`, `rejected`, `failing` or `slow` arguments, by those words: a tool that
            is always quick has no slow ones, `{"slow": "it only counts letters"}`.
    """

    spec: ToolSpec
    examples: Sequence[tuple[Mapping[str, Any], Any]] = ()
    rejected: Sequence[Mapping[str, Any]] = ()
    failing: Sequence[Mapping[str, Any]] = ()
    slow: Mapping[str, Any] | None = None
    nondeterministic: str = ""
    make_pool: Callable[[], Pool] = Pool
    question: str = ""
    without: Mapping[str, str] = field(default_factory=dict)

    def given(self, kind: str) -> Any:
        """What the author gives of a kind: `examples`, `rejected`, `failing` or `slow`.

        Raises:
            CheckSkipped: there is nothing of the kind, and the author says why.
            CheckMissing: there is nothing of the kind.
        """
        value = getattr(self, kind)
        if value or (kind == "slow" and value is not None):
            return value
        if reason := self.without.get(kind):
            raise CheckSkipped(f"no `{kind}`: {reason}")
        raise CheckMissing(f"no `{kind}` {'are' if kind == 'examples' else 'arguments are'} given")

    @property
    def name(self) -> str:
        """The member's name."""
        return self.spec.name


@dataclass(frozen=True)
class ModelSubject:
    """A model with the features that its provider declares.

    Attributes:
        name: what the report calls it.
        make_model: makes a fresh model.
        prompt: a question that it answers in at least ten words.
        long_input: characters of the longest message that is tried.
        at_once: requests that are made at once.
        honours_max_tokens, honours_stop, native_tools, logprobs: optional features that it has.
    """

    name: str
    make_model: Callable[[], Model]
    prompt: str = "Count from one to thirty in English words."
    long_input: int = 20_000
    at_once: int = 4
    honours_max_tokens: bool = False
    honours_stop: bool = False
    native_tools: bool = False
    logprobs: bool = False


@dataclass(frozen=True)
class StrategySubject:
    """A strategy with what its author knows about it.

    Attributes:
        strategy: with the settings that are checked.
        tools: the members that a run offers, as tools and agents or as OpenAI-style function objects; by default a
            `lookup` that takes a text and an `add` that takes two numbers.
        questions: of runs.
        calls: for each turn that is written, its calls; by default calls of the tools with made-up arguments.
        texts: replies that the format reads, in addition to those that the strategy writes.
        results: what members return, by visible name: a value, or a function of the arguments. By default a number.
    """

    strategy: Strategy
    tools: Sequence[ToolSpec | Mapping[str, Any]] = ()
    questions: Sequence[str] = ("What is 6 times 7?",)
    calls: Sequence[Sequence[Call]] = ()
    texts: Sequence[str] = ()
    results: Mapping[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The strategy's name."""
        return self.strategy.name


Subject: TypeAlias = MemberSubject | ModelSubject | ModelSpec | StrategySubject
"""What is checked: a tool or agent, a model, the declaration of a model, or a strategy."""
Check: TypeAlias = Callable[[Any], Awaitable[None] | None]
"""A requirement; takes the kind of subject that it is about."""


@dataclass(frozen=True)
class CheckRow:
    """One line of a report.

    Attributes:
        check: name of the check.
        subject: what was checked.
        outcome: ok, failed, missing (what its author would have to give) or skipped (it does not apply).
        detail: what was seen and what to do, or why it was not checked.
        requirement: the requirement in a sentence.
    """

    check: str
    subject: str
    outcome: Outcome
    detail: str
    requirement: str

    @property
    def ok(self) -> bool:
        """Whether it did not fail."""
        return self.outcome != "failed"

    def to_json(self) -> dict[str, Any]:
        """Plain JSON data."""
        return asdict(self)


def run_check(check: Check, subject: Subject) -> None:
    """Run a check outside of any event loop.

    Raises:
        CheckFailed: the requirement is not met.
        CheckSkipped: it is not checked.
    """

    async def work() -> None:
        result = check(subject)
        if inspect.isawaitable(result):
            await result

    # A loop of its own for each check: what one check leaves behind cannot reach the next.
    asyncio.run(work())


def perform(check: Check, subject: Subject) -> CheckRow:
    """Run a check, whatever happens in it, and say how it went."""
    outcome: Outcome = "ok"
    detail = ""
    try:
        run_check(check, subject)
    except CheckMissing as missing:
        outcome, detail = "missing", str(missing)
    except CheckSkipped as skipped:
        outcome, detail = "skipped", str(skipped)
    except CheckFailed as failed:
        outcome, detail = "failed", str(failed)
    except Exception as error:  # what is checked is foreign code
        outcome, detail = "failed", f"{type(error).__name__}: {error}"
    return CheckRow(check.__name__, subject.name, outcome, detail, requirement_of(check))


def requirement_of(check: Check) -> str:
    """The requirement in a sentence."""
    return (inspect.getdoc(check) or "").partition("\n")[0]


def strategy_subject_from(strategy: type[Strategy], given: Any, where: str) -> StrategySubject:
    """A subject from what a distribution's `concertino_examples` says about a strategy.

    Args:
        given: a mapping with attributes of the subject, `strategy` as an object or as its settings; `None` if nothing
            is said.
        where: how a message names it.

    Raises:
        UsageError: it is not a mapping, holds an unknown key, or the strategy needs settings and none are given.
    """
    given = _known(where, {} if given is None else given, StrategySubject, "a mapping")
    if isinstance(given.get("strategy"), Mapping):
        return StrategySubject(**{**given, "strategy": strategy.from_json(given["strategy"])})
    if "strategy" in given:
        return StrategySubject(**given)
    try:
        return StrategySubject(strategy(), **given)
    except TypeError as error:
        raise UsageError(
            f"{strategy.__name__}() cannot be made without settings ({error}); give defaults, or one to check: "
            f"{where} = {{'strategy': {strategy.__name__}(...)}}"
        ) from error


def subject_from(target: ToolSpec | ModelSpec, given: Any) -> MemberSubject | ModelSubject:
    """A subject from what a distribution's `concertino_examples` says about a member.

    Args:
        given: a list of examples, or a mapping with attributes of the subject.

    Raises:
        UsageError: it is neither, or holds an unknown key.
    """
    where = f"concertino_examples[{target.name!r}]"
    given = {"examples": given} if isinstance(given, (list, tuple)) else given
    expected = "a list of examples, or a mapping"
    if isinstance(target, ModelSpec):
        given = _known(where, given, ModelSubject, expected, "name", "make_model")
        return ModelSubject(target.name, target.factory, **given)
    given = _known(where, given, MemberSubject, expected, "spec")
    _check_shape(where, given)
    return MemberSubject(target, **given)


def _known(where: str, given: Any, kind: type[Any], expected: str, *own: str) -> Mapping[str, Any]:
    """A mapping that holds nothing but attributes of a kind of subject, without its `own`."""
    known = [each.name for each in fields(kind) if each.name not in own]
    if not isinstance(given, Mapping):
        raise UsageError(f"{where} is {given!r}; expected {expected} with {', '.join(known)}")
    if unknown := sorted(set(given) - set(known)):
        raise UsageError(f"{where} has the unknown key {unknown[0]!r}; known: {', '.join(known)}")
    return given


def _check_shape(where: str, given: Mapping[str, Any]) -> None:
    """Examples are pairs, and the rest are arguments."""
    for number, example in enumerate(given.get("examples", ())):
        if not (isinstance(example, (tuple, list)) and len(example) == 2 and isinstance(example[0], Mapping)):
            raise UsageError(
                f"{where}: examples[{number}] is {example!r}; expected a pair (arguments, result), where the result is "
                "a value to be equal to, or a function of the result that says whether it is right"
            )
    for name in ("rejected", "failing"):
        for number, arguments in enumerate(given.get(name, ())):
            if not isinstance(arguments, Mapping):
                raise UsageError(f"{where}: {name}[{number}] is {arguments!r}; expected arguments, a mapping")
    if not isinstance(given.get("slow", {}), Mapping | None):
        raise UsageError(f"{where}: slow is {given['slow']!r}; expected arguments, a mapping")
