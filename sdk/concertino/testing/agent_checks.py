"""Checks of agents, beyond those of every member: how they deal with the models that they ask.

The models that an agent asks are replaced: one refuses every request, one gives replies that no prompt asked for. An
agent may end with an error or continue without the reply; it may not crash.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from concertino.core.budget import Budget
from concertino.core.model import ChatRequest, Model, Reply
from concertino.core.observation import Observation, Status
from concertino.core.provider_error import FailureClass, ProviderError
from concertino.core.usage import Usage
from concertino.members.specs import AgentSpec, ModelSpec
from concertino.pool.pool import Pool

from .call_checks import CALL_CHECKS, is_accident
from .calling import run_call, with_models
from .check import CheckFailed, CheckSkipped, MemberSubject
from .declaration_checks import DECLARATION_CHECKS

LONGEST = 10.0
"""Seconds that an agent may take when its models answer or fail at once."""
MOST_CUTS = 12
"""Places in which a budget of calls, and one of tokens, is cut."""
UNEXPECTED_REPLIES = ("", "I do not know.", "]{ <answer>\\boxed{", "7\n" * 5_000)
"""Replies that no prompt asks for, and every model gives one day."""


class _Answering(Model):
    """Gives one text to everybody, or refuses."""

    def __init__(self, text: str | None) -> None:
        self.text = text

    async def chat(self, request: ChatRequest) -> Reply:
        if self.text is None:
            # `CALLER` is never repeated, so no pause between retries counts against the agent.
            raise ProviderError("the model is out of order", failure=FailureClass.CALLER)
        return Reply(self.text, usage=Usage(input_tokens=1, output_tokens=1))


async def it_asks_only_for_roles_that_it_declares(subject: MemberSubject) -> None:
    """It asks only for the model roles that its spec declares, so that a pool knows what to bind."""
    roles = _roles(subject)
    pool = subject.make_pool()
    missing = [role for role in roles if role not in pool.roles]
    if missing:
        raise CheckSkipped(f"its pool binds no model to {', '.join(missing)}")
    bound = {role: pool.model(role) for role in roles}
    others = [member for member in pool.members if not isinstance(member, ModelSpec)]
    # A role without a model falls back to the only one of a pool; with a second one it is an error that shows.
    decoy = ModelSpec("an-undeclared-model", lambda: _Answering("a reply to a role that was not declared"))
    strict = Pool([*others, *dict.fromkeys(bound.values()), decoy], roles={r: m.name for r, m in bound.items()})
    for arguments, _ in subject.examples:
        seen = await run_call(subject.spec, arguments, pool=strict, question=subject.question)
        if seen.error is not None and "PoolError" in seen.error.message:
            declared = ", ".join(roles) or "none"
            raise CheckFailed(f"{arguments} ended with {seen.error.message!r}; it declares models=({declared})")


async def a_model_that_fails_is_no_crash(subject: MemberSubject) -> None:
    """When its models fail, it reports that or continues without the reply."""
    for arguments, seen in await _with_models(subject, None):
        if seen.status is Status.TIMEOUT:
            raise CheckFailed(
                f"its model failed at once, and {arguments} went on for {LONGEST:g} s; do not ask again and again"
            )
        if is_accident(seen) and seen.error is not None:
            raise CheckFailed(
                f"its model failed, and {arguments} ended with {seen.error.message!r}; let CallFailed pass, or "
                "continue without the reply"
            )


async def an_unexpected_reply_is_no_crash(subject: MemberSubject) -> None:
    """When its models give unexpected replies, it reports that or continues without them."""
    for text in UNEXPECTED_REPLIES:
        for arguments, seen in await _with_models(subject, text):
            if seen.status is Status.TIMEOUT:
                raise CheckFailed(
                    f"its model answered {text[:40]!r} at once, and {arguments} went on for {LONGEST:g} s; give up "
                    "after a few replies that cannot be used"
                )
            if is_accident(seen) and seen.error is not None:
                raise CheckFailed(
                    f"its model answered {text[:40]!r}, and {arguments} ended with {seen.error.message!r}; check what "
                    "a reply holds before using it"
                )


async def a_budget_is_never_exceeded(subject: MemberSubject) -> None:
    """However little of its budget is left, it ends with an observation and has not spent more."""
    for arguments, _ in subject.given("examples"):
        whole = (await _within(subject, arguments, None)).usage
        # Cut everywhere: what an agent forgets to catch shows only when the budget ends at that very request.
        for budget in _cuts(whole):
            seen = await _within(subject, arguments, budget)
            if _exceeds(seen.usage, budget):
                raise CheckFailed(f"with {budget}, {arguments} used {seen.usage.to_json()}")
            if is_accident(seen) and seen.error is not None:
                raise CheckFailed(
                    f"with {budget}, {arguments} ended with {seen.error.message!r}; let CallFailed pass, or answer "
                    "with what there is"
                )


async def _within(subject: MemberSubject, arguments: Mapping[str, Any], budget: Budget | None) -> Observation:
    return await run_call(subject.spec, arguments, pool=subject.make_pool(), budget=budget, question=subject.question)


def _cuts(whole: Usage) -> list[Budget]:
    """Budgets of fewer calls, and of fewer tokens, than a whole call uses; at most `MOST_CUTS` of each."""
    calls = range(1, min(int(whole.calls), MOST_CUTS + 1))
    tokens = sorted({int(whole.tokens * part / MOST_CUTS) for part in range(1, MOST_CUTS)} - {0})
    return [*(Budget(calls=number) for number in calls), *(Budget(tokens=number) for number in tokens)]


def _exceeds(used: Usage, budget: Budget) -> bool:
    calls, tokens = budget.calls, budget.tokens
    return (calls is not None and used.calls > calls) or (tokens is not None and used.tokens > tokens)


AGENT_CHECKS = (
    *DECLARATION_CHECKS,
    *CALL_CHECKS,
    it_asks_only_for_roles_that_it_declares,
    a_model_that_fails_is_no_crash,
    an_unexpected_reply_is_no_crash,
    a_budget_is_never_exceeded,
)


def _roles(subject: MemberSubject) -> tuple[str, ...]:
    subject.given("examples")
    return subject.spec.models if isinstance(subject.spec, AgentSpec) else ()


async def _with_models(subject: MemberSubject, text: str | None) -> list[tuple[Mapping[str, Any], Observation]]:
    """Each example with all models of its pool replaced by one that answers `text`, or refuses."""
    roles = _roles(subject)
    if not roles and not subject.make_pool().models:
        raise CheckSkipped("it asks no model")
    pool = with_models(subject.make_pool(), roles, lambda: _Answering(text))
    spec = subject.spec.with_(timeout=min(subject.spec.timeout or LONGEST, LONGEST))
    return [
        (arguments, await run_call(spec, arguments, pool=pool, question=subject.question))
        for arguments, _ in subject.examples
    ]
