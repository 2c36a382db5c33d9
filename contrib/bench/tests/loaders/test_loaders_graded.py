"""Loaded tasks and the graders of their kinds fit: gold, as a solver might write it, is right; silence is not."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
from concertino_bench import Submission, Task, Verdict, loaders
from concertino_bench.graders import all_graders
from concertino_bench.loaders import function_calls

GRADERS = {kind: grader for grader in all_graders() for kind in grader.kinds}


def number(task: Task) -> str:
    return f"Let us see.\n#### {task.metadata.get('gold', task.answer)}"


def boxed(task: Task) -> str:
    return f"So it is $\\boxed{{{task.answer}}}$."


def letter(task: Task) -> str:
    return f"The answer is ({task.answer})."


def said(task: Task) -> str:
    return f"<answer>{task.answer}</answer>"


def table(task: Task) -> str:
    if "keys" in task.metadata:
        return json.dumps(dict(zip(task.metadata["keys"], task.answers, strict=True)), ensure_ascii=False)
    return json.dumps([*reversed(task.answers)], ensure_ascii=False) if task.kind == "answers" else said(task)


CASES: list[tuple[str, str, Callable[[Task], str], float]] = [
    ("gsm8k", "gsm8k/test_400.jsonl", number, 1.0),
    ("math", "math500/math_250.jsonl", boxed, 1.0),
    ("mmlu-pro", "mmlu_pro_outputs/outputs.jsonl", letter, 1.0),
    ("hotpotqa", "hotpotqa/items_150.jsonl", said, 1.0),
    ("bamboogle", "multihop_questions/bamboogle.jsonl", said, 1.0),
    ("asynchow", "asynchow/plans.jsonl", number, 1.0),
    ("fanoutqa", "fanoutqa/dev_120.jsonl", table, 0.95),
]
SETS = {each.name: each for each in loaders.task_sets()}


async def verdicts(tasks: Iterable[Task], write: Callable[[Task], str]) -> list[tuple[Task, Verdict]]:
    bench: Any = None  # these graders ask nothing of the pool
    graded = [(task, await GRADERS[task.kind].grade(task, Submission(write(task)), bench)) for task in tasks]
    return [(task, grade.verdict) for task, grade in graded]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "path", "write", "share"), CASES, ids=[case[0] for case in CASES])
async def test_gold_is_right_and_silence_is_not(
    name: str, path: str, write: Callable[[Task], str], share: float, shared_data: Path
) -> None:
    tasks = list(SETS[name].load(path=shared_data / path))
    seen = await verdicts(tasks, write)
    right = sum(verdict is Verdict.RIGHT for _, verdict in seen)
    assert right >= share * len(tasks), [task.id for task, verdict in seen if verdict is not Verdict.RIGHT][:9]
    silent = await verdicts(tasks[:20], lambda task: "I do not know.")
    assert not any(verdict is Verdict.RIGHT for _, verdict in silent)


@pytest.mark.filterwarnings("ignore::concertino_bench.loaders.DataWarning")
async def test_the_first_accepted_values_of_bfcl_are_the_right_calls(shared_data: Path) -> None:
    bench: Any = None
    wrong, count = [], 0
    for category in ("simple_python", "multiple", "parallel", "parallel_multiple", "live_parallel", "live_simple"):
        for task in function_calls.bfcl(path=shared_data / "bfcl" / f"{category}.jsonl"):
            calls = [
                {"name": name, "arguments": first_values(accepted), "status": "OK"}
                for call in task.metadata["ground_truth"]
                for name, accepted in call.items()
            ]
            count += 1
            grade = await GRADERS["calls"].grade(task, Submission("", calls), bench)
            fewer = await GRADERS["calls"].grade(task, Submission("", calls[1:]), bench)
            assert fewer.verdict is not Verdict.RIGHT
            wrong += [] if grade.verdict is Verdict.RIGHT else [(task.id, grade.reason)]
    assert count == 200 + 100 + 100 + 100 + 8 + 129
    assert not wrong, wrong[:5]


def first_values(accepted: Any) -> Any:
    """The first accepted value of every argument that may not be left out, also inside objects."""
    return {
        name: plain(next((v for v in values if v != ""), [])) for name, values in accepted.items() if "" not in values
    }


def plain(value: Any) -> Any:
    if isinstance(value, dict) and value and all(isinstance(each, list) for each in value.values()):
        return first_values(value)
    return [plain(each) for each in value] if isinstance(value, list) else value
