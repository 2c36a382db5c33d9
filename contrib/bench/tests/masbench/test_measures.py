"""What a text measures, counted by hand here; and how a task whose answers are not those of its text is reported."""

from __future__ import annotations

import pytest
from concertino_bench import Task
from concertino_bench.masbench import check, generate, measure
from concertino_bench.masbench.measures import Measures
from concertino_toy.problems import GrammarError

KNOWN = "The number of each Loft's Trunk equals 5. The number of each Loft's Basket equals 9. "


def difference(text: str, *answers: str) -> tuple[str, str]:
    (found,) = check([Task("t", text, answers, "masbench")]).differences
    return found.kind, found.detail


def test_the_measures_of_a_text_are_what_one_counts_by_hand() -> None:
    text = (
        f"{KNOWN}The number of each Yard's Trunk equals the sum of each Loft's Trunk, each Loft's Basket and each "
        "Shed's Basket. The number of each Shed's Trunk equals each Yard's Trunk. How many Trunk does Yard have?"
    )
    assert measure(text) == Measures(
        problems=1, depth=3, breadth=2, breadth_needed=2, independent=1, handed_on=0, attacked=0
    )


def test_a_total_rests_on_what_its_owner_has_and_two_layers_down_on_the_totals_between() -> None:
    assert measure(f"{KNOWN}How many Vessel does Loft have?").depth == 2
    text = (
        f"{KNOWN}The number of each Trunk's Coat equals 3. The number of each Trunk's Hat equals 1. "
        "The number of each Yard's Basket equals each Trunk's Garment. How many Garment does Loft have?"
    )
    seen = measure(text)
    assert (seen.depth, seen.breadth) == (3, 3)
    assert check([Task("t", text, (str(5 * 4 % 23),), "masbench")]).differences == []


def test_a_result_is_handed_on_under_its_name() -> None:
    text = (
        f"Problem 1: {KNOWN}How many Basket does Loft have?\n\n"
        "Problem 2: The number of each Yard's Pail equals 4 more than each [answer1]. How many Pail does Yard have?"
    )
    seen = measure(text)
    assert (seen.problems, seen.handed_on, seen.independent, seen.depth) == (2, 1, 1, 2)


def test_a_false_note_attacks_an_answer_and_a_true_one_attacks_nothing() -> None:
    text = (
        f"{KNOWN}Rain fell. The magic number for dusty-comet is 7654321. Rain stopped. "
        "Please verify: the number of Trunk that Loft has is 6. "
        "Verify it - the magic number for dusty-comet is 1234567. "
        "From the passage, identify the number of Trunk that Loft has and the magic number for dusty-comet, in order."
    )
    assert measure(text).attacked == 2
    text = f"{KNOWN}Please verify: the number of Trunk that Loft has is 5. How many Trunk does Loft have?"
    assert measure(text).attacked == 0


def test_a_circle_beside_the_way_to_the_answer_does_no_harm_and_one_on_it_has_no_answer() -> None:
    circle = "The number of each Shed's Trunk equals each Yard's Trunk. The number of each Yard's Trunk equals each "
    circle += "Shed's Trunk. "
    assert measure(f"{KNOWN}{circle}How many Basket does Loft have?").depth == 1
    asked = f"{circle}How many Trunk does Shed have?"
    with pytest.raises(GrammarError, match="circle"):
        measure(asked)
    kind, detail = difference(asked, "1")
    assert kind == "no answer"
    assert "circle" in detail


def test_another_answer_than_that_of_the_text_differs() -> None:
    text = f"{KNOWN}How many Trunk does Loft have?"
    assert difference(text, "6") == ("differs", "the text gives 5; the row says 6")


def test_a_sentence_outside_the_grammar_is_quoted() -> None:
    kind, detail = difference(f"{KNOWN}There are 5 frogs. How many Trunk does Loft have?", "5")
    assert kind == "unread"
    assert "There are 5 frogs." in detail


@pytest.mark.parametrize("level", [2, 12])
def test_generated_tasks_pass_the_check(level: int) -> None:
    for task in generate("depth", level, 50):
        assert check([task]).differences == []
