"""Two ways to an answer that share no code: while writing, and concertino-toy's solver, which reads the text.

Every text is measured too: it has the depth, breadth and so on that was asked for.

1,100 questions of all axes, levels and splits; CONCERTINO_FUZZ is the number.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from concertino_bench.masbench import generate, measure
from concertino_bench.masbench.generator import AXES, LEVELS, SPLITS, Axis
from concertino_bench.masbench.measures import Measures
from concertino_toy.problems import read, solve

QUESTIONS = int(os.environ.get("CONCERTINO_FUZZ", "1100"))


def requested(axis: Axis, seen: Measures) -> set[int]:
    """What the level of an axis is held against; one number if the text is as it should be."""
    return {
        "depth": {seen.depth},
        "horizon": {seen.problems, seen.handed_on + 1},
        "breadth": {seen.breadth, seen.breadth_needed},
        "parallel": {seen.problems, seen.independent},
        "robustness": {seen.attacked},
    }[axis]


@pytest.mark.slow
@pytest.mark.timeout(900)  # CONCERTINO_FUZZ may ask for a lot
@pytest.mark.parametrize("axis", AXES)
def test_the_generator_and_the_solver_agree_and_the_level_is_met(axis: Axis) -> None:
    each = -(-QUESTIONS // (len(AXES) * len(LEVELS) * len(SPLITS)))
    seen = 0
    for level in LEVELS:
        for split in SPLITS:
            for task in generate(axis, level, each, seed=1000 + level, split=split):
                assert tuple(map(str, solve(read(task.question)).answers)) == task.answers, task.question
                assert requested(axis, measure(task.question)) == {level}, task.question
                seen += 1
    assert seen * len(AXES) >= QUESTIONS


@pytest.fixture(scope="module")
def published(shared_data: Path) -> dict[str, tuple[str, str]]:
    """The examples that the paper prints, by axis: the question and the recorded answer."""
    files = list((shared_data.parent / "papers").glob("*masbench*.txt"))
    if not files:
        pytest.skip(f"{shared_data.parent / 'papers'} has no text of the MASBENCH paper")
    text = files[0].read_text(encoding="utf-8")
    text = text[text.index("A.1.2. EXAMPLE") : text.index("A.2. Public Benchmarks")]
    text = re.sub(r"(?<=\w)\n+(?=each )", " ", text)  # a page ends inside a sentence
    parts = re.split(r"\n(Depth|Horizon|Breadth|Parallel|Robustness)\*{0,2}(?:Question\*\*)?\n", text)
    examples = zip(parts[1::2], parts[2::2], strict=True)
    split = {axis.lower(): body.partition("\nAnswer\n") for axis, body in examples}
    return {axis: (question.split("Question", 1)[-1], answer.strip()) for axis, (question, _, answer) in split.items()}


def test_the_published_examples_are_read_and_the_recorded_answers_found(
    published: dict[str, tuple[str, str]],
) -> None:
    found = {axis: solve(read(question)).answers for axis, (question, _) in published.items()}
    assert len(found) == 5
    recorded = {axis: answer for axis, (_, answer) in published.items() if answer.isdecimal()}
    assert set(recorded) == {"depth", "breadth"}
    assert {axis: str(*found[axis]) for axis in recorded} == recorded
    assert [len(found[axis]) for axis in ("horizon", "parallel", "robustness")] == [4, 4, 4]


def test_the_published_examples_have_the_level_4_that_the_paper_says(published: dict[str, tuple[str, str]]) -> None:
    seen = {axis: measure(question) for axis, (question, _) in published.items()}
    assert seen["depth"].depth == 4
    assert seen["horizon"].handed_on + 1 == 4
    assert seen["breadth"].breadth == 4
    assert seen["parallel"].independent == 4
    assert seen["robustness"].attacked == 3, "its last sub-task has no note after it"
