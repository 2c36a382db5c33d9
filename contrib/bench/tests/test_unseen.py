"""Pools drawn at random: what changes, what stays, and how a system that knows its pool by heart is found out."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any, get_args

import concertino as ct
import pytest
from concertino.testing import ScriptedModel
from concertino_bench import Grade, System, Task, TaskSet, Verdict, text_grader
from concertino_bench.metrics.counterfactuals import Followed, followed
from concertino_bench.runner import Evaluation, Outcome, Selection, evaluate
from concertino_bench.tasks.system import with_counterfactuals
from concertino_bench.tasks.unseen import Drawn, changed_pool, parse_drawn, reworded, unseen_pool

EVERYTHING: tuple[Drawn, ...] = get_args(Drawn)
TOPICS = ("tides", "tolls", "crops", "bells", "mills", "docks")


def solver(topic: str) -> ct.ToolSpec:
    def solve(question: str) -> str:
        return "right" if topic in question else "wrong"

    return ct.tool(solve, name=f"of_{topic}", description=f"Reliable. It knows {topic}.", cost=ct.Cost(units=2))


MEMBERS = [solver(topic) for topic in TOPICS]
POOL = ct.Pool.of(*MEMBERS, ct.ModelSpec("small", lambda: ScriptedModel("?"), prices=ct.Prices(1, 4)))


def names(pool: ct.Pool) -> list[str]:
    return [spec.name for _, spec in pool.actions]


def test_equal_keys_draw_equal_pools_and_others_draw_others() -> None:
    assert unseen_pool(POOL, EVERYTHING, "a").id == unseen_pool(POOL, EVERYTHING, "a").id
    assert len({unseen_pool(POOL, EVERYTHING, key).id for key in range(20)}) == 20


@pytest.mark.parametrize(
    ("drawn", "kept"),
    [
        ("names", lambda pool: ([spec.description for _, spec in pool.actions], names(pool))),
        ("order", lambda pool: sorted((name, spec.description) for name, spec in pool.actions)),
        ("cards", lambda pool: [(name, spec.cost) for name, spec in pool.actions]),
        ("prices", lambda pool: [(name, spec.description) for name, spec in pool.actions]),
        ("skills", lambda pool: pool.models),
    ],
)
def test_only_what_was_asked_for_is_drawn(drawn: Drawn, kept: Callable[[ct.Pool], Any]) -> None:
    pools = [unseen_pool(POOL, [drawn], key) for key in range(10)]
    assert all(kept(pool) == kept(POOL) for pool in pools)
    assert len({pool.id for pool in pools}) > 5


def test_prices_of_models_change_too_and_unknown_ones_stay_unknown() -> None:
    pool = POOL.adding(ct.ModelSpec("unpriced", lambda: ScriptedModel("?")))
    drawn = unseen_pool(pool, ["prices"], 1)
    (small, unpriced) = drawn.models
    assert small.prices is not None
    assert small.prices.input != 1
    assert small.prices.output == pytest.approx(4 * small.prices.input)
    assert unpriced.prices is None


def test_two_members_stay_at_least() -> None:
    assert min(len(unseen_pool(POOL, ["skills"], key).actions) for key in range(200)) == 2


def test_other_words_keep_what_is_not_a_synonym() -> None:
    texts = {reworded("Reliable. It knows tides.", Random(key)) for key in range(60)}
    assert len(texts) > 10
    assert all("knows tides" in text for text in texts)
    assert all(re.search("reliable|dependable|trustworthy", text, re.IGNORECASE) for text in texts)


@pytest.mark.parametrize("text", ["", "names,oder", "all"])
def test_what_cannot_be_drawn_is_refused_with_what_can(text: str) -> None:
    with pytest.raises(ct.UsageError, match="expected some of names, order, cards, prices, skills"):
        parse_drawn(text)


def test_permuted_descriptions_have_new_holders_with_equal_parameters() -> None:
    def other(text: str) -> str:
        """Takes another argument."""
        return text

    pool = POOL.adding(ct.tool(other))
    changed, owners = changed_pool(pool, "cards permuted", 1)
    assert owners.pop("other") == "other"
    assert sorted(owners.values()) == sorted(owners)
    for holder, owner in owners.items():
        assert holder != owner
        assert changed[holder].description == pool[owner].description


def test_a_reversed_order_changes_nothing_else() -> None:
    changed, owners = changed_pool(POOL, "order reversed", 1)
    assert names(changed) == names(POOL)[::-1]
    assert all(holder == owner for holder, owner in owners.items())


# -- evaluations -------------------------------------------------------------------------------------------------------


def leader(choose: Callable[[str, list[dict[str, Any]]], str]) -> ct.ModelSpec:
    """A model that calls the member that `choose` names, ends, and answers with what it said."""

    def reply(request: ct.ChatRequest) -> ct.Reply:
        said = "\n".join(message.text for message in request.messages)
        if "Write the final answer" in request.messages[-1].text:
            results = re.findall(r'"content": "(right|wrong)"', said)
            return ct.Reply(f"<answer>{results[-1]}</answer>")
        if "<tool_response>" in request.messages[-1].text:
            call: dict[str, Any] = {"name": "final_answer", "arguments": {}}
        else:
            tools = [json.loads(line) for line in re.findall(r'^\{"type": "function".*\}$', said, re.MULTILINE)]
            functions = [tool["function"] for tool in tools if tool["function"]["name"] != "final_answer"]
            call = {"name": choose(said, functions), "arguments": {"question": re.findall(r"About \w+\?", said)[-1]}}
        return ct.Reply(f"<tool_call>\n{json.dumps(call)}\n</tool_call>")

    return ct.ModelSpec("leader", lambda: ScriptedModel(reply, strict=False))


def reads(said: str, functions: list[dict[str, Any]]) -> str:
    topic = re.findall(r"About (\w+)\?", said)[-1]
    return next((each["name"] for each in functions if topic in each["description"]), functions[0]["name"])


def by_heart(said: str, functions: list[dict[str, Any]]) -> str:
    return str(functions[-1]["name"])


@text_grader("right-word", "word")
def grade(task: Task, text: str) -> Grade:
    """Whether the text is the answer."""
    verdict = Verdict.RIGHT if text.strip() in task.answers else Verdict.WRONG
    return Grade(verdict, "compared", task.answers)


def load(count: int = 12) -> list[Task]:
    return [
        Task(id=f"t{number}", question=f"About {TOPICS[number % 6]}?", answers=("right",), kind="word")
        for number in range(count)
    ]


TASKS = TaskSet("topics", "Questions about topics.", load)


def evaluated(choose: Callable[[str, list[dict[str, Any]]], str], out: Path, drawn: tuple[Drawn, ...] = ()) -> Outcome:
    systems = with_counterfactuals([System("policy", model="leader")])
    evaluation = Evaluation([Selection(TASKS)], systems, unseen=drawn)
    return asyncio.run(evaluate(evaluation, POOL.adding(leader(choose)), out, graders=[grade.grader]))


def test_a_system_that_reads_is_right_on_unseen_pools_and_its_choice_follows(tmp_path: Path) -> None:
    outcome = evaluated(reads, tmp_path / "r.jsonl", ("names", "order", "cards", "prices"))
    plain = [item for item in outcome.items if item.key.system == "policy"]
    assert all(item.right for item in plain)
    assert len({item.pool for item in plain}) == len(plain)
    assert list(followed(outcome.items)) == [
        Followed("policy", "order reversed", 12, 12),
        Followed("policy", "cards permuted", 12, 12),
    ]


def test_a_system_that_goes_by_place_is_found_out(tmp_path: Path) -> None:
    figures = {each.change: each for each in followed(evaluated(by_heart, tmp_path / "r.jsonl").items)}
    assert figures["order reversed"].same == 0
    assert figures["cards permuted"].same == 0
    assert "follows the description in 0 of 12" in figures["cards permuted"].line()


def test_an_evaluation_of_other_draws_is_another_one(tmp_path: Path) -> None:
    evaluated(reads, tmp_path / "r.jsonl", ("names",))
    with pytest.raises(ct.UsageError, match="what differs: unseen;"):
        evaluated(reads, tmp_path / "r.jsonl", ("order",))


def test_tasks_can_be_given_to_systems_in_turn(tmp_path: Path) -> None:
    systems = [System(name, model="leader") for name in ("one", "other")]
    evaluation = Evaluation([Selection(TASKS)], systems, in_turn=True)
    pool = POOL.adding(leader(reads))
    outcome = asyncio.run(evaluate(evaluation, pool, tmp_path / "r.jsonl", graders=[grade.grader]))
    assert outcome.total == len(outcome.items) == 12
    assert [item.key.system for item in sorted(outcome.items, key=lambda item: int(item.key.task[1:]))] == [
        "one",
        "other",
    ] * 6
