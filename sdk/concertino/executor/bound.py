"""Members made ready to run: how a spec is invoked, what it may cost, and the state kept about it and its provider.

An executor keeps one `Bound` per spec and one `Provider` per provider for its whole life, over many runs and pools:
breakers, gates, retry budgets, loop threads, worker processes and open models belong to them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from concertino.core.budget import Amount
from concertino.core.provider_error import FailureClass
from concertino.members.specs import ModelSpec, ToolSpec

from .breaker import Breaker, BreakerPolicy
from .isolation.processes import Workers
from .isolation.threads import LoopThread
from .limits import AdaptiveGate, Gate
from .retry import RetryBudget

if TYPE_CHECKING:
    from concertino.core.model import Model

    from .call import Invocation


_CONTAINERS = (dict, list)


class Provider:
    """What is known about one provider: is it up, does it throttle, does it block."""

    __slots__ = ("_loop_thread", "_put_off", "_retries", "breaker", "gate", "name")

    def __init__(self, name: str, capacity: int, policy: BreakerPolicy) -> None:
        self.name = name
        self.gate = AdaptiveGate(capacity)
        self.breaker = Breaker(policy)
        self._retries = RetryBudget()
        self._put_off = RetryBudget(50.0, 1.0)
        self._loop_thread: LoopThread | None = None

    def called(self) -> None:
        """A call of it begins: it earns a share of a retry."""
        self._retries.called()
        self._put_off.called()

    def may_retry(self, failure: FailureClass) -> bool:
        """Use one retry of the budget for such failures, if one is left.

        A provider that throttles is alive, and its gate makes it get less: one retry per call may be spent on it.
        """
        return (self._put_off if failure is FailureClass.THROTTLED else self._retries).take()

    @property
    def loop_thread(self) -> LoopThread:
        """The provider's own event loop, started at first use."""
        if self._loop_thread is None:
            self._loop_thread = LoopThread(self.name or "local")
        return self._loop_thread

    def replace_loop_thread(self, blocked: LoopThread | None = None) -> None:
        """Give up a loop that plugin code blocks (whichever there is, by default); the next call gets a fresh one."""
        if self._loop_thread is not None and blocked in (None, self._loop_thread):
            self._loop_thread.stop()
            self._loop_thread = None

    def close(self) -> None:
        """End the loop thread."""
        self.replace_loop_thread()


class Bound:
    """A tool or agent, ready to be invoked."""

    __slots__ = (
        "_workers",
        "abandoned",
        "amount",
        "context",
        "convert",
        "gate",
        "isolation",
        "max_chars",
        "name",
        "output",
        "own_usd",
        "provider",
        "quarantine",
        "retry_safe",
        "run",
        "spec",
        "timeout",
        "validator",
    )

    def __init__(self, spec: ToolSpec, provider: Provider) -> None:
        self.spec = spec
        self.name = spec.name
        self.provider = provider
        self.validator = spec.validator
        self.output = spec.output_validator
        self.timeout = spec.timeout
        self.retry_safe = spec.retry_safe
        self.convert = spec.convert
        self.context = spec.context
        self.max_chars = spec.max_chars
        self.gate = Gate(spec.concurrency) if spec.concurrency else None
        self.amount = Amount(1.0, spec.cost.units, spec.cost.upper_bound(spec.timeout), 0.0)
        self.own_usd = bool(spec.cost.usd or spec.cost.usd_per_second)
        self.abandoned = 0
        self.quarantine = ""
        self._workers: Workers | None = None
        self.isolation = spec.isolation
        self.run = self._how()

    def _how(self) -> Callable[[Invocation], Any]:
        if self.isolation == "process":
            self._workers = Workers(self.name, self.spec.function)
            return self._in_process
        if not self.spec.is_async:
            return self._in_own_thread
        return self._on_loop_thread if self.isolation == "thread" else self._in_loop

    def move_to_thread(self) -> bool:
        """After it blocked the caller's loop: from now on, a loop thread of its own. Says whether it could be moved."""
        if self.isolation == "loop" and self.spec.is_async:
            self.isolation = "thread"
            self.run = self._on_loop_thread
        return self.isolation == "thread"

    def keyword_arguments(self, invocation: Invocation) -> dict[str, Any]:
        """Validated JSON as the function's keyword arguments, with the context if it takes one."""
        arguments: dict[str, Any] = _own(invocation.arguments)
        if self.convert is not None:
            arguments = self.convert(arguments)
        if self.context:
            arguments = {**arguments, self.context: invocation.make_context()}
        return arguments

    def call(self, invocation: Invocation) -> Any:
        """Call the function itself; for a coroutine function, gives its coroutine."""
        if self.spec.takes_mapping:
            if self.context:
                return self.spec.function(_own(invocation.arguments), **{self.context: invocation.make_context()})
            return self.spec.function(_own(invocation.arguments))
        return self.spec.function(**self.keyword_arguments(invocation))

    async def _in_loop(self, invocation: Invocation) -> Any:
        coroutine = invocation.coroutine = self.call(invocation)
        return await coroutine

    async def _on_loop_thread(self, invocation: Invocation) -> Any:
        thread = self.provider.loop_thread
        if thread.doubtful and not await thread.alive(invocation.executor.limits.grace):
            self.provider.replace_loop_thread(thread)
            thread = self.provider.loop_thread
        return await thread.run(self.name, lambda: self.call(invocation))

    async def _in_own_thread(self, invocation: Invocation) -> Any:
        return await invocation.executor.crew.run(self.name, lambda: self.call(invocation))

    async def _in_process(self, invocation: Invocation) -> Any:
        assert self._workers is not None
        return await self._workers.run(invocation.arguments, invocation.executor.crew)

    def close(self) -> None:
        """End worker processes."""
        if self._workers is not None:
            self._workers.close()


class OpenModel:
    """A `Model` object, made at first use, and what is known of how it has been doing.

    All specs with one factory share it: another price or description makes no second server connection.
    """

    __slots__ = ("cooling_until", "factory", "failed", "gate", "instance", "measured", "usual_output", "usual_seconds")

    def __init__(self, factory: Callable[[], Model]) -> None:
        self.factory = factory
        self.instance: Model | None = None
        self.usual_seconds = 0.0
        self.usual_output = 0.0
        self.measured = float("-inf")
        self.failed = 0
        self.cooling_until = float("-inf")
        self.gate: Gate | None = None

    def bounded(self, concurrency: int | None) -> Gate | None:
        """The one gate of the model, with the newest number of places."""
        if concurrency is None:
            return None
        self.gate = self.gate or Gate(concurrency)
        self.gate.capacity = concurrency
        return self.gate

    def open(self) -> Model:
        """The model object."""
        if self.instance is None:
            self.instance = self.factory()
        return self.instance

    def answered_in(self, seconds: float, output_tokens: int, now: float) -> None:
        """Remember how long it usually takes and how much it usually writes: moving averages."""
        self.usual_seconds = 0.8 * self.usual_seconds + 0.2 * seconds if self.usual_seconds else seconds
        self.usual_output = 0.8 * self.usual_output + 0.2 * output_tokens if self.usual_output else output_tokens
        self.measured = now
        self.failed = 0

    async def close(self) -> None:
        """Close the model object, if it was made."""
        if self.instance is not None:
            instance, self.instance = self.instance, None
            await instance.close()


class BoundModel:
    """A model, ready to be asked."""

    __slots__ = (
        "abandoned",
        "gate",
        "isolation",
        "name",
        "opened",
        "own_usd",
        "provider",
        "quarantine",
        "retry_safe",
        "spec",
        "timeout",
    )

    def __init__(self, spec: ModelSpec, provider: Provider, opened: OpenModel) -> None:
        self.spec = spec
        self.name = spec.name
        self.provider = provider
        self.opened = opened
        self.timeout = spec.timeout
        self.gate = opened.bounded(spec.concurrency)
        self.retry_safe = True  # asking a model twice costs twice and does no other harm
        self.isolation = "loop"
        self.own_usd = False
        self.abandoned = 0
        self.quarantine = ""

    def ran_long_enough(self, seconds: float) -> bool:
        """Whether a request that was stopped after `seconds` had most of the time that it usually takes."""
        usual = self.opened.usual_seconds or self.timeout
        return usual is not None and seconds >= 0.8 * usual

    def move_to_thread(self) -> bool:
        """A model that blocks the loop cannot be moved: its connections belong to this loop."""
        return False


def _own(value: Any) -> Any:
    """The same JSON data in containers of its own: what a plugin does to them shows in no trace, result or retry."""
    if type(value) is dict:
        return {key: _own(item) if type(item) in _CONTAINERS else item for key, item in value.items()}
    if type(value) is list:
        return [_own(item) if type(item) in _CONTAINERS else item for item in value]
    return value
