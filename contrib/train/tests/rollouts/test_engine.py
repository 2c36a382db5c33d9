"""The engine: batches, token in and token out, repairs, limits, shared calls."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from concertino import Pool, Reply, Run, UsageError, replay, tool
from concertino.strategies.parallel_rounds import ParallelRounds
from concertino.strategies.serial_calls import SerialCalls
from concertino_bench import Task
from concertino_local.codec import ByteCodec
from concertino_train.policies import Policy, Prompt, Sample, ScriptedPolicy
from concertino_train.rollouts import Assignment, Rollout, RolloutEngine, TokenLimits

CODEC = ByteCodec()
REASON = "<reasoning>r</reasoning>\n"


def call(name: str, **arguments: Any) -> str:
    import json

    return f"<tool_call>{json.dumps({'name': name, 'arguments': arguments})}</tool_call>"


END = REASON + call("final_answer")
WIDE = TokenLimits(turn=2000, total=20_000)
ran: list[str] = []


@tool
async def double(number: int) -> int:
    """Double a number."""
    ran.append(str(number))
    await asyncio.sleep(0.002)
    return 2 * number


@tool(writes=True)
async def note(text: str) -> str:
    """Write something down."""
    ran.append(text)
    return text


def assignment(question: str = "Twice 4?", answer: str = "8", **more: Any) -> Assignment:
    task = Task(f"t/{question}", question, (answer,), "text")
    return Assignment(task, Pool.of(double, note), **{"strategy": ParallelRounds(), **more})


def by_turn(*texts: str) -> Callable[[str, Prompt], str]:
    """The n-th text in the n-th turn of the policy."""
    return lambda context, prompt: texts[min(context.count("<|begin|>assistant"), len(texts)) - 1]


@pytest.fixture
def roll() -> Iterator[Callable[..., list[Rollout]]]:
    engines: list[RolloutEngine] = []
    ran.clear()

    def rolled(policy: Policy, *assignments: Assignment, group_size: int = 1, **options: Any) -> list[Rollout]:
        engines.append(RolloutEngine(policy, **options))
        return engines[-1].run_sync(assignments or [assignment()], group_size=group_size, seed=1)

    rolled.engines = engines  # type: ignore[attr-defined]
    yield rolled
    for engine in engines:
        engine.close()


GOOD = by_turn(REASON + call("double", number=4), END, "<answer>8</answer>")


def test_a_rollout_is_a_run_graded_and_kept_with_its_tokens(roll: Any) -> None:
    (rollout,) = roll(ScriptedPolicy(GOOD))
    assert (rollout.grade.score, rollout.episode.right, rollout.run.stop) == (1.0, True, "answered")
    assert [len(line.turns) for line in rollout.sequences] == [3]
    assert rollout.episode.totals.policy_tokens == rollout.sampled == rollout.sequences[0].sampled
    assert replay(rollout.run.trace).answer == "8"


def test_what_was_read_and_written_is_one_conversation_without_a_gap(roll: Any) -> None:
    (rollout,) = roll(ScriptedPolicy(GOOD))
    line = rollout.sequences[0]
    text = CODEC.decode(line.ids)
    assert text.count("<|begin|>") == text.count("<|end|>")
    assert text == CODEC.decode(CODEC.prompt(_messages(rollout.run))[: len(line.ids)])


def _messages(run: Run) -> list[Any]:
    from concertino import Message
    from concertino.core.events import Asked, Replied

    said: list[Any] = []
    for event in run.events:
        if isinstance(event, Asked):
            said += event.messages
        elif isinstance(event, Replied):
            said.append(Message("assistant", event.reply.text))
    return said


def test_what_is_trained_is_what_was_sampled_even_where_the_text_would_be_encoded_otherwise(roll: Any) -> None:
    class Odd(ByteCodec):
        """Token 300 + b is another spelling of byte b, which encoding never chooses."""

        size = 560

        def read(self, ids: Any, tools: Any = ()) -> Reply:
            return super().read([token - 300 if token >= 300 else token for token in ids])

        def decode(self, ids: Any) -> str:
            return super().decode([token - 300 if token >= 300 else token for token in ids])

    codec = Odd()

    def odd(context: str, prompt: Prompt) -> tuple[int, ...]:
        return tuple(token + 300 if token < 256 else token for token in CODEC.turn(said_as(GOOD(context, prompt))))

    reported: list[Sample] = []

    class Counting(ScriptedPolicy):
        def generate(self, prompts: Any) -> list[Sample]:
            found = super().generate(prompts)
            reported.extend(found)
            return found

    (rollout,) = roll(Counting(odd, codec))
    assert rollout.episode.right
    line = rollout.sequences[0]
    sampled = [line.ids[turn.start : turn.end] for turn in line.turns]
    assert sampled == [list(sample.ids) for sample in reported]
    assert all(token >= 256 for ids in sampled for token in ids)


def said_as(text: str) -> Any:
    from concertino import Message

    return Message("assistant", text)


def test_all_runs_are_asked_in_one_batch_and_call_at_the_same_time(roll: Any) -> None:
    @tool
    async def slow(number: int) -> int:
        """Wait."""
        await asyncio.sleep(0.2)
        return number

    two = REASON + call("slow", number=1) + "\n" + call("slow", number=2)
    policy = ScriptedPolicy(by_turn(two, END, "<answer>8</answer>"))
    task = Task("t", "q", ("8",), "text")
    roll(policy, Assignment(task, Pool.of(slow), ParallelRounds()), group_size=32)
    assert policy.batches == [32, 32, 32]
    assert roll.engines[0].timings.environment < 32 * 2 * 0.2 / 4  # one after the other; benchmarks/ has the figure


def test_an_unreadable_call_comes_back_and_its_siblings_run(roll: Any) -> None:
    mixed = REASON + call("double", number=4) + '\n<tool_call>{"name": "double", "arguments": {"num</tool_call>'
    (rollout,) = roll(ScriptedPolicy(by_turn(mixed, REASON + call("double", number=5), END, "<answer>8</answer>")))
    first, second = rollout.run.rounds[:2]
    assert [seen.status.value for seen in first.observations] == ["OK", "PARSE_ERR"]
    assert [seen.status.value for seen in second.observations] == ["OK"]
    assert ran == ["4", "5"]
    assert not rollout.episode.rounds[0].exact


@pytest.mark.parametrize("strategy", [ParallelRounds(prompt="brief"), SerialCalls()], ids=["brief", "serial"])
def test_a_rollout_does_not_depend_on_who_else_is_in_the_batch(roll: Any, strategy: Any) -> None:
    def noisy(context: str, prompt: Prompt) -> str:
        return REASON + call("double", number=prompt.seed % 100)

    limits = TokenLimits(turn=120, total=500)
    many = roll(
        ScriptedPolicy(noisy),
        assignment(strategy=strategy),
        assignment("Twice 5?", strategy=strategy),
        group_size=3,
        limits=limits,
    )
    again = roll(ScriptedPolicy(noisy), assignment(strategy=strategy), group_size=3, limits=limits)
    assert [r.sequences[0].ids for r in again] == [r.sequences[0].ids for r in many[:3]]
    assert len({tuple(r.sequences[0].ids) for r in many}) == 6


def test_a_run_without_room_ends_for_its_budget_and_holds_no_more_than_it_may(roll: Any) -> None:
    (rollout,) = roll(ScriptedPolicy(lambda context, prompt: "x" * 90), limits=TokenLimits(turn=40, total=100))
    assert rollout.run.stop in ("budget", "format")
    assert rollout.sampled <= 100
    assert all(turn.finish == "length" and turn.end - turn.start <= 40 for turn in rollout.sequences[0].turns)
    (small,) = roll(ScriptedPolicy(GOOD), limits=TokenLimits(context=10))
    assert (small.run.stop, small.sampled) == ("budget", 0)


def test_a_cut_turn_is_closed_before_the_conversation_goes_on(roll: Any) -> None:
    (rollout,) = roll(ScriptedPolicy(by_turn("y" * 300, END, "<answer>8</answer>")), limits=TokenLimits(turn=100))
    line = rollout.sequences[0]
    first = line.turns[0]
    assert (first.finish, line.ids[first.end]) == ("length", ByteCodec.END)


def test_history_that_was_cut_begins_a_new_line(roll: Any) -> None:
    long = REASON + call("note", text="word " * 200)
    texts = by_turn(long, long, long, long, END, "<answer>8</answer>")
    (rollout,) = roll(ScriptedPolicy(texts), assignment(strategy=ParallelRounds(history_tokens=3200)), limits=WIDE)
    assert len(rollout.sequences) > 1
    assert sum(len(line.turns) for line in rollout.sequences) == 6
    assert all(line.turns[0].start > 0 for line in rollout.sequences)


def test_equal_calls_of_a_group_are_made_once_and_cost_each_the_same(roll: Any) -> None:
    text = REASON + call("double", number=4) + "\n" + call("note", text="n")
    policy = ScriptedPolicy(by_turn(text, END, "<answer>8</answer>"))
    rollouts = roll(policy, assignment(), assignment("Twice 5?"), group_size=4, share=True)
    assert sorted(ran) == ["4"] * 2 + ["n"] * 8
    assert roll.engines[0].shared == {"asked": 8, "hits": 6}
    assert len({r.episode.totals.units for r in rollouts}) == 1
    assert all(r.grade.score == 1.0 for r in rollouts)


def test_a_repeat_behind_a_failure_is_a_call_of_its_own(roll: Any) -> None:
    tries: list[int] = []

    @tool
    async def shy(number: int) -> int:
        """Answer the second time."""
        tries.append(number)
        if len(tries) == 1:
            raise ValueError("not now")
        return number

    ask = REASON + call("shy", number=8)
    task = Task("t", "q", ("8",), "text")
    policy = ScriptedPolicy(by_turn(ask, ask, END, "<answer>8</answer>"))
    rollouts = roll(policy, Assignment(task, Pool.of(shy), ParallelRounds()), group_size=4, share=True)
    assert tries == [8, 8]
    assert [[seen.status.value for seen in r.run.observations] for r in rollouts] == [["EXEC_ERR", "OK"]] * 4


def test_what_a_rollout_wrote_before_is_part_of_what_it_reads() -> None:
    from concertino import Observation, Status, ToolSpec
    from concertino_train.rollouts.sharing import SharedCalls

    schema = {"type": "object", "properties": {}}
    read = ToolSpec.from_schema("read", "Reads.", schema, lambda _: "")
    write = ToolSpec.from_schema("write", "Writes.", schema, lambda _: "", writes=True)

    async def run() -> list[bool]:
        shared = SharedCalls({"asked": 0, "hits": 0})
        found = []
        for writes in (False, True, False, True):
            seat = shared.seat()
            if writes:
                assert await seat.before(write, {"text": "a"}, "1.1") is None
            known = await seat.before(read, {}, "1.2")
            seat.after(read, Observation("1.2", "read", Status.OK, f"after {writes}"))
            assert known is None or known.content == f"after {writes}"
            found.append(known is not None)
        return found

    assert asyncio.run(run()) == [False, False, True, True]


def test_a_role_that_the_pool_plays_is_asked_there_and_not_trained(roll: Any) -> None:
    from concertino import Model, ModelSpec

    class Writer(Model):
        async def chat(self, request: Any) -> Reply:
            return Reply("<answer>8</answer>")

    base = assignment(strategy=ParallelRounds(summariser="summariser"))
    pool = base.pool.adding(ModelSpec("writer", Writer)).bind(summariser="writer")
    (rollout,) = roll(ScriptedPolicy(GOOD), Assignment(base.task, pool, base.strategy))
    assert rollout.episode.right
    assert {line.role for line in rollout.sequences} == {"orchestrator"}
    assert len(rollout.sequences[0].turns) == 2


def test_a_task_that_nobody_grades_is_refused_before_anything_runs(roll: Any) -> None:
    task = Task("t", "q", ("8",), "no-such-kind")
    with pytest.raises(UsageError, match="no-such-kind"):
        roll(ScriptedPolicy(GOOD), Assignment(task, Pool.of(double), ParallelRounds()))
    assert ran == []


def test_what_the_engine_does_itself_is_a_small_part(roll: Any) -> None:
    class Slow(ScriptedPolicy):
        def generate(self, prompts: Any) -> list[Sample]:
            time.sleep(0.4)
            return super().generate(prompts)

    roll(Slow(GOOD), group_size=16)
    timings = roll.engines[0].timings
    assert timings.own < 0.5 * timings.total
