"""The orchestrator: drives a strategy's machine with a model and the executor, from a question to an answer.

    question -> machine.step() -> Ask: the model  -> machine.on_reply(reply)
                               -> Act: the executor -> machine.observe(observations)
                               -> Done: the answer

This driver is the only place where model, executor, budget, time and trace meet. It decides nothing about the work:
what to ask and what to call is the machine's, whether a call may run is the executor's.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextvars import copy_context
from functools import partial
from pathlib import Path
from types import UnionType
from typing import TYPE_CHECKING, Any, Generic, Literal, cast

from concertino.core.approval import Approver, Decision
from concertino.core.attachment import Attachment
from concertino.core.budget import Budget
from concertino.core.errors import PoolError, UsageError
from concertino.core.events import Event, RunStarted, TextDelta
from concertino.core.model import Message, Model, Sampling
from concertino.executor import Duplicates, Executor
from concertino.executor.hooks import before_run
from concertino.executor.turns import NOT_BEGUN, Turns
from concertino.members.context import RunContext
from concertino.members.specs import ModelSpec
from concertino.pool.live import LivePool
from concertino.pool.pool import Pool
from concertino.strategies import Machine, Strategy, TaskContext
from concertino.strategies.base.frame import Frame, instructions_text
from concertino.strategies.built_in import ALONE, DEFAULT_STRATEGY, installed_strategy

from .action_space import ActionSpace, action_space
from .handle import RunHandle, forget_request
from .loop import Listener, RunLoop, RunSettings
from .options import answer_type_of, check_options, guards_of, own_hooks
from .preflight import check_attachments, check_budget, check_guards, check_listener, current_pool, path_of, trace_path
from .run import OutputT, Run, RunError
from .run_input import PLAIN_INPUT, Question, RunInput, read_question
from .setup import (
    ReopenedTrace,
    chosen_sampling,
    decisions_about,
    input_setup,
    is_over,
    recorded_budget,
    recorded_sampling,
    refuse_changes,
)
from .shared_model import leader
from .step_record import StepRecord
from .stepped import SteppedRun

if TYPE_CHECKING:
    from concertino.core.usage import Cost
    from concertino.executor.guarding import Guarding
    from concertino.members.guards import Guard
    from concertino.pool.orchestrator_agent import Instructions, OrchestratorAgent
    from concertino.traces import Durability, JournalSink, Trace, TraceMemory

    from .session import Session, SessionHold

    History = Run | Session | SessionHold | Sequence[Message | Mapping[str, Any]] | None
    """Earlier turns of a conversation."""

logger = logging.getLogger("concertino")
_NOTHING_TO_LEAD = "the pool holds no tool and no agent, so there is nothing to orchestrate; "
_OFFER = 'offer its models as agents with pool.offering("*"), or `offer = ["*"]` in the pool file'
_OR_ALONE = ", or choose no strategy: then the model answers alone"
NO_POOL = Pool.of()
"""Nothing to call."""


Arrange = Callable[[str, Pool], Pool]
"""From a question and a pool to the pool that a run gets: fewer members, or another order."""


class Orchestrator(Generic[OutputT]):
    """Answers questions over a pool.

    Args:
        model: who leads: a role or name in the pool, `provider/name`, a `ModelSpec`, or a `Model` object.
        strategy: the paradigm, as an object or a name; by default rounds of parallel calls, or, where the pool has
            nothing to call, the model's own answer.
        executor: shared by several runs; without one, each run has its own.
        sampling: how the orchestrator and the summariser sample.
        duplicates: what to do with a call that repeats an earlier one of the run.
        eager: start a call when its text is complete, while the model still writes. The model is then asked for a
            stream. Calls that write, and strategies whose plan is only valid as a whole, wait for the finished text.
        before: this orchestrator's own hooks, with the arguments of `concertino_before_call`; asked before those of
            plugins.
        after: as `before`, with the arguments of `concertino_after_call`; told after those of plugins.
        approve: decides about calls whose member needs approval: a function of an `ApprovalRequest`, which may be
            asynchronous and take any time. Without one, such a run is suspended and resumed with `decisions`.
        guards: check the question, calls, results and the answer: guards made with `@concertino.guard`, and names of
            guards that plugins publish, such as `acme/no-secrets`. They are asked in this order.
        instructions: what the model is told beside its task, at the end of every system message: a text, or a function
            of the run's `RunContext` that returns one.
        answer_type: what an answer must be: a type that pydantic can validate (a model, dataclass, TypedDict, union,
            list), or a JSON schema. `run.output` is then such a value, never an unvalidated one. A type checker knows a
            class from here; a union is written out: `Orchestrator[Bill | Refund](..., answer_type=Bill | Refund)`.
        arrange: makes the pool of each run from its question and the pool that it was given, such as a `Shortlist`. A
            run that is resumed keeps its members, their order and their aliases.
    """

    def __init__(
        self,
        model: str | Model | ModelSpec = "orchestrator",
        strategy: Strategy | str | None = None,
        *,
        executor: Executor | None = None,
        sampling: Sampling | None = None,
        duplicates: Duplicates = "run",
        eager: bool = False,
        before: Sequence[Callable[..., Any]] = (),
        after: Sequence[Callable[..., Any]] = (),
        approve: Approver | None = None,
        guards: Sequence[Guard | str] = (),
        instructions: Instructions = None,
        answer_type: type[OutputT] | UnionType | Mapping[str, Any] | None = None,
        arrange: Arrange | None = None,
    ) -> None:
        if not isinstance(model, (str, Model, ModelSpec)):
            raise UsageError(f"model={model!r}: expected a name or role in the pool, a ModelSpec, or a Model")
        if not isinstance(strategy, (str, Strategy)) and strategy is not None:
            raise UsageError(f"strategy={strategy!r}: expected a Strategy or the name of one")
        check_options(executor=executor, sampling=sampling, duplicates=duplicates, before=before, after=after)
        check_options(approve=approve, instructions=instructions, arrange=arrange)
        self.model = model
        self._leader = leader(model) if isinstance(model, Model) else model
        self._chosen = strategy is not None
        strategy = DEFAULT_STRATEGY if strategy is None else strategy
        self.strategy = installed_strategy(strategy)() if isinstance(strategy, str) else strategy
        self.executor = executor
        self.sampling = sampling or Sampling()
        self.duplicates: Duplicates = duplicates
        self.eager = eager
        self.before = own_hooks("concertino_before_call", before)
        self.after = own_hooks("concertino_after_call", after)
        self.approve = approve
        self.guards = guards_of(guards)
        self.instructions = instructions
        self.answer_type = answer_type_of(answer_type)
        self.arrange = arrange

    async def run(
        self,
        question: Question,
        *,
        pool: Pool | LivePool = NO_POOL,
        history: History = None,
        deps: Any = None,
        budget: Budget | None = None,
        trace: str | Path | None = None,
        durability: Durability = "process",
        run_id: str = "",
        on_event: Listener | None = None,
    ) -> Run[OutputT]:
        """Answer a question.

        Args:
            question: what to answer: a text, or a list of texts and attachments (`Image`, `Audio`, `File`).
            pool: what may be called; of a `LivePool`, what is current now, to the end of the run. Without one, or if it
                holds nothing to call, the model answers alone.
            history: earlier turns of a conversation: a run, a list of messages, or a `Session`, to which this run adds
                its own turn; its trace then lies beside the session.
            deps: what tools, agents, instructions and guards get as `ctx.deps`; never shown to a model.
            budget: how much it may use; without one only the strategy's rounds are limited.
            trace: a file or folder for the trace; without one it stays in memory.
            durability: what a finished call survives.
            run_id: names the run, and its trace in a folder; by default it is made from the time.
            on_event: called with every event as it happens, on the event loop.

        Returns:
            The run, also without an answer; `run.stop` says why it ended.

        Raises:
            UsageError: the question is empty, the pool lacks the model, or no call fits the budget. Nothing has run.
        """
        held = await _held(history)
        if (turn := Turns.of(asyncio.get_running_loop()).ask(NOT_BEGUN)) is not None:
            await turn
        return await self.start(
            question,
            pool=pool,
            history=held,
            deps=deps,
            budget=budget,
            trace=trace,
            durability=durability,
            run_id=run_id,
            on_event=on_event,
        )

    def run_sync(self, question: Question, **options: Any) -> Run[OutputT]:
        """`run` for programs that do not wait with `await`; where a loop runs already, as in a notebook, in a thread.

        An executor belongs to one event loop, so a shared one is refused where a loop runs already.
        """
        return self._waited_for("run", question, options)

    def resume_sync(self, path: str | Path, **options: Any) -> Run[OutputT]:
        """`resume` for programs that do not wait with `await`; see `run_sync`."""
        return self._waited_for("resume", path, options)

    def _waited_for(self, method: Literal["run", "resume"], subject: Any, options: Mapping[str, Any]) -> Run[OutputT]:
        coroutine = partial(getattr(self, method), subject, **options)
        if not _in_event_loop():
            return cast("Run[OutputT]", asyncio.run(coroutine()))
        if self.executor is not None:
            raise UsageError(
                f"{method}_sync in a running event loop cannot use its shared executor; write "
                f"`await leader.{method}(...)`"
            )
        from concurrent.futures import ThreadPoolExecutor

        with ThreadPoolExecutor(1, f"concertino-{method}-sync") as thread:
            # In the caller's context, so that its context variables reach the tools.
            ended = thread.submit(copy_context().run, asyncio.run, coroutine()).result()
            return cast("Run[OutputT]", ended)

    def start(
        self,
        question: Question,
        *,
        pool: Pool | LivePool = NO_POOL,
        history: History = None,
        deps: Any = None,
        stream_text: bool = False,
        budget: Budget | None = None,
        trace: str | Path | None = None,
        durability: Durability = "process",
        run_id: str = "",
        on_event: Listener | None = None,
    ) -> RunHandle[OutputT]:
        """Begin a run and return at once; await the handle for the `Run`, or cancel it and keep what was done.

        Args:
            stream_text: send `TextDelta` events to `on_event`; models are then asked for streams.
        """
        hold = _hold_of(history)
        try:
            if hold is not None:
                history, trace = hold.session, hold.session.store.folder if trace is None else trace
                budget = hold.session.left(budget or Budget())
            asked, attached = read_question(question)
            budget = budget or Budget()
            pool = self._with_model(self._arranged(asked, current_pool(pool, budget)))
            strategy = self._following(pool)
            run_id = run_id or new_run_id()
            target = None if trace is None else trace_path(trace, run_id)
            check_listener(on_event)
            check_guards(self.guards, pool)
            check_budget(pool, budget)
            given = self._given(strategy, pool, RunContext(run_id, asked, deps), history, stream_text, attached)
            check_attachments(pool, given.attachments)
            space = action_space(pool, strategy, asked)
            machine = self._begin(strategy, asked, space, budget, self.sampling)
            setup = {**self._setup(strategy, pool, space, budget), **input_setup(given), "durability": durability}
            # The trace file comes last: a run that is refused above leaves no file.
            sink, context = None, copy_context()
            if target is not None:
                from concertino.traces import JournalSink
                from concertino.traces.trace import header

                if noted := context.run(before_run, pool, run_id, target):
                    setup["noted"] = noted
                sink = JournalSink.create(target, header(run_id), durability)
            begun = RunStarted(run_id, asked, setup, round(time.time(), 3))
            settings, rounds = self._settings(), _rounds(strategy, budget)
            loop = RunLoop(settings, machine, pool, budget, rounds, begun, sink, None, on_event, 0.0, given)
            handle: RunHandle[OutputT] = context.run(RunHandle, loop)
        except BaseException:
            if hold is not None:
                hold.release()
            raise
        if hold is not None:
            handle.ends_turn_of(hold)
        return handle

    def stepped(
        self,
        question: Question,
        *,
        pool: Pool | LivePool = NO_POOL,
        history: History = None,
        deps: Any = None,
        budget: Budget | None = None,
        run_id: str = "",
        trace: str | Path | None = None,
    ) -> SteppedRun:
        """Begin a run that the caller drives, step by step; it may be forked. Needs a given executor, which runs share.

        Args:
            trace: a file for the trace. A run whose trace is there already begins anew with all that it did: finished
                calls are not repeated, and `SteppedRun.recorded` has the replies.

        Raises:
            UsageError: this orchestrator has no executor, or as `run`.
            TraceError: the trace is in use, or pool or strategy have changed (says what).
        """
        if self.guards:
            raise UsageError("stepped runs take no guards; their holder sees every question, call and answer itself")
        if self.executor is None:
            raise UsageError("stepped runs share an executor: Orchestrator(..., executor=Executor())")
        asked, attached = read_question(question)
        budget = budget or Budget()
        pool = self._with_model(self._arranged(asked, current_pool(pool, budget)))
        strategy = self._following(pool)
        check_budget(pool, budget)
        run_id = run_id or new_run_id()
        given = self._given(strategy, pool, RunContext(run_id, asked, deps), history, False, attached)
        check_attachments(pool, given.attachments)
        space = action_space(pool, strategy, asked)
        machine = self._begin(strategy, asked, space, budget, self.sampling)
        setup = {**self._setup(strategy, pool, space, budget), **input_setup(given)}
        begun = RunStarted(run_id, asked, setup, round(time.time(), 3))
        record = StepRecord() if trace is None else StepRecord.of_file(path_of("trace", trace), begun)
        settings, rounds, past = self._settings(), _rounds(strategy, budget), (record.sink, record.memory)
        drive = RunLoop(settings, machine, pool, budget, rounds, begun, *past, elapsed=record.elapsed, given=given)
        return SteppedRun(drive, self.executor)

    def as_agent(
        self,
        name: str,
        description: str,
        *,
        only: Sequence[str] = (),
        timeout: float | None = 600.0,
        cost: Cost | None = None,
    ) -> OrchestratorAgent:
        """This orchestrator as a member of a pool, which another one may call with a `task`.

        Everything that it does is part of that call: it spends from the caller's budget. Its model must be a role or
        a name, for the pool at hand binds it. Orchestrators that call each other end at `Limits.depth`.

        Args:
            only: patterns of the members that it may call; all but itself by default.
            timeout: seconds for one call, the whole run in it included.
            cost: what a call costs in addition to what it spends; one unit by default.

        Raises:
            UsageError: its model is an object, not a name.
        """
        from concertino.pool.orchestrator_agent import orchestrator_agent

        if self.guards:
            raise UsageError(
                f"guards of an agent are not asked ({self.guards[0].name!r}); give them to the orchestrator that leads "
                "the run: they look at every call and result, those of its agents too"
            )
        if self.answer_type is not None:
            raise UsageError(
                "answer_type: an agent answers in text, which the orchestrator that calls it reads; say in "
                "instructions what the text must hold, or give answer_type to the orchestrator that leads the run"
            )
        if not isinstance(self.model, str):
            raise UsageError(f"model={self.model!r}: as an agent, an orchestrator needs a role or name of the pool")
        return orchestrator_agent(
            name,
            description,
            self.strategy,
            model=self.model,
            only=only,
            sampling=self.sampling,
            timeout=timeout,
            cost=cost,
            instructions=self.instructions,
        )

    async def stream_answer(self, question: Question, **options: Any) -> AsyncIterator[str]:
        """Answer a question, yielding the answer's text as it is written. Options as for `run`.

        The pieces add up to `run.answer`; `stream` gives the run and its events, too. An answer with a type comes as
        one piece, once it is valid.

        Raises:
            RunError: the run ended without an answer, or with another one than the text that was yielded: the model was
                asked again, after a broken connection or by a guard.
        """
        given, said, request = "", "", ("", 0)
        async for event in self.stream(question, **options):
            if isinstance(event, Run):
                answer = event.require_answer()
                if not answer.startswith(given):
                    raise RunError("the answer was written again, and is another one than was streamed", event)
                if answer != given:
                    yield answer[len(given) :]
            elif isinstance(event, TextDelta) and event.kind == "answer" and self.answer_type is None:
                if request != (event.call_id, event.attempt):
                    said, request = "", (event.call_id, event.attempt)
                said += event.text
                # Text that is written again is yielded from where it goes on.
                if len(said) > len(given) and said.startswith(given):
                    yield said[len(given) :]
                    given = said

    async def stream(
        self, question: Question, *, stream_text: bool = True, **options: Any
    ) -> AsyncIterator[Event | Run[OutputT]]:
        """Answer a question, yielding every event as it happens and the `Run` at the end. Options as for `run`.

        Text comes as `TextDelta` events while it is written: thoughts, the text of replies, and the answer alone.
        Leaving the loop early cancels the run.

        Args:
            stream_text: without, models are not asked for streams, and there are no `TextDelta` events.
        """
        queue: asyncio.Queue[Event | None] = asyncio.Queue()
        if "history" in options:
            options["history"] = await _held(options["history"])
        handle = self.start(question, on_event=queue.put_nowait, stream_text=stream_text, **options)
        handle.task.add_done_callback(lambda task: queue.put_nowait(None))
        try:
            while (event := await queue.get()) is not None:
                yield event
            yield await handle
        finally:
            await handle.cancel()

    async def resume(
        self,
        path: str | Path,
        *,
        pool: Pool | LivePool = NO_POOL,
        deps: Any = None,
        decisions: Mapping[str, Decision | bool] | None = None,
        on_event: Listener | None = None,
        finished: Literal["refuse", "recall"] = "refuse",
    ) -> Run[OutputT]:
        """Resume an interrupted run: finished calls are not repeated, calls in doubt are asked under the same key.

        Args:
            deps: as for `run`; a trace does not keep them.
            decisions: about calls of a suspended run, by the id of the call (`Run.pending`).
            finished: what to do with a run that has ended: refuse it, or go through it again from its trace alone,
                which is not written to and costs nothing.

        Raises:
            TraceError: the run is finished, the file is in use or damaged at its head, or pool or strategy have
                changed (says what).
        """
        path = path_of("path", path)
        if finished == "recall":
            from concertino.traces import TraceMemory
            from concertino.traces.records import last_record

            last = last_record(path)
            if last is not None and is_over(last):
                known, memory = TraceMemory.of_file(path)
                if known.end is not None:  # else it is damaged before its end
                    led = self._with_model(current_pool(pool, Budget()))
                    decisions_about(known, decisions or {})
                    run = await self._resumed(known, memory, led, None, on_event, deps, {})
                    run.path = path
                    return run
        return await (await self.reopen(path, pool=pool, deps=deps, decisions=decisions, on_event=on_event))

    async def reopen(
        self,
        path: str | Path,
        *,
        pool: Pool | LivePool = NO_POOL,
        deps: Any = None,
        decisions: Mapping[str, Decision | bool] | None = None,
        stream_text: bool = False,
        on_event: Listener | None = None,
    ) -> RunHandle[OutputT]:
        """As `resume`, and return as soon as the run is under way; await the handle for the `Run`.

        Args:
            stream_text: as for `start`.
        """
        from concertino.traces import JournalSink
        from concertino.traces.journal import Journal
        from concertino.traces.records import first_record

        target = path_of("path", path)
        first = first_record(target)
        durability: Durability = first.get("setup", {}).get("durability", "process")
        pool = self._with_model(current_pool(pool, Budget()))
        context = copy_context()
        context.run(before_run, pool, str(first["run"]), target)
        # Read once, and under the lock, when no other process can write to it.
        opened = ReopenedTrace(target, decisions or {})
        journal = Journal.reopen(target, opened.read, durability=durability)
        known, chosen = opened.trace, opened.chosen
        with contextlib.ExitStack() as undo:
            # Until the run owns the journal, an error must close it, or the file stays locked.
            undo.callback(journal.close)
            forget_request(target)
            hold = None
            if name := known.setup.get("session"):
                from .session import Session

                hold = await Session(name, target.parent).hold()
                undo.callback(hold.release)
            sink = JournalSink(journal)
            begin = partial(self._resumed, known, opened.memory, pool, sink, on_event, deps, chosen, stream_text)
            going = context.run(begin)
            if hold is not None:
                going.ends_turn_of(hold)
            undo.pop_all()
        # A torn last line is what a kill leaves, and no news; any other damage is.
        if journal.damage is not None and not journal.damage.torn:
            logger.warning("%s was damaged: %s; the part after the damage is repeated", target, journal.damage.reason)
        return going

    def _resumed(
        self,
        known: Trace,
        memory: TraceMemory,
        pool: Pool,
        sink: JournalSink | None,
        on_event: Listener | None,
        deps: Any,
        decisions: Mapping[str, Decision],
        streams: bool = False,
    ) -> RunHandle[OutputT]:
        """A run that begins with what a trace knows."""
        budget = recorded_budget(known)
        if known.setup.get("arranged"):
            # As it was then: what is known of the members may have changed since.
            here = {spec.name for _, spec in pool.actions}
            members = [name for name in known.setup.get("members", {}) if name in here]
            pool = pool.arranged(members).alias(known.setup.get("aliases", {}))
        history = [Message.from_json(item) for item in known.setup.get("history", ())]
        # Instructions as they were then: a function might say something else today.
        strategy = self._following(pool)
        frame = Frame.of(strategy, known.setup.get("instructions", ""), history, self._answer_schema, pool.functions)
        facts = known.facts
        given = RunInput(
            frame,
            self.answer_type,
            deps,
            streams,
            self.approve,
            decisions=decisions,
            session=known.setup.get("session", ""),
            attachments=tuple(known.attachments()),
            spared=facts.spared,
        )
        # What was found then: the pool may have learned since.
        space = action_space(pool, strategy, known.question, known.setup.get("found"))
        refuse_changes(known, {**self._setup(strategy, pool, space, budget), **input_setup(given)})
        machine = self._begin(strategy, known.question, space, budget, recorded_sampling(known))
        begun = RunStarted(known.run_id, known.question, known.setup, known.began)
        settings, rounds, elapsed = self._settings(), _rounds(strategy, budget), facts.seconds
        return RunHandle(
            RunLoop(settings, machine, pool, budget, rounds, begun, sink, memory, on_event, elapsed, given)
        )

    # -- preparation -----------------------------------------------------------------------------------------------

    def _following(self, pool: Pool) -> Strategy:
        """The strategy of a run over a pool: one that nobody chose gives way where there is nothing to call."""
        if self._chosen or pool.actions:
            return self.strategy
        return installed_strategy(ALONE)()

    def _with_model(self, pool: Pool) -> Pool:
        """The pool with the orchestrator's model bound to its role."""
        if not pool.actions and self._following(pool).needs_members:
            if isinstance(self._leader, str):
                pool.model(self._leader)  # a wrong name is the more helpful error
            raise PoolError(_NOTHING_TO_LEAD + (_OFFER if pool.models else "add members") + _OR_ALONE)
        searched = pool.searched
        return (pool if searched is None else searched.pool).led_by(self._leader)

    def _arranged(self, question: str, pool: Pool) -> Pool:
        """The pool of a run on a question."""
        if self.arrange is None:
            return pool
        arranged = self.arrange(question, pool)
        if not isinstance(arranged, Pool):
            raise UsageError(
                f"arrange={self.arrange!r} returned {arranged!r}; expected a Pool, such as pool.arranged(names)"
            )
        return arranged

    def _begin(
        self, strategy: Strategy, question: str, space: ActionSpace, budget: Budget, sampling: Sampling
    ) -> Machine:
        """The run's machine; what the strategy cannot do with this pool is said before anything has run."""
        remaining = budget.whole(_rounds(strategy, budget))
        context = TaskContext(question, space.functions, budget.rounds, budget.parallel, remaining, sampling)
        return strategy.begin(context)

    @property
    def _answer_schema(self) -> dict[str, Any] | None:
        return None if self.answer_type is None else self.answer_type.schema

    def _given(
        self,
        strategy: Strategy,
        pool: Pool,
        context: RunContext[Any],
        history: History,
        streams: bool,
        attached: tuple[Attachment, ...],
    ) -> RunInput:
        """What a run is given beside its question."""
        if self.instructions is None and history is None and self.answer_type is None:
            if context.deps is None and not streams and self.approve is None and not attached:
                return PLAIN_INPUT
            return RunInput(deps=context.deps, streams=streams, approver=self.approve, attachments=attached)
        # Imported here: a run that is given nothing does not pay for what reads it.
        from .history import read_history
        from .session import Session

        session = history.name if isinstance(history, Session) else ""
        instructions = instructions_text(self.instructions, context)
        messages, earlier = read_history(history)
        frame = Frame.of(strategy, instructions, messages, self._answer_schema, pool.functions)
        attached = (*earlier, *attached)
        return RunInput(
            frame, self.answer_type, context.deps, streams, self.approve, session=session, attachments=attached
        )

    def _settings(self) -> RunSettings:
        """What the runs of this orchestrator have in common."""
        return RunSettings(
            self.executor,
            self.sampling,
            self.duplicates,
            self.eager,
            self.before,
            self.after,
            self._with_model,
            self._begin_again,
            self._guarding,
        )

    def _begin_again(self, question: str, pool: Pool, budget: Budget, found: Sequence[str] | None) -> Machine:
        """The machine of a run whose question a guard has changed."""
        strategy = self._following(pool)
        space = action_space(pool, strategy, question, found)
        return self._begin(strategy, question, space, budget, self.sampling)

    @property
    def _guarding(self) -> Guarding | None:
        if not self.guards:
            return None
        from concertino.executor.guarding import Guarding

        return Guarding(self.guards)

    def _setup(self, strategy: Strategy, pool: Pool, space: ActionSpace, budget: Budget) -> dict[str, Any]:
        # Recorded for `replay`, which has no pool to make them from.
        tools = {"tools": space.functions} if strategy.reads_tools else {}
        return {
            **tools,
            **({"found": space.found} if space.found is not None else {}),
            "strategy": strategy.to_json(),
            "pool": pool.id,
            "members": pool.fingerprints,
            "roles": pool.roles,
            **({"aliases": aliases} if (aliases := pool.aliases) else {}),
            "budget": budget.to_json(),
            "duplicates": self.duplicates,
            **({"eager": True} if self.eager else {}),
            **({"guards": [f"{each.stage} {each.name}" for each in self.guards]} if self.guards else {}),
            **({"arranged": True} if self.arrange is not None else {}),
            **({"sampling": chosen_sampling(self.sampling)} if self.sampling != Sampling() else {}),
        }


def _rounds(strategy: Strategy, budget: Budget) -> int:
    """Rounds that a run has at most."""
    limits = [budget.rounds, getattr(strategy, "max_rounds", None)]
    return min((limit for limit in limits if limit is not None), default=0)


def _hold_of(history: Any) -> SessionHold | None:
    """The hold on a session that a run is a turn of; taken at once, if the caller does not have it."""
    if history is None:
        return None
    from .session import Session, SessionHold

    if isinstance(history, Session):
        return SessionHold(history)
    return history if isinstance(history, SessionHold) else None


async def _held(history: Any) -> Any:
    """A session's hold in place of the session, as soon as no other run works on it; anything else as it is."""
    if history is None:
        return None
    from .session import Session

    return await history.hold() if isinstance(history, Session) else history


def _in_event_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def new_run_id() -> str:
    """Sortable by time, unique: `20260131-142501-3f9a1c07b2d4`."""
    # A server begins a thousand runs in a second: of so many, two had the same six digits every minute.
    return f"{time.strftime('%Y%m%d-%H%M%S', time.gmtime())}-{os.urandom(6).hex()}"
