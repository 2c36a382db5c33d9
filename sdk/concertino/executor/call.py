"""A call of a tool or agent: what differs from other executions.

It is validated before it is made (`validation`), may be answered or refused by hooks, and its result is checked, turned
into plain JSON data and cut to the size that a model is shown.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from concertino.core.attachment import Attachment, take_attachments
from concertino.core.background import in_background, json_in_steps
from concertino.core.budget import Amount
from concertino.core.events import CallEnded, CallStarted, Event
from concertino.core.known_secrets import finder
from concertino.core.observation import CallFailed, Observation, Status
from concertino.core.result import Result
from concertino.core.usage import Usage

from . import error_messages
from .approval import Suspension
from .bound import BoundTool
from .content import BadResult, dumped, large_data, to_content, truncate, with_marks
from .context import CallContext
from .execution import Execution
from .hooks import after_call, before_call
from .secrecy import clean_attachments, clean_content, clean_error
from .validation import check_result


class MemberCall(Execution):
    """The life of one call of a tool or agent."""

    __slots__ = ()

    bound: BoundTool

    def amount(self) -> Amount:
        return self.bound.amount

    def reserve_again(self) -> bool:
        # Money may be billed for each attempt; cost units are charged once per call.
        if not self.bound.own_usd or self.reservation is None:
            return True
        return self.reservation.grow(Amount(usd=self.bound.spec.cost.usd))

    def invoke(self) -> Awaitable[Any]:
        return self.bound.run(self)

    def make_context(self) -> CallContext:
        """The injected parameter of the plugin's function."""
        # Made once: a repeated attempt continues with the ledger of the first one.
        if self.bound.is_agent and self.ledger is self.owner.ledger:
            self.ledger = self.owner.ledger.child()
        return CallContext(self)

    async def before(self) -> Observation | None:
        answer = await before_call(self.scope.before, self.bound.spec, self.arguments, self.call_id, self.run_id)
        # A copy, since a hook may answer many calls with one object.
        if answer is None:
            return None
        error = clean_error(answer.error) if answer.error is not None else None
        content, _ = clean_content(answer.content, "")
        return replace(answer, content=content, error=error, started=self.started, ended=self.scope.now())

    async def after(self, observation: Observation) -> Observation:
        if self.scope.after:
            observation = await after_call(self.scope.after, self.bound.spec, observation)
        if self.scope.guarding is not None:
            observation = await self.scope.guarding.judge_result(self, observation)
        return observation

    def is_alone(self) -> bool:
        kind = self.bound.spec.kind
        return len({m.provider or m.name for m in self.scope.pool.members if m.kind == kind}) <= 1

    # -- observations ----------------------------------------------------------------------------------------------

    async def succeeded_with_much(self, value: Any) -> Observation:
        bound = self.bound
        data = None
        if not Attachment.made and bound.dump is None:
            data = large_data(value, self.runtime.limits.result_bytes, bound.max_chars)
        if data is None:
            return self.succeeded(value)
        writing = asyncio.ensure_future(in_background(partial(json_in_steps, data)))
        await self._wait_through(writing)
        if writing.exception() is not None:
            return self.succeeded(value)  # written here, and the reason is said
        return self.succeeded(data, writing.result())

    def succeeded(self, value: Any, text: str | None = None) -> Observation:
        """The observation of a result.

        Args:
            text: of data that `large_data` gave, its JSON.
        """
        billed = None
        if type(value) is Result:
            billed, value = value, value.content
        bound = self.bound
        attached: list[Attachment] = []
        marked: Sequence[Attachment] = billed.attachments if billed is not None else ()
        if Attachment.made:
            value, attached = take_attachments(clean_attachments(value))
        try:
            content, text = self._content_of(value) if text is None else (value, text)
        except BadResult as error:
            return self.error(Status.EXEC_ERR, error_messages.bad_result(str(error)))
        if attached or marked:
            self.extra = self.scope.take(self.call_id, [*attached, *marked])
        if finder() is not None:  # before it is cut: nothing tells a secret by its half
            content, text = clean_content(content, text)
        # Attachments were taken out of the result, so it has no longer the form that its schema says.
        if not attached and bound.output is not None and (wrong := check_result(content, bound.output)) is not None:
            return self.error(Status.EXEC_ERR, wrong)
        content, text = with_marks(content, text, marked)
        cut = 0
        if len(text) > bound.max_chars:
            # References to this call get the whole content; only what the model reads is cut.
            self.full = content
            content, cut = truncate(content, text, bound.max_chars)
        ended = self.scope.now()
        # It swallowed its cancellation and returned after the deadline, which is too late.
        if self.ladder is not None and self.ladder.why == "deadline":
            return self.timed_out(ended)
        usage = self.usage(ended)
        if billed is not None:
            usage = usage._replace(
                units=usage.units + billed.units,
                usd=usage.usd + billed.usd,
                input_tokens=billed.input_tokens,
                output_tokens=billed.output_tokens,
            )
        return Observation(
            self.call_id,
            bound.name,
            Status.OK,
            content,
            None,
            usage,
            self.attempts.count,
            self.started,
            ended,
            self.repairs,
            cut,
        )

    def _content_of(self, value: Any) -> tuple[Any, str]:
        """Plain data and the text that a model reads. Raises BadResult."""
        bound = self.bound
        if bound.dump is not None:
            value = dumped(value, bound.dump)
        return to_content(value, self.runtime.limits.result_bytes, bound.max_chars)

    def showing(self, observation: Observation, value: Any) -> Observation:
        """The observation with another content, checked and cut like a result."""
        try:
            content, text = to_content(value, self.runtime.limits.result_bytes, self.bound.max_chars)
        except BadResult as error:
            self.full = None
            return self.error(Status.EXEC_ERR, error_messages.bad_result(str(error)))
        content, text = clean_content(content, text)
        cut, self.full = 0, None
        if len(text) > self.bound.max_chars:
            self.full = content
            content, cut = truncate(content, text, self.bound.max_chars)
        return replace(observation, content=content, truncated=cut)

    def inner_failure(self, error: CallFailed | Suspension) -> Observation:
        """As for any execution, with the partial result of the inner call, bounded like any result."""
        observation = super().inner_failure(error)
        if isinstance(error, Suspension):
            return observation
        content = error.observation.content
        if content is not None:
            # The failure counts either way, so a partial result that cannot be shown is left out.
            with contextlib.suppress(BadResult):
                content, text = to_content(content, self.runtime.limits.result_bytes, self.bound.max_chars)
                content, text = clean_content(content, text)
                shown, observation.truncated = truncate(content, text, self.bound.max_chars)
                if observation.truncated:
                    self.full = content
                observation.content = shown
        return observation

    def usage(self, ended: float) -> Usage:
        seconds = ended - self.started
        cost = self.bound.spec.cost
        usd = cost.usd * max(1, self.attempts.count) + cost.usd_per_second * seconds if self.bound.own_usd else 0.0
        return Usage(1, cost.units, usd, 0, 0, 0, seconds)

    # -- events ----------------------------------------------------------------------------------------------------

    def recorded_arguments(self) -> Any:
        return self.arguments

    def started_event(self) -> Event:
        bound, scope = self.bound, self.scope
        return CallStarted(
            scope.run_id, self.call_id, self.owner.parent_id, bound.name, bound.spec.kind, self.arguments, self.started
        )

    def ended_event(self, observation: Observation) -> Event:
        return CallEnded(observation, self.owner.parent_id, self.full)
