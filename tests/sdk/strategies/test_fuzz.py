"""Half a second of the fuzzer per reader; `python -m tests.sdk.strategies.fuzzing --seconds 600`: ten minutes."""

from __future__ import annotations

from typing import Any

import pytest
from concertino.strategies import TaskContext
from concertino.strategies.parallel_rounds import ParallelRounds
from concertino.strategies.parallel_rounds.strategy import ParallelRoundsMachine

from tests.sdk.strategies.fuzzing import Case, cases, fuzz, places


@pytest.mark.slow
@pytest.mark.parametrize("case", [case for group in cases().values() for case in group], ids=lambda case: case.name)
def test_no_mutated_text_makes_a_reader_fail(case: Case) -> None:
    assert list(fuzz(case, 0.5, longest=50_000, least=50)) == []


class Fragile(ParallelRoundsMachine):
    """Cannot stand a certain piece of text."""

    def on_reply(self, reply: Any) -> None:
        if "</reasoning></reasoning>" in reply.text:
            raise RecursionError("twice")
        super().on_reply(reply)


class FragileRounds(ParallelRounds):
    def begin(self, context: TaskContext) -> Fragile:
        return Fragile(self, context)


def test_a_fault_of_a_reader_is_found_and_its_text_is_shown() -> None:
    case = Case("fragile", FragileRounds(), TaskContext("?"), ["<reasoning>a</reasoning>"])
    fault = next(fuzz(case, 60.0))
    assert "RecursionError: twice" in fault
    assert "</reasoning></reasoning>" in fault


def test_new_places_of_the_reader_are_noticed() -> None:
    from random import Random

    (case, *_) = cases()["parallel-rounds"]
    plain = places(case, "nothing", Random(0))
    assert places(case, '<tool_call>{"name": "solve"}</tool_call>', Random(0)) - plain
    assert not places(case, "nothing", Random(0)) - plain
