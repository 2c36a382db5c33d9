"""The runs that `approval_trials.py` kills: random plans with calls that a person has to approve.

    python tests/sdk/runs/approval_child.py

Reads one job as JSON from each line of its input, does it in a forked process, kills that process with SIGKILL as the
job says, and answers with its exit status. A job begins a run on a trace file or resumes it, with decisions or with a
handler, and writes what came of it.

Every paid call writes a line into a log, which plays the provider, when it starts and when it ends, with its
idempotency key. So does a handler that is asked.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import sys
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypedDict

import concertino as ct
from concertino.core.events import Event
from concertino.strategies import Strategy
from concertino.strategies.agent_graph import AgentGraph
from concertino.strategies.dependency_plan import DependencyPlan
from concertino.strategies.parallel_rounds.format import write_round

COST = ct.Cost(usd=0.01, units=1)
FINAL = write_round("end", [("final_answer", {})])


class Job(TypedDict):
    """What a forked process does.

    Attributes:
        seed: of the plan.
        trace, log, result: files.
        handler: a handler decides; else the run is suspended.
        decisions: ids of the calls that are decided about now.
        seconds: the budget of a run that begins.
        wait: seconds that the handler takes, for the first call that it is asked about.
        die_at: kill it at this write, before it if odd, after it if even; 0 for never.
        kill_after: kill it after so many seconds; 0 for never.
    """

    seed: int
    trace: str
    log: str
    result: str
    handler: bool
    decisions: list[str]
    seconds: float
    wait: float
    die_at: int
    kill_after: float


# -- the provider --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Provider:
    """Whom calls are paid to."""

    log: int

    def note(self, *words: str) -> None:
        """A line of the log."""
        os.write(self.log, (" ".join(words) + "\n").encode())

    async def bill(self, kind: str, key: str, call_id: str, seconds: float = 0.002) -> None:
        """A paid call."""
        self.note("START", kind, key, call_id)
        await asyncio.sleep(seconds)
        self.note("END", kind, key, call_id)


def members(provider: Provider) -> list[Any]:
    """Tools and agents; those that pay need approval, one of them by a rule, one inside of an agent."""

    @ct.tool(approval=True, retry_safe=True, cost=COST)
    async def pay(amount: int, *, ctx: ct.Context) -> str:
        """Pay an amount; the provider knows the key of a payment."""
        await provider.bill("keyed", ctx.idempotency_key, ctx.call_id)
        return f"paid {amount}"

    @ct.tool(approval=True, cost=COST)
    async def once(amount: int, *, ctx: ct.Context) -> str:
        """Pay an amount; may not be repeated."""
        await provider.bill("once", ctx.idempotency_key, ctx.call_id)
        return f"paid {amount} once"

    @ct.tool(approval=lambda arguments: arguments["amount"] > 20, retry_safe=True, cost=COST)
    async def spend(amount: int, *, ctx: ct.Context) -> str:
        """Spend an amount; large ones need approval."""
        await provider.bill("keyed", ctx.idempotency_key, ctx.call_id)
        return f"spent {amount}"

    @ct.tool(retry_safe=True, cost=COST)
    async def look(amount: int, *, ctx: ct.Context) -> str:
        """Look at an account."""
        await provider.bill("keyed", ctx.idempotency_key, ctx.call_id, 0.001)
        return f"{amount} are there"

    @ct.tool(retry_safe=True, cost=COST)
    async def search(query: str, *, ctx: ct.Context) -> str:
        """Search for a text."""
        await provider.bill("keyed", ctx.idempotency_key, ctx.call_id, 0.001)
        return f"found {query}"

    @ct.agent(retry_safe=True, models=("worker",))
    async def buy(amount: int, *, ctx: ct.Context) -> str:
        """Look, pay, and have a model write a line."""
        seen = await ctx.call("look", {"amount": amount})
        done = await ctx.call("pay", {"amount": amount})
        said = done.content if done.ok else done.error.message if done.error else ""
        return f"{seen.content}; {(await ctx.model('worker').chat(f'about {said}')).text}"

    return [pay, once, spend, look, search, buy]


NAMES = ("pay", "pay", "spend", "look", "buy", "once")


# -- the plan ------------------------------------------------------------------------------------------------------


def plan_of(seed: int) -> tuple[Strategy, list[str]]:
    """A strategy, and what its model says in turn: rounds, or a graph with edges."""
    chance = random.Random(seed)
    amounts = iter(chance.sample(range(1, 100), 40))

    def call(number: int, after: tuple[str, ...] = ()) -> ct.Call:
        return ct.Call(chance.choice(NAMES), {"amount": next(amounts)}, f"n{number}", after)

    if seed % 3 == 0:
        rounds = [[call(n) for n in range(chance.randint(1, 4))] for _ in range(chance.randint(1, 3))]
        turns = [write_round("on", [(each.name, each.arguments) for each in calls]) for calls in rounds]
        return ct.ParallelRounds(), [*turns, FINAL, "<answer>done</answer>"]
    calls: list[ct.Call] = []
    for number in range(chance.randint(2, 6)):
        earlier = [each.id for each in calls]
        calls.append(call(number, tuple(chance.sample(earlier, min(len(earlier), chance.randint(0, 2))))))
    if seed % 3 == 1:
        strategy: Strategy = DependencyPlan()
        return strategy, [strategy.write_turn(calls, "so"), *strategy.write_answer("done")]
    waited_for = {need for each in calls for need in each.after}
    calls.append(ct.Call("look", {"amount": 1}, "last", tuple(e.id for e in calls if e.id not in waited_for)))
    return AgentGraph(), [AgentGraph().write_turn(calls, "so")]


class Speaker(ct.Model):
    """Says what comes next in its conversation, for money."""

    def __init__(self, provider: Provider, turns: list[str]) -> None:
        self.provider, self.turns = provider, turns

    async def chat(self, request: ct.ChatRequest) -> ct.Reply:
        """The turn that follows; a worker without turns repeats the question."""
        await self.provider.bill("model", request.idempotency_key, request.idempotency_key, 0.001)
        said = sum(message.role == "assistant" for message in request.messages)
        text = self.turns[said] if self.turns else request.messages[-1].text.upper()
        return ct.Reply(text, usage=ct.Usage(input_tokens=10, output_tokens=5))


# -- the person ----------------------------------------------------------------------------------------------------


def decision(arguments: Any) -> ct.Decision:
    """What the person decides, by the amount alone, so that it does not matter when they are asked."""
    amount = arguments["amount"]
    if amount % 5 == 0:
        return ct.Deny("not today")
    return ct.Approve({"amount": amount + 1000}) if amount % 5 == 1 else ct.Approve()


class Person:
    """A handler that takes its time, for the first call above all."""

    def __init__(self, provider: Provider, wait: float) -> None:
        self.provider, self.wait = provider, wait

    async def __call__(self, request: ct.ApprovalRequest) -> ct.Decision:
        """Decide."""
        self.provider.note("ASK", request.name, "-", request.call_id)
        wait, self.wait = self.wait, 0.001
        await asyncio.sleep(wait)
        return decision(request.arguments)


# -- one process ---------------------------------------------------------------------------------------------------


def die_at_write(count: int) -> None:
    """Kill this process at its `count`-th write: before it (odd) or right after it (even)."""
    real, left = os.write, count

    def write(fd: int, data: Any) -> int:
        nonlocal left
        left -= 1
        if left == 0 and count % 2:
            os.kill(os.getpid(), signal.SIGKILL)
        done = real(fd, data)
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return done

    os.write = write


def begun(trace: Path) -> ct.Trace | None:
    """The trace of a run that may be resumed; what was killed before it had begun is removed."""
    if trace.exists() and len(trace.read_bytes().splitlines()) > 1:
        return ct.Trace.load(trace)
    trace.unlink(missing_ok=True)
    return None


async def work(job: Job) -> dict[str, Any]:
    """Begin the run, or go on with it."""
    provider = Provider(os.open(job["log"], os.O_WRONLY | os.O_APPEND | os.O_CREAT))
    strategy, turns = plan_of(job["seed"])
    prices = ct.Prices(1.0, 2.0)
    models = [
        ct.ModelSpec("toy/lead", lambda: Speaker(provider, turns), prices=prices),
        ct.ModelSpec("toy/worker", lambda: Speaker(provider, []), prices=prices),
    ]
    pool = ct.Pool.of(*members(provider), *models).bind(orchestrator="toy/lead", worker="toy/worker")
    person = Person(provider, job["wait"])
    leader = ct.Orchestrator("orchestrator", strategy, approve=person if job["handler"] else None)
    first: list[float] = []

    def listen(event: Event) -> None:
        if not first and not isinstance(event, ct.events.RunStarted) and hasattr(event, "at"):
            first.append(event.at)

    trace = Path(job["trace"])
    known = begun(trace)
    pending = known.pending() if known is not None else {}
    decisions = {name: decision(pending[name]["arguments"]) for name in job["decisions"] if name in pending}
    if known is not None:
        run = await leader.resume(trace, pool=pool, decisions=decisions, on_event=listen, finished="recall")
    else:
        budget = ct.Budget(usd=10, units=100, calls=200, seconds=job["seconds"])
        run = await leader.run("What?", pool=pool, budget=budget, trace=trace, on_event=listen)
    seen = sorted([each.call_id, str(each.status), each.content, _code(each)] for each in run.observations)
    usage = run.usage
    return {
        "stop": run.stop,
        "answer": run.answer,
        "observations": seen,
        "usage": [usage.calls, round(usage.usd, 9), usage.units, usage.input_tokens, usage.output_tokens],
        "detail": run.detail,
        "first": first[0] if first else 0.0,
    }


def _code(observation: ct.Observation) -> str:
    return observation.error.code if observation.error is not None else ""


def in_child(job: Job) -> None:
    """The whole life of a forked process."""
    if job["die_at"]:
        die_at_write(job["die_at"])
    done = asyncio.run(work(job))
    target = Path(job["result"])
    target.with_suffix(".new").write_text(json.dumps(done), encoding="utf-8")
    target.with_suffix(".new").replace(target)


def wait_for(child: int, kill_after: float) -> int:
    """The exit status of a process, negative for a signal; it is killed after so many seconds."""
    deadline = time.monotonic() + kill_after
    while kill_after and time.monotonic() < deadline:
        found, status = os.waitpid(child, os.WNOHANG)
        if found:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.0005)
    if kill_after:
        os.kill(child, signal.SIGKILL)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def warm_up() -> None:
    """One run here, so that no forked process has to import what a run needs."""
    for seed in range(3):
        with tempfile.TemporaryDirectory() as name:
            job: Any = {what: str(Path(name) / f"{what}.jsonl") for what in ("trace", "log", "result")}
            job |= {"handler": True, "decisions": [], "seconds": 60.0, "wait": 0.0, "die_at": 0, "kill_after": 0.0}
            job["seed"] = seed
            in_child(job)
    # A watch of the loop may need a moment to end on a busy machine.
    deadline = time.monotonic() + 10
    while threading.active_count() > 1:
        if time.monotonic() > deadline:
            raise SystemExit(f"a process with threads cannot be forked safely: {threading.enumerate()}")
        time.sleep(0.01)


def main() -> None:
    """Serve jobs until the input ends. Forked, so that a process begins in milliseconds and shares nothing."""
    warm_up()
    for line in sys.stdin:
        job: Job = json.loads(line)
        child = os.fork()
        if child == 0:
            try:
                in_child(job)
            except BaseException as error:
                sys.stderr.write(f"{type(error).__name__}: {error}\n")
                os._exit(1)
            os._exit(0)
        sys.stdout.write(f"{wait_for(child, job['kill_after'])}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
