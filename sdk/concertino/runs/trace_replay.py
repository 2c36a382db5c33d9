"""Replay: a strategy driven from a trace, without any model or tool."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from concertino.core.budget import Budget
from concertino.core.errors import TraceError
from concertino.core.model import Reply
from concertino.strategies import Ask, Done, Strategy, TaskContext
from concertino.strategies.built_in import installed_strategy
from concertino.traces import Trace

from .loop import UNHELD, RequestIds
from .setup import recorded_sampling


def replay(trace: Trace | str | Path, strategy: Strategy | None = None) -> Done:
    """Drive a machine from a trace, without any model or tool: the same texts and observations give the same end.

    Args:
        trace: of the run, or its path.
        strategy: instead of the recorded one, to see how another reader or another limit would have continued.

    Raises:
        TraceError: the machine wants something that the trace does not have (says what and where).
    """
    trace = trace if isinstance(trace, Trace) else Trace.load(trace)
    setup = trace.setup
    if strategy is None:
        strategy = installed_strategy(setup["strategy"]["name"]).from_json(setup["strategy"])
    budget = Budget(**setup.get("budget", {}))
    tools, sampling = setup.get("tools", ()), recorded_sampling(trace)
    machine = strategy.begin(TaskContext(trace.question, tools, budget.rounds, budget.parallel, sampling=sampling))
    # A router's further tries are recorded as `ask.1~2`, one without a schema as `ask.1.unheld`: replies to `ask.1`.
    replies = {
        record["id"].partition("~")[0].removesuffix(UNHELD): record["reply"] for record in trace.of_kind("reply")
    }
    request_ids = RequestIds()
    results = {seen.call_id: seen for seen in trace.observations()}
    while True:
        step = machine.step()
        if isinstance(step, Done):
            return _as_corrected(step, trace, replies)
        if isinstance(step, Ask):
            reply = replies.get(request_ids.name(step))
            # As the run did, so that requests get the numbers that they had.
            request_ids.prefetch(machine)
            if reply is None:
                end = trace.records[-1]
                if end["t"] == "end":
                    return Done(end["answer"], end["stop"], end["detail"])
                raise TraceError(
                    f"trace {trace.run_id}: it ends before the {step.role} was asked again; resume it instead"
                )
            machine.on_reply(Reply.from_json(reply))
        else:
            end = trace.records[-1]
            if end["t"] == "end" and end["stop"] == "guard":
                return Done(end["answer"], end["stop"], end["detail"])
            missing = [call.id for call in step.plan.calls if f"{step.round}.{call.id}" not in results]
            if missing:
                raise TraceError(
                    f"trace {trace.run_id}: round {step.round} wants call {missing[0]}, which is not recorded"
                )
            machine.observe([results[f"{step.round}.{call.id}"] for call in step.plan.calls])


def _as_corrected(done: Done, trace: Trace, replies: Mapping[str, Any]) -> Done:
    """The end with a typed answer: as the last request made it, if there was one."""
    if any(name.startswith("answer ") for name in trace.setup.get("guards", ())) and trace.finished:
        # What a guard left of the answer is in the end alone.
        end = trace.records[-1]
        return Done(end["answer"], end["stop"], end["detail"])
    corrections = [reply for name, reply in replies.items() if name.startswith("answer.")]
    end = trace.records[-1]
    if not corrections or end["t"] != "end":
        return done
    if end["answer"] is None:
        return Done(None, end["stop"], end["detail"])
    return replace(done, answer=corrections[-1]["text"])
