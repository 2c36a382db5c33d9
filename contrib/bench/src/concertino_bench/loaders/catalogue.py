"""The loaders as task sets: what the hook `concertino_tasks` offers of them."""

from __future__ import annotations

from concertino_bench.tasks.task import TaskSet

from . import choices, competitions, function_calls, grade_school, multihop, orchestration, own, plans, programs


def task_sets() -> list[TaskSet]:
    """One task set per loader; each reads the file that its keyword `path` names."""
    return [
        TaskSet("2wiki", "2WikiMultihopQA: questions that need several facts.", multihop.two_wiki),
        TaskSet("aime", "AIME: competition problems with answers from 0 to 999.", competitions.aime),
        TaskSet("amc", "AMC: competition problems with numbers as answers.", competitions.amc),
        TaskSet("asynchow", "AsyncHow: the shortest time of an everyday plan.", plans.asynchow),
        TaskSet("bamboogle", "Bamboogle: two-hop questions, no paragraphs.", multihop.bamboogle),
        TaskSet("bfcl", "BFCL: which functions to call, with what.", function_calls.bfcl, function_calls.world),
        TaskSet("fanoutqa", "FanOutQA: questions that fan out over many pages.", multihop.fanoutqa),
        TaskSet("gap", "GAP: recorded traces and training rows.", orchestration.gap),
        TaskSet("gsm8k", "GSM8K: grade-school mathematics.", grade_school.gsm8k),
        TaskSet("hotpotqa", "HotpotQA: questions that need two facts.", multihop.hotpotqa),
        TaskSet("humaneval", "HumanEval: Python functions to complete, with tests.", programs.humaneval),
        TaskSet("jsonl", "A file of your own, its columns named by keywords or TOML.", own.jsonl),
        TaskSet("masbench-rows", "MASBench: published rows.", orchestration.masbench_rows),
        TaskSet("math", "MATH and MATH-500: problems with LaTeX answers.", competitions.math),
        TaskSet("mbpp", "MBPP: short Python programs, with tests.", programs.mbpp),
        TaskSet("mmlu-pro", "MMLU-Pro: questions with up to ten options.", choices.mmlu_pro),
        TaskSet("musique", "MuSiQue: questions that need two to four facts.", multihop.musique),
        TaskSet(
            "toolorchestra", "ToolOrchestra: questions with tools, prices and preferences.", orchestration.toolorchestra
        ),
    ]
