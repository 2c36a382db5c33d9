"""A strategy that inherits from none of the five is run, replayed, collected, taught, reinforced, evaluated, exported.

The invariant: it uses public names alone, and nothing outside its package knows of it.
"""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path
from typing import Any

import pytest
from concertino import Message, Orchestrator, Pool, Reply, Run, Strategy, Trace, replay
from concertino.core.plan import Call
from concertino.strategies import Act, Ask, Done, Machine, Step, TaskContext, installed_strategy
from concertino.testing import ScriptedModel

os.environ.setdefault("HF_HUB_OFFLINE", "1")
LOOK = 'NOTE I look.\nLOOK double {"number": 4}'
TURNS = ("hm", 'look double {"number": 3}', "NOTE too little\nMORE twice 4", f"{LOOK}\nLOOK nobody {{}}", "VERDICT 8")
"""A text that cannot be read, one that is repaired, a turn that does not suffice, and one with an unknown member."""


@pytest.fixture
def pool() -> Pool:
    from scout_judge.practice import pool

    return pool()


@pytest.fixture
def strategy() -> Strategy:
    return installed_strategy("scout-judge")()


def run(pool: Pool, *turns: str, **options: Any) -> Run:
    with ScriptedModel(*turns) as model:
        return Orchestrator(model, "scout-judge").run_sync("What is twice 4?", pool=pool, **options)


def test_it_inherits_from_the_contract_alone(strategy: Strategy) -> None:
    machine = strategy.begin(TaskContext("?"))
    assert type(strategy).__mro__[1:] == Strategy.__mro__
    assert type(machine).__mro__[1:] == Machine.__mro__


# -- run, resumed, replayed --------------------------------------------------------------------------------------------


def test_it_is_run_and_replayed(pool: Pool) -> None:
    done = run(pool, *TURNS)
    assert (done.answer, done.stop) == ("8", "answered")
    assert [[seen.status.value for seen in each.observations] for each in done.rounds] == [["OK"], ["OK", "PARSE_ERR"]]
    assert [issue.code for issue in done.rounds[0].issues] == ["small_letters"]
    assert replay(done.trace) == Done("8", "answered")


@pytest.mark.parametrize("kept", range(1, 17))
def test_it_is_resumed_wherever_it_broke_off(pool: Pool, tmp_path: Path, kept: int) -> None:
    whole = run(pool, *TURNS, trace=tmp_path / "whole.jsonl")
    assert whole.path is not None
    lines = whole.path.read_bytes().splitlines(keepends=True)
    broken = tmp_path / "broken.jsonl"
    broken.write_bytes(b"".join(lines[: min(kept + 1, len(lines) - 1)]))
    said = sum(record["t"] == "reply" for record in Trace.load(broken).records)

    async def resumed() -> Run:
        with ScriptedModel(*TURNS[said:]) as model:
            return await Orchestrator(model, "scout-judge").resume(broken, pool=pool)

    again = asyncio.run(resumed())
    assert (again.answer, again.stop, len(again.rounds)) == ("8", "answered", 2)


def test_it_is_dumped_and_restored_at_every_step(pool: Pool, strategy: Strategy) -> None:
    done = run(pool, *TURNS)
    seen = {each.call_id: each for each in done.observations}
    machine = strategy.begin(TaskContext(done.question, pool.to_openai()))
    texts = list(TURNS)
    while True:
        twin = strategy.restore(json.loads(json.dumps(machine.dump())))
        assert shown(twin.step()) == shown(machine.step())
        assert twin.reading == machine.reading
        assert twin.turn_state() == machine.turn_state()
        assert twin.dump() == machine.dump() == machine.fork().dump()
        machine, step = twin, twin.step()
        if isinstance(step, Done):
            break
        if isinstance(step, Ask):
            machine.on_reply(Reply(texts.pop(0)))
        else:
            assert isinstance(step, Act)
            machine.observe([seen[f"{step.round}.{call.id}"] for call in step.plan.calls])
    assert step == Done("8", "answered")


def shown(step: Step) -> Any:
    """A step as data; plans are compared by their calls."""
    return (step.plan.to_json(), step.round, step.issues, step.writers) if isinstance(step, Act) else step


def test_it_reads_back_what_it_writes(strategy: Strategy, pool: Pool) -> None:
    machine = strategy.begin(TaskContext("?", pool.to_openai()))
    calls = [Call("double", {"number": 4}, "1"), Call("double", {"text": "a\nb"}, "2")]
    machine.on_reply(Reply(strategy.write_turn(calls, "Two\nlines.", part="scout")))
    step = machine.step()
    assert isinstance(step, Act)
    assert list(step.plan.calls) == calls
    assert machine.reading is not None
    assert (machine.reading.issues, machine.reading.thought) == ((), "Two\nlines.")
    ending = strategy.begin(TaskContext("?"))
    for text in strategy.write_answer("8", "Clear."):
        ending.on_reply(Reply(text))
    assert ending.step() == Done("8", "answered")


# -- taught ------------------------------------------------------------------------------------------------------------


def test_each_role_has_conversations_of_its_own(pool: Pool) -> None:
    data = pytest.importorskip("concertino_train.data", reason="concertino-train is absent")
    found = data.conversations_of(run(pool, *TURNS).trace)
    assert [(each.role, each.part) for each in found] == [("scout", "scout"), ("judge", "judge"), ("judge", "judge")]
    scout, first, _ = found
    assert [message.role for message in scout.messages[:4]] == ["system", "user", "assistant", "user"]
    assert [scout.faults.get(place, ()) for place in scout.own] == [
        ("unread", "stray_line", "no_decision"),
        (),
        ("unknown_name",),
    ]
    assert first.messages[-1] == Message("assistant", TURNS[2])
    exact = data.conversations_of(run(pool, *TURNS).trace, exact=True)
    assert exact[0].faults[exact[0].own[1]] == ("small_letters",)


def test_episodes_tell_what_each_text_was(pool: Pool) -> None:
    train = pytest.importorskip("concertino_train.episodes", reason="concertino-train is absent")
    from concertino_bench import Grade, Verdict

    done = run(pool, *TURNS)
    episode = train.Episode.of_run(done, Grade(Verdict.RIGHT, "8"), group="q")
    kinds = [(each.role, each.kind, each.exact) for each in episode.rounds]
    assert kinds == [
        ("scout", "unread", False),
        ("scout", "calls", False),
        ("judge", "said", True),
        ("scout", "calls", True),
        ("judge", "final", True),
    ]


def test_a_trajectory_of_several_roles_is_not_rewritten(pool: Pool) -> None:
    rewriting = pytest.importorskip("concertino_train.data.rewriting", reason="concertino-train is absent")
    with pytest.raises(rewriting.NotParallel, match="scout, judge have a conversation each"):
        rewriting.parallelised(run(pool, LOOK, "VERDICT 8").trace)


# -- a whole training --------------------------------------------------------------------------------------------------

SETTINGS: dict[str, Any] = {
    "name": "sixth",
    "model": {"new": {"layers": 1, "hidden": 16, "heads": 2, "context": 640, "vocabulary": 640}},
    "pool": {"make": {"name": "scout_judge.practice:pool"}},
    "tasks": {
        "train": [{"set": "scout-judge/twice", "options": {"count": 4}}],
        "eval": [{"set": "scout-judge/twice", "options": {"count": 2, "start": 9}}],
    },
    "data": {
        "collect": {"teacher": {"name": "scout_judge.practice:teacher"}, "samples": 1},
        "select": {"tool_share": None, "recovery": "any"},
    },
    "rollout": {
        "strategy": {"name": "scout-judge", "turns": 2, "max_unreadable_replies": 1},
        "group_size": 2,
        "turn_tokens": 6,
        "total_tokens": 24,
    },
    "reward": {"preset": "gap"},
    "algorithm": {"filters": {"homogeneity": None}},
    "trainer": {
        "device": "cpu",
        "threads": 1,
        "sft": {"steps": 2, "batch": 2, "micro_batch": 2},
        "rl": {"steps": 2, "questions_per_step": 2, "micro_batch": 4, "audit": "tell"},
    },
    "logging": {"traces": {"every": 1, "keep": 1}, "plot_every": 0},
}


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of one training."""
    pytest.importorskip("trl", reason="trl, which trains, is absent")
    return tmp_path_factory.mktemp("training")


def config(home: Path, *more: str) -> Any:
    from concertino_train.config import load_config

    return load_config(SETTINGS, [f"trainer.output={home}", *more])


@pytest.fixture(scope="module")
def collected(home: Path) -> Any:
    from concertino_train.collection import run_collection

    return run_collection(config(home))


def test_trajectories_are_collected_and_both_roles_are_taught(home: Path, collected: Any) -> None:
    from concertino_train.data import read_conversations

    assert (collected.runs, collected.right, collected.missing) == (4, 4, 0)
    taught = list(read_conversations(collected.set))
    assert sorted(each.part for each in taught) == ["judge"] * 4 + ["scout"] * 4
    assert all(len(each.train) == 1 for each in taught)


@pytest.fixture(scope="module")
def student(home: Path, collected: Any) -> Path:
    from concertino_train.sft import run_sft

    result = run_sft(config(home), sets=[collected.set])
    assert result.model is not None
    return result.model


@pytest.fixture(scope="module")
def reinforced(home: Path, student: Path) -> Any:
    from concertino_train.rl import run_rl

    return run_rl(config(home, f"model.path={student}"), output=home / "rl")


def test_it_is_reinforced(reinforced: Any) -> None:
    assert (reinforced.step, reinforced.stopped) == (2, "")
    (trace,) = (reinforced.folder / "traces" / "step-000002").glob("*.trace.jsonl")
    recorded = Trace.load(trace)
    assert recorded.setup["strategy"]["name"] == "scout-judge"
    assert isinstance(replay(recorded), Done)


def test_it_is_exported_with_its_settings(reinforced: Any, tmp_path: Path) -> None:
    from concertino_train.export import export

    exported = export(reinforced.folder, tmp_path / "out")
    assert "strategy.json" in exported.files
    written = json.loads((tmp_path / "out" / "strategy.json").read_text(encoding="utf-8"))
    strategy = installed_strategy(written["name"]).from_json(written)
    assert strategy.to_json() == {"name": "scout-judge", "turns": 2, "wide": 4, "max_unreadable_replies": 1}


def test_what_was_trained_is_evaluated(home: Path, reinforced: Any) -> None:
    from concertino_train.evaluation import run_eval

    result = run_eval(config(home, f"model.path={reinforced.model}"), output=home / "eval", traces=1)
    assert result.to_json()["tasks"] == 2


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.is_gradient_checkpointing. is deprecated:FutureWarning")
def test_its_roles_may_have_a_policy_each(home: Path) -> None:
    from concertino_train.rl import run_rl

    own = config(home, "roles.policies=lora", "model.adapter={rank: 2, targets: all-linear}", "trainer.rl.steps=1")
    result = run_rl(own, output=home / "roles", force=True)
    assert result.model is not None
    assert sorted(path.parent.name for path in result.model.glob("*/adapter_model.safetensors")) == ["judge", "scout"]


def test_what_a_training_takes_is_estimated(home: Path) -> None:
    pytest.importorskip("trl", reason="trl, which trains, is absent")
    from concertino_train.cli.estimate import estimate

    spent = estimate(config(home), "rl").spending
    assert spent.calls == 2 * 4 * 4, "turns, calls in a turn, rollouts of a step"


def test_its_turns_are_tried_as_a_tree() -> None:
    train = pytest.importorskip("concertino_train.rollouts", reason="concertino-train is absent")
    from concertino_bench.environments import oracle_of, tasks, world_of
    from concertino_train.policies import Prompt, ScriptedPolicy
    from concertino_train.rewards import Reward

    task = next(tasks("plan-path", 1, seed=3, level=5))
    moves = list(oracle_of(task)["moves"])

    def script(context: str, prompt: Prompt) -> str:
        if prompt.role == "scout":
            return "ENOUGH"
        return f"VERDICT {json.dumps(moves if prompt.seed % 3 else ['U'])}"

    reward = Reward.from_json({"name": "r", "terms": {"team": {"term": "at-grpo/team"}}})
    engine = train.RolloutEngine(ScriptedPolicy(script), limits=train.TokenLimits(turn=400, total=20_000))
    try:
        assignment = train.Assignment(task, Pool([]), installed_strategy("scout-judge")(), world=world_of)
        (rollout,) = train.TreeSampler(engine, reward).run_sync([assignment], group_size=6, seed=1)
    finally:
        engine.close()
    assert [each.key.agent for each in rollout.candidates] == ["scout"] * 6 + ["judge"] * 6
    chosen = [each.reward.total for each in rollout.candidates if each.key.agent == "judge" and each.chosen]
    assert chosen == [1.0] == [max(each.reward.total for each in rollout.candidates)]
    assert [(turn.role, turn.team) for turn in rollout.episode.turns] == [("scout", 1.0), ("judge", 1.0)]


# -- evaluated ---------------------------------------------------------------------------------------------------------


def test_it_is_evaluated_beside_others(pool: Pool, tmp_path: Path) -> None:
    bench = pytest.importorskip("concertino_bench", reason="concertino-bench is absent")
    from concertino_bench.runner import Evaluation, Selection, evaluate
    from scout_judge.practice import TWICE, Teacher

    strategy = installed_strategy("scout-judge")()
    systems = [
        bench.System("sixth", "scout-judge", Teacher(strategy)),
        bench.System("short", strategy, Teacher(strategy)),
    ]
    outcome = asyncio.run(
        evaluate(
            Evaluation([Selection(TWICE)], systems),
            pool,
            tmp_path / "results.jsonl",
            graders=bench.installed_graders(),
        )
    )
    assert [item.verdict.value for item in outcome.items] == ["right"] * 8
