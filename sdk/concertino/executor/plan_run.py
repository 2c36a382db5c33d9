"""One plan under way: which calls wait for whom, and who waits for all of them.

A call is started when the last call that it waits for has an observation: data edges need success, the order of
writing calls only an end. What cannot be run (unreadable, unknown, unreachable) is observed at once and passed on
like any other end. The invariant: each call of the plan is settled exactly once, and nothing here recurses or raises
for what a call does.
"""

from __future__ import annotations

import asyncio
import contextvars
import json
from collections import deque
from collections.abc import Mapping
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any, cast

from concertino.core.events import CallEnded
from concertino.core.observation import ErrorInfo, Observation, Status
from concertino.core.plan import Call, Plan, substitute
from concertino.schema import InstanceRefused, guard_instance, holds_whole_float
from concertino.text.json import ReadingError, read_json
from concertino.text.references import LookupFailed

from . import error_messages as causes
from .bound import Bound
from .call import Invocation
from .ledger import Ledger
from .scope import Scope

if TYPE_CHECKING:
    from concertino.members.specs import AgentSpec, ToolSpec

    from .executor import Executor


class PlanRun:
    """One plan under way: which calls wait for whom, and who waits for all of them."""

    __slots__ = (
        "_after",
        "_begun",
        "_contents",
        "_missing",
        "_positions",
        "_settling",
        "cancelled",
        "context",
        "deadline",
        "depth",
        "executor",
        "future",
        "invocations",
        "ledger",
        "left",
        "now",
        "observations",
        "parent",
        "plan",
        "prefix",
        "scope",
    )

    def __init__(
        self,
        executor: Executor,
        scope: Scope,
        plan: Plan,
        prefix: str,
        parent: Invocation | None,
        begun: Mapping[str, PlanRun] | None = None,
    ) -> None:
        self.executor = executor
        self.scope = scope
        self.plan = plan
        self.prefix = prefix
        self.context = contextvars.copy_context()
        self.parent = parent
        self.depth = parent.depth + 1 if parent is not None else 0
        self.ledger: Ledger = parent.ledger if parent is not None else scope.ledger
        self.deadline = parent.deadline - executor.limits.margin if parent is not None else scope.deadline
        self.invocations: list[Invocation] = []
        self.left = len(plan.calls)
        self.observations: list[Observation | None] = [None] * self.left
        self.future: asyncio.Future[list[Observation]] = scope.loop.create_future()
        self.cancelled = False
        self.now = 0.0
        self._begun = begun or {}
        self._missing: dict[int, int] = {}
        self._after: dict[int, list[tuple[int, bool]]] = {}
        self._positions: dict[str, int] = {}
        self._contents: dict[str, Any] = {}
        self._settling: deque[tuple[int, Observation]] = deque()

    # -- starting --------------------------------------------------------------------------------------------------

    def begin(self) -> None:
        """Start every call that waits for nothing, all at one instant, so that they can share a timer."""
        self.now = self.scope.loop.time()
        self._begin()
        self.now = 0.0

    def _begin(self) -> None:
        calls = self.plan.calls
        writers = [i for i, call in enumerate(calls) if self._writes(call)]
        if self.plan.edges or self.plan.barriers or len(writers) > 1:
            self._connect(writers)
        if not self._missing:
            start = self._launch if self._begun else self._start
            for index, call in enumerate(calls):
                start(index, call)
            return
        for index in [index for index in range(len(calls)) if index not in self._missing]:
            self._launch(index, calls[index])

    def _find(self, name: str) -> ToolSpec | None:
        """The member of a name: one of the calling agent's own, else one of the pool."""
        if self.parent is not None:
            own = cast("AgentSpec", self.parent.bound.spec).own_tools.get(name)
            if own is not None:
                return own
        return self.scope.pool.find(name)

    def _writes(self, call: Call) -> bool:
        spec = self._find(call.name)
        return spec is not None and spec.writes

    def _connect(self, writers: list[int]) -> None:
        """Count what each call waits for: data edges need success, the order of writing calls only an end."""
        self._positions = {call.id: index for index, call in enumerate(self.plan.calls)}
        for call_id, before in self.plan.edges.items():
            for other in before:
                self._edge(self._positions[other], self._positions[call_id], True)
        for call_id, before in self.plan.barriers.items():
            for other in before:
                self._edge(self._positions[other], self._positions[call_id], False)
        if len(writers) > 1:
            writing = set(writers)
            order = [self._positions[call_id] for call_id in self.plan.topological_order()]
            chain = [index for index in order if index in writing]
            for first, second in pairwise(chain):
                self._edge(first, second, False)

    def _edge(self, first: int, second: int, needs_success: bool) -> None:
        self._after.setdefault(first, []).append((second, needs_success))
        self._missing[second] = self._missing.get(second, 0) + 1

    def _start(self, index: int, call: Call) -> None:
        """Read, check and submit one call; what cannot be run is observed at once."""
        call_id = f"{self.prefix}{call.id}"
        spec = self._find(call.name)
        if call.error is not None:
            self._refuse(
                index,
                call_id,
                call.name,
                Status.PARSE_ERR,
                ErrorInfo(call.error[0], causes.shorten(call.error[1])),
            )
            return
        if spec is None:
            known = [visible for visible, _ in self.scope.pool.actions]
            if self.parent is not None:
                known = [*cast("AgentSpec", self.parent.bound.spec).own_tools, *known]
            self._refuse(index, call_id, call.name, Status.PARSE_ERR, causes.unknown_name(call.name, known))
            return
        bound = self.executor.bind(spec)
        arguments, repairs, error = self._read(bound, call)
        if error is not None:
            self._refuse(index, call_id, bound.name, Status.PARSE_ERR, error, repairs)
            return
        invocation = Invocation(self.executor, self.scope, bound, call_id, arguments, self, index)
        invocation.repairs = repairs
        if self._repeats(invocation):
            return
        if self.parent is not None and self.parent.stopping:
            self._refuse(index, call_id, bound.name, Status.EXEC_ERR, causes.cancelled())
            return
        if self.depth >= self.executor.limits.depth:
            text = f"agents are nested deeper than {self.executor.limits.depth}"
            self._refuse(index, call_id, bound.name, Status.EXEC_ERR, causes.denied(text))
            return
        invocation.gates = self.executor.gates(bound, self.depth)
        if self.executor.overloaded(invocation):
            error = causes.overloaded(self.executor.limits.queue)
            self._refuse(index, call_id, bound.name, Status.EXEC_ERR, error)
            return
        self.invocations.append(invocation)
        if self.parent is not None:
            self.parent.made(invocation)
        self.executor.submit(invocation)

    def _launch(self, index: int, call: Call) -> None:
        """Start a call, or wait for one that was begun before this plan."""
        early = self._begun.get(call.id)
        if early is None:
            self._start(index, call)
        else:
            early.future.add_done_callback(partial(self._caught_up, index, early))

    def _read(self, bound: Bound, call: Call) -> tuple[Any, tuple[str, ...], ErrorInfo | None]:
        """The arguments as data, validated against the schema that the model saw."""
        arguments: Any = call.arguments
        repairs = call.repairs
        validator = bound.validator
        try:
            if isinstance(arguments, str):
                reading = read_json(arguments or "{}", maths_fields=bound.spec.maths_fields)
                arguments, repairs = reading.value, repairs + reading.repairs
            else:
                linked = call.id in self.plan.edges
                if linked:
                    arguments = substitute(arguments, self._contents)
                if linked or not call.guarded:
                    guard_instance(arguments)
                if not isinstance(arguments, Mapping):
                    return (
                        None,
                        repairs,
                        causes.refused_arguments(f"expected an object, got {type(arguments).__name__}"),
                    )
                arguments = dict(arguments)
            if not validator.is_valid(arguments):
                arguments, coerced = validator.coerce(arguments)
                repairs += coerced
                violations = validator.check(arguments)
                if violations:
                    return arguments, repairs, causes.invalid_arguments(violations, validator)
            elif holds_whole_float(arguments):
                arguments, _ = validator.coerce(arguments)  # 3.0 is an integer to JSON, and no int to Python
        except ReadingError as error:
            return None, repairs, causes.bad_json(error)
        except (InstanceRefused, LookupFailed) as error:
            return None, repairs, causes.refused_arguments(str(error))
        return arguments, repairs, self._converted(bound, arguments)

    @staticmethod
    def _converted(bound: Bound, arguments: Mapping[str, Any]) -> ErrorInfo | None:
        """Whether the plugin's own types (pydantic) take what its schema took."""
        if bound.convert is None:
            return None
        try:
            bound.convert(arguments)
        except Exception as error:
            return causes.refused_arguments(f"{error}")
        return None

    def _repeats(self, invocation: Invocation) -> bool:
        """Note the call, and answer it here if the run wants repeated calls answered or refused."""
        scope = self.scope
        if scope.duplicates == "run" or invocation.bound.spec.writes:
            return False
        key = (invocation.bound.name, json.dumps(invocation.arguments, sort_keys=True))
        first = scope.seen.setdefault(key, invocation.call_id)
        if first == invocation.call_id:
            return False
        earlier = scope.results.get(first)
        if scope.duplicates == "reuse" and earlier is not None and earlier.ok:
            answer = Observation(
                invocation.call_id,
                earlier.name,
                earlier.status,
                earlier.content,
                None,
                attempts=0,
                started=scope.now(),
                ended=scope.now(),
                repairs=invocation.repairs,
                replayed=True,
            )
            self._deliver_now(invocation.index, answer)
            return True
        if scope.duplicates == "refuse" and (earlier is None or earlier.attempts > 0 or earlier.replayed):
            error = causes.duplicate(first)
            self._refuse(invocation.index, invocation.call_id, invocation.bound.name, Status.EXEC_ERR, error)
            return True
        return False

    def _refuse(
        self,
        index: int,
        call_id: str,
        name: str,
        status: Status,
        error: ErrorInfo,
        repairs: tuple[str, ...] = (),
    ) -> None:
        now = self.scope.now()
        self._deliver_now(
            index, Observation(call_id, name, status, None, error, started=now, ended=now, repairs=repairs)
        )

    def _deliver_now(self, index: int, observation: Observation) -> None:
        self._record(observation)
        self._settle(index, observation)

    def _record(self, observation: Observation) -> None:
        parent = self.parent.call_id if self.parent is not None else ""
        memory = self.scope.memory
        recalled = memory is not None and memory.finished(observation.call_id)
        self.scope.emit_result(CallEnded(observation, parent), recalled=recalled)
        self._note(observation)

    def _caught_up(self, index: int, early: PlanRun, future: asyncio.Future[list[Observation]]) -> None:
        """A call that was begun before this plan has its observation, which is recorded already."""
        if not future.cancelled():
            self._contents.update(early._contents)
            self._settle(index, future.result()[0])

    # -- ending ----------------------------------------------------------------------------------------------------

    def observed(self, invocation: Invocation, observation: Observation) -> None:
        """A call has its observation; it is recorded but not yet seen."""
        self.observations[invocation.index] = observation
        self._note(observation)

    def _note(self, observation: Observation) -> None:
        self.scope.results[observation.call_id] = observation
        if self.depth == 0:
            self.scope.finished.append(observation)

    def delivered(self, invocation: Invocation) -> None:
        """A call's observation may be seen: whoever waits for it goes on."""
        observation = self.observations[invocation.index]
        assert observation is not None
        if invocation.full is not None:
            self._contents[self.plan.calls[invocation.index].id] = invocation.full
        self._settle(invocation.index, observation)

    def _settle(self, index: int, observation: Observation) -> None:
        """Pass an observation on to the followers, without recursion: a chain of failures may be long."""
        if not self._after:
            self.observations[index] = observation
            self.left -= 1
        else:
            self._settling.append((index, observation))
        if len(self._settling) > 1:
            return  # a follower that was refused at once; the loop below, further up the stack, takes it
        while self._settling:
            index, observation = self._settling[0]
            self._pass_on(index, observation)
            self._settling.popleft()
        if self.left == 0 and not self.future.done():
            self.future.set_result([seen for seen in self.observations if seen is not None])

    def _pass_on(self, index: int, observation: Observation) -> None:
        self.observations[index] = observation
        self.left -= 1
        call = self.plan.calls[index]
        if self.plan.edges:
            self._contents.setdefault(call.id, observation.content)
        for follower, needs_success in self._after.get(index, ()):
            if self._missing.get(follower, 0) <= 0:
                continue
            if needs_success and not observation.ok:
                self._missing[follower] = 0
                self._settling.append((follower, self._unreachable(follower, call.id, observation)))
            else:
                self._missing[follower] -= 1
                if self._missing[follower] == 0 and not self.cancelled:
                    self._launch(follower, self.plan.calls[follower])

    def _unreachable(self, index: int, before: str, because: Observation) -> Observation:
        call = self.plan.calls[index]
        now = self.scope.now()
        spec = self._find(call.name)
        observation = Observation(
            f"{self.prefix}{call.id}",
            spec.name if spec else call.name,
            Status.EXEC_ERR,
            None,
            causes.dependency_failed(before, because.status.value),
            started=now,
            ended=now,
        )
        self._record(observation)
        return observation
