"""The demonstration's cast: every status is seen, the answers are right, and the plugin publishes what it
says."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from typing import Any

import concertino_sim
from concertino_sim.demo import demo_members, demo_question
from concertino_sim.grammar import read
from concertino_sim.solver import solve


async def test_a_run_meets_every_status_and_still_ends_right(stage: Any) -> None:
    runs = [stage(demo_members(seed)) for seed in range(8)]
    found = await asyncio.gather(*(run.run(demo_question(seed)[0]) for seed, run in enumerate(runs)))
    assert found == [[str(answer) for answer in demo_question(seed)[1]] for seed in range(8)]
    for run in runs:
        seen = {status for statuses in run.statuses for status in statuses}
        assert seen == {"OK", "PARSE_ERR", "EXEC_ERR", "TIMEOUT"}
        assert len(run.statuses) <= 6


def test_the_question_has_four_parts_and_a_false_note() -> None:
    text, answers = demo_question(3)
    question = read(text)
    assert (len(question.problems), len(answers)) == (4, 4)
    assert len(question.problems[0].lures) == 1
    assert solve(question).answers == answers


def test_the_hooks_publish_every_member() -> None:
    published = [
        *concertino_sim.concertino_tools(),
        *concertino_sim.concertino_agents(),
        *concertino_sim.concertino_models(),
    ]
    names = [spec.name for spec in published]
    assert names == ["calculate", "read_problem", "solve", "swift", "steady", "sage", "conductor"]
    assert sorted(member.name for member in demo_members()) == sorted(f"sim/{name}" for name in names)


def test_importing_the_plugin_imports_none_of_its_modules() -> None:
    code = (
        "import sys, concertino_sim; print(sorted(m for m in sys.modules if m.startswith('concertino_sim.')))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.strip() == "[]"
