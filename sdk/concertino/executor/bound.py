"""Members made ready to run: how a spec is invoked, what it may cost, and the state kept about it and its provider.

An executor keeps one of them per spec and one `Provider` per provider, over many runs and pools (`bindings`): breakers,
gates, retry budgets, loop threads, worker processes and open models belong to them.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Coroutine, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Protocol

from concertino.core.budget import Amount
from concertino.core.provider_error import FailureClass
from concertino.members.context import Context
from concertino.members.specs import AgentSpec, ModelSpec, ToolSpec

from .breaker import Breaker, BreakerPolicy
from .gates import AdaptiveGate, Gate
from .isolation.threads import LoopThread
from .retry import RetryBudget
from .runtime import Runtime

if TYPE_CHECKING:
    from concertino.core.model import Model

    from .isolation.processes import Workers

_NONE: Mapping[str, ToolSpec] = MappingProxyType({})
_CONTAINERS = (dict, list)


class Provider:
    """What is known about one provider: is it up, does it throttle, does it block."""

    __slots__ = ("_loop_thread", "_retries", "_throttled_retries", "breaker", "gate", "name")

    def __init__(self, name: str, capacity: int, policy: BreakerPolicy) -> None:
        self.name = name
        self.gate = AdaptiveGate(capacity)
        self.breaker = Breaker(policy)
        self._retries = RetryBudget()
        # Fifty more for the burst that finds out how much the provider takes at once.
        self._throttled_retries = RetryBudget(50.0, 1.0)
        self._loop_thread: LoopThread | None = None

    def called(self) -> None:
        """A call of it begins: it earns a share of a retry."""
        self._retries.called()
        self._throttled_retries.called()

    def may_retry(self, failure: FailureClass) -> bool:
        """Use one retry of the budget for such failures, if one is left.

        A provider that throttles is alive, and its gate makes it get less: one retry per call may be spent on it.
        """
        return (self._throttled_retries if failure is FailureClass.THROTTLED else self._retries).take()

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


class Invocation(Protocol):
    """What a bound tool or agent needs of the call that invokes it.

    Attributes:
        arguments: validated JSON data.
        coroutine: the plugin's coroutine, while it runs on the executor's own loop.
    """

    arguments: Any
    coroutine: Coroutine[Any, Any, Any] | None

    @property
    def runtime(self) -> Runtime:
        """The threads and limits to run with."""

    def make_context(self) -> Context:
        """The injected parameter of the plugin's function."""


class Bound:
    """A member, ready to run: what holds for tools, agents and models alike.

    Attributes:
        own_usd: whether a call of it costs money of its own.
        abandoned: how many of its calls could not be ended.
        quarantine: why it is out of use, empty while it is not.
        is_agent: an agent's own calls are the attempts on providers; the agent itself is none.
    """

    __slots__ = (
        "abandoned",
        "gate",
        "is_agent",
        "isolation",
        "name",
        "own_usd",
        "provider",
        "quarantine",
        "retry_safe",
        "spec",
        "timeout",
    )

    def __init__(self, spec: ToolSpec | ModelSpec, provider: Provider, *, retry_safe: bool, isolation: str) -> None:
        self.spec = spec
        self.name = spec.name
        self.provider = provider
        self.timeout = spec.timeout
        self.retry_safe = retry_safe
        self.isolation = isolation
        self.is_agent = isinstance(spec, AgentSpec)
        self.gate: Gate | None = None
        self.own_usd = False
        self.abandoned = 0
        self.quarantine = ""

    @property
    def own_tools(self) -> Mapping[str, ToolSpec]:
        """Tools that only its own calls can name."""
        return _NONE

    def move_to_thread(self) -> bool:
        """After it blocked the event loop: run elsewhere from now on. Says whether it could be moved."""
        return False

    def note_abandoned(self, at_most: int) -> None:
        """One of its calls could not be ended. More than `at_most` put it out of use."""
        self.abandoned += 1
        # The abandoned coroutine may block that loop for all other members of the provider.
        if self.isolation == "thread":
            self.provider.replace_loop_thread()
        if self.abandoned > at_most:
            self.quarantine = f"{self.abandoned} of its calls could not be stopped"


class BoundTool(Bound):
    """A tool or agent, ready to be invoked."""

    __slots__ = ("_way", "_workers", "amount", "context", "convert", "dump", "max_chars", "output", "validator")

    spec: ToolSpec

    def __init__(self, spec: ToolSpec, provider: Provider) -> None:
        super().__init__(spec, provider, retry_safe=spec.retry_safe, isolation=spec.isolation)
        self.validator = spec.validator
        self.output = spec.output_validator
        self.convert = spec.convert
        # A worker process has turned it into JSON data already.
        self.dump = None if spec.isolation == "process" else spec.dump
        self.context = spec.context
        self.max_chars = spec.max_chars
        self.gate = Gate(spec.concurrency) if spec.concurrency else None
        self.amount = Amount(1.0, spec.cost.units, spec.cost.upper_bound(spec.timeout), 0.0)
        self.own_usd = bool(spec.cost.usd or spec.cost.usd_per_second)
        self._workers: Workers | None = None
        # Of the class, not of this object: an object that holds a method of its own is freed by the collector only.
        self._way = self._chosen_way()

    @property
    def own_tools(self) -> Mapping[str, ToolSpec]:
        """An agent's toolbox, by short name."""
        return self.spec.own_tools if isinstance(self.spec, AgentSpec) else _NONE

    def _chosen_way(self) -> Callable[[BoundTool, Invocation], Coroutine[Any, Any, Any]]:
        if self.isolation == "process":
            from .isolation.processes import Workers  # ten modules that few runs need

            self._workers = Workers(self.name, self.spec.function, self.spec.env_from)
            return BoundTool._in_process
        if not self.spec.is_async:
            return BoundTool._in_own_thread
        return BoundTool._on_loop_thread if self.isolation == "thread" else BoundTool._in_loop

    def run(self, call: Invocation) -> Coroutine[Any, Any, Any]:
        """One attempt, wherever its function runs."""
        return self._way(self, call)

    def move_to_thread(self) -> bool:
        """After it blocked the caller's loop: from now on, a loop thread of its own. Says whether it could be moved."""
        if self.isolation == "loop" and self.spec.is_async:
            self.isolation = "thread"
            self._way = BoundTool._on_loop_thread
        return self.isolation == "thread"

    def _keyword_arguments(self, call: Invocation) -> dict[str, Any]:
        """Validated JSON as the function's keyword arguments, with the context if it takes one."""
        arguments: dict[str, Any] = _own(call.arguments)
        if self.convert is not None:
            arguments = self.convert(arguments)
        if self.context:
            arguments = {**arguments, self.context: call.make_context()}
        return arguments

    def _call(self, call: Invocation) -> Any:
        """Call the function itself; for a coroutine function, gives its coroutine."""
        if self.spec.takes_mapping:
            if self.context:
                return self.spec.function(_own(call.arguments), **{self.context: call.make_context()})
            return self.spec.function(_own(call.arguments))
        return self.spec.function(**self._keyword_arguments(call))

    async def _in_loop(self, call: Invocation) -> Any:
        coroutine = call.coroutine = self._call(call)
        return await coroutine

    async def _on_loop_thread(self, call: Invocation) -> Any:
        thread = self.provider.loop_thread
        # A cancelled call may have left the loop blocked, and the next one must not wait behind it.
        if thread.doubtful and not await thread.alive(call.runtime.limits.grace):
            self.provider.replace_loop_thread(thread)
            thread = self.provider.loop_thread
        return await thread.run(self.name, lambda: self._call(call))

    async def _in_own_thread(self, call: Invocation) -> Any:
        value = await call.runtime.crew.run(self.name, lambda: self._call(call))
        # A plain function may still return a coroutine, which belongs on the executor's own loop.
        return await value if inspect.isawaitable(value) else value

    async def _in_process(self, call: Invocation) -> Any:
        assert self._workers is not None
        return await self._workers.run(call.arguments, call.runtime.crew, call.runtime.limits.result_bytes)

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
            # Forgotten before the wait, so that nobody is given a model that is being closed.
            instance, self.instance = self.instance, None
            await instance.close()


class BoundModel(Bound):
    """A model, ready to be asked.

    A repeated request costs twice and does no other harm. A model that blocks the event loop cannot be moved: its
    connections belong to this loop.
    """

    __slots__ = ("opened",)

    spec: ModelSpec

    def __init__(self, spec: ModelSpec, provider: Provider, opened: OpenModel) -> None:
        super().__init__(spec, provider, retry_safe=True, isolation="loop")
        self.opened = opened
        self.gate = opened.bounded(spec.concurrency)

    def ran_long_enough(self, seconds: float) -> bool:
        """Whether a request that was stopped after `seconds` had most of the time that it usually takes."""
        usual = self.opened.usual_seconds or self.timeout
        # 80 %, because a caller's short deadline says nothing about the server.
        return usual is not None and seconds >= 0.8 * usual


def _own(value: Any) -> Any:
    """A copy of JSON data: a plugin may change it, and no trace, result or retry shows that."""
    if type(value) is dict:
        return {key: _own(item) if type(item) in _CONTAINERS else item for key, item in value.items()}
    if type(value) is list:
        return [_own(item) if type(item) in _CONTAINERS else item for item in value]
    return value
