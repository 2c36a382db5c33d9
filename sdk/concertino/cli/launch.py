"""From the options of `concertino run` to a run: a fresh one, or the rest of one from its trace."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from concertino.core.errors import UsageError

from .options import PoolChoice, check_leader, make_strategy, warn_about_broken_plugins
from .question import read_schema, read_text, with_attachments
from .recordings import open_recording, recorded
from .show import Begin, Decisions, Display, show_run

if TYPE_CHECKING:
    from concertino.core.budget import Budget
    from concertino.core.events import Event
    from concertino.executor import Duplicates
    from concertino.pool.pool import Pool
    from concertino.runs.orchestrator import Orchestrator
    from concertino.runs.run import Run
    from concertino.runs.run_input import Question
    from concertino.runs.session import Session
    from concertino.strategies import Strategy
    from concertino.traces import Durability


@dataclass(frozen=True)
class Order:
    """What `concertino run` was asked for, beside the question. The fields are its options."""

    choice: PoolChoice
    model: str | None = None
    strategy: str | None = None
    settings: tuple[str, ...] = ()
    instructions: str | None = None
    answer_schema: Path | None = None
    attach: tuple[str, ...] = ()
    session: str | None = None
    budget: str = ""
    duplicates: str = "run"
    eager: bool = False
    shortlist: str | None = None
    guards: tuple[str, ...] = ()
    folder: Path | None = None
    no_trace: bool = False
    durability: str = "process"
    record: Path | None = None
    replay: Path | None = None


def start(question: str, display: Display, order: Order) -> None:
    """Run it and show it.

    Raises:
        UsageError: something about the order cannot be; nothing has run.
    """
    from concertino.core.budget import Budget

    if not question.strip():
        raise UsageError("the question is empty; give a text, or `-` with a text on stdin")
    limits = Budget.parse(order.budget)
    # Chosen only where it was asked for: a model that has nothing to call then answers alone, as in Python.
    strategy = make_strategy(order.strategy, order.settings) if order.strategy or order.settings else None
    session = _session(order)
    recording = open_recording(order.record, order.replay)
    pool = order.choice.open(**({"orchestrator": order.model} if order.model is not None else {}))
    check_leader(pool, asked=order.replay is None)
    if not display.for_programs:
        warn_about_broken_plugins()
    if recording is not None:
        pool = recorded(pool, recording)
    orchestrator = _orchestrator(strategy, order, recording.hooks if recording else {})
    begin, path = fresh(
        orchestrator,
        with_attachments(question, order.attach),
        pool,
        limits,
        order.folder,
        keep=not order.no_trace,
        durability=order.durability,
        session=session,
        stream=display.streams,
    )
    more = {"session": f"{session.name}, turn {len(session.turns) + 1}"} if session else {}
    display = replace(display, typed=order.answer_schema is not None)
    again = resuming(orchestrator, path, pool, stream=display.streams)
    show_run(begin, path, display, resume_with=order.choice, again=again, more=more)
    if recording is not None:
        recording.assert_complete()


def _session(order: Order) -> Session | None:
    if order.session is None:
        return None
    if order.no_trace:
        raise UsageError("--session keeps its runs; leave out --no-trace")
    from concertino.runs.session import Session
    from concertino.traces import TraceStore

    # A person at a terminal would take the waiting for another run for a hang.
    return Session(order.session, TraceStore(order.folder), busy="refuse")


def _orchestrator(strategy: Strategy | None, order: Order, hooks: dict[str, Any]) -> Orchestrator:
    from concertino.pool.shortlist import Shortlist
    from concertino.runs.orchestrator import Orchestrator

    return Orchestrator(
        "orchestrator",
        strategy,
        duplicates=cast("Duplicates", order.duplicates),
        eager=order.eager,
        arrange=Shortlist.parse(order.shortlist) if order.shortlist else None,
        instructions=read_text(order.instructions, "--instructions") if order.instructions else None,
        answer_type=read_schema(order.answer_schema) if order.answer_schema else None,
        guards=_guards(order.guards),
        **hooks,
    )


def _guards(names: tuple[str, ...]) -> tuple[str, ...]:
    """Names of guards of plugins; one without its provider is refused with those that may be meant."""
    short = next((name for name in names if "/" not in name), None)
    if short is not None:
        from concertino.plugins import default_manager
        from concertino.schema import suggestion

        known = list(default_manager().guards())
        same = [name for name in known if name.rpartition("/")[2] == short]
        meant = f"did you mean {' or '.join(same)}?" if same else suggestion(short, known)
        raise UsageError(f"--guard {short!r}: expected provider/name; {meant}")
    return names


def fresh(
    orchestrator: Orchestrator,
    question: Question,
    pool: Pool,
    budget: Budget | None,
    folder: Path | None,
    *,
    keep: bool = True,
    durability: str = "process",
    session: Session | None = None,
    stream: bool = False,
) -> tuple[Begin, Path | None]:
    """What begins a new run, and where its trace will be."""
    from concertino.runs.orchestrator import new_run_id
    from concertino.traces import TraceStore

    # Made here, because the path of the trace has to be known before the run, for the message after Ctrl-C.
    run_id = new_run_id()
    path = TraceStore(folder).path_for(run_id) if keep else None

    def begin(listen: Callable[[Event], None]) -> Awaitable[Run]:
        return orchestrator.start(
            question,
            pool=pool,
            history=session,
            stream_text=stream,
            budget=budget,
            trace=path,
            durability=cast("Durability", durability),
            run_id=run_id,
            on_event=listen,
        )

    return begin, path


def resuming(
    orchestrator: Orchestrator, path: Path | None, pool: Pool, *, stream: bool
) -> Callable[[Decisions], Begin] | None:
    """How a suspended run is resumed; None for a run without a trace.

    Args:
        stream: whether models are asked for text as it is written.
    """
    if path is None:
        return None

    def with_decisions(decisions: Decisions) -> Begin:
        async def begin(listen: Callable[[Event], None]) -> Run:
            return await (
                await orchestrator.reopen(path, pool=pool, stream_text=stream, on_event=listen, decisions=decisions)
            )

        return begin

    return with_decisions


# -- resuming ----------------------------------------------------------------------------------------------------------


def resume(name: str, choice: PoolChoice, folder: Path | None, display: Display, decisions: Decisions) -> None:
    """Go on with a run from its trace, and show it.

    Raises:
        TraceError: there is no such trace, or it is finished or damaged.
    """
    from concertino.runs.orchestrator import Orchestrator
    from concertino.runs.setup import recorded_strategy
    from concertino.traces import TraceStore
    from concertino.traces.records import first_record

    path = TraceStore(folder).find(name)
    first = first_record(path)
    setup = first.get("setup", {})
    strategy = recorded_strategy(first["run"], setup)
    pool = choice.open() if choice else _pool_of(setup)
    pool = pool.bind(**setup.get("roles", {}))
    orchestrator = Orchestrator(
        "orchestrator",
        strategy,
        duplicates=setup.get("duplicates", "run"),
        eager=setup.get("eager", False),
        answer_type=setup.get("answer_schema"),
        guards=_guards_of(setup),
    )
    display = replace(display, typed="answer_schema" in setup)
    again = resuming(orchestrator, path, pool, stream=display.streams)
    assert again is not None
    more = {"session": setup["session"]} if "session" in setup else {}
    show_run(again(decisions), path, display, resume_with=choice, again=again, more=more)


def _guards_of(setup: dict[str, Any]) -> list[str]:
    """The names of a run's guards.

    Raises:
        UsageError: one was not published by a plugin.
    """
    names = [text.partition(" ")[2] for text in setup.get("guards", ())]
    if own := next((name for name in names if "/" not in name), ""):
        raise UsageError(
            f"the run is checked by the guard {own!r} of the program that began it; resume it there, with "
            "Orchestrator.resume"
        )
    return names


def decisions_of(approve: tuple[str, ...], deny: tuple[str, ...]) -> Decisions:
    """The decisions of `--approve` and `--deny`.

    Raises:
        UsageError: two about one call.
    """
    from concertino.core.approval import Approve, Deny

    refused = {call_id: Deny(reason) for call_id, _, reason in (text.partition("=") for text in deny)}
    if twice := sorted(set(approve) & set(refused)):
        raise UsageError(f"{twice[0]} is approved and denied; choose one")
    return {**{call_id: Approve() for call_id in approve}, **refused}


def _pool_of(setup: dict[str, Any]) -> Pool:
    """What a run was begun with: the pool of the settings, if its members are those of the run, else installed ones."""
    from concertino.plugins import default_manager
    from concertino.pool.pool import Pool

    if default_manager().settings.pool is not None:
        pool = PoolChoice().open()
        if {member.name for member in pool.members} <= set(setup.get("members", {})):
            return pool
    return Pool.installed(*setup.get("members", {}))
