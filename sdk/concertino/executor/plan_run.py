"""One plan under way: which calls wait for whom, and who waits for all of them.

A call is started when the last call that it waits for has an observation: data edges need success, the order of
writing calls only an end. What cannot be run (unreadable, unknown, unreachable) is observed at once and passed on
like any other end. The invariant: each call of the plan is settled exactly once, and nothing here recurses or raises
for what a call does.
"""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import Coroutine, Iterator, Mapping
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from concertino.core.approval import ApprovalRequest, Decision, Deny
from concertino.core.events import CallEnded
from concertino.core.late import present
from concertino.core.observation import ErrorInfo, Observation, Status
from concertino.core.plan import Call, Plan

from . import error_messages
from .approval import as_pending, decide, decided_before, is_pending, needs_approval, pending_error, record, request_of
from .call import MemberCall
from .execution import CallOwner, Execution, Host
from .scope import Scope
from .validation import ArgumentsRefused, read_arguments

if TYPE_CHECKING:
    from concertino.members.specs import ToolSpec

    from .bound import BoundTool
    from .gates import Gate


class CallOrder:
    """Which calls of a plan wait for which others. Calls are known by their place in the plan."""

    __slots__ = ("_count", "_followers", "_missing")

    def __init__(self, plan: Plan, writers: list[int]) -> None:
        self._followers: dict[int, list[tuple[int, bool]]] = {}
        self._missing: dict[int, int] = {}
        self._count = len(plan.calls)
        positions = {call.id: index for index, call in enumerate(plan.calls)}
        for edges, needs_success in ((plan.edges, True), (plan.barriers, False)):
            for call_id, before in edges.items():
                for other in before:
                    self._add(positions[other], positions[call_id], needs_success)
        if len(writers) > 1:
            writing = set(writers)
            # An order of writing calls that contradicted the edges would leave both sides waiting for ever.
            order = [positions[call_id] for call_id in plan.topological_order()]
            for first, second in pairwise(index for index in order if index in writing):
                self._add(first, second, False)

    def _add(self, first: int, second: int, needs_success: bool) -> None:
        self._followers.setdefault(first, []).append((second, needs_success))
        self._missing[second] = self._missing.get(second, 0) + 1

    def first(self) -> list[int]:
        """The calls that wait for nothing."""
        return [index for index in range(self._count) if index not in self._missing]

    def ended(self, index: int, ok: bool) -> Iterator[tuple[int, bool]]:
        """A call has ended. Gives the calls whose waiting is over, and whether they can start."""
        missing = self._missing
        for follower, needs_success in self._followers.get(index, ()):
            left = missing[follower]
            if left <= 0:
                continue  # another predecessor failed, which settled it
            if needs_success and not ok:
                missing[follower] = 0
                yield follower, False
            else:
                missing[follower] = left - 1
                if left == 1:
                    yield follower, True


class PlanRun(CallOwner):
    """One plan under way.

    Attributes:
        calls: the calls that were submitted.
        future: the observations, in the order of the plan, when all calls have ended.
        cancelled: nothing more is started.
    """

    __slots__ = (
        "_begun",
        "_left",
        "_observations",
        "_order",
        "_own_tools",
        "_ready",
        "_results",
        "_settling",
        "_waiting",
        "calls",
        "cancelled",
        "future",
        "plan",
        "prefix",
    )

    def __init__(
        self,
        host: Host,
        scope: Scope,
        plan: Plan,
        prefix: str,
        parent: Execution | None,
        begun: Mapping[str, PlanRun] | None = None,
    ) -> None:
        super().__init__(host, scope, parent)
        self.plan = plan
        self.prefix = prefix
        self._own_tools: Mapping[str, ToolSpec] = parent.bound.own_tools if parent is not None else {}
        self.calls: list[MemberCall] = []
        self.cancelled = False
        self.future: asyncio.Future[list[Observation]] = scope.loop.create_future()
        self._begun = begun
        self._left = len(plan.calls)
        self._observations: list[Observation | None] = [None] * self._left
        self._order: CallOrder | None = None
        self._ready: deque[Execution] | None = None
        self._results: dict[str, Any] = {}
        self._settling: deque[tuple[int, Observation]] | None = None
        self._waiting: set[asyncio.Task[None]] = set()

    # -- starting --------------------------------------------------------------------------------------------------

    def begin(self) -> None:
        """Start every call that waits for nothing, all at one instant, so that they can share a timer."""
        # Reading the clock once gives the calls one deadline, and so one timer.
        self.now = self.scope.loop.time()
        plan = self.plan
        writers = [index for index, call in enumerate(plan.calls) if self._writes(call)]
        if plan.edges or plan.barriers or len(writers) > 1:
            self._order, self._settling = CallOrder(plan, writers), deque()
        order = self._order
        launch = self._launch if self._begun else self._start
        ready = self._ready = deque()
        if order is None:
            for index, call in enumerate(plan.calls):
                launch(index, call)
        else:
            for index in order.first():
                launch(index, plan.calls[index])
        # Calls that start later read the clock themselves.
        self.now = 0.0
        self._run_ready(ready)

    def entered(self, execution: Execution) -> None:
        if self._ready is not None:
            self._ready.append(execution)
        else:
            self._ready = deque((execution,))
            self._run_ready(self._ready)

    def _run_ready(self, ready: deque[Execution]) -> None:
        """Run the calls that were submitted together, and those that become ready meanwhile.

        Only when all of them are submitted, so that a call that ends at once changes nothing for the others: whether
        they repeat it, or whether there is a queue. One loop runs them, so that a chain of calls is no recursion.
        """
        while ready:
            ready.popleft().run(at_once=True)
        self._ready = None

    def _find(self, name: str) -> ToolSpec | None:
        """The member of a name: one of the calling agent's own, else one of the pool."""
        own = self._own_tools.get(name) if self._own_tools else None
        return own or self.scope.pool.find(name)

    def _writes(self, call: Call) -> bool:
        spec = self._find(call.name)
        return spec is not None and spec.writes

    def _launch(self, index: int, call: Call) -> None:
        """Start a call, or wait for one that was begun before this plan."""
        early = self._begun.get(call.id) if self._begun else None
        if early is None:
            self._start(index, call)
        else:
            early.future.add_done_callback(partial(self._caught_up, index, early))

    def _start(self, index: int, call: Call) -> None:
        """Validate and submit one call; what cannot be run is observed at once."""
        call_id = f"{self.prefix}{call.id}"
        if call.error is not None:
            error = ErrorInfo(call.error[0], error_messages.shorten(call.error[1]))
            self._refuse(index, call_id, call.name, Status.PARSE_ERR, error)
            return
        spec = self._find(call.name)
        if spec is None:
            error = error_messages.unknown_name(call.name, self._known_names())
            self._refuse(index, call_id, call.name, Status.PARSE_ERR, error)
            return
        bound = self.host.bindings.tool(spec)
        try:
            # Only a call with edges refers to results; elsewhere `${x}` is text.
            linked = call.id in self.plan.edges
            arguments, repairs = read_arguments(call, bound, self._known_results() if linked else None)
        except ArgumentsRefused as refused:
            self._refuse(index, call_id, bound.name, Status.PARSE_ERR, refused.error, refused.repairs)
            return
        scope = self.scope
        # Answering a write with an earlier result would leave it undone.
        repeatable = scope.duplicates == "run" or spec.writes
        if not repeatable and self._repeats(index, call_id, bound.name, arguments, repairs):
            return
        runtime = self.host.runtime
        limits = runtime.limits
        if self.parent is not None and self.parent.ending:
            self._refuse(index, call_id, bound.name, Status.EXEC_ERR, error_messages.cancelled())
            return
        if self.depth >= limits.depth:
            error = error_messages.denied(f"agents are nested deeper than {limits.depth}")
            self._refuse(index, call_id, bound.name, Status.EXEC_ERR, error)
            return
        gates = self.host.bindings.gates(bound, self.depth)
        # A call that finds room is not refused, however many others wait elsewhere.
        if runtime.waiting >= limits.queue and any(gate.is_full for gate in gates):
            self._refuse(index, call_id, bound.name, Status.EXEC_ERR, error_messages.overloaded(limits.queue))
            return
        if scope.guarding is not None and scope.guarding.of("call", spec):
            self._wait_for(self._guarded(index, bound, call_id, arguments, repairs))
        elif bound.spec.approval and needs_approval(bound, arguments):
            self._hold_back(index, call_id, bound, arguments, repairs)
        else:
            self._submit(index, call_id, bound, arguments, gates, repairs)

    def _submit(
        self,
        index: int,
        call_id: str,
        bound: BoundTool,
        arguments: Any,
        gates: tuple[Gate, ...],
        repairs: tuple[str, ...],
    ) -> None:
        started = MemberCall(self, bound, call_id, arguments, gates, index, repairs)
        self.calls.append(started)
        started.submit()

    def _wait_for(self, deciding: Coroutine[Any, Any, None]) -> None:
        """Let something be decided before a call begins."""
        task = self.scope.loop.create_task(deciding)
        self._waiting.add(task)
        task.add_done_callback(self._waiting.discard)
        if self.parent is not None:
            self.parent.adopt(task)

    # -- guards ----------------------------------------------------------------------------------------------------

    async def _guarded(
        self, index: int, bound: BoundTool, call_id: str, arguments: Any, repairs: tuple[str, ...]
    ) -> None:
        """Start a call when the guards let it."""
        guarding = self.scope.guarding
        assert guarding is not None
        try:
            allowed, denied = await guarding.judge_call(self, bound.spec, call_id, arguments)
            if denied is None and allowed is not arguments:
                arguments, repairs = read_arguments(Call(bound.name, allowed, "replaced"), bound, None)
        except ArgumentsRefused as refused:
            self._refuse(index, call_id, bound.name, Status.PARSE_ERR, refused.error, refused.repairs)
            return
        if self.cancelled:
            return
        if denied is not None:
            self._refuse(index, call_id, bound.name, Status.EXEC_ERR, denied, repairs)
        elif bound.spec.approval and needs_approval(bound, arguments):
            self._hold_back(index, call_id, bound, arguments, repairs)
        else:
            gates = self.host.bindings.gates(bound, self.depth)
            self._submit(index, call_id, bound, arguments, gates, repairs)

    # -- approval --------------------------------------------------------------------------------------------------

    def _hold_back(self, index: int, call_id: str, bound: BoundTool, arguments: Any, repairs: tuple[str, ...]) -> None:
        """Start a call when a person has approved it."""
        scope = self.scope
        decision = decided_before(scope, call_id)
        request = request_of(scope, call_id, bound, arguments)
        if decision is not None:
            record(scope, call_id, decision)
            self._follow(index, call_id, bound, arguments, repairs, decision)
        elif scope.approver is None:
            as_pending(scope, request)
            now = scope.now()
            error = pending_error(request)
            # Not recorded, for a resumed run makes the call again.
            self._settle(index, Observation(call_id, bound.name, Status.EXEC_ERR, None, error, started=now, ended=now))
        else:
            self._wait_for(self._ask_a_person(index, bound, arguments, repairs, request))

    async def _ask_a_person(
        self, index: int, bound: BoundTool, arguments: Any, repairs: tuple[str, ...], request: ApprovalRequest
    ) -> None:
        try:
            decision = await decide(self, request)
        except Exception as error:
            # Not on record, so it must not run; and the plan must not wait for ever.
            decision = Deny(f"its decision could not be recorded: {error}")
        if not self.cancelled:
            self._follow(index, request.call_id, bound, arguments, repairs, decision)

    def _follow(
        self, index: int, call_id: str, bound: BoundTool, arguments: Any, repairs: tuple[str, ...], decision: Decision
    ) -> None:
        """Do what was decided."""
        if isinstance(decision, Deny):
            error = error_messages.denied(decision.reason or "a person said no")
            self._refuse(index, call_id, bound.name, Status.EXEC_ERR, error, repairs)
            return
        if decision.arguments is not None:
            try:
                edited = Call(bound.name, dict(decision.arguments), "edited")
                arguments, repairs = read_arguments(edited, bound, None)
            except ArgumentsRefused as refused:
                self._refuse(index, call_id, bound.name, Status.PARSE_ERR, refused.error, refused.repairs)
                return
        gates = self.host.bindings.gates(bound, self.depth)
        self._submit(index, call_id, bound, arguments, gates, repairs)

    def stop_waiting(self) -> None:
        """Stop waiting for guards and decisions."""
        for task in list(self._waiting):
            task.cancel()

    def _known_names(self) -> list[str]:
        return [*self._own_tools, *(visible for visible, _ in self.scope.pool.actions)]

    def _repeats(self, index: int, call_id: str, name: str, arguments: Any, repairs: tuple[str, ...]) -> bool:
        """Whether the run has made this very call before, and wants it answered or refused here."""
        scope = self.scope
        first = scope.seen.setdefault((name, json.dumps(arguments, sort_keys=True)), call_id)
        if first == call_id:
            return False
        earlier = scope.results.get(first)
        if scope.duplicates == "reuse" and earlier is not None and earlier.ok:
            now = scope.now()
            answer = Observation(
                call_id,
                earlier.name,
                earlier.status,
                earlier.content,
                None,
                attempts=0,
                started=now,
                ended=now,
                repairs=repairs,
                replayed=True,
            )
            self._record(answer)
            self._settle(index, answer)
            return True
        # An earlier call that was refused before it ran is no reason to refuse this one.
        if scope.duplicates == "refuse" and (earlier is None or earlier.attempts > 0 or earlier.replayed):
            self._refuse(index, call_id, name, Status.EXEC_ERR, error_messages.duplicate(first))
            return True
        return False

    def _refuse(
        self, index: int, call_id: str, name: str, status: Status, error: ErrorInfo, repairs: tuple[str, ...] = ()
    ) -> None:
        self._settle(index, self._refused(call_id, name, status, error, repairs))

    def _refused(
        self, call_id: str, name: str, status: Status, error: ErrorInfo, repairs: tuple[str, ...] = ()
    ) -> Observation:
        """The recorded observation of a call that is not run."""
        now = self.scope.now()
        observation = Observation(call_id, name, status, None, error, started=now, ended=now, repairs=repairs)
        self._record(observation)
        return observation

    def _known_results(self) -> Mapping[str, Any]:
        """Results by id, for the calls that refer to them."""
        if self.scope.memory is None:
            return self._results
        return {call_id: present(value) for call_id, value in self._results.items()}

    def _record(self, observation: Observation) -> None:
        memory = self.scope.memory
        recalled = memory is not None and memory.finished(observation.call_id)
        self.scope.emit_result(CallEnded(observation, self.parent_id), recalled=recalled)
        self._note(observation)

    def _caught_up(self, index: int, early: PlanRun, future: asyncio.Future[list[Observation]]) -> None:
        """A call that was begun before this plan has its observation, which is recorded already."""
        if not future.cancelled():
            self._results.update(early._results)
            self._settle(index, future.result()[0])

    # -- ending ----------------------------------------------------------------------------------------------------

    def observed(self, index: int, observation: Observation, full: Any) -> None:
        self._observations[index] = observation
        if full is not None:
            # References take the whole content, not the part that the model is shown.
            self._results[self.plan.calls[index].id] = full
        self._note(observation)

    def _note(self, observation: Observation) -> None:
        self.scope.results[observation.call_id] = observation
        if self.depth == 0:
            self.scope.finished.append(observation)

    def delivered(self, index: int) -> None:
        observation = self._observations[index]
        assert observation is not None
        self._settle(index, observation)

    def _settle(self, index: int, observation: Observation) -> None:
        """Pass an observation on to the followers, without recursion: a chain of failures may be long."""
        settling = self._settling
        if settling is None:
            self._observations[index] = observation
            self._left -= 1
        else:
            settling.append((index, observation))
            if len(settling) > 1:
                return  # a follower that was refused at once: the loop below, further up the stack, settles it
            while settling:
                self._pass_on(settling)
                # In the queue until it has been passed on, so that a nested `_settle` leaves the work to this loop.
                settling.popleft()
        if self._left == 0 and not self.future.done():
            self.future.set_result([seen for seen in self._observations if seen is not None])
            # Calls know their plan: without this, only the garbage collector could free them.
            self.calls.clear()

    def _pass_on(self, settling: deque[tuple[int, Observation]]) -> None:
        """Start what waited for the first of these calls, or observe that it never can."""
        assert self._order is not None
        index, observation = settling[0]
        self._observations[index] = observation
        self._left -= 1
        call = self.plan.calls[index]
        if self.plan.edges:
            # `observed` has put the whole content there, if this is the shortened one.
            self._results.setdefault(call.id, observation.content)
        for follower, can_start in self._order.ended(index, observation.ok):
            next_call = self.plan.calls[follower]
            if not can_start:
                settling.append((follower, self._unreachable(next_call, call.id, observation)))
            elif not self.cancelled:
                self._launch(follower, next_call)

    def _unreachable(self, call: Call, before: str, observation: Observation) -> Observation:
        spec = self._find(call.name)
        name, call_id = spec.name if spec else call.name, f"{self.prefix}{call.id}"
        if is_pending(observation):
            assert observation.error is not None
            now = self.scope.now()
            return Observation(call_id, name, Status.EXEC_ERR, None, observation.error, started=now, ended=now)
        error = error_messages.dependency_failed(before, observation.status.value)
        return self._refused(call_id, name, Status.EXEC_ERR, error)
