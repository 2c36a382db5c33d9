"""Where the runs of a training happen changes nothing but times; workers that die cost nothing."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from concertino import Trace, UsageError
from concertino.rollouts import Processes
from concertino_local.codec import ByteCodec
from concertino_train.config import TrainConfig, load_config
from concertino_train.elsewhere import RolloutWork, make_place
from concertino_train.elsewhere.placed_work import digest_of
from concertino_train.elsewhere.policy_socket import PolicyAddress, PolicyLine, PolicyLost, PolicyServer
from concertino_train.evaluation import run_eval
from concertino_train.factories.learners import make_engine
from concertino_train.factories.models import first_texts, load_model
from concertino_train.factories.questions import Questions
from concertino_train.policies import Policy, Prompt, Sample, ScriptedPolicy
from concertino_train.rl import RlResult, run_rl
from concertino_train.rollouts import Rollout
from concertino_train.rollouts.gathering import Answer, Gatherer

from .conftest import SETTINGS
from .test_run_rl import ROLES, shown, weights

Settings = Callable[..., TrainConfig]
CALLS = '<reasoning>r</reasoning>\n<tool_call>{{"name": "{name}", "arguments": {arguments}}}</tool_call>'


# -- the way to the policy ---------------------------------------------------------------------------------------------


async def _sampled(prompts: Sequence[Prompt]) -> list[Answer]:
    if any(prompt.role == "nobody" for prompt in prompts):
        raise LookupError("no policy plays it")
    return [
        Answer(Sample((prompt.seed, *prompt.ids), (-0.1, *[-1 / 3] * len(prompt.ids)), "stop"), 7, 0.25)
        for prompt in prompts
    ]


async def until(ready: Callable[[], bool]) -> None:
    """Both ends of a line are on this loop: what is to come needs some more turns of it."""
    async with asyncio.timeout(30):
        while not ready():  # noqa: ASYNC110 (what is waited for has no event)
            await asyncio.sleep(0.001)


def over_a_line(work: Callable[[PolicyServer, PolicyAddress, Gatherer], Any]) -> Any:
    async def run() -> Any:
        server = PolicyServer()
        address = await server.start()
        try:
            return await work(server, address, Gatherer(_sampled, 0.05))
        finally:
            await server.close()

    return asyncio.run(run())


def test_a_run_elsewhere_gets_the_very_numbers_that_were_sampled() -> None:
    async def work(server: PolicyServer, address: PolicyAddress, gatherer: Gatherer) -> list[Answer]:
        line = PolicyLine(address)
        with server.seated("a", gatherer.enter()), server.seated("b", gatherer.enter()):
            asked = [line.seat(run).ask([Prompt((1, 2), 5, seed=2**62 + 1)]) for run in ("a", "b")]
            (first,), (second,) = await asyncio.gather(*asked)
        await line.close()
        assert first == second
        return [first]

    (answer,) = over_a_line(work)
    assert answer == Answer(Sample((2**62 + 1, 1, 2), (-0.1, -1 / 3, -1 / 3), "stop"), 7, 0.25)


def test_runs_elsewhere_are_asked_in_one_batch_and_nobody_waits_for_one_that_has_left() -> None:
    async def work(server: PolicyServer, address: PolicyAddress, gatherer: Gatherer) -> float:
        gatherer._patience = 60
        line = PolicyLine(address)
        with server.seated("a", gatherer.enter()), server.seated("b", gatherer.enter()):
            asking = asyncio.create_task(line.seat("a").ask([Prompt((1,), 5)]))
            await until(lambda: "a" in server._asking)
            assert not asking.done()  # `b` is waited for
            began = time.monotonic()
            line.seat("b").leave()
            await asking
        await line.close()
        return time.monotonic() - began

    assert over_a_line(work) < 5


def test_who_does_not_know_the_token_is_not_heard() -> None:
    async def work(server: PolicyServer, address: PolicyAddress, gatherer: Gatherer) -> None:
        line = PolicyLine(PolicyAddress(address.host, address.port, "0" * 64))
        with server.seated("a", gatherer.enter()), pytest.raises(PolicyLost, match="ended"):
            await line.seat("a").ask([Prompt((1,), 5)])
        await line.close()

    over_a_line(work)


def test_a_run_that_is_not_under_way_here_is_told_so_and_a_failing_policy_fails_where_it_is_waited_for() -> None:
    async def work(server: PolicyServer, address: PolicyAddress, gatherer: Gatherer) -> None:
        line = PolicyLine(address)
        with pytest.raises(UsageError, match="the run c is not under way"):
            await line.seat("c").ask([Prompt((1,), 5)])
        with server.seated("a", gatherer.enter()):
            with pytest.raises(UsageError, match="LookupError: no policy plays it"):
                await line.seat("a").ask([Prompt((1,), 5, role="nobody")])
            assert isinstance(server.failed["a"], LookupError)
        await line.close()

    over_a_line(work)


def test_a_line_that_breaks_is_made_again_with_the_same_question_in_the_same_batch() -> None:
    async def work(server: PolicyServer, address: PolicyAddress, gatherer: Gatherer) -> list[Answer]:
        line, began = PolicyLine(address), time.monotonic()
        gatherer._patience = 60
        with server.seated("a", gatherer.enter()), server.seated("b", gatherer.enter()):
            asking = asyncio.create_task(line.seat("a").ask([Prompt((1,), 5, seed=9)]))
            await until(lambda: "a" in server._asking)
            for task in list(server._serving):  # the network
                task.cancel()
            await until(lambda: line._opening is None)
            line.seat("b").leave()  # over no line: nobody is told, and nothing is raised
            (answer,), _ = await asyncio.gather(asking, line.seat("b").ask([Prompt((2,), 5)]))
            assert time.monotonic() - began < 30  # `b` waited for it
            gatherer.leave(0)
            again = await line.seat("b").ask([Prompt((2,), 5)])
        await line.close()
        return [answer, *again]

    first, last = over_a_line(work)
    assert first.sample.ids == (9, 1)
    assert last.sample.ids == (0, 2)


def test_of_two_workers_with_one_run_the_later_one_is_answered_and_the_other_told_so() -> None:
    async def work(server: PolicyServer, address: PolicyAddress, gatherer: Gatherer) -> None:
        thought_dead, other = PolicyLine(address), PolicyLine(address)
        gatherer._patience = 60
        with server.seated("a", gatherer.enter()), server.seated("b", gatherer.enter()):
            first = asyncio.create_task(thought_dead.seat("a").ask([Prompt((1,), 5)]))
            await until(lambda: "a" in server._asking)
            second = asyncio.create_task(other.seat("a").ask([Prompt((1,), 5)]))
            with pytest.raises(UsageError, match="asked for by another worker"):
                await first
            other.seat("b").leave()
            assert (await second)[0].sample.ids == (0, 1)
        await thought_dead.close()
        await other.close()

    over_a_line(work)


@pytest.mark.parametrize("said", [b"GET / HTTP/1.1\r\n" * 40, b"\x00" * 64, b"", b"x" * 63])
def test_what_is_no_token_is_hung_up_on(said: bytes) -> None:
    async def work(server: PolicyServer, address: PolicyAddress, gatherer: Gatherer) -> None:
        reader, writer = await asyncio.open_connection(address.host, address.port)
        writer.write(said)
        writer.write_eof()
        assert await reader.read() == b""
        writer.close()

    over_a_line(work)


@pytest.mark.parametrize(
    "frame", [b"\xff\xff\xff\xff", b"\x00\x00\x00\x01" + b"1", b"\x00\x00\x00\x02" + b"{}", b"\x00"]
)
def test_what_is_no_question_ends_the_line_and_nothing_else(frame: bytes) -> None:
    async def work(server: PolicyServer, address: PolicyAddress, gatherer: Gatherer) -> None:
        reader, writer = await asyncio.open_connection(address.host, address.port)
        writer.write(address.token.encode() + frame)
        writer.write_eof()
        assert await reader.read() == b""
        writer.close()
        line = PolicyLine(address)
        with server.seated("a", gatherer.enter()):
            assert await line.seat("a").ask([Prompt((1,), 5)])
        await line.close()

    over_a_line(work)


def test_a_policy_that_gives_what_is_no_json_fails_where_it_is_waited_for() -> None:
    async def strange(prompts: Sequence[Prompt]) -> list[Answer]:
        nothing: Any = object()
        return [Answer(Sample((nothing,), (0.0,), "stop"), 0, 0.0)]

    async def work(server: PolicyServer, address: PolicyAddress, gatherer: Gatherer) -> None:
        line, own = PolicyLine(address), Gatherer(strange, 0.05)
        with server.seated("a", own.enter()):
            with pytest.raises(UsageError, match="TypeError"):
                await line.seat("a").ask([Prompt((1,), 5)])
            assert isinstance(server.failed["a"], TypeError)
        await line.close()

    over_a_line(work)


def test_a_training_that_has_ended_is_told_to_who_asks() -> None:
    async def work(server: PolicyServer, address: PolicyAddress, gatherer: Gatherer) -> None:
        line = PolicyLine(address)
        gatherer._patience = 60
        with server.seated("a", gatherer.enter()), server.seated("b", gatherer.enter()):
            asking = asyncio.create_task(line.seat("a").ask([Prompt((1,), 5)]))
            await asyncio.sleep(0.05)
            await server.close()
            with pytest.raises(PolicyLost):
                await asking
        await line.close()
        with pytest.raises(PolicyLost, match=r"rollout\.listen"):
            await PolicyLine(address).seat("a").ask([Prompt((1,), 5)])

    over_a_line(work)


# -- rollouts ----------------------------------------------------------------------------------------------------------


def settings(tmp_path: Path, *overrides: str) -> TrainConfig:
    return load_config(SETTINGS, [f"trainer.output={tmp_path / 'out'}", "reward={preset: gap}", *overrides])


def asking(context: str, prompt: Prompt) -> str:
    """Asks a guide of the practice pool, ends, and answers."""
    turn = context.count("<|im_start|>assistant")
    if turn > 2:
        return "<answer>seven</answer>"
    call = ("elm", {"ask": f"what is {prompt.seed % 97}?"}) if turn == 1 else ("final_answer", {})
    return CALLS.format(name=call[0], arguments=json.dumps(call[1]))


def rolled_out(
    config: TrainConfig,
    folder: Path | None = None,
    script: Callable[[str, Prompt], str] = asking,
    temperature: float = 1.0,
) -> list[Rollout]:
    """Rollouts of the first two questions of a training, in groups of two."""
    questions = Questions(config)
    codec = load_model(config, first_texts(questions)).codec
    policy: Policy = ScriptedPolicy(script, codec)
    policy.temperature = temperature
    engine = make_engine(config, policy, "weights", make_place(config, codec, ["train"], folder))
    try:
        return engine.run_sync([questions.assignment(number) for number in (0, 1)], group_size=2, seed=3)
    finally:
        engine.close()


def told(rollout: Rollout) -> dict[str, Any]:
    """What a rollout holds, but for its times."""
    episode = rollout.episode.to_json()
    for name in ("seconds", "critical_path", "call_seconds"):
        episode["totals"].pop(name, None)
    for each in episode["rounds"]:
        each.pop("seconds", None)
        for call in each.get("calls", ()):
            call.pop("seconds", None)
    return {
        "id": rollout.id,
        "sample": rollout.sample,
        "sequences": [sequence.to_json() for sequence in rollout.sequences],
        "grade": rollout.grade.to_json(),
        "episode": episode,
        "answer": (rollout.run.id, rollout.run.answer, rollout.run.stop, rollout.run.pool_id),
        "usage": rollout.run.usage._replace(seconds=0),
    }


def alike(here: RlResult, there: RlResult, ready: int) -> None:
    """Equal but for the rounding of a batch's arithmetic: a worker that begins late is asked in a later batch."""
    one, two = weights(here), weights(there)
    assert max(float((one[name] - two[name]).abs().max()) for name in one) < 1e-4
    for line, other in zip(shown(here.folder), shown(there.folder), strict=True):
        assert (other.pop("workers/ready"), other.pop("workers/lost")) == (ready, 0)
        assert line == pytest.approx(other, abs=1e-4)


WIDE = ("rollout.turn_tokens=400", "rollout.total_tokens=2000", "model.new.context=4096")


@pytest.mark.slow
def test_rollouts_in_worker_processes_are_those_of_this_process(tmp_path: Path) -> None:
    here = rolled_out(settings(tmp_path, *WIDE))
    assert {rollout.run.stop for rollout in here} == {"answered"}
    assert all(rollout.episode.calls for rollout in here)
    folder = tmp_path / "journals"
    there = rolled_out(settings(tmp_path, *WIDE, "rollout.on=local:2"), folder)
    assert [told(rollout) for rollout in there] == [told(rollout) for rollout in here]
    for one, other in zip(here, there, strict=True):
        written = one.write_trace(tmp_path / f"here-{one.id}"), other.write_trace(tmp_path / f"there-{one.id}")
        kinds = [[record["t"] for record in Trace.load(path).records] for path in written]
        assert kinds[0] == kinds[1]
        assert other.item is not None

    # What was made is not made again: the traces answer, and nobody is asked.
    def silent(context: str, prompt: Prompt) -> str:
        raise AssertionError("the policy was asked again")

    again = rolled_out(settings(tmp_path, *WIDE, "rollout.on=local:1"), folder, silent)
    assert [told(rollout) for rollout in again] == [told(rollout) for rollout in here]


@pytest.mark.soak
def test_a_trace_that_is_damaged_or_of_another_temperature_is_not_recalled(tmp_path: Path) -> None:
    folder, asked = tmp_path / "journals", list[str]()

    def counted(context: str, prompt: Prompt) -> str:
        asked.append(context)
        return asking(context, prompt)

    config = settings(tmp_path, *WIDE, "rollout.on=local:1")
    here = [told(rollout) for rollout in rolled_out(config, folder, counted)]
    known = len(asked)
    assert [told(rollout) for rollout in rolled_out(config, folder, counted)] == here
    assert len(asked) == known
    # A resumed training may measure at another temperature.
    assert [told(rollout) for rollout in rolled_out(config, folder, counted, temperature=0.5)] == here
    assert len(asked) == 2 * known
    for trace in folder.glob("*.trace.jsonl"):
        trace.write_bytes(trace.read_bytes().replace(b'"question"', b'"quastion"'))
    assert [told(rollout) for rollout in rolled_out(config, folder, counted, temperature=0.5)] == here
    assert len(asked) == 3 * known


@pytest.mark.slow
def test_a_worker_that_is_killed_costs_nothing_but_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    places: list[Processes] = []
    begun = Processes.__init__
    monkeypatch.setattr(Processes, "__init__", lambda self, *a, **k: (places.append(self), begun(self, *a, **k))[1])
    killed: list[int] = []

    def killing(context: str, prompt: Prompt) -> str:
        # Behind the first call of a run, so that a trace is there to continue.
        if "<tool_response>" in context and len(killed) < 2:
            for pid in places[0].pids[:1]:
                killed.append(pid)
                with contextlib.suppress(ProcessLookupError):  # the last one has just ended
                    os.kill(pid, signal.SIGKILL)
        return asking(context, prompt)

    here = rolled_out(settings(tmp_path, *WIDE))
    there = rolled_out(settings(tmp_path, *WIDE, "rollout.on=local:2"), tmp_path / "journals", killing)
    assert killed
    assert [told(rollout) for rollout in there] == [told(rollout) for rollout in here]


@pytest.mark.soak
def test_a_training_on_worker_processes_is_the_one_of_this_process(tmp_path: Path, tiny: Settings) -> None:
    steps = ("trainer.rl.steps=2", "trainer.rl.eval_every=1", "logging.traces.every=1")
    here = run_rl(tiny(*steps))
    there = run_rl(tiny(*steps, "rollout.on=local:2"), output=tmp_path / "there")
    alike(here, there, ready=2)
    assert sorted(path.name for path in here.folder.rglob("*.trace.jsonl")) == sorted(
        path.name for path in there.folder.rglob("*.trace.jsonl")
    )
    assert not (there.folder / "journals").exists()


@pytest.mark.soak
def test_a_training_that_is_played_ahead_on_workers_trains_no_token_that_is_too_old(tiny: Settings) -> None:
    result = run_rl(tiny("trainer.rl.max_staleness=1", "rollout.on=local:2"))
    lines = shown(result.folder)
    assert len(lines) == 4
    assert max(line["ahead/staleness_max"] for line in lines) <= 1


@pytest.mark.soak
@pytest.mark.filterwarnings("ignore:.is_gradient_checkpointing. is deprecated:FutureWarning")
def test_trees_grow_in_workers_as_here(tmp_path: Path, tiny: Settings) -> None:
    here = run_rl(tiny(*ROLES), force=True)
    there = run_rl(tiny(*ROLES, "rollout.on=local:1"), output=tmp_path / "there", force=True)
    alike(here, there, ready=1)


@pytest.mark.soak
def test_an_evaluation_on_workers_writes_the_same_results(tmp_path: Path, tiny: Settings) -> None:
    changed = ("reward={preset: gap}", "trainer.eval.counterfactuals=true")
    here = run_eval(tiny(*changed), output=tmp_path / "here", traces=2)
    there = run_eval(tiny(*changed, "rollout.on=local:2"), output=tmp_path / "there", traces=2)
    assert lines_of(there.results) == lines_of(here.results)
    assert len(list((tmp_path / "there").rglob("*.trace.jsonl"))) == 2
    assert there.figures == here.figures


def lines_of(results: Path) -> list[dict[str, Any]]:
    """Items without times."""
    found = [json.loads(line) for line in results.read_text(encoding="utf-8").splitlines()[1:]]
    for item in found:
        for name in ("seconds", "critical_path"):
            item.pop(name, None)
        for used in [item.get("usage", {}), *(each["usage"] for each in item.get("members", {}).values())]:
            used.pop("seconds", None)
        for each in item.get("members", {}).values():
            each.pop("seconds", None)
    return sorted(found, key=lambda item: str(item["key"]))


# -- what is refused ---------------------------------------------------------------------------------------------------


def test_calls_are_not_shared_between_processes(tiny: Settings) -> None:
    with pytest.raises(UsageError, match=r"share_calls with rollout.on=local:2"):
        run_rl(tiny("rollout.share_calls=true", "rollout.on=local:2"))


def test_an_address_that_tells_workers_nothing_is_refused(tiny: Settings) -> None:
    with pytest.raises(UsageError, match=r"rollout.listen='0.0.0.0': .*10\.0\.0\.5"):
        run_rl(tiny("rollout.on=local:2", "rollout.listen=0.0.0.0"))
    with pytest.raises(UsageError, match=r"trainer\.nodes=2"):
        run_rl(tiny("rollout.on=local:2", "rollout.listen=10.0.0.5", "trainer.nodes=2"))


def test_a_place_that_does_not_exist_is_refused_before_anything_is_loaded(tiny: Settings) -> None:
    with pytest.raises(UsageError, match="expected where runs happen"):
        run_rl(tiny("rollout.on=moon"))


def test_a_codec_that_is_an_object_of_this_program_cannot_be_sent(tiny: Settings) -> None:
    work = RolloutWork(tiny(), ByteCodec(), PolicyAddress("127.0.0.1", 1, ""), Path("journals"))
    with pytest.raises(UsageError, match="ByteCodec is an object of this program"):
        work.to_json()


def test_another_question_or_pool_in_a_worker_is_refused(tmp_path: Path, tiny: Settings) -> None:
    from dataclasses import replace

    from concertino.rollouts import RunOrder

    config = tiny("rollout.on=local:1")
    questions = Questions(config)
    asked = questions.assignment(0)
    codec = load_model(config, first_texts(questions)).codec
    told = RolloutWork(config, codec, PolicyAddress("127.0.0.1", 1, ""), tmp_path, ["train"]).to_json()
    work = RolloutWork.from_json(json.loads(json.dumps(told)))
    told_of = {"id": "q", "source": ["train", 0], "name": "1-0-0", "tree": 0, "digest": digest_of(asked.task)}
    order = RunOrder(asked.text, told_of, asked.pool.id)
    other = {**told_of, "digest": digest_of(replace(asked.task, answers=("42",)))}

    async def refused(order: RunOrder) -> str:
        with pytest.raises(Exception, match="is another one here") as caught:
            await work.perform(order)
        return str(caught.value)

    async def both() -> list[str]:
        try:
            wrong = [replace(order, question="What?"), replace(order, pool="0"), replace(order, task=other)]
            return [await refused(each) for each in wrong]
        finally:
            await work.aclose()

    assert [said.split()[0] for said in asyncio.run(both())] == ["question", "the", "question"]


def test_a_folder_that_workers_do_not_have_is_named(tmp_path: Path, tiny: Settings) -> None:
    config = tiny()
    codec = load_model(config, first_texts(Questions(config))).codec
    told = RolloutWork(config, codec, PolicyAddress("127.0.0.1", 1, ""), tmp_path, ["train"]).to_json()
    with pytest.raises(UsageError, match="/nowhere/at/all, is not here"):
        RolloutWork.from_json({**told, "here": "/nowhere/at/all"})


def test_a_run_that_cannot_be_made_ends_the_training_with_its_reason(tmp_path: Path) -> None:
    config = settings(tmp_path, "rollout.on=local:1")

    def failing(context: str, prompt: Prompt) -> str:
        raise LookupError("the weights are gone")

    with pytest.raises(LookupError, match="the weights are gone"):
        rolled_out(config, script=failing)
