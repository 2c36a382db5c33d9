"""The trained model at work: it answers what it never saw, asks somebody else after a failure, and its card says so."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path
from random import Random

import pytest
from concertino import Budget, CallFailed, Orchestrator, Pool, Run, Status, ToolSpec, tool
from concertino_toy.conductor import TINY, TinyConductor, strategy
from concertino_toy.demo import demo_members, demo_question

CARD = TINY.parent / "MODEL_CARD.md"
QUESTION = "Problem 1: How many sails has the Aurora?\n\nProblem 2: How deep is the quay, in metres?"
ANSWERS = {"Aurora": "17", "quay": "4"}


def boxes(run: Run) -> list[str]:
    return re.findall(r"\\boxed\{([^{}]*)\}", run.answer or "")


async def led(question: str, pool: Pool, **settings: object) -> Run:
    leader = Orchestrator(TinyConductor(), strategy(**settings))
    return await leader.run(question, pool=pool, budget=Budget(rounds=8, calls=40, seconds=60))


def harbour(*failures: str) -> Pool:
    """A pool of two, each of whom knows the harbour; those named fail in their first call."""
    asked: Counter[str] = Counter()

    def told(who: str, question: str) -> str:
        asked[who] += 1
        if who in failures and asked[who] == 1:
            raise CallFailed.because("the line is dead", code="unavailable")
        return f"I looked it up. The answer is {next(ANSWERS[word] for word in ANSWERS if word in question)}."

    @tool
    def pilot(question: str) -> str:
        """Answers questions of every kind, cheap and quick."""
        return told("pilot", question)

    @tool
    def warden(question: str) -> str:
        """Answers questions of every kind, slow but careful."""
        return told("warden", question)

    return Pool.of(pilot, warden)


async def test_it_hands_the_problems_out_at_once_and_copies_the_answers() -> None:
    run = await led(QUESTION, harbour())
    assert (run.stop, boxes(run)) == ("answered", ["17", "4"])
    assert len(run.rounds) == 1
    assert all(seen.ok for seen in run.observations)


@pytest.mark.parametrize("members", [4, 20])
async def test_long_names_large_pools_and_answers_of_three_digits_do_no_harm(members: int) -> None:
    words = ("river", "north", "quiet", "amber", "stone", "maple", "harbor", "violet", "copper", "winter", "meadow")
    rng = Random(members)
    for number in rng.sample(range(100, 1000), 4):
        names = [f"{'_'.join(rng.sample(words, 3))}_{place}" for place in range(members)]
        pool = Pool([knowing(name, f"The answer is {number}.") for name in names])
        run = await led("How many eggs does Ada have after 12 days?", pool)
        assert (run.stop, boxes(run)) == ("answered", [str(number)])
        assert all(seen.ok for seen in run.observations)


def knowing(name: str, reply: str) -> ToolSpec:
    properties = {"task": {"type": "string"}}
    schema = {"type": "object", "properties": properties, "required": ["task"], "additionalProperties": False}
    return ToolSpec.from_schema(name, "Answers questions of any kind.", schema, lambda arguments: reply)


async def test_after_a_failure_it_asks_again_and_ends_right() -> None:
    run = await led(QUESTION, harbour("warden"))
    assert (run.stop, boxes(run)) == ("answered", ["17", "4"])
    assert [seen.status for seen in run.observations].count(Status.EXEC_ERR) == 1
    assert len(run.rounds) == 2


async def test_it_answers_a_question_of_the_demonstration_and_repairs_what_breaks_there() -> None:
    question, answers = demo_question(0)
    run = await led(question, Pool(demo_members(0)).without("toy/leader"))
    assert boxes(run) == [str(answer) for answer in answers]
    assert {seen.status for seen in run.observations} >= {Status.OK, Status.TIMEOUT}


def test_the_card_says_what_the_record_of_the_training_says() -> None:
    text = CARD.read_text(encoding="utf-8")
    record = json.loads((TINY / "training.json").read_text(encoding="utf-8"))
    first = record["before"]
    assert first["before"] is None, "the card tells of two commands"
    assert TinyConductor().transformer.parameters == record["parameters"]
    assert f"{record['parameters']:,} parameters" in text
    assert f"{record['vocabulary']:,} tokens" in text
    rows = text.partition("| Rows | Steps |")[2].splitlines()[2:4]
    for row, of in zip(rows, (first, record), strict=True):
        cells = [float(cell.replace(",", "")) for cell in row.strip("|").split("|")]
        assert cells == [of[key] for key in ("rows", "steps", "tokens", "cpu_seconds", "loss")]
        assert f"--seconds {of['arguments']['seconds']:.0f} --rows {of['arguments']['rows']}" in text
    size = sum(file.stat().st_size for file in TINY.iterdir())
    assert f"{size / 2**20:.1f} MiB" in text


def test_what_is_shipped_names_no_place_of_a_machine() -> None:
    for file in (CARD, TINY / "training.json", TINY / "config.json", TINY / "tokenizer_config.json"):
        assert not re.search(r"/(?:tmp|home|root|work)/", Path(file).read_text(encoding="utf-8")), file
