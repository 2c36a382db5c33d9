"""The demonstration's cast: every status is seen, the answers are right, and the plugin publishes what it
says."""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
from random import Random
from typing import Any

import concertino_toy
import pytest
from concertino import Budget, Orchestrator, Pool, Run
from concertino_toy.demo import demo_members, demo_question
from concertino_toy.problems.grammar import read
from concertino_toy.problems.solver import solve
from concertino_toy.problems.writer import make_question


def published() -> list[Any]:
    hooks = (
        concertino_toy.concertino_tools,
        concertino_toy.concertino_agents,
        concertino_toy.concertino_models,
    )
    return [spec.with_(name=f"toy/{spec.name}") for hook in hooks for spec in hook()]


def boxes(run: Run) -> tuple[int, ...]:
    return tuple(int(box) for box in re.findall(r"\\boxed\{(\d+)\}", str(run.answer)))


async def conduct(question: str, members: list[Any], **options: Any) -> Run:
    return await Orchestrator("toy/leader").run(question, pool=Pool(members), **options)


@pytest.mark.slow
async def test_a_run_meets_every_kind_of_failure_and_still_ends_right() -> None:
    runs = await asyncio.gather(*(conduct(demo_question(seed)[0], demo_members(seed)) for seed in range(6)))
    assert [boxes(run) for run in runs] == [demo_question(seed)[1] for seed in range(6)]
    for run in runs:
        codes = {seen.error.code for made in run.rounds for seen in made.observations if seen.error}
        assert codes == {"invalid_arguments", "raised", "deadline"}
        assert len(run.rounds) <= 6


@pytest.mark.parametrize("kind", [{"parts": 9}, {"chained": True}, {"needle": True, "parts": 2}, {"lure": True}])
async def test_the_published_members_answer_every_kind_of_question(kind: dict[str, Any]) -> None:
    for seed in range(5):
        question, answers = make_question(Random(seed), **kind)
        assert boxes(await conduct(question, published())) == answers, f"seed {seed}"


async def test_a_small_budget_ends_with_the_answers_there_are() -> None:
    question, answers = make_question(Random(0), 4)
    run = await conduct(question, published(), budget=Budget(units=3))
    assert run.usage.units == 3
    assert str(run.answer).count("\\boxed{") == len(answers)


def test_the_question_has_four_parts_and_a_false_note() -> None:
    text, answers = demo_question(3)
    question = read(text)
    assert (len(question.problems), len(answers)) == (4, 4)
    assert len(question.problems[0].lures) == 1
    assert solve(question).answers == answers


def test_the_hooks_publish_every_member_and_the_demo_has_them_all() -> None:
    names = [spec.short_name for spec in published()]
    assert names == ["calculate", "read_problem", "combine", "solve", "swift", "steady", "sage", "leader", "conductor"]
    assert [member.name for member in demo_members()] == [f"toy/{name}" for name in names]


def test_an_installed_pool_finds_them_by_their_names() -> None:
    pool = Pool.installed("toy/*")
    assert {member.name for member in pool.members} == {member.name for member in demo_members()}


def test_importing_the_plugin_imports_none_of_its_modules() -> None:
    code = "import sys, concertino_toy; print(sorted(m for m in sys.modules if m.startswith('concertino_toy.')))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.strip() == "[]"
