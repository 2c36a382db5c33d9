"""Runs go on by themselves, and what they ask is gathered into batches by what is ready."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from typing import Any

import pytest
from concertino import Pool, UsageError, tool
from concertino.strategies.parallel_rounds import ParallelRounds
from concertino_bench import Task
from concertino_train.policies import Prompt, Sample, ScriptedPolicy
from concertino_train.rollouts import Assignment, RolloutEngine, TokenLimits
from concertino_train.rollouts.gathering import Answer, Gatherer
from concertino_train.rollouts.timings import Timings

FAR = 30.0
"""Seconds of a patience that never ends in a test."""
WIDE = TokenLimits(turn=2000, total=20_000)


class Noted(ScriptedPolicy):
    """Keeps the prompts of each batch."""

    def __init__(self, script: Any) -> None:
        super().__init__(script)
        self.asked: list[list[Prompt]] = []

    def generate(self, prompts: Sequence[Prompt]) -> list[Sample]:
        self.asked.append(list(prompts))
        return super().generate(prompts)


def wandering(context: str, prompt: Prompt) -> str:
    """Calls a number of times that the seed of the first turn says, then answers."""
    if context.count("<|begin|>assistant") > 1 + prompt.seed % 4:
        return "<answer>8</answer>"
    return calling("double", prompt.seed % 1000)


def calling(name: str, number: int) -> str:
    call = {"name": name, "arguments": {"number": number}}
    return f"<reasoning>r</reasoning>\n<tool_call>{json.dumps(call)}</tool_call>"


def assignment(question: str, member: Any) -> Assignment:
    return Assignment(Task(f"t/{question}", question, ("8",), "text"), Pool.of(member), ParallelRounds())


@tool
async def double(number: int) -> int:
    """Double a number."""
    await asyncio.sleep(0)
    return 2 * number


def in_rounds(policy: Noted, assignments: list[Assignment], size: int) -> list[list[list[int]]]:
    """The ids of all runs, played in rounds: a batch when all have ended their calls."""
    engine = RolloutEngine(policy, limits=WIDE)

    async def played() -> list[list[list[int]]]:
        players = [player for group in engine.players(assignments, size, 0) for player in group]
        while True:
            for player in players:
                await engine.advance(player)
            asked = [(player, engine.read(player)) for player in players]
            rows = [(player, sequence) for player, sequence in asked if sequence is not None]
            if not rows:
                break
            answers = await engine.generate([engine.prompt(player, sequence, 7) for player, sequence in rows])
            for (player, sequence), answer in zip(rows, answers, strict=True):
                engine.tell(player, sequence, answer)
        for player in players:
            await player.run.close()
        return [[sequence.ids for sequence in player.conversations.sequences] for player in players]

    try:
        return engine.wait(played())
    finally:
        engine.close()


def test_where_nothing_waits_batches_and_results_are_those_of_rounds() -> None:
    questions = [assignment("Twice 4?", double), assignment("Twice 5?", double)]
    rounds, alone = Noted(wandering), Noted(wandering)
    expected = in_rounds(rounds, questions, 8)
    engine = RolloutEngine(alone, limits=WIDE, patience=FAR)
    rollouts = engine.run_sync(questions, group_size=8, seed=7)
    engine.close()
    assert [[sequence.ids for sequence in rollout.sequences] for rollout in rollouts] == expected
    assert alone.asked == rounds.asked
    assert len(alone.asked) > 2


def test_a_call_that_hangs_stalls_no_other_run(monkeypatch: pytest.MonkeyPatch) -> None:
    ended: list[str] = []
    others = 7

    async def played() -> list[Any]:
        free = asyncio.Event()

        @tool
        async def stuck(number: int) -> int:
            """Hang the first time it is called in a group."""
            if not ended and not hung:
                hung.append(number)
                await free.wait()
            return number

        hung: list[int] = []
        engine = RolloutEngine(Noted(turns), limits=WIDE, patience=0.05)
        finish = engine.finish

        async def noting(player: Any, jury: Any) -> Any:
            ended.append(player.run.id)
            if len(ended) == others:
                free.set()  # only now: all others were done while it hung
            return await finish(player, jury)

        monkeypatch.setattr(engine, "finish", noting)
        async with asyncio.timeout(FAR):
            return await engine.run([assignment("q", stuck)], group_size=others + 1)

    def turns(context: str, prompt: Prompt) -> str:
        said = context.count("<|begin|>assistant")
        if said > 4:
            return "<answer>8</answer>"
        return calling("stuck", said)

    rollouts = asyncio.run(played())
    assert len(ended) == others + 1
    assert {len(rollout.sequences[0].turns) for rollout in rollouts} == {5}
    assert ended[-1] == rollouts[0].id


async def answers(prompts: Sequence[Prompt]) -> list[Answer]:
    await asyncio.sleep(0)
    return [Answer(Sample(prompt.ids, (0.0,) * len(prompt.ids), "stop"), 0, 0.0) for prompt in prompts]


def row(number: int) -> list[Prompt]:
    return [Prompt((number,), 1)]


async def test_who_was_late_is_not_waited_for_until_it_has_asked_again() -> None:
    batches: list[list[int]] = []

    async def noted(prompts: Sequence[Prompt]) -> list[Answer]:
        batches.append([prompt.ids[0] for prompt in prompts])
        return await answers(prompts)

    gatherer = Gatherer(noted, patience=0.02)
    quick, late = gatherer.enter(), gatherer.enter()
    await quick.ask(row(1))
    gatherer._patience = FAR  # whoever is waited for now is waited for long
    await asyncio.wait_for(quick.ask(row(2)), FAR / 3)
    both = asyncio.gather(late.ask(row(3)), quick.ask(row(4)))
    await both
    assert batches[:2] == [[1], [2]]
    assert sorted(number for batch in batches[2:] for number in batch) == [3, 4]
    late.leave()
    await asyncio.wait_for(quick.ask(row(5)), FAR / 3)
    assert batches[-1] == [5]


async def test_nothing_is_sampled_while_the_gate_is_closed() -> None:
    gatherer = Gatherer(answers, patience=0.01)
    seat = gatherer.enter()
    await gatherer.shut()
    asked = asyncio.create_task(seat.ask(row(1)))
    await asyncio.sleep(0.05)
    assert not asked.done()
    gatherer.open()
    assert (await asked)[0].sample.ids == (1,)


async def test_an_error_of_the_policy_reaches_all_that_asked_and_the_next_batch_is_sampled() -> None:
    async def broken(prompts: Sequence[Prompt]) -> list[Answer]:
        if prompts[0].ids == (1,):
            raise UsageError("no weights")
        return await answers(prompts)

    gatherer = Gatherer(broken, patience=0.01)
    one, two = gatherer.enter(), gatherer.enter()
    found = await asyncio.gather(one.ask(row(1)), two.ask(row(2)), return_exceptions=True)
    assert [str(error) for error in found] == ["no weights"] * 2
    assert (await two.ask(row(3)))[0].sample.ids == (3,)


async def test_a_run_that_gives_up_takes_its_question_back() -> None:
    gatherer = Gatherer(answers, patience=0.01)
    one, two = gatherer.enter(), gatherer.enter()
    asked = asyncio.create_task(one.ask(row(1)))
    await asyncio.sleep(0)
    asked.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asked
    one.leave()
    assert (await two.ask(row(2)))[0].sample.ids == (2,)


async def test_a_run_that_takes_its_question_back_and_stays_is_waited_for() -> None:
    batches: list[list[int]] = []

    async def noted(prompts: Sequence[Prompt]) -> list[Answer]:
        batches.append([prompt.ids[0] for prompt in prompts])
        return await answers(prompts)

    gatherer = Gatherer(noted, patience=FAR)
    one, two = gatherer.enter(), gatherer.enter()
    asked = asyncio.create_task(one.ask(row(1)))
    await asyncio.sleep(0)
    asked.cancel()  # by a line that broke
    with pytest.raises(asyncio.CancelledError):
        await asked
    other = asyncio.create_task(two.ask(row(2)))
    await asyncio.sleep(0.02)
    await asyncio.wait_for(asyncio.gather(one.ask(row(3)), other), FAR / 3)
    assert batches == [[3, 2]]


def test_a_second_in_which_several_things_happen_is_counted_once(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [0.0]
    monkeypatch.setattr("concertino_train.rollouts.timings.time.monotonic", lambda: clock[0])
    timings = Timings()
    with timings.measured("total"):
        clock[0] += 1
        with timings.measured("environment"):
            clock[0] += 2
            with timings.measured("environment"), timings.measured("generate"):
                clock[0] += 4
        clock[0] += 8
    assert (timings.total, timings.generate, timings.environment, timings.own) == (15, 4, 2, 9)
