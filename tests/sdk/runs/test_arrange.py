"""An orchestrator may make the pool of each run from its question."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import concertino as ct
import pytest
from concertino.testing import ScriptedModel

from .conftest import FINAL, round_of
from .test_resume import cut_after


@ct.tool
def double(number: int) -> int:
    """Double a number."""
    return 2 * number


@ct.tool
def triple(number: int) -> int:
    """Triple a number."""
    return 3 * number


@ct.tool
def halve(number: int) -> float:
    """Halve a number."""
    return number / 2


POOL = ct.Pool.of(double, triple, halve)
TURNS = round_of(("triple", {"number": 2})), FINAL, "<answer>\\boxed{6}</answer>"


def led(arrange: Callable[[str, ct.Pool], Any], **options: Any) -> ct.Orchestrator:
    return ct.Orchestrator(ScriptedModel(*TURNS), arrange=arrange, **options)


def by_question(question: str, pool: ct.Pool) -> ct.Pool:
    return pool.arranged(["triple", "double"] if "thrice" in question else ["halve"])


def offered(run: ct.Run) -> list[str]:
    return [name for name in run.trace.setup["members"] if name in ("double", "triple", "halve")]


async def test_a_run_gets_the_members_that_were_chosen_for_its_question_in_their_order() -> None:
    run = await led(by_question).run("Two thrice?", pool=POOL)
    assert run.answer == "\\boxed{6}"
    assert offered(run) == ["triple", "double"]


async def test_what_was_left_out_cannot_be_called() -> None:
    run = await led(by_question).run("Half of two?", pool=POOL, budget=ct.Budget(rounds=2))
    assert not any(seen.ok for seen in run.observations)


async def test_a_stepped_run_is_arranged_too() -> None:
    async with ct.Executor() as executor:
        stepped = led(by_question, executor=executor).stepped("Two thrice?", pool=POOL)
        assert offered(stepped.collect()) == ["triple", "double"]


async def test_a_resumed_run_keeps_its_members_whatever_would_be_chosen_now(tmp_path: Path) -> None:
    run = await led(by_question).run("Two thrice?", pool=POOL, trace=tmp_path)
    assert run.path is not None
    cut = cut_after(run.path, "result")
    resumed = await led(lambda question, pool: pool.arranged(["halve"])).resume(cut, pool=POOL)
    assert (resumed.answer, offered(resumed)) == ("\\boxed{6}", ["triple", "double"])


async def test_what_is_not_a_pool_is_refused() -> None:
    with pytest.raises(ct.UsageError, match=r"returned \['triple'\]; expected a Pool, such as pool\.arranged\(names\)"):
        await led(lambda question, pool: ["triple"]).run("?", pool=POOL)
