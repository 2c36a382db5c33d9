"""Questions of the practice domain: written, read again, split, and answered."""

from __future__ import annotations

from itertools import islice
from typing import Any

import pytest
from concertino_bench import installed_graders
from concertino_bench.runner import choose_graders
from concertino_toy.practice.facts import fact, rumour
from concertino_toy.practice.questions import about, read_question, solve
from concertino_toy.practice.words import ASKS, ASKS_TWIN, TOPICS, TWIN, every_place, places, places_in
from concertino_train.practice import LEVELS, task_sets, tasks


def all_tasks(**options: Any) -> list[Any]:
    return [task for kind in LEVELS for task in tasks(kind, 60, **options)]


@pytest.mark.parametrize("split", ["train", "test"])
def test_a_question_is_read_as_the_parts_that_answer_it(split: Any) -> None:
    for task in all_tasks(split=split, seed=3):
        parts = read_question(task.question)
        assert len(parts) == task.level
        assert solve(parts) == task.answers
        assert all(len(answer) == 2 and answer.isdecimal() for answer in task.answers)


def test_a_task_depends_on_its_options_and_its_index_alone() -> None:
    first, again = list(tasks("mixed", 20, seed=1)), list(islice(tasks("mixed", None, seed=1), 20))
    assert first == again
    assert list(tasks("mixed", 5, seed=1, start=10)) == first[10:15]
    assert [task.question for task in tasks("mixed", 20, seed=2)] != [task.question for task in first]


def test_the_splits_share_no_place_that_is_named_and_no_template() -> None:
    assert not set(places("train")) & set(places("test"))
    assert len(places("train")) + len(places("test")) == len(every_place())
    for templates in (ASKS, ASKS_TWIN):
        assert not set(templates["train"]) & set(templates["test"])
    for task in all_tasks(split="test"):
        assert set(places_in(task.question)) <= set(places("test"))


def test_the_graders_that_are_installed_take_every_task() -> None:
    chosen = choose_graders(all_tasks(), installed_graders())
    assert {grader.name for grader in chosen.values()} == {"multi-answer"}


def test_there_is_a_set_for_each_kind_and_one_for_all() -> None:
    sets = {each.name: each for each in task_sets()}
    assert list(sets) == ["practice/facts", "practice/chain", "practice/fork", "practice/mixed"]
    assert [task.level for task in sets["practice/facts"].load(level=2, count=3)] == [2, 2, 2]
    assert len({task.axis for task in sets["practice/mixed"].load(count=12)}) == 3


@pytest.mark.parametrize(
    ("options", "named"),
    [({"kind": "facets"}, "facts, chain, fork or mixed"), ({"level": 9}, "level"), ({"split": "dev"}, "split"),
     ({"count": -1}, "count"), ({"topics": ["toll"]}, "at least 3"), ({"topics": ["toll", "tide", "x"]}, "at least 3")],
)  # fmt: skip
def test_an_option_out_of_range_is_refused_before_anything_is_made(options: dict[str, Any], named: str) -> None:
    with pytest.raises(ValueError, match=named):
        tasks(**options)


def test_a_rumour_is_never_the_fact() -> None:
    for topic in (*TOPICS, TWIN):
        for place in every_place()[::23]:
            assert rumour(topic, place) != fact(topic, place)


@pytest.mark.parametrize(
    ("text", "topic", "expected"),
    [
        ("1. What is the toll of Belmar?", "toll", ("toll", "Belmar")),
        ("2. What is the toll of that place? Dunrick", "toll", ("toll", "Dunrick")),
        ("toll of Dunrick", "", ("toll", "Dunrick")),
        ("Dunrick", "toll", ("toll", "Dunrick")),
        ("1. The toll of Belmar?\n\n2. The tide of Dunrick?", "tide", ("tide", "Dunrick")),
        ("Original task: 1. The toll of Belmar?\n\n2. The tide of Dunrick?\n\nCurrent sub-task: tide", "tide",
         ("tide", "Dunrick")),
        ("Original task: 1. The twin of Belmar?\n\n2. The tide of that place?\n\nCurrent sub-task: tide of Dunrick",
         "tide", ("tide", "Dunrick")),
        ("1. The twin of Belmar?\n\n2. The tide of that place?", "tide", ("tide", "")),
        ("nothing", "", ("", "")),
    ],
)  # fmt: skip
def test_a_member_reads_what_it_is_asked(text: str, topic: str, expected: tuple[str, str]) -> None:
    assert about(text, topic) == expected
