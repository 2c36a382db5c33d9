"""The graders against recorded outputs and verdicts; each test writes its figures, `pytest -s` shows them."""

from __future__ import annotations

import asyncio
import copy
import json
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from changed_golds import right_answers, wrong_answers
from concertino_bench import Submission, Task, Verdict
from concertino_bench.graders import (
    CallMatch,
    ChoiceGrader,
    ExactMatch,
    Mathematics,
    Numeric,
    TokenF1,
    UnitTests,
    agreement,
)
from concertino_bench.graders.call_reading import read_calls
from concertino_bench.graders.choice import read_letter
from concertino_bench.toolkits import digest

Rows = Callable[[str], list[dict[str, Any]]]
NOT_REPRODUCIBLE = {"HumanEval/133", "mbpp_724", "mbpp_170", "mbpp_798", "mbpp_419", "mbpp_598", "mbpp_67"}
"""Programs whose record does not hold under plain Python 3.11 either, as the data's own notes say."""

NO_LETTER = ("I cannot provide an answer", "(None of the above)")


def say(text: str) -> None:
    sys.stdout.write(f"\n{text}")


def task(kind: str, *answers: str, **metadata: Any) -> Task:
    return Task("t", "?", answers, kind, metadata=metadata)


def test_every_recorded_gsm8k_output_gets_openais_own_verdict(rows: Rows) -> None:
    recorded = rows("gsm8k/model_solutions.jsonl")
    differ = [
        row["id"]
        for row in recorded
        if (Numeric().judge(task("number", row["gold"]), row["output"]).verdict == "right")
        != row["upstream_is_correct"]
    ]
    say(f"GSM8K: {len(recorded) - len(differ)} of {len(recorded)} recorded outputs agree")
    assert len(recorded) >= 800
    assert differ == []


def test_six_models_on_gsm8k_get_the_repaired_verdicts(rows: Rows) -> None:
    """All but one: there the text reads `-<<…>>12`, and its last number is -12, which the record takes for 12."""
    seen = [
        (f"{row['question_id']} {model}", Numeric().judge(task("number", row["gold"]), done["output"]), done)
        for row in rows("replay_pool_gsm8k/pool.jsonl")
        for model, done in row["models"].items()
    ]
    differ = [(name, grade.reason) for name, grade, done in seen if bool(grade.score) != done["numeric_correct"]]
    say(f"GSM8K, six models: {len(seen) - len(differ)} of {len(seen)} agree; {differ}")
    assert [reason for _, reason in differ] in ([], ["-12, expected 12"])


def test_fireact_answers_get_the_recorded_exact_match_and_f1(rows: Rows) -> None:
    recorded = rows("fireact/qa_em_f1.jsonl")
    for row in recorded:
        values = ExactMatch().judge(task("text", row["gold"]), row["pred"]).values
        assert bool(values.get("em", 0.0)) == row["em"], row
        assert values.get("f1", 0.0) == pytest.approx(row["f1"]), row
    say(f"FireAct: EM and F1 of {len(recorded)} of {len(recorded)} answers agree")


@pytest.mark.slow
def test_at_least_98_per_cent_of_firm_pairs_of_mathematics_agree(rows: Rows) -> None:
    grader = Mathematics(seconds=20)
    seen = [(row, grader.judge(task("math", row["gold"]), row["pred"])) for row in rows("math_equivalence/pairs.jsonl")]
    firm = [(row, grade) for row, grade in seen if row["firm"]]
    differ = [(row, grade) for row, grade in firm if bool(grade.score) != row["equal"]]
    say(f"mathematics: {len(firm) - len(differ)} of {len(firm)} firm pairs agree")
    for row, grade in seen:
        if bool(grade.score) != row["equal"]:
            say(f"  {'firm' if row['firm'] else 'a convention'}: {row['id']} {row['tags']}: {grade.reason}")
    assert len(firm) > 100
    assert len(differ) <= 0.02 * len(firm)


@pytest.mark.slow
def test_no_changed_gold_is_right_and_every_gold_is_in_every_form(rows: Rows, shared_data: Path) -> None:
    rows("math500/math_250.jsonl")  # skips where the data is not there
    own, both = Mathematics(judge="own"), Mathematics(20)
    wrong = wrong_answers(shared_data, at_least=4000)
    for gold, text in wrong:
        grade = own.judge(task("math", gold), text)
        assert grade.verdict == "wrong", (gold, text, grade)
    for gold, text in wrong[::100]:
        assert both.judge(task("math", gold), text).verdict == "wrong", (gold, text)
    golds = right_answers(shared_data)
    missed = [(gold, text) for gold, text in golds if own.judge(task("math", gold), text).verdict != "right"]
    say(f"mathematics: {len(wrong)} changed golds are wrong, {len(golds) - len(missed)} of {len(golds)} golds right")
    assert len(missed) <= 0.02 * len(golds), missed


@pytest.mark.slow
def test_sampled_solutions_of_mathematics_get_the_recorded_verdicts(rows: Rows) -> None:
    grader = Mathematics(seconds=20)
    seen = [
        (grader.judge(task("math", row["gt"]), output), score)
        for row in rows("math_samples_8/part_a.jsonl")
        for output, score in zip(row["outputs"], row["score"], strict=True)
    ]
    differ = [grade.reason for grade, score in seen if bool(grade.score) != score]
    say(f"MATH samples: {len(seen) - len(differ)} of {len(seen)} verdicts agree {differ}")
    assert differ == []


def test_every_gold_answer_of_math_500_is_right_in_a_box(rows: Rows) -> None:
    grader = Mathematics(seconds=20)
    golds = [row["answer"] for row in rows("math500/math_250.jsonl")]
    wrong = [gold for gold in golds if grader.judge(task("math", gold), f"So $x = 1$.\n\\boxed{{{gold}}}").score != 1]
    say(f"MATH-500: {len(golds) - len(wrong)} of {len(golds)} golds are right against themselves")
    assert wrong == []


def test_letters_of_recorded_outputs_are_found_in_at_least_99_per_cent(rows: Rows) -> None:
    recorded = rows("mmlu_pro_outputs/outputs.jsonl")
    seen = [(row, *read_letter(row["output"], row["options"])) for row in recorded]
    lettered = [(row, ours) for row, ours, _ in seen if row["upstream_pred"] is not None]
    same = sum(row["upstream_pred"] == ours for row, ours in lettered)
    silent = [(row, ours, how) for row, ours, how in seen if row["upstream_pred"] is None]
    more = Counter(how if ours else "no letter" for _, ours, how in silent)
    say(f"MMLU-Pro: {same} of {len(lettered)} letters as upstream; where upstream found none: {dict(more)}")
    # Two outputs choose no letter; upstream takes the I of "I cannot" and an A of "None of the above" for one.
    guessed = sum(not ours and any(words in row["output"] for words in NO_LETTER) for row, ours in lettered)
    assert guessed <= 0.02 * len(lettered)
    assert same >= 0.99 * (len(lettered) - guessed)
    assert all(how in ("by its words", "said to be the answer") for _, ours, how in silent if ours)
    graded = Counter(
        ChoiceGrader().judge(task("choice", row["answer"], choices=row["options"]), row["output"]).verdict
        for row in recorded
    )
    say(f"  verdicts {dict(graded)}")
    assert graded["unparsable"] <= len(silent) + 2


@pytest.mark.slow
def test_firm_mint_answers_get_their_verdict(rows: Rows) -> None:
    graders = {"gsm8k": Numeric(), "math": Mathematics(20), "theoremqa": Mathematics(20), "hotpotqa": ExactMatch()}
    count = Counter[str]()
    for row in rows("mint_bench/graded_answers.jsonl"):
        grade = graders[row["task"]].judge(task("any", row["reference"]), row["prediction"])
        same = bool(grade.score) == row["strict_equal"]
        count[f"{'firm' if row['firm'] else 'loose'} {'same' if same else 'other'}"] += 1
        assert same or not row["firm"], (row, grade)
    say(f"MINT: {dict(count)}")


def test_strict_and_lenient_words_against_a_recorded_judge(rows: Rows) -> None:
    """Every disagreement of exact match is among the rows, few agreements are: the shares are not those of all."""
    recorded = rows("qa_judge_verdicts/pairs.jsonl")
    given = [row["judge_correct"] for row in recorded]
    for row in recorded:
        found = ExactMatch().judge(task("text", row["gold"]), row["pred"])
        assert bool(found.score) == row["em"], row
    for name, grader in (("exact match", ExactMatch()), ("F1 >= 0.5", TokenF1(0.5))):
        seen = agreement([grader.judge(task("text", row["gold"]), row["pred"]).verdict for row in recorded], given)
        say(f"R1-Searcher, {name}: {seen}")
        expected = {"exact match": (63, 1, 111, 34), "F1 >= 0.5": (155, 5, 19, 30)}[name]
        assert (seen.both_right, seen.too_lenient, seen.too_strict, seen.both_wrong) == expected
    contained = [
        ExactMatch().judge(task("text", row["gold"]), row["pred"]).values.get("containment", 0) for row in recorded
    ]
    same = sum(bool(value) == right for value, right in zip(contained, given, strict=True))
    say(f"R1-Searcher, containment: {same} of {len(given)}")
    assert same == 173


def test_search_traces_are_graded_by_what_the_model_says_and_not_by_what_it_found(rows: Rows) -> None:
    traces = rows("qa_judge_verdicts/search_traces_40.jsonl")
    for row in traces:
        whole = ExactMatch().judge(task("text", row["gold"]), row["trace"])
        alone = ExactMatch().judge(task("text", row["gold"]), row["pred"])
        assert whole.verdict == alone.verdict, (row["id"], whole, alone)


def test_the_hash_of_a_published_data_base_is_the_published_one(rows: Rows, shared_data: Any) -> None:
    folder = shared_data / "tau_bench_airline"
    if not folder.is_dir():
        pytest.skip(f"{folder} is not there")
    tables = {name: json.loads((folder / f"{name}.json").read_text()) for name in ("flights", "reservations", "users")}
    assert digest(tables).startswith("4a02dcbc0e")


# -- calls -------------------------------------------------------------------------------------------------------------

FILES = (
    "live_multiple",
    "live_parallel",
    "live_parallel_multiple",
    "live_simple",
    "multiple",
    "parallel",
    "parallel_multiple",
    "simple_java",
    "simple_javascript",
    "simple_python",
)


def first(values: Any) -> Any:
    return (
        concrete(next((value for value in values if value != ""), "")) if isinstance(values, list) else concrete(values)
    )


def concrete(value: Any) -> Any:
    """An accepted value as a model would write it: the first of each name's values."""
    if isinstance(value, dict):
        return {name: first(values) for name, values in value.items() if given(values)}
    return [concrete(item) for item in value] if isinstance(value, list) else value


def given(values: Any) -> bool:
    return not isinstance(values, list) or any(value != "" for value in values)


def made(item: dict[str, Any]) -> dict[str, Any]:
    ((name, accepted),) = item.items()
    return {"name": name, "arguments": {each: first(values) for each, values in accepted.items() if given(values)}}


def python_text(calls: list[dict[str, Any]]) -> str:
    texts = (f"{c['name']}({', '.join(f'{k}={v!r}' for k, v in c['arguments'].items())})" for c in calls)
    return f"[{', '.join(texts)}]"


def changed(calls: list[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    """What is no longer right, by what was done to it."""
    wrong_value, extra, renamed = (copy.deepcopy(calls) for _ in range(3))
    extra[0]["arguments"]["never_heard_of"] = 1
    renamed[0]["name"] += "_other"
    changes = {"a call twice": [*calls, calls[0]], "an argument more": extra, "another name": renamed, "no call": []}
    if len(calls) > 1:
        changes["a call less"] = calls[:-1]
    for name in calls[0]["arguments"]:
        wrong_value[0]["arguments"][name] = "no such value"
        changes["a wrong value"] = wrong_value
    return changes


@pytest.mark.slow
async def test_gold_calls_are_right_in_every_form_and_order_and_changed_ones_are_not(rows: Rows, no_bench: Any) -> None:
    count = Counter[str]()
    for row in (row for file in FILES for row in rows(f"bfcl/{file}.jsonl")):
        asked = task("calls", category=row["category"], functions=row["function"], ground_truth=row["ground_truth"])
        calls = [made(item) for item in row["ground_truth"]]
        right = {"as gold": Submission("", calls), "reversed": Submission("", calls[::-1])}
        right["as JSON text"] = Submission(f"```json\n{json.dumps(calls)}\n```")
        if not any("from" in call["arguments"] for call in calls):  # a word of Python, so no name of an argument there
            right["as Python text"] = Submission(python_text(calls))
        under = [{**call, "name": call["name"].replace(".", "_")} for call in calls]
        right["with underscores"] = Submission("", under)
        for how, submission in right.items():
            grade = await CallMatch().grade(asked, submission, no_bench)
            assert grade.verdict == "right", (row["id"], how, grade)
            count[f"{how}: right"] += 1
        for how, other in changed(calls).items():
            grade = await CallMatch().grade(asked, Submission("", other), no_bench)
            assert grade.verdict != "right", (row["id"], how, grade)
            count[f"{how}: {grade.verdict}"] += 1
    say(f"BFCL: {json.dumps(count)}")


async def test_multi_turn_gold_text_is_right_against_its_own_calls(rows: Rows, no_bench: Any, shared_data: Any) -> None:
    documents = (shared_data / "bfcl" / "multi_turn_func_doc").glob("*.json")
    functions = [json.loads(line) for file in documents for line in file.read_text().splitlines() if line.strip()]
    functions = list({each["name"]: each for each in functions}.values())
    count = 0
    for file in ("multi_turn_base", "multi_turn_miss_func", "multi_turn_miss_param"):
        for row in rows(f"bfcl/{file}.jsonl"):
            asked = task("calls", category=row["category"], functions=functions, ground_truth=row["ground_truth"])
            text = f"[{', '.join(call for turn in row['ground_truth'] for call in turn)}]"
            grade = await CallMatch().grade(asked, Submission(text), no_bench)
            assert grade.verdict == "right", (row["id"], grade)
            count += 1
    say(f"BFCL, multi-turn: {count} of {count} are right against themselves")


async def test_irrelevance_wants_no_call_and_relevance_at_least_one(rows: Rows, no_bench: Any) -> None:
    for file in ("irrelevance", "live_irrelevance", "live_relevance"):
        for row in rows(f"bfcl/{file}.jsonl"):
            asked = task("calls", category=row["category"], functions=row["function"])
            call = {"name": row["function"][0]["name"], "arguments": {}} if row["function"] else None
            for submission, called in (
                (Submission("I cannot do that with what I have."), False),
                (Submission(json.dumps(call)), True),
                (Submission("", [call] if call else []), True),
            ):
                if called and not call:
                    continue
                grade = await CallMatch().grade(asked, submission, no_bench)
                assert (grade.verdict == "right") == (called == (file == "live_relevance")), (row["id"], grade)


@pytest.mark.parametrize("known", [True, False])
def test_recorded_outputs_in_four_wire_formats_are_read_without_running_them(rows: Rows, known: bool) -> None:
    recorded = rows("vllm_tool_parsers/cases.jsonl")
    for row in recorded:
        functions = {call["name"]: [*call["arguments"]] for call in row["calls"]} if known else {}
        calls = [{"name": c.name, "arguments": dict(c.arguments)} for c in read_calls(row["text"], functions).calls]
        assert calls == row["calls"], row["id"]
    say(f"vLLM's parser cases: {len(recorded)} of {len(recorded)}, functions known: {known}")


# -- programs ----------------------------------------------------------------------------------------------------------


async def _verdicts(bench: Any, wanted: dict[str, tuple[Task, str]]) -> dict[str, Any]:
    places = asyncio.Semaphore(4)

    async def one(name: str, asked: Task, text: str) -> tuple[str, Any]:
        async with places:
            return name, await UnitTests().grade(asked, Submission(text), bench)

    return dict(await asyncio.gather(*(one(name, *item) for name, item in wanted.items())))


@pytest.mark.soak
async def test_recorded_programs_of_humaneval_get_their_verdict(rows: Rows, sandbox_bench: Any) -> None:
    tasks = {
        row["task_id"]: (
            task(
                "code",
                prompt=row["prompt"],
                entry_point=row["entry_point"],
                language="python",
                tests=f"{row['test']}\ncheck({row['entry_point']})\n",
            ),
            row,
        )
        for row in rows("code_tasks/humaneval_82.jsonl")
    }
    wanted = {f"completion {name}": (asked, row["canonical_solution"]) for name, (asked, row) in tasks.items()}
    recorded = dict.fromkeys(wanted, True)
    for row in rows("code_tasks/humaneval_gpt4_solutions.jsonl"):
        if row["task_id"] in tasks and row["task_id"] not in NOT_REPRODUCIBLE:
            wanted[row["task_id"]] = (
                tasks[row["task_id"]][0],
                f"Here it is.\n```python\n{row['solution']}\n```\nDone.",
            )
            recorded[row["task_id"]] = row["upstream_is_solved"]
    seen = await _verdicts(sandbox_bench, wanted)
    differ = {name: grade.reason for name, grade in seen.items() if bool(grade.score) != recorded[name]}
    say(f"HumanEval: {len(seen) - len(differ)} of {len(seen)} verdicts agree {differ}")
    assert differ == {}


@pytest.mark.slow
async def test_recorded_programs_of_mbpp_get_their_verdict(rows: Rows, sandbox_bench: Any) -> None:
    kept = [
        row
        for row in rows("code_tasks/mbpp_gpt4_solutions.jsonl")
        if "_".join(row["name"].split("_")[:2]) not in NOT_REPRODUCIBLE
    ]
    wanted = {
        row["name"]: (
            task("code", prompt=row["prompt"], entry_point=row["entry_point"], tests=row["test"], language="python"),
            row["solution"],
        )
        for row in kept
    }
    seen = await _verdicts(sandbox_bench, wanted)
    differ = {
        row["name"]: seen[row["name"]].reason
        for row in kept
        if (seen[row["name"]].verdict is Verdict.RIGHT) != row["upstream_is_solved"]
    }
    say(f"MBPP, recorded: {len(seen) - len(differ)} of {len(seen)} verdicts agree {differ}")
    assert differ == {}


@pytest.mark.slow
async def test_reference_programs_of_mbpp_pass_their_asserts_one_by_one(rows: Rows, sandbox_bench: Any) -> None:
    wanted = {
        str(row["task_id"]): (
            task("code", tests=[f"{row['test_setup_code']}\n{test}" for test in row["test_list"]], language="python"),
            row["code"],
        )
        for row in rows("code_tasks/mbpp_test.jsonl")
    }
    seen = await _verdicts(sandbox_bench, wanted)
    differ = {name: grade.reason for name, grade in seen.items() if grade.verdict != "right"}
    say(f"MBPP, references: {len(seen) - len(differ)} of {len(seen)} pass {differ}")
    assert differ == {}
