"""How a run samples reaches its machine, and is the same where the run is resumed or replayed."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import concertino as ct
import pytest
from concertino.strategies import Ask, Done, Machine, Strategy, TaskContext
from concertino.testing import ScriptedModel

SAMPLING = ct.Sampling(temperature=0.5, seed=7, stop=("END",))


class Telling(Machine):
    """Asks twice, with seeds that follow from the run's, then tells how it was told to sample."""

    def __init__(self, sampling: ct.Sampling | None) -> None:
        self.sampling, self.replies = sampling, 0

    def step(self) -> Ask | Done:
        if self.replies == 2:
            return Done(repr(self.sampling), "answered")
        own = self.sampling or ct.Sampling()
        chosen = own.with_(seed=2 * (own.seed or 0) + self.replies)
        return Ask("orchestrator", [ct.Message("user", f"{self.replies}?")], 1, sampling=chosen)

    def on_reply(self, reply: ct.Reply) -> None:
        self.replies += 1

    def observe(
        self, observations: Sequence[ct.Observation], remaining: Mapping[str, float] | None = None
    ) -> None:  # pragma: no cover
        raise AssertionError("nothing was called")

    def finish(self, stop: str, detail: str = "") -> None:  # pragma: no cover
        raise AssertionError(detail)

    def dump(self) -> dict[str, Any]:  # pragma: no cover
        return {}


@dataclass(frozen=True)
class Tells(Strategy):
    """The strategy of `Telling`."""

    name = "tells"
    needs_members = False

    def begin(self, context: TaskContext) -> Telling:
        return Telling(context.sampling)

    def restore(self, dumped: Mapping[str, Any]) -> Telling:  # pragma: no cover
        return Telling(None)


def pool(*replies: str) -> tuple[ct.Pool, ScriptedModel]:
    script = ScriptedModel(*replies)
    return ct.Pool([ct.ModelSpec("m", lambda: script)]), script


@pytest.mark.parametrize("sampling", [SAMPLING, ct.Sampling(temperature=0.0, seed=0), None])
async def test_a_machine_knows_how_its_run_samples_also_in_a_replay(
    sampling: ct.Sampling | None, tmp_path: Path
) -> None:
    members, script = pool("a", "b")
    with script:
        run = await ct.Orchestrator("m", Tells(), sampling=sampling).run("?", pool=members, trace=tmp_path / "r.trace")
    assert run.answer == repr(sampling or ct.Sampling())
    trace = ct.Trace.load(tmp_path / "r.trace")
    assert ("sampling" in trace.setup) is (sampling is not None)
    assert run.events[0].setup == trace.setup, "plain data, before and after writing"  # type: ignore[union-attr]
    assert ct.replay(trace, Tells()).answer == run.answer


async def test_a_resumed_run_samples_as_it_began(tmp_path: Path) -> None:
    members, script = pool("a", "b")
    with script:
        await ct.Orchestrator("m", Tells(), sampling=SAMPLING).run("?", pool=members, trace=tmp_path / "r.trace")
    lines = (tmp_path / "r.trace").read_bytes().splitlines(keepends=True)
    first = next(at for at, line in enumerate(lines) if json.loads(line[9:])["t"] == "reply")
    (tmp_path / "cut.trace").write_bytes(b"".join(lines[: first + 1]))
    members, script = pool("b")
    with script:
        run = await ct.Orchestrator("m", Tells()).resume(tmp_path / "cut.trace", pool=members)
    assert run.answer == repr(SAMPLING)
    assert [request.sampling for request in script.requests] == [SAMPLING.with_(seed=15)]


async def test_an_orchestrator_as_an_agent_tells_its_machine_how_it_samples() -> None:
    members, script = pool("a", "b")
    agent = ct.Orchestrator("m", Tells(), sampling=SAMPLING).as_agent("lead", "Leads a run of its own.")
    with script:
        (seen,) = await ct.Executor().run(ct.Plan([ct.Call("lead", {"task": "?"})]), members.adding(agent))
    assert seen.content == repr(SAMPLING)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"temperature": "hot"}, r"temperature='hot'\): expected a number >= 0"),
        ({"top_p": -1}, r"top_p=-1\): expected a number >= 0"),
        ({"stop": "END"}, r"stop='END'\): expected several texts, such as \('END',\)"),
    ],
)
def test_a_value_that_no_server_takes_is_refused_where_it_is_written(wrong: dict[str, Any], said: str) -> None:
    with pytest.raises(ct.UsageError, match=said):
        ct.Sampling(**wrong)
