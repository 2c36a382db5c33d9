"""What a tool or agent is given at a call: its way to models, to other members, to the time and the budget left.

A function asks for it by annotation (`ctx: Context`), under any parameter name; the parameter never reaches the
schema. Everything that an agent does through its context is part of its call: it spends from the same budget, ends at
the same deadline, is recorded below the call in the trace, and is not repeated when a run is resumed.

A tool may take a context too, for its deadline and idempotency key; calling models and members is for agents. This
module holds the contract alone. The executor implements it, and `concertino.testing.make_context` makes one for tests.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Generic

from concertino.core.budget import Amount
from concertino.core.model import ChatRequest, Message, Reply, Sampling
from concertino.core.observation import CallFailed, Observation
from concertino.core.plan import Call, Plan

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    # The default lets `Context` alone stand for any dependencies.
    D = TypeVar("D", default=Any)
else:
    from typing import TypeVar

    D = TypeVar("D")
T = TypeVar("T")


class ContextModel(ABC):
    """A model of the pool, as an agent asks it. `name` is its full name in the pool."""

    name: str

    async def chat(
        self,
        messages: str | Sequence[Message],
        *,
        tools: Sequence[dict[str, Any]] = (),
        sampling: Sampling | None = None,
        schema: Any = None,
    ) -> Reply:
        """Ask the model. A plain text is one user message.

        Args:
            schema: what the reply's `data` is to be: a JSON schema, which it satisfies, or a type that pydantic can
                validate (a model, dataclass, TypedDict, union, list), of which it is a value.

        Raises:
            CallFailed: no answer (deadline, budget, provider), or one that breaks the schema; an agent may catch it
                and continue without.
            UsageError: tools and a schema together.
            SpecError: no JSON schema can be made of the type.
        """
        if isinstance(messages, str):
            messages = [Message("user", messages)]
        if schema is None or isinstance(schema, Mapping):
            return await self.ask(ChatRequest(messages, tools, sampling or Sampling(), schema=schema))
        from .value_type import ValueType

        kind = ValueType(schema, "schema")
        reply = await self.ask(ChatRequest(messages, tools, sampling or Sampling(), schema=kind.schema))
        value, wrong = kind.read(reply.data)
        if wrong:
            raise CallFailed.because(
                f"the reply breaks the type that was asked for: {wrong}", code="bad_reply", retryable=True
            )
        return replace(reply, data=value)

    @abstractmethod
    async def ask(self, request: ChatRequest) -> Reply:
        """Ask the model with a `ChatRequest` of the caller's own. Raises as `chat` does."""


@dataclass(frozen=True, slots=True)
class RunContext(Generic[D]):
    """What a run is about, for functions that are asked before or beside its calls: instructions and guards.

    Attributes:
        run_id: id of the run.
        question: of the user.
        deps: what `run(..., deps=...)` was given.
    """

    run_id: str
    question: str
    deps: D


class Context(ABC, Generic[D]):
    """Given to every tool or agent that asks for it. `Context[Bank]` says of which type its dependencies are."""

    @property
    @abstractmethod
    def deps(self) -> D:
        """What `run(..., deps=...)` was given: a database, a session, a user. No model sees it and no trace keeps it.

        Raises:
            SpecError: the run was given none.
        """

    @property
    @abstractmethod
    def question(self) -> str:
        """The question of the whole run."""

    @property
    @abstractmethod
    def call_id(self) -> str:
        """Id of this call, unique in its run."""

    @property
    @abstractmethod
    def run_id(self) -> str:
        """Id of the run."""

    @property
    @abstractmethod
    def idempotency_key(self) -> str:
        """A key that stays the same when this call is repeated, even after a crash; for services that take one."""

    @property
    @abstractmethod
    def history(self) -> tuple[Observation, ...]:
        """Observations of the orchestrator's calls that have finished in this run, in the order of finishing."""

    @property
    @abstractmethod
    def transcript(self) -> tuple[Message, ...]:
        """The orchestrator's conversation so far."""

    @property
    @abstractmethod
    def remaining(self) -> Amount:
        """What is left of the budget in calls, units, $ and tokens; infinity where there is no limit."""

    @abstractmethod
    def remaining_seconds(self) -> float:
        """Seconds until this call's deadline; infinity without one."""

    @property
    @abstractmethod
    def models(self) -> dict[str, str]:
        """The pool's models: the full name by every name that means one (role, full name, unambiguous short name).

        `model` also takes other roles and gives them the model of the role `default`; an agent that receives a name
        from its caller looks here first.
        """

    @abstractmethod
    def offered(self, *patterns: str, without: str = "", question: str = "") -> list[Mapping[str, Any]]:
        """The pool's tools and agents as OpenAI-style function objects, for an agent that lets a model choose.

        Args:
            patterns: names or patterns of members; all by default.
            without: the full or short name of one that is left out.
            question: of a pool that is too large for a prompt, those that fit it, and the tool that finds the others;
                with patterns, all that match.
        """

    @property
    @abstractmethod
    def toolbox(self) -> list[dict[str, Any]]:
        """The agent's own tools as OpenAI-style function objects."""

    @abstractmethod
    def model(self, role_or_name: str = "default") -> ContextModel:
        """The model bound to a role, or of a name.

        Raises:
            PoolError: no such role or model.
        """

    @abstractmethod
    async def call(self, name: str, arguments: Mapping[str, Any] | str = "{}") -> Observation:
        """Call a tool or agent of the pool. Never raises for what the call does: look at the status."""

    @abstractmethod
    async def run(self, plan: Plan | Iterable[Call]) -> list[Observation]:
        """Run a plan of calls; observations in the order of the calls."""

    @abstractmethod
    def progress(self, done: float, total: float | None = None, message: str = "") -> None:
        """Report how far this call is: a `Progressed` event for listeners, at most ten a second.

        Args:
            done: how much is done, in any unit.
            total: how much there is to do, if that is known.
            message: what is being done.
        """

    @abstractmethod
    async def gather(self, *work: Awaitable[T] | Iterable[Awaitable[T]]) -> list[T]:
        """Await several things at once; results in order. If one raises, the others are cancelled and it is raised."""

    @abstractmethod
    def wait(self, awaitable: Awaitable[T]) -> T:
        """For a synchronous agent in its own thread: `ctx.wait(ctx.call(...))`."""
