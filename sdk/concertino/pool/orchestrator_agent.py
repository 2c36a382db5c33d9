"""An orchestrator as a member of a pool: an agent that leads its own run inside one call.

Its strategy's machine is driven through the agent's `Context`, so everything that it does is part of its call: the
same budget, the same deadline, a sub-trace. It is offered the pool's members but itself; orchestrators that call each
other end at the executor's depth limit, as any agents do.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from concertino.core.documents import check_keys
from concertino.core.errors import PoolError, SpecError, UsageError
from concertino.core.function_objects import FINDER, functions_in, names_of
from concertino.core.model import Sampling
from concertino.core.observation import CallFailed
from concertino.core.plan import Plan
from concertino.core.usage import Cost
from concertino.members.context import RunContext
from concertino.members.specs import AgentSpec
from concertino.strategies import Act, Ask, Done, Machine, Strategy, TaskContext
from concertino.strategies.base.frame import Frame, instructions_text
from concertino.strategies.built_in import DEFAULT_STRATEGY, installed_strategy

if TYPE_CHECKING:
    from concertino.members.context import Context

_SCHEMA = {
    "type": "object",
    "properties": {
        "task": {
            "type": "string",
            "minLength": 1,
            "description": "the whole task with everything it needs: who works on it sees nothing else",
        }
    },
    "required": ["task"],
    "additionalProperties": False,
}
OPTIONS = ("description", "model", "strategy", "settings", "only", "timeout", "units", "instructions")
"""The keys of an orchestrator in a pool file."""
Instructions = str | Callable[[RunContext[Any]], str] | None
"""What a model is told beside its task: a text, or a function that makes one for each run."""
_CODES = {"budget": "budget_exhausted", "deadline": "deadline"}


@dataclass(frozen=True, eq=False)
class OrchestratorAgent(AgentSpec):
    """An agent that leads its own run.

    Attributes:
        strategy: how it leads.
        leader: role or name of its model.
        only: patterns of the members that it may call; empty for all but itself.
        instructions: what its model is told beside the task.
    """

    strategy: Strategy | None = None
    leader: str = "orchestrator"
    only: tuple[str, ...] = ()
    instructions: Instructions = None

    def setup(self) -> dict[str, Any]:
        """What a pool file says of it."""
        assert self.strategy is not None
        settings = {key: value for key, value in self.strategy.to_json().items() if value is not None}
        data = {"description": self.description, "model": self.leader, "strategy": settings.pop("name")}
        told = self.instructions if isinstance(self.instructions, str) else ""
        more = {"settings": settings, "only": list(self.only), "units": self.cost.units, "instructions": told}
        return {**data, **{key: value for key, value in more.items() if value}, "timeout": self.timeout or "none"}

    def to_json(self) -> dict[str, Any]:
        """As for an agent, with its strategy, its model and what it may call."""
        assert self.strategy is not None
        own = {"strategy": self.strategy.to_json(), "leader": self.leader, "only": list(self.only)}
        told = self.instructions
        # A function is known by its name: what it says may differ from run to run.
        text = told if isinstance(told, str) or told is None else getattr(told, "__qualname__", repr(told))
        return {**super().to_json(), **own, **({"instructions": text} if text else {})}


def orchestrator_agent(
    name: str,
    description: str,
    strategy: Strategy,
    *,
    model: str = "orchestrator",
    only: Sequence[str] = (),
    sampling: Sampling | None = None,
    timeout: float | None = 600.0,
    cost: Cost | None = None,
    instructions: Instructions = None,
) -> OrchestratorAgent:
    """An agent `name` that leads a run with a strategy.

    Args:
        name: its name in the pool.
        description: what another orchestrator reads about it.
        strategy: how it leads.
        model: role or name of its model in the pool.
        only: patterns of the members that it may call; all but itself by default.
        sampling: of its model.
        timeout: seconds for one call, the whole run in it included.
        cost: what one call costs in addition to what it spends; one unit by default.
        instructions: what its model is told beside the task; a function is given the task as the question.
    """

    async def lead(arguments: dict[str, Any], *, ctx: Context) -> str:
        task = arguments["task"]
        told = instructions_text(
            instructions, RunContext(ctx.run_id, task, ctx.deps) if callable(instructions) else None
        )
        return await _Lead(name, strategy, model, tuple(only), sampling, ctx, told).answer(task)

    return OrchestratorAgent(
        name,
        description,
        _SCHEMA,
        lead,
        takes_mapping=True,
        context="ctx",
        timeout=timeout,
        models=(model,),
        cost=cost or Cost(units=1),
        strategy=strategy,
        leader=model,
        only=tuple(only),
        instructions=instructions,
    )


def orchestrator_of(name: str, table: Mapping[str, Any]) -> OrchestratorAgent:
    """The orchestrator that a pool file's table declares.

    Raises:
        PoolError: a key or value cannot be; names it.
    """
    check_keys(repr(name), table, OPTIONS, PoolError)
    for key in ("description", "model", "strategy", "instructions"):
        if not isinstance(table.get(key, ""), str):
            raise PoolError(f"{name!r}: {key} = {table[key]!r}; expected a text")
    if not table.get("description"):
        raise PoolError(f"{name!r}: it has no description; another orchestrator chooses by it")
    only, settings, timeout = table.get("only", []), table.get("settings", {}), table.get("timeout", 600.0)
    if not isinstance(only, list) or not all(isinstance(pattern, str) for pattern in only):
        raise PoolError(f"{name!r}: only = {only!r}; expected a list of patterns")
    if not isinstance(settings, dict):
        raise PoolError(f"{name!r}: settings = {settings!r}; expected a table")
    try:
        plain = installed_strategy(table.get("strategy", DEFAULT_STRATEGY))()
        check_keys(f"{name!r}: settings", settings, [key for key in plain.to_json() if key != "name"], PoolError)
        return orchestrator_agent(
            name,
            table["description"],
            type(plain).from_json({**plain.to_json(), **settings}),
            model=table.get("model", "orchestrator"),
            only=only,
            timeout=None if timeout == "none" else timeout,
            cost=Cost(units=table.get("units", 1)),
            instructions=table.get("instructions"),
        )
    except (SpecError, UsageError, TypeError) as error:
        raise error if isinstance(error, PoolError) else PoolError(f"{name!r}: {error}") from error


class _Lead:
    """One run inside a call."""

    def __init__(
        self,
        name: str,
        strategy: Strategy,
        model: str,
        only: tuple[str, ...],
        sampling: Sampling | None,
        ctx: Context[Any],
        instructions: str,
    ) -> None:
        self.frame = Frame.of(strategy, instructions, ())
        self.strategy = strategy
        self.model = model
        self.sampling = sampling
        self.ctx = ctx
        self.only = only
        self.name = name
        self.offered: set[str] = set()
        if only and not ctx.offered(*only, without=name):
            raise UsageError(
                f"{name}: only={only!r} matches no tool and no agent of the pool; correct it, or leave it out"
            )
        self.failure: CallFailed | None = None

    async def answer(self, task: str) -> str:
        """Lead the run to its answer.

        Raises:
            CallFailed: there is none; says why.
        """
        tools = self.ctx.offered(*self.only, without=self.name, question=task)
        self.offered = set(names_of(tools))
        machine = self.strategy.begin(TaskContext(task, tools, sampling=self.sampling))
        while not isinstance(step := machine.step(), Done):
            if isinstance(step, Ask):
                await self._ask(step, machine)
            else:
                await self._act(step, machine)
        if step.answer is not None:
            return step.answer
        if self.failure is not None:
            # The failed request is the cause, and its own code says more than that there is no answer.
            raise self.failure
        detail = f": {step.detail}" if step.detail else ""
        raise CallFailed.because(f"no answer ({step.stop}){detail}", code=_CODES.get(step.stop, "no_answer"))

    async def _ask(self, step: Ask, machine: Machine) -> None:
        # The pool's `orchestrator` leads the run around this call; this one has a model of its own.
        role = step.role if step.role != "orchestrator" and step.role in self.ctx.models else self.model
        step = self.frame.around(step) if self.frame else step
        try:
            reply = await self.ctx.model(role).chat(
                list(step.messages), tools=[dict(tool) for tool in step.tools], sampling=step.sampling or self.sampling
            )
        except CallFailed as failed:
            self.failure = failed
            machine.finish("model", str(failed))
            return
        machine.on_reply(reply)

    async def _act(self, step: Act, machine: Machine) -> None:
        offered = self.offered
        strangers = [call for call in step.plan.calls if call.error is None and call.name not in offered]
        plan = step.plan
        # The executor would run any member of the pool by name, this agent included.
        if strangers:
            text = f"not offered here; there are {', '.join(sorted(offered)) or 'none'}"
            plan = Plan(
                replace(call, error=("unknown_name", f"{call.name!r} is {text}")) if call in strangers else call
                for call in step.plan.calls
            )
        seen = await self.ctx.run(plan)
        found = (functions_in(each.content) for each in seen if each.ok and each.name == FINDER)
        self.offered.update(tool["function"]["name"] for tools in found for tool in tools)
        self.offered.discard(self.name)
        machine.observe(seen)
