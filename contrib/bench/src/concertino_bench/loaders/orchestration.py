"""Rows that papers on orchestration published: MASBench questions, ToolOrchestra tasks, GAP traces and training rows.

A MASBench row is read by `concertino_bench.masbench.from_row`. A GAP row is a trace for imitation (`instruction`,
`input`, `output`), a row for reinforcement (`prompt`, `reward_model`, `extra_info`), or a question with its answers.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from concertino_bench.tasks.task import DataError, Task

from .released import checked
from .row_values import brief
from .rows import DataRow
from .streaming import id_of, rest, split_of, stream

CATEGORIES = ("", "qa", "func_call")
_SHARE = {"type": "number", "minimum": 0, "maximum": 1}
_PRICE = {"type": "number", "minimum": 0}
_TASK = {
    "type": "object",
    "properties": {
        "index": {"type": ["string", "integer"]},
        "id": {"type": ["string", "integer"]},
        "category": {"enum": ["qa", "func_call"]},
        "problem": {"type": "string"},
        "question": {"type": "string"},
        "answer": {"type": ["string", "number"]},
        "tools": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "function": {
                        "type": "object",
                        "properties": {"name": {"type": "string"}, "parameters": {"type": "object"}},
                        "required": ["name"],
                    }
                },
                "required": ["function"],
            },
        },
        "model_mapping": {"type": "object", "additionalProperties": {"type": "string"}},
        "tool_pricing": {
            "type": "object",
            "additionalProperties": {
                "if": {"type": "object", "required": ["input_tokens_per_million"]},
                "then": {
                    "properties": {"input_tokens_per_million": _PRICE, "output_tokens_per_million": _PRICE},
                    "required": ["output_tokens_per_million"],
                },
            },
        },
        "pref_vec": {
            "type": "object",
            "additionalProperties": _SHARE,
            "if": {"minProperties": 1},
            "then": {"required": ["accuracy", "cost", "latency"]},
        },
        "example": {"type": "object"},
    },
    "required": ["answer"],
}
"""A row of ToolOrchestra's data; those of FRAMES and HLE have `id` and `question`, not `index` and `problem`."""
_ANSWER = re.compile(r"<answer>(.*?)</answer>", re.S)


def masbench_rows(*, path: str | Path, split: str = "") -> Iterator[Task]:
    """Tasks of the kind "masbench", from rows in the columns of the published set.

    Args:
        path: rows with `prompt_json` and `reward_model_json`; the published Parquet files, written as JSON Lines.
        split: for published rows, which do not tell it.
    """
    from concertino_bench.masbench.rows import from_row

    # The number in an id is that of the line, as `masbench.read_jsonl` counts.
    return stream(path, lambda row: from_row(row.data, number=row.line, split=split))


def toolorchestra(*, path: str | Path, category: str = "", split: str = "") -> Iterator[Task]:
    """Tasks of the kind "text" from rows of the category `qa`, "func_call" from those of `func_call`.

    No grader is for the kind "func_call": a row has neither a final state nor a world to act in. Evaluate those with a
    task set that has both, such as `tau2/airline`.

    Args:
        path: rows with `index` (or `id`), `problem` (or `question`), `answer`, and maybe `category`, `tools`,
            `model_mapping`, `tool_pricing`, `pref_vec`, `example`.
        category: only rows of this one; both by default.

    Returns:
        The tasks; metadata holds `category`, `domain`, `tools`, `models` (by alias), `prices` ($ per million tokens),
        `preference` and, for `func_call`, `example`, the task as tau2-bench writes it.
    """
    if category not in CATEGORIES:
        raise DataError(f"category={category!r}; expected 'qa', 'func_call', or nothing for both")
    return stream(path, lambda row: _tool_task(row, category, split))


def _tool_task(row: DataRow, category: str, split: str) -> Task | None:
    data = checked(row.data, _TASK, row.place)
    kind, index = data.get("category", "qa"), str(data.get("index", data.get("id")))
    if category and kind != category:
        return None
    metadata = {
        "category": kind,
        "domain": index.partition("____")[0] if "____" in index else "",
        "tools": data.get("tools", []),
        "models": data.get("model_mapping", {}),
        "prices": _prices(data.get("tool_pricing", {})),
        "preference": data.get("pref_vec", {}),
    }
    name, split = id_of("toolorchestra", row, "index", "id"), split_of(row, split)
    if kind == "func_call":
        example = data[row.needed("example")] or row.wrong("example", "the task as tau2-bench writes it")
        question = data.get("problem", data.get("question")) or _told(row, example)
        return Task(name, question, (), "func_call", split=split, metadata=metadata | {"example": example})
    question, answer = row.text("problem", "question"), str(data["answer"])
    return Task(name, question, (answer,), "text", split=split, metadata=metadata | {"aliases": []})


def _prices(pricing: Mapping[str, Any]) -> dict[str, dict[str, float]]:
    """$ per million tokens by model; other entries price the sandbox and the search."""
    # The columns hold $ per single token, whatever their names say.
    return {
        model: {
            # Rounded, since 2e-07 * 1e6 is 0.19999999999999998.
            "input": round(price["input_tokens_per_million"] * 1e6, 9),
            "output": round(price["output_tokens_per_million"] * 1e6, 9),
        }
        for model, price in pricing.items()
        if isinstance(price, Mapping) and "input_tokens_per_million" in price
    }


def _told(row: DataRow, example: Mapping[str, Any]) -> str:
    """What the user of a customer-service task knows and wants."""
    scenario = example.get("user_scenario")
    instructions = scenario.get("instructions") if isinstance(scenario, Mapping) else None
    if isinstance(instructions, str) and instructions.strip():
        return instructions
    keys = ("reason_for_call", "known_info", "task_instructions")
    told = instructions if isinstance(instructions, Mapping) else {}
    texts = [told[key].strip() for key in keys if isinstance(told.get(key), str) and told[key].strip()]
    if not texts:
        expected = "user_scenario.instructions with 'reason_for_call', 'known_info' or 'task_instructions'"
        raise row.error(f"column 'example' tells no instructions; expected {expected}: correct the row")
    return "\n\n".join(texts)


# -- GAP ---------------------------------------------------------------------------------------------------------------


def gap(*, path: str | Path, split: str = "") -> Iterator[Task]:
    """Tasks of the kind "text".

    Args:
        path: rows of one of the three shapes.

    Returns:
        The tasks; metadata holds `aliases`, `data_source`, and for traces `trace` (the recorded output) and
        `instruction`.
    """
    return stream(path, lambda row: _gap_task(row, split))


def _gap_task(row: DataRow, split: str) -> Task:
    metadata: dict[str, Any] = dict(rest(row, "data_source"))
    if row.column("output"):
        question, answers = _trace(row, metadata)
    elif row.column("reward_model"):
        question, answers = _training(row)
    else:
        row.needed("question", "output", "reward_model")
        question, answers = row.text("question"), _texts(row, "answer", row.data[row.needed("answer")])
    extra = row.data.get("extra_info")
    given = extra.get("split") if isinstance(extra, Mapping) else None
    # GAP's training rows say their split inside `extra_info`, as verl writes them.
    split = split_of(row, split) or (given if isinstance(given, str) else "")
    metadata["aliases"] = [*dict.fromkeys(text for text in answers[1:] if text != answers[0])]
    return Task(id_of("gap", row, "id"), question, (answers[0],), "text", split=split, metadata=metadata)


def _trace(row: DataRow, metadata: dict[str, Any]) -> tuple[str, list[str]]:
    output = row.text("output")
    found = [text.strip() for text in _ANSWER.findall(output) if text.strip()]
    if not found:
        row.wrong("output", "a trace that ends in <answer>…</answer>")
    metadata |= {"trace": output} | rest(row, "instruction", "conversion_status")
    asked = row.text("input", default="")
    # In some rows the question stands in `instruction` and `input` is empty.
    question = asked if asked.strip() else row.text("instruction")
    # `|` separates several answers in this format.
    return question, [part.strip() for part in found[-1].split("|") if part.strip()] or [found[-1]]


def _training(row: DataRow) -> tuple[str, list[str]]:
    reward = row.data["reward_model"]
    truth = reward.get("ground_truth") if isinstance(reward, Mapping) else None
    if isinstance(truth, str) and truth.lstrip().startswith("{"):
        try:
            truth = json.loads(truth)
        except ValueError as error:
            raise row.error(f"reward_model.ground_truth is not JSON ({error}); expected {{'target': […]}}") from None
    target = truth.get("target") if isinstance(truth, Mapping) else truth
    extra = row.data.get("extra_info")
    question = extra.get("question") if isinstance(extra, Mapping) else None
    return question if isinstance(question, str) and question.strip() else _asked(row), _texts(row, "target", target)


def _asked(row: DataRow) -> str:
    """The last message of the user, where `extra_info` has no question."""
    messages = row.items("prompt")
    told = [each.get("content") for each in messages if isinstance(each, Mapping) and each.get("role") == "user"]
    if not told or not isinstance(told[-1], str) or not told[-1].strip():
        row.wrong("prompt", "chat messages, one of them the user's; or extra_info.question")
    return told[-1]


def _texts(row: DataRow, name: str, value: Any) -> list[str]:
    texts = [str(value)] if isinstance(value, str | int | float) and not isinstance(value, bool) else value
    if not isinstance(texts, list) or not texts or not all(isinstance(each, str) and each.strip() for each in texts):
        raise row.error(f"{name!r} is {brief(value)}; expected a text or a list of texts: correct the row")
    return texts
